//! A call between its dispatch and its answer: deadlines, callers that leave,
//! panics, calls that take too long.

use std::time::{Duration, Instant};

use bytes::Bytes;
use plimsoll_wire::{Code, Reason};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::support::{
    Daemon, REQUEST_ID,
    client::Wire,
    fake::{Mode, SECRET},
    in_time,
    raw::{Raw, head, json},
    settings, timed,
};

const METHODS: [&str; 5] = [
    "Run",
    "Describe",
    "OpenSession",
    "SessionRun",
    "CloseSession",
];

fn timeout_header(wire: Wire, ms: u32) -> (&'static str, String) {
    if wire.framed() {
        ("grpc-timeout", format!("{ms}m"))
    } else {
        ("connect-timeout-ms", ms.to_string())
    }
}

#[tokio::test]
async fn malformed_timeouts() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let (name, bad) = match wire.framed() {
            true => (
                "grpc-timeout",
                ["abc", "5", "123456789m", "-1m", "+5S", "1.5S"],
            ),
            false => (
                "connect-timeout-ms",
                ["abc", "+5", "12345678901", "-1", "5m", "1.5"],
            ),
        };
        for value in bad {
            let outcome = wire
                .call(daemon.address, wire.run("1"), &[(name, value)])
                .await;
            assert_eq!(
                outcome.code,
                Some(Code::InvalidArgument),
                "{value} {wire:?}"
            );
            assert_eq!(
                outcome.details.not_dispatched,
                Some(Reason::Request),
                "{value}"
            );
            assert_eq!(outcome.mark(), if wire.framed() { "" } else { "request" });
        }
    }
    for two in [
        "Connect-Timeout-Ms: \r\n",
        "Connect-Timeout-Ms: 9\r\nConnect-Timeout-Ms: 9\r\n",
    ] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(head("Run", &format!("{two}Content-Length: 2\r\n")) + "{}")
            .await;
        assert_eq!(raw.answer().await.status, 400, "{two}");
    }
    assert_eq!(daemon.fake.entered(), 0);
    // Another protocol's header is none.
    let outcome = Wire::Json
        .call(
            daemon.address,
            Wire::Json.run("1"),
            &[("grpc-timeout", "x")],
        )
        .await;
    assert_eq!(outcome.http, 200);
}

#[tokio::test]
async fn a_deadline_that_has_passed_never_reaches_the_handler() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let (name, value) = timeout_header(wire, 0);
        let outcome = wire
            .call(daemon.address, wire.run("1"), &[(name, &value)])
            .await;
        assert_eq!(outcome.code, Some(Code::DeadlineExceeded), "{wire:?}");
        assert_eq!(
            outcome.details.not_dispatched,
            Some(Reason::Capacity),
            "{wire:?}"
        );
        assert_eq!(outcome.mark(), if wire.framed() { "" } else { "request" });
        assert_eq!(
            outcome.message,
            "the deadline passed before anything of the call ran"
        );
    }
    // Its body is not even asked for.
    let mut raw = Raw::connect(daemon.address).await;
    let more = "Content-Length: 2\r\nConnect-Timeout-Ms: 0\r\nExpect: 100-continue\r\n";
    raw.send(head("Run", more)).await;
    assert_eq!(raw.answer().await.status, 504);
    // Nor one that passes while the body is awaited.
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", "Content-Length: 100\r\nConnect-Timeout-Ms: 100\r\n") + "{")
        .await;
    let (answer, time) = raw.answer_in_time().await;
    assert_eq!((answer.status, answer.mark()), (504, "request"));
    assert!(answer.text().contains("\"CAY\""), "{}", answer.text());
    assert!(answer.closes());
    assert!(time < Duration::from_secs(5), "{time:?}");
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn the_handler_sees_the_deadline_and_answers_itself() {
    let daemon = Daemon::start().await;
    for wire in Wire::ALL {
        let (name, value) = timeout_header(wire, 100);
        let outcome = wire
            .call(daemon.address, wire.run("wait"), &[(name, &value)])
            .await;
        assert_eq!(outcome.code, Some(Code::DeadlineExceeded), "{wire:?}");
        assert_eq!(outcome.details.not_dispatched, None, "{wire:?}");
        assert_eq!(outcome.mark(), "", "{wire:?}");
        assert_eq!(outcome.http, if wire.framed() { 200 } else { 504 });
    }
    assert_eq!(daemon.fake.ends(), ["deadline"; 6]);

    let before = Instant::now();
    let more = [("connect-timeout-ms", "9999999999")];
    Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &more)
        .await;
    let call = daemon.fake.last.lock().unwrap().take().unwrap().0;
    let time = call.deadline.unwrap() - before;
    assert!(
        (9_999_999..10_000_050).contains(&time.as_secs()),
        "{time:?}"
    );
    assert!(call.received_at >= before && call.received_at <= Instant::now());
    let more = [("grpc-timeout", "99999999H")];
    Wire::Grpc
        .call(daemon.address, Wire::Grpc.run("1"), &more)
        .await;
    assert!(
        daemon
            .fake
            .last
            .lock()
            .unwrap()
            .take()
            .unwrap()
            .0
            .deadline
            .is_some()
    );
}

