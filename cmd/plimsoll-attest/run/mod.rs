//! `run`: code in a sandbox, its record checked and signed into a bundle.

pub mod failure;
mod flags;
mod input;
mod json;
mod session;
mod show;

use clap::ArgMatches;
use plimsoll_attestation::anchor::{AnchorFile, AnchorGuard, Kept};
use plimsoll_client::CancelToken;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Ran, Stream, escape,
    help::Sections,
    output::Stop,
    progress::{Measure, Progress},
    signals::Interrupts,
};
use plimsoll_harness::{Ledger, LoadedKey, Perhaps, RunPlan, Stopped, Target, run::Phase};

use crate::{
    anchors::{self, DISK, Patience},
    cli::Entry,
    signing,
    tidy::TidyDisk,
};
use input::{Input, Plan};

pub const ENTRY: Entry = Entry {
    name: "run",
    stream: Stream::Verdict,
    define: flags::define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "it ran and its record is signed, whatever the guest's own exit code was",
            ),
            (
                ExitCode::Refused,
                "the request or the bundle was refused before the run; nothing ran",
            ),
            (
                ExitCode::Usage,
                "a flag, a key or a file cannot be used; nothing ran",
            ),
            (
                ExitCode::Unrecorded,
                "it may have run, or it ran, and no complete signed record was kept",
            ),
            (
                ExitCode::Unavailable,
                "refused before anything ran, or no daemon could be reached or started",
            ),
            (
                ExitCode::Negative,
                "it ran and is recorded, and --require-success is not met",
            ),
        ],
        environment: &[
            (
                "PLIMSOLL_ATTEST_KEY",
                "the signing key's PEM text, used when --key is absent",
            ),
            (
                "PLIMSOLL_CALLER_TOKEN",
                "bearer token for the daemon named with --daemon",
            ),
            (
                "XDG_CONFIG_HOME, HOME",
                "where the default key lies; it is made on first use",
            ),
        ],
        examples: &[
            (
                "run --js 'console.log(6*7)'",
                "a snippet in an embedded daemon, signed into plimsoll-runs.jsonl",
            ),
            (
                "run --daemon https://sandbox.example --project . --step 'npm test' --floor kernel",
                "a project on your own daemon, behind a user-space kernel or better",
            ),
            (
                "run --require-success --json --file check.js",
                "for a script: exit 5 when the snippet fails, its record kept all the same",
            ),
        ],
    },
    run,
};

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            return console.conclude(Err(Stop::Failed(failure::environment(&format!(
                "signals cannot be handled: {error}"
            )))));
        }
    };
    let code = prepared(console, matches, &interrupts);
    interrupts.end(code)
}

/// The definition, for usage errors that no flag states alone.
pub fn usage(fact: &str, advice: &str) -> Failure {
    plimsoll_console::args::rule(&crate::cli::definition(), &["run"], fact, advice)
}

