//! What a person and a script see of a replay.

use std::path::{Path, PathBuf};

use plimsoll_client::{CallFailure, Class as CallClass, Ran as ClientRan, Stage};
use plimsoll_console::{Class, ExitCode, Failure, JsonObject, Ran, escape, json::Count};
use plimsoll_harness::replay::{Outcome, Problem, Replayed};
use plimsoll_wire::Reason;
use serde::Serialize;

use crate::run::failure;

/// Most characters of a failure's text in the line of a call.
const MOST_TEXT: usize = 300;
/// Characters of a result digest in the line of a call.
const DIGEST_CHARS: usize = 16;

/// The calls replayed so far, and the verdict over them.
pub struct Results {
    file: PathBuf,
    embedded: bool,
    shown: Vec<Shown>,
    halt: Option<Failure>,
    same: u64,
    different: u64,
    failed: u64,
    unanswered: u64,
    /// The first failure of each exit code.
    failures: Vec<Failure>,
}

#[derive(Serialize)]
struct Shown {
    line: Count,
    #[serde(skip_serializing_if = "String::is_empty")]
    session: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    recorded: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<String>,
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    member: Option<String>,
    ran: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Failure>,
}

impl Results {
    pub fn new(file: &Path, embedded: bool) -> Self {
        Results {
            file: file.to_owned(),
            embedded,
            shown: Vec::new(),
            halt: None,
            same: 0,
            different: 0,
            failed: 0,
            unanswered: 0,
            failures: Vec::new(),
        }
    }

    /// Whether any call was replayed.
    pub fn any(&self) -> bool {
        !self.shown.is_empty()
    }

    /// Takes a call and gives its lines.
    pub fn take(&mut self, call: Replayed) -> Vec<String> {
        let entry = entry(&call);
        let ran = call.ran().name();
        let replayed = call.replayed.map(|digest| digest.to_hex());
        let short = |digest: &str| digest.chars().take(DIGEST_CHARS).collect::<String>();
        let mut lines = Vec::new();
        let mut member = None;
        let mut error = None;
        let outcome = match &call.outcome {
            Outcome::Same => {
                self.same += 1;
                lines.push(format!(
                    "{entry}: same result ({})\n",
                    short(&call.recorded)
                ));
                "same"
            }
            Outcome::Different { member: differing } => {
                self.different += 1;
                lines.push(format!(
                    "{entry}: different result: recorded {}, replayed {}; first differing member \
                     {}\n",
                    short(&call.recorded),
                    short(replayed.as_deref().unwrap_or_default()),
                    escape::line(differing)
                ));
                let failure = Failure::new(
                    Class::Different,
                    format!("the replay gave another result; first differing member {differing}"),
                    "The workload is not deterministic, or the daemon runs it otherwise than the \
                     one that recorded it. inspect --line shows the recorded result.",
                )
                .reason("result")
                .expected(&call.recorded)
                .found(replayed.as_deref().unwrap_or_default())
                .ran(Ran::Yes);
                member = Some(differing.clone());
                error = Some(failure);
                "different"
            }
            Outcome::Failed(problem) => {
                self.failed += 1;
                lines.push(failed_line(&entry, problem));
                error = Some(self.of_problem(problem, call.protocol));
                "failed"
            }
            Outcome::Unanswered { code, problem } => {
                self.unanswered += 1;
                lines.push(format!(
                    "{entry}: recorded without an answer ({}), nothing to compare\n",
                    escape::line(code)
                ));
                if let Some(problem) = problem {
                    lines.push(failed_line(&entry, problem));
                    error = Some(self.of_problem(problem, call.protocol));
                }
                "unanswered"
            }
        };
        let error = error.map(|failure| failure.file(&self.file).line(call.line));
        if let Some(failure) = &error {
            self.remember(failure);
        }
        self.shown.push(Shown {
            line: Count(call.line),
            session: call.session,
            recorded: call.recorded,
            replayed,
            outcome,
            member,
            ran,
            error,
        });
        lines
    }

    /// Takes what ended the replay early.
    pub fn halted(&mut self, failure: Failure) {
        self.halt = Some(failure);
    }

