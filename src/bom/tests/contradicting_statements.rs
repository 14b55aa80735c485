//! Statements of a receipt that the right key signed and the evidence
//! contradicts.
#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used)]

mod common;

use common::{
    both::{check, check_attached},
    example, key, signing,
    tamper::{RECEIPT, attach, attached, bom, codes, file_form, resealed},
};
use plimsoll_attestation::{base64, own};
use plimsoll_bom::{Bundle, Memory};
use plimsoll_record::Digest;
use serde_json::Value;

const TEST_RESULT: &str = "statement:test-result";
const STATEMENT: &str = "statement:pr-receipt";

fn payload(reference: &str) -> String {
    let envelope = attached(&mut bom(RECEIPT), reference);
    let envelope: Value = serde_json::from_slice(&envelope).unwrap();
    let payload = base64::decode(envelope["payload"].as_str().unwrap()).unwrap();
    String::from_utf8(payload).unwrap()
}

/// Both statements' envelopes, signed by the example's own key.
fn envelopes(test_result: &str, receipt: &str) -> [String; 2] {
    let test_result = own::OwnStatement::from_payload(test_result.into()).unwrap();
    let receipt = own::receipt_statement(receipt.into()).unwrap();
    [test_result, receipt].map(|statement| statement.sign(&signing()).to_json())
}

/// The example with other statements.
fn signed(test_result: &str, receipt: &str) -> Vec<u8> {
    let mut changed = bom(RECEIPT);
    let envelopes = envelopes(test_result, receipt);
    for (reference, envelope) in [TEST_RESULT, STATEMENT].into_iter().zip(envelopes) {
        attach(&mut changed, reference, envelope.as_bytes());
    }
    file_form(&resealed(changed))
}

/// The code that building a BOM of these statements ends with.
fn built(test_result: &str, receipt: &str) -> &'static str {
    let bundle = example("3-pr-receipt.bundle.jsonl");
    let (store, key) = (Memory(&bundle), key());
    let verified = Bundle::verify(&store, bundle.as_slice(), &key, &mut |_| {}).unwrap();
    let [test_result, receipt] = envelopes(test_result, receipt);
    match verified.receipt(&key, test_result.as_bytes(), receipt.as_bytes()) {
        Ok(_) => "built",
        Err(error) => error.code(),
    }
}

fn edited(text: &str, from: &str, to: &str) -> String {
    assert!(text.contains(from), "{from} is not there");
    text.replacen(from, to, 1)
}

#[test]
fn the_statements_signed_again_are_accepted() {
    let (test_result, receipt) = (payload(TEST_RESULT), payload(STATEMENT));
    let text = signed(&test_result, &receipt);
    assert_eq!(codes(RECEIPT, &text), ("accepted", "accepted"));
    assert_eq!(built(&test_result, &receipt), "built");
}

#[test]
fn a_receipt_that_the_evidence_contradicts() {
    // What is edited, once, in the receipt's payload.
    let cases = [
        ("\"gitCommit\":\"2", "\"gitCommit\":\"3"),
        ("\"gitTree\":\"7", "\"gitTree\":\"8"),
        ("{\"sha256\":\"1c46", "{\"sha256\":\"2c46"),
        ("{\"sha256\":\"0497", "{\"sha256\":\"1497"),
        ("\"tree\"", "\"treo\""),
        ("refs/pull/7/head", "refs/pull/8/head"),
        ("\"bundle_sha256\":\"0", "\"bundle_sha256\":\"1"),
        ("\"entry_sha256\":\"a", "\"entry_sha256\":\"b"),
        ("\"files\":4", "\"files\":5"),
        ("\"manifest_sha256\":\"c", "\"manifest_sha256\":\"d"),
        ("\"step\":1", "\"step\":2"),
        (
            "artifact:plimsoll-report.xml",
            "artifact:plimsoll-report.xmm",
        ),
        ("artifact:plimsoll-report.xml", "stdout:1"),
        ("\"format\":\"junit\"", "\"format\":\"none\""),
        ("\"sha256\":\"b6ae", "\"sha256\":\"c6ae"),
        (
            "\"sha256\":\"b6aedcf118513efefe67f658cfc275e857293aab3f936c87be5079aac96de695\"",
            "\"sha256\":\"\"",
        ),
        (
            "\"added\":[]",
            "\"added\":[{\"path\":\"x\",\"sha256\":\"\"}]",
        ),
        ("\"source\":\"workflow\"", "\"source\":\"base\""),
        ("\"git_blob\":\"df1a", "\"git_blob\":\"ef1a"),
        ("\"run_attempt\":1", "\"run_attempt\":2"),
    ];
    let (test_result, receipt) = (payload(TEST_RESULT), payload(STATEMENT));
    for (from, to) in cases {
        let receipt = edited(&receipt, from, to);
        let text = signed(&test_result, &receipt);
        let (with_bundle, alone) = codes(RECEIPT, &text);
        assert_eq!(
            built(&test_result, &receipt),
            "binding_mismatch",
            "{to} built"
        );
        assert_eq!(with_bundle, "binding_mismatch", "{to} with the bundle");
        assert_eq!(alone, "binding_mismatch", "{to} alone");
    }
}

#[test]
fn a_test_result_that_is_not_the_receipts() {
    let (test_result, receipt) = (payload(TEST_RESULT), payload(STATEMENT));
    for (from, to) in [
        ("\"gitCommit\":\"2", "\"gitCommit\":\"3"),
        ("{\"sha256\":\"1c46", "{\"sha256\":\"2c46"),
        ("\"PASSED\"", "\"FAILED\""),
        ("\"gitBlob\":\"df1a", "\"gitBlob\":\"ef1a"),
        ("attempts/1", "attempts/2"),
        ("\"adds\",", ""),
        ("\"failedTests\":[]", "\"failedTests\":[\"adds\"]"),
    ] {
        let other = edited(&test_result, from, to);
        let [old, new] = [&test_result, &other].map(|text| Digest::of(text.as_bytes()).to_hex());
        let receipt = edited(&receipt, &old, &new);
        let text = signed(&other, &receipt);
        assert_eq!(built(&other, &receipt), "binding_mismatch", "{to} built");
        assert_eq!(
            codes(RECEIPT, &text),
            ("binding_mismatch", "binding_mismatch"),
            "{to}"
        );
    }
}

#[test]
fn only_the_bundle_decides_which_bundle_it_is() {
    let other = payload(STATEMENT).replace("\"0497f788", "\"1497f788");
    let text = signed(&payload(TEST_RESULT), &other);
    assert_eq!(codes(RECEIPT, &text), ("binding_mismatch", "accepted"));
}

#[test]
fn what_was_not_decided_is_named() {
    let text = bom(RECEIPT);
    let text = file_form(&text);
    let bundle = example("3-pr-receipt.bundle.jsonl");
    let (store, key) = (Memory(&bundle), key());
    let verified = Bundle::verify(&store, bundle.as_slice(), &key, &mut |_| {}).unwrap();
    let named = check(&text, &key, &verified).unwrap().not_established();
    assert!(named.contains(&"receipt:workflow".to_owned()));
    assert!(!named.contains(&"evidence:scope".to_owned()));
    let alone = check_attached(&text, &key).unwrap().not_established();
    for name in ["evidence:scope", "receipt:bundle_sha256", "receipt:config"] {
        assert!(alone.contains(&name.to_owned()), "{name}");
    }
    let run = check_attached(&example("1-single-run.cdx.json"), &key).unwrap();
    assert_eq!(run.not_established(), ["evidence:scope"]);
}
