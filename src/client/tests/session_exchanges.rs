//! The session of the example exchanges, from open to close.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::time::Duration;

use exchanges::all;
use fake::{Fake, Reply};
use plimsoll_client::{CallOptions, Class, Client, OpenSession, Ran, Session, Stage, Token};
use plimsoll_record::request_digest;
use plimsoll_wire::{
    Code, Reason, Tier, json,
    proto::{CellRun, OpenSessionRequest, RunRequest, SessionRunRequest, run_request::Payload},
};

const TOKEN: &str = "example-token-0123456789abcdef0123456789";

fn options() -> CallOptions {
    CallOptions::default()
}

fn snippet() -> RunRequest {
    json::read(br#"{"protocol":3,"javascript":{"code":"1"}}"#).unwrap()
}

fn client(fake: &Fake) -> Client {
    let mut options = fake.options();
    options.token = Some(Token::new(TOKEN).unwrap());
    Client::new(options).unwrap()
}

fn open() -> OpenSession {
    OpenSession {
        floor: Some(Tier::Kernel),
        lifetime: Some(Duration::from_secs(600)),
        languages: vec!["python".into()],
        owner: Some("user-42".into()),
        ..Default::default()
    }
}

/// A fake that opens the examples' session and then gives `replies` in order.
async fn session_with(replies: Vec<Reply>) -> (Fake, Session) {
    let opening = all()["32"].reply();
    let fake = Fake::start(move |seen| match seen.number {
        0 => opening.clone(),
        n => replies[n - 1].clone(),
    })
    .await;
    let session = client(&fake)
        .open_session(&open(), &options())
        .await
        .unwrap();
    (fake, session)
}

#[tokio::test]
async fn the_session_of_the_examples() {
    let all = all();
    let numbers = ["36", "37", "38", "39", "40", "44"];
    let (fake, session) = session_with(numbers.map(|n| all[n].reply()).to_vec()).await;
    let call = async |number: &str| {
        let wire: SessionRunRequest = json::read(all[number].request.body.as_bytes()).unwrap();
        let mut call = RunRequest::from(wire);
        // The session's floor comes from the open.
        call.minimum_isolation = String::new();
        session.call(&call, &options()).await
    };
    let first = call("36").await.unwrap();
    assert_eq!(first.record().sequence, 1);
    assert_eq!(first.request.minimum_isolation, "kernel");
    assert_eq!(call("37").await.unwrap().record().sequence, 2);
    let lost = call("38").await.unwrap_err();
    assert_eq!((lost.code, lost.ran), (Code::Internal, Ran::Maybe));
    let (request, record) = *lost.unanswered.unwrap();
    assert_eq!(
        (record.sequence, record.unanswered.as_str()),
        (3, "internal")
    );
    assert!(request_digest(&request).is(&record.request_sha256));
    assert!(!session.is_stopped() && session.ended().is_none());
    assert_eq!(call("39").await.unwrap().record().sequence, 4);
    assert_eq!(session.ended().unwrap().reason, "expired");
    let ended = call("40").await.unwrap_err();
    assert_eq!(ended.class, Class::SessionEnded);
    assert_eq!(ended.not_dispatched(), Some(Reason::Request));
    assert_eq!(ended.ended.as_ref().unwrap().reason, "expired");
    let closed = session.close(&options()).await.unwrap();
    assert_eq!((closed.calls, closed.ended), (4, "expired"));
    assert_eq!(session.close(&options()).await.unwrap(), closed);
    // What was sent is what the examples show.
    let seen = fake.seen();
    assert_eq!(seen.len(), 7, "the second close sent nothing");
    let sent: OpenSessionRequest = seen[0].message();
    assert_eq!(sent, json::read(all["32"].request.body.as_bytes()).unwrap());
    for (number, seen) in numbers.iter().zip(&seen[1..6]) {
        let sent: SessionRunRequest = seen.message();
        assert_eq!(
            sent,
            json::read(all[*number].request.body.as_bytes()).unwrap()
        );
    }
}

#[tokio::test]
async fn refused_session_calls_leave_the_session_as_it_was() {
    let all = all();
    for (number, code, class, reason, end) in [
        (
            "41",
            Code::NotFound,
            Class::SessionEnded,
            Reason::Request,
            Some("not_found"),
        ),
        (
            "42",
            Code::ResourceExhausted,
            Class::AtCapacity,
            Reason::Capacity,
            None,
        ),
        (
            "43",
            Code::InvalidArgument,
            Class::InvalidRequest,
            Reason::Request,
            None,
        ),
    ] {
        let (_fake, session) = session_with(vec![all[number].reply(), all["36"].reply()]).await;
        let failure = session.call(&snippet(), &options()).await.unwrap_err();
        assert_eq!((failure.code, failure.class), (code, class), "{number}");
        assert_eq!(failure.not_dispatched(), Some(reason), "{number}");
        assert_eq!(session.ended().map(|e| e.reason), end, "{number}");
        assert!(!session.is_stopped(), "{number}");
        let wire: SessionRunRequest = json::read(all["36"].request.body.as_bytes()).unwrap();
        session.call(&wire.into(), &options()).await.unwrap();
    }
    let (fake, session) = session_with(vec![all["45"].reply()]).await;
    for _ in 0..2 {
        let failure = session.close(&options()).await.unwrap_err();
        assert_eq!(
            (failure.code, failure.class),
            (Code::NotFound, Class::SessionEnded)
        );
    }
    assert_eq!(
        fake.seen().len(),
        2,
        "a session the daemon forgot is not asked for twice"
    );
    let cell = RunRequest {
        payload: Some(Payload::Cell(Box::new(CellRun {
            language: "python".into(),
            code: "1".into(),
            ..Default::default()
        }))),
        ..snippet()
    };
    let failure = session.call(&cell, &options()).await.unwrap_err();
    assert_eq!(failure.stage, Stage::Local);
}
