//! The order of checks: what is refused, as what, and before what.

use plimsoll_wire::{Code, Reason};

use crate::support::{
    Daemon, REQUEST_ID, TOKEN,
    client::Wire,
    raw::{Plain, Raw, path},
};

/// A request with only these headers.
async fn ask(daemon: &Daemon, line: &str, headers: &str) -> Plain {
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(format!(
        "{line} HTTP/1.1\r\nHost: a\r\nPlimsoll-Request-Id: {REQUEST_ID}\r\n{headers}\r\n"
    ))
    .await;
    let answer = raw.answer().await;
    assert_eq!(answer.header("plimsoll-request-id"), REQUEST_ID, "{line}");
    answer
}

#[tokio::test]
async fn paths() {
    let verified = Daemon::start().await;
    let open = Daemon::open().await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for daemon in [&verified, &open] {
        for (line, token) in [
            "GET /",
            "GET /metrics",
            "GET /healthz/",
            "GET //healthz",
            "GET /HEALTHZ",
            "GET /v1/e2b/guard",
            "OPTIONS *",
            "CONNECT example.com:443",
            "POST //plimsoll.v1.SandboxService/Run",
            "POST /./plimsoll.v1.SandboxService/Run",
            "POST /x/../plimsoll.v1.SandboxService/Run",
            "POST /plimsoll.v1.SandboxService//Run",
            "POST /plimsoll.v1.SandboxService/./Run",
            "POST /plimsoll.v1.SandboxService/x/../Run",
            "POST /plimsoll.v1.SandboxService/Run/..",
            "GET /plimsoll.v1.SandboxService/../healthz",
            "GET /x/../healthz",
            "POST /plimsoll.v1.sandboxservice/Run",
            "POST /plimsoll.v1.SandboxService",
            "POST /plimsoll.v2.SandboxService/Run",
            "POST /%70limsoll.v1.SandboxService/Run",
        ]
        .into_iter()
        .flat_map(|line| [(line, ""), (line, &token[..])])
        {
            let answer = ask(daemon, line, token).await;
            assert_eq!(
                (answer.status, answer.mark()),
                (404, "unsupported"),
                "{line}"
            );
            assert_eq!(answer.header("content-type"), "text/plain; charset=utf-8");
            assert_eq!(answer.text(), "not found\n");
        }
    }
    for line in [
        "POST /plimsoll.v1.SandboxService/Nope",
        "GET /plimsoll.v1.SandboxService/",
        "POST /plimsoll.v1.SandboxService/run",
        "POST /plimsoll.v1.SandboxService/Run/",
    ] {
        let answer = ask(&open, line, "").await;
        assert_eq!(
            (answer.status, answer.mark()),
            (404, "unsupported"),
            "{line}"
        );
        let answer = ask(&verified, line, "").await;
        assert_eq!((answer.status, answer.mark()), (401, "request"), "{line}");
        let answer = ask(&verified, line, &token).await;
        assert_eq!((answer.status, answer.mark()), (403, "request"), "{line}");
        assert!(answer.text().contains("\"CAI\""), "{line}");
    }
    assert_eq!(verified.fake.entered() + open.fake.entered(), 0);
}

#[tokio::test]
async fn an_unknown_method_in_grpc() {
    let verified = Daemon::start().await;
    let open = Daemon::open().await;
    let body = Wire::Grpc.run("1");
    let outcome = Wire::Grpc
        .call_method(verified.address, "Nope", body.clone(), &[])
        .await;
    assert_eq!(outcome.code, Some(Code::PermissionDenied));
    assert_eq!(outcome.details.not_dispatched, Some(Reason::Permission));
    let request = Wire::Grpc.request("Nope", body, &[]);
    let answer = Wire::Grpc.send(open.address, request).await;
    assert_eq!(answer.http, 404);
    assert_eq!(answer.headers["plimsoll-not-dispatched"], "unsupported");
}

