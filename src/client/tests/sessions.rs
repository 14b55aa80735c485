//! Calls of a session against a fake daemon: chains, merged rules, stops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/session.rs"]
mod daemon;
mod fake;

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use daemon::{Daemon, Log, honest, none, odd_second, open, snippet, unanswered_error};
use fake::{Fake, Reply};
use plimsoll_client::{Class, Client, OpenSession, Ran, Session, Stage};
use plimsoll_record::record_digest;
use plimsoll_wire::{
    Code, Reason, Rule, Tier, ids,
    proto::{
        EnumValue, ModuleRun, RunRecord, RunRequest, SessionRunResponse, SoftwareRule,
        run_request::Payload,
    },
};

#[tokio::test]
async fn floors_and_rules_are_merged() {
    let fake = honest().await;
    let two = SoftwareRule {
        mode: "approved".into(),
        identities: vec!["image:1".into(), "image:2".into()],
    };
    let session = fake
        .client()
        .open_session(
            &OpenSession {
                floor: Some(Tier::Container),
                rule: Rule::parse(Some(&two)).unwrap(),
                lifetime: Some(Duration::from_micros(10)),
                idle: Some(Duration::from_secs(1 << 40)),
                ..Default::default()
            },
            &none(),
        )
        .await
        .unwrap();
    let open: plimsoll_wire::proto::OpenSessionRequest = fake.seen()[0].message();
    assert_eq!((open.lifetime_ms, open.idle_timeout_ms), (1, u32::MAX));
    let mut call = snippet("1");
    call.minimum_isolation = "kernel".into();
    call.software_rule = Some(SoftwareRule {
        mode: "approved".into(),
        identities: vec!["image:3".into(), "image:1".into()],
    })
    .into();
    let checked = session.call(&call, &none()).await.unwrap();
    assert_eq!(checked.request.minimum_isolation, "kernel");
    assert_eq!(checked.record().software_rule_id, "exact:image:1");
    let checked = session.call(&snippet("1"), &none()).await.unwrap();
    assert_eq!(checked.request.minimum_isolation, "container");
    assert_eq!(checked.request.software_rule.identities.len(), 2);
    call.software_rule
        .as_option_mut()
        .unwrap()
        .identities
        .truncate(1);
    let failure = session.call(&call, &none()).await.unwrap_err();
    assert_eq!(failure.not_dispatched(), Some(Reason::Request));
    let mut module = snippet("1");
    module.payload = Some(Payload::Module(Box::<ModuleRun>::default()));
    assert_eq!(
        session.call(&module, &none()).await.unwrap_err().stage,
        Stage::Local
    );
    assert_eq!(fake.seen().len(), 3);
}

#[tokio::test]
async fn unanswered_calls_that_check_keep_the_session() {
    let fake = odd_second(|daemon, call| {
        let record = daemon.unanswered(call);
        daemon.0.lock().unwrap().advance(&record).unwrap();
        unanswered_error(&record)
    })
    .await;
    let log = Arc::new(Log::default());
    let mut options = fake.options();
    options.recorder = Some(log.clone());
    let session = open(&Client::new(options).unwrap()).await;
    session.call(&snippet("1"), &none()).await.unwrap();
    let failure = session.call(&snippet("2"), &none()).await.unwrap_err();
    assert_eq!(failure.unanswered.unwrap().1.sequence, 2);
    assert_eq!(
        session
            .call(&snippet("3"), &none())
            .await
            .unwrap()
            .record()
            .sequence,
        3
    );
    let closed = session.close(&none()).await.unwrap();
    assert_eq!(closed.calls, 3);
    assert_eq!(
        *log.0.lock().unwrap(),
        ["call 1", "unanswered 2", "call 3", "close 3"]
    );
    let failure = session.call(&snippet("4"), &none()).await.unwrap_err();
    assert_eq!(
        (failure.stage, failure.class),
        (Stage::Local, Class::SessionEnded)
    );
    assert_eq!(failure.ended.unwrap().reason, "closed");
}

