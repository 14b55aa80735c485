//! Messages that cannot be decoded: refused before any handler.

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use plimsoll_wire::{
    Code, Reason,
    proto::{JavaScriptRun, Message, ModuleRow, ModuleRun, RunRequest, run_request::Payload},
};
use proptest::prelude::*;
use std::io::Write;

use crate::support::{
    Daemon, REQUEST_ID, TOKEN,
    client::{Outcome, Wire, frame},
    raw::{Raw, head, path},
};

fn gzip(data: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(data).unwrap();
    encoder.finish().unwrap()
}

fn refused(outcome: &Outcome, wire: Wire, code: Code, context: &str) {
    assert_eq!(outcome.code, Some(code), "{context} {wire:?}");
    assert_eq!(
        outcome.details.not_dispatched,
        Some(Reason::Request),
        "{context} {wire:?}"
    );
    assert_eq!(
        outcome.header("plimsoll-request-id"),
        REQUEST_ID,
        "{context}"
    );
    let (http, mark) = match wire.framed() {
        true => (200, ""),
        false => (code.http_status(), "request"),
    };
    assert_eq!(
        (outcome.http, outcome.mark()),
        (http, mark),
        "{context} {wire:?}"
    );
}

#[tokio::test]
async fn json_texts() {
    let daemon = Daemon::start().await;
    let deep = "[".repeat(1 << 20);
    for text in [
        "",
        " ",
        "{\"protocol\":3,",
        "null",
        "[]",
        "\u{feff}{}",
        "{} x",
        "{}{}",
        r#"{"protocol":3,"protocol":3}"#,
        r#"{"protocol":3,"javascript":["1"]}"#,
        r#"{"protocol":3,"javascript":[]}"#,
        r#"{"protocol":3,"javascript":{"code":"1"},"softwareRule":[]}"#,
        r#"{"protocol":3,"project":{"steps":["a"],"files":[["a","b"]]}}"#,
        r#"{"timeoutMs":1,"timeout_ms":2}"#,
        r#"{"protocol":3,"protocol":null}"#,
        r#"{"x":1,"x":1}"#,
        r#"{"javascript":null,"javascript":{"code":"1"}}"#,
        r#"{"javascript":{"code":"1"},"module":{"model":"m"}}"#,
        r#"{"javascript":{"code":"\ud800"}}"#,
        r#"{"unknown":"\ud800"}"#,
        r#"{"protocol":4294967296}"#,
        r#"{"protocol":"+3"}"#,
        r#"{"protocol":true}"#,
        r#"{"module":{"endTime":1e400}}"#,
        r#"{"module":{"endTime":NaN}}"#,
        r#"{"module":{"endTime":"inf"}}"#,
        r#"{"module":{"rows":[null]}}"#,
        &format!("{{\"unknown\":{}1{}}}", "[".repeat(200), "]".repeat(200)),
        &deep,
    ] {
        for wire in [Wire::Json, Wire::GrpcJson, Wire::GrpcWebJson] {
            let context = &text[..text.len().min(60)];
            let outcome = wire
                .call(daemon.address, wire.frame(text.as_bytes()), &[])
                .await;
            refused(&outcome, wire, Code::InvalidArgument, context);
            assert!(
                outcome.message.starts_with("cannot decode the message: "),
                "{context}"
            );
        }
    }
    let invalid = b"{\"unknown\":\"\xff\"}";
    let outcome = Wire::Json
        .call(daemon.address, Bytes::from_static(invalid), &[])
        .await;
    refused(&outcome, Wire::Json, Code::InvalidArgument, "invalid UTF-8");
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn an_answer_never_quotes_the_message() {
    let daemon = Daemon::start().await;
    for text in [
        r#"{"protocol":"CANARY"}"#,
        r#"{"javascript":{"code":{"CANARY":1}}}"#,
        r#"{"javascript":"CANARY"}"#,
        r#"{"CANARY":1,"CANARY":1}"#,
    ] {
        let outcome = Wire::Json.call(daemon.address, text.into(), &[]).await;
        refused(&outcome, Wire::Json, Code::InvalidArgument, text);
        assert!(!outcome.message.contains("CANARY"), "{}", outcome.message);
    }
}

#[tokio::test]
async fn four_spellings_are_one_message() {
    let daemon = Daemon::start().await;
    let mut seen = Vec::new();
    for text in [
        r#"{"protocol":3,"minimumIsolation":"kernel","timeoutMs":1500,"javascript":{"code":"1"}}"#,
        r#"{"protocol":"3","minimum_isolation":"kernel","timeout_ms":"1500","javascript":{"code":"\u0031","grantProfile":null}}"#,
        r#"{"timeoutMs":1.5e3,"javascript":{"grant_profile":"","code":"1"},"protocol":3.0,"minimumIsolation":"kernel"}"#,
        r#"{"protocol":3,"minimumIsolation":"kernel","timeoutMs":1500,"javascript":{"code":"1"},"someFutureField":[{"x":1}]}"#,
    ] {
        let outcome = Wire::Json.call(daemon.address, text.into(), &[]).await;
        assert_eq!(outcome.http, 200, "{text}");
        let request = daemon.fake.last.lock().unwrap().take().unwrap().1;
        seen.push(request.encode_to_vec());
    }
    assert!(seen.windows(2).all(|pair| pair[0] == pair[1]));
}

#[tokio::test]
async fn binary_messages() {
    let daemon = Daemon::start().await;
    for (context, bytes) in [
        ("truncated", &b"\x08"[..]),
        ("field 0", b"\x00\x01"),
        (
            "long varint",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
        ),
        ("invalid UTF-8", b"\x12\x02\xff\xfe"),
        ("stray group end", b"\x0c"),
        ("JSON", b"{}"),
    ] {
        for wire in [Wire::Proto, Wire::Grpc, Wire::GrpcWeb] {
            let outcome = wire.call(daemon.address, wire.frame(bytes), &[]).await;
            refused(&outcome, wire, Code::InvalidArgument, context);
        }
    }
    assert_eq!(daemon.fake.entered(), 0);
    // Nothing is all defaults; an unknown field is dropped.
    let empty = Wire::Proto.call(daemon.address, Bytes::new(), &[]).await;
    assert_eq!(empty.http, 200);
    let unknown = Bytes::from_static(b"\x08\x03\xf2\x3f\x03abc");
    let outcome = Wire::Proto.call(daemon.address, unknown, &[]).await;
    assert_eq!(outcome.http, 200);
    let request = daemon.fake.last.lock().unwrap().take().unwrap().1;
    assert_eq!(request.encode_to_vec(), b"\x08\x03");
}

#[tokio::test]
async fn sizes() {
    let daemon = Daemon::start().await;
    let limit = 8 << 20;
    let bomb = gzip(&vec![b' '; 9 << 20]);
    for wire in Wire::ALL {
        let body = wire.frame(&vec![b' '; limit + 1]);
        let outcome = wire.call(daemon.address, body, &[]).await;
        refused(&outcome, wire, Code::ResourceExhausted, "over the limit");
        let (body, name) = match wire.framed() {
            true => (frame(1, &bomb), "grpc-encoding"),
            false => (bomb.clone().into(), "content-encoding"),
        };
        let outcome = wire.call(daemon.address, body, &[(name, "gzip")]).await;
        refused(&outcome, wire, Code::ResourceExhausted, "bomb");
        let (body, name) = match wire.framed() {
            true => (frame(1, b"not gzip"), "grpc-encoding"),
            false => (Bytes::from_static(b"not gzip"), "content-encoding"),
        };
        let outcome = wire.call(daemon.address, body, &[(name, "gzip")]).await;
        refused(&outcome, wire, Code::InvalidArgument, "bad gzip");
    }
    assert_eq!(daemon.fake.entered(), 0);
    for wire in Wire::ALL {
        // The largest message there may be, plain and compressed.
        let code = "x".repeat(limit - 200);
        let outcome = wire.call(daemon.address, wire.run(&code), &[]).await;
        assert_eq!(outcome.code, None, "{wire:?}");
        let plain = wire.run("1+1");
        let (body, name) = match wire.framed() {
            true => (frame(1, &gzip(&plain[5..])), "grpc-encoding"),
            false => (gzip(&plain).into(), "content-encoding"),
        };
        let outcome = wire.call(daemon.address, body, &[(name, "gzip")]).await;
        assert_eq!(outcome.stdout(wire), b"1+1", "{wire:?}");
    }
}

#[tokio::test]
async fn a_chunked_body_is_cut_off_at_the_limit() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", "Transfer-Encoding: chunked\r\n"))
        .await;
    let chunk = format!("100000\r\n{}\r\n", " ".repeat(1 << 20));
    for _ in 0..8 {
        raw.send(&chunk).await;
    }
    raw.send("1\r\n \r\n").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.mark()), (429, "request"));
    assert!(answer.closes());
    assert!(answer.text().contains("\"CAE\""));
    raw.closed().await;
}

