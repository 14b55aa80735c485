//! Runs that are not signed: what is refused, what may have run, what is said.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "support/case.rs"]
mod case;
#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{fs, os::unix::fs::PermissionsExt, path::PathBuf};

use case::{Case, failure};
use fake::{Echo, Fake, Reply};
use plimsoll_attestation::SigningKey;
use plimsoll_client::{BaseUrl, Options, Ran};
use plimsoll_harness::{Class, Ledger, run};
use plimsoll_wire::{Reason, proto::RunRequest};
use support::{answer, honest};

#[tokio::test]
async fn nothing_is_contacted_before_the_bundle_check() {
    let fake = Fake::start(honest).await;
    let other = Case::new();
    other.run(&fake).await.result.unwrap();
    let foreign = fs::read(other.path()).unwrap();
    let torn = foreign[..foreign.len() - 1].to_vec();
    let first_line = foreign.iter().position(|b| *b == b'\n').unwrap() + 1;
    let unsealed = foreign[..first_line].to_vec();
    for (content, key) in [
        (foreign.clone(), SigningKey::generate().unwrap()),
        (
            torn,
            SigningKey::from_pem(other.key.to_pem().as_bytes()).unwrap(),
        ),
        (
            unsealed,
            SigningKey::from_pem(other.key.to_pem().as_bytes()).unwrap(),
        ),
        (b"hello\n".to_vec(), SigningKey::generate().unwrap()),
    ] {
        let case = Case { key, ..Case::new() };
        fs::write(case.path(), &content).unwrap();
        fs::set_permissions(case.path(), fs::Permissions::from_mode(0o600)).unwrap();
        let before = fake.connections();
        let report = case.run(&fake).await;
        assert_eq!(failure(&report).class(), Class::Bundle);
        assert!(matches!(failure(&report).ran(), Ran::No { .. }));
        assert!(failure(&report).to_string().ends_with("; nothing was run"));
        assert_eq!(fs::read(case.path()).unwrap(), content);
        assert_eq!(fake.connections(), before, "no connection attempted");
    }
    // Permissions, and their exception.
    fs::set_permissions(other.path(), fs::Permissions::from_mode(0o640)).unwrap();
    let report = other.run(&fake).await;
    assert_eq!(
        (failure(&report).class(), failure(&report).reason()),
        (Class::Bundle, Some("permissions"))
    );
    let shared = Ledger::new(other.path(), true);
    let report = run(other.plan(&shared, fake.options()), &mut ()).await;
    assert!(report.result.is_ok());
    let mode = fs::metadata(other.path()).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode, 0o640, "the mode is never changed");
    // A directory, a folder that is not there, and a path without a name.
    let before = fake.connections();
    for path in [
        other.folder.path().to_owned(),
        PathBuf::from("/nowhere/runs.jsonl"),
        PathBuf::from(".."),
    ] {
        let ledger = Ledger::new(&path, false);
        let report = run(other.plan(&ledger, fake.options()), &mut ()).await;
        let class = failure(&report).class();
        assert!(
            matches!(class, Class::Bundle | Class::Io),
            "{path:?}: {class:?}"
        );
    }
    assert_eq!(fake.connections(), before);
}

#[tokio::test]
async fn a_closed_port() {
    let case = Case::new();
    let port = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap().port()
    };
    let options = Options::new(BaseUrl::parse(&format!("http://127.0.0.1:{port}")).unwrap());
    let ledger = case.ledger();
    let report = run(case.plan(&ledger, options), &mut ()).await;
    let failure = failure(&report);
    assert_eq!(failure.class(), Class::Unreachable);
    assert!(
        failure
            .to_string()
            .contains("nothing was sent, nothing was run")
    );
    assert!(case.files().is_empty(), "no bundle is made");
}

#[tokio::test]
async fn each_of_the_seven_reasons() {
    let case = Case::new();
    for (reason, value) in Reason::SENT
        .into_iter()
        .zip(["CAE", "CAI", "CAM", "CAQ", "CAU", "CAY", "CAc"])
    {
        let body = format!(
            r#"{{"code":"unavailable","message":"no","details":[{{"type":"plimsoll.v1.NotDispatched","value":"{value}"}}]}}"#
        );
        let fake = Fake::start(move |_| Reply::error(503, &body)).await;
        let report = case.run(&fake).await;
        let failure = failure(&report);
        assert_eq!(failure.class(), Class::NotDispatched);
        assert_eq!(failure.reason(), Some(reason.name()));
        assert_eq!(failure.ran(), Ran::No { reason });
        assert!(failure.to_string().contains("nothing was run"));
    }
    assert!(case.files().is_empty());
}

#[tokio::test]
async fn what_may_have_run_is_never_signed() {
    let case = Case::new();
    let good = Fake::start(honest).await;
    case.run(&good).await.result.unwrap();
    let before = fs::read(case.path()).unwrap();
    type Handler = fn(&fake::Seen) -> Reply;
    let cases: [(&str, Handler, Class); 7] = [
        ("dropped", |_| Reply::drop_connection(), Class::MayHaveRun),
        (
            "unmarked",
            |_| Reply::error(500, r#"{"code":"internal"}"#),
            Class::MayHaveRun,
        ),
        (
            "no record",
            |seen| {
                let mut response = answer(&seen.message());
                response.record = Default::default();
                Reply::proto(&response)
            },
            Class::Unchecked,
        ),
        (
            "wrong digest",
            |seen| {
                let mut response = answer(&seen.message());
                response.record.as_option_mut().unwrap().result_sha256 = "0".repeat(64);
                Reply::proto(&response)
            },
            Class::Unchecked,
        ),
        (
            "not bound",
            |seen| honest(seen).echo(Echo::None),
            Class::Unchecked,
        ),
        (
            "refusal not bound",
            |_| {
                Reply::error(429, r#"{"code":"resource_exhausted","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAY"}]}"#)
                .echo(Echo::Is("00".repeat(16)))
            },
            Class::Unchecked,
        ),
        ("no message", |_| Reply::bytes(vec![0xff]), Class::Unchecked),
    ];
    for (what, handler, class) in cases {
        let fake = Fake::start(handler).await;
        let report = case.run(&fake).await;
        let failure = failure(&report);
        assert_eq!(
            (failure.class(), failure.ran()),
            (class, Ran::Maybe),
            "{what}"
        );
        assert!(
            failure.to_string().contains("may have run"),
            "{what}: {failure}"
        );
        assert_eq!(fake.connections(), 1, "{what}: never sent twice");
    }
    assert_eq!(fs::read(case.path()).unwrap(), before);
    assert_eq!(case.files(), ["runs.jsonl"]);
}

#[tokio::test]
async fn a_tier_below_the_floor_is_not_signed() {
    let case = Case::new();
    let fake = Fake::start(|seen| {
        let mut lower: RunRequest = seen.message();
        lower.minimum_isolation = "vm".into();
        Reply::proto(&answer(&lower))
    })
    .await;
    let ledger = case.ledger();
    let mut plan = case.plan(&ledger, fake.options());
    plan.request.minimum_isolation = "vm".into();
    let report = run(plan, &mut ()).await;
    assert_eq!(failure(&report).class(), Class::Unchecked);
    assert!(case.files().is_empty());
}
