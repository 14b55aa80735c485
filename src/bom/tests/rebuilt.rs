//! Whatever is built passes its check, and nothing else does.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{
    both::{check, check_attached},
    build,
    make::{Shape, runs, session},
    signing, stranger,
    tamper::parsed,
};
use plimsoll_bom::{
    Attach, Bom, BomError, Bundle, Code, ImageName, Memory, Options, Scope, Selection, SpecVersion,
};
use proptest::prelude::*;

fn shapes() -> impl Strategy<Value = Vec<Shape>> {
    let hex = "[0-9a-f]{64}";
    let word = prop_oneof![Just(String::new()), ".{0,12}".prop_map(|t: String| t)];
    let environment = prop_oneof![
        Just(String::new()),
        hex.prop_map(|h| format!("docker-image:sha256:{h}")),
        hex.prop_map(|h| format!("wasm-module:sha256:{h}")),
        word.clone(),
    ];
    let software = prop_oneof![
        Just(String::new()),
        hex.prop_map(|h| format!("oci-manifest:linux/arm/v7@sha256:{h}")),
        word.clone(),
    ];
    let tier = prop_oneof![
        Just("process"),
        Just("kernel"),
        Just("vm"),
        Just("none"),
        Just("odd")
    ];
    let one = (
        (0u8..4, "(?s).{0,40}", 0usize..4, 0usize..3, any::<i32>()),
        ("[a-z<&`|\u{202e}]{1,8}", tier, environment, software, word),
        (any::<bool>(), 0i64..253_402_300_000_000),
    );
    let one = one.prop_map(
        |((kind, text, files, steps, exit_code), stated, (unanswered, started_unix_ms))| {
            let (provider, isolation, environment, software, policy) = stated;
            Shape {
                kind,
                text,
                files,
                steps,
                exit_code,
                provider,
                isolation: isolation.to_owned(),
                environment,
                software,
                policy,
                unanswered,
                started_unix_ms,
            }
        },
    );
    proptest::collection::vec(one, 1..5)
}

fn options() -> impl Strategy<Value = Options> {
    (any::<bool>(), any::<bool>(), any::<bool>()).prop_map(|(envelope, named, newer)| Options {
        attach: if envelope {
            Attach::Envelope
        } else {
            Attach::Line
        },
        image_name: named.then(|| ImageName::parse("docker.io/library/node").unwrap()),
        spec_version: if newer {
            SpecVersion::V1_7
        } else {
            SpecVersion::V1_6
        },
        ..Options::default()
    })
}

/// Builds, checks both ways, and gives the BOM.
fn round_trip(bundle: &[u8], selection: &Selection, options: &Options) -> Vec<u8> {
    let key = signing().public().clone();
    let bom = build(bundle, &key, selection, options).unwrap();
    assert_eq!(bom, build(bundle, &key, selection, options).unwrap());
    let store = Memory(bundle);
    let verified = Bundle::verify(&store, bundle, &key, &mut |_| {}).unwrap();
    let checked = check(&bom, &key, &verified).unwrap();
    match options.attach {
        Attach::Line => {
            let mut alone = check_attached(&bom, &key).unwrap();
            assert!(std::mem::take(&mut alone.attached));
            assert_eq!(alone, checked);
        }
        Attach::Envelope => {
            assert_eq!(
                check_attached(&bom, &key).unwrap_err().code(),
                "attachment_missing"
            );
        }
    }
    let other = check(&bom, stranger().public(), &verified);
    assert_eq!(other.unwrap_err().code(), "key_mismatch");
    let value = parsed(&bom);
    let again = serde_json::to_string_pretty(&value).unwrap() + "\n";
    assert_eq!(
        again.as_bytes(),
        bom,
        "the sorted JSON writer gives the same text"
    );
    assert_eq!(value["serialNumber"], checked.serial_number);
    bom
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_run_is_rebuilt(shapes in shapes(), options in options()) {
        let bundle = runs(&signing(), &shapes);
        for line in 1..=shapes.len() as u64 {
            round_trip(&bundle, &Selection::Line(line), &options);
        }
        let only = build(&bundle, signing().public(), &Selection::Only, &options);
        match shapes.len() {
            1 => prop_assert!(only.is_ok()),
            _ => prop_assert_eq!(only.unwrap_err().code(), "many_runs"),
        }
    }

    #[test]
    fn a_session_is_rebuilt(shapes in shapes(), options in options()) {
        let (bundle, fingerprint) = session(&signing(), shapes);
        round_trip(&bundle, &Selection::Session(fingerprint), &options);
        round_trip(&bundle, &Selection::Line(1), &options);
    }

    /// Any changed byte is refused, whatever it is.
    #[test]
    fn a_changed_byte_is_refused(place in any::<prop::sample::Index>(), flip in 1u8..) {
        let (bundle, fingerprint) = session(&signing(), [Shape {
            kind: 1, text: "x".to_owned(), files: 1, steps: 1, provider: "docker".to_owned(),
            isolation: "kernel".to_owned(), ..Shape::default()
        }]);
        let key = signing().public().clone();
        let mut bom = build(&bundle, &key, &Selection::Session(fingerprint), &Options::default()).unwrap();
        let at = place.index(bom.len());
        bom[at] ^= flip;
        let store = Memory(&bundle);
        let verified = Bundle::verify(&store, bundle.as_slice(), &key, &mut |_| {}).unwrap();
        prop_assert!(check(&bom, &key, &verified).is_err());
        prop_assert!(check_attached(&bom, &key).is_err());
    }
}

