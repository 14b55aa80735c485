//! A line for scripts.

use base64::{Engine, engine::general_purpose::STANDARD};
use plimsoll_attestation::statement::run_record;
use plimsoll_console::{Failure, JsonObject, json::Count};
use plimsoll_record::outcome::outcome_name;
use plimsoll_wire::{
    Kind as Payload,
    proto::{
        Artifact, ProjectFile, RunRequest, RunResponse, run_request::Payload as Asked,
        run_response::Result as RunResult,
    },
};
use serde_json::value::RawValue;

use super::seen::{Call, Kind, Seen};

/// The object of a line. `broken` is the failure of one that cannot be read.
/// With `content`, code, files and output stand in it whole.
pub fn object(number: u64, seen: &Seen, broken: Option<&Failure>, content: bool) -> JsonObject {
    let mut object = JsonObject::new()
        .with("line", &Count(number))
        .with("kind", seen.kind.word())
        .with_some("error", broken);
    if broken.is_some() {
        return object;
    }
    let keys: Vec<&String> = seen.keys.iter().filter(|key| !key.is_empty()).collect();
    object.push("key_ids", &keys);
    object.push("linked", &seen.link.is_some());
    if let Some(link) = &seen.link {
        object.push("index", &Count(link.index));
        if link.checkpoint {
            object.push("lines_before", &Count(link.lines));
        }
    }
    match &seen.kind {
        Kind::Call(call) => call_into(&mut object, call, content),
        Kind::Close(close) => {
            object.push("session", &close.session);
            object.push("calls", &Count(close.calls));
            text(&mut object, "last_record_sha256", &close.last_record_sha256);
        }
        Kind::Checkpoint | Kind::Broken(_) => {}
    }
    object
}

/// Adds a text; an absent fact is an absent member.
fn text(object: &mut JsonObject, name: &str, value: &str) {
    if !value.is_empty() {
        object.push(name, value);
    }
}

fn base64(object: &mut JsonObject, name: &str, bytes: &[u8]) {
    object.push(name, &STANDARD.encode(bytes));
}

fn call_into(object: &mut JsonObject, call: &Call, content: bool) {
    if let Ok(record) = RawValue::from_string(run_record::predicate(&call.record)) {
        object.push("record", &record);
    }
    if let Some(message) = &call.request {
        object.push("request", &request(message, content));
    }
    if let Some(digest) = call.request_digest {
        object.push("request_sha256", &digest.to_hex());
    }
    if let Some(message) = &call.response {
        object.push("result", &result(message, content));
    }
    if let Some(digest) = call.result_digest {
        object.push("result_sha256", &digest.to_hex());
    }
    if !call.unknown.is_empty() {
        object.push("unknown_fields", &call.unknown);
    }
}

fn request(message: &RunRequest, content: bool) -> JsonObject {
    let mut object = JsonObject::new();
    if let Some(kind) = Payload::of_request(message) {
        object.push("kind", kind.name());
    }
    object.push("protocol", &message.protocol);
    text(&mut object, "floor", &message.minimum_isolation);
    text(&mut object, "trace_id", &message.trace_id);
    object.push("timeout_ms", &message.timeout_ms);
    if let Some(rule) = message.software_rule.as_option() {
        text(&mut object, "software_mode", &rule.mode);
        object.push("software_identities", &rule.identities);
    }
    let code = |object: &mut JsonObject, code: &str| {
        object.push("code_bytes", &code.len());
        if content {
            base64(object, "code_base64", code.as_bytes());
        }
    };
    match &message.payload {
        Some(Asked::Javascript(run)) => {
            code(&mut object, &run.code);
            text(&mut object, "grant_profile", &run.grant_profile);
        }
        Some(Asked::Cell(run)) => {
            text(&mut object, "language", &run.language);
            code(&mut object, &run.code);
            object.push("files", &files(&run.files, content));
        }
        Some(Asked::Project(run)) => {
            object.push("files", &files(&run.files, content));
            object.push("steps", &run.steps);
            object.push("artifacts", &run.artifacts);
            text(&mut object, "grant_profile", &run.grant_profile);
        }
        Some(Asked::Module(run)) => {
            text(&mut object, "model", &run.model);
            object.push("rows", &run.rows.len());
        }
        None => {}
    }
    object
}

fn files(files: &[ProjectFile], content: bool) -> Vec<JsonObject> {
    files
        .iter()
        .map(|file| sized(&file.path, file.content.as_bytes(), content))
        .collect()
}

fn sized(path: &str, bytes: &[u8], content: bool) -> JsonObject {
    let mut object = JsonObject::new();
    text(&mut object, "path", path);
    object.push("bytes", &bytes.len());
    if content {
        base64(&mut object, "content_base64", bytes);
    }
    object
}

fn result(message: &RunResponse, content: bool) -> JsonObject {
    let mut object = JsonObject::new();
    if let Some(kind) = Payload::of_response(message) {
        object.push("kind", kind.name());
    }
    let streams = |object: &mut JsonObject, stdout: &[u8], stderr: &[u8]| {
        object.push("stdout_bytes", &stdout.len());
        object.push("stderr_bytes", &stderr.len());
        if content {
            base64(object, "stdout_base64", stdout);
            base64(object, "stderr_base64", stderr);
        }
    };
    let ended = |object: &mut JsonObject, exit_code: i32, timed_out: bool, cut: [bool; 2]| {
        object.push("exit_code", &exit_code);
        object.push("timed_out", &timed_out);
        object.push("stdout_truncated", &cut[0]);
        object.push("stderr_truncated", &cut[1]);
    };
    match &message.result {
        Some(RunResult::Javascript(r)) => {
            let cut = [r.stdout_truncated, r.stderr_truncated];
            ended(&mut object, r.exit_code, r.timed_out, cut);
            streams(&mut object, &r.stdout, &r.stderr);
        }
        Some(RunResult::Cell(r)) => {
            let cut = [r.stdout_truncated, r.stderr_truncated];
            ended(&mut object, r.exit_code, r.timed_out, cut);
            streams(&mut object, &r.stdout, &r.stderr);
            object.push("interpreter_started", &r.interpreter_started);
            object.push("interpreter_ended", &r.interpreter_ended);
        }
        Some(RunResult::Project(r)) => {
            object.push("outcome", outcome_name(r.outcome));
            text(&mut object, "outcome_detail", &r.outcome_detail);
            let steps: Vec<JsonObject> = r
                .steps
                .iter()
                .map(|step| {
                    let mut object = JsonObject::new();
                    text(&mut object, "command", &step.command);
                    let cut = [step.stdout_truncated, step.stderr_truncated];
                    ended(&mut object, step.exit_code, step.timed_out, cut);
                    streams(&mut object, &step.stdout, &step.stderr);
                    object
                })
                .collect();
            object.push("steps", &steps);
            let artifact = |a: &Artifact| sized(&a.path, &a.content, content);
            let artifacts: Vec<JsonObject> = r.artifacts.iter().map(artifact).collect();
            object.push("artifacts", &artifacts);
            object.push("artifacts_truncated", &r.artifacts_truncated);
        }
        Some(RunResult::Module(r)) => {
            object.push("outcome", outcome_name(r.outcome));
            text(&mut object, "outcome_detail", &r.outcome_detail);
            object.push("width", &r.width);
            object.push("rows", &r.runs.len());
            streams(&mut object, &r.stdout, &r.stderr);
        }
        None => {}
    }
    object
}
