//! The flags of `pr-receipt run`, and the rules between them.

use std::{path::PathBuf, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::{Class, Failure, output, values};
use plimsoll_receipt::{
    config::{Config, specs},
    event::{EVENTS, REFUSED_EVENTS},
    statement::receipt::{ConfigSource, TestedKind},
};
use plimsoll_wire::{Rule, Tier};

use super::usage;
use crate::target::{self, Destination};

/// Flags that together stand in for an event.
pub const BINDING: [&str; 6] = [
    "repository",
    "pr",
    "head",
    "base",
    "base-ref",
    "head-repository",
];

/// What the flags say.
pub struct Form {
    pub destination: Destination,
    pub repo: PathBuf,
    pub event: Option<PathBuf>,
    /// Values of [`BINDING`], in that order.
    pub binding: Vec<Option<String>>,
    pub event_name: String,
    pub tested: TestedKind,
    pub commit: Option<String>,
    /// From flags; `None` when none of them is given.
    pub flags: Option<Config>,
    pub config_from: ConfigSource,
    pub floor: Option<Tier>,
    pub software: Rule,
    pub timeout: Duration,
    pub key: Option<PathBuf>,
    pub out: PathBuf,
    pub summary: Option<PathBuf>,
    pub outputs: Option<PathBuf>,
    pub fail_on_tests: bool,
}

pub fn define(command: Command) -> Command {
    let text = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).help(help)
    };
    let path = |id: &'static str, name: &'static str, help: &'static str| {
        text(id, name, help).value_parser(value_parser!(PathBuf))
    };
    let many = |id: &'static str, name: &'static str, help: &'static str| {
        text(id, name, help).action(ArgAction::Append)
    };
    command
        .about("Runs a pull request's tests in a sandbox and writes a signed receipt")
        .args(target::flags())
        .mut_arg("daemon", |arg| {
            arg.help("The daemon; needed unless --provider")
        })
        .mut_arg("provider", |arg| {
            arg.help("The provider of a daemon started for this run; wasm runs no projects")
        })
        .arg(path("repo", "DIR", "The repository; only its objects are read").default_value("."))
        .arg(path(
            "event",
            "FILE",
            "The event file [default: $GITHUB_EVENT_PATH]",
        ))
        .arg(text(
            "repository",
            "URL",
            "The repository's URL, without an event",
        ))
        .arg(text(
            "pr",
            "N",
            "The pull request's number, without an event",
        ))
        .arg(text(
            "head",
            "SHA",
            "The head commit in full, without an event",
        ))
        .arg(text(
            "base",
            "SHA",
            "The base branch's commit in full, without an event",
        ))
        .arg(text(
            "base-ref",
            "NAME",
            "The base branch's name, without an event",
        ))
        .arg(text(
            "head-repository",
            "URL",
            "The head's repository, without an event [default: --repository]",
        ))
        .arg(
            text(
                "tested",
                "WHAT",
                "What is tested: the head, or its merge into the base",
            )
            .default_value("head")
            .value_parser(values::words(&["head", "merge"])),
        )
        .arg(text(
            "merge-commit",
            "SHA",
            "The merge commit in full, for --tested merge [default: $GITHUB_SHA]",
        ))
        .arg(many(
            "allow-event",
            "NAME",
            "Another event that is taken; never pull_request_target or workflow_run; repeatable",
        ))
        .arg(many(
            "step",
            "CMD",
            "A command of the sandbox's shell; repeatable",
        ))
        .arg(many(
            "report",
            "SPEC",
            "A test report: junit or tap, then artifact:PATH or stdout:STEP; or none; repeatable",
        ))
        .arg(many(
            "add",
            "DIR=DEST",
            "A directory of this machine that is sent too, and listed; repeatable",
        ))
        .arg(many(
            "exclude",
            "GLOB",
            "Paths of the commit that are not sent; repeatable",
        ))
        .arg(
            text(
                "config-from",
                "WHERE",
                "The commit whose .plimsoll/receipt.toml counts; the pull request controls tested",
            )
            .default_value("base")
            .value_parser(values::words(&["base", "tested"])),
        )
        .arg(
            text("floor", "TIER", "The weakest tier the run accepts")
                .default_value("kernel")
                .value_parser(values::words(&values::TIERS_OR_NONE)),
        )
        .arg(text(
            "software",
            "RULE",
            "The software the run accepts: exact:ID, or approved:FILE with one ID a line",
        ))
        .arg(
            text("timeout", "D", "The run's own budget")
                .default_value("5m")
                .value_parser(values::duration),
        )
        .arg(path(
            "key",
            "FILE",
            "A signing key, for repositories that keep one",
        ))
        .arg(
            Arg::new("ephemeral")
                .long("ephemeral")
                .action(ArgAction::SetTrue)
                .help("Sign with a key made here and gone with this process (the default)"),
        )
        .arg(
            path("out", "DIR", "Where the receipt goes: absent or empty")
                .short('o')
                .default_value("plimsoll-receipt"),
        )
        .arg(path(
            "summary",
            "FILE",
            "A file the summary is appended to [default: $GITHUB_STEP_SUMMARY]",
        ))
        .arg(
            text(
                "fail-on",
                "WHAT",
                "What makes this command fail: tests that fail, or nothing",
            )
            .default_value("tests")
            .value_parser(values::words(&["tests", "never"])),
        )
        .args(output::shared_flags())
}

