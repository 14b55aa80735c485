//! No change of a good bundle is accepted, and none makes the verifier panic.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{Known, Seeded, check, json, mutate::mutated, public, vector};
use plimsoll_attestation::PublicKey;

/// Every bit takes minutes without optimisation; a debug build takes every
/// 331st, which is coprime to 8 and so meets every bit of a byte.
const BIT_STEP: usize = if cfg!(debug_assertions) { 331 } else { 1 };

#[test]
fn no_flipped_bit_is_accepted() {
    let key = public("sessions-linked.pub");
    let known = Known::new(vector("sessions-linked.jsonl"), &key);
    let bits = known.bundle.len() * 8;
    assert_eq!(bits, 152_776);
    let mut changed = known.bundle.clone();
    for bit in (0..bits).step_by(BIT_STEP) {
        changed[bit / 8] ^= 1 << (bit % 8);
        let verdict = known.verify_changed(&changed, &key);
        changed[bit / 8] ^= 1 << (bit % 8);
        assert!(verdict.is_err(), "bit {bit}");
    }
}

#[test]
fn checking_from_the_first_change_is_checking_the_whole() {
    let key = public("sessions-linked.pub");
    let known = Known::new(vector("sessions-linked.jsonl"), &key);
    let mut random = Seeded(3);
    for _ in 0..40 {
        let mut changed = known.bundle.clone();
        let at = random.below(changed.len());
        changed[at] ^= 1 << random.below(8);
        assert_eq!(known.verify_changed(&changed, &key), check(&changed, &key));
    }
    assert_eq!(
        known.verify_changed(&known.bundle, &key),
        check(&known.bundle, &key)
    );
}

struct Base {
    known: Known,
    key: PublicKey,
}

#[test]
fn no_mutation_is_accepted() {
    let base = |bundle: Vec<u8>, key: &str| {
        let key = public(key);
        Base {
            known: Known::new(bundle, &key),
            key,
        }
    };
    let cases = json("bundle-cases.json");
    let case = |name: &str| {
        let all = cases["cases"].as_array().unwrap();
        let found = all.iter().find(|case| case["name"] == name).unwrap();
        found["bundle"].as_str().unwrap().as_bytes().to_vec()
    };
    let bases = [
        base(vector("own-mixed.jsonl"), "own-mixed.pub"),
        base(vector("sessions-linked.jsonl"), "sessions-linked.pub"),
        base(case("two sessions interleaved"), "own-mixed.pub"),
        base(case("resumed bundle: two checkpoints"), "own-mixed.pub"),
        base(case("an unanswered call and its close"), "own-mixed.pub"),
    ];
    // What a writer once left as a whole bundle verifies, and is not a mutation.
    let wholes: Vec<Vec<u8>> = bases
        .iter()
        .flat_map(|base| {
            let bytes = &base.known.bundle;
            let ends = bytes.iter().enumerate().filter(|(_, b)| **b == b'\n');
            ends.map(|(at, _)| bytes[..=at].to_vec())
                .filter(|prefix| check(prefix, &base.key).is_ok())
                .collect::<Vec<_>>()
        })
        .collect();
    assert_eq!(wholes.len(), 7);
    let mut random = Seeded(0x9e37_79b9_7f4a_7c15);
    let mut tried = 0;
    while tried < 2000 {
        let base = &bases[random.below(bases.len())];
        let other = &bases[random.below(bases.len())];
        let changed = mutated(&base.known.bundle, &other.known.bundle, &mut random);
        let Some(changed) = changed.filter(|changed| !wholes.contains(changed)) else {
            continue;
        };
        tried += 1;
        let verdict = base.known.verify_changed(&changed, &base.key);
        let Err(fault) = verdict else {
            panic!(
                "mutation {tried} is accepted: {}",
                String::from_utf8_lossy(&changed)
            );
        };
        // Bytes of a file are named within it.
        if let Some(bytes) = fault.bytes() {
            assert!(bytes.start <= changed.len() as u64, "{fault:?}");
        }
    }
}

#[test]
fn hostile_files_end_early() {
    let key = public("own-mixed.pub");
    let word = |bundle: &[u8]| {
        let fault = check(bundle, &key).unwrap_err();
        (fault.class().word(), fault.reason().word(), fault.line())
    };
    assert_eq!(
        word(&b"{}\n".repeat(1_000_000)),
        ("link", "missing", Some(1))
    );
    assert_eq!(word(&[b'['; 1 << 20]), ("line", "no_newline", Some(1)));
    let deep = [br#"{"envelope":"#.repeat(1 << 16), b"\n".to_vec()].concat();
    assert_eq!(word(&deep).0, "line");
    let arrays = [b"{\"link\":".to_vec(), vec![b'['; 1 << 20], b"\n".to_vec()].concat();
    assert_eq!(word(&arrays).0, "line");
    assert_eq!(word(b"\n"), ("line", "blank", Some(1)));
    assert_eq!(word(b"\r\n"), ("line", "carriage_return", Some(1)));
    assert_eq!(word(b"\xff\n"), ("line", "not_utf8", Some(1)));
    assert_eq!(word(b"null\n"), ("line", "wrong_type", Some(1)));
    assert_eq!(word(b"x\n"), ("line", "syntax", Some(1)));
    assert_eq!(word(b""), ("incomplete", "empty", Some(0)));
}

#[test]
fn a_line_has_a_largest_size() {
    use std::io::{BufReader, Read as _};
    let key = public("own-mixed.pub");
    let endless = BufReader::new(std::io::repeat(b' ').take(1 << 40));
    let fault = plimsoll_attestation::bundle::verify(endless, &[key], &mut ()).unwrap_err();
    assert_eq!((fault.reason().word(), fault.line()), ("too_long", Some(1)));
}

#[test]
fn a_source_that_fails_is_no_verdict() {
    struct Broken;
    impl std::io::Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::Error::from(std::io::ErrorKind::ConnectionReset))
        }
    }
    let key = public("own-mixed.pub");
    let bundle = vector("own-mixed.jsonl");
    let source = std::io::BufReader::new(std::io::Read::chain(&bundle[..9000], Broken));
    let fault = plimsoll_attestation::bundle::verify(source, &[key], &mut ()).unwrap_err();
    assert_eq!(fault.class().word(), "io");
}
