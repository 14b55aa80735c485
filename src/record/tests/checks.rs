//! Every check of a record, each broken alone.
#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

use plimsoll_record::{
    Chain, check,
    check::RecordError,
    make::{self, Facts, Stated},
    record_digest, request_digest,
};
use plimsoll_wire::{
    Code, Rule, json,
    proto::{MessageField, RunRecord, RunRequest, RunResponse, SoftwareRule, run_response},
};

const IDENTITY: &str = "oci-manifest:linux/amd64@sha256:1111";

fn request() -> RunRequest {
    RunRequest {
        software_rule: MessageField::some(SoftwareRule {
            mode: "exact".into(),
            identities: vec![IDENTITY.into()],
        }),
        ..json::read_known(
            br#"{"protocol":3,"minimumIsolation":"kernel","timeoutMs":5000,"javascript":{"code":"1+1"}}"#,
        )
        .unwrap()
    }
}

fn bare_response() -> RunResponse {
    json::read_known(
        format!(
            r#"{{"sandbox":"docker","isolation":"kernel","softwareIdentity":"{IDENTITY}",
            "environment":"docker-image:sha256:a","javascript":{{"stdout":"Mgo="}}}}"#
        )
        .as_bytes(),
    )
    .unwrap()
}

fn facts<'a>(request: &RunRequest, rule: &'a Rule, chain: Option<&'a Chain>) -> Facts<'a> {
    Facts {
        request: request_digest(request),
        rule,
        policy: "",
        started_unix_ms: 1_793_000_000_000,
        ended_unix_ms: 1_793_000_000_100,
        chain,
    }
}

fn answered(chain: Option<&Chain>) -> (RunRequest, RunResponse) {
    let request = request();
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let mut response = bare_response();
    response.record = MessageField::some(make::answered(&facts(&request, &rule, chain), &response));
    (request, response)
}

fn with_record(edit: impl FnOnce(&mut RunRecord)) -> (RunRequest, RunResponse) {
    let (request, mut response) = answered(None);
    let mut record = response.record.into_option().unwrap();
    edit(&mut record);
    response.record = MessageField::some(record);
    (request, response)
}

/// As [`with_record`], with the digest made to fit the edit.
fn resealed(edit: impl FnOnce(&mut RunRecord)) -> (RunRequest, RunResponse) {
    with_record(|record| {
        edit(record);
        if let Some(digest) = record_digest(record) {
            record.record_sha256 = digest.to_hex();
        }
    })
}

fn field_of(error: RecordError) -> &'static str {
    match error {
        RecordError::Mismatch { field, .. } => field,
        other => other.class(),
    }
}

#[test]
fn a_made_record_checks() {
    let (request, response) = answered(None);
    let record = check::single_run(&request, &response).unwrap();
    assert_eq!(record.version, 2);
    assert_eq!(record.software_rule_id, format!("exact:{IDENTITY}"));
    let mut old = request.clone();
    old.minimum_isolation = String::new();
    assert!(check::single_run(&old, &response).is_err());
}

#[test]
fn each_field_of_the_record_is_bound() {
    type Edit = fn(&mut RunRecord);
    let cases: [(&str, Edit); 12] = [
        ("request_sha256", |r| r.request_sha256 = "0".repeat(64)),
        ("result_sha256", |r| r.result_sha256.make_ascii_uppercase()),
        ("provider", |r| r.provider = "wasm".into()),
        ("isolation", |r| r.isolation = "vm".into()),
        ("environment", |r| r.environment.clear()),
        ("software_identity", |r| r.software_identity.clear()),
        ("software_rule_id", |r| r.software_rule_id.clear()),
        ("unanswered", |r| r.unanswered = "internal".into()),
        ("session", |r| r.session = "5".repeat(64)),
        ("sequence", |r| r.sequence = 1),
        ("previous_sha256", |r| r.previous_sha256 = "5".repeat(64)),
        ("version", |r| r.version = 3),
    ];
    for (field, edit) in cases {
        let (request, response) = resealed(edit);
        let error = check::single_run(&request, &response).unwrap_err();
        assert_eq!(field_of(error), field);
    }
    let unsealed: [(&str, Edit); 4] = [
        ("record_sha256", |r| r.started_unix_ms += 1),
        ("record_sha256", |r| r.ended_unix_ms -= 1),
        ("record_sha256", |r| r.policy.push('x')),
        ("record_sha256", |r| r.record_sha256.clear()),
    ];
    for (field, edit) in unsealed {
        let (request, response) = with_record(edit);
        let error = check::single_run(&request, &response).unwrap_err();
        assert_eq!(field_of(error), field);
    }
}

#[test]
fn versions() {
    for version in [0, 3, 4, 1 << 31] {
        let (request, response) = with_record(|r| r.version = version);
        assert_eq!(
            check::answer(&request, &response),
            Err(RecordError::Version { found: version })
        );
    }
    // Version 1 stands for protocol 1 only, and states no software.
    let (mut request, response) = resealed(|r| r.version = 1);
    assert!(matches!(
        check::answer(&request, &response),
        Err(RecordError::Version { found: 1 })
    ));
    request.protocol = 1;
    assert_eq!(
        field_of(check::answer(&request, &response).unwrap_err()),
        "software_identity"
    );
    let digest = request_digest(&request).to_hex();
    let (_, response) = resealed(|r| {
        r.version = 1;
        r.request_sha256 = digest;
        r.software_identity.clear();
        r.software_rule_id.clear();
    });
    assert!(check::answer(&request, &response).is_ok());
    let mut bare = response;
    bare.record = MessageField::none();
    assert_eq!(check::answer(&request, &bare), Err(RecordError::NoRecord));
}

