//! The flags of `run`, and the rules between them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::anchor::lock_path;
use plimsoll_console::{Failure, output, values};

use super::usage;
use crate::{
    places,
    target::{self, Destination},
};

/// Flags that say what a shorthand request asks.
const SHORTHAND: [&str; 4] = ["floor", "software", "grant-profile", "trace-id"];
/// Flags that go with a session alone.
const SESSION: [&str; 4] = ["lifetime", "idle", "language", "owner"];
/// Flags that go with a project alone.
const PROJECT: [&str; 4] = ["step", "artifact", "exclude", "skip-binary"];

/// How the guest's output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    Escaped,
    Raw,
    None,
}

/// What kind of request the command line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Request,
    Js,
    File,
    Project,
    Session,
}

/// The flags that are not about the request itself.
pub struct Form {
    pub source: Source,
    pub destination: Destination,
    pub key: Option<PathBuf>,
    pub bundle: PathBuf,
    pub shared_bundle: bool,
    pub anchor: Option<PathBuf>,
    pub timeout: Option<Duration>,
    pub wait: Option<Duration>,
    pub print: Print,
    pub save_artifacts: Option<PathBuf>,
    pub require_success: bool,
}

pub fn define(command: Command) -> Command {
    let path = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(name)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    let text = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).help(help)
    };
    let duration = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("D")
            .value_parser(values::duration)
            .help(help)
    };
    let switch = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
    };
    command
        .about("Runs code in a sandbox, checks its record and signs it into a bundle")
        .arg(
            Arg::new("request")
                .value_name("REQUEST.json")
                .value_parser(value_parser!(PathBuf))
                .help("A RunRequest as proto3 JSON, sent exactly as given; - is standard input"),
        )
        .arg(text("js", "CODE", "A JavaScript snippet given as text"))
        .arg(path(
            "file",
            "FILE",
            "A JavaScript snippet from a file; - is standard input",
        ))
        .arg(path(
            "project",
            "DIR",
            "The files of a project; needs --step",
        ))
        .arg(path(
            "session",
            "CALLS.jsonl",
            "A session: one RunRequest a line, sent in order",
        ))
        .arg(
            text(
                "step",
                "CMD",
                "A shell command of the project, run by the sandbox; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text(
                "artifact",
                "PATH",
                "A file of the project to return; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text(
                "exclude",
                "GLOB",
                "Paths of the project to leave out; ** crosses /; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(switch(
            "skip-binary",
            "Leave out files of the project that are not UTF-8, and list them",
        ))
        .args(target::flags())
        .arg(path(
            "key",
            "FILE",
            "The signing key [default: made on first use]",
        ))
        .arg(
            path("bundle", "FILE", "The bundle that is appended to")
                .default_value("plimsoll-runs.jsonl"),
        )
        .arg(switch(
            "shared-bundle",
            "Append although group or others can read the bundle",
        ))
        .arg(path(
            "anchor",
            "FILE",
            "Checked before the run and moved after it; made when there is none",
        ))
        .arg(duration(
            "timeout",
            "The run's own budget; with REQUEST.json the whole wait",
        ))
        .arg(duration(
            "wait",
            "The whole wait [default: 6m, or the budget and 60s]",
        ))
        .arg(
            text("floor", "TIER", "The weakest tier the run accepts")
                .value_parser(values::words(&values::TIERS)),
        )
        .arg(text(
            "software",
            "RULE",
            "The software the run accepts: exact:ID, or approved:FILE with one ID a line",
        ))
        .arg(text(
            "grant-profile",
            "NAME",
            "A host-API capability of the daemon",
        ))
        .arg(text(
            "trace-id",
            "ID",
            "A correlation ID for the daemon's audit line",
        ))
        .arg(duration("lifetime", "How long the session may live"))
        .arg(duration("idle", "How long the session may stay unused"))
        .arg(
            text(
                "language",
                "L",
                "An interpreter the session will use; repeatable",
            )
            .action(ArgAction::Append)
            .value_parser(values::words(&["javascript", "python"])),
        )
        .arg(text(
            "owner",
            "NAME",
            "The end user the session is for; only a digest is sent",
        ))
        .arg(
            text(
                "print",
                "HOW",
                "How the guest's output is shown; raw writes its bytes unescaped",
            )
            .default_value("escaped")
            .value_parser(values::words(&["escaped", "raw", "none"])),
        )
        .arg(path(
            "save-artifacts",
            "DIR",
            "Write returned artifacts below this directory, absent or empty",
        ))
        .arg(switch(
            "require-success",
            "Exit 5 when the outcome is no success; the record is kept all the same",
        ))
        .args(output::shared_flags())
}