#[tokio::test]
async fn a_caller_that_leaves_is_told_of_and_its_call_goes_on() {
    let daemon = Daemon::start().await;
    for (count, wire) in [Wire::Json, Wire::Grpc].into_iter().enumerate() {
        let address = daemon.address;
        let caller = tokio::spawn(async move { wire.call(address, wire.run("wait"), &[]).await });
        daemon.fake.until_entered(count + 1).await;
        assert_eq!(daemon.fake.ends(), [""; 0]);
        caller.abort();
        // The client's connection is a task of its own that ends with it.
        daemon.fake.until_ended("told").await;
        assert_eq!(daemon.fake.ends(), ["told"], "{wire:?}");
        daemon.fake.release();
        daemon.fake.until_ended("ended after it was told").await;
        daemon.fake.reset();
    }
}

/// The end of what a caller sends looks the same whether it closed its whole
/// socket or still reads, until something is written to it. So it counts as
/// gone, and is not answered.
#[tokio::test]
async fn a_caller_that_stops_sending_counts_as_gone() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(json("Run", r#"{"javascript":{"code":"wait"}}"#))
        .await;
    daemon.fake.until_entered(1).await;
    let mut io = raw.into_io();
    io.shutdown().await.unwrap();
    daemon.fake.until_ended("told").await;
    let mut seen = Vec::new();
    in_time(io.read_to_end(&mut seen)).await.unwrap();
    assert_eq!(seen, b"");
    daemon.fake.release();
    daemon.fake.until_ended("ended after it was told").await;
}

#[tokio::test]
async fn a_caller_that_leaves_while_its_body_is_awaited_runs_nothing() {
    let mut settings = settings();
    settings.decode_slots = 1;
    let daemon = Daemon::tuned(settings).await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head(
        "Run",
        "Content-Length: 100\r\nExpect: 100-continue\r\n",
    ))
    .await;
    assert_eq!(raw.answer().await.status, 100);
    raw.send("{").await;
    drop(raw);
    // Its slot comes back, so another request is served.
    loop {
        let outcome = Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &[])
            .await;
        if outcome.http == 200 {
            break;
        }
        assert_eq!(outcome.code, Some(Code::ResourceExhausted));
    }
    assert_eq!(daemon.fake.entered(), 1);
}

#[tokio::test]
async fn a_panic_is_an_internal_error_without_a_mark() {
    let daemon = Daemon::start().await;
    daemon.fake.set(Mode::Panic);
    for wire in [Wire::Json, Wire::Proto, Wire::Grpc, Wire::GrpcWeb] {
        for method in METHODS {
            let body = wire.frame(if wire.is_json() { b"{}" } else { b"" });
            let outcome = wire.call_method(daemon.address, method, body, &[]).await;
            assert_eq!(outcome.code, Some(Code::Internal), "{wire:?} {method}");
            assert_eq!(outcome.message, "internal error 0123456789abcdef");
            assert_eq!(outcome.details.not_dispatched, None, "{wire:?} {method}");
            assert_eq!(outcome.mark(), "", "{wire:?} {method}");
            assert_eq!(outcome.header("plimsoll-request-id"), REQUEST_ID);
            assert!(!format!("{outcome:?}").contains(SECRET));
        }
    }
    daemon.fake.set(Mode::Answer);
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &[])
        .await;
    assert_eq!(outcome.http, 200);
}

/// Whatever a handler does first, its answer must not say that nothing ran.
#[tokio::test]
async fn no_method_is_marked_once_its_handler_waits() {
    let mut settings = settings();
    settings.answer = Duration::from_millis(100);
    let daemon = Daemon::tuned(settings).await;
    daemon.fake.set(Mode::Wait);
    for wire in [Wire::Json, Wire::Grpc] {
        for method in METHODS {
            let body = wire.frame(if wire.is_json() { b"{}" } else { b"" });
            let outcome = wire.call_method(daemon.address, method, body, &[]).await;
            assert_eq!(
                outcome.code,
                Some(Code::DeadlineExceeded),
                "{wire:?} {method}"
            );
            assert_eq!(outcome.details.not_dispatched, None, "{wire:?} {method}");
            assert_eq!(outcome.mark(), "", "{wire:?} {method}");
        }
    }
    // Each was told that nobody waits any more, and none was dropped.
    assert_eq!(daemon.fake.entered(), 10);
    daemon.fake.release();
    daemon.fake.until_ended("ended after it was told").await;
}

#[tokio::test]
async fn a_request_that_takes_too_long_to_arrive() {
    let mut settings = settings();
    settings.request = Duration::from_millis(200);
    let daemon = Daemon::tuned(settings).await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", "Content-Length: 100\r\n") + "{").await;
    let (answer, time) = raw.answer_in_time().await;
    assert_eq!((answer.status, answer.mark()), (504, "request"));
    assert!(answer.text().contains("\"CAE\""), "{}", answer.text());
    assert!(answer.closes());
    assert!(time >= Duration::from_millis(150), "{time:?}");
    // A verifier that hangs is bounded too, and says nothing of the request.
    let more = [("authorization", "Bearer hanging")];
    let (outcome, _) = timed(Wire::Json.call(daemon.address, Bytes::from("{}"), &more)).await;
    assert_eq!(outcome.code, Some(Code::DeadlineExceeded));
    assert_eq!(outcome.details.not_dispatched, None);
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let run = |code: &str| {
        json(
            "Run",
            &format!("{{\"javascript\":{{\"code\":\"{code}\"}}}}"),
        )
    };
    raw.send([run("1"), run("refuse"), run("2")].concat()).await;
    let statuses = [raw.answer().await, raw.answer().await, raw.answer().await];
    assert_eq!(statuses.map(|a| a.status), [200, 400, 200]);
}
