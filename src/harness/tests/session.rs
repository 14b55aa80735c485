//! Sessions: one bundle entry a call, a close and one checkpoint.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{
    fs,
    path::PathBuf,
    sync::{Arc, Mutex},
    time::Duration,
};

use fake::{Fake, Reply, Seen};
use plimsoll_attestation::{
    SigningKey,
    bundle::{Report, verify},
};
use plimsoll_client::{OpenSession, Options, Ran};
use plimsoll_harness::{
    Class, Ledger, SessionPlan, SessionReport, Target, run_session,
    session::{SessionCall, SessionProblem},
};
use plimsoll_record::{Chain, make, request_digest};
use plimsoll_wire::{
    Code, Rule, detail, ids,
    proto::{
        CloseSessionResponse, EnumValue, OpenSessionResponse, RunRequest, RunResponse, SessionEnd,
        SessionRunRequest, SessionRunResponse, UnansweredCall, run_response::Result as RunResult,
    },
};
use support::{FailingDisk, snippet};

const ID: &str = "3f0c9a52d1e84b7796c4a5b80e1d2f36";

/// How a daemon answers one call.
#[derive(Clone, Copy, PartialEq)]
enum Call {
    Answered,
    Unanswered,
    Refused,
    Lost,
}

/// A daemon of one session.
struct Daemon {
    chain: Mutex<Chain>,
    calls: Vec<Call>,
    close: fn(&mut CloseSessionResponse),
}

impl Daemon {
    fn reply(&self, seen: &Seen) -> Reply {
        match seen.procedure() {
            "OpenSession" => Reply::proto(&OpenSessionResponse {
                session_id: ID.into(),
                session: ids::session_fingerprint(ID),
                sandbox: "docker".into(),
                isolation: "kernel".into(),
                ..Default::default()
            }),
            "SessionRun" => self.call(
                &seen.message::<SessionRunRequest>().into(),
                self.calls[seen.number - 1],
            ),
            _ => {
                let chain = self.chain.lock().unwrap();
                let mut close = CloseSessionResponse {
                    session: chain.fingerprint().into(),
                    calls: chain.calls(),
                    last_record_sha256: chain.last().into(),
                    ended: EnumValue::from(SessionEnd::SESSION_END_CLOSED),
                };
                (self.close)(&mut close);
                Reply::proto(&close)
            }
        }
    }

    fn call(&self, call: &RunRequest, how: Call) -> Reply {
        let mut chain = self.chain.lock().unwrap();
        let current = chain.clone();
        let facts = make::Facts {
            request: request_digest(call),
            rule: &Rule::default(),
            policy: "",
            started_unix_ms: 1,
            ended_unix_ms: 2,
            chain: Some(&current),
        };
        match how {
            Call::Refused => Reply::error(
                429,
                r#"{"code":"resource_exhausted","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAY"}]}"#,
            ),
            Call::Lost => Reply::drop_connection(),
            Call::Unanswered => {
                let stated = make::Stated {
                    provider: "docker".into(),
                    isolation: "kernel".into(),
                    ..Default::default()
                };
                let record = make::unanswered(&facts, &stated, Code::Internal);
                chain.advance(&record).unwrap();
                let value = detail::to_base64(&UnansweredCall {
                    record: Some(record).into(),
                });
                Reply::error(
                    500,
                    &format!(
                        r#"{{"code":"internal","details":[{{"type":"plimsoll.v1.UnansweredCall","value":"{value}"}}]}}"#
                    ),
                )
            }
            Call::Answered => {
                let mut response = RunResponse {
                    sandbox: "docker".into(),
                    isolation: "kernel".into(),
                    result: Some(RunResult::Javascript(Box::default())),
                    ..Default::default()
                };
                response.record = Some(make::answered(&facts, &response)).into();
                chain.advance(&response.record).unwrap();
                Reply::proto(&SessionRunResponse {
                    run: Some(response).into(),
                    ..Default::default()
                })
            }
        }
    }
}

async fn daemon(calls: &[Call], close: fn(&mut CloseSessionResponse)) -> Fake {
    let daemon = Arc::new(Daemon {
        chain: Mutex::new(Chain::of_session_id(ID)),
        calls: calls.to_vec(),
        close,
    });
    Fake::start(move |seen| daemon.reply(seen)).await
}

struct Case {
    folder: tempfile::TempDir,
    key: SigningKey,
}

impl Case {
    fn new() -> Case {
        Case {
            folder: tempfile::tempdir().unwrap(),
            key: SigningKey::generate().unwrap(),
        }
    }

    fn path(&self) -> PathBuf {
        self.folder.path().join("runs.jsonl")
    }

    fn plan<'a, D>(&'a self, ledger: &'a Ledger<D>, options: Options) -> SessionPlan<'a, D> {
        SessionPlan {
            target: Target::Remote(Box::new(options)),
            key: &self.key,
            ledger,
            open: OpenSession::default(),
            calls: vec![snippet("1"), snippet("2"), snippet("3")],
            budget: Some(Duration::from_secs(5)),
            wait: Duration::from_secs(20),
            cancel: None,
            on_phase: &|_| {},
        }
    }

