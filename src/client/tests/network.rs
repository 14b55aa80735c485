//! Broken networks: what is said of a call depends on whether a byte left.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::{sync::Arc, time::Duration};

use exchanges::all;
use fake::{Fake, Reply, read_request};
use plimsoll_client::{
    BaseUrl, CallFailure, CallOptions, CancelToken, Class, Client, Options, Ran, Stage,
};
use plimsoll_wire::{
    Code, Reason, json,
    proto::{ProjectFile, ProjectRun, RunRequest, run_request::Payload},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
};

fn request() -> RunRequest {
    json::read(all()["03"].request.body.as_bytes()).unwrap()
}

/// A request whose body does not fit into socket buffers.
fn big_request() -> RunRequest {
    let files = (0..4)
        .map(|i| ProjectFile {
            path: format!("f{i}"),
            content: "x".repeat(1 << 20),
        })
        .collect();
    RunRequest {
        protocol: 3,
        payload: Some(Payload::Project(Box::new(ProjectRun {
            files,
            steps: vec!["true".into()],
            ..Default::default()
        }))),
        ..Default::default()
    }
}

fn nothing_left(failure: &CallFailure) {
    assert_eq!(
        failure.ran,
        Ran::No {
            reason: Reason::Environment
        },
        "{failure:?}"
    );
    assert_eq!(failure.stage, Stage::Unreachable);
}

fn may_have_run(failure: &CallFailure, code: Code) {
    assert_eq!(
        (failure.ran, failure.code),
        (Ran::Maybe, code),
        "{failure:?}"
    );
    assert_eq!(failure.stage, Stage::NoAnswer);
}

fn within(milliseconds: u64) -> CallOptions {
    CallOptions {
        timeout: Some(Duration::from_millis(milliseconds)),
        cancel: None,
    }
}

#[tokio::test]
async fn no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let url = format!("http://127.0.0.1:{port}");
    let client = Client::new(Options::new(BaseUrl::parse(&url).unwrap())).unwrap();
    let failure = client.run(&request()).await.unwrap_err();
    nothing_left(&failure);
    assert_eq!(
        (failure.code, failure.class),
        (Code::Unavailable, Class::Unreachable)
    );
    // RFC 2606: this name never exists.
    let url = BaseUrl::parse_insecure("http://plimsoll.invalid").unwrap();
    let client = Client::new(Options::new(url)).unwrap();
    nothing_left(
        &client
            .run_with(&request(), &within(5_000))
            .await
            .unwrap_err(),
    );
}

#[tokio::test]
async fn cut_after_sending() {
    let whole = all()["03"].reply();
    for at in [0, 1, 12, 40, 120, 200] {
        let reply = whole.clone().cut(at);
        let fake = Fake::start(move |_| reply.clone()).await;
        let failure = fake.client().run(&request()).await.unwrap_err();
        may_have_run(&failure, Code::Unavailable);
        assert_eq!(fake.connections(), 1, "never sent twice");
    }
    // Closed before a byte was read, with the body still under way.
    let deaf = Fake::raw(|stream| async move { drop(stream) }).await;
    let failure = deaf.client().run(&big_request()).await.unwrap_err();
    may_have_run(&failure, Code::Unavailable);
    assert_eq!(deaf.connections(), 1);
    // A chunked answer without its last chunk.
    let fake = Fake::raw(|mut stream| async move {
        let seen = read_request(&mut stream).await.unwrap();
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/proto\r\nplimsoll-request-id: {}\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
            seen.request_id()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
    })
    .await;
    let failure = fake.client().run(&request()).await.unwrap_err();
    may_have_run(&failure, Code::Unavailable);
}

#[tokio::test]
async fn one_budget_for_all() {
    let silent = Fake::start(|_| Reply::hang()).await;
    let failure = silent
        .client()
        .run_with(&request(), &within(150))
        .await
        .unwrap_err();
    may_have_run(&failure, Code::DeadlineExceeded);
    // A byte now and then does not extend it.
    let trickle = Fake::raw(|mut stream| async move {
        let seen = read_request(&mut stream).await.unwrap();
        let head = format!(
            "HTTP/1.1 200 X\r\ncontent-type: application/proto\r\nplimsoll-request-id: {}\r\ncontent-length: 100000\r\n\r\n",
            seen.request_id()
        );
        let _ = stream.write_all(head.as_bytes()).await;
        let mut tick = tokio::time::interval(Duration::from_millis(10));
        while stream.write_all(b"x").await.is_ok() {
            tick.tick().await;
        }
    })
    .await;
    let start = std::time::Instant::now();
    let failure = trickle
        .client()
        .run_with(&request(), &within(200))
        .await
        .unwrap_err();
    may_have_run(&failure, Code::DeadlineExceeded);
    assert!(start.elapsed() < Duration::from_secs(2));
}

