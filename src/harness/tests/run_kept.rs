//! What becomes of a run whose bundle is not there for it any more, is held by
//! another, or could never have taken it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    sync::Mutex,
    time::{Duration, Instant},
};

use case::{Case, failure};
use fake::{Fake, Reply};
use plimsoll_attestation::bundle::AppendFault;
use plimsoll_client::{CancelToken, Ran};
use plimsoll_harness::{
    Class, Ledger, RunFailure,
    artifacts::SaveError,
    failure::NotKept,
    run,
    run::{Phase, RunReport},
};
use plimsoll_wire::{
    json,
    proto::{Artifact, ProjectResult, RunRequest, run_response::Result as RunResult},
};
use support::{honest, snippet};

/// The side file of a run that was not kept, and why it was not.
fn aside(report: &RunReport) -> (PathBuf, &AppendFault) {
    let failure = failure(report);
    assert_eq!((failure.class(), failure.ran()), (Class::NotKept, Ran::Yes));
    let RunFailure::NotKept {
        why: NotKept::Append(error),
        ..
    } = failure
    else {
        panic!("{failure}")
    };
    let side = error.kept.as_ref().unwrap().clone();
    assert_eq!(fs::read_to_string(&side).unwrap().lines().count(), 1);
    (side, &error.fault)
}

#[tokio::test]
async fn the_wait_for_the_lock_is_told_and_can_be_given_up() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    case.run(&fake).await.result.unwrap();
    let before = fs::read(case.path()).unwrap();
    let holder = fs::File::open(case.path()).unwrap();
    holder.lock().unwrap();
    let cancel = CancelToken::new();
    let phases = Mutex::new(Vec::new());
    let on_phase = |phase| {
        phases.lock().unwrap().push(phase);
        if phase == Phase::WaitingForTheLock {
            cancel.cancel();
        }
    };
    let ledger = case.ledger();
    let mut plan = case.plan(&ledger, fake.options());
    plan.cancel = Some(cancel.clone());
    plan.on_phase = &on_phase;
    let start = Instant::now();
    let report = run(plan, &mut ()).await;
    assert!(start.elapsed() < Duration::from_secs(30), "not two minutes");
    let (side, fault) = aside(&report);
    assert!(matches!(fault, AppendFault::GivenUp));
    assert_eq!(failure(&report).reason(), Some("given_up"));
    let text = failure(&report).to_string();
    assert!(
        text.contains("it ran") && text.contains("kept in a side file"),
        "{text}"
    );
    assert_eq!(
        *phases.lock().unwrap(),
        [
            Phase::WaitingForTheRun,
            Phase::Signing,
            Phase::WaitingForTheLock
        ]
    );
    assert!(fs::read(case.path()).unwrap() == before);
    // Given up before the answer is appended, a lock that is free is taken.
    drop(holder);
    fs::remove_file(side).unwrap();
    let cancel = CancelToken::new();
    let on_phase = |phase| {
        if phase == Phase::Signing {
            cancel.cancel();
        }
    };
    let mut plan = case.plan(&ledger, fake.options());
    plan.cancel = Some(cancel.clone());
    plan.on_phase = &on_phase;
    run(plan, &mut ()).await.result.unwrap();
    assert_eq!(case.verify().records, 2);
}

