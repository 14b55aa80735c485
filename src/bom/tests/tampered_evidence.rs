//! BOMs whose key, attachments or statements are not what the evidence gives.
#![allow(
    clippy::panic,
    clippy::semicolon_if_nothing_returned, // a change in a table is one expression
    clippy::type_complexity,
    clippy::unwrap_used
)]

mod common;

use common::{
    both::check_attached,
    example, key,
    tamper::{
        RECEIPT, SESSION, SINGLE, attach, attached, bom, both_ways, code, codes, component,
        file_form, pointer, resealed, set, with_bundle,
    },
};
use plimsoll_attestation::PublicKey;
use serde_json::{Value, json};

#[test]
fn other_keys() {
    let stranger = PublicKey::from_pem(&common::stranger_pem()).unwrap();
    let other = stranger.to_pem();
    both_ways(
        SINGLE,
        "another stated key",
        |b| set(b, "evidence:signingKey", stranger.id()),
        "key_mismatch",
        "key_mismatch",
    );
    let reference = format!("key:{}", key().id());
    let material = |b: &mut Value, member: &str, value: &str| {
        component(b, &reference)["cryptoProperties"]["relatedCryptoMaterialProperties"][member] =
            json!(value);
    };
    both_ways(
        SINGLE,
        "another key's text",
        |b| material(b, "value", &other),
        "key_mismatch",
        "key_mismatch",
    );
    both_ways(
        SINGLE,
        "another key's ID",
        |b| material(b, "id", stranger.id()),
        "key_mismatch",
        "key_mismatch",
    );
    both_ways(
        SINGLE,
        "no key component",
        |b| drop(b["components"].as_array_mut().unwrap().pop()),
        "key_mismatch",
        "key_mismatch",
    );
    // The right BOM under a key that did not sign it.
    let text = example("1-single-run.cdx.json");
    assert_eq!(code(with_bundle(SINGLE, &text, &stranger)), "key_mismatch");
    assert_eq!(
        code(check_attached(&text, &stranger).map(drop)),
        "key_mismatch"
    );
}

#[test]
fn attachments_that_are_not_what_is_stated() {
    let content = |b: &mut Value, change: &dyn Fn(&str) -> String| {
        let place = &mut component(b, "line:1")["data"][0]["contents"]["attachment"]["content"];
        *place = json!(change(place.as_str().unwrap()));
    };
    let changes: [(&str, &dyn Fn(&str) -> String); 7] = [
        ("one byte changed", &|text| text.replacen('e', "f", 1)),
        ("a newline inside", &|text| {
            format!("{}\n{}", &text[..64], &text[64..])
        }),
        ("a space at the end", &|text| format!("{text} ")),
        ("the URL-safe alphabet", &|text| {
            text.replace('+', "-").replace('/', "_") + "_-8="
        }),
        ("no padding", &|text| {
            format!("{}YQ", text.trim_end_matches('='))
        }),
        ("more padding", &|text| format!("{text}====")),
        ("nothing", &|_| "YQ==".to_owned()),
    ];
    for (what, change) in changes {
        both_ways(
            SINGLE,
            what,
            |b| content(b, change),
            "attachment_hash",
            "attachment_hash",
        );
    }
    both_ways(
        SINGLE,
        "another digest",
        |b| component(b, "line:1")["hashes"][0]["content"] = json!("0".repeat(64)),
        "attachment_hash",
        "attachment_hash",
    );
    both_ways(
        SINGLE,
        "another size",
        |b| component(b, "line:1")["properties"][2]["value"] = json!("1"),
        "attachment_hash",
        "attachment_hash",
    );
    both_ways(
        SINGLE,
        "no digest",
        |b| {
            drop(
                component(b, "line:1")
                    .as_object_mut()
                    .unwrap()
                    .remove("hashes"),
            )
        },
        "attachment_hash",
        "attachment_hash",
    );
    for (name, reference) in [
        (SINGLE, "line:1"),
        (SESSION, "line:4"),
        (RECEIPT, "statement:test-result"),
        (RECEIPT, "statement:pr-receipt"),
    ] {
        both_ways(
            name,
            reference,
            |b| component(b, reference)["bom-ref"] = json!("line:99"),
            "attachment_missing",
            "attachment_missing",
        );
        both_ways(
            name,
            reference,
            |b| {
                drop(
                    component(b, reference)
                        .as_object_mut()
                        .unwrap()
                        .remove("data"),
                )
            },
            "attachment_missing",
            "attachment_missing",
        );
    }
}

