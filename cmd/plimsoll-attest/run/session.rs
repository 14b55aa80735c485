//! What a person and a script see of a session.

use plimsoll_client::Ran as ClientRan;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, escape, failure::Ran,
};
use plimsoll_harness::{
    SessionReport,
    failure::Class as HarnessClass,
    outcome::{is_success, summary},
    session::{SessionCall, SessionProblem},
};
use serde::Serialize;

use super::{
    Facts, failure,
    flags::{Form, Print},
    show,
};

#[derive(Serialize)]
struct ShownCall<'a> {
    number: usize,
    answered: bool,
    success: bool,
    summary: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    unanswered: Option<&'a str>,
    record_sha256: &'a str,
    request_sha256: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
}

/// Shows a session and gives its exit code.
pub fn concluded(
    console: &Console,
    form: &Form,
    facts: &Facts,
    report: &SessionReport,
    anchored: Option<u64>,
) -> ExitCode {
    let calls = shown_calls(report);
    if let Some(opened) = &report.opened {
        let short: String = opened.session.chars().take(12).collect();
        let end = if report.closed.is_some() {
            "closed"
        } else {
            "not closed"
        };
        let recorded = report.appended.as_ref().map_or(0, |_| calls.len());
        let _ = console.print(&format!(
            "session {short}… on {} ({}): {recorded} calls recorded, {end}\n",
            escape::line(&opened.provider),
            escape::line(&opened.isolation)
        ));
    }
    for (call, shown) in report.calls.iter().zip(&calls) {
        let _ = console.print(&format!(
            "call {}: {}; record {}\n",
            shown.number, shown.summary, shown.record_sha256
        ));
        if let (SessionCall::Answered(checked), Print::Escaped) = (call, form.print) {
            for block in show::blocks(&checked.response) {
                let _ = console.print(&block);
            }
        }
    }
    if let Some(opened) = &report.opened {
        console.note(&format!(
            "the tier {} is {}",
            opened.isolation,
            show::QUALIFIED
        ));
    }
    let mut failures = failures(report, facts, anchored);
    if failures.is_empty() && form.require_success && calls.iter().any(|call| !call.success) {
        failures.push(failure::not_success(None, "a call of the session was none"));
    }
    let object = object(facts, report, &calls);
    let Some(first) = failures.first().cloned() else {
        return console.finish(ExitCode::Ok, Errors::None, object);
    };
    // Everything else that went wrong is told as it is; the worst is the verdict.
    for other in failures.iter().skip(1) {
        console.warning(other.message());
    }
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    console.finish(code, Errors::One(&first), object)
}

fn shown_calls(report: &SessionReport) -> Vec<ShownCall<'_>> {
    let line = |at: usize| {
        report
            .appended
            .as_ref()
            .and_then(|appended| appended.lines.get(at).copied())
    };
    report
        .calls
        .iter()
        .enumerate()
        .map(|(at, call)| match call {
            SessionCall::Answered(checked) => ShownCall {
                number: at + 1,
                answered: true,
                success: is_success(&checked.request, &checked.response),
                summary: summary(&checked.response),
                unanswered: None,
                record_sha256: &checked.record().record_sha256,
                request_sha256: &checked.record().request_sha256,
                line: line(at),
            },
            SessionCall::Unanswered { record, .. } => ShownCall {
                number: at + 1,
                answered: false,
                success: false,
                summary: format!("may have run, no answer ({})", record.unanswered),
                unanswered: Some(&record.unanswered),
                record_sha256: &record.record_sha256,
                request_sha256: &record.request_sha256,
                line: line(at),
            },
        })
        .collect()
}

fn failures(report: &SessionReport, facts: &Facts, anchored: Option<u64>) -> Vec<Failure> {
    let ran_calls = report.calls.len();
    let mut failures: Vec<Failure> = report
        .problems
        .iter()
        .map(|problem| match problem {
            SessionProblem::Before(failed) => failure::of_run(failed, facts, anchored),
            SessionProblem::Open(call) => failure::of_call(call, facts.embedded),
            SessionProblem::Call {
                number,
                failure: call,
            } => {
                let failure = failure::of_call(call, facts.embedded).line(*number as u64);
                let refused = matches!(call.ran, ClientRan::No { .. });
                if refused && ran_calls > 0 {
                    // Earlier calls ran and are recorded: nothing is unavailable.
                    failure.exit(ExitCode::Refused)
                } else {
                    failure
                }
            }
            SessionProblem::Close(call) => not_kept(
                "close",
                &format!("the session's close did not check and is not signed: {call}"),
                &not_appended(report),
            ),
            SessionProblem::Sign(fault) => not_kept(
                "sign",
                &format!("a call cannot be signed: {fault}"),
                "Please report it.",
            ),
            SessionProblem::Journal(error) => not_kept(
                "journal",
                &format!("the file that keeps signed entries meanwhile failed: {error}"),
                "Make the bundle's directory writable.",
            ),
            SessionProblem::Append(error) => not_kept(
                error.fault.reason(),
                &format!("the session ran and was not recorded: {error}"),
                &failure::kept(error),
            ),
            SessionProblem::Anchor(error) => not_kept(
                "anchor",
                &format!("the session is recorded; the anchor was not written: {error}"),
                &failure::write_anchor(facts, anchored),
            ),
        })
        .collect();
    // The report's own order of badness decides which is the verdict.
    if let Some(worst) = report.class().map(HarnessClass::word) {
        failures.sort_by_key(|failure| failure.class().word() != worst);
    }
    failures
}

/// What became of a session that was not closed.
fn not_appended(report: &SessionReport) -> String {
    let nothing = "Nothing of the session is in the bundle, which can be continued.";
    match &report.left {
        Some(file) => format!(
            "{nothing} Its signed calls, without links, were kept in {}. Keep that file: it proves \
             them.",
            file.display()
        ),
        None => nothing.to_owned(),
    }
}

fn not_kept(reason: &str, fact: &str, advice: &str) -> Failure {
    Failure::new(Class::NotKept, failure::plain(fact), advice)
        .reason(reason)
        .ran(Ran::Yes)
}

fn object(facts: &Facts, report: &SessionReport, calls: &[ShownCall<'_>]) -> JsonObject {
    let mut object = JsonObject::new().with("ran", report.ran().name());
    if let Some(opened) = &report.opened {
        object.push("provider", &opened.provider);
        object.push("isolation", &opened.isolation);
        object.push("session", &opened.session);
    }
    object.push("calls", calls);
    object.push("closed", &report.closed.is_some());
    let all = !calls.is_empty() && calls.iter().all(|call| call.success);
    object.push("success", &all);
    object.push("bundle", &facts.bundle);
    if let Some(line) = report.appended.as_ref().and_then(|a| a.lines.first()) {
        object.push("line", line);
    }
    let kept = !report
        .problems
        .iter()
        .any(|problem| matches!(problem, SessionProblem::Anchor(_)));
    if let Some(anchor) = facts
        .anchor
        .as_ref()
        .filter(|_| kept && report.appended.is_some())
    {
        object.push("anchor", &anchor.to_string_lossy());
    }
    if let Some(left) = &report.left {
        object.push("unsealed", &left.to_string_lossy());
    }
    facts.ending(&mut object);
    object
}