#[tokio::test]
async fn a_bundle_that_lost_lines_while_the_code_ran() {
    type Change = fn(&Path, &[u8]);
    let cases: [(&str, Change, Option<usize>); 4] = [
        (
            "shrunk",
            |path, whole| fs::write(path, &whole[..cut(whole)]).unwrap(),
            Some(2),
        ),
        ("shrunk", |path, _| fs::write(path, b"").unwrap(), Some(0)),
        ("shrunk", |path, _| fs::remove_file(path).unwrap(), None),
        (
            "replaced",
            |path, _| fs::rename(path.with_extension("other"), path).unwrap(),
            Some(4),
        ),
    ];
    for (reason, change, lines) in cases {
        let case = Case::new();
        let good = Fake::start(honest).await;
        // Another bundle of the same key, as long.
        let ledger = case.ledger();
        for code in ["2", "3"] {
            let mut plan = case.plan(&ledger, good.options());
            plan.request = snippet(code);
            run(plan, &mut ()).await.result.unwrap();
        }
        let other = case.path().with_extension("other");
        fs::rename(case.path(), &other).unwrap();
        for _ in 0..2 {
            case.run(&good).await.result.unwrap();
        }
        let (path, whole) = (case.path(), fs::read(case.path()).unwrap());
        let fake = Fake::start(move |seen| {
            change(&path, &whole);
            honest(seen)
        })
        .await;
        let report = case.run(&fake).await;
        aside(&report);
        assert_eq!(failure(&report).reason(), Some(reason));
        let left = fs::read(case.path()).ok();
        let count = left.map(|bytes| bytes.iter().filter(|b| **b == b'\n').count());
        assert_eq!(count, lines, "{reason}: nothing is begun anew");
    }
}

/// Where the first two lines end.
fn cut(whole: &[u8]) -> usize {
    let mut ends = whole.iter().enumerate().filter(|(_, b)| **b == b'\n');
    ends.nth(1).unwrap().0 + 1
}

#[tokio::test]
async fn nothing_runs_where_its_record_could_find_no_place() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    symlink("made/by/none", case.path()).unwrap();
    let report = case.run(&fake).await;
    assert_eq!(
        (failure(&report).class(), failure(&report).reason()),
        (Class::Bundle, Some("link"))
    );
    assert!(failure(&report).to_string().ends_with("; nothing was run"));
    // A program that runs cannot be written, whoever asks: as a bundle of
    // another user, or on a read-only disk.
    let ledger = Ledger::new(std::env::current_exe().unwrap(), true);
    let report = run(case.plan(&ledger, fake.options()), &mut ()).await;
    assert_eq!(
        (failure(&report).class(), failure(&report).reason()),
        (Class::Io, Some("open"))
    );
    assert!(matches!(failure(&report).ran(), Ran::No { .. }));
    assert_eq!(fake.connections(), 0);
    assert_eq!(case.files(), ["runs.jsonl"], "no file behind the link");
}

#[tokio::test]
async fn artifacts_that_were_not_asked_for_are_not_written() {
    let case = Case::new();
    let fake = Fake::start(|seen| {
        let request: RunRequest = seen.message();
        let artifact = |path: &str| Artifact {
            path: path.into(),
            content: b"x".to_vec(),
        };
        Reply::proto(&support::answer_with(
            &request,
            RunResult::Project(Box::new(ProjectResult {
                artifacts: vec![artifact("a"), artifact("planted")],
                ..Default::default()
            })),
        ))
    })
    .await;
    let ledger = case.ledger();
    let folder = case.folder.path().join("out");
    let mut plan = case.plan(&ledger, fake.options());
    plan.request =
        json::read(br#"{"protocol":3,"project":{"steps":["true"],"artifacts":["a"]}}"#).unwrap();
    plan.save_artifacts = Some(folder.clone());
    let recorded = run(plan, &mut ()).await.result.unwrap();
    let error = recorded.saved.unwrap().unwrap_err();
    assert!(matches!(error, SaveError::NotAsked { .. }));
    assert_eq!(error.path(), Path::new("planted"));
    assert!(!folder.exists(), "nothing is left of the folder");
    assert_eq!(case.verify().records, 1, "it is recorded all the same");
    // Nor is a folder left of a run that failed.
    let silent = Fake::start(|_| Reply::drop_connection()).await;
    let mut plan = case.plan(&ledger, silent.options());
    plan.save_artifacts = Some(folder.clone());
    assert!(run(plan, &mut ()).await.result.is_err());
    assert!(!folder.exists());
}
