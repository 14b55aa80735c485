//! Statements of a caller's own type.
#![allow(clippy::unwrap_used)]

mod common;

use common::{json, signing, stranger, vector};
use plimsoll_attestation::{
    Class, Envelope,
    base64::{self, Alphabet},
    own::{self, OwnStatement, Wanted, open, open_receipt, receipt},
};

const TYPE: &str = "https://example.com/review/v1";

fn input() -> (String, Vec<(String, String)>, String) {
    let cases = json("statement-cases.json");
    let input = &cases["input"];
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let subjects = input["subjects"].as_array().unwrap();
    let subjects = subjects
        .iter()
        .map(|pair| (text(&pair[0]), text(&pair[1])))
        .collect();
    (
        text(&input["type"]),
        subjects,
        text(&input["predicate_text"]),
    )
}

fn build(predicate_type: &str, predicate: Option<&str>) -> Result<OwnStatement, Class> {
    let (_, subjects, _) = input();
    let named = subjects.iter().map(|(n, d)| (n.as_str(), d.as_str()));
    OwnStatement::build(predicate_type, named, predicate.map(str::as_bytes))
        .map_err(|fault| fault.class())
}

#[test]
fn signing_gives_the_exact_bytes() {
    let cases = json("statement-cases.json");
    let (predicate_type, _, predicate) = input();
    let statement = build(&predicate_type, Some(&predicate)).unwrap();
    let payload = cases["payload"].as_str().unwrap();
    assert_eq!(std::str::from_utf8(statement.payload()).unwrap(), payload);
    let envelope = cases["envelope"].as_str().unwrap();
    assert_eq!(statement.sign(&signing()).to_json(), envelope);
    let whole = OwnStatement::from_payload(payload.as_bytes().to_vec()).unwrap();
    assert_eq!(whole.sign(&signing()).to_json(), envelope);
}

#[test]
fn reserved_and_broken_types_are_not_signed() {
    let cases = json("statement-cases.json");
    let refused = cases["sign_refused"].as_array().unwrap();
    assert_eq!(refused.len(), 8);
    for case in refused {
        let predicate_type = case["type"].as_str().unwrap();
        let class = build(predicate_type, Some("{}")).unwrap_err();
        let reserved = predicate_type.contains("plimsollmark");
        assert_eq!(class == Class::Reserved, reserved, "{predicate_type}");
        let payload = format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{{"name":"x","digest":{{"sha256":"{}"}}}}],"predicateType":"{predicate_type}"}}"#,
            "0".repeat(64)
        );
        let whole = OwnStatement::from_payload(payload.into_bytes());
        assert_eq!(whole.unwrap_err().class(), class, "{predicate_type}");
    }
}

#[test]
fn every_envelope_gives_its_verdict() {
    let key = signing();
    let cases = json("statement-cases.json");
    let list = cases["cases"].as_array().unwrap();
    assert_eq!(list.len(), 23);
    for case in list {
        let name = case["name"].as_str().unwrap();
        let wanted = Wanted::Type(case["type"].as_str().unwrap());
        let envelope = case["envelope"].as_str().unwrap();
        let verdict = open(envelope.as_bytes(), key.public(), wanted);
        let class = verdict.as_ref().map_or_else(|f| f.class().word(), |_| "ok");
        assert_eq!(class, case["expect"], "{name}: {verdict:?}");
        if let Ok(opened) = verdict {
            assert_eq!(
                opened.payload,
                cases["payload"].as_str().unwrap().as_bytes()
            );
            assert_eq!(opened.alphabet, Alphabet::Standard);
            let predicate = opened.predicate().unwrap();
            assert!(opened.payload.ends_with(&[predicate, b"}"].concat()));
        }
    }
}

#[test]
fn any_type_still_refuses_reserved_ones() {
    let key = signing();
    let statement = build(TYPE, None).unwrap();
    let envelope = statement.sign(&key).to_json();
    let opened = open(envelope.as_bytes(), key.public(), Wanted::Any).unwrap();
    assert_eq!(
        (opened.predicate_type.as_str(), opened.predicate()),
        (TYPE, None)
    );
    assert_eq!(opened.subjects.len(), 2);
    let digest = opened.subjects[1].digests[0].1.clone();
    assert_eq!(
        opened.subjects_with("sha256", &digest).unwrap(),
        ["run-record"]
    );
    assert_eq!(
        opened
            .subjects_with("sha256", TYPE)
            .unwrap_err()
            .reason()
            .word(),
        "subject_absent"
    );
    for line in common::lines(&vector("own-mixed.jsonl")) {
        let line = plimsoll_attestation::Line::decode(line).unwrap();
        for envelope in [line.envelope, line.link].into_iter().flatten() {
            let fault = open(envelope.to_json().as_bytes(), key.public(), Wanted::Any).unwrap_err();
            assert_eq!(fault.class(), Class::Reserved);
        }
    }
}

