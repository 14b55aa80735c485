//! Timers of a connection, shortened.

use std::time::Duration;

use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_daemon::transport::Settings;
use tokio::net::TcpStream;

use crate::support::{
    Daemon,
    client::Wire,
    in_time,
    raw::{Raw, head, json},
    settings, timed,
};

const PREFACE: &str = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

fn short() -> Settings {
    let mut settings = settings();
    settings.head = Duration::from_millis(300);
    settings.idle = Duration::from_millis(1500);
    settings
}

fn about(time: Duration, ms: u64) {
    let range = Duration::from_millis(ms * 7 / 10)..Duration::from_millis(ms * 3 + 1000);
    assert!(range.contains(&time), "{time:?} is not about {ms} ms");
}

#[tokio::test]
async fn a_connection_that_does_not_get_to_a_request_is_cut() {
    let daemon = Daemon::tuned(short()).await;
    for first in [
        "",
        "P",
        "PRI * HT",
        "POST /plimsoll",
        "GET / HTTP/1.1\r\nHost: a\r\n",
    ] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(first).await;
        about(raw.closed().await, 300);
    }
}

#[tokio::test]
async fn an_idle_connection_stays_and_then_ends_in_good_order() {
    let daemon = Daemon::tuned(short()).await;
    let mut raw = Raw::connect(daemon.address).await;
    for _ in 0..2 {
        raw.send(json("Run", "{}")).await;
        assert_eq!(raw.answer().await.status, 200);
        // Longer than a head may take, shorter than the idle time.
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    raw.send(json("Run", "{}")).await;
    assert_eq!(raw.answer().await.status, 200);
    about(raw.closed().await, 1500);
    // A head that begins and stops on a kept connection has its own limit.
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(json("Run", "{}")).await;
    assert_eq!(raw.answer().await.status, 200);
    raw.send("POST /plimsoll").await;
    about(raw.closed().await, 300);
}

/// Also when it came with the request before it, or as a frame that is cut
/// short; idle connections of this daemon never end.
#[tokio::test]
async fn a_head_that_does_not_end_is_cut_wherever_it_begins() {
    let mut settings = settings();
    settings.head = Duration::from_secs(2);
    settings.idle = Duration::from_secs(3600);
    let daemon = Daemon::tuned(settings).await;
    let mut behind = Raw::connect(daemon.address).await;
    behind
        .send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /heal")
        .await;
    assert_eq!(behind.answer().await.status, 200);
    let opening = [PREFACE.as_bytes(), b"\0\0\0\x04\0\0\0\0\0"].concat();
    let unfinished = b"\0\0\x01\x01\0\0\0\0\x01\x83";
    let mut cut_short = Vec::new();
    for frame in [&unfinished[..], &unfinished[..9], &unfinished[..5]] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send([&opening, frame].concat()).await;
        cut_short.push(raw.into_io());
    }
    behind.closed().await;
    for mut io in cut_short {
        let mut seen = Vec::new();
        let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut seen)).await;
    }
}

#[tokio::test]
async fn an_idle_http2_connection_ends() {
    let daemon = Daemon::tuned(short()).await;
    // One that never opens a stream, and one that did.
    let io = TokioIo::new(TcpStream::connect(daemon.address).await.unwrap());
    let (_send, connection) = hyper::client::conn::http2::handshake::<
        _,
        _,
        http_body_util::Full<bytes::Bytes>,
    >(TokioExecutor::new(), io)
    .await
    .unwrap();
    // The library may still write when the server is gone; the time counts.
    about(timed(connection).await.1, 1500);

    let io = TokioIo::new(TcpStream::connect(daemon.address).await.unwrap());
    let (mut send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    let connection = tokio::spawn(connection);
    let request = Wire::Grpc.request("Run", Wire::Grpc.run("1"), &[]);
    in_time(send.send_request(request)).await.unwrap();
    about(timed(connection).await.1, 1500);

    // Pings do not keep it, nor does silence after the preface.
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(PREFACE.to_owned() + "\0\0\0\x04\0\0\0\0\0").await;
    let io = raw.into_io();
    let (mut read, mut write) = io.into_split();
    let pings = tokio::spawn(async move {
        use tokio::io::AsyncWriteExt;
        let ping = b"\0\0\x08\x06\0\0\0\0\0abcdefgh";
        while write.write_all(ping).await.is_ok() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    });
    let mut seen = Vec::new();
    let (_, time) = timed(tokio::io::AsyncReadExt::read_to_end(&mut read, &mut seen)).await;
    about(time, 1800);
    in_time(pings).await.unwrap();
    // It was told to go, not just cut.
    let mut kinds = Vec::new();
    let mut rest = &seen[..];
    while rest.len() >= 9 {
        let length = u32::from_be_bytes([0, rest[0], rest[1], rest[2]]) as usize;
        kinds.push(rest[3]);
        rest = rest.get(9 + length..).unwrap_or_default();
    }
    let goaway = 7;
    assert!(kinds.contains(&goaway), "{kinds:?}");
}

#[tokio::test]
async fn a_running_call_is_not_idle() {
    let mut settings = short();
    settings.idle = Duration::from_millis(200);
    settings.head = Duration::from_millis(100);
    let daemon = Daemon::tuned(settings).await;
    for wire in [Wire::Json, Wire::Grpc] {
        let fake = daemon.fake.clone();
        let before = fake.entered();
        let address = daemon.address;
        let call = tokio::spawn(async move { wire.call(address, wire.run("wait"), &[]).await });
        fake.until_entered(before + 1).await;
        tokio::time::sleep(Duration::from_millis(700)).await;
        fake.release();
        assert_eq!(call.await.unwrap().code, None, "{wire:?}");
        fake.reset();
    }
}

#[tokio::test]
async fn a_caller_that_does_not_read_its_answer_is_cut() {
    let mut settings = settings();
    settings.exchange = Duration::from_millis(1500);
    settings.answer = Duration::from_millis(1400);
    settings.connection_cap = Some(1);
    let daemon = Daemon::tuned(settings).await;
    let body = Wire::Proto.run("bytes 30000000");
    let more = format!("Content-Length: {}\r\n", body.len());
    let head = head("Run", &more).replace("application/json", "application/proto");
    let mut raw = Raw::connect(daemon.address).await;
    raw.send([head.as_bytes(), &body].concat()).await;
    // The one place is free again only when that connection is gone.
    let (outcome, time) = timed(Wire::Json.call(daemon.address, Wire::Json.run("1"), &[])).await;
    assert_eq!(outcome.http, 200);
    about(time, 1500);
    // Much of the answer never left, so reading ends short of it.
    let mut io = raw.into_io();
    let mut got = Vec::new();
    let _ = in_time(tokio::io::AsyncReadExt::read_to_end(&mut io, &mut got)).await;
    assert!(got.starts_with(b"HTTP/1.1 200"));
    assert!(got.len() < 30_000_000, "{}", got.len());
}

/// The answer of the HTTP library to what is no request: a status and nothing
/// else. Nothing was parsed that an answer could be bound to, so it has neither
/// the request's ID nor a mark, and a client reads it as of unknown outcome.
async fn bare(raw: &mut Raw, status: u16) {
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.text()), (status, ""));
    assert!(answer.closes());
    for name in [
        "plimsoll-request-id",
        "plimsoll-not-dispatched",
        "content-type",
    ] {
        assert_eq!(answer.header(name), "", "{status}");
    }
    raw.closed().await;
}

