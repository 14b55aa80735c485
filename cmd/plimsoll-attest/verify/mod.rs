//! `verify`: whole bundles, offline.

mod anchor;
mod check;
mod flags;
mod follow;
mod shown;
mod state;

use std::path::Path;

use clap::ArgMatches;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Stream, escape,
    files::{Inputs, plain_words},
    help::Sections,
    output::Stop,
    signals::Interrupts,
};

use crate::{cli::Entry, expect::Expectations, explain::Explain, keys, policy::Policies};
use anchor::Anchors;
pub use anchor::Met;
use check::{Asked, Verdict};
use flags::Form;
use shown::Shown;
pub use shown::success_line;
use state::StateFile;

pub const ENTRY: Entry = Entry {
    name: "verify",
    stream: Stream::Verdict,
    define: flags::define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "every bundle verifies and meets what was asked",
            ),
            (
                ExitCode::Refused,
                "evidence is refused, or an expectation is not met",
            ),
            (
                ExitCode::Usage,
                "a file or a key cannot be read, or flags are wrong",
            ),
            (
                ExitCode::Negative,
                "the evidence is good and a policy is not met",
            ),
        ],
        environment: &[
            (
                "XDG_CONFIG_HOME, HOME",
                "where the default key lies, for --own and --write-anchor",
            ),
            (
                "PLIMSOLL_ATTEST_KEY",
                "the signing key's PEM text, used by --write-anchor when --key is absent",
            ),
            (
                "XDG_STATE_HOME, HOME",
                "where the key of --state lies; it is made on first use",
            ),
        ],
        examples: &[
            (
                "verify --pub ci.pub plimsoll-runs.jsonl",
                "is this file exactly what the key holder wrote?",
            ),
            (
                "verify --pub ci.pub --expect requests.txt plimsoll-runs.jsonl",
                "and does it hold exactly these requests?",
            ),
            (
                "verify --pub ci.pub --require-tier kernel --require-outcome success runs.jsonl",
                "and did every call succeed behind a kernel boundary or better?",
            ),
            (
                "verify --pub ci.pub --anchor runs.anchor --write-anchor runs.anchor --key mine.key runs.jsonl",
                "was nothing cut off since the anchor was kept? and move it forward",
            ),
            (
                "verify --pub ci.pub --follow --for 10m runs.jsonl",
                "check each call of a bundle that is still being written as it comes",
            ),
            (
                "verify --pub a.pub --pub b.pub --json one.jsonl two.jsonl",
                "several bundles, each signed by one of two keys, for a script",
            ),
        ],
    },
    run,
};

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let inputs = Inputs::new(console);
    match prepared(console, &inputs, matches) {
        Ok(prepared) => prepared.run(console, &inputs),
        Err(failure) => console.conclude(Err(Stop::Failed(failure))),
    }
}

/// A command line whose flags, keys and lists are read.
struct Prepared {
    form: Form,
    asked: Asked,
    anchors: Anchors,
    state: Option<StateFile>,
    interrupts: Option<Interrupts>,
}

fn prepared(
    console: &Console,
    inputs: &Inputs<'_>,
    matches: &ArgMatches,
) -> Result<Prepared, Failure> {
    let form = Form::of(matches)?;
    let keys = keys::verifying(console, matches)?;
    let anchors = Anchors::read(console, &form, &keys)?;
    // What is being written when a signal comes is removed.
    let interrupts = if form.follow || form.write_anchor.is_some() || form.state.is_some() {
        Some(Interrupts::install().map_err(|error| {
            Failure::new(
                Class::Io,
                format!("signals cannot be handled: {}", plain_words(&error)),
                "Run it again once the machine allows it.",
            )
        })?)
    } else {
        None
    };
    let state = form.state.as_deref().map(StateFile::at).transpose()?;
    Ok(Prepared {
        asked: Asked {
            keys,
            expectations: Expectations::read(inputs, matches)?,
            policies: Policies::read(matches),
            explain: matches.get_flag("explain").then(Explain::default),
        },
        form,
        anchors,
        state,
        interrupts,
    })
}

impl Prepared {
    fn run(mut self, console: &Console, inputs: &Inputs<'_>) -> ExitCode {
        let bundles = std::mem::take(&mut self.form.bundles);
        let stats = self.form.stats.then(shown::Clock::start);
        let several = bundles.len() > 1;
        let mut verdicts = Vec::new();
        for file in &bundles {
            let verdict = self.verdict(console, inputs, file);
            let prefix = if several {
                format!("{}: ", escape::path(file))
            } else {
                String::new()
            };
            for line in shown::lines(&verdict) {
                let _ = console.print(&format!("{prefix}{line}\n"));
            }
            if several {
                verdict
                    .failures
                    .iter()
                    .for_each(|failure| console.show(failure));
            }
            verdicts.push(verdict);
        }
        let code = concluded(console, &verdicts, stats);
        match self.interrupts {
            Some(interrupts) => interrupts.end(code),
            None => code,
        }
    }

    fn verdict(&mut self, console: &Console, inputs: &Inputs<'_>, file: &Path) -> Verdict {
        let asked = self.asked.clone();
        match &self.interrupts {
            Some(interrupts) if self.form.follow => follow::one(
                console,
                file,
                asked,
                &mut self.anchors,
                self.form.follow_for,
                interrupts,
            ),
            _ => check::one(
                console,
                inputs,
                file,
                asked,
                &mut self.anchors,
                self.state.as_ref(),
            ),
        }
    }
}

fn concluded(console: &Console, verdicts: &[Verdict], stats: Option<shown::Clock>) -> ExitCode {
    let several = verdicts.len() > 1;
    let mut members = JsonObject::new();
    if let Some(clock) = stats {
        let stats = clock.stop(verdicts);
        if !console.options().json {
            console.note(&stats.to_text());
        }
        members.push("stats", &stats);
    }
    let failures: Vec<Failure> = verdicts
        .iter()
        .flat_map(|verdict| verdict.failures.iter().cloned())
        .collect();
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    members.push(
        "bundles",
        &verdicts.iter().map(Shown::from).collect::<Vec<_>>(),
    );
    let explained: Vec<_> = verdicts.iter().filter_map(Verdict::explained).collect();
    for (text, _) in &explained {
        let _ = console.print(text);
    }
    match explained.as_slice() {
        [] => {}
        [(_, explained)] => members.push("explain", explained),
        several => {
            let lists: Vec<_> = several.iter().map(|(_, explained)| explained).collect();
            members.push("explain", &lists);
        }
    }
    match failures.as_slice() {
        [failure] if !several => console.finish(code, Errors::One(failure), members),
        failures if console.options().json || !several => {
            console.finish(code, Errors::Many(failures), members)
        }
        // Their blocks were shown as they came.
        _ => console.finish(code, Errors::None, members),
    }
}