#[test]
fn attachments_that_are_not_the_evidence() {
    // Changed line, digest and serial number: only the evidence can tell.
    let mut changed = bom(SINGLE);
    let line = attached(&mut changed, "line:1");
    let text = String::from_utf8(line.clone()).unwrap();
    let cases: [(&str, Vec<u8>, &str); 5] = [
        (
            "a byte of the request",
            text.replacen("\"request\":\"CAMS", "\"request\":\"CAIS", 1)
                .into_bytes(),
            "link",
        ),
        ("not a line", b"{}".to_vec(), "link"),
        (
            "another line's bytes",
            {
                let mut s = bom(SESSION);
                attached(&mut s, "line:1")
            },
            "accepted-kind",
        ),
        (
            "a checkpoint",
            {
                let bundle = example("1-single-run.bundle.jsonl");
                bundle.split(|b| *b == b'\n').nth(1).unwrap().to_vec()
            },
            "link",
        ),
        (
            "white space in the line",
            format!("{text} ").into_bytes(),
            "line",
        ),
    ];
    for (what, bytes, alone) in cases {
        let mut changed = bom(SINGLE);
        attach(&mut changed, "line:1", &bytes);
        assert_eq!(
            codes(SINGLE, &file_form(&changed)),
            ("bom_serial", "bom_serial"),
            "{what}"
        );
        let (with_bundle, attached) = codes(SINGLE, &file_form(&resealed(changed)));
        assert_eq!(with_bundle, "attachment_evidence_mismatch", "{what}");
        match alone {
            // A signed line of another run: the BOM around it is not its BOM.
            "accepted-kind" => assert_eq!(attached, "bom_mismatch", "{what}"),
            alone => assert_eq!(attached, alone, "{what}"),
        }
    }
}

#[test]
fn a_session_is_whole_or_it_is_none() {
    // Two calls swapped, with everything that is derived made to fit.
    let mut swapped = bom(SESSION);
    let (one, two) = (
        attached(&mut swapped, "line:1"),
        attached(&mut swapped, "line:2"),
    );
    attach(&mut swapped, "line:1", &two);
    attach(&mut swapped, "line:2", &one);
    let text = file_form(&resealed(swapped));
    assert_eq!(
        codes(SESSION, &text),
        ("attachment_evidence_mismatch", "link")
    );

    // A call left out: its line is not named, and nothing else is told.
    let mut cut = bom(SESSION);
    set(&mut cut, "evidence:lines", "1,3,4");
    let text = file_form(&resealed(cut));
    assert_eq!(codes(SESSION, &text), ("bom_mismatch", "chain"));

    // The close left out.
    let mut open = bom(SESSION);
    set(&mut open, "evidence:lines", "1,2,3");
    let text = file_form(&resealed(open));
    assert_eq!(codes(SESSION, &text), ("bom_mismatch", "session_open"));

    // The last call left out.
    let mut short = bom(SESSION);
    set(&mut short, "evidence:lines", "1,2,4");
    let text = file_form(&resealed(short));
    assert_eq!(codes(SESSION, &text), ("bom_mismatch", "chain"));

    // A line that is a checkpoint, and one that is not there.
    let mut more = bom(SESSION);
    set(&mut more, "evidence:lines", "1,2,3,4,5");
    assert_eq!(
        codes(SESSION, &file_form(&resealed(more))).0,
        "attachment_missing"
    );

    // One call of a session as a run of its own: it is another BOM.
    let mut run = bom(SESSION);
    set(&mut run, "bom:kind", "run");
    set(&mut run, "evidence:lines", "1");
    assert_eq!(
        codes(SESSION, &file_form(&resealed(run))),
        ("bom_mismatch", "bom_mismatch")
    );

    // A run as a session, and as a receipt.
    let mut session = bom(SINGLE);
    set(&mut session, "bom:kind", "session");
    assert_eq!(
        codes(SINGLE, &file_form(&resealed(session))).0,
        "bom_profile"
    );
    let mut receipt = bom(SINGLE);
    set(&mut receipt, "bom:kind", "receipt");
    assert_eq!(
        codes(SINGLE, &file_form(&resealed(receipt))).0,
        "attachment_missing"
    );
    // A receipt as a run: good evidence, another BOM.
    let mut run = bom(RECEIPT);
    set(&mut run, "bom:kind", "run");
    assert_eq!(
        codes(RECEIPT, &file_form(&resealed(run))),
        ("bom_mismatch", "bom_mismatch")
    );
}

