//! What a person sees of a recorded run.

use std::io::Write;

use plimsoll_client::Checked;
use plimsoll_console::{Class, Console, Errors, ExitCode, Failure, escape, failure::Ran};
use plimsoll_harness::{
    Recorded,
    artifacts::SaveError,
    outcome::{is_success, summary},
};
use plimsoll_wire::{
    Kind,
    proto::{RunResponse, run_response::Result as RunResult},
};

use super::{
    Facts, failure,
    flags::{Form, Print},
    json::{self, Place},
};

/// Most of one stream that is shown, in bytes.
const MOST_SHOWN: usize = 64 << 10;
/// What must be said wherever a tier is.
pub const QUALIFIED: &str = "stated by the daemon; not hardware attestation";

/// Shows a recorded run and gives its exit code.
pub fn recorded(console: &Console, form: &Form, facts: &Facts, recorded: &Recorded) -> ExitCode {
    let checked = &recorded.checked;
    console.if_output_is_lost(format!(
        "It ran, and its record is in {}, line {}: do not run it again just to see its output.",
        facts.bundle,
        recorded.line()
    ));
    let mut object = json::recorded(
        facts,
        checked,
        &Place {
            line: recorded.line(),
        },
    );
    let lines = [ran_line(checked), signed_line(checked, facts)];
    if form.print == Print::Raw && !console.options().json {
        raw(console, &lines, &checked.response);
    } else {
        for line in &lines {
            let _ = console.print(line);
        }
        if form.print == Print::Escaped {
            for block in blocks(&checked.response) {
                let _ = console.print(&block);
            }
        }
    }
    console.note(&format!(
        "the tier {} is {QUALIFIED}",
        checked.record().isolation
    ));
    let mut failures = Vec::new();
    match &recorded.saved {
        Some(Err(error)) => failures.push(not_saved(error)),
        Some(Ok(count)) => {
            let dir = form
                .save_artifacts
                .as_deref()
                .unwrap_or_else(|| "".as_ref());
            let _ = console.success(&format!("{count} artifacts below {}\n", escape::path(dir)));
        }
        None => {}
    }
    if form.require_success && !is_success(&checked.request, &checked.response) {
        let kind = Kind::of_response(&checked.response);
        failures.push(failure::not_success(kind, &summary(&checked.response)));
    }
    if let [failure] = failures.as_slice() {
        return console.finish(failure.exit_code(), Errors::One(failure), object);
    }
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    if failures.is_empty() {
        return console.finish(code, Errors::None, object);
    }
    object.push("errors", &failures);
    console.finish(code, Errors::One(&failures[0]), object)
}

/// `ran on <provider> (<isolation>): <summary>`.
pub fn ran_line(checked: &Checked) -> String {
    format!(
        "ran on {} ({}): {}\n",
        escape::line(&checked.response.sandbox),
        escape::line(&checked.response.isolation),
        summary(&checked.response)
    )
}

fn signed_line(checked: &Checked, facts: &Facts) -> String {
    format!(
        "record {} signed into {}; request {} (the line for verify --expect)\n",
        checked.record().record_sha256,
        escape::line(&facts.bundle),
        checked.record().request_sha256
    )
}

/// The guest's output, each stream in a block.
pub fn blocks(response: &RunResponse) -> Vec<String> {
    match &response.result {
        Some(RunResult::Javascript(r)) => {
            streams(&r.stdout, &r.stderr, r.stdout_truncated, r.stderr_truncated)
        }
        Some(RunResult::Cell(r)) => {
            streams(&r.stdout, &r.stderr, r.stdout_truncated, r.stderr_truncated)
        }
        Some(RunResult::Project(r)) => r
            .steps
            .iter()
            .enumerate()
            .flat_map(|(i, step)| {
                let late = if step.timed_out { ", timed out" } else { "" };
                let heading = format!(
                    "step {}: {} (exit {}{late})\n",
                    i + 1,
                    escape::line_cut(&step.command, 200),
                    step.exit_code
                );
                let mut blocks = vec![heading];
                blocks.extend(streams(
                    &step.stdout,
                    &step.stderr,
                    step.stdout_truncated,
                    step.stderr_truncated,
                ));
                blocks
            })
            .collect(),
        Some(RunResult::Module(r)) => streams(&r.stdout, &r.stderr, false, false),
        None => Vec::new(),
    }
}

fn streams(stdout: &[u8], stderr: &[u8], out_cut: bool, err_cut: bool) -> Vec<String> {
    let mut blocks = Vec::new();
    for (name, bytes, cut) in [("stdout", stdout, out_cut), ("stderr", stderr, err_cut)] {
        if !bytes.is_empty() {
            let block = escape::block(bytes, MOST_SHOWN);
            let end = if block.ends_with('\n') { "" } else { "\n" };
            blocks.push(format!("{name}:\n{block}{end}"));
        }
        if cut {
            blocks.push(format!("{name} was truncated by the daemon\n"));
        }
    }
    blocks
}

/// The guest's bytes as they are: what `--print raw` is for.
fn raw(console: &Console, lines: &[String], response: &RunResponse) {
    let (stdout, stderr) = match &response.result {
        Some(RunResult::Javascript(r)) => (r.stdout.clone(), r.stderr.clone()),
        Some(RunResult::Cell(r)) => (r.stdout.clone(), r.stderr.clone()),
        Some(RunResult::Project(r)) => (
            r.steps
                .iter()
                .flat_map(|s| s.stdout.iter().copied())
                .collect(),
            r.steps
                .iter()
                .flat_map(|s| s.stderr.iter().copied())
                .collect(),
        ),
        Some(RunResult::Module(r)) => (r.stdout.clone(), r.stderr.clone()),
        None => (Vec::new(), Vec::new()),
    };
    let _ = console.product(&stdout);
    let mut err = std::io::stderr().lock();
    for line in lines {
        let _ = err.write_all(line.as_bytes());
    }
    let _ = err.write_all(&stderr);
}

fn not_saved(error: &SaveError) -> Failure {
    let fact = format!("it ran and is recorded; its artifacts were not written: {error}");
    let failure = Failure::new(
        Class::NotKept,
        failure::plain(&fact),
        "Nothing partial is left, and the bundle holds what the daemon returned: inspect shows it.",
    )
    .reason("artifacts")
    .ran(Ran::Yes);
    failure::of_artifacts(failure, error)
}
