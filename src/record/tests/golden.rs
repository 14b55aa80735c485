//! Published and own digest vectors; see `testdata/vectors/README.md`.
#![allow(clippy::unwrap_used, reason = "a test stops at its first surprise")]

use std::{fs, path::Path};

use plimsoll_record::{record_digest, request_digest, request_fields, result_digest};
use plimsoll_wire::{
    ids, json,
    proto::{
        EnumValue, ModuleResult, ModuleRow, ModuleRowResult, ModuleRun, ProjectOutcome, RunRecord,
        RunRequest, RunResponse, SessionRunRequest,
    },
};
use serde_json::Value;

fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../testdata/vectors")
        .join(name);
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

fn list<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value[name].as_array().unwrap()
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value[name].as_str().unwrap()
}

#[test]
fn golden() {
    let golden = vectors("golden.json");
    let mut checked = 0;
    for vector in list(&golden, "requests") {
        let bytes = vector["request"].to_string().into_bytes();
        let request: RunRequest = match text(vector, "kind") {
            "run" => json::read_known(&bytes).unwrap(),
            _ => json::read_known::<SessionRunRequest>(&bytes)
                .unwrap()
                .into(),
        };
        assert_eq!(
            request_digest(&request).to_hex(),
            text(vector, "sha256"),
            "{}",
            text(vector, "name")
        );
        checked += 1;
    }
    for vector in list(&golden, "results") {
        let bytes = vector["response"].to_string().into_bytes();
        let response: RunResponse = json::read_known(&bytes).unwrap();
        assert_eq!(result_digest(&response).to_hex(), text(vector, "sha256"));
        checked += 1;
    }
    for vector in list(&golden, "records") {
        let bytes = vector["record"].to_string().into_bytes();
        let record: RunRecord = json::read_known(&bytes).unwrap();
        assert_eq!(
            record_digest(&record).unwrap().to_hex(),
            text(vector, "sha256")
        );
        checked += 1;
    }
    for vector in list(&golden, "sessionFingerprints") {
        assert_eq!(
            ids::session_fingerprint(text(vector, "sessionId")),
            text(vector, "sha256")
        );
        checked += 1;
    }
    assert_eq!(checked, 14);
}

fn double(value: &Value) -> f64 {
    f64::from_bits(u64::from_str_radix(value.as_str().unwrap(), 16).unwrap())
}

fn doubles(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(double).collect()
}

fn small(value: &Value) -> i32 {
    value.as_i64().unwrap().try_into().unwrap()
}

#[test]
fn floats() {
    let vectors = vectors("float-vectors.json");
    let mut digests = Vec::new();
    for vector in list(&vectors, "results") {
        let module = ModuleResult {
            outcome: EnumValue::from(ProjectOutcome::PROJECT_OUTCOME_COMPLETED),
            width: small(&vector["width"]),
            runs: list(vector, "runs")
                .iter()
                .map(|run| ModuleRowResult {
                    status: small(&run["status"]),
                    outputs: doubles(&run["outputs_hex_bits"]),
                })
                .collect(),
            ..Default::default()
        };
        let response = RunResponse {
            result: Some(module.into()),
            ..Default::default()
        };
        let digest = result_digest(&response).to_hex();
        assert_eq!(digest, text(vector, "sha256"), "{}", text(vector, "name"));
        digests.push(digest);
    }
    for vector in list(&vectors, "requests") {
        let module = ModuleRun {
            model: text(vector, "model").to_owned(),
            end_time: double(&vector["end_time_hex_bits"]),
            step: double(&vector["step_hex_bits"]),
            rows: list(vector, "rows_hex_bits")
                .iter()
                .map(|row| ModuleRow {
                    values: doubles(row),
                })
                .collect(),
        };
        let request = RunRequest {
            protocol: vector["protocol"].as_u64().unwrap().try_into().unwrap(),
            payload: Some(module.into()),
            ..Default::default()
        };
        let digest = request_digest(&request).to_hex();
        assert_eq!(digest, text(vector, "sha256"), "{}", text(vector, "name"));
        digests.push(digest);
    }
    assert_eq!(digests.len(), 47);
}

#[test]
fn the_encoding_is_shown_field_by_field() {
    let golden = vectors("golden.json");
    let bytes = golden["requests"][0]["request"].to_string().into_bytes();
    let fields = request_fields(&json::read_known(&bytes).unwrap());
    let shown: Vec<(&str, &[u8])> = fields.iter().map(|f| (f.name, &f.content[..])).collect();
    assert_eq!(
        shown,
        [
            ("", &b"plimsoll.run-request.v1"[..]),
            ("protocol", b"1"),
            ("minimum_isolation", b"container"),
            ("timeout_ms", b"5000"),
            ("kind", b"javascript"),
            ("code", b"console.log(1+1)"),
            ("grant_profile", b""),
        ]
    );
}
