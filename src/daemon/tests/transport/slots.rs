//! Decode slots: bodies that come slowly must not shut others out.

use std::sync::Arc;

use plimsoll_wire::{Code, Reason};

use crate::support::{
    Daemon,
    client::Wire,
    raw::{Raw, head, json},
    settings,
};

#[tokio::test]
async fn decode_slots() {
    // Concurrency 1: two slots, one for each caller.
    let mut settings = settings();
    settings.decode_slots = 2;
    let daemon = Daemon::tuned(settings).await;
    let mut slow = Raw::connect(daemon.address).await;
    slow.send(head(
        "Run",
        "Content-Length: 100\r\nExpect: 100-continue\r\n",
    ))
    .await;
    // The server asks for the body only after it has given the slot.
    assert_eq!(slow.answer().await.status, 100);

    for wire in Wire::ALL {
        let outcome = wire.call(daemon.address, wire.run("1"), &[]).await;
        assert_eq!(outcome.code, Some(Code::ResourceExhausted), "{wire:?}");
        assert_eq!(
            outcome.details.not_dispatched,
            Some(Reason::Capacity),
            "{wire:?}"
        );
        assert_eq!(outcome.message, "too many requests are being read");
        assert_eq!(outcome.mark(), if wire.framed() { "" } else { "request" });
        let more = [("authorization", "Bearer bob")];
        let outcome = wire.call(daemon.address, wire.run("1"), &more).await;
        assert_eq!(outcome.code, None, "{wire:?}");
    }
    // The slot comes back with the connection.
    drop(slow);
    let fake = Arc::clone(&daemon.fake);
    let before = fake.entered();
    let mut tries = 0;
    while fake.entered() == before {
        Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &[])
            .await;
        tries += 1;
        assert!(tries < 1000);
    }
    // A running call holds no slot.
    let address = daemon.address;
    let before = fake.entered();
    let running =
        tokio::spawn(async move { Wire::Json.call(address, Wire::Json.run("wait"), &[]).await });
    fake.until_entered(before + 1).await;
    for _ in 0..3 {
        let outcome = Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &[])
            .await;
        assert_eq!(outcome.http, 200);
    }
    fake.release();
    assert_eq!(running.await.unwrap().http, 200);
}

#[tokio::test]
async fn a_slot_comes_back_after_every_refusal() {
    let mut settings = settings();
    settings.decode_slots = 1;
    let daemon = Daemon::tuned(settings).await;
    for body in ["{", "{\"protocol\":true}", "[]"] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(json("Run", body)).await;
        assert_eq!(raw.answer().await.status, 400);
        raw.send(json("Run", "{}")).await;
        assert_eq!(raw.answer().await.status, 200, "after {body}");
    }
    let more = [("content-type", "text/plain")];
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &more)
        .await;
    assert_eq!(outcome.http, 415);
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("panic"), &[])
        .await;
    assert_eq!(outcome.http, 500);
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &[])
        .await;
    assert_eq!(outcome.http, 200);
}
