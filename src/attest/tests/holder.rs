//! What the holder of the key could write under a valid chain is refused too,
//! and each refusal says what its cure needs.
#![allow(clippy::unwrap_used)]

mod common;

use common::{Forger, answered, check, signing};
use plimsoll_attestation::{
    Fault, base64,
    statement::{SessionClose, run_record, session_close},
};
use plimsoll_record::{Chain, make, record_digest, request_digest};
use plimsoll_wire::{
    Code, Rule,
    proto::{
        JavaScriptRun, Message, MessageField, RunRecord, RunRequest, RunResponse, run_request,
    },
};

fn request() -> RunRequest {
    RunRequest {
        protocol: 3,
        trace_id: "t".to_owned(),
        payload: Some(run_request::Payload::from(JavaScriptRun {
            code: "1".to_owned(),
            ..Default::default()
        })),
        ..Default::default()
    }
}

/// Class and reason of a bundle's refusal on line 1, or `ok`.
fn verdict(bundle: &[u8]) -> (&'static str, &'static str) {
    match check(bundle, signing().public()) {
        Ok(_) => ("ok", "ok"),
        Err(fault) => {
            assert_eq!(fault.line(), Some(1), "{fault:?}");
            (fault.class().word(), fault.reason().word())
        }
    }
}

fn resealed(record: &mut RunRecord) {
    record.record_sha256 = record_digest(record).map_or_else(String::new, |d| d.to_hex());
}

/// A call whose signed record was changed and given its right digest again, in
/// the response too.
fn call_with(change: impl FnOnce(&mut RunRecord)) -> (&'static str, &'static str) {
    let request = request();
    let mut response = answered(&request, None, "1\n");
    let mut record = response.record.as_option().unwrap().clone();
    change(&mut record);
    resealed(&mut record);
    response.record = MessageField::some(record.clone());
    verdict(&Forger::new().call(
        &request.encode_to_vec(),
        &response.encode_to_vec(),
        &run_record::encode(&record),
    ))
}

#[test]
fn records_that_do_not_belong() {
    assert_eq!(call_with(|_| {}), ("ok", "ok"));
    for version in [0, 4, 1 << 31] {
        let found = call_with(|r| r.version = version);
        assert_eq!(found, ("statement", "version"), "{version}");
    }
    assert_eq!(call_with(|r| r.version = 1), ("stored", "old_record"));
    assert_eq!(call_with(|r| r.version = 3), ("statement", "unanswered"));
    assert_eq!(
        call_with(|r| r.unanswered = "internal".into()),
        ("statement", "unanswered")
    );
    assert_eq!(
        call_with(|r| r.result_sha256 = "0".repeat(64)),
        ("stored", "mismatch")
    );
    assert_eq!(
        call_with(|r| r.environment = "e".into()),
        ("stored", "mismatch")
    );
    assert_eq!(
        call_with(|r| r.software_identity = "s".into()),
        ("stored", "mismatch")
    );
    assert_eq!(
        call_with(|r| r.sequence = u64::MAX),
        ("chain", "single_run")
    );
    assert_eq!(
        call_with(|r| r.previous_sha256 = "x".into()),
        ("chain", "single_run")
    );
    assert_eq!(call_with(|r| r.session = "x".into()), ("chain", "session"));
    let session = "0".repeat(64);
    assert_eq!(
        call_with(|r| (r.session, r.sequence) = (session.clone(), u64::MAX)),
        ("chain", "sequence")
    );
    assert_eq!(
        call_with(|r| (r.session, r.sequence) = (session.clone(), 0)),
        ("chain", "sequence")
    );
    assert_eq!(
        call_with(
            |r| (r.session, r.sequence, r.previous_sha256) = (session.clone(), 1, "0".repeat(64))
        ),
        ("chain", "previous")
    );
    // What no digest of the exchange covers is free to state.
    assert_eq!(
        call_with(|r| (r.started_unix_ms, r.ended_unix_ms) = (9, i64::MIN)),
        ("ok", "ok")
    );
    assert_eq!(
        call_with(|r| r.policy = "\u{1b}]8;;\n".into()),
        ("ok", "ok")
    );
}

#[test]
fn each_field_of_the_stored_record_is_the_signed_one() {
    let request = request();
    let response = answered(&request, None, "1\n");
    let record = response.record.as_option().unwrap().clone();
    let payload = run_record::encode(&record);
    let changes: [fn(&mut RunRecord); 16] = [
        |r| r.version = 1,
        |r| r.request_sha256.push('x'),
        |r| r.result_sha256.push('x'),
        |r| r.provider.push('x'),
        |r| r.isolation.push('x'),
        |r| r.environment.push('x'),
        |r| r.policy.push('x'),
        |r| r.started_unix_ms += 1,
        |r| r.ended_unix_ms += 1,
        |r| r.session.push('x'),
        |r| r.sequence += 1,
        |r| r.previous_sha256.push('x'),
        |r| r.record_sha256.push('x'),
        |r| r.software_identity.push('x'),
        |r| r.software_rule_id.push('x'),
        |r| r.unanswered.push('x'),
    ];
    for (n, change) in changes.into_iter().enumerate() {
        for reseal in [false, true] {
            let mut inner = record.clone();
            change(&mut inner);
            if reseal && n != 12 {
                resealed(&mut inner);
            }
            let mut changed = response.clone();
            changed.record = MessageField::some(inner);
            let bundle =
                Forger::new().call(&request.encode_to_vec(), &changed.encode_to_vec(), &payload);
            assert_eq!(verdict(&bundle).0, "stored", "field {n}, resealed {reseal}");
        }
    }
}