#[tokio::test]
async fn heads_are_bounded() {
    let daemon = Daemon::start().await;
    for more in [
        format!("X: {}\r\n", "x".repeat(40_000)),
        "X: y\r\n".repeat(150),
    ] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(head("Run", &more)).await;
        bare(&mut raw, 431).await;
    }
    let mut raw = Raw::connect(daemon.address).await;
    let more = format!("X: {}\r\nContent-Length: 2\r\n", "x".repeat(30_000));
    raw.send(head("Run", &more) + "{}").await;
    assert_eq!(raw.answer().await.status, 200);
    let long = "x".repeat(40_000);
    let request = Wire::Grpc.request("Run", Wire::Grpc.run("1"), &[("x", &long)]);
    let io = TokioIo::new(TcpStream::connect(daemon.address).await.unwrap());
    let (mut send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    tokio::spawn(connection);
    let refused = match in_time(send.send_request(request)).await {
        Ok(answer) => answer.status() == 431,
        Err(_) => true,
    };
    assert!(refused);
}

#[tokio::test]
async fn connections_over_the_cap_wait() {
    let mut settings = settings();
    settings.connection_cap = Some(2);
    let daemon = Daemon::tuned(settings).await;
    let wait = json("Run", r#"{"javascript":{"code":"wait"}}"#);
    let mut first = Raw::connect(daemon.address).await;
    let mut second = Raw::connect(daemon.address).await;
    first.send(&wait).await;
    second.send(&wait).await;
    daemon.fake.until_entered(2).await;
    let mut third = Raw::connect(daemon.address).await;
    third.send(json("Run", "{}")).await;
    let waiting = tokio::time::timeout(Duration::from_millis(300), third.answer()).await;
    assert!(waiting.is_err(), "the third was served");
    assert_eq!(daemon.fake.entered(), 2);
    drop(second);
    assert_eq!(third.answer().await.status, 200);
    daemon.fake.release();
    assert_eq!(first.answer().await.status, 200);
}

/// Connections that nobody uses do not keep a caller out, however long they may
/// stay when there is room; a call in flight keeps its own.
#[tokio::test]
async fn idle_connections_give_way_to_one_that_waits() {
    let mut settings = settings();
    settings.connection_cap = Some(4);
    settings.idle = Duration::from_secs(3600);
    let daemon = Daemon::tuned(settings).await;
    let mut busy = Raw::connect(daemon.address).await;
    busy.send(json("Run", r#"{"javascript":{"code":"wait"}}"#))
        .await;
    daemon.fake.until_entered(1).await;
    let mut idle = Vec::new();
    for _ in 0..3 {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n").await;
        assert_eq!(raw.answer().await.status, 200);
        idle.push(raw);
    }
    let mut honest = Raw::connect(daemon.address).await;
    honest.send(json("Run", "{}")).await;
    assert_eq!(honest.answer().await.status, 200);
    daemon.fake.release();
    assert_eq!(busy.answer().await.status, 200);
}

#[tokio::test]
async fn not_http_at_all() {
    let daemon = Daemon::start().await;
    for bytes in [
        &b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03"[..],
        b"\0\0\0\0\r\n\r\n",
        b"hello\r\n\r\n",
        b"GET /healthz HTTP/3.0\r\n\r\n",
        b"GET /healthz HTTP/1.1\r\nPlimsoll-Request-Id: 00112233445566778899aabbccddeeff\r\n: x\r\n\r\n",
    ] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(bytes).await;
        bare(&mut raw, 400).await;
    }
}
