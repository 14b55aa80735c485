//! Many threads give the verdict, the fault and the order of one.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Seeded, Trace, json, long_bundle, mutate::mutated, public, signing, vector};
use plimsoll_attestation::{
    Fault, PublicKey,
    bundle::{Report, VerifyOptions, verify_with},
};

/// Verdict and trace with so many threads and bytes in a batch.
fn with(
    bundle: &[u8],
    keys: &[PublicKey],
    threads: usize,
    batch_bytes: Option<usize>,
) -> (Result<Report, Fault>, Trace) {
    let options = VerifyOptions {
        threads: Some(threads),
        batch_bytes,
    };
    let mut trace = Trace::default();
    let verdict = verify_with(bundle, keys, options, &mut trace);
    (verdict, trace)
}

/// Asserts that threads change nothing; gives the verdict.
fn same(bundle: &[u8], keys: &[PublicKey], what: &str) -> Result<Report, Fault> {
    let one = with(bundle, keys, 1, None);
    for (threads, batch) in [(2, Some(1)), (4, Some(6000)), (3, None)] {
        let many = with(bundle, keys, threads, batch);
        assert_eq!(one, many, "{what}, {threads} threads, batches of {batch:?}");
    }
    one.0
}

fn key(name: &str) -> [PublicKey; 1] {
    [public(name).prepared()]
}

#[test]
fn vectors() {
    for name in ["own-mixed", "sessions-linked", "sessions-v1"] {
        let bundle = vector(&format!("{name}.jsonl"));
        let right = key(&format!("{name}.pub"));
        let verdict = same(&bundle, &right, name);
        assert_eq!(verdict.is_ok(), name != "sessions-v1");
        for other in ["own-mixed.pub", "sessions-linked.pub"] {
            let _ = same(&bundle, &key(other), name);
        }
        let both = [public("sessions-linked.pub"), public("own-mixed.pub")];
        let _ = same(&bundle, &both, name);
        assert!(same(&bundle, &[], name).is_err());
    }
}

#[test]
fn bundle_cases() {
    let cases = json("bundle-cases.json");
    let cases = cases["cases"].as_array().unwrap();
    assert_eq!(cases.len(), 84);
    let keys = key("own-mixed.pub");
    for case in cases {
        let name = case["name"].as_str().unwrap();
        let verdict = same(case["bundle"].as_str().unwrap().as_bytes(), &keys, name);
        let class = verdict.map_or_else(|fault| fault.class().word(), |_| "ok");
        assert_eq!(class, case["expect"], "{name}");
    }
}

#[test]
fn two_thousand_mutants() {
    let bases = [
        (vector("own-mixed.jsonl"), key("own-mixed.pub")),
        (vector("sessions-linked.jsonl"), key("sessions-linked.pub")),
    ];
    let mut random = Seeded(0x51ed_270b_f00d_cafe);
    let mut refused = 0;
    let mut tried = 0;
    while tried < 2000 {
        let place = random.below(2);
        let (base, keys) = &bases[place];
        let Some(changed) = mutated(base, &bases[1 - place].0, &mut random) else {
            continue;
        };
        tried += 1;
        // Three ways for a part, one of them for each.
        let one = with(&changed, keys, 1, None);
        let (threads, batch) = [(2, Some(1)), (4, Some(6000)), (3, None)][tried % 3];
        let many = with(&changed, keys, threads, batch);
        assert_eq!(one, many, "mutant {tried}");
        refused += usize::from(one.0.is_err());
    }
    // What a writer once left as a whole bundle is the only accepted change.
    assert!(refused > 1950, "{refused}");
}

#[test]
fn long_bundles_with_faults_anywhere() {
    let key = signing();
    let bundle = long_bundle(&key, 300, 100);
    let keys = [key.public().prepared()];
    let report = same(&bundle, &keys, "good").unwrap();
    assert_eq!((report.lines, report.records), (330, 300));
    let mut random = Seeded(77);
    for n in 0..12 {
        let mut changed = bundle.clone();
        // Two faults: the first one counts.
        for _ in 0..2 {
            let at = random.below(changed.len());
            changed[at] ^= 1 << random.below(8);
        }
        changed.truncate(changed.len() - random.below(2) * 700);
        let fault = same(&changed, &keys, &format!("fault {n}")).unwrap_err();
        assert!(fault.line().is_some());
    }
}

#[test]
fn a_source_that_fails_fails_after_the_lines_before_it() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
        }
    }
    let key = signing();
    let bundle = long_bundle(&key, 100, 0);
    let keys = [key.public().prepared()];
    let run = |threads| {
        let source = std::io::Read::chain(&bundle[..bundle.len() / 2], Broken);
        let options = VerifyOptions {
            threads: Some(threads),
            batch_bytes: Some(1000),
        };
        let mut trace = Trace::default();
        let source = std::io::BufReader::new(source);
        (verify_with(source, &keys, options, &mut trace), trace)
    };
    let one = run(1);
    assert_eq!(one.0.as_ref().unwrap_err().class().word(), "io");
    assert!(one.1.0.len() > 50);
    assert_eq!(run(4), one);
}
