//! The registries of `testdata/clients`: what each is refused for.
#![allow(clippy::unwrap_used)]

use std::{fs, path::PathBuf};

use plimsoll_callers::{FaultKind, Registry};
use plimsoll_wire::strict_json;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/clients")
}

fn read(name: &str) -> Vec<u8> {
    fs::read(folder().join(name)).unwrap()
}

/// The faults of a file, as text.
fn faults(name: &str) -> Vec<String> {
    let faults = Registry::parse(&read(name)).unwrap_err();
    faults.kept().iter().map(ToString::to_string).collect()
}

#[test]
fn accepted() {
    for (name, callers) in [
        ("good.json", 2),
        ("upper-case.json", 1),
        ("no-scopes.json", 1),
    ] {
        let registry = Registry::parse_for_daemon(&read(name)).unwrap();
        assert_eq!(registry.callers().len(), callers, "{name}");
    }
    let registry = Registry::parse(&read("upper-case.json")).unwrap();
    assert_eq!(registry.callers()[0].id.as_str(), "gateway");
    assert!(registry.find(&"a".repeat(32)).is_some());
    let empty = Registry::parse(&read("empty.json")).unwrap();
    assert!(empty.callers().is_empty());
}

#[test]
fn an_empty_registry_serves_nobody() {
    let faults = Registry::parse_for_daemon(&read("empty.json")).unwrap_err();
    assert_eq!(faults.kept()[0].kind, FaultKind::Empty);
}

#[test]
fn what_is_written_is_what_was_read() {
    // Byte for byte: these files have the tool's own form.
    for name in ["good.json", "empty.json"] {
        let text = Registry::parse(&read(name)).unwrap().to_text().unwrap();
        assert_eq!(text.as_bytes(), read(name), "{name}");
    }
}

#[test]
fn one_fault_each() {
    use strict_json::Fault as Json;
    let integer = FaultKind::Type("an integer of at least 0");
    for (name, kind) in [
        ("array.json", FaultKind::NotJson(Json::NotAnObject)),
        (
            "byte-order-mark.json",
            FaultKind::NotJson(Json::ByteOrderMark),
        ),
        ("deep.json", FaultKind::NotJson(Json::TooDeep)),
        ("folded-member.json", FaultKind::NotJson(Json::DuplicateKey)),
        (
            "lone-surrogate.json",
            FaultKind::NotJson(Json::LoneSurrogate),
        ),
        ("not-utf8.json", FaultKind::NotJson(Json::NotUtf8)),
        ("nothing.json", FaultKind::NotJson(Json::Empty)),
        ("nul.json", FaultKind::NotJson(Json::TrailingData)),
        (
            "repeated-member.json",
            FaultKind::NotJson(Json::DuplicateKey),
        ),
        ("trailing.json", FaultKind::NotJson(Json::TrailingData)),
        ("endless-paid.json", FaultKind::Number),
        ("null-clients.json", FaultKind::Type("an array")),
        ("no-clients.json", FaultKind::Missing("clients")),
        ("null-paid.json", integer.clone()),
        ("float-paid.json", integer.clone()),
        ("huge-paid.json", integer),
        ("same-token.json", FaultKind::RepeatedToken),
        ("same-id.json", FaultKind::RepeatedId),
        ("control-id.json", FaultKind::ControlInId),
        ("raw-token.json", FaultKind::NotAFingerprint),
    ] {
        let faults = Registry::parse(&read(name)).unwrap_err();
        assert_eq!(faults.kept().len(), 1, "{name}: {faults}");
        assert_eq!(faults.kept()[0].kind, kind, "{name}");
    }
    // Another name, and none of its own.
    assert_eq!(faults("case-member.json").len(), 2);
}

#[test]
fn every_fault_of_a_file_with_its_place() {
    assert_eq!(
        faults("many-faults.json"),
        [
            r#"unknown field "version""#,
            r#"/clients/0: unknown field "x""#,
            "/clients/0/id: the ID * stands for every caller and can be none",
            "/clients/0/token_sha256: must be 64 hex digits, the SHA-256 of the token",
            "/clients/0/scopes/0: a scope is not empty and has no white space or control characters",
            "/clients/0/scopes/2: the caller has this scope already",
            "/clients/0/paid_seconds_per_day: must be an integer of at least 0",
            "/clients/1/scopes: must be an array",
            "/clients/2/id: another caller has this ID",
            "/clients/2/token_sha256: must be a string",
            "/clients/3: must be an object",
            "/clients/4: the field id is missing",
            "/clients/4/token_sha256: another caller has the same token",
        ]
    );
}

#[test]
fn no_refusal_repeats_a_token_or_its_digest() {
    let raw = "a-raw-token-where-its-digest-belongs";
    for entry in fs::read_dir(folder()).unwrap() {
        let text = fs::read(entry.unwrap().path()).unwrap();
        let Err(faults) = Registry::parse(&text) else {
            continue;
        };
        let shown = format!("{faults} {faults:?}");
        assert!(!shown.contains(raw), "{shown}");
        assert!(!shown.to_lowercase().contains("3ba3f5f4"), "{shown}");
    }
}

#[test]
fn the_number_of_faults_is_bounded() {
    let text = format!("{{\"clients\":[{}]}}", vec!["1"; 5000].join(","));
    let faults = Registry::parse(text.as_bytes()).unwrap_err();
    assert_eq!((faults.kept().len(), faults.more()), (100, 4900));
    assert!(faults.to_string().ends_with("; and 4900 more"));
    let long = format!("{{\"{}\":1,\"clients\":[]}}", "x".repeat(100_000));
    let shown = Registry::parse(long.as_bytes()).unwrap_err().to_string();
    assert!(shown.len() < 200, "{}", shown.len());
    let huge = vec![b' '; 9 << 20];
    let faults = Registry::parse(&huge).unwrap_err();
    assert_eq!(faults.kept()[0].kind, FaultKind::TooLarge);
}
