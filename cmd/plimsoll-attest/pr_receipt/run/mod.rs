//! `pr-receipt run`: a pull request's tests, run once in a sandbox and signed.

mod added;
mod flags;
mod keep;
mod send;
mod subject;

use clap::{ArgMatches, Command};
use plimsoll_attestation::SigningKey;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Ran, Stream, output::Stop,
    signals::Interrupts,
};
use plimsoll_receipt::statement::receipt::KeyKind;

use super::{Sub, shown};
use crate::{run::failure, signing};
use flags::Form;

pub const SUB: Sub = Sub {
    name: "run",
    stream: Stream::Verdict,
    define,
    exit_codes: super::EXIT_CODES,
    environment: &[
        (
            "PLIMSOLL_CALLER_TOKEN",
            "bearer token for the daemon named with --daemon",
        ),
        (
            "GITHUB_EVENT_PATH, GITHUB_EVENT_NAME, GITHUB_SERVER_URL, GITHUB_SHA",
            "what GitHub Actions says of the pull request",
        ),
        (
            "GITHUB_WORKFLOW_REF, GITHUB_RUN_ID, GITHUB_RUN_ATTEMPT",
            "which workflow run this is",
        ),
        (
            "GITHUB_STEP_SUMMARY, GITHUB_OUTPUT",
            "files that the summary and the step's outputs are appended to",
        ),
    ],
    examples: &[
        (
            "pr-receipt run --daemon http://127.0.0.1:8746",
            "on GitHub Actions: everything about the pull request is in the event file",
        ),
        (
            "pr-receipt run --daemon http://127.0.0.1:8746 --repository https://example.com/org/adder --pr 7 --head 242085db39798080553c88a7f6e0b887ba5e33dc --base 19683cb0da16ed7d25edb0cca77be90b2bbfa720 --base-ref main --step 'node --test'",
            "on another CI system, or by hand: full commit IDs; exit codes alone decide",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    flags::define(command)
}

/// A broken rule between the flags.
fn usage(fact: &str, advice: &str) -> Failure {
    super::usage(SUB.name, fact, advice)
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            return console.conclude(Err(Stop::Failed(failure::environment(&format!(
                "signals cannot be handled: {error}"
            )))));
        }
    };
    let code = done(console, matches, &interrupts);
    interrupts.end(code)
}

fn done(console: &Console, matches: &ArgMatches, interrupts: &Interrupts) -> ExitCode {
    let stop = |failure: Failure| console.conclude(Err(Stop::Failed(unsent(failure))));
    // Event, flags, commit, files, key: nothing is contacted before all of it
    // is in order.
    let form = match Form::of(matches) {
        Ok(form) => form,
        Err(failure) => return stop(failure),
    };
    let subject = match subject::Subject::read(console, &form) {
        Ok(subject) => subject,
        Err(failure) => return stop(failure),
    };
    let (key, kind) = match key(console, &form) {
        Ok(key) => key,
        Err(failure) => return stop(failure),
    };
    let target = match form.destination.target(console) {
        Ok(target) => target,
        Err(failure) => return stop(failure),
    };
    let out = match keep::Out::prepare(&form.out) {
        Ok(out) => out,
        Err(failure) => return stop(failure),
    };
    let apart = out
        .apart(form.summary.as_deref(), "the file for the summary")
        .and_then(|()| out.apart(form.outputs.as_deref(), "GITHUB_OUTPUT"));
    if let Err(failure) = apart {
        out.abandon();
        return stop(failure);
    }
    let sent = send::send(console, interrupts, &form, &subject, &key, target, &out);
    match sent {
        Err(failed) => {
            // What a failure after the run left is kept for whoever looks.
            if failed.exit_code() != ExitCode::Unrecorded {
                out.abandon();
            }
            console.finish(failed.exit_code(), Errors::One(&failed), JsonObject::new())
        }
        Ok(()) => match keep::keep(&form, subject, &key, kind, &out) {
            Err(failed) => {
                console.finish(failed.exit_code(), Errors::One(&failed), JsonObject::new())
            }
            Ok(rendered) => concluded(console, &form, &rendered),
        },
    }
}

/// Tells the result; failed tests are exit 5 unless asked otherwise.
fn concluded(
    console: &Console,
    form: &Form,
    rendered: &plimsoll_receipt::assemble::Rendered,
) -> ExitCode {
    let facts = &rendered.facts;
    let _ = console.print(&shown::table(facts, "same as base: not checked here"));
    let members = shown::members(&form.out, facts).with("ran", "yes");
    let passed = facts.result != "FAILED";
    let failure = (!passed && form.fail_on_tests).then(|| {
        let class = match facts.counts.passed + facts.counts.warned + facts.counts.failed {
            0 => Class::NoTests,
            _ => Class::TestsFailed,
        };
        let why = facts.remarks.first();
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        Failure::new(
            class,
            format!(
                "the tests did not pass: {} passed, {} failed{why}",
                facts.counts.passed, facts.counts.failed
            ),
            "The receipt was made and is good evidence of it. --fail-on never makes this exit 0.",
        )
        .ran(Ran::Yes)
    });
    let code = failure.as_ref().map_or(ExitCode::Ok, Failure::exit_code);
    for warning in keep::publish(form, rendered, code) {
        console.warning(&warning);
    }
    let verify = format!(
        "check it with: plimsoll-attest pr-receipt verify --repo . --head {} --keyid {} {}",
        facts.head_sha,
        facts.key_id,
        form.out.display()
    );
    console.note(&verify);
    match &failure {
        Some(failure) => console.finish(code, Errors::One(failure), members),
        None => console.finish(code, Errors::None, members),
    }
}

/// The key: one made here, whose private half never leaves this process.
fn key(console: &Console, form: &Form) -> Result<(SigningKey, KeyKind), Failure> {
    if let Some(file) = &form.key {
        let loaded = signing::key(console, Some(file), false, "nothing was run")?;
        return Ok((loaded.key, KeyKind::File));
    }
    signing::hide_memory();
    let key = SigningKey::generate().map_err(|fault| {
        Failure::new(
            Class::Key,
            format!("no key could be made: {fault}; nothing was run"),
            fault.cure(),
        )
    })?;
    Ok((key, KeyKind::Ephemeral))
}

/// A failure before anything was sent says so.
fn unsent(failure: Failure) -> Failure {
    let failure = failure.ran(Ran::No);
    if failure.message().contains("nothing was run") || failure.class() == Class::Usage {
        failure
    } else {
        failure.adding("; nothing was run")
    }
}