    async fn run(&self, fake: &Fake) -> SessionReport {
        let ledger = Ledger::new(self.path(), false);
        run_session(self.plan(&ledger, fake.options()), &mut ()).await
    }

    fn verify(&self) -> Result<Report, plimsoll_attestation::Fault> {
        let bytes = fs::read(self.path()).unwrap();
        verify(&*bytes, std::slice::from_ref(self.key.public()), &mut ())
    }

    fn files(&self) -> usize {
        fs::read_dir(self.folder.path()).unwrap().count()
    }
}

#[tokio::test]
async fn three_calls_are_five_lines() {
    let case = Case::new();
    let fake = daemon(&[Call::Answered, Call::Unanswered, Call::Answered], |_| {}).await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), None, "{:?}", report.problems);
    assert_eq!((report.calls.len(), report.ran()), (3, Ran::Yes));
    assert!(matches!(report.calls[1], SessionCall::Unanswered { .. }));
    assert_eq!(report.closed.unwrap().calls, 3);
    let whole = case.verify().unwrap();
    assert_eq!((whole.lines, whole.records, whole.unanswered), (5, 3, 1));
    assert!(whole.sessions[0].closed);
    assert_eq!(case.files(), 1, "the side file is gone");
    let sent: SessionRunRequest = fake.seen()[1].message();
    assert_eq!(sent.timeout_ms, 5000);
    assert!(!fs::read_to_string(case.path()).unwrap().contains(ID));
}

#[tokio::test]
async fn a_refused_call_ends_the_sequence() {
    let case = Case::new();
    let fake = daemon(&[Call::Answered, Call::Refused], |_| {}).await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), Some(Class::NotDispatched));
    assert!(matches!(
        report.problems[0],
        SessionProblem::Call { number: 2, .. }
    ));
    assert_eq!(report.calls.len(), 1);
    let whole = case.verify().unwrap();
    assert_eq!(
        (whole.lines, whole.records),
        (3, 1),
        "one call, a close and a checkpoint"
    );
    // Refused at once: nothing ran, and a session without calls is closed and kept.
    let case = Case::new();
    let fake = daemon(&[Call::Refused], |_| {}).await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), Some(Class::NotDispatched));
    assert!(matches!(report.ran(), Ran::No { .. }));
}

#[tokio::test]
async fn a_lost_call_stops_it_and_its_close_does_not_check() {
    let case = Case::new();
    // The daemon counted the call that was lost.
    let fake = daemon(&[Call::Answered, Call::Lost], |close| close.calls += 1).await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), Some(Class::MayHaveRun));
    assert!(
        report
            .problems
            .iter()
            .any(|p| matches!(p, SessionProblem::Close(_)))
    );
    assert!(report.closed.is_none());
    assert!(report.appended.is_some(), "the call before is kept");
    assert!(case.verify().is_err(), "the session stands open");
    let again = case.run(&daemon(&[Call::Answered; 3], |_| {}).await).await;
    assert_eq!(
        again.class(),
        Some(Class::Bundle),
        "such a bundle cannot be continued"
    );
}

#[tokio::test]
async fn a_close_that_does_not_check_is_not_signed() {
    let case = Case::new();
    let fake = daemon(&[Call::Answered; 3], |close| {
        close.last_record_sha256.clear();
    })
    .await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), Some(Class::NotKept));
    assert!(report.closed.is_none());
    assert_eq!(report.calls.len(), 3);
}

#[tokio::test]
async fn without_sessions_nothing_is_written() {
    let case = Case::new();
    let fake = Fake::start(|_| {
        Reply::error(501, r#"{"code":"unimplemented","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAQ"}]}"#)
    })
    .await;
    let report = case.run(&fake).await;
    assert_eq!(report.class(), Some(Class::NotDispatched));
    assert!(matches!(report.ran(), Ran::No { .. }));
    assert_eq!(case.files(), 0, "the bundle is unchanged");
}

#[tokio::test]
async fn a_full_disk_leaves_the_signed_entries() {
    let case = Case::new();
    let fake = daemon(&[Call::Answered; 3], |_| {}).await;
    let ledger = Ledger::on(FailingDisk::new("runs.jsonl", 2), case.path(), false);
    let report = run_session(case.plan(&ledger, fake.options()), &mut ()).await;
    assert_eq!(
        (report.class(), report.ran()),
        (Some(Class::NotKept), Ran::Yes)
    );
    let side = fs::read_to_string(report.left.unwrap()).unwrap();
    assert_eq!(side.lines().count(), 4, "three calls and the close");
    assert_eq!(fs::read(case.path()).unwrap(), b"");
    assert_eq!(case.files(), 2);
}