#[test]
fn stored_messages_are_decoded_strictly() {
    let request = request();
    let response = answered(&request, None, "1\n");
    let payload = run_record::encode(response.record.as_option().unwrap());
    let (good, answer) = (request.encode_to_vec(), response.encode_to_vec());
    let with =
        |request: &[u8], response: &[u8]| verdict(&Forger::new().call(request, response, &payload));
    assert_eq!(with(&good, &answer), ("ok", "ok"));
    // Field 99, which this version does not know: a later daemon may add some.
    let later = b"\x9a\x06\x03abc";
    assert_eq!(
        with(&[&good[..], later].concat(), &[&answer[..], later].concat()),
        ("ok", "ok")
    );
    assert_eq!(
        with(&[&good[..], b"\x9a\x06\x05abc"].concat(), &answer),
        ("stored", "request_decode")
    );
    // protocol, field 1, as a string; trace_id, field 3, with invalid UTF-8.
    assert_eq!(
        with(&[&good[..], b"\x0a\x01x"].concat(), &answer),
        ("stored", "request_decode")
    );
    assert_eq!(
        with(&[&good[..], b"\x1a\x01\xff"].concat(), &answer),
        ("stored", "request_decode")
    );
    assert_eq!(
        with(&good, &answer[..answer.len() - 1]),
        ("stored", "response_decode")
    );
    assert_eq!(
        with(&good[..good.len() - 1], &answer),
        ("stored", "request_decode")
    );
    assert_eq!(with(&[], &answer), ("stored", "request_missing"));
    assert_eq!(with(&good, &[]), ("stored", "response_missing"));
    let mut bare = response.clone();
    bare.record = MessageField::none();
    assert_eq!(with(&good, &bare.encode_to_vec()), ("stored", "no_record"));
    let floor = RunRequest {
        minimum_isolation: "vm".to_owned(),
        ..request
    };
    let response = answered(&floor, None, "1\n");
    let payload = run_record::encode(response.record.as_option().unwrap());
    let bundle = Forger::new().call(&floor.encode_to_vec(), &response.encode_to_vec(), &payload);
    assert_eq!(verdict(&bundle), ("stored", "isolation"));
}