#[test]
fn receipts_are_a_kind_of_their_own() {
    let key = signing();
    let digest = "0".repeat(64);
    let urn = "urn:plimsoll-attest:pr-receipt:v1";
    let named = [("bundle.jsonl", digest.as_str())];
    let statement = receipt(urn, named, b"{\"version\":1}").unwrap();
    let envelope = statement.sign(&key).to_json();
    assert!(open_receipt(envelope.as_bytes(), key.public(), urn).is_ok());
    let fault = open(envelope.as_bytes(), key.public(), Wanted::Any).unwrap_err();
    assert_eq!(fault.class(), Class::Reserved);
    for other in [
        TYPE,
        "https://plimsollmark.github.io/plimsoll/run-record/v1",
    ] {
        assert_eq!(
            receipt(other, named, b"{}").unwrap_err().class(),
            Class::Reserved
        );
    }
}

#[test]
fn either_alphabet_but_one_and_canonical() {
    let key = signing();
    let mut seen = 0;
    for n in 0..40u32 {
        // Both texts must hold a character that differs between the alphabets.
        let statement = build(TYPE, Some(&format!("{{\"n\":{n},\"t\":\"~~~???\"}}"))).unwrap();
        let signed = statement.sign(&key).to_json();
        let envelope: serde_json::Value = serde_json::from_str(&signed).unwrap();
        let payload = envelope["payload"].as_str().unwrap().to_owned();
        let sig = envelope["signatures"][0]["sig"]
            .as_str()
            .unwrap()
            .to_owned();
        let differs = |text: &str| text.contains('+') && text.contains('/');
        if !differs(&payload) && !differs(&sig) {
            continue;
        }
        let url = |text: &str| text.replace('+', "-").replace('/', "_");
        let try_open = |payload: &str, sig: &str| {
            let text = format!(
                r#" {{ "signatures": [{{"sig":"{sig}"}}], "payload":"{payload}", "payloadType":"application\/vnd.in-toto+json"}} "#
            );
            open(text.as_bytes(), key.public(), Wanted::Type(TYPE))
        };
        let opened = try_open(&url(&payload), &url(&sig)).unwrap();
        assert_eq!(opened.alphabet, Alphabet::UrlSafe);
        assert_eq!(opened.payload, statement.payload());
        assert!(try_open(&payload, &url(&sig)).is_ok());
        if differs(&sig) {
            seen += 1;
            let mixed = sig.replacen('+', "-", 1);
            let word = |sig: &str| try_open(&payload, sig).unwrap_err().reason().word();
            assert_eq!(word(&mixed), "encoding");
            assert_eq!(word(sig.trim_end_matches('=')), "encoding");
            assert_eq!(word(&format!("{sig}\\n")), "encoding");
            assert_eq!(word(&base64::encode(sig.as_bytes())), "encoded_twice");
        }
        let unpadded = try_open(payload.trim_end_matches('='), &sig);
        assert_ne!(unpadded.is_ok(), payload.ends_with('='));
    }
    assert!(seen > 3);
}