#[tokio::test]
async fn interim_answers_are_few_or_the_connection_ends() {
    const INTERIM: &[u8] = b"HTTP/1.1 102 X\r\n\r\n";
    // A few are read past.
    let whole = all()["03"].reply();
    let few = Fake::raw(move |mut stream| {
        let whole = whole.clone();
        async move {
            let seen = read_request(&mut stream).await.unwrap();
            stream.write_all(&INTERIM.repeat(16)).await.unwrap();
            let id = seen.request_id();
            stream.write_all(&whole.to_bytes(id)).await.unwrap();
        }
    })
    .await;
    few.client().run(&request()).await.unwrap();
    // Without an end they are not: neither the answer's size nor, while there
    // is always something to read, the budget would end the call.
    let flood = Fake::raw(|mut stream| async move {
        read_request(&mut stream).await.unwrap();
        let many = INTERIM.repeat(10_000);
        while stream.write_all(&many).await.is_ok() {}
    })
    .await;
    let failure = flood.client().run(&request()).await.unwrap_err();
    may_have_run(&failure, Code::Unavailable);
    assert!(failure.message.contains("interim"), "{failure}");
    // One by one, too, and with the 16 that are allowed before.
    let slow = Fake::raw(|mut stream| async move {
        read_request(&mut stream).await.unwrap();
        let _ = stream.set_nodelay(true);
        while stream.write_all(INTERIM).await.is_ok() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let failure = slow.client().run(&request()).await.unwrap_err();
    may_have_run(&failure, Code::Unavailable);
}

#[tokio::test]
async fn an_answer_before_the_body_was_written() {
    for close_hard in [false, true] {
        let fake = Fake::raw(move |mut stream| async move {
            let mut bytes = vec![0; 400];
            stream.read_exact(&mut bytes).await.unwrap();
            let text = String::from_utf8_lossy(&bytes).into_owned();
            let id = &text.split("plimsoll-request-id: ").nth(1).unwrap()[..32];
            let body = r#"{"code":"unauthenticated","message":"no","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAI"}]}"#;
            let head = format!(
                "HTTP/1.1 401 X\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {}\r\nplimsoll-request-id: {id}\r\n\r\n{body}",
                body.len()
            );
            stream.write_all(head.as_bytes()).await.unwrap();
            if !close_hard {
                std::future::pending::<()>().await;
            }
            // Closing with unread bytes resets the connection.
        })
        .await;
        let failure = fake
            .client()
            .run_with(&big_request(), &within(5_000))
            .await
            .unwrap_err();
        assert_eq!(failure.code, Code::Unauthenticated);
        assert_eq!(
            failure.ran,
            Ran::No {
                reason: Reason::Permission
            },
            "{close_hard}"
        );
    }
}

#[tokio::test]
async fn cancellation() {
    let arrived = Arc::new(Notify::new());
    let fake = Fake::start({
        let arrived = Arc::clone(&arrived);
        move |_| {
            arrived.notify_one();
            Reply::hang()
        }
    })
    .await;
    let client = fake.client();
    let cancel = CancelToken::new();
    let options = CallOptions {
        timeout: None,
        cancel: Some(cancel.clone()),
    };
    let call = tokio::spawn({
        let (client, options) = (client.clone(), options.clone());
        async move { client.run_with(&request(), &options).await }
    });
    arrived.notified().await;
    cancel.cancel();
    let failure = call.await.unwrap().unwrap_err();
    may_have_run(&failure, Code::Canceled);
    // Cancelled already: nothing is contacted.
    let failure = client.run_with(&request(), &options).await.unwrap_err();
    assert_eq!(failure.code, Code::Canceled);
    assert_eq!(failure.not_dispatched(), Some(Reason::Request));
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn a_body_the_daemon_would_not_read_is_not_sent() {
    let rows = (0..100_000)
        .map(|_| plimsoll_wire::proto::ModuleRow {
            values: vec![1.5; 12],
        })
        .collect();
    let request = RunRequest {
        protocol: 3,
        payload: Some(Payload::Module(Box::new(plimsoll_wire::proto::ModuleRun {
            model: "m".into(),
            rows,
            end_time: 1.0,
            step: 1.0,
        }))),
        ..Default::default()
    };
    let fake = Fake::start(|_| Reply::hang()).await;
    let failure = fake.client().run(&request).await.unwrap_err();
    assert_eq!(failure.code, Code::ResourceExhausted);
    assert_eq!(failure.not_dispatched(), Some(Reason::Request));
    assert_eq!(fake.connections(), 0);
}