#[test]
fn signed_payloads_are_read_strictly() {
    let request = request();
    let response = answered(&request, None, "1\n");
    let good = String::from_utf8(run_record::encode(response.record.as_option().unwrap())).unwrap();
    let with = |payload: &str| {
        verdict(&Forger::new().call(
            &request.encode_to_vec(),
            &response.encode_to_vec(),
            payload.as_bytes(),
        ))
    };
    // Member order and white space inside a signed payload mean nothing, and an
    // absent member is its zero value.
    let moved = good
        .replace(r#"{"version":2,"#, "{")
        .replace(r#","sequence":0"#, "")
        .replace(r#","session":"""#, r#", "version" : 2"#);
    assert_ne!(moved, good);
    assert_eq!(with(&moved), ("ok", "ok"));
    assert_eq!(with(&format!(" {good}\n")), ("ok", "ok"));
    for (from, to, reason) in [
        (r#""version":2"#, r#""version":2.0"#, "not_integer"),
        (r#""version":2"#, r#""version":2e0"#, "not_integer"),
        (r#""version":2"#, r#""version":"2""#, "wrong_type"),
        (r#""version":2"#, r#""version":4294967298"#, "not_integer"),
        (r#""version":2"#, r#""Version":2"#, "unknown_member"),
        (
            r#""version":2"#,
            r#""version":2,"version":2"#,
            "repeated_member",
        ),
        (
            r#""version":2"#,
            r#""version":2,"v\u0065rsion":2"#,
            "repeated_member",
        ),
        (
            r#""version":2"#,
            r#""version":2,"instance":"""#,
            "unknown_member",
        ),
        (r#""sequence":0"#, r#""sequence":-0"#, "not_integer"),
        (r#""session":"""#, r#""session":null"#, "wrong_type"),
        (r#""policy":"""#, r#""policy":"\ud800""#, "json"),
        (r#"{"_type""#, r#"{"x":{},"_type""#, "unknown_member"),
        (r#""name":"#, r#""uri":"","name":"#, "unknown_member"),
        (
            r#""predicate":"#,
            r#""predicate":{},"predicate":"#,
            "repeated_member",
        ),
        (
            "in-toto.io/Statement/v1",
            "in-toto.io/Statement/v0.1",
            "statement_type",
        ),
        (
            "plimsoll/run-record/v1",
            "plimsoll/run-record/v2",
            "predicate_type",
        ),
        (
            "plimsoll/run-record/v1",
            "plimsoll/bundle-link/v1",
            "predicate_type",
        ),
        (
            r#""name":"run-record""#,
            r#""name":"session""#,
            "subject_name",
        ),
        (r#""sha256":"#, r#""sha512":"#, "subject_digest"),
    ] {
        assert!(good.contains(from));
        assert_eq!(
            with(&good.replacen(from, to, 1)),
            ("statement", reason),
            "{to}"
        );
    }
    assert_eq!(with(&format!("{good}x")), ("statement", "trailing_data"));
    assert_eq!(with(&good[..good.len() - 1]), ("statement", "json"));
    let deep = format!(r#"{{"predicate":{}1{}}}"#, "[".repeat(64), "]".repeat(64));
    assert_eq!(with(&deep), ("statement", "too_deep"));
    let digest = &response.record.as_option().unwrap().record_sha256;
    let other = good.replacen(digest.as_str(), &"0".repeat(64), 1);
    assert_eq!(with(&other), ("statement", "subject_digest"));
}

#[test]
fn closes_and_odd_entries() {
    let session = "0".repeat(64);
    let forger = Forger::new();
    let close = |session: &str| {
        session_close::encode(&SessionClose {
            session: session.to_owned(),
            ..SessionClose::default()
        })
    };
    assert_eq!(
        verdict(&forger.call(b"", b"", &close(&session))),
        ("ok", "ok")
    );
    assert_eq!(
        verdict(&forger.call(b"", b"x", &close(&session))),
        ("stored", "close_with_messages")
    );
    assert_eq!(
        verdict(&forger.call(b"", b"", &close("x"))),
        ("statement", "session")
    );
    let other = String::from_utf8(close(&session))
        .unwrap()
        .replacen("000", "111", 1);
    assert_eq!(
        verdict(&forger.call(b"", b"", other.as_bytes())),
        ("statement", "subject_digest")
    );
    // A record's payload under the close's type, and the reverse.
    let request = request();
    let record = answered(&request, None, "")
        .record
        .as_option()
        .unwrap()
        .clone();
    let swapped = String::from_utf8(run_record::encode(&record)).unwrap();
    let swapped = swapped.replace("run-record/v1", "session-close/v1");
    assert_eq!(
        verdict(&forger.call(b"", b"", swapped.as_bytes())).0,
        "statement"
    );
    let swapped = String::from_utf8(close(&session)).unwrap();
    let swapped = swapped.replace("session-close/v1", "run-record/v1");
    assert_eq!(
        verdict(&forger.call(b"", b"", swapped.as_bytes())).0,
        "statement"
    );
    // An entry without an envelope.
    assert_eq!(
        verdict(&forger.bundle("\"request\":\"YQ==\"")),
        ("signature", "none")
    );
    // A payload type that is signed and is not ours.
    let payload = close(&session);
    let sig = forger.sig("text/plain", &payload);
    let envelope = format!(
        r#""envelope":{{"payloadType":"text/plain","payload":"{}","signatures":[{{"keyid":"","sig":"{sig}"}}]}}"#,
        base64::encode(&payload)
    );
    assert_eq!(
        verdict(&forger.bundle(&envelope)),
        ("statement", "payload_type")
    );
    let many = format!(r#"{{"keyid":"","sig":"{sig}"}},"#).repeat(64);
    let many = envelope.replace("\"signatures\":[", &format!("\"signatures\":[{many}"));
    assert_eq!(verdict(&forger.bundle(&many)), ("signature", "too_many"));
}

#[test]
fn unanswered_calls() {
    let request = request();
    let chain = Chain::new("0".repeat(64));
    let facts = make::Facts {
        request: request_digest(&request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1,
        ended_unix_ms: 2,
        chain: Some(&chain),
    };
    let good = make::unanswered(&facts, &make::Stated::default(), Code::Internal);
    let with = |change: fn(&mut RunRecord), response: &RunResponse| {
        let mut record = good.clone();
        change(&mut record);
        resealed(&mut record);
        let bundle = Forger::new().call(
            &request.encode_to_vec(),
            &response.encode_to_vec(),
            &run_record::encode(&record),
        );
        check(&bundle, signing().public()).unwrap_err()
    };
    let none = RunResponse::default();
    let word = |fault: Fault| (fault.class().word(), fault.reason().word(), fault.line());
    // Good in itself; its session is never closed.
    assert_eq!(word(with(|_| {}, &none)), ("chain", "not_closed", Some(2)));
    assert_eq!(
        word(with(|r| r.unanswered = "ok".into(), &none)).0,
        "stored"
    );
    assert_eq!(
        word(with(|r| r.result_sha256 = "0".repeat(64), &none)).0,
        "stored"
    );
    assert_eq!(word(with(|r| r.version = 2, &none)).0, "statement");
    assert_eq!(
        word(with(
            |r| (r.session, r.sequence) = (String::new(), 0),
            &none
        )),
        ("chain", "unanswered", Some(1))
    );
    let answer = answered(&request, None, "");
    assert_eq!(
        word(with(|_| {}, &answer)),
        ("stored", "response_on_unanswered", Some(1))
    );
}
