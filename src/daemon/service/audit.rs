//! The audit line: one for each run that was dispatched.
//!
//! It says who ran how much of what, where and how it ended. Never the code,
//! a file's name or content, a command, output or a refused trace ID.

use plimsoll_wire::{
    proto::{
        ProjectOutcome, ProjectResult, RunRequest, RunResponse, run_request::Payload,
        run_response::Result as Wire,
    },
    validate,
};

use super::dispatch::{Aftermath, log_text};
use crate::{
    call::Principal,
    log::{Line, Log},
    provider::{ProviderError, TierNow, tier_name},
    surface,
};

/// What of a request the line will hold; taken before the payload moves on.
pub(super) struct Entry {
    caller: String,
    op: Op,
    trace: Trace,
}

enum Op {
    Javascript {
        code_bytes: i64,
        grant_profile: String,
    },
    Project {
        files: i64,
        steps: i64,
        total_bytes: i64,
        grant_profile: String,
    },
    Module {
        model: String,
        rows: i64,
        row_width: i64,
        max_steps: i64,
    },
    Cell {
        language: String,
        code_bytes: i64,
        files: i64,
    },
}

enum Trace {
    None,
    Kept(String),
    Rejected,
}

/// What is current when a run failed.
pub(super) struct Current {
    pub(super) sandbox: &'static str,
    pub(super) tier: TierNow,
}

impl Entry {
    pub(super) fn of(request: &RunRequest, principal: &Principal) -> Entry {
        Entry {
            caller: principal.key().to_owned(),
            op: Op::of(request.payload.as_ref()),
            trace: match request.trace_id.as_str() {
                "" => Trace::None,
                id if validate::is_trace_id(id) => Trace::Kept(id.to_owned()),
                _ => Trace::Rejected,
            },
        }
    }

    /// Writes the line of a run that was answered.
    pub(super) fn succeeded(&self, log: &Log, response: &RunResponse, after: &Aftermath) {
        self.begin(log.info(self.op.message()), after)
            .text("sandbox", &response.sandbox)
            .text("isolation", &response.isolation)
            .with(|line| result(line, response.result.as_ref()))
            .int("duration_ms", response.duration_ms)
            .with(|line| self.trace(line))
            .end_of_run();
    }

    /// Writes the line of a run whose provider returned an error.
    pub(super) fn failed(
        &self,
        log: &Log,
        current: &Current,
        duration_ms: i64,
        after: &Aftermath,
        error: &ProviderError,
    ) {
        let message = format!("{} failed", self.op.message());
        self.begin(log.error(&message), after)
            .text("sandbox", current.sandbox)
            .text("isolation", tier_name(current.tier))
            .int("duration_ms", duration_ms)
            .text("error", &surface::cut(&log_text(error)))
            .with(|line| self.trace(line))
            .end_of_run();
    }

    fn begin<'a>(&self, line: Line<'a>, after: &Aftermath) -> Line<'a> {
        let line = line.text("op", self.op.name()).text("caller", &self.caller);
        let line = match &self.op {
            Op::Javascript {
                code_bytes,
                grant_profile,
            } => line
                .int("code_bytes", *code_bytes)
                .text("grant_profile", grant_profile),
            Op::Project {
                files,
                steps,
                total_bytes,
                grant_profile,
            } => line
                .int("files", *files)
                .int("steps", *steps)
                .int("total_bytes", *total_bytes)
                .text("grant_profile", grant_profile),
            Op::Module {
                model,
                rows,
                row_width,
                max_steps,
            } => line
                .text("model", model)
                .int("rows", *rows)
                .int("row_width", *row_width)
                .int("max_steps", *max_steps),
            Op::Cell {
                language,
                code_bytes,
                files,
            } => line
                .text("language", language)
                .int("code_bytes", *code_bytes)
                .int("files", *files),
        };
        let line = match after.paid() {
            Some(paid) => line.float("paid_seconds", paid.as_secs_f64()),
            None => line,
        };
        let line = if after.gave_up() {
            line.bool("teardown_gave_up", true)
        } else {
            line
        };
        match after.memory_limit_hit() {
            Some(limit) => line
                .bool("oom", true)
                .int("oom_limit_mb", i64::try_from(limit).unwrap_or(i64::MAX)),
            None => line,
        }
    }

    fn trace<'a>(&self, line: Line<'a>) -> Line<'a> {
        match &self.trace {
            Trace::None => line,
            Trace::Kept(id) => line.text("trace_id", id),
            Trace::Rejected => line.bool("trace_id_rejected", true),
        }
    }
}

