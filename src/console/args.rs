//! From raw arguments to `clap` matches, by the rules of this command line.
//!
//! `clap` alone cannot read `-name` for `--name`, and is lenient where a verifier must not be
//! (last one wins, abbreviations, glued short flags). A scan over the raw arguments, driven by the
//! same `clap::Command` that makes help and manual pages, checks the rules and writes the one
//! normal form `--name=value … -- arguments`; `clap` then checks values and required flags.
//!
//! * A flag with a value takes the next argument whatever it looks like, except one that is exactly
//!   a flag of the command in the `--` form: a forgotten value must not swallow a policy flag.
//! * A flag is given once unless its action is [`clap::ArgAction::Append`]; a boolean (action
//!   `SetTrue`) may be repeated with one value.
//! * An empty value is refused unless the flag accepts it ([`clap::Arg::num_args`] of `0..=1`).
//! * One-letter flags are `-h`, `-V`, `-q` and `-o`, alone and without a glued value.
//! * Help anywhere wins over every other fault but an unknown command. A hidden subcommand named
//!   `help` makes a command without subcommands accept the word.

mod scan;
mod usage;

use std::ffi::OsString;

use clap::{ArgMatches, Command};

pub use usage::{UsageError, UsageKind};

use crate::failure::Failure;
use crate::help;
use scan::Scan;

/// Why parsing gave no matches.
#[derive(Clone, Debug)]
pub enum ParseOutcome {
    /// Help was asked for: goes to standard output, exit 0.
    Help {
        /// The help, with styles that a writer without colour strips.
        text: String,
    },
    /// The version was asked for: goes to standard output, exit 0.
    Version {
        /// Whether `--json` is among the arguments.
        json: bool,
    },
    /// The command line is not valid: standard error (or an object), exit 2.
    Usage(Box<UsageError>),
}

/// Parses the arguments after the program's name.
///
/// # Errors
/// [`ParseOutcome`]; help and version are outcomes too.
pub fn parse(
    root: &Command,
    args: impl IntoIterator<Item = OsString>,
) -> Result<ArgMatches, ParseOutcome> {
    // `help` is a word of ours: it works on every level and never checks flags.
    let root = root.clone().disable_help_subcommand(true);
    let mut built = root.clone();
    built.build();

    let scan = Scan::run(&built, args.into_iter().collect());
    let command = scan.commands.last().copied().unwrap_or(&built);
    let usage = |kind: UsageKind| {
        ParseOutcome::Usage(Box::new(UsageError {
            kind,
            command: scan
                .commands
                .iter()
                .skip(1)
                .map(|c| c.get_name().to_owned())
                .collect(),
            json: scan.json,
            synopsis: help::synopsis(command),
        }))
    };
    let unknown_command = matches!(scan.fault, Some(UsageKind::UnknownCommand { .. }));
    if scan.help && !unknown_command {
        return Err(ParseOutcome::Help {
            text: help::render(command),
        });
    }
    if scan.version && !unknown_command {
        return Err(ParseOutcome::Version { json: scan.json });
    }
    if let Some(kind) = scan.fault {
        return Err(usage(kind));
    }
    root.try_get_matches_from(&scan.argv).map_err(|error| {
        usage(match usage::from_clap(&error) {
            UsageKind::NotText { name: None } => UsageKind::NotText {
                name: scan.not_text.clone(),
            },
            kind => kind,
        })
    })
}

/// The failure for a command's own rule about its flags, which no definition can state (two inputs
/// where one is meant, a flag that needs another): class `usage`, exit 2, with the synopsis of the
/// command named by `words`.
#[must_use]
pub fn rule(root: &Command, words: &[&str], fact: &str, advice: &str) -> Failure {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    let command = words
        .iter()
        .try_fold(&root, |command, word| command.find_subcommand(word));
    let kind = UsageKind::Rule {
        fact: fact.to_owned(),
        advice: advice.to_owned(),
    };
    let error = UsageError {
        kind,
        command: words.iter().map(ToString::to_string).collect(),
        json: false,
        synopsis: help::synopsis(command.unwrap_or(&root)),
    };
    error.failure()
}

/// Departures of a definition from the rules of this module, in words; for a test over the whole
/// program. Empty when there are none.
#[must_use]
pub fn definition_faults(root: &Command) -> Vec<String> {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    let mut faults = Vec::new();
    let mut open = vec![&root];
    while let Some(command) = open.pop() {
        open.extend(command.get_subcommands());
        let place = command.get_bin_name().unwrap_or(command.get_name());
        for arg in command.get_arguments().filter(|arg| !arg.is_positional()) {
            let id = arg.get_id();
            if arg
                .get_short()
                .is_some_and(|short| !scan::SHORT_FLAGS.contains(&short))
            {
                faults.push(format!(
                    "{place}: {id} has a one-letter flag other than h V q o"
                ));
            }
            match arg.get_long() {
                None => faults.push(format!("{place}: {id} has no long form")),
                Some(long) if long.len() < 2 => {
                    faults.push(format!("{place}: --{long} is one letter"));
                }
                Some(_) => {}
            }
            if !scan::is_supported(arg) {
                faults.push(format!(
                    "{place}: {id} has an action the scan does not know"
                ));
            }
        }
    }
    faults
}
