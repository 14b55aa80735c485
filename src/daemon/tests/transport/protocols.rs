//! A call in every protocol: success, refusal, details, content types.

use bytes::Bytes;
use plimsoll_wire::{Code, Reason};

use crate::support::{
    Daemon, REQUEST_ID,
    client::{Wire, frame},
    raw::{Raw, head, json, path},
};

#[tokio::test]
async fn a_run_is_answered_in_every_protocol() {
    let daemon = Daemon::start().await;
    for (count, wire) in Wire::ALL.into_iter().enumerate() {
        let outcome = wire.call(daemon.address, wire.run("1+1"), &[]).await;
        assert_eq!(outcome.http, 200, "{wire:?}");
        assert_eq!(outcome.stdout(wire), b"1+1", "{wire:?}");
        assert_eq!(
            outcome.header("plimsoll-request-id"),
            REQUEST_ID,
            "{wire:?}"
        );
        assert_eq!(outcome.mark(), "", "{wire:?}");
        assert_eq!(daemon.fake.entered(), count + 1);
        let call = daemon.fake.last.lock().unwrap().take().unwrap().0;
        assert_eq!(call.principal.key(), "alice");
        assert_eq!(call.deadline, None);
    }
}

#[tokio::test]
async fn every_method_is_reached() {
    let daemon = Daemon::start().await;
    let methods = [
        "Run",
        "Describe",
        "OpenSession",
        "SessionRun",
        "CloseSession",
    ];
    for wire in [Wire::Json, Wire::Proto, Wire::Grpc, Wire::GrpcWeb] {
        for method in methods {
            let before = daemon.fake.entered();
            let body = if wire.is_json() { "{}" } else { "" };
            let body = wire.frame(body.as_bytes());
            let outcome = wire.call_method(daemon.address, method, body, &[]).await;
            assert_eq!(outcome.code, None, "{wire:?} {method}");
            assert_eq!(daemon.fake.entered(), before + 1, "{wire:?} {method}");
        }
    }
}

#[tokio::test]
async fn a_refusal_of_the_service_has_its_detail_and_no_header_mark() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let outcome = wire.call(daemon.address, wire.run("refuse"), &[]).await;
        assert_eq!(outcome.code, Some(Code::FailedPrecondition), "{wire:?}");
        assert_eq!(outcome.message, "the tier is below the floor", "{wire:?}");
        assert_eq!(
            outcome.details.not_dispatched,
            Some(Reason::Isolation),
            "{wire:?}"
        );
        assert_eq!(outcome.mark(), "", "{wire:?}");
        assert_eq!(
            outcome.header("plimsoll-request-id"),
            REQUEST_ID,
            "{wire:?}"
        );
        assert_eq!(
            outcome.http,
            if wire.framed() { 200 } else { 400 },
            "{wire:?}"
        );
    }
}

/// In gRPC the status comes once, in trailers with no body before them: of a
/// client that finds one in the headers the details would be lost.
#[tokio::test]
async fn a_grpc_error_states_its_status_once() {
    let daemon = Daemon::start().await;
    for wire in [Wire::Grpc, Wire::GrpcJson] {
        for (method, body, token, status) in [
            ("Run", wire.run("1"), "Bearer x", "16"),
            ("Nope", wire.run("1"), "", "7"),
            ("Run", wire.frame(b"\x0a\xff"), "", "3"),
            ("Run", wire.run("refuse"), "", "9"),
        ] {
            let more = [("authorization", token)];
            let more = if token.is_empty() { &[][..] } else { &more };
            let answer = wire
                .send(daemon.address, wire.request(method, body, more))
                .await;
            assert_eq!(answer.http, 200);
            assert_eq!(answer.body, Bytes::new(), "{wire:?} {status}");
            assert_eq!(answer.headers["plimsoll-request-id"], REQUEST_ID);
            assert_eq!(answer.trailers["grpc-status"], status);
            for name in ["grpc-status", "grpc-message", "grpc-status-details-bin"] {
                assert!(!answer.headers.contains_key(name), "{wire:?} {status}");
                assert!(answer.trailers.contains_key(name), "{wire:?} {status}");
            }
        }
    }
}

#[tokio::test]
async fn a_handlers_own_404_is_not_unsupported() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let outcome = wire.call(daemon.address, wire.run("not found"), &[]).await;
        assert_eq!(outcome.code, Some(Code::NotFound), "{wire:?}");
        assert_eq!(outcome.mark(), "", "{wire:?}");
        assert_eq!(
            outcome.details.not_dispatched,
            Some(Reason::Request),
            "{wire:?}"
        );
        let ended = outcome.details.session_ended.unwrap();
        assert_eq!((ended.reason, ended.detail.as_str()), ("not_found", "gone"));
    }
}

#[tokio::test]
async fn an_unanswered_call_carries_its_record_and_no_mark() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let outcome = wire.call(daemon.address, wire.run("unanswered"), &[]).await;
        assert_eq!(outcome.code, Some(Code::Internal), "{wire:?}");
        assert_eq!(outcome.message, "lost é%\n", "{wire:?}");
        assert_eq!(outcome.details.not_dispatched, None, "{wire:?}");
        assert_eq!(
            outcome.details.unanswered.as_ref().unwrap().sequence,
            7,
            "{wire:?}"
        );
        assert_eq!(outcome.mark(), "", "{wire:?}");
    }
}

