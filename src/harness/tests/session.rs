//! Sessions: one bundle entry a call, a close and one checkpoint.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{fs, path::PathBuf, sync::Mutex, time::Duration};

use fake::{Fake, Reply, Seen};
use plimsoll_attestation::{
    SigningKey,
    bundle::{AppendError, AppendFault, Report, verify},
};
use plimsoll_client::{CancelToken, OpenSession, Options, Ran};
use plimsoll_harness::{
    Class, Ledger, SessionPlan, SessionReport, Target,
    run::Phase,
    run_session,
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
/// Of a second session.
const OTHER: &str = "00112233445566778899aabbccddeeff";

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
    id: &'static str,
    chain: Mutex<Chain>,
    calls: Vec<Call>,
    close: fn(&mut CloseSessionResponse),
}

impl Daemon {
    fn new(id: &'static str, calls: &[Call], close: fn(&mut CloseSessionResponse)) -> Daemon {
        Daemon {
            id,
            chain: Mutex::new(Chain::of_session_id(id)),
            calls: calls.to_vec(),
            close,
        }
    }

    fn reply(&self, seen: &Seen) -> Reply {
        match seen.procedure() {
            "OpenSession" => Reply::proto(&OpenSessionResponse {
                session_id: self.id.into(),
                session: ids::session_fingerprint(self.id),
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
    let daemon = Daemon::new(ID, calls, close);
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

    /// Runs on a new daemon that opens a session of this ID.
    async fn run_as(
        &self,
        id: &'static str,
        calls: &[Call],
        close: fn(&mut CloseSessionResponse),
    ) -> SessionReport {
        let daemon = Daemon::new(id, calls, close);
        self.run(&Fake::start(move |seen| daemon.reply(seen)).await)
            .await
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

/// The session's signed entries are in one side file alone, and the bundle is
/// as it was.
fn left_aside(case: &Case, report: &SessionReport, before: &[u8], entries: usize) {
    assert!(report.appended.is_none());
    assert!(fs::read(case.path()).unwrap() == before);
    let left = report.left.as_ref().unwrap();
    let name = left.file_name().unwrap().to_str().unwrap();
    assert!(name.starts_with("runs.jsonl.unsealed-"), "{name}");
    let text = fs::read_to_string(left).unwrap();
    assert!(text.ends_with("}\n") && text.lines().count() == entries);
    assert_eq!(case.files(), 2, "the bundle and one side file");
    fs::remove_file(left).unwrap();
}

#[tokio::test]
async fn a_session_without_its_close_leaves_the_bundle_as_it_was() {
    let case = Case::new();
    let good = daemon(&[Call::Answered; 3], |_| {}).await;
    assert_eq!(case.run(&good).await.class(), None);
    let before = fs::read(case.path()).unwrap();
    type Close = fn(&mut CloseSessionResponse);
    let cases: [(&[Call], Close, usize, Class); 3] = [
        // The daemon counted the call that was lost.
        (
            &[Call::Answered, Call::Lost],
            |close| close.calls += 1,
            1,
            Class::MayHaveRun,
        ),
        (
            &[Call::Answered; 3],
            |close| close.last_record_sha256.clear(),
            3,
            Class::NotKept,
        ),
        (
            &[Call::Answered, Call::Unanswered, Call::Answered],
            |close| close.session = "0".repeat(64),
            3,
            Class::NotKept,
        ),
    ];
    for (calls, close, entries, class) in cases {
        let report = case.run_as(OTHER, calls, close).await;
        assert_eq!(report.class(), Some(class));
        let is_close = |problem: &SessionProblem| matches!(problem, SessionProblem::Close(_));
        assert!(report.problems.iter().any(is_close));
        assert!(report.closed.is_none());
        assert_eq!((report.calls.len(), report.ran()), (entries, Ran::Yes));
        left_aside(&case, &report, &before, entries);
    }
    // The bundle goes on.
    let again = case.run_as(OTHER, &[Call::Answered; 3], |_| {}).await;
    assert_eq!(again.class(), None, "{:?}", again.problems);
    assert_eq!(case.verify().unwrap().records, 6);
    // Without a checked call there is nothing to keep.
    let case = Case::new();
    let report = case
        .run_as(ID, &[Call::Lost], |close| close.calls += 1)
        .await;
    assert_eq!(report.class(), Some(Class::MayHaveRun));
    assert!(report.left.is_none() && case.files() == 0);
}

#[tokio::test]
async fn an_interrupted_session_is_whole_or_left_aside() {
    let case = Case::new();
    let good = daemon(&[Call::Answered; 3], |_| {}).await;
    assert_eq!(case.run(&good).await.class(), None);
    let before = fs::read(case.path()).unwrap();
    let cancel = CancelToken::new();
    let second = Daemon::new(OTHER, &[Call::Answered; 3], |close| close.calls += 1);
    let fake = Fake::start({
        let cancel = cancel.clone();
        move |seen| {
            if seen.number == 2 {
                cancel.cancel();
                return Reply::hang();
            }
            second.reply(seen)
        }
    })
    .await;
    let ledger = Ledger::new(case.path(), false);
    let mut plan = case.plan(&ledger, fake.options());
    plan.cancel = Some(cancel);
    let report = run_session(plan, &mut ()).await;
    assert_eq!(report.class(), Some(Class::MayHaveRun));
    left_aside(&case, &report, &before, 1);
}

#[tokio::test]
async fn the_lock_is_not_waited_for_once_the_session_is_given_up() {
    let case = Case::new();
    let good = daemon(&[Call::Answered; 3], |_| {}).await;
    assert_eq!(case.run(&good).await.class(), None);
    let before = fs::read(case.path()).unwrap();
    let holder = fs::File::open(case.path()).unwrap();
    holder.lock().unwrap();
    let cancel = CancelToken::new();
    let on_phase = |phase| {
        if phase == Phase::WaitingForTheLock {
            cancel.cancel();
        }
    };
    let second = Daemon::new(OTHER, &[Call::Answered; 3], |_| {});
    let fake = Fake::start(move |seen| second.reply(seen)).await;
    let ledger = Ledger::new(case.path(), false);
    let mut plan = case.plan(&ledger, fake.options());
    plan.cancel = Some(cancel.clone());
    plan.on_phase = &on_phase;
    let report = run_session(plan, &mut ()).await;
    assert_eq!(report.class(), Some(Class::NotKept));
    assert!(matches!(
        &report.problems[..],
        [SessionProblem::Append(AppendError {
            fault: AppendFault::GivenUp,
            ..
        })]
    ));
    left_aside(&case, &report, &before, 4);
}

#[tokio::test]
async fn a_side_file_that_fails_costs_no_evidence() {
    // Its second write fails: the session ends there, closed, and is whole.
    let case = Case::new();
    let fake = daemon(&[Call::Answered; 3], |_| {}).await;
    let ledger = Ledger::on(FailingDisk::new(".unsealed-", 1), case.path(), false);
    let report = run_session(case.plan(&ledger, fake.options()), &mut ()).await;
    assert_eq!(report.class(), Some(Class::Io));
    assert_eq!((report.calls.len(), case.files()), (2, 1));
    assert_eq!(case.verify().unwrap().records, 2);
    // And when the close does not check, another side file takes all.
    let before = fs::read(case.path()).unwrap();
    let second = Daemon::new(OTHER, &[Call::Answered; 3], |close| close.calls += 1);
    let fake = Fake::start(move |seen| second.reply(seen)).await;
    let ledger = Ledger::on(FailingDisk::new(".unsealed-", 1), case.path(), false);
    let report = run_session(case.plan(&ledger, fake.options()), &mut ()).await;
    assert_eq!(report.class(), Some(Class::NotKept));
    left_aside(&case, &report, &before, 2);
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
