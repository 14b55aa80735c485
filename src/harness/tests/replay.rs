//! Replays: what is sent, in which order, and what counts as the same.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;
#[path = "support/recorded.rs"]
mod recorded;
mod support;

use std::{
    fs::File,
    io::{BufReader, Write},
    time::Duration,
};

use fake::{Fake, Reply, Seen};
use plimsoll_attestation::{
    Class, SigningKey,
    bundle::{Entry, Options, append, disk::OsDisk},
    fault::NotACallReason,
};
use plimsoll_client::{CancelToken, Ran};
use plimsoll_harness::{
    Target,
    replay::{Halt, Outcome, ReplayPlan, ReplayReport, Replayed, SelectError, Selection},
    replay::{replay, select},
};
use plimsoll_wire::{
    Reason, ids,
    proto::{Message, RunRequest, SessionRunRequest},
};
use recorded::{Daemon, RECORDED, bundle, honest, odd, output, refused};
use support::{answer_with, snippet};

struct Case {
    file: File,
    selection: Selection,
    folder: tempfile::TempDir,
}

fn selected(unanswered: bool, lines: &[u64]) -> Case {
    let (folder, key) = bundle(unanswered);
    let file = File::open(folder.path().join("b")).unwrap();
    let keys = [key.public().clone()];
    let selection = select(BufReader::new(&file), &keys, lines, &mut ()).unwrap();
    Case {
        file,
        selection,
        folder,
    }
}

impl Case {
    async fn replay(&self, fake: &Fake) -> (Vec<Replayed>, ReplayReport) {
        self.replay_with(fake, None, &mut |_| {}).await
    }

    async fn replay_with(
        &self,
        fake: &Fake,
        cancel: Option<CancelToken>,
        on_call: &mut dyn FnMut(&Replayed),
    ) -> (Vec<Replayed>, ReplayReport) {
        let mut calls = Vec::new();
        let plan = ReplayPlan {
            target: Target::Remote(Box::new(fake.options())),
            wait: Duration::from_secs(20),
            cancel,
            on_phase: &|_| {},
        };
        let mut take = |call: Replayed| {
            on_call(&call);
            calls.push(call);
        };
        let mut source = &self.file;
        let report = Box::pin(replay(plan, &self.selection, &mut source, &mut take)).await;
        (calls, report)
    }
}

/// The calls as lines of one word each.
fn told(calls: &[Replayed]) -> Vec<String> {
    calls
        .iter()
        .map(|call| {
            let ran = call.ran().name();
            let line = call.line;
            match &call.outcome {
                Outcome::Same => format!("{line} same {ran}"),
                Outcome::Different { member } => format!("{line} {member} {ran}"),
                Outcome::Failed(problem) => {
                    let place = if problem.at_open { "open" } else { "call" };
                    format!("{line} failed {place} {ran}")
                }
                Outcome::Unanswered { code, problem } => {
                    let failed = if problem.is_some() { " failed" } else { "" };
                    format!("{line} {code}{failed} {ran}")
                }
            }
        })
        .collect()
}

const ALL_SAME: [&str; 5] = [
    "1 same yes",
    "2 same yes",
    "3 same yes",
    "5 same yes",
    "4 same yes",
];

#[tokio::test]
async fn everything_is_sent_as_stored_and_found_the_same() {
    let case = selected(false, &[]);
    assert_eq!(case.selection.calls(), 5);
    let fake = honest().await;
    let (calls, report) = case.replay(&fake).await;
    assert_eq!(told(&calls), ALL_SAME);
    assert!(report.halt.is_none() && report.closes.is_empty() && report.embedded.is_none());
    let seen = fake.seen();
    let order: Vec<_> = seen.iter().map(Seen::procedure).collect();
    assert_eq!(
        order,
        [
            "Run",
            "OpenSession",
            "SessionRun",
            "SessionRun",
            "SessionRun",
            "CloseSession",
            "Run"
        ]
    );
    assert_eq!(seen[0].body, snippet("first").encode_to_vec());
    assert_eq!(seen[6].body, snippet("last").encode_to_vec());
    // The recorded session is not asked for: it is over.
    let call: SessionRunRequest = seen[2].message();
    assert_eq!(call.session_id, format!("{:032x}", 1));
    let fingerprint = ids::session_fingerprint(RECORDED);
    assert!(calls[1..4].iter().all(|call| call.session == fingerprint));
    for call in &calls {
        assert_eq!(call.replayed.unwrap().to_hex(), call.recorded);
        assert_eq!(call.protocol, 3);
    }
}