fn prepared(console: &Console, matches: &ArgMatches, interrupts: &Interrupts) -> ExitCode {
    // Whatever stops the command before it sends: nothing of it ran.
    let stop = |failure: Failure| console.conclude(Err(Stop::Failed(unsent(failure))));
    // Flags, key, request, bundle, daemon: the order in which nothing is
    // contacted before everything local is in order.
    let form = match flags::Form::of(matches) {
        Ok(form) => form,
        Err(failure) => return stop(failure),
    };
    let rules = match input::Rules::of(matches) {
        Ok(rules) => rules,
        Err(failure) => return stop(failure),
    };
    let key = match signing_key(console, &form) {
        Ok(key) => key,
        Err(failure) => return stop(failure),
    };
    let input = match input::read(console, &form, rules, matches) {
        Ok(input) => input,
        Err(failure) => return stop(failure),
    };
    let target = match form.destination.target(console) {
        Ok(target) => target,
        Err(failure) => return stop(failure),
    };
    if let Some(anchor) = &form.anchor
        && let Err(failure) = failure::anchor_place(anchor, &form.bundle)
    {
        return stop(failure);
    }
    let runtime = match crate::runtime::start() {
        Ok(runtime) => runtime,
        Err(error) => {
            return stop(failure::environment(&plimsoll_console::files::plain_words(
                &error,
            )));
        }
    };
    let cancel = CancelToken::new();
    let token = cancel.clone();
    interrupts.on_first(move |_| token.cancel());
    let given_up = cancel.clone();
    let patience = form
        .anchor
        .as_deref()
        .map(|anchor| Patience::new(console, anchor, move || given_up.is_cancelled()));
    let ask = |waited| match &patience {
        Some(patience) => patience.ask(waited),
        None => std::ops::ControlFlow::Continue(()),
    };
    let mut witness = Perhaps(form.anchor.as_ref().map(|anchor| {
        let accepted = vec![key.key.public().clone()];
        AnchorGuard::new(AnchorFile::new(&DISK, anchor, accepted).while_locked(&ask))
    }));
    let ledger = Ledger::new(&form.bundle, form.shared_bundle);
    let facts = Facts {
        bundle: form.bundle.display().to_string(),
        anchor: form.anchor.clone(),
        key_id: key.key.public().id().to_owned(),
        key_created: key.created.is_some(),
        embedded: matches!(target, Target::Embedded(_)),
    };
    let progress = console.progress(Measure::Phase);
    let on_phase = |phase| show_phase(&progress, phase);
    match input {
        Input::Single(Plan { request, wait }) => {
            let report = runtime.block_on(plimsoll_harness::run(
                RunPlan {
                    target,
                    key: &key.key,
                    ledger: &ledger,
                    request,
                    wait,
                    save_artifacts: form.save_artifacts.clone(),
                    cancel: Some(cancel),
                    on_phase: &on_phase,
                },
                &mut witness,
            ));
            // A name that is still being looked up must not be waited for.
            runtime.shutdown_background();
            drop(progress);
            warn_of_killed(console, report.embedded.as_ref());
            tell_of_new(console, &witness);
            match report.result {
                Ok(recorded) => show::recorded(console, &form, &facts, &recorded),
                Err(failed) => {
                    let members = json::failed(&facts, &failed);
                    let failure = failure::of_run(&failed, &facts, witness_line(&witness));
                    console.finish(failure.exit_code(), Errors::One(&failure), members)
                }
            }
        }
        Input::Session(plan) => {
            let report = runtime.block_on(plimsoll_harness::run_session(
                plan.with(target, &key.key, &ledger, cancel, &on_phase),
                &mut witness,
            ));
            // A name that is still being looked up must not be waited for.
            runtime.shutdown_background();
            drop(progress);
            warn_of_killed(console, report.embedded.as_ref());
            tell_of_new(console, &witness);
            session::concluded(console, &form, &facts, &report, witness_line(&witness))
        }
    }
}

type Anchor<'a> = Perhaps<AnchorGuard<'a, TidyDisk>>;

/// The line that the anchor named when the bundle was read.
fn witness_line(witness: &Anchor<'_>) -> Option<u64> {
    witness.0.as_ref().and_then(AnchorGuard::line)
}

/// Says so when an anchor was made that was not there.
fn tell_of_new(console: &Console, witness: &Anchor<'_>) {
    if let Some(guard) = &witness.0
        && guard.kept() == Some(Kept::Created)
    {
        console.note(&format!(
            "no anchor was kept yet; {} was made. Keep it where the bundle's writer cannot reach.",
            anchors::name(guard.path())
        ));
    }
}

/// What every outcome of a run states about itself.
pub struct Facts {
    pub bundle: String,
    pub anchor: Option<std::path::PathBuf>,
    pub key_id: String,
    pub key_created: bool,
    pub embedded: bool,
}

impl Facts {
    /// The members that stand at the end of every object.
    pub fn ending(&self, object: &mut JsonObject) {
        object.push("key_id", &self.key_id);
        object.push("key_created", &self.key_created);
        object.push("embedded", &self.embedded);
    }
}

/// A failure before anything was sent says so.
fn unsent(failure: Failure) -> Failure {
    const NOTHING_RAN: &str = "; nothing was run";
    let failure = failure.ran(Ran::No);
    let said = failure.message().contains("nothing was run") || failure.class() == Class::Usage;
    if said {
        failure
    } else {
        failure.adding(NOTHING_RAN)
    }
}

fn signing_key(console: &Console, form: &flags::Form) -> Result<LoadedKey, Failure> {
    signing::key(console, form.key.as_deref(), true, "nothing was run")
        .map_err(|failure| failure.ran(Ran::No))
}

/// Names what is being done.
pub fn show_phase(progress: &Progress, phase: Phase) {
    progress.phase(match phase {
        Phase::StartingDaemon => "starting daemon",
        Phase::WaitingForTheRun => "waiting for the run",
        Phase::Signing => "signing",
        Phase::WaitingForTheLock => "waiting for the bundle's lock",
    });
}

/// Says so when the embedded daemon had to be killed.
pub fn warn_of_killed(console: &Console, stopped: Option<&Stopped>) {
    if let Some(stopped) = stopped.filter(|stopped| stopped.killed) {
        let last = stopped.last.as_deref().unwrap_or("it logged nothing");
        console.warning(&format!(
            "the embedded daemon did not end and was killed; what it made outside this machine's \
             processes may be left behind. Its last line: {}",
            escape::line_cut(last, 300)
        ));
    }
}