    fn remember(&mut self, failure: &Failure) {
        let code = failure.exit_code();
        if self.failures.iter().all(|known| known.exit_code() != code) {
            self.failures.push(failure.clone());
        }
    }

    /// `K of M replays reproduced the recorded result`.
    pub fn summary(&self) -> String {
        format!(
            "{} of {} replays reproduced the recorded result\n",
            self.same,
            self.shown.len()
        )
    }

    /// The exit code over all calls, and the first failure that gives it.
    pub fn verdict(&self) -> (ExitCode, Option<Failure>) {
        let mut failures: Vec<Failure> = self.halt.iter().cloned().collect();
        failures.extend(self.failures.iter().cloned());
        if failures.is_empty() && self.same == 0 {
            // Every call was recorded without an answer.
            failures.push(
                Failure::new(
                    Class::Different,
                    "no call was recorded with an answer, so nothing was reproduced",
                    "Only answered calls have a result to compare with.",
                )
                .reason("result")
                .file(&self.file)
                .ran(Ran::Maybe),
            );
        }
        let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
        let worst = failures.into_iter().find(|f| f.exit_code() == code);
        (code, worst)
    }

    /// The members of the object.
    pub fn members(&self, object: &mut JsonObject) {
        object.push("results", &self.shown);
        for (name, count) in [
            ("same", self.same),
            ("different", self.different),
            ("failed", self.failed),
            ("unanswered", self.unanswered),
        ] {
            object.push(name, &Count(count));
        }
    }

    fn of_problem(&self, problem: &Problem, protocol: u32) -> Failure {
        let call = &problem.failure;
        if problem.at_open && !matches!(call.ran, ClientRan::No { .. }) {
            return Failure::new(
                Class::NotDispatched,
                failure::plain(&format!(
                    "its session could not be opened, so the call was not sent: {call}"
                )),
                "A session may have been opened; the daemon ends it by itself. Replay again once \
                 the daemon answers.",
            )
            .reason(Reason::Unknown.name())
            .ran(Ran::No);
        }
        if call.not_dispatched() == Some(Reason::Protocol) {
            return Failure::new(
                Class::NotDispatched,
                format!(
                    "the recorded request states protocol {protocol}, which the daemon refused \
                     before it ran: {call}"
                ),
                "A recorded request is sent exactly as stored. Replay it on a daemon that serves \
                 its protocol.",
            )
            .reason(Reason::Protocol.name())
            .ran(Ran::No);
        }
        if call.stage == Stage::Local && call.class == CallClass::InvalidRequest {
            let failure = Failure::new(
                Class::NotDispatched,
                format!("the recorded request is not valid and was not sent: {call}"),
                "No daemon of this protocol takes it, so it cannot have run as recorded. Ask \
                 whoever holds the key.",
            )
            .reason(Reason::Request.name())
            .ran(Ran::No);
            return if call.member.is_empty() {
                failure
            } else {
                failure.member(format!("request.{}", call.member))
            };
        }
        failure::of_call(call, self.embedded)
    }
}

/// `entry N`, with the session's beginning for a session's call.
fn entry(call: &Replayed) -> String {
    if call.session.is_empty() {
        return format!("entry {}", call.line);
    }
    format!("entry {} (session {})", call.line, short(&call.session))
}

fn short(session: &str) -> String {
    let begin: String = session.chars().take(12).collect();
    format!("{}…", escape::line(begin))
}

fn failed_line(entry: &str, problem: &Problem) -> String {
    let ran = match problem.ran() {
        ClientRan::No { .. } => "nothing ran",
        ClientRan::Maybe | ClientRan::Yes => "may have run",
    };
    let opening = if problem.at_open {
        "its session could not be opened: "
    } else {
        ""
    };
    format!(
        "{entry}: the replay failed: {opening}{}; {ran}\n",
        escape::line_cut(failure::plain(&problem.failure.to_string()), MOST_TEXT)
    )
}

/// A session's close that did not check. Raw text, for a warning.
pub fn close_warning(session: &str, failure: &CallFailure) -> String {
    format!(
        "the fresh session for {} did not close as its calls say: {}",
        session.chars().take(12).collect::<String>() + "…",
        failure::plain(&failure.to_string())
    )
}