#[tokio::test]
async fn unanswered_calls_that_do_not_check_stop_it() {
    type Alter = fn(&mut RunRecord);
    let cases: [(&str, Alter, Class); 9] = [
        ("sequence", |r| r.sequence = 3, Class::ChainBroken),
        (
            "previous",
            |r| r.previous_sha256.clear(),
            Class::ChainBroken,
        ),
        (
            "session",
            |r| r.session = ids::session_fingerprint("x"),
            Class::ChainBroken,
        ),
        (
            "request",
            |r| r.request_sha256 = r.previous_sha256.clone(),
            Class::RecordRefused,
        ),
        (
            "result",
            |r| r.result_sha256 = r.request_sha256.clone(),
            Class::RecordRefused,
        ),
        ("version", |r| r.version = 2, Class::RecordRefused),
        ("code", |r| r.unanswered = "ok".into(), Class::RecordRefused),
        (
            "provider",
            |r| r.provider = "e2b".into(),
            Class::RecordRefused,
        ),
        (
            "software",
            |r| r.software_identity = "image:2".into(),
            Class::RecordRefused,
        ),
    ];
    for (what, alter, class) in cases {
        let fake = odd_second(move |daemon, call| {
            let mut record = daemon.unanswered(call);
            alter(&mut record);
            record.record_sha256 = record_digest(&record).unwrap().to_hex();
            unanswered_error(&record)
        })
        .await;
        let log = Arc::new(Log::default());
        let mut options = fake.options();
        options.recorder = Some(log.clone());
        let session = open(&Client::new(options).unwrap()).await;
        session.call(&snippet("1"), &none()).await.unwrap();
        let failure = session.call(&snippet("2"), &none()).await.unwrap_err();
        assert_eq!(
            (failure.code, failure.class),
            (Code::DataLoss, class),
            "{what}"
        );
        assert!(failure.unanswered.is_none());
        stopped(&fake, &session).await;
        assert_eq!(log.0.lock().unwrap()[0], "call 1");
        assert_eq!(*log.0.lock().unwrap(), ["call 1", "close 1"], "{what}");
    }
}

/// A stopped session sends nothing more but its close.
async fn stopped(fake: &Fake, session: &Session) {
    assert!(session.is_stopped());
    let before = fake.seen().len();
    let failure = session.call(&snippet("3"), &none()).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.class),
        (Code::FailedPrecondition, Class::SessionStopped)
    );
    assert_eq!(failure.not_dispatched(), Some(Reason::Request));
    assert_eq!(fake.seen().len(), before, "nothing was sent");
    session.close(&none()).await.unwrap();
    assert_eq!(fake.seen().len(), before + 1);
}

#[tokio::test]
async fn lost_and_broken_calls_stop_it() {
    let broken: [fn(&Daemon, &RunRequest) -> Reply; 5] = [
        |_, _| Reply::drop_connection(),
        |_, _| Reply::error(500, r#"{"code":"internal"}"#),
        |_, _| Reply::bytes(vec![0xff]),
        |_, _| Reply::proto(&SessionRunResponse::default()),
        |_, _| {
            Reply::error(429, r#"{"code":"resource_exhausted","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAY"}]}"#)
                .echo(fake::Echo::None)
        },
    ];
    for odd in broken {
        let fake = odd_second(odd).await;
        let session = open(&fake.client()).await;
        session.call(&snippet("1"), &none()).await.unwrap();
        let failure = session.call(&snippet("2"), &none()).await.unwrap_err();
        assert_eq!(failure.ran, Ran::Maybe);
        stopped(&fake, &session).await;
    }
}

#[tokio::test]
async fn a_replayed_answer_breaks_the_chain() {
    let kept: Arc<Mutex<Option<Reply>>> = Arc::default();
    let daemon = Daemon::new();
    let fake = Fake::start(move |seen| {
        let mut kept = kept.lock().unwrap();
        match (seen.procedure(), &*kept) {
            ("SessionRun", Some(reply)) => reply.clone(),
            ("SessionRun", None) => kept.insert(daemon.reply(seen)).clone(),
            _ => daemon.reply(seen),
        }
    })
    .await;
    let session = open(&fake.client()).await;
    session.call(&snippet("1"), &none()).await.unwrap();
    let failure = session.call(&snippet("1"), &none()).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.class),
        (Code::DataLoss, Class::ChainBroken)
    );
    assert!(failure.unchecked.is_some());
    assert!(session.is_stopped());
}

#[tokio::test]
async fn an_end_is_remembered_whatever_the_checks_say() {
    let fake = odd_second(|_, _| {
        Reply::proto(&SessionRunResponse {
            ended: EnumValue::Unknown(77),
            end_detail: "why".into(),
            ..Default::default()
        })
    })
    .await;
    let session = open(&fake.client()).await;
    session.call(&snippet("1"), &none()).await.unwrap();
    let failure = session.call(&snippet("2"), &none()).await.unwrap_err();
    assert_eq!(failure.class, Class::ResultKind);
    let end = session.ended().unwrap();
    assert_eq!((end.reason, end.detail.as_str()), ("unknown", "why"));
}
