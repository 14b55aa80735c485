//! A result answers the kind of thing that was asked, in what is signed and in
//! what is verified: its digests alone would also bind an answer to another
//! question.
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;

use common::{Forger, check, signing};
use plimsoll_attestation::{Class, bundle::Entry, statement::run_record};
use plimsoll_record::{
    make::{self, Facts},
    request_digest,
};
use plimsoll_wire::{
    Rule, json,
    proto::{Message as _, MessageField, RunRequest, RunResponse},
};

const KINDS: [(&str, &str); 5] = [
    ("javascript", r#""javascript":{}"#),
    ("project", r#""project":{}"#),
    ("module", r#""module":{}"#),
    ("cell", r#""cell":{}"#),
    ("none", ""),
];

/// An exchange whose every digest is right.
fn exchange(payload: &str, result: &str) -> (RunRequest, RunResponse) {
    let comma = |text: &str| {
        if text.is_empty() {
            String::new()
        } else {
            format!(",{text}")
        }
    };
    let request = format!(r#"{{"protocol":3{}}}"#, comma(payload));
    let request: RunRequest = json::read(request.as_bytes()).unwrap();
    let response = format!(
        r#"{{"sandbox":"docker","isolation":"kernel"{}}}"#,
        comma(result)
    );
    let mut response: RunResponse = json::read(response.as_bytes()).unwrap();
    let facts = Facts {
        request: request_digest(&request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1,
        ended_unix_ms: 2,
        chain: None,
    };
    response.record = MessageField::some(make::answered(&facts, &response));
    (request, response)
}

#[test]
fn an_answer_of_another_kind_is_neither_verified_nor_signed() {
    let (forger, key) = (Forger::new(), signing());
    for (asked, payload) in KINDS {
        for (got, result) in KINDS {
            let (request, response) = exchange(payload, result);
            let bundle = forger.call(
                &request.encode_to_vec(),
                &response.encode_to_vec(),
                &run_record::encode(&response.record),
            );
            let verdict = check(&bundle, key.public());
            let signed = Entry::answered(&request, &response);
            if asked == got && asked != "none" {
                assert_eq!(verdict.unwrap().records, 1, "{asked}");
                signed.unwrap();
                continue;
            }
            let fault = verdict.unwrap_err();
            assert_eq!(fault.class(), Class::Stored, "{asked}, {got}");
            assert_eq!(fault.reason().word(), "result_kind");
            assert_eq!((fault.line(), fault.member()), (Some(1), Some("response")));
            assert_eq!(
                (fault.expected_value(), fault.found_value()),
                (Some(asked), Some(got))
            );
            let fault = signed.unwrap_err();
            assert_eq!(
                (fault.class(), fault.member()),
                (Class::Bundle, Some("result"))
            );
        }
    }
}
