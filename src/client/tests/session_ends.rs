//! How sessions begin and end: refused opens, closes, calls and opens given up.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/session.rs"]
mod daemon;
mod fake;

use std::{sync::Arc, time::Duration};

use daemon::{Daemon, ID, Log, none, open, opened, snippet};
use fake::{Fake, Reply};
use plimsoll_client::{CallOptions, CancelToken, Class, Client, OpenSession, Ran};
use plimsoll_wire::{
    Code, Reason, Rule, Tier, ids,
    proto::{CloseSessionResponse, OpenSessionResponse, SoftwareRule},
};
use tokio::sync::Notify;

#[tokio::test]
async fn odd_opens_are_closed_again() {
    type Alter = fn(&mut OpenSessionResponse);
    let cases: [(Alter, Class); 3] = [
        (
            |o| o.session = ids::session_fingerprint("another"),
            Class::ChainBroken,
        ),
        (|o| o.isolation = "process".into(), Class::IsolationEvidence),
        (
            |o| o.software_identity = "image:9".into(),
            Class::RecordRefused,
        ),
    ];
    for (alter, class) in cases {
        let mut answer = opened();
        alter(&mut answer);
        let fake = Fake::start(move |seen| match seen.procedure() {
            "OpenSession" => Reply::proto(&answer),
            _ => Reply::error(500, ""),
        })
        .await;
        let recorder = Arc::new(Log::default());
        let mut options = fake.options();
        options.recorder = Some(recorder.clone());
        let rule = SoftwareRule {
            mode: "exact".into(),
            identities: vec!["image:1".into()],
        };
        let open = OpenSession {
            floor: Some(Tier::Kernel),
            rule: Rule::parse(Some(&rule)).unwrap(),
            ..Default::default()
        };
        let client = Client::new(options).unwrap();
        let failure = client.open_session(&open, &none()).await.unwrap_err();
        assert_eq!(
            (failure.code, failure.class, failure.ran),
            (Code::DataLoss, class, Ran::Maybe)
        );
        let seen = fake.seen();
        assert_eq!(seen.len(), 2);
        assert_eq!(seen[1].procedure(), "CloseSession");
        assert!(
            recorder.0.lock().unwrap().is_empty(),
            "such a close is not signed"
        );
        assert!(!format!("{failure:?}").contains(ID));
    }
}

#[tokio::test]
async fn closes_that_do_not_check_are_not_recorded() {
    type Alter = fn(&mut CloseSessionResponse);
    let cases: [Alter; 3] = [
        |c| c.session = ids::session_fingerprint("x"),
        |c| c.calls += 1,
        |c| c.last_record_sha256.clear(),
    ];
    for alter in cases {
        let daemon = Daemon::new();
        let fake = Fake::start(move |seen| {
            let reply = daemon.reply(seen);
            if seen.procedure() != "CloseSession" {
                return reply;
            }
            let mut close: CloseSessionResponse =
                plimsoll_wire::proto::decode(&reply.body).unwrap();
            alter(&mut close);
            Reply::proto(&close)
        })
        .await;
        let log = Arc::new(Log::default());
        let mut options = fake.options();
        options.recorder = Some(log.clone());
        let session = open(&Client::new(options).unwrap()).await;
        session.call(&snippet("1"), &none()).await.unwrap();
        let first = session.close(&none()).await.unwrap_err();
        assert_eq!(
            (first.code, first.class),
            (Code::DataLoss, Class::ChainBroken)
        );
        assert!(first.closed.is_some(), "what the daemon stated is attached");
        let second = session.close(&none()).await.unwrap_err();
        assert_eq!(second.closed, first.closed);
        assert_eq!(fake.seen().len(), 3);
        assert_eq!(*log.0.lock().unwrap(), ["call 1"]);
    }
}

#[tokio::test]
async fn a_close_without_an_answer_can_be_tried_again() {
    let daemon = Daemon::new();
    let fake = Fake::start(move |seen| match (seen.procedure(), seen.number) {
        ("CloseSession", 1) => Reply::error(504, r#"{"code":"deadline_exceeded"}"#),
        _ => daemon.reply(seen),
    })
    .await;
    let session = open(&fake.client()).await;
    let failure = session.close(&none()).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.ran),
        (Code::DeadlineExceeded, Ran::Maybe)
    );
    assert_eq!(session.close(&none()).await.unwrap().calls, 0);
}

#[tokio::test]
async fn calls_take_turns_and_dropping_one_stops() {
    let arrived = Arc::new(Notify::new());
    let daemon = Daemon::new();
    let fake = Fake::start({
        let arrived = Arc::clone(&arrived);
        move |seen| {
            if seen.procedure() == "SessionRun" {
                arrived.notify_one();
                return Reply::hang();
            }
            daemon.reply(seen)
        }
    })
    .await;
    let session = Arc::new(open(&fake.client()).await);
    let running = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.call(&snippet("1"), &none()).await }
    });
    arrived.notified().await;
    assert!(!session.is_stopped(), "readable while a call is in flight");
    // A second call waits for its turn; given up there, nothing of it was sent.
    let cancel = CancelToken::new();
    let options = CallOptions {
        timeout: None,
        cancel: Some(cancel.clone()),
    };
    let second = snippet("2");
    let (failure, ()) = tokio::join!(session.call(&second, &options), async {
        cancel.cancel();
    });
    assert_eq!(failure.unwrap_err().not_dispatched(), Some(Reason::Request));
    let short = CallOptions {
        timeout: Some(Duration::from_millis(30)),
        cancel: None,
    };
    let failure = session.call(&snippet("2"), &short).await.unwrap_err();
    assert_eq!(failure.not_dispatched(), Some(Reason::Environment));
    running.abort();
    assert!(running.await.unwrap_err().is_cancelled());
    assert!(session.is_stopped());
}

#[tokio::test]
async fn an_open_nobody_waits_for_is_closed() {
    for how in ["cancel", "drop"] {
        let (arrived, go, closed) = <(Arc<Notify>, Arc<Notify>, Arc<Notify>)>::default();
        let fake = Fake::raw({
            let (arrived, go, closed) = (arrived.clone(), go.clone(), closed.clone());
            move |mut stream| {
                let (arrived, go, closed) = (arrived.clone(), go.clone(), closed.clone());
                async move {
                    use tokio::io::AsyncWriteExt;
                    let seen = fake::read_request(&mut stream).await.unwrap();
                    if seen.procedure() == "CloseSession" {
                        assert!(String::from_utf8_lossy(&seen.body).contains(ID));
                        return closed.notify_one();
                    }
                    arrived.notify_one();
                    go.notified().await;
                    use plimsoll_wire::proto::Message;
                    let body = opened().encode_to_vec();
                    let head = format!(
                        "HTTP/1.1 200 X\r\ncontent-type: application/proto\r\ncontent-length: {}\r\nplimsoll-request-id: {}\r\n\r\n",
                        body.len(),
                        seen.request_id()
                    );
                    stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
                }
            }
        })
        .await;
        let cancel = CancelToken::new();
        let options = CallOptions {
            timeout: None,
            cancel: Some(cancel.clone()),
        };
        let client = fake.client();
        let opening =
            tokio::spawn(
                async move { client.open_session(&OpenSession::default(), &options).await },
            );
        arrived.notified().await;
        if how == "cancel" {
            cancel.cancel();
            let failure = opening.await.unwrap().unwrap_err();
            assert_eq!((failure.code, failure.ran), (Code::Canceled, Ran::Maybe));
        } else {
            opening.abort();
            assert!(opening.await.unwrap_err().is_cancelled());
        }
        go.notify_one();
        closed.notified().await;
    }
}
