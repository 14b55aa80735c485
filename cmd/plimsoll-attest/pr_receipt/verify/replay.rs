//! `--replay`: the same request on the reviewer's own daemon.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_attestation::SigningKey;
use plimsoll_client::CancelToken;
use plimsoll_console::{Class, Console, Failure, progress::Measure, signals::Interrupts};
use plimsoll_harness::{Ledger, RunPlan, Target, request::default_wait};
use plimsoll_receipt::{
    outcome::{Outcome, evaluate, project},
    verify::Report,
};
use plimsoll_record::result_digest;

use super::usage;
use crate::{
    run::{Facts, failure, show_phase, warn_of_killed},
    target::{self, Destination},
};

/// Adds the flags.
pub fn define(command: Command) -> Command {
    command
        .arg(
            Arg::new("replay")
                .long("replay")
                .action(ArgAction::SetTrue)
                .help("Run the same request on your own daemon too, and compare"),
        )
        .args(target::flags())
        .mut_arg("daemon", |arg| arg.help("The daemon of --replay"))
        .mut_arg("provider", |arg| {
            arg.help("The provider of a daemon started for --replay; wasm runs no projects")
        })
}

/// Where a replay is sent.
pub struct Replay(Target);

impl Replay {
    /// Reads the flags; `None` when no replay is asked for.
    ///
    /// # Errors
    /// Class `usage`, `config` or `io`.
    pub fn read(console: &Console, matches: &ArgMatches) -> Result<Option<Replay>, Failure> {
        let named = ["daemon", "provider", "ca-file"]
            .iter()
            .any(|id| matches.value_source(id).is_some());
        if !matches.get_flag("replay") {
            if named {
                return Err(usage(
                    super::SUB.name,
                    "--daemon, --provider and --ca-file go with --replay",
                    "Add --replay, or leave them out.",
                ));
            }
            return Ok(None);
        }
        if matches.value_source("daemon").is_none() && matches.value_source("provider").is_none() {
            return Err(usage(
                super::SUB.name,
                "--replay needs a daemon",
                "Name it with --daemon, or --provider for one that is started for this check.",
            ));
        }
        let destination = Destination::read("pr-receipt verify", matches)?;
        Ok(Some(Replay(destination.target(console)?)))
    }

    /// Runs the receipt's request and compares: the word of the outcome, and
    /// the failure when there is one.
    pub fn run(
        self,
        console: &Console,
        report: &Report,
        floor: Option<&str>,
    ) -> (&'static str, Option<Failure>) {
        let (Some(run), Some(before)) = (&report.run, &report.outcome) else {
            return ("not run", None);
        };
        match self.again(console, run) {
            Err(failure) => ("failed", Some(failure)),
            Ok(response) => {
                if result_digest(&response).is(&run.record.result_sha256) {
                    let _ = console.print("replay: identical\n");
                    return ("identical", None);
                }
                let specs: Vec<_> = before
                    .reports
                    .iter()
                    .map(|found| found.spec.clone())
                    .collect();
                let Some((asked, result)) = project(&run.request, &response) else {
                    return (
                        "different verdict",
                        Some(different("the answer holds no project")),
                    );
                };
                let after = evaluate(asked, result, &specs);
                if let Some(floor) = floor
                    && !plimsoll_wire::tier::meets(&response.isolation, floor)
                {
                    return (
                        "floor not met",
                        Some(Failure::new(
                            Class::FloorNotMet,
                            format!(
                                "the replay's tier is {}; the floor is {floor}",
                                response.isolation
                            ),
                            "Replay on a daemon with a stronger provider.",
                        )),
                    );
                }
                if same(before, &after) {
                    let _ = console.print("replay: same verdict\n");
                    ("same verdict", None)
                } else {
                    let _ = console.print("replay: different verdict\n");
                    (
                        "different verdict",
                        Some(different(&format!(
                            "the replay says {} with {} passed and {} failed",
                            after.verdict.name(),
                            after.counts.passed,
                            after.counts.failed
                        ))),
                    )
                }
            }
        }
    }

    /// The run goes into a bundle of its own that is thrown away.
    fn again(
        self,
        console: &Console,
        run: &plimsoll_receipt::run::Run,
    ) -> Result<plimsoll_wire::proto::RunResponse, Failure> {
        let environment = |error: &dyn std::fmt::Display| failure::environment(&error.to_string());
        let folder = tempfile::tempdir().map_err(|error| environment(&error))?;
        let key = SigningKey::generate().map_err(|error| environment(&error))?;
        let bundle = folder.path().join("replay.jsonl");
        let interrupts = Interrupts::install().map_err(|error| environment(&error))?;
        let runtime = crate::runtime::start().map_err(|error| environment(&error))?;
        let cancel = CancelToken::new();
        let token = cancel.clone();
        interrupts.on_first(move |_| token.cancel());
        let facts = Facts {
            anchor: None,
            bundle: bundle.display().to_string(),
            key_id: key.public().id().to_owned(),
            key_created: false,
            embedded: matches!(self.0, Target::Embedded(_)),
        };
        let progress = console.progress(Measure::Phase);
        let on_phase = |phase| show_phase(&progress, phase);
        let ledger = Ledger::new(&bundle, false);
        let report = runtime.block_on(plimsoll_harness::run(
            RunPlan {
                target: self.0,
                key: &key,
                ledger: &ledger,
                request: run.request.clone(),
                wait: default_wait(None),
                save_artifacts: None,
                cancel: Some(cancel),
                on_phase: &on_phase,
            },
            &mut (),
        ));
        runtime.shutdown_background();
        drop(progress);
        warn_of_killed(console, report.embedded.as_ref());
        match report.result {
            Ok(recorded) => Ok(recorded.checked.response),
            Err(failed) => Err(failure::of_run(&failed, &facts, None)),
        }
    }
}

fn different(why: &str) -> Failure {
    Failure::new(
        Class::Different,
        format!("the replay gives another verdict: {why}"),
        "The receipt is good evidence of another outcome than your own run's. Look at both before \
         you decide.",
    )
    .reason("verdict")
}

/// Whether two outcomes have one verdict and one class for each test.
fn same(before: &Outcome, after: &Outcome) -> bool {
    let classes = |outcome: &Outcome| {
        let mut classes: Vec<(String, &'static str)> = outcome
            .tests
            .iter()
            .map(|test| (test.name.clone(), test.class.name()))
            .collect();
        classes.sort();
        classes
    };
    before.verdict == after.verdict && classes(before) == classes(after)
}
