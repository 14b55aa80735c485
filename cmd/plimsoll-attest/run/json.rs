//! What a run states in JSON.

use base64::{Engine, engine::general_purpose::STANDARD};
use plimsoll_attestation::bundle::AppendError;
use plimsoll_client::Checked;
use plimsoll_console::{JsonObject, json};
use plimsoll_harness::{
    RunFailure,
    failure::NotKept,
    outcome::{is_success, outcome_name},
};
use plimsoll_record::Digest;
use plimsoll_wire::{
    Kind,
    proto::{RunResponse, StepResult, run_response::Result as RunResult},
};
use serde::Serialize;

use super::Facts;

/// Where and how an exchange is recorded.
pub struct Place {
    pub line: u64,
}

/// The object of a recorded run.
pub fn recorded(facts: &Facts, checked: &Checked, place: &Place) -> JsonObject {
    let mut object = exchange(checked, "yes", None);
    object.push("bundle", &facts.bundle);
    object.push("line", &place.line);
    if let Some(anchor) = &facts.anchor {
        object.push("anchor", &anchor.to_string_lossy());
    }
    facts.ending(&mut object);
    object
}

/// The object of a run that did not end in a kept record.
pub fn failed(facts: &Facts, failure: &RunFailure) -> JsonObject {
    let ran = failure.ran().name();
    let reason = failure.reason();
    let mut object = match failure {
        RunFailure::NotKept { checked, .. } => exchange(checked, ran, reason),
        _ => JsonObject::new()
            .with("ran", ran)
            .with_some("reason", reason),
    };
    object.push("bundle", &facts.bundle);
    if let RunFailure::NotKept { why, .. } = failure {
        match why {
            NotKept::Append(AppendError { kept: Ok(file), .. }) => {
                object.push("unsealed", &file.to_string_lossy());
            }
            NotKept::Anchor { appended, .. } => {
                object.push("line", &appended.lines.first().copied().unwrap_or_default());
            }
            _ => {}
        }
    }
    facts.ending(&mut object);
    object
}

/// The members that speak of request, answer and record.
pub fn exchange(checked: &Checked, ran: &str, reason: Option<&str>) -> JsonObject {
    let response = &checked.response;
    let record = checked.record();
    let some =
        |text: &'static str, value: &str| (!value.is_empty()).then(|| (text, value.to_owned()));
    let mut object = JsonObject::new()
        .with("ran", ran)
        .with_some("reason", reason)
        .with("provider", &response.sandbox)
        .with("isolation", &response.isolation);
    for (name, value) in [
        some("environment", &response.environment),
        some("software_identity", &response.software_identity),
    ]
    .into_iter()
    .flatten()
    {
        object.push(name, &value);
    }
    if let Some(kind) = Kind::of_response(response) {
        object.push("kind", kind.name());
    }
    push_result(&mut object, response);
    object.push("success", &is_success(&checked.request, response));
    object.push("record_sha256", &record.record_sha256);
    object.push("request_sha256", &record.request_sha256);
    object
}

#[derive(Serialize)]
struct Streams<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    command: Option<String>,
    exit_code: i32,
    timed_out: bool,
    #[serde(serialize_with = "base64")]
    stdout_base64: &'a [u8],
    #[serde(serialize_with = "base64")]
    stderr_base64: &'a [u8],
    stdout_truncated: bool,
    stderr_truncated: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter_started: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    interpreter_ended: Option<bool>,
}

#[derive(Serialize)]
struct Project<'a> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    outcome_detail: &'a str,
    steps: Vec<Streams<'a>>,
    artifacts: Vec<Artifact<'a>>,
    artifacts_truncated: bool,
}

#[derive(Serialize)]
struct Artifact<'a> {
    path: &'a str,
    bytes: usize,
    sha256: String,
}

#[derive(Serialize)]
struct Module<'a> {
    outcome: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    outcome_detail: &'a str,
    width: i32,
    rows: usize,
}

fn push_result(object: &mut JsonObject, response: &RunResponse) {
    match &response.result {
        Some(RunResult::Javascript(r)) => object.push(
            "result",
            &Streams {
                command: None,
                exit_code: r.exit_code,
                timed_out: r.timed_out,
                stdout_base64: &r.stdout,
                stderr_base64: &r.stderr,
                stdout_truncated: r.stdout_truncated,
                stderr_truncated: r.stderr_truncated,
                interpreter_started: None,
                interpreter_ended: None,
            },
        ),
        Some(RunResult::Cell(r)) => object.push(
            "result",
            &Streams {
                command: None,
                exit_code: r.exit_code,
                timed_out: r.timed_out,
                stdout_base64: &r.stdout,
                stderr_base64: &r.stderr,
                stdout_truncated: r.stdout_truncated,
                stderr_truncated: r.stderr_truncated,
                interpreter_started: Some(r.interpreter_started),
                interpreter_ended: Some(r.interpreter_ended),
            },
        ),
        Some(RunResult::Project(r)) => object.push(
            "result",
            &Project {
                outcome: outcome_name(r.outcome),
                outcome_detail: &r.outcome_detail,
                steps: r.steps.iter().map(step).collect(),
                artifacts: r
                    .artifacts
                    .iter()
                    .map(|artifact| Artifact {
                        path: &artifact.path,
                        bytes: artifact.content.len(),
                        sha256: Digest::of(&artifact.content).to_hex(),
                    })
                    .collect(),
                artifacts_truncated: r.artifacts_truncated,
            },
        ),
        Some(RunResult::Module(r)) => object.push(
            "result",
            &Module {
                outcome: outcome_name(r.outcome),
                outcome_detail: &r.outcome_detail,
                width: r.width,
                rows: r.runs.len(),
            },
        ),
        None => {}
    }
}

fn step(step: &StepResult) -> Streams<'_> {
    Streams {
        command: Some(json::text(step.command.as_bytes())),
        exit_code: step.exit_code,
        timed_out: step.timed_out,
        stdout_base64: &step.stdout,
        stderr_base64: &step.stderr,
        stdout_truncated: step.stdout_truncated,
        stderr_truncated: step.stderr_truncated,
        interpreter_started: None,
        interpreter_ended: None,
    }
}

fn base64<S: serde::Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&STANDARD.encode(bytes))
}
