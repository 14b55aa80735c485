//! The process's file size limit. Alone in its process, which it changes.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::fs;

use case::{Case, failure};
use fake::Fake;
use plimsoll_attestation::bundle::Cut;
use plimsoll_client::Ran;
use plimsoll_harness::{Class, EmbeddedOptions, RunFailure, Target, failure::NotKept, run};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use support::honest;

fn limit(bytes: Option<u64>) {
    let limit = Rlimit {
        current: bytes,
        maximum: getrlimit(Resource::Fsize).maximum,
    };
    setrlimit(Resource::Fsize, limit).unwrap();
}

#[tokio::test]
async fn a_write_past_the_limit_is_a_failed_append() {
    let case = Case::new();
    let fake = Fake::start(honest).await;
    case.run(&fake).await.result.unwrap();
    let before = fs::read(case.path()).unwrap();

    // In the middle of the entry: the bundle is cut back, the entry is kept.
    limit(Some(before.len() as u64 + 100));
    let report = case.run(&fake).await;
    limit(None);
    let failed = failure(&report);
    assert_eq!((failed.class(), failed.ran()), (Class::NotKept, Ran::Yes));
    let RunFailure::NotKept {
        why: NotKept::Append(error),
        ..
    } = failed
    else {
        panic!("{failed}")
    };
    assert!(matches!(error.cut, Cut::Done));
    assert!(fs::read(case.path()).unwrap() == before);
    let side = error.kept.as_ref().unwrap();
    assert!(fs::read_to_string(side).unwrap().ends_with("}\n"));
    fs::remove_file(side).unwrap();

    // No room for the side file either: both are told, and no part is left.
    let new = Case::new();
    limit(Some(100));
    let report = new.run(&fake).await;
    limit(None);
    let text = failure(&report).to_string();
    assert_eq!(text.matches("File too large").count(), 2, "{text}");
    assert_eq!(new.files(), ["runs.jsonl"]);
    assert!(fs::read(new.path()).unwrap().is_empty());
    new.run(&fake).await.result.unwrap();

    // A child begins with the system's own rule: SIGXFSZ, 25, is not ignored.
    let mut options = EmbeddedOptions::new("wasm");
    options.program = "/bin/sh".into();
    let script = r#"grep SigIgn: /proc/$$/status >&2
        echo '{"msg":"plimsolld listening","addr":"127.0.0.1:PORT"}' >&2; exec cat >/dev/null"#;
    let script = script.replace("PORT", &fake.port.to_string());
    options.arguments = vec!["-c".into(), script.into()];
    let ledger = case.ledger();
    let mut plan = case.plan(&ledger, fake.options());
    plan.target = Target::Embedded(options);
    let report = run(plan, &mut ()).await;
    report.result.unwrap();
    let log = report.embedded.unwrap().log;
    let line = log
        .lines()
        .find(|line| line.starts_with("SigIgn:"))
        .unwrap();
    let mask = u64::from_str_radix(line.split_whitespace().nth(1).unwrap(), 16).unwrap();
    assert_eq!(mask & 1 << (25 - 1), 0, "{line}");
}
