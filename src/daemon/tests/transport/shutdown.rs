//! The end of a listener: nothing new, everything begun is answered.

use std::time::Duration;

use plimsoll_daemon::transport::Drained;
use tokio::net::TcpStream;

use crate::support::{
    Daemon,
    client::Wire,
    raw::{Raw, head, json},
    settings, timed,
};

#[tokio::test]
async fn a_call_in_flight_is_answered_and_nothing_new_is_accepted() {
    for wire in [Wire::Json, Wire::Grpc] {
        let mut daemon = Daemon::start().await;
        let (address, fake) = (daemon.address, daemon.fake.clone());
        let call = tokio::spawn(async move { wire.call(address, wire.run("wait"), &[]).await });
        fake.until_entered(1).await;
        let mut kept = Raw::connect(address).await;
        kept.send(json("Describe", "{}")).await;
        assert_eq!(kept.answer().await.status, 200);
        daemon.stop();
        // The idle connection ends at once, the listener is closed.
        kept.closed().await;
        assert!(TcpStream::connect(address).await.is_err());
        fake.release();
        let outcome = call.await.unwrap();
        assert_eq!(outcome.code, None, "{wire:?}");
        let ended = daemon.ended().await;
        assert!(ended.failure.is_none());
        assert_eq!(ended.drained, Drained::default(), "{wire:?}");
        assert_eq!(fake.ends(), ["released"]);
    }
}

#[tokio::test]
async fn a_drain_is_bounded() {
    let mut settings = settings();
    settings.drain = Duration::from_millis(200);
    let mut daemon = Daemon::tuned(settings).await;
    let (address, fake) = (daemon.address, daemon.fake.clone());
    let mut raw = Raw::connect(address).await;
    raw.send(json("Run", r#"{"javascript":{"code":"stubborn"}}"#))
        .await;
    fake.until_entered(1).await;
    daemon.stop();
    let (ended, time) = timed(daemon.ended()).await;
    assert_eq!(
        ended.drained,
        Drained {
            connections_cut: 1,
            calls_left: 1
        }
    );
    assert!(time >= Duration::from_millis(150), "{time:?}");
    raw.closed().await;
    // The call itself was not dropped.
    fake.release();
    fake.until_ended("released").await;
}

#[tokio::test]
async fn a_call_without_its_caller_is_waited_for() {
    let mut daemon = Daemon::start().await;
    let fake = daemon.fake.clone();
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(json("Run", r#"{"javascript":{"code":"wait"}}"#))
        .await;
    fake.until_entered(1).await;
    drop(raw);
    fake.until_ended("told").await;
    daemon.stop();
    let mut ended = tokio::spawn(daemon.ended());
    let early = tokio::time::timeout(Duration::from_millis(300), &mut ended).await;
    assert!(early.is_err(), "the call was not waited for");
    fake.release();
    assert_eq!(ended.await.unwrap().drained, Drained::default());
    assert_eq!(fake.ends(), ["told", "ended after it was told"]);
}

#[tokio::test]
async fn silent_connections_do_not_hold_a_shutdown() {
    let mut settings = settings();
    settings.head = Duration::from_millis(200);
    let mut daemon = Daemon::tuned(settings).await;
    let mut silent = Raw::connect(daemon.address).await;
    let mut http2 = Raw::connect(daemon.address).await;
    http2
        .send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await;
    let mut used = Raw::connect(daemon.address).await;
    used.send(json("Run", "{}")).await;
    assert_eq!(used.answer().await.status, 200);
    used.send("POST / HT").await;
    daemon.stop();
    assert_eq!(daemon.ended().await.drained, Drained::default());
    silent.closed().await;
}

#[tokio::test]
async fn a_request_that_is_half_there_is_still_answered() {
    let mut daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let more = "Content-Length: 2\r\nExpect: 100-continue\r\n";
    raw.send(head("Run", more)).await;
    assert_eq!(raw.answer().await.status, 100);
    raw.send("{").await;
    daemon.stop();
    // The listener is closed before the rest of the body comes.
    while TcpStream::connect(daemon.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    raw.send("}").await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 200);
    raw.closed().await;
    assert_eq!(daemon.ended().await.drained, Drained::default());
}