impl Form {
    /// Reads the flags and checks the rules between them.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn of(matches: &ArgMatches) -> Result<Form, Failure> {
        let source = source(matches)?;
        let given =
            |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let only = |flags: &[&'static str], allowed: bool, with: &str| match flags
            .iter()
            .find(|flag| !allowed && given(flag))
        {
            Some(flag) => Err(usage(
                &format!("--{flag} goes with {with}"),
                "Leave it out, or choose the form it belongs to.",
            )),
            None => Ok(()),
        };
        only(&PROJECT, source == Source::Project, "--project")?;
        only(&SESSION, source == Source::Session, "--session")?;
        only(
            &SHORTHAND,
            source != Source::Request,
            "a shorthand; REQUEST.json is sent exactly as given",
        )?;
        only(
            &["grant-profile", "trace-id"],
            source != Source::Session,
            "a single run; each line of a session states its own",
        )?;
        only(
            &["save-artifacts"],
            source != Source::Session,
            "a single run",
        )?;
        if source == Source::Project && !given("step") {
            return Err(usage(
                "--project needs at least one --step",
                "Name the commands to run over the files, such as --step 'npm test'.",
            ));
        }
        if source == Source::Request && given("timeout") && given("wait") {
            return Err(usage(
                "--timeout and --wait are one thing with REQUEST.json",
                "Give one of them.",
            ));
        }
        for flag in ["key", "bundle", "anchor"] {
            if one::<PathBuf>(matches, flag).is_some_and(|path| path.as_os_str() == "-") {
                return Err(usage(
                    &format!("--{flag} does not take - (standard input)"),
                    "Name a file: it is read twice, locked or secret.",
                ));
            }
        }
        if let (Some(anchor), Some(bundle)) = (
            one::<PathBuf>(matches, "anchor"),
            one::<PathBuf>(matches, "bundle"),
        ) {
            if places::are_one(&anchor, &bundle) {
                return Err(usage(
                    "--anchor and --bundle name one file",
                    "An anchor is a file of its own, best where the bundle's writer cannot reach.",
                ));
            }
            if places::are_one(&lock_path(&anchor), &bundle) {
                return Err(usage(
                    "--bundle names the lock of --anchor",
                    "The anchor's lock lies beside it, named with .lock. Name another bundle.",
                ));
            }
        }
        Ok(Form {
            source,
            destination: Destination::read("run", matches)?,
            key: one(matches, "key"),
            bundle: one(matches, "bundle").unwrap_or_default(),
            shared_bundle: matches.get_flag("shared-bundle"),
            anchor: one(matches, "anchor"),
            timeout: one(matches, "timeout"),
            wait: one(matches, "wait"),
            print: match matches.get_one::<String>("print").map(String::as_str) {
                Some("raw") => Print::Raw,
                Some("none") => Print::None,
                _ => Print::Escaped,
            },
            save_artifacts: one(matches, "save-artifacts"),
            require_success: matches.get_flag("require-success"),
        })
    }
}

/// One value of a flag, cloned out of its matches.
pub fn one<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.get_one::<T>(id).cloned()
}

/// Every value of a repeatable flag.
pub fn all(matches: &ArgMatches, id: &str) -> Vec<String> {
    matches
        .get_many::<String>(id)
        .unwrap_or_default()
        .cloned()
        .collect()
}

fn source(matches: &ArgMatches) -> Result<Source, Failure> {
    let forms = [
        ("request", Source::Request),
        ("js", Source::Js),
        ("file", Source::File),
        ("project", Source::Project),
        ("session", Source::Session),
    ];
    let mut given = forms.iter().filter(|(id, _)| matches.contains_id(id));
    match (given.next(), given.next()) {
        (Some((_, source)), None) => Ok(*source),
        (None, _) => Err(usage(
            "nothing to run was given",
            "Give REQUEST.json, or one of --js, --file, --project, --session.",
        )),
        (Some(_), Some(_)) => Err(usage(
            "more than one thing to run was given",
            "Give exactly one of REQUEST.json, --js, --file, --project, --session.",
        )),
    }
}

/// A path as messages name it.
pub fn name(path: &Path) -> String {
    path.display().to_string()
}
