//! Runs against a fake daemon that are signed into their bundle.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use case::{Case, failure};
use fake::{Fake, Reply};
use plimsoll_attestation::bundle::{Report, Visitor};
use plimsoll_client::{CancelToken, Ran};
use plimsoll_harness::{
    Class, Ledger, RunFailure, Witness, failure::NotKept, request, run, run::Phase,
};
use plimsoll_wire::{
    json,
    proto::{Artifact, ProjectResult, RunRequest, run_response::Result as RunResult},
};
use support::{FailingDisk, honest};

#[tokio::test]
async fn a_run_is_signed_into_its_bundle() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    for n in 1..=2 {
        let recorded = case.run(&fake).await.result.unwrap();
        assert_eq!(recorded.line(), 2 * n - 1);
        assert_eq!(recorded.appended.created, n == 1);
    }
    let report = case.verify();
    assert_eq!(
        (report.records, report.single_runs, report.lines),
        (2, 2, 4)
    );
    let mode = fs::metadata(case.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o600);
    assert_eq!(case.files(), ["runs.jsonl"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_runs_on_one_bundle() {
    let case = Arc::new(Case::new());
    let fake = Arc::new(Fake::start(honest).await);
    let runs: Vec<_> = (0..8)
        .map(|_| {
            let (case, fake) = (Arc::clone(&case), Arc::clone(&fake));
            tokio::spawn(async move { case.run(&fake).await.result.map(|r| r.line()) })
        })
        .collect();
    let mut lines = Vec::new();
    for run in runs {
        lines.push(run.await.unwrap().unwrap());
    }
    lines.sort_unstable();
    assert_eq!(lines, [1, 3, 5, 7, 9, 11, 13, 15]);
    assert_eq!(case.verify().records, 8);
}

#[tokio::test]
async fn a_full_disk_keeps_the_signed_entry_beside() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    case.run(&fake).await.result.unwrap();
    let before = fs::read(case.path()).unwrap();
    // 0: the entry's line; 1: the checkpoint's.
    for failing in [0, 1] {
        let ledger = Ledger::on(FailingDisk::new("runs.jsonl", failing), case.path(), false);
        let report = run(case.plan(&ledger, fake.options()), &mut ()).await;
        let failure = failure(&report);
        assert_eq!((failure.class(), failure.ran()), (Class::NotKept, Ran::Yes));
        let RunFailure::NotKept {
            why: NotKept::Append(error),
            ..
        } = failure
        else {
            panic!("{failure}")
        };
        let side = error.kept.as_ref().unwrap();
        assert_eq!(
            fs::metadata(side).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(fs::read_to_string(side).unwrap().ends_with("}\n"));
        assert_eq!(
            fs::read(case.path()).unwrap(),
            before,
            "the bundle is as before"
        );
        fs::remove_file(side).unwrap();
    }
    case.run(&fake).await.result.unwrap();
    assert_eq!(case.verify().records, 2);
}

#[tokio::test]
async fn cancellation() {
    let case = Case::new();
    let cancel = CancelToken::new();
    let fake = Fake::start({
        let cancel = cancel.clone();
        move |_| {
            cancel.cancel();
            Reply::hang()
        }
    })
    .await;
    let ledger = case.ledger();
    let mut plan = case.plan(&ledger, fake.options());
    plan.cancel = Some(cancel);
    let report = run(plan, &mut ()).await;
    assert_eq!(
        (failure(&report).class(), failure(&report).ran()),
        (Class::MayHaveRun, Ran::Maybe)
    );
    assert!(case.files().is_empty());
}

#[tokio::test]
async fn artifacts_are_saved_after_the_record() {
    let case = Case::new();
    let fake = Fake::start(|seen| {
        let request: RunRequest = seen.message();
        Reply::proto(&support::answer_with(
            &request,
            RunResult::Project(Box::new(ProjectResult {
                artifacts: vec![Artifact {
                    path: "a/b".into(),
                    content: b"\xff".to_vec(),
                }],
                ..Default::default()
            })),
        ))
    })
    .await;
    let ledger = case.ledger();
    let folder = case.folder.path().join("out");
    let mut plan = case.plan(&ledger, fake.options());
    plan.request =
        json::read(br#"{"protocol":3,"project":{"steps":["true"],"artifacts":["a/b"]}}"#).unwrap();
    plan.save_artifacts = Some(folder.clone());
    let recorded = run(plan, &mut ()).await.result.unwrap();
    assert_eq!(recorded.saved.unwrap().unwrap(), 1);
    assert_eq!(fs::read(folder.join("a/b")).unwrap(), b"\xff");
    // A folder that is not empty is told before anything runs.
    let mut plan = case.plan(&ledger, fake.options());
    plan.save_artifacts = Some(folder);
    let report = run(plan, &mut ()).await;
    assert_eq!(failure(&report).class(), Class::Io);
    assert_eq!(fake.connections(), 1);
}

#[tokio::test]
async fn a_witness_may_refuse_and_may_fail() {
    #[derive(Default)]
    struct Anchor {
        refuse: bool,
        asked: usize,
        told: usize,
    }
    impl Visitor for Anchor {}
    impl plimsoll_attestation::bundle::Guard for Anchor {
        fn allow(
            &mut self,
            _: Option<&Report>,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            self.asked += 1;
            if self.refuse {
                Err("behind".into())
            } else {
                Ok(())
            }
        }
    }
    impl Witness for Anchor {
        fn appended(
            &mut self,
            _: &plimsoll_attestation::bundle::Appended,
            _: &plimsoll_attestation::SigningKey,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            self.told += 1;
            if self.told > 1 {
                Err("no space".into())
            } else {
                Ok(())
            }
        }
    }
    let case = Case::new();
    let fake = Fake::start(honest).await;
    let ledger = case.ledger();
    let mut anchor = Anchor::default();
    let report = run(case.plan(&ledger, fake.options()), &mut anchor).await;
    assert!(report.result.is_ok());
    assert_eq!(
        (anchor.asked, anchor.told),
        (2, 1),
        "before the run, and under the lock"
    );
    let report = run(case.plan(&ledger, fake.options()), &mut anchor).await;
    assert_eq!(
        (failure(&report).class(), failure(&report).reason()),
        (Class::NotKept, Some("anchor"))
    );
    assert_eq!(case.verify().records, 2, "it is recorded all the same");
    anchor.refuse = true;
    let report = run(case.plan(&ledger, fake.options()), &mut anchor).await;
    assert_eq!(failure(&report).class(), Class::Anchor);
    assert_eq!(fake.connections(), 2);
}

#[tokio::test]
async fn phases_in_order() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    let signed = AtomicBool::new(false);
    let phases = std::sync::Mutex::new(Vec::new());
    let on_phase = |phase| {
        signed.fetch_or(phase == Phase::Signing, Ordering::SeqCst);
        phases.lock().unwrap().push(phase);
    };
    let ledger = case.ledger();
    let mut plan = case.plan(&ledger, fake.options());
    plan.on_phase = &on_phase;
    run(plan, &mut ()).await.result.unwrap();
    assert_eq!(
        *phases.lock().unwrap(),
        [Phase::WaitingForTheRun, Phase::Signing]
    );
}

#[test]
fn an_unknown_member_is_refused_before_anything() {
    let text = br#"{"protocol":3,"javascript":{"code":"1"},"minimumIsolaton":"vm"}"#;
    let error = request::from_json(text).unwrap_err();
    assert_eq!(error.member(), "minimumIsolaton");
}