#[test]
fn input_rules_name_their_reason() {
    let word = |payload: &str| {
        let payload = payload
            .replace('#', &"0".repeat(64))
            .replace('@', &"0".repeat(128));
        OwnStatement::from_payload(payload.into_bytes())
            .map_or_else(|fault| fault.reason().word(), |_| "ok")
    };
    let statement = |subject: &str, rest: &str| {
        format!(
            r#"{{"_type":"https://in-toto.io/Statement/v1","subject":[{subject}],"predicateType":"a:b"{rest}}}"#
        )
    };
    let one = r##"{"name":"a","digest":{"sha256":"#"}}"##;
    assert_eq!(word(&statement(one, "")), "ok");
    assert_eq!(
        word(&format!(" {} \n", statement(one, r#","predicate": { }"#))),
        "ok"
    );
    assert_eq!(
        word(&statement(r#"{"digest":{"x_y":"any text"}}"#, "")),
        "ok"
    );
    let two = r##"{"name":"a","digest":{"sha512":"@","sha256":"#"}},{"name":"a","digest":{"sha256":"#"}}"##;
    assert_eq!(word(&statement(two, "")), "ok");
    for (payload, reason) in [
        (String::new(), "parse"),
        ("[]".into(), "shape"),
        ("{} {}".into(), "parse"),
        (statement(one, "") + "x", "parse"),
        (
            statement(one, r#","predicate":{"a":1,"\u0061":2}"#),
            "parse",
        ),
        (
            statement(
                one,
                &format!(
                    r#","predicate":{{"a":{}1{}}}"#,
                    "[".repeat(64),
                    "]".repeat(64)
                ),
            ),
            "parse",
        ),
        (statement(one, r#","predicate":[]"#), "shape"),
        (statement(one, r#","predicate":null"#), "shape"),
        (statement(one, r#","more":1"#), "shape"),
        (statement(one, "").replace("/v1", "/v0.1"), "type"),
        (statement(one, "").replace("a:b", "a"), "type"),
        (statement("", ""), "subject"),
        (statement(&format!("{one},{one}"), ""), "subject"),
        (statement(r#"{"name":"a","digest":{}}"#, ""), "subject"),
        (statement(r#"{"name":"a"}"#, ""), "subject"),
        (
            statement(r#"{"name":"a","digest":{"sha256":"00"}}"#, ""),
            "subject",
        ),
        (
            statement(r#"{"name":"a","digest":{"Sha256":"00"}}"#, ""),
            "subject",
        ),
        (
            statement(r#"{"name":"a","digest":{"md5":"a\nb"}}"#, ""),
            "subject",
        ),
        (
            statement(r#"{"name":"a","digest":{"md5":""}}"#, ""),
            "subject",
        ),
        (
            statement(r##"{"name":"a","digest":{"sha256":"#","sha1":"#"}}"##, ""),
            "subject",
        ),
        (
            statement(r##"{"name":"a","uri":"u","digest":{"sha256":"#"}}"##, ""),
            "shape",
        ),
        (statement(&vec![one; 1025].join(","), ""), "subject"),
    ] {
        assert_eq!(word(&payload), reason, "{payload}");
    }
    let big = format!(
        r#","predicate":{{"a":"{}"}}"#,
        "x".repeat(own::MAX_PAYLOAD_BYTES)
    );
    assert_eq!(word(&statement(one, &big)), "parse");
}

#[test]
fn building_from_parts_has_its_own_rules() {
    let digest = "0".repeat(64);
    let built = |name: &str, predicate: &str| {
        OwnStatement::build(TYPE, [(name, digest.as_str())], Some(predicate.as_bytes()))
            .map_or_else(
                |fault| fault.reason().word().to_owned(),
                |s| String::from_utf8(s.payload().to_vec()).unwrap(),
            )
    };
    assert_eq!(built("", "{}"), "subject");
    for (predicate, reason) in [
        ("", "parse"),
        ("[]", "shape"),
        ("{}x", "parse"),
        (r#"{"a":1,"a":1}"#, "parse"),
        ("{\"a\":tru}", "parse"),
        ("{\"a\":01}", "parse"),
        ("{\"a\":1,}", "parse"),
        ("{\"a\":\"\n\"}", "parse"),
        ("{\"a\":\"\\ud800\"}", "parse"),
    ] {
        assert_eq!(built("n", predicate), reason, "{predicate}");
    }
    let payload = built(
        "n<",
        "\n{ \"a\\\\\" : \"\\\" <&> \u{2028}\u{2029} \\u003c é\" , \"n\": -1.50E+3 }\t",
    );
    assert!(payload.contains(r#""name":"n\u003c""#));
    assert!(
        payload.ends_with(
            r#""predicate":{"a\\":"\" \u003c\u0026\u003e \u2028\u2029 \u003c é","n":-1.50E+3}}"#
        ),
        "{payload}"
    );
}

#[test]
fn envelopes_are_read_strictly() {
    let key = signing();
    let good = build(TYPE, None).unwrap().sign(&key).to_json();
    let word = |text: &str| {
        open(text.as_bytes(), key.public(), Wanted::Type(TYPE))
            .map_or_else(|fault| fault.reason().word(), |_| "ok")
    };
    assert_eq!(word(&good), "ok");
    for (text, reason) in [
        (String::new(), "parse"),
        (format!("{good}x"), "parse"),
        (
            good.replacen('{', "{\"payload\":\"\",", 1),
            "repeated_member",
        ),
        (good.replacen('{', "{\"more\":1,", 1), "unknown_member"),
        (good.replace("payloadType", "PayloadType"), "unknown_member"),
        (
            good.replace("\"signatures\"", "\"signature\""),
            "unknown_member",
        ),
        (
            good.replace("{\"keyid\"", "{\"cert\":\"\",\"keyid\""),
            "unknown_member",
        ),
        (good.replace("vnd.in-toto", "vnd.other"), "payload_type"),
        (
            good.replace(key.public().id(), stranger().public().id()),
            "other_key",
        ),
        (
            good.replace(key.public().id(), &stranger().public().id()[..10]),
            "other_key",
        ),
        (good.replace(key.public().id(), ""), "ok"),
    ] {
        assert_eq!(word(&text), reason, "{text}");
    }
    let other = build(TYPE, None).unwrap().sign(&stranger()).to_json();
    assert_eq!(word(&other), "other_key");
    assert_eq!(
        word(&other.replace(stranger().public().id(), "")),
        "mismatch"
    );
    assert_eq!(
        Envelope::pae("http://example.com/HelloWorld", b"hello world"),
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    );
}