impl Form {
    /// Reads flags and environment.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn of(matches: &ArgMatches) -> Result<Form, Failure> {
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        let list = |id: &str| -> Vec<String> {
            matches
                .get_many::<String>(id)
                .unwrap_or_default()
                .cloned()
                .collect()
        };
        let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        // Before anything else: such a job holds secrets while it would run a
        // stranger's code.
        let event_name = variable("GITHUB_EVENT_NAME")
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        check_event(&event_name, &list("allow-event"))?;
        if matches.value_source("daemon").is_none() && matches.value_source("provider").is_none() {
            return Err(usage(
                "there is no daemon to run on",
                "Name it with --daemon, or --provider for one that is started for this run; wasm runs \
                 no projects, so there is no default.",
            ));
        }
        if text("provider").is_some_and(|provider| provider == "wasm") {
            return Err(usage(
                "the wasm provider runs no projects",
                "Name a daemon that does with --daemon, or another --provider.",
            ));
        }
        let binding: Vec<Option<String>> = BINDING.iter().map(|id| text(id)).collect();
        let by_flags = binding.iter().any(Option::is_some);
        let event = path("event");
        if by_flags && event.is_some() {
            return Err(usage(
                "--event and flags about the pull request exclude each other",
                "Leave out one of the two.",
            ));
        }
        let event = event.or_else(|| variable("GITHUB_EVENT_PATH").map(PathBuf::from));
        let required = binding.iter().take(5).all(Option::is_some);
        let cure = "Give --event, or all of --repository, --pr, --head, --base and --base-ref.";
        if by_flags && !required {
            return Err(usage("a fact about the pull request is missing", cure));
        }
        if !by_flags && event.is_none() {
            return Err(Failure::new(
                Class::Config,
                "nothing says which pull request this is: GITHUB_EVENT_PATH is not set; nothing was run",
                cure,
            ));
        }
        if path("key").is_some() && matches.get_flag("ephemeral") {
            return Err(usage(
                "--key and --ephemeral exclude each other",
                "Leave out one of the two.",
            ));
        }
        let tested = match text("tested").as_deref() {
            Some("merge") => TestedKind::Merge,
            _ => TestedKind::Head,
        };
        if tested == TestedKind::Head && text("merge-commit").is_some() {
            return Err(usage(
                "--merge-commit goes with --tested merge",
                "Leave it out.",
            ));
        }
        let commit = text("merge-commit")
            .or_else(|| variable("GITHUB_SHA").map(|sha| sha.to_string_lossy().into_owned()));
        let flags = config(&list("step"), &list("report"), list("add"), list("exclude"))?;
        Ok(Form {
            destination: Destination::read("pr-receipt run", matches)?,
            repo: path("repo").unwrap_or_default(),
            event: event.filter(|_| !by_flags),
            binding,
            event_name,
            tested,
            commit,
            flags,
            config_from: match text("config-from").as_deref() {
                Some("tested") => ConfigSource::Tested,
                _ => ConfigSource::Base,
            },
            floor: text("floor")
                .and_then(|floor| Tier::parse(&floor))
                .filter(|t| *t > Tier::None),
            software: match text("software") {
                Some(rule) => plimsoll_harness::software::parse(&rule).map_err(|error| {
                    usage(
                        &format!("--software: {error}"),
                        "Give exact:ID, or approved:FILE with one identity a line.",
                    )
                })?,
                None => Rule::default(),
            },
            timeout: matches
                .get_one::<Duration>("timeout")
                .copied()
                .unwrap_or(Duration::from_secs(300)),
            key: path("key"),
            out: path("out").unwrap_or_default(),
            summary: path("summary").or_else(|| variable("GITHUB_STEP_SUMMARY").map(PathBuf::from)),
            outputs: variable("GITHUB_OUTPUT").map(PathBuf::from),
            fail_on_tests: text("fail-on").is_none_or(|what| what == "tests"),
        })
    }
}

fn check_event(name: &str, allowed: &[String]) -> Result<(), Failure> {
    let refused = |name: &str| REFUSED_EVENTS.contains(&name);
    if let Some(name) = allowed.iter().find(|name| refused(name)) {
        return Err(usage(
            &format!("--allow-event cannot allow {name}"),
            "Jobs of that event hold secrets while they would run a stranger's code.",
        ));
    }
    if refused(name) {
        return Err(usage(
            &format!("this job was started by {name}, which is refused always"),
            "Jobs of that event hold secrets while they would run a stranger's code. Use pull_request: \
             a receipt needs no secret.",
        ));
    }
    if name.is_empty() || EVENTS.contains(&name) || allowed.iter().any(|allowed| allowed == name) {
        return Ok(());
    }
    Err(usage(
        &format!("this job was started by {name}, not by a pull request"),
        "Start it by pull_request or merge_group, or allow the event with --allow-event.",
    ))
}

fn config(
    steps: &[String],
    reports: &[String],
    add: Vec<String>,
    exclude: Vec<String>,
) -> Result<Option<Config>, Failure> {
    if steps.is_empty() && reports.is_empty() && add.is_empty() && exclude.is_empty() {
        return Ok(None);
    }
    let refused = |error: &dyn std::fmt::Display| {
        usage(
            &error.to_string(),
            "Correct --step, --report, --add or --exclude.",
        )
    };
    let config = Config {
        steps: steps.to_vec(),
        reports: specs(reports).map_err(|error| refused(&error))?,
        add,
        exclude,
        test_paths: None,
    };
    config.check().map_err(|error| refused(&error))?;
    Ok(Some(config))
}