#[test]
fn statements_of_a_receipt() {
    let changes: [(&str, &str, &dyn Fn(Vec<u8>) -> Vec<u8>, &str); 4] = [
        (
            "a changed payload",
            "statement:pr-receipt",
            &|b| {
                String::from_utf8(b)
                    .unwrap()
                    .replacen("\"payload\":\"eyJ", "\"payload\":\"eyI", 1)
                    .into_bytes()
            },
            "signature",
        ),
        (
            "a changed result",
            "statement:test-result",
            &|b| {
                String::from_utf8(b)
                    .unwrap()
                    .replacen("\"payload\":\"eyJ", "\"payload\":\"eyI", 1)
                    .into_bytes()
            },
            "signature",
        ),
        (
            "not an envelope",
            "statement:pr-receipt",
            &|_| b"{}".to_vec(),
            "statement",
        ),
        (
            "no JSON",
            "statement:test-result",
            &|_| b"x".to_vec(),
            "statement",
        ),
    ];
    for (what, reference, change, expected) in changes {
        let mut changed = bom(RECEIPT);
        let bytes = attached(&mut changed, reference);
        attach(&mut changed, reference, &change(bytes));
        let text = file_form(&resealed(changed));
        assert_eq!(codes(RECEIPT, &text), (expected, expected), "{what}");
    }
    // The two statements in each other's place.
    let mut swapped = bom(RECEIPT);
    let one = attached(&mut swapped, "statement:test-result");
    let two = attached(&mut swapped, "statement:pr-receipt");
    attach(&mut swapped, "statement:test-result", &two);
    attach(&mut swapped, "statement:pr-receipt", &one);
    let text = file_form(&resealed(swapped));
    let (with_bundle, alone) = codes(RECEIPT, &text);
    assert_eq!(with_bundle, alone);
    assert!(["reserved", "statement"].contains(&alone), "{alone}");
}