#[tokio::test]
async fn frames() {
    let daemon = Daemon::start().await;
    let message = RunRequest {
        protocol: 3,
        ..RunRequest::default()
    }
    .encode_to_vec();
    let good = frame(0, &message);
    for (context, body) in [
        ("none", Bytes::new()),
        ("head only", good.slice(..5)),
        ("part of a head", good.slice(..3)),
        ("cut short", good.slice(..good.len() - 1)),
        ("two", [good.clone(), good.clone()].concat().into()),
        ("one and a byte", [&good[..], b"\0"].concat().into()),
        ("flag 2", frame(2, &message)),
        ("trailer flag", frame(0x80, &message)),
        ("compressed without an encoding", frame(1, &gzip(&message))),
    ] {
        for wire in [Wire::Grpc, Wire::GrpcWeb] {
            let outcome = wire.call(daemon.address, body.clone(), &[]).await;
            refused(&outcome, wire, Code::InvalidArgument, context);
        }
    }
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn a_frame_that_claims_4_gib_is_refused_at_once() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/grpc-web\r\nTransfer-Encoding: chunked\r\n\r\n",
        path("Run")
    );
    raw.send([head.as_bytes(), b"5\r\n\0\xff\xff\xff\xff\r\n"].concat())
        .await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 200);
    assert!(answer.closes());
    let body = String::from_utf8_lossy(&answer.body).into_owned();
    assert!(
        body.contains("grpc-status: 8") || body.contains("grpc-status:8"),
        "{body}"
    );
    raw.closed().await;
    assert_eq!(daemon.fake.entered(), 0);
}

