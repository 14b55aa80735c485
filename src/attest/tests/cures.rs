//! Each refusal carries what the advice for it needs.
#![allow(clippy::unwrap_used)]

mod common;

use common::{check, json, lines, public, stranger, vector};
use plimsoll_attestation::{
    Fault, base64,
    bundle::Call,
    statement::{Unverified, read_unverified, run_record},
};

#[test]
fn refusals_carry_what_their_cures_need() {
    let key = public("own-mixed.pub");
    let bundle = vector("own-mixed.jsonl");
    let text = String::from_utf8(bundle.clone()).unwrap();
    let fault = |bundle: &[u8]| check(bundle, &key).unwrap_err();
    let words = |fault: &Fault| (fault.class().word(), fault.reason().word(), fault.line());

    let crlf = text.replace('\n', "\r\n");
    let found = fault(crlf.as_bytes());
    assert_eq!(words(&found), ("line", "carriage_return", Some(1)));
    let end = crlf.find('\r').unwrap() as u64;
    assert_eq!(found.bytes(), Some(end..end + 1));

    let found = fault(&bundle[..bundle.len() - 1]);
    assert_eq!(words(&found), ("line", "no_newline", Some(11)));
    assert_eq!(found.last_checkpoint(), Some(4));
    assert_eq!(found.bytes().unwrap().end, bundle.len() as u64 - 1);

    let all = lines(&bundle);
    let cut: usize = all[..6].iter().map(|line| line.len() + 1).sum();
    let found = fault(&bundle[..cut]);
    assert_eq!(words(&found), ("incomplete", "no_checkpoint", Some(6)));
    assert_eq!(found.last_checkpoint(), Some(4));

    let found = fault(&vector("sessions-v1.jsonl"));
    assert_eq!(words(&found), ("link", "missing", Some(1)));

    let found = check(&bundle, stranger().public()).unwrap_err();
    assert_eq!(words(&found), ("signature", "other_key", Some(1)));
    assert_eq!(found.expected_value(), Some(stranger().public().id()));
    assert_eq!(found.found_value(), Some(key.id()));
    assert_eq!(found.member(), Some("link.signatures"));

    let blank = text.replacen('\n', "\n\n", 1);
    assert_eq!(words(&fault(blank.as_bytes())), ("line", "blank", Some(2)));

    let cases = json("bundle-cases.json");
    let all_cases = cases["cases"].as_array().unwrap();
    let case = |name: &str| {
        let case = all_cases.iter().find(|case| case["name"] == name).unwrap();
        fault(case["bundle"].as_str().unwrap().as_bytes())
    };
    let found = case("request in URL-safe base64");
    assert_eq!(found.reason().word(), "url_safe");
    assert_eq!(found.member(), Some("request"));
    assert_eq!(case("a byte order mark").reason().word(), "byte_order_mark");
    assert_eq!(
        case("members in another order").reason().word(),
        "member_order"
    );
    assert_eq!(case("a trailing space").reason().word(), "space");
    assert_eq!(case("an unknown member").reason().word(), "unknown_member");
    assert_eq!(case("a repeated member").reason().word(), "repeated_member");
    let found = case("last session call missing before the close");
    assert_eq!(found.member(), Some("envelope.payload.predicate.calls"));
    assert_eq!(
        (found.expected_value(), found.found_value()),
        (Some("2"), Some("3"))
    );
    assert!(found.bytes().is_some());

    // The last line's own signature, encoded once more and in the other alphabet.
    let last = *all.last().unwrap();
    let value: serde_json::Value = serde_json::from_slice(last).unwrap();
    let sig = value["link"]["signatures"][0]["sig"].as_str().unwrap();
    let twice = text.replace(sig, &base64::encode(sig.as_bytes()));
    let found = fault(twice.as_bytes());
    assert_eq!(words(&found), ("signature", "encoded_twice", Some(11)));
    assert_eq!(found.member(), Some("link.signatures[0].sig"));
    let url = sig.replace('+', "-").replace('/', "_");
    assert_ne!(url, sig);
    assert_eq!(
        words(&fault(text.replace(sig, &url).as_bytes())),
        ("signature", "url_safe", Some(11))
    );
    // A value of megabytes is kept by its beginning only.
    let key_id = "k".repeat(1 << 20);
    let long = text.replace(key.id(), &key_id);
    assert!(fault(long.as_bytes()).found_value().unwrap().len() < 1100);
}

#[test]
fn showing_without_verifying() {
    let bundle = vector("own-mixed.jsonl");
    let mut kinds = String::new();
    for line in lines(&bundle) {
        let line = plimsoll_attestation::Line::decode(line).unwrap();
        let entry = line.envelope.as_ref().or(line.link.as_ref()).unwrap();
        kinds.push(
            match read_unverified(&entry.payload_bytes().unwrap()).unwrap() {
                Unverified::Record(record) => {
                    let text = run_record::predicate(&record);
                    assert_eq!(
                        run_record::from_predicate(text.as_bytes()).unwrap(),
                        *record
                    );
                    'r'
                }
                Unverified::Close(_) => 'c',
                Unverified::Link(_) => 'l',
                Unverified::Other(_) => 'o',
            },
        );
    }
    assert_eq!(kinds, "rrrlrcrrcrl");
    assert!(run_record::from_predicate(b"{}x").is_err());
    struct Count(u64);
    impl plimsoll_attestation::bundle::Visitor for Count {
        fn call(&mut self, call: &Call<'_>) {
            assert_eq!(call.is_single_run(), call.record.sequence == 0);
            self.0 += 1;
        }
    }
    let mut both = (Count(0), Count(0));
    common::check_with(&bundle, &public("own-mixed.pub"), &mut &mut both).unwrap();
    assert_eq!((both.0.0, both.1.0), (7, 7));
}
