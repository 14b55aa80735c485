//! Which fields each digest covers, in which order.
//!
//! Left out of request digests on purpose: trace ID and session ID, so that a
//! session call and a single run of one payload share a digest. Left out of
//! result digests: every duration, advice, and what the record itself states.

use plimsoll_wire::{
    Kind,
    proto::{
        ProjectFile, RunRecord, RunRequest, RunResponse, SoftwareRule, run_request::Payload,
        run_response::Result as RunResult,
    },
};

use crate::encoding::{Digest, Field, Hasher, Lister, Sink};

/// The digest of a request as sent.
#[must_use]
pub fn request_digest(request: &RunRequest) -> Digest {
    let mut hasher = Hasher::default();
    request_into(request, &mut hasher);
    hasher.finish()
}

/// The fields of a request's digest; the first is the domain.
#[must_use]
pub fn request_fields(request: &RunRequest) -> Vec<Field> {
    let mut lister = Lister::default();
    request_into(request, &mut lister);
    lister.0
}

/// The digest of an answer's result; its record is not covered.
#[must_use]
pub fn result_digest(response: &RunResponse) -> Digest {
    let mut hasher = Hasher::default();
    result_into(response, &mut hasher);
    hasher.finish()
}

/// The fields of a result's digest; the first is the domain.
#[must_use]
pub fn result_fields(response: &RunResponse) -> Vec<Field> {
    let mut lister = Lister::default();
    result_into(response, &mut lister);
    lister.0
}

/// The digest of a record's own fields; `None` for an unknown version.
#[must_use]
pub fn record_digest(record: &RunRecord) -> Option<Digest> {
    let mut hasher = Hasher::default();
    record_into(record, &mut hasher)?;
    Some(hasher.finish())
}

/// The fields of a record's digest, the domain first; `None` for an unknown
/// version.
#[must_use]
pub fn record_fields(record: &RunRecord) -> Option<Vec<Field>> {
    let mut lister = Lister::default();
    record_into(record, &mut lister)?;
    Some(lister.0)
}

fn request_into(request: &RunRequest, sink: &mut impl Sink) {
    // Protocol 1 had no software rule; its digest ignores one even if present.
    let with_rule = request.protocol >= 2;
    sink.domain(if with_rule {
        "plimsoll.run-request.v2"
    } else {
        "plimsoll.run-request.v1"
    });
    sink.integer("protocol", request.protocol);
    sink.text("minimum_isolation", &request.minimum_isolation);
    sink.integer("timeout_ms", request.timeout_ms);
    if with_rule {
        let none = SoftwareRule::default();
        let rule = request.software_rule.as_option().unwrap_or(&none);
        sink.text("software_mode", &rule.mode);
        sink.count("software_identities", rule.identities.len());
        for identity in &rule.identities {
            sink.text("software_identity", identity);
        }
    }
    sink.text("kind", Kind::of_request(request).map_or("", Kind::name));
    match &request.payload {
        Some(Payload::Javascript(run)) => {
            sink.text("code", &run.code);
            sink.text("grant_profile", &run.grant_profile);
        }
        Some(Payload::Project(run)) => {
            sink.text("grant_profile", &run.grant_profile);
            files_into(&run.files, sink);
            sink.count("steps", run.steps.len());
            for step in &run.steps {
                sink.text("step_command", step);
            }
            sink.count("artifacts", run.artifacts.len());
            for path in &run.artifacts {
                sink.text("artifact_path", path);
            }
        }
        Some(Payload::Module(run)) => {
            sink.text("model", &run.model);
            sink.doubles("end_time", &[run.end_time]);
            sink.doubles("step", &[run.step]);
            sink.count("rows", run.rows.len());
            for row in &run.rows {
                sink.doubles("row_values", &row.values);
            }
        }
        Some(Payload::Cell(run)) => {
            sink.text("language", &run.language);
            sink.text("code", &run.code);
            files_into(&run.files, sink);
        }
        None => {}
    }
}

fn files_into(files: &[ProjectFile], sink: &mut impl Sink) {
    sink.count("files", files.len());
    for file in files {
        sink.text("file_path", &file.path);
        sink.text("file_content", &file.content);
    }
}