#[tokio::test]
async fn another_result_names_its_first_member() {
    let case = selected(false, &[]);
    let fake = odd(2, |daemon, seen| daemon.answer(seen, Some(9))).await;
    let (calls, _) = case.replay(&fake).await;
    let mut told_of = ALL_SAME;
    told_of[2] = "3 stdout yes";
    assert_eq!(told(&calls), told_of);
    assert!(!calls[2].replayed.unwrap().is(&calls[2].recorded));
}

#[tokio::test]
async fn a_call_recorded_without_an_answer_is_sent_and_not_compared() {
    let case = selected(true, &[]);
    let fake = honest().await;
    let (calls, _) = case.replay(&fake).await;
    let mut told_of = ALL_SAME;
    told_of[2] = "3 deadline_exceeded yes";
    assert_eq!(told(&calls), told_of);
    assert_eq!(calls[2].recorded, "");
    let sent = fake.seen();
    assert_eq!(
        sent.iter()
            .filter(|s| s.procedure() == "SessionRun")
            .count(),
        3
    );
    // Again without an answer, with a record of it that checks: the session goes on.
    let fake = odd(2, Daemon::no_answer).await;
    told_of[2] = "3 deadline_exceeded maybe";
    assert_eq!(told(&case.replay(&fake).await.0), told_of);
    // Again without an answer, and without a record: then that is a failure.
    let fake = odd(2, |_, _| Reply::drop_connection()).await;
    let (calls, report) = case.replay(&fake).await;
    told_of[2] = "3 deadline_exceeded failed maybe";
    told_of[3] = "5 failed call no";
    assert_eq!(told(&calls), told_of);
    assert!(report.closes.is_empty(), "{:?}", report.closes);
}

#[tokio::test]
async fn a_failure_stops_nothing_else() {
    let case = selected(false, &[]);
    for (reply, second, third) in [
        (
            refused(Reason::Capacity),
            "3 failed call no",
            "5 stdout yes",
        ),
        (
            Reply::drop_connection(),
            "3 failed call maybe",
            "5 failed call no",
        ),
    ] {
        let fake = odd(2, move |daemon, seen| {
            // Only the first time: the chain does not move on.
            let call: SessionRunRequest = seen.message();
            let call: RunRequest = call.into();
            if call == snippet("call 2") {
                reply.clone()
            } else {
                daemon.reply(seen)
            }
        })
        .await;
        let mut told_of = ALL_SAME;
        told_of[2] = second;
        told_of[3] = third;
        assert_eq!(told(&case.replay(&fake).await.0), told_of);
    }
    let fake = odd(2, Daemon::no_answer).await;
    let mut told_of = ALL_SAME;
    told_of[2] = "3 failed call maybe";
    assert_eq!(told(&case.replay(&fake).await.0), told_of);
}

#[tokio::test]
async fn a_session_that_does_not_open_fails_its_calls() {
    let case = selected(true, &[]);
    for (reply, ran) in [
        (refused(Reason::Unsupported), "no"),
        // It may have opened; the calls were not sent all the same.
        (Reply::drop_connection(), "no"),
    ] {
        let daemon = Daemon::start();
        let fake = Fake::start(move |seen| match seen.procedure() {
            "OpenSession" => reply.clone(),
            _ => daemon.reply(seen),
        })
        .await;
        let (calls, _) = case.replay(&fake).await;
        assert_eq!(
            told(&calls),
            [
                "1 same yes".to_owned(),
                format!("2 failed open {ran}"),
                format!("3 deadline_exceeded failed {ran}"),
                format!("5 failed open {ran}"),
                "4 same yes".to_owned(),
            ]
        );
        assert!(fake.seen().iter().all(|s| s.procedure() != "SessionRun"));
    }
}

#[tokio::test]
async fn lines_bring_what_their_session_needs() {
    for (lines, told_of) in [
        (&[4][..], &["4 same yes"][..]),
        (&[3], &["2 same yes", "3 same yes"]),
        (
            &[5, 1, 5],
            &["1 same yes", "2 same yes", "3 same yes", "5 same yes"],
        ),
        (&[2], &["2 same yes"]),
    ] {
        let case = selected(false, lines);
        let fake = honest().await;
        assert_eq!(told(&case.replay(&fake).await.0), told_of, "{lines:?}");
        assert_eq!(case.selection.calls(), told_of.len());
    }
}

