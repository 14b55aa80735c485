//! Published and own bundles give their verdicts.

mod common;

use common::{check, json, lines, public, vector};
use plimsoll_attestation::{
    Class, Line,
    statement::{run_record, session_close},
};

#[test]
fn published_linked_bundle() {
    let key = public("sessions-linked.pub");
    assert_eq!(
        key.id(),
        "84338813b9ce78aa6c11cf59c1b5ef11f73971080b04c256a226fdded0afac50"
    );
    let report = check(&vector("sessions-linked.jsonl"), &key).unwrap();
    assert_eq!(
        (report.lines, report.records, report.single_runs),
        (7, 5, 0)
    );
    assert_eq!(report.key_id, key.id());
    assert_eq!(report.checkpoints, [7]);
    let [session] = report.sessions.as_slice() else {
        panic!("one session")
    };
    assert!(session.session.starts_with("c92f06904dda"));
    assert_eq!(
        (session.calls, session.unanswered, session.closed),
        (5, 0, true)
    );
}

#[test]
fn published_bundle_without_links() {
    let key = public("sessions-v1.pub");
    let bundle = vector("sessions-v1.jsonl");
    let fault = check(&bundle, &key).unwrap_err();
    assert_eq!((fault.class(), fault.line()), (Class::Link, Some(1)));
    assert_eq!(fault.reason().word(), "missing");
    let lines = lines(&bundle);
    let (close, records) = lines.split_last().unwrap();
    assert_eq!(records.len(), 5);
    for line in records {
        let line = Line::decode(line).unwrap();
        let record = run_record::open(line.envelope.as_ref().unwrap(), &key).unwrap();
        assert_eq!(record.version, 1);
    }
    let close = Line::decode(close).unwrap();
    let close = session_close::open(close.envelope.as_ref().unwrap(), &key).unwrap();
    assert_eq!(close.calls, 5);
}

#[test]
fn own_mixed_bundle() {
    let key = public("own-mixed.pub");
    let bundle = vector("own-mixed.jsonl");
    let report = check(&bundle, &key).unwrap();
    assert_eq!(
        (report.lines, report.records, report.single_runs),
        (11, 7, 4)
    );
    assert_eq!(report.unanswered, 1);
    assert_eq!(report.bytes, bundle.len() as u64);
    assert_eq!(report.checkpoints, [4, 11]);
    let calls: Vec<u64> = report.sessions.iter().map(|s| s.calls).collect();
    assert_eq!(calls, [3, 0]);
    assert_eq!(report.closes(), 2);
    assert_eq!(
        report.first_line.unwrap().to_hex(),
        "6879736bc93ccb516f84012b68d8a6982499a14b088f2e689ad8e21a3cc49166"
    );
    let last = plimsoll_attestation::base64::encode(report.last_line.unwrap().as_bytes());
    assert_eq!(last, "0BKJGtCOTMKipHDzZNQThaN6hhvzcFmmxg9ejiZEMbE=");
}

#[test]
fn every_bundle_case_gives_its_verdict() {
    let key = public("own-mixed.pub");
    let cases = json("bundle-cases.json");
    let cases = cases["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 84);
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let verdict = check(case["bundle"].as_str().unwrap().as_bytes(), &key);
        let class = verdict.as_ref().map_or_else(|f| f.class().word(), |_| "ok");
        assert_eq!(class, case["expect"], "{name}: {verdict:?}");
        if let (Err(fault), Some(line)) = (&verdict, case["line"].as_u64()) {
            assert_eq!(fault.line(), Some(line), "{name}: {verdict:?}");
        }
    }
}