/// Tables near the size limit are decoded, in both encodings.
#[tokio::test]
async fn large_tables() {
    let daemon = Daemon::start().await;
    let table = |rows: usize, width: usize, value: f64| RunRequest {
        protocol: 3,
        payload: Some(Payload::Module(Box::new(ModuleRun {
            rows: vec![
                ModuleRow {
                    values: vec![value; width],
                };
                rows
            ],
            ..ModuleRun::default()
        }))),
        ..RunRequest::default()
    };
    let wide = table(99_000, 10, 0.5);
    let text = |rows: usize, width: usize| {
        let row = format!("{{\"values\":[{}]}}", vec!["0"; width].join(","));
        let rows = vec![row; rows].join(",");
        Bytes::from(format!(
            "{{\"protocol\":3,\"module\":{{\"rows\":[{rows}]}}}}"
        ))
    };
    for (wire, body, request) in [
        (Wire::Proto, wide.encode_to_vec().into(), &wide),
        (Wire::Json, text(100_000, 35), &table(100_000, 35, 0.0)),
        (Wire::Json, text(58_500, 64), &table(58_500, 64, 0.0)),
    ] {
        assert!(((8 << 20) - body.len()) < 300_000, "{}", body.len());
        let outcome = wire.call(daemon.address, body, &[]).await;
        assert_eq!(outcome.code, None, "{wire:?}");
        let seen = daemon.fake.last.lock().unwrap().take().unwrap().1;
        assert!(&seen == request, "{wire:?}");
    }
}

/// A list longer than any may be is refused before it is decoded, however small
/// it was on the wire; the longest there may be is decoded.
#[tokio::test]
async fn a_list_over_the_bound_is_refused_undecoded() {
    let daemon = Daemon::start().await;
    let rows = |count: usize| RunRequest {
        protocol: 3,
        payload: Some(Payload::Module(Box::new(ModuleRun {
            rows: vec![ModuleRow::default(); count],
            ..ModuleRun::default()
        }))),
        ..RunRequest::default()
    };
    for wire in Wire::ALL {
        for (count, over) in [(100_000, false), (100_001, true)] {
            let message = match wire.is_json() {
                true => plimsoll_wire::json::write(&rows(count))
                    .unwrap()
                    .into_bytes(),
                false => rows(count).encode_to_vec(),
            };
            let (body, name) = match wire.framed() {
                true => (frame(1, &gzip(&message)), "grpc-encoding"),
                false => (gzip(&message).into(), "content-encoding"),
            };
            let outcome = wire.call(daemon.address, body, &[(name, "gzip")]).await;
            if over {
                refused(&outcome, wire, Code::InvalidArgument, "rows");
                assert_eq!(
                    outcome.message,
                    "cannot decode the message: a list has at most 100000 elements"
                );
            } else {
                assert_eq!(outcome.code, None, "{wire:?}");
            }
        }
    }
    assert_eq!(daemon.fake.entered(), Wire::ALL.len());
}

/// Whatever the bytes, the answer is a run or a marked refusal.
#[test]
fn mutated_bodies_are_run_or_refused() {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let daemon = runtime.block_on(Daemon::start());
    let run = RunRequest {
        protocol: 3,
        timeout_ms: 5,
        payload: Some(Payload::Javascript(Box::new(JavaScriptRun {
            code: "1".into(),
            ..JavaScriptRun::default()
        }))),
        ..RunRequest::default()
    };
    let mut config = ProptestConfig::with_cases(96);
    config.failure_persistence = None;
    proptest!(config, |(wire in 0..6_usize, at: prop::sample::Index, byte: u8, cut: bool)| {
        let wire = Wire::ALL[wire];
        let message = match wire.is_json() {
            true => plimsoll_wire::json::write(&run).unwrap().into_bytes(),
            false => run.encode_to_vec(),
        };
        let mut body = wire.frame(&message).to_vec();
        let at = at.index(body.len());
        if cut { body.truncate(at); } else { body[at] = byte; }
        let before = daemon.fake.entered();
        let outcome = runtime.block_on(wire.call(daemon.address, body.into(), &[]));
        let ran = daemon.fake.entered() - before;
        match outcome.code {
            None => prop_assert_eq!(ran, 1),
            Some(_) if ran == 1 => prop_assert_eq!(outcome.details.not_dispatched, None),
            Some(_) => prop_assert_eq!(outcome.details.not_dispatched, Some(Reason::Request)),
        }
    });
}