#[tokio::test]
async fn methods() {
    let daemon = Daemon::start().await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    for method in ["GET", "PUT", "OPTIONS", "DELETE", "HEAD"] {
        for procedure in ["Run", "Describe"] {
            let line = format!("{method} {}", path(procedure));
            let answer = ask(&daemon, &line, &token).await;
            assert_eq!((answer.status, answer.mark()), (405, "request"), "{line}");
            assert_eq!(answer.header("allow"), "POST", "{line}");
            assert_eq!(answer.text(), "", "{line}");
        }
    }
    // The method comes after the credential.
    let answer = ask(&daemon, &format!("GET {}", path("Run")), "").await;
    assert_eq!(answer.status, 401);
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn probes_need_no_token_and_never_say_why() {
    let daemon = Daemon::start().await;
    let answer = ask(&daemon, "GET /healthz", "").await;
    assert_eq!(
        (answer.status, answer.text(), answer.mark()),
        (200, "ok\n", "")
    );
    let answer = ask(&daemon, "GET /readyz?verbose", "").await;
    assert_eq!(
        (answer.status, answer.text(), answer.mark()),
        (200, "ready\n", "")
    );
    daemon
        .fake
        .not_ready
        .store(true, std::sync::atomic::Ordering::SeqCst);
    let answer = ask(&daemon, "GET /readyz", "").await;
    assert_eq!((answer.status, answer.text()), (503, "not ready\n"));
    assert_eq!(answer.mark(), "request");
    let answer = ask(&daemon, "GET /healthz", "").await;
    assert_eq!(answer.status, 200);
    let answer = ask(&daemon, "HEAD /healthz", "").await;
    assert_eq!((answer.status, answer.text()), (200, ""));
    let answer = ask(&daemon, "POST /healthz", "Content-Length: 0\r\n").await;
    assert_eq!((answer.status, answer.header("allow")), (405, "GET, HEAD"));
}

#[tokio::test]
async fn a_versions_and_compressions_of_requests() {
    let daemon = Daemon::start().await;
    for (more, http, code) in [
        (("connect-protocol-version", "1"), 200, None),
        (("connect-protocol-version", ""), 200, None),
        (
            ("connect-protocol-version", "2"),
            400,
            Some(Code::InvalidArgument),
        ),
        (
            ("connect-protocol-version", "01"),
            400,
            Some(Code::InvalidArgument),
        ),
        (("content-encoding", "identity"), 200, None),
        (("content-encoding", "br"), 501, Some(Code::Unimplemented)),
        (
            ("content-encoding", "gzip, gzip"),
            501,
            Some(Code::Unimplemented),
        ),
    ] {
        for wire in [Wire::Json, Wire::Proto] {
            let outcome = wire.call(daemon.address, wire.run("1"), &[more]).await;
            assert_eq!((outcome.http, outcome.code), (http, code), "{more:?}");
            if http != 200 {
                assert_eq!(outcome.mark(), "request", "{more:?}");
                assert_eq!(outcome.details.not_dispatched, Some(Reason::Request));
            }
            let accept = if http == 501 {
                "gzip"
            } else {
                outcome.header("accept-encoding")
            };
            assert_eq!(outcome.header("accept-encoding"), accept);
        }
    }
    for wire in [Wire::Grpc, Wire::GrpcJson, Wire::GrpcWeb] {
        for more in [("grpc-encoding", "br"), ("content-encoding", "gzip")] {
            let outcome = wire.call(daemon.address, wire.run("1"), &[more]).await;
            assert_eq!(outcome.code, Some(Code::Unimplemented), "{wire:?}");
            assert_eq!(outcome.details.not_dispatched, Some(Reason::Request));
            assert_eq!(outcome.header("grpc-accept-encoding"), "gzip");
        }
        // Connect's version header means nothing in gRPC.
        let more = [
            ("connect-protocol-version", "2"),
            ("grpc-encoding", "identity"),
        ];
        let outcome = wire.call(daemon.address, wire.run("1"), &more).await;
        assert_eq!(outcome.code, None, "{wire:?}");
    }
}

/// Every request is wrong in two ways; the earlier check must answer.
#[tokio::test]
async fn earlier_checks_answer_first() {
    let daemon = Daemon::start().await;
    let token = format!("Authorization: Bearer {TOKEN}\r\n");
    let too_long = "Content-Length: 8388609\r\n";
    let run = path("Run");
    for (line, headers, status) in [
        ("POST /nowhere".to_owned(), too_long.to_owned(), 404),
        (format!("GET {run}"), too_long.to_owned(), 401),
        (path("Nope"), token.clone() + too_long, 403),
        (format!("PUT {run}"), token.clone() + too_long, 429),
        (
            format!("PUT {run}"),
            token.clone() + "Content-Type: text/plain\r\n",
            405,
        ),
        (
            format!("POST {run}"),
            token.clone() + "Content-Type: text/plain\r\nContent-Encoding: br\r\n",
            415,
        ),
        (
            format!("POST {run}"),
            token.clone()
                + "Content-Type: application/json\r\nContent-Encoding: br\r\n\
                   Connect-Protocol-Version: 2\r\n",
            501,
        ),
        (
            format!("POST {run}"),
            token.clone()
                + "Content-Type: application/json\r\nConnect-Protocol-Version: 2\r\n\
                   Connect-Timeout-Ms: 0\r\n",
            400,
        ),
        (
            format!("POST {run}"),
            token
                + "Content-Type: application/json\r\nConnect-Timeout-Ms: 0\r\n\
                   Content-Length: 1\r\n",
            504,
        ),
    ] {
        let line = if line.contains(' ') {
            line
        } else {
            format!("POST {line}")
        };
        let answer = ask(&daemon, &line, &headers).await;
        assert_eq!(answer.status, status, "{line} {headers}");
    }
    assert_eq!(daemon.fake.entered(), 0);
}