#[tokio::test]
async fn an_older_request_is_sent_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::generate().unwrap();
    let request = RunRequest {
        protocol: 2,
        ..snippet("old")
    };
    let entry = Entry::answered(&request, &answer_with(&request, output(1))).unwrap();
    let path = folder.path().join("b");
    append(
        &OsDisk,
        &path,
        &key,
        &[entry.sign(&key)],
        Options::default(),
        &mut (),
    )
    .unwrap();
    let file = File::open(&path).unwrap();
    let keys = [key.public().clone()];
    let selection = select(BufReader::new(&file), &keys, &[], &mut ()).unwrap();
    let fake = Fake::start(|_| refused(Reason::Protocol)).await;
    let case = Case {
        file,
        selection,
        folder,
    };
    let (calls, _) = case.replay(&fake).await;
    assert_eq!(told(&calls), ["1 failed call no"]);
    assert_eq!(calls[0].protocol, 2);
    assert_eq!(fake.seen()[0].body, request.encode_to_vec());
}

#[tokio::test]
async fn a_file_that_changes_meanwhile_is_not_sent() {
    let case = selected(false, &[]);
    let path = case.folder.path().join("b");
    let text = std::fs::read_to_string(&path).unwrap();
    let fourth = text.lines().nth(3).unwrap();
    let swapped = text.lines().next().unwrap();
    // The first request again in the place of the fourth line, padded to its length.
    let mut other = swapped.as_bytes().to_vec();
    other.resize(fourth.len(), b' ');
    let at = text.find(fourth).unwrap();
    let fake = honest().await;
    let (calls, report) = case
        .replay_with(&fake, None, &mut |call| {
            if call.line == 5 {
                let mut bytes = text.clone().into_bytes();
                bytes[at..at + other.len()].copy_from_slice(&other);
                std::fs::write(&path, bytes).unwrap();
            }
        })
        .await;
    assert_eq!(told(&calls), ALL_SAME[..4]);
    assert!(matches!(report.halt, Some(Halt::Changed { line: 4 })));
    assert_eq!(fake.seen().len(), 6);
    File::create(&path).unwrap().write_all(b"").unwrap();
    let fake = honest().await;
    let (calls, report) = case.replay(&fake).await;
    assert!(calls.is_empty() && matches!(report.halt, Some(Halt::Changed { line: 1 })));
    assert_eq!(fake.connections(), 0);
}

#[tokio::test]
async fn giving_up_ends_the_call_and_sends_no_other() {
    let case = selected(false, &[]);
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let fake = odd(2, move |_, _| {
        token.cancel();
        Reply::hang()
    })
    .await;
    let (calls, report) = case.replay_with(&fake, Some(cancel), &mut |_| {}).await;
    assert_eq!(
        told(&calls),
        ["1 same yes", "2 same yes", "3 failed call maybe"]
    );
    let seen = fake.seen();
    assert_eq!(seen.last().unwrap().procedure(), "CloseSession");
    assert!(report.closes.is_empty(), "{:?}", report.closes);
    let Outcome::Failed(problem) = &calls[2].outcome else {
        panic!()
    };
    assert_eq!(problem.ran(), Ran::Maybe);
}

#[test]
fn what_is_not_replayed_at_all() {
    let (folder, key) = bundle(false);
    let bytes = std::fs::read(folder.path().join("b")).unwrap();
    let keys = [key.public().clone()];
    let error = |bytes: &[u8], lines: &[u64]| select(bytes, &keys, lines, &mut ()).unwrap_err();
    for (line, kind) in [(6, NotACallReason::Close), (7, NotACallReason::Checkpoint)] {
        match error(&bytes, &[1, line]) {
            SelectError::NotACall {
                line: found,
                reason,
            } => {
                assert_eq!((found, reason), (line, kind));
            }
            other => panic!("{other}"),
        }
    }
    let none = error(&bytes, &[8]);
    assert!(matches!(none, SelectError::NoLine { line: 8, lines: 7 }));
    let mut flipped = bytes.clone();
    flipped[bytes.len() / 2] ^= 1;
    // Refused whole, also for a line that stands before the fault.
    assert!(matches!(error(&flipped, &[1]), SelectError::Evidence(_)));
    let checkpoint = tempfile::tempdir().unwrap();
    let path = checkpoint.path().join("b");
    append(&OsDisk, &path, &key, &[], Options::default(), &mut ()).unwrap();
    match error(&std::fs::read(&path).unwrap(), &[]) {
        SelectError::Evidence(fault) => assert_eq!(fault.class(), Class::Empty),
        other => panic!("{other}"),
    }
}