fn result_into(response: &RunResponse, sink: &mut impl Sink) {
    sink.domain("plimsoll.run-result.v1");
    sink.text("kind", Kind::of_response(response).map_or("", Kind::name));
    match &response.result {
        Some(RunResult::Javascript(r)) => {
            sink.integer("exit_code", r.exit_code);
            sink.boolean("timed_out", r.timed_out);
            sink.bytes("stdout", &r.stdout);
            sink.bytes("stderr", &r.stderr);
            sink.boolean("stdout_truncated", r.stdout_truncated);
            sink.boolean("stderr_truncated", r.stderr_truncated);
        }
        Some(RunResult::Cell(r)) => {
            sink.integer("exit_code", r.exit_code);
            sink.boolean("timed_out", r.timed_out);
            sink.bytes("stdout", &r.stdout);
            sink.bytes("stderr", &r.stderr);
            sink.boolean("stdout_truncated", r.stdout_truncated);
            sink.boolean("stderr_truncated", r.stderr_truncated);
            sink.boolean("interpreter_started", r.interpreter_started);
            sink.boolean("interpreter_ended", r.interpreter_ended);
        }
        Some(RunResult::Project(r)) => {
            sink.integer("outcome", r.outcome.to_i32());
            sink.text("outcome_detail", &r.outcome_detail);
            sink.boolean("artifacts_truncated", r.artifacts_truncated);
            sink.count("steps", r.steps.len());
            for step in &r.steps {
                sink.text("step_command", &step.command);
                sink.integer("step_exit_code", step.exit_code);
                sink.boolean("step_timed_out", step.timed_out);
                sink.bytes("step_stdout", &step.stdout);
                sink.bytes("step_stderr", &step.stderr);
                sink.boolean("step_stdout_truncated", step.stdout_truncated);
                sink.boolean("step_stderr_truncated", step.stderr_truncated);
            }
            sink.count("artifacts", r.artifacts.len());
            for artifact in &r.artifacts {
                sink.text("artifact_path", &artifact.path);
                sink.bytes("artifact_content", &artifact.content);
            }
        }
        Some(RunResult::Module(r)) => {
            sink.integer("outcome", r.outcome.to_i32());
            sink.text("outcome_detail", &r.outcome_detail);
            sink.integer("width", r.width);
            sink.bytes("stdout", &r.stdout);
            sink.bytes("stderr", &r.stderr);
            sink.count("runs", r.runs.len());
            for run in &r.runs {
                sink.integer("run_status", run.status);
                sink.doubles("run_outputs", &run.outputs);
            }
        }
        None => {}
    }
}

/// A field of a record, as the version table names it.
#[derive(Clone, Copy)]
enum RecordField {
    RequestSha256,
    ResultSha256,
    Unanswered,
    Provider,
    Isolation,
    Environment,
    Policy,
    SoftwareIdentity,
    SoftwareRuleId,
    StartedUnixMs,
    EndedUnixMs,
    Session,
    Sequence,
    PreviousSha256,
}

use RecordField as F;

/// One version of the record: its domain and the fields it covers. A version
/// has no field of its own, so a record read under another version cannot keep
/// its digest.
const VERSIONS: [(u32, &str, &[RecordField]); 3] = [
    (
        1,
        "plimsoll.run-record.v1",
        &[
            F::RequestSha256,
            F::ResultSha256,
            F::Provider,
            F::Isolation,
            F::Environment,
            F::Policy,
            F::StartedUnixMs,
            F::EndedUnixMs,
            F::Session,
            F::Sequence,
            F::PreviousSha256,
        ],
    ),
    (
        2,
        "plimsoll.run-record.v2",
        &[
            F::RequestSha256,
            F::ResultSha256,
            F::Provider,
            F::Isolation,
            F::Environment,
            F::Policy,
            F::SoftwareIdentity,
            F::SoftwareRuleId,
            F::StartedUnixMs,
            F::EndedUnixMs,
            F::Session,
            F::Sequence,
            F::PreviousSha256,
        ],
    ),
    (
        3,
        "plimsoll.run-record.v3",
        &[
            F::RequestSha256,
            F::ResultSha256,
            F::Unanswered,
            F::Provider,
            F::Isolation,
            F::Environment,
            F::Policy,
            F::SoftwareIdentity,
            F::SoftwareRuleId,
            F::StartedUnixMs,
            F::EndedUnixMs,
            F::Session,
            F::Sequence,
            F::PreviousSha256,
        ],
    ),
];

fn record_into(record: &RunRecord, sink: &mut impl Sink) -> Option<()> {
    let (_, domain, fields) = VERSIONS.iter().find(|(v, ..)| *v == record.version)?;
    sink.domain(domain);
    for field in *fields {
        match field {
            F::RequestSha256 => sink.text("request_sha256", &record.request_sha256),
            F::ResultSha256 => sink.text("result_sha256", &record.result_sha256),
            F::Unanswered => sink.text("unanswered", &record.unanswered),
            F::Provider => sink.text("provider", &record.provider),
            F::Isolation => sink.text("isolation", &record.isolation),
            F::Environment => sink.text("environment", &record.environment),
            F::Policy => sink.text("policy", &record.policy),
            F::SoftwareIdentity => sink.text("software_identity", &record.software_identity),
            F::SoftwareRuleId => sink.text("software_rule_id", &record.software_rule_id),
            F::StartedUnixMs => sink.integer("started_unix_ms", record.started_unix_ms),
            F::EndedUnixMs => sink.integer("ended_unix_ms", record.ended_unix_ms),
            F::Session => sink.text("session", &record.session),
            F::Sequence => sink.integer("sequence", record.sequence),
            F::PreviousSha256 => sink.text("previous_sha256", &record.previous_sha256),
        }
    }
    Some(())
}