fn snippet() -> Shape {
    Shape {
        text: "1".to_owned(),
        provider: "wasm".to_owned(),
        isolation: "process".to_owned(),
        ..Shape::default()
    }
}

#[test]
fn a_claim_names_the_weakest_tier() {
    let with = |tier: &str| Shape {
        isolation: tier.to_owned(),
        ..snippet()
    };
    for (tiers, weakest) in [
        (["vm", "kernel", "vm"], "kernel"),
        (["kernel", "none", "process"], "none"),
        (["kernel", "strongest", "none"], "strongest"),
        (["vm", "vm", "vm"], "vm"),
    ] {
        let (bundle, fingerprint) = session(&signing(), tiers.map(with));
        let selection = Selection::Session(fingerprint);
        let bom = parsed(&round_trip(&bundle, &selection, &Options::default()));
        let claim = &bom["declarations"]["claims"][0]["predicate"];
        assert_eq!(claim, &format!("isolation-tier={weakest}"));
    }
}

#[test]
fn times_outside_of_what_a_bom_can_state_are_refused() {
    for started_unix_ms in [-8, 253_402_300_799_993, i64::MAX - 7] {
        let shape = Shape {
            started_unix_ms,
            ..snippet()
        };
        let bundle = runs(&signing(), &[shape]);
        let built = build(
            &bundle,
            signing().public(),
            &Selection::Only,
            &Options::default(),
        );
        assert_eq!(built.unwrap_err().code(), "time_range", "{started_unix_ms}");
    }
    let last = Shape {
        started_unix_ms: 253_402_300_799_992,
        ..snippet()
    };
    let bundle = runs(&signing(), &[last]);
    round_trip(&bundle, &Selection::Only, &Options::default());
}

#[test]
fn a_line_too_large_to_attach_is_refused_and_its_envelope_is_not() {
    let shape = Shape {
        text: "x".repeat(5000),
        ..snippet()
    };
    let bundle = runs(&signing(), &[shape]);
    let mut options = Options {
        max_attach: 5000,
        ..Options::default()
    };
    let key = signing().public().clone();
    match build(&bundle, &key, &Selection::Only, &options) {
        Err(BomError::Refused(refusal)) => {
            assert_eq!((refusal.code, refusal.line), (Code::TooLarge, Some(1)));
        }
        other => panic!("{other:?}"),
    }
    options.attach = Attach::Envelope;
    round_trip(&bundle, &Selection::Only, &options);
}

#[test]
fn a_bundle_that_grew_still_gives_its_bom() {
    let key = signing();
    let first = runs(&key, &[snippet()]);
    let grown = runs(&key, &[snippet(), snippet()]);
    let bom = build(&first, key.public(), &Selection::Only, &Options::default()).unwrap();
    let store = Memory(&grown);
    // The first line is the same in both: signatures are deterministic.
    let verified = Bundle::verify(&store, grown.as_slice(), key.public(), &mut |_| {}).unwrap();
    assert_eq!(check(&bom, key.public(), &verified).unwrap().lines, [1]);
}

#[test]
fn one_line_of_a_file_that_is_still_being_written() {
    let key = signing();
    let whole = runs(&key, &[snippet(), snippet()]);
    let cut = whole.iter().position(|b| *b == b'\n').unwrap() + 1;
    let cut = &whole[..cut + 40];
    let store = Memory(cut);
    let options = Options::default();
    let whole_fails = Bundle::verify(&store, cut, key.public(), &mut |_| {})
        .err()
        .unwrap();
    assert_eq!(whole_fails.code(), "line");
    let bundle = Bundle::verify_line(&store, cut, key.public(), 1).unwrap();
    let subject = bundle.select(&Selection::Line(1)).unwrap();
    let bom = Bom::new(&bundle, &subject, key.public(), &options).unwrap();
    let text = bom.to_vec().unwrap();
    assert_eq!(text.len() as u64, bom.length());
    let checked = check(&text, key.public(), &bundle).unwrap();
    assert_eq!(checked.scope, Scope::Line);
    let mut alone = check_attached(&text, key.public()).unwrap();
    assert!(std::mem::take(&mut alone.attached));
    assert_eq!(alone, checked);
    let none = Bundle::verify_line(&store, cut, key.public(), 0)
        .err()
        .unwrap();
    assert_eq!(none.code(), "no_runs");
}

#[test]
fn a_bundle_that_changes_after_it_was_verified_gives_no_bom() {
    use plimsoll_bom::{LineRef, Store};
    use std::{borrow::Cow, cell::Cell, io};

    /// Gives the right bytes so many times, then others.
    struct Swapped<'a>(&'a [u8], Cell<u32>);
    impl Store for Swapped<'_> {
        fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>> {
            let left = self.1.get();
            self.1.set(left.saturating_sub(1));
            let mut bytes = Memory(self.0).read(line)?.into_owned();
            if left == 0 {
                bytes[20] ^= 1;
            }
            Ok(bytes.into())
        }
    }

    let key = signing();
    let bundle = runs(&key, &[snippet()]);
    let options = Options::default();
    for reads in 0..4 {
        let store = Swapped(&bundle, Cell::new(reads));
        let verified =
            Bundle::verify(&store, bundle.as_slice(), key.public(), &mut |_| {}).unwrap();
        let built = verified
            .select(&Selection::Only)
            .and_then(|subject| Bom::new(&verified, &subject, key.public(), &options)?.to_vec());
        // One read for the selection, one for each of the three passes.
        assert!(matches!(built, Err(BomError::Read(_))), "after {reads}");
    }
}