#[tokio::test]
async fn the_published_error_bodies() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(json("Run", r#"{"javascript":{"code":"not found"}}"#))
        .await;
    let answer = raw.answer().await;
    assert_eq!(
        answer.text(),
        r#"{"code":"not_found","message":"no such session","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAE"},{"type":"plimsoll.v1.SessionEnded","value":"CAkSBGdvbmU"}]}"#
    );
    assert_eq!(answer.header("content-type"), "application/json");
    raw.send(json("Run", r#"{"javascript":{"code":"1"}}"#))
        .await;
    let answer = raw.answer().await;
    assert_eq!(
        answer.text(),
        r#"{"sandbox":"fake","javascript":{"stdout":"MQ=="}}"#
    );
    let length = answer.body.len().to_string();
    assert_eq!(answer.header("content-length"), length);
    assert_eq!(answer.header("content-type"), "application/json");
}

#[tokio::test]
async fn content_types() {
    let daemon = Daemon::start().await;
    let body = Wire::Json.run("1");
    for good in [
        "Application/JSON;charset=UTF-8",
        "application/json ; charset=\"utf-8\"",
    ] {
        let more = [("content-type", good)];
        let outcome = Wire::Json.call(daemon.address, body.clone(), &more).await;
        assert_eq!(outcome.http, 200, "{good}");
        assert_eq!(outcome.header("content-type"), "application/json", "{good}");
    }
    let entered = daemon.fake.entered();
    for bad in [
        "application/json; charset=latin1",
        "application/json; x=y",
        "",
        "text/plain",
        "application/connect+json",
        "application/connect+proto",
        "application/grpc-web-text",
        "application/grpc+thrift",
        "application/proto; charset=utf-8",
    ] {
        let more = [("content-type", bad)];
        for wire in [Wire::Json, Wire::Grpc] {
            let answer = wire
                .send(daemon.address, wire.request("Run", body.clone(), &more))
                .await;
            assert_eq!(answer.http, 415, "{bad} {wire:?}");
            assert_eq!(answer.body, Bytes::new(), "{bad}");
            assert_eq!(
                answer.headers["accept-post"],
                "application/grpc, application/grpc+json, application/grpc+json; charset=utf-8, \
                 application/grpc+proto, application/grpc-web, application/grpc-web+json, \
                 application/grpc-web+json; charset=utf-8, application/grpc-web+proto, \
                 application/json, application/json; charset=utf-8, application/proto"
            );
            assert_eq!(answer.headers["plimsoll-not-dispatched"], "request");
            assert_eq!(answer.headers["plimsoll-request-id"], REQUEST_ID);
        }
    }
    assert_eq!(daemon.fake.entered(), entered);
}

#[tokio::test]
async fn grpc_needs_http2() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let body = frame(0, b"");
    let request =
        head("Run", "Content-Length: 5\r\n").replace("application/json", "application/grpc");
    raw.send([request.as_bytes(), &body].concat()).await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.mark()), (505, "request"));
    // Without a credential it is refused for that, in a shape HTTP/1 reads.
    let mut raw = Raw::connect(daemon.address).await;
    let request = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nContent-Type: application/grpc\r\n\r\n",
        path("Run")
    );
    raw.send(request).await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 401);
    assert!(answer.text().starts_with(r#"{"code":"unauthenticated""#));
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn no_upgrade_to_http2() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let body = r#"{"javascript":{"code":"1"}}"#;
    let more = format!(
        "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n\
         HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: {}\r\n",
        body.len()
    );
    raw.send(head("Run", &more) + body).await;
    assert_eq!(raw.answer().await.status, 200);
}

#[tokio::test]
async fn answers_are_compressed_only_when_asked_for() {
    let daemon = Daemon::start().await;
    let large = "bytes 100000";
    for (accept, code, encoding) in [
        ("", large, ""),
        ("identity", large, ""),
        ("gzip;q=0", large, ""),
        ("br", large, ""),
        ("gzip", large, "gzip"),
        ("br, gzip", large, "gzip"),
        ("gzip", "unanswered", ""),
        ("gzip", "refuse", ""),
    ] {
        for wire in [Wire::Json, Wire::Proto] {
            let more = [("accept-encoding", accept)];
            let outcome = wire.call(daemon.address, wire.run(code), &more).await;
            assert_eq!(
                outcome.header("content-encoding"),
                encoding,
                "{accept} {code}"
            );
        }
    }
    let more = [("grpc-accept-encoding", "gzip")];
    let answer = Wire::Grpc
        .send(
            daemon.address,
            Wire::Grpc.request("Run", Wire::Grpc.run(large), &more),
        )
        .await;
    assert_eq!(answer.headers["grpc-encoding"], "gzip");
    assert_eq!(answer.body[0], 1);
    // Asking in another protocol's words is not asking.
    let more = [("accept-encoding", "gzip")];
    let outcome = Wire::Grpc
        .call(daemon.address, Wire::Grpc.run(large), &more)
        .await;
    assert_eq!(outcome.stdout(Wire::Grpc).len(), 100_000);
}

#[tokio::test]
async fn a_large_answer_arrives_whole() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let outcome = wire
            .call(daemon.address, wire.run("bytes 3000000"), &[])
            .await;
        assert_eq!(outcome.stdout(wire).len(), 3_000_000, "{wire:?}");
    }
}