#[test]
fn statements_about_the_run_that_the_evidence_does_not_make() {
    type Change = fn(&mut Value);
    let cases: [(&str, &str, Change, &str); 30] = [
        (
            "the tier in the claim",
            SINGLE,
            |b| b["declarations"]["claims"][0]["predicate"] = json!("isolation-tier=vm"),
            "/declarations/claims/0/predicate",
        ),
        (
            "the tier in the component",
            SINGLE,
            |b| b["components"][0]["properties"][1]["value"] = json!("vm"),
            "/components/0/properties/1/value",
        ),
        (
            "the qualification",
            SINGLE,
            |b| b["annotations"][0]["text"] = json!("Attested."),
            "/annotations/0/text",
        ),
        (
            "the reasoning",
            SINGLE,
            |b| b["declarations"]["claims"][0]["reasoning"] = json!("Attested."),
            "/declarations/claims/0/reasoning",
        ),
        (
            "no annotation",
            SINGLE,
            |b| drop(b.as_object_mut().unwrap().remove("annotations")),
            "/annotations",
        ),
        (
            "another claim",
            SINGLE,
            |b| {
                let mut claim = b["declarations"]["claims"][1].clone();
                claim["bom-ref"] = json!("claim:safe");
                b["declarations"]["claims"]
                    .as_array_mut()
                    .unwrap()
                    .push(claim);
            },
            "/declarations/claims/2",
        ),
        (
            "the time",
            SINGLE,
            |b| b["metadata"]["timestamp"] = json!("2026-10-18T09:00:00.342Z"),
            "/metadata/timestamp",
        ),
        (
            "the subject's digest",
            SINGLE,
            |b| b["metadata"]["component"]["version"] = json!("0".repeat(64)),
            "/metadata/component/version",
        ),
        (
            "a record's field",
            SINGLE,
            |b| b["metadata"]["component"]["properties"][4]["value"] = json!("e2b"),
            "/metadata/component/properties/4/value",
        ),
        (
            "the image's digest",
            SINGLE,
            |b| b["components"][1]["hashes"][0]["content"] = json!("0".repeat(64)),
            "/components/1/hashes/0/content",
        ),
        (
            "the image's name",
            SINGLE,
            |b| b["components"][1]["name"] = json!("node"),
            "/components/1/name",
        ),
        (
            "the package URL",
            SINGLE,
            |b| b["components"][2]["purl"] = json!("pkg:oci/node@sha256:00"),
            "/components/2/purl",
        ),
        (
            "an input's digest",
            SINGLE,
            |b| component(b, "input:1:1")["hashes"][0]["content"] = json!("0".repeat(64)),
            "/components/4/hashes/0/content",
        ),
        (
            "an input's name",
            SINGLE,
            |b| component(b, "input:1:1")["name"] = json!("other.js"),
            "/components/4/name",
        ),
        (
            "a component more",
            SINGLE,
            |b| {
                let more = json!({ "bom-ref": "library:x", "name": "x", "type": "library" });
                b["components"].as_array_mut().unwrap().push(more);
            },
            "/components/7",
        ),
        (
            "a component less",
            SINGLE,
            |b| drop(b["components"].as_array_mut().unwrap().remove(3)),
            "/components/3/bom-ref",
        ),
        (
            "components in another order",
            SINGLE,
            |b| b["components"].as_array_mut().unwrap().swap(0, 1),
            "/components/0/bom-ref",
        ),
        (
            "one reference twice",
            SINGLE,
            |b| {
                let mut again = b["components"][0].clone();
                again["name"] = json!("podman");
                b["components"].as_array_mut().unwrap().push(again);
            },
            "/components/7",
        ),
        (
            "a reference to nothing",
            SINGLE,
            |b| b["dependencies"][0]["dependsOn"][0] = json!("provider:none"),
            "/dependencies/0/dependsOn/0",
        ),
        (
            "an exit code",
            SESSION,
            |b| {
                b["formulation"][0]["workflows"][0]["tasks"][0]["steps"][0]["properties"][0]["value"] =
                    json!("0")
            },
            "/formulation/0/workflows/0/tasks/0/steps/0/properties/0/value",
        ),
        (
            "a command",
            SESSION,
            |b| {
                b["formulation"][0]["workflows"][0]["tasks"][0]["steps"][0]["commands"][0]["executed"] =
                    json!("true")
            },
            "/formulation/0/workflows/0/tasks/0/steps/0/commands/0/executed",
        ),
        (
            "a task left out",
            SESSION,
            |b| {
                drop(
                    b["formulation"][0]["workflows"][0]["tasks"]
                        .as_array_mut()
                        .unwrap()
                        .remove(2),
                )
            },
            "/formulation/0/workflows/0/tasks/2",
        ),
        (
            "that a call was answered",
            SESSION,
            |b| {
                b["formulation"][0]["workflows"][0]["tasks"][2]["properties"][11]["value"] =
                    json!("no");
            },
            "/formulation/0/workflows/0/tasks/2/properties/11/value",
        ),
        (
            "declared evidence",
            SESSION,
            |b| b["declarations"]["evidence"][1]["created"] = json!("2026-10-18T09:00:02.191Z"),
            "/declarations/evidence/1/created",
        ),
        (
            "declared evidence left out",
            SESSION,
            |b| {
                drop(
                    b["declarations"]["evidence"]
                        .as_array_mut()
                        .unwrap()
                        .remove(2),
                )
            },
            "/declarations/evidence/2",
        ),
        (
            "the test result",
            RECEIPT,
            |b| b["declarations"]["claims"][2]["predicate"] = json!("tests=WARNED"),
            "/declarations/claims/2/predicate",
        ),
        (
            "the tested commit",
            RECEIPT,
            |b| b["metadata"]["component"]["version"] = json!("0".repeat(40)),
            "/metadata/component/version",
        ),
        (
            "the limits",
            RECEIPT,
            |b| drop(b["annotations"].as_array_mut().unwrap().pop()),
            "/annotations/1",
        ),
        (
            "a blob",
            RECEIPT,
            |b| {
                component(b, "input:1:2")["swhid"] =
                    json!([format!("swh:1:cnt:{}", "0".repeat(40))])
            },
            "/components/4/swhid/0",
        ),
        (
            "the version",
            SINGLE,
            |b| b["version"] = json!(2),
            "/version",
        ),
    ];
    for (what, name, change, place) in cases {
        both_ways(name, what, change, "bom_serial", "bom_mismatch");
        let mut changed = bom(name);
        change(&mut changed);
        assert_eq!(
            pointer(name, &file_form(&resealed(changed))),
            place,
            "{name}: {what}"
        );
    }
}

#[test]
fn a_bundle_that_is_another_one() {
    let text = example("1-single-run.cdx.json");
    assert_eq!(
        code(with_bundle(SESSION, &text, &key())),
        "attachment_evidence_mismatch"
    );
    assert_eq!(
        code(with_bundle(RECEIPT, &text, &key())),
        "attachment_evidence_mismatch"
    );
    let text = example("2-session.cdx.json");
    assert_eq!(
        code(with_bundle(SINGLE, &text, &key())),
        "attachment_evidence_mismatch"
    );
}