#[test]
fn the_answer_is_bound_too() {
    let (request, mut response) = answered(None);
    if let Some(run_response::Result::Javascript(result)) = response.result.as_mut() {
        result.stdout.push(b'!');
    }
    let error = check::single_run(&request, &response).unwrap_err();
    assert_eq!(field_of(error), "result_sha256");
    let (mut request, response) = answered(None);
    request.timeout_ms += 1;
    let error = check::single_run(&request, &response).unwrap_err();
    assert_eq!(field_of(error), "request_sha256");
}

#[test]
fn a_tier_below_the_floor_is_evidence_not_a_refusal() {
    let request = RunRequest {
        minimum_isolation: "vm".into(),
        ..request()
    };
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let mut response = bare_response();
    response.record = MessageField::some(make::answered(&facts(&request, &rule, None), &response));
    assert!(matches!(
        check::single_run(&request, &response),
        Err(RecordError::IsolationEvidence { .. })
    ));
}

#[test]
fn software_outside_the_rule() {
    let mut request = request();
    request.software_rule = MessageField::some(SoftwareRule {
        mode: "exact".into(),
        identities: vec!["other:1".into()],
    });
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let mut response = bare_response();
    response.record = MessageField::some(make::answered(&facts(&request, &rule, None), &response));
    let error = check::single_run(&request, &response).unwrap_err();
    assert_eq!(field_of(error), "software_identity");
    request.software_rule = MessageField::some(SoftwareRule {
        mode: "exact".into(),
        identities: vec![],
    });
    let error = check::single_run(&request, &response).unwrap_err();
    assert_eq!(field_of(error), "software_rule");
}

#[test]
fn chains() {
    let mut chain = Chain::of_session_id("00112233445566778899aabbccddeeff");
    let (request, first) = answered(Some(&chain));
    let record = check::session_call(&request, &first, &chain).unwrap();
    assert_eq!(record.sequence, 1);
    assert!(check::single_run(&request, &first).is_err());
    chain.advance(record).unwrap();
    // The same answer again is a replay.
    assert_eq!(
        check::session_call(&request, &first, &chain)
            .unwrap_err()
            .class(),
        "chain"
    );

    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let opened = Stated {
        provider: "docker".into(),
        isolation: "kernel".into(),
        environment: "docker-image:sha256:a".into(),
        software_identity: IDENTITY.into(),
    };
    let facts = facts(&request, &rule, Some(&chain));
    let lost = make::unanswered(&facts, &opened, Code::DeadlineExceeded);
    assert_eq!(lost.unanswered, "deadline_exceeded");
    let checked = check::live_unanswered(&request, Some(&lost), &chain, &opened).unwrap();
    let mut after = chain.clone();
    after.advance(checked).unwrap();
    assert!(
        after
            .closes(chain.fingerprint(), 2, &lost.record_sha256)
            .is_ok()
    );
    assert!(
        after
            .closes(chain.fingerprint(), 1, &lost.record_sha256)
            .is_err()
    );
    assert!(after.closes(chain.fingerprint(), 2, "").is_err());
    assert!(after.closes("", 2, &lost.record_sha256).is_err());

    let elsewhere = Stated {
        provider: "wasm".into(),
        ..opened.clone()
    };
    assert!(check::live_unanswered(&request, Some(&lost), &chain, &elsewhere).is_err());
    assert!(check::unanswered(&request, None).is_err());
    for edit in [
        (|r: &mut RunRecord| r.unanswered = "ok".into()) as fn(&mut RunRecord),
        |r| r.unanswered.clear(),
        |r| r.result_sha256 = "0".repeat(64),
        |r| r.version = 2,
        |r| r.software_rule_id.clear(),
        |r| r.request_sha256.clear(),
    ] {
        let mut bad = lost.clone();
        edit(&mut bad);
        if let Some(digest) = record_digest(&bad) {
            bad.record_sha256 = digest.to_hex();
        }
        assert!(check::unanswered(&request, Some(&bad)).is_err());
    }
}

#[test]
fn the_last_sequence_is_never_continued() {
    let mut chain = Chain::new("f");
    let mut record = RunRecord {
        session: "f".into(),
        sequence: u64::MAX,
        ..Default::default()
    };
    assert!(chain.advance(&record).is_err());
    record.sequence = 1;
    chain.advance(&record).unwrap();
    record.sequence = 0;
    assert!(chain.advance(&record).is_err());
}

#[test]
fn the_end_is_never_before_the_start() {
    let request = request();
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let mut facts = facts(&request, &rule, None);
    facts.ended_unix_ms = facts.started_unix_ms - 5;
    let record = make::answered(&facts, &bare_response());
    assert_eq!(record.ended_unix_ms, record.started_unix_ms);
}
