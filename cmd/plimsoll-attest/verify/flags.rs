//! The flags of `verify`, and the rules between them.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::anchor::lock_path;
use plimsoll_console::{Failure, args, output, values};

use crate::{cli, expect, keys, places, policy};

fn path(id: &'static str, help: &'static str) -> Arg {
    Arg::new(id)
        .long(id)
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .help(help)
}

pub fn define(command: Command) -> Command {
    command
        .about("Verifies whole bundles offline")
        .args(keys::verifying_flags())
        .arg(
            Arg::new("allow-empty")
                .long("allow-empty")
                .action(ArgAction::SetTrue)
                .help("Accept a bundle that holds no call"),
        )
        .arg(
            Arg::new("expect")
                .long("expect")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The calls are exactly these: one request digest a line, labels allowed"),
        )
        .arg(
            Arg::new("expect-count")
                .long("expect-count")
                .value_name("N")
                .default_value("-1")
                .value_parser(values::number(-1..=i64::MAX))
                .help("The number of calls; -1 does not ask"),
        )
        .arg(
            Arg::new("expect-request")
                .long("expect-request")
                .value_name("FILE")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .help("Some call is this RunRequest, as proto3 JSON; repeatable"),
        )
        .args(policy::flags())
        .arg(path("anchor", "The bundle reaches at least as far as this anchor, which must exist"))
        .arg(
            path("anchor-pub", "A further public key that may have signed the anchor; repeatable")
                .action(ArgAction::Append),
        )
        .arg(path(
            "write-anchor",
            "When all else is met, make this anchor or move it forward",
        ))
        .arg(path(
            "key",
            "The key that signs --write-anchor [default: the default key]",
        ))
        .arg(
            Arg::new("follow")
                .long("follow")
                .action(ArgAction::SetTrue)
                .help("Go on with what is appended, until a signal; --max-age counts from each call's check"),
        )
        .arg(
            Arg::new("for")
                .long("for")
                .value_name("D")
                .value_parser(values::duration)
                .help("With --follow: stop after this long"),
        )
        .arg(path(
            "state",
            "What an earlier run verified; only new lines are checked, and it is moved forward",
        ))
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Say what is established, by which key and which bytes, and what is not"),
        )
        .arg(
            Arg::new("stats")
                .long("stats")
                .action(ArgAction::SetTrue)
                .help("Say how long it took, on standard error"),
        )
        .arg(
            Arg::new("bundle")
                .value_name("BUNDLE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("The bundles; - is standard input"),
        )
        .args(output::shared_flags())
}

/// The flags that are not about keys, expectations and policies.
pub struct Form {
    pub bundles: Vec<PathBuf>,
    pub anchor: Option<PathBuf>,
    pub anchor_pub: Vec<PathBuf>,
    pub write_anchor: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub follow: bool,
    pub follow_for: Option<Duration>,
    pub state: Option<PathBuf>,
    pub stats: bool,
}

impl Form {
    /// Reads the flags and checks the rules between them.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn of(matches: &ArgMatches) -> Result<Form, Failure> {
        let many = |id: &str| -> Vec<PathBuf> {
            matches
                .get_many::<PathBuf>(id)
                .unwrap_or_default()
                .cloned()
                .collect()
        };
        let one = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        let form = Form {
            bundles: many("bundle"),
            anchor: one("anchor"),
            anchor_pub: many("anchor-pub"),
            write_anchor: one("write-anchor"),
            key: one("key"),
            follow: matches.get_flag("follow"),
            follow_for: matches.get_one::<Duration>("for").copied(),
            state: one("state"),
            stats: matches.get_flag("stats"),
        };
        form.goes_together(matches)?;
        Ok(form)
    }

    fn goes_together(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let secret = [
            ("--anchor", &self.anchor),
            ("--write-anchor", &self.write_anchor),
            ("--key", &self.key),
            ("--state", &self.state),
        ];
        if let Some((flag, _)) = secret
            .iter()
            .find(|(_, path)| path.as_deref().is_some_and(is_dash))
        {
            return Err(usage(
                &format!("{flag} does not take - (standard input)"),
                "Name a file.",
            ));
        }
        let dashes = self.bundles.iter().filter(|path| is_dash(path)).count();
        if dashes + expect::dashes(matches) > 1 {
            return Err(usage(
                "standard input is named more than once",
                "It can be read once: name a file for the others.",
            ));
        }
        if self.bundles.len() > 1 {
            self.speaks_of_one(matches)?;
        }
        if dashes > 0 && (self.follow || self.state.is_some()) {
            let flag = if self.follow { "--follow" } else { "--state" };
            return Err(usage(
                &format!("{flag} needs a file; standard input is read once"),
                "Name the bundle's file.",
            ));
        }
        let rules = [
            (
                self.follow_for.is_some() && !self.follow,
                "--for goes with --follow",
                "Leave it out, or add --follow.",
            ),
            (
                self.follow && self.state.is_some(),
                "--follow and --state do not go together",
                "A followed bundle is checked from its first line and only once. Use --state for \
                 runs that end by themselves.",
            ),
            (
                !self.anchor_pub.is_empty() && self.anchor.is_none() && self.write_anchor.is_none(),
                "--anchor-pub goes with --anchor or --write-anchor",
                "Name the anchor too.",
            ),
            (
                self.key.is_some() && self.write_anchor.is_none(),
                "--key goes with --write-anchor",
                "Verifying needs no private key; --pub names the public one.",
            ),
        ];
        match rules.iter().find(|(broken, ..)| *broken) {
            Some((_, fact, advice)) => Err(usage(fact, advice)),
            None => self.written_apart(),
        }
    }

    /// No two files that are written are one.
    fn written_apart(&self) -> Result<(), Failure> {
        let (Some(anchor), Some(state)) = (&self.write_anchor, &self.state) else {
            return Ok(());
        };
        let fact = if places::are_one(anchor, state) {
            "--write-anchor and --state name one file"
        } else if places::are_one(&lock_path(anchor), state) {
            "--state names the lock of --write-anchor"
        } else {
            return Ok(());
        };
        Err(usage(fact, "Each is a file of its own. Name another."))
    }

    fn speaks_of_one(&self, matches: &ArgMatches) -> Result<(), Failure> {
        let count = matches.get_one::<i64>("expect-count");
        // Asking for -1 is not asking.
        let asks = matches.contains_id("expect")
            || matches.contains_id("expect-request")
            || count.is_some_and(|&count| count >= 0);
        let fact = if asks {
            "--expect, --expect-count and --expect-request speak of one bundle"
        } else if self.anchor.is_some() || self.write_anchor.is_some() {
            "--anchor and --write-anchor speak of one bundle"
        } else if self.follow {
            "--follow speaks of one bundle"
        } else if self.state.is_some() {
            "--state speaks of one bundle"
        } else {
            return Ok(());
        };
        Err(usage(fact, "Verify that bundle alone."))
    }
}

fn is_dash(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn usage(fact: &str, advice: &str) -> Failure {
    args::rule(&cli::definition(), &["verify"], fact, advice)
}