impl Op {
    /// A missing payload never gets this far; it would read as an empty snippet.
    fn of(payload: Option<&Payload>) -> Op {
        match payload {
            Some(Payload::Project(run)) => Op::Project {
                files: count(run.files.len()),
                steps: count(run.steps.len()),
                total_bytes: count(run.files.iter().map(|f| f.content.len()).sum()),
                grant_profile: run.grant_profile.clone(),
            },
            Some(Payload::Module(run)) => Op::Module {
                model: run.model.clone(),
                rows: count(run.rows.len()),
                row_width: count(run.rows.first().map_or(0, |row| row.values.len())),
                // Bounded by validation, so the cast keeps the value.
                max_steps: (run.end_time / run.step).trunc() as i64 + 2,
            },
            Some(Payload::Cell(run)) => Op::Cell {
                language: run.language.clone(),
                code_bytes: count(run.code.len()),
                files: count(run.files.len()),
            },
            Some(Payload::Javascript(run)) => Op::Javascript {
                code_bytes: count(run.code.len()),
                grant_profile: run.grant_profile.clone(),
            },
            None => Op::Javascript {
                code_bytes: 0,
                grant_profile: String::new(),
            },
        }
    }

    fn name(&self) -> &'static str {
        match self {
            Op::Javascript { .. } => "javascript",
            Op::Project { .. } => "project",
            Op::Module { .. } => "module",
            Op::Cell { .. } => "cell",
        }
    }

    fn message(&self) -> &'static str {
        match self {
            Op::Javascript { .. } | Op::Cell { .. } => "code run",
            Op::Project { .. } => "project run",
            Op::Module { .. } => "module run",
        }
    }
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

fn result<'a>(line: Line<'a>, result: Option<&Wire>) -> Line<'a> {
    match result {
        Some(Wire::Javascript(run)) => line
            .int("exit_code", run.exit_code)
            .bool("timed_out", run.timed_out),
        Some(Wire::Project(run)) => {
            let (exit_code, timed_out) = last_step(run);
            line.text("outcome", outcome_name(run.outcome.to_i32()))
                .text("outcome_detail", &surface::cut(&run.outcome_detail))
                .int("steps_ran", count(run.steps.len()))
                .int("exit_code", exit_code)
                .bool("timed_out", timed_out)
        }
        Some(Wire::Module(run)) => line
            .text("outcome", outcome_name(run.outcome.to_i32()))
            .text("outcome_detail", &surface::cut(&run.outcome_detail))
            .int("runs", count(run.runs.len()))
            .int("width", run.width),
        Some(Wire::Cell(run)) => line
            .int("exit_code", run.exit_code)
            .bool("timed_out", run.timed_out)
            .bool("interpreter_started", run.interpreter_started)
            .bool("interpreter_ended", run.interpreter_ended),
        None => line,
    }
}

fn last_step(run: &ProjectResult) -> (i32, bool) {
    run.steps
        .last()
        .map_or((0, false), |step| (step.exit_code, step.timed_out))
}

fn outcome_name(number: i32) -> &'static str {
    const NAMES: [(ProjectOutcome, &str); 4] = [
        (ProjectOutcome::PROJECT_OUTCOME_COMPLETED, "completed"),
        (ProjectOutcome::PROJECT_OUTCOME_SETUP_FAILED, "setup_failed"),
        (ProjectOutcome::PROJECT_OUTCOME_TIMED_OUT, "timed_out"),
        (
            ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR,
            "protocol_error",
        ),
    ];
    NAMES
        .into_iter()
        .find(|(outcome, _)| *outcome as i32 == number)
        .map_or("unspecified", |(_, name)| name)
}
