//! `pr-receipt`: a receipt for a pull request.

mod challenge;
mod folder;
mod init;
mod render;
#[cfg(feature = "run")]
mod run;
mod shown;
mod verify;

use clap::{ArgMatches, Command};
use plimsoll_console::{
    Class, Console, ExitCode, Failure, Options, Stream,
    help::{self, Sections},
};

use crate::cli::Entry;

const EXIT_CODES: &[(ExitCode, &str)] = &[
    (
        ExitCode::Ok,
        "done; the evidence is good and the tests passed",
    ),
    (ExitCode::Refused, "the evidence is refused, or an input is"),
    (
        ExitCode::Usage,
        "a flag, a key or a file cannot be used; nothing was done",
    ),
    (
        ExitCode::Unrecorded,
        "the tests may have run and no complete signed record was kept",
    ),
    (ExitCode::Unavailable, "refused before anything ran"),
    (
        ExitCode::Negative,
        "the evidence is good and the tests did not pass",
    ),
];

pub const ENTRY: Entry = Entry {
    name: "pr-receipt",
    stream: Stream::Verdict,
    define,
    sections: Sections {
        exit_codes: EXIT_CODES,
        environment: &[],
        examples: &[
            (
                "pr-receipt run --daemon http://127.0.0.1:8746",
                "in a CI job: run the pull request's tests, write plimsoll-receipt/",
            ),
            (
                "pr-receipt verify --repo . --head 242085db39798080553c88a7f6e0b887ba5e33dc plimsoll-receipt",
                "a reviewer's offline check against a clone",
            ),
        ],
    },
    run: dispatch,
};

/// One command of the group.
struct Sub {
    name: &'static str,
    stream: Stream,
    define: fn(Command) -> Command,
    exit_codes: &'static [(ExitCode, &'static str)],
    environment: &'static [(&'static str, &'static str)],
    examples: &'static [(&'static str, &'static str)],
    run: fn(&Console, &ArgMatches) -> ExitCode,
}

const SUBS: &[Sub] = &[
    init::SUB,
    #[cfg(feature = "run")]
    run::SUB,
    verify::SUB,
    render::SUB,
    challenge::SUB,
];

fn define(command: Command) -> Command {
    let group = command
        .about("Runs a pull request's tests in a sandbox and checks the signed receipt of it")
        .subcommand_required(true);
    SUBS.iter().fold(group, |group, sub| {
        let sections = Sections {
            exit_codes: sub.exit_codes,
            environment: sub.environment,
            examples: sub.examples,
        };
        group.subcommand(help::with_sections(
            (sub.define)(Command::new(sub.name)),
            &sections,
        ))
    })
}

fn dispatch(_: &Console, matches: &ArgMatches) -> ExitCode {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let sub = SUBS.iter().find(|sub| sub.name == name)?;
        Some((sub, matches))
    });
    let Some((sub, matches)) = found else {
        return ExitCode::Internal;
    };
    let words = format!("{} {}", ENTRY.name, sub.name);
    let console = Console::new(Options::from_matches(words, sub.stream, matches));
    (sub.run)(&console, matches)
}

/// A broken rule between a command's flags.
fn usage(sub: &str, fact: &str, advice: &str) -> Failure {
    plimsoll_console::args::rule(&crate::cli::definition(), &[ENTRY.name, sub], fact, advice)
}

/// The class of a code of the receipt's checks.
fn class(code: &str) -> Class {
    Class::ALL
        .iter()
        .copied()
        .find(|class| class.word() == code)
        .unwrap_or(Class::Internal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_codes_and_two_examples() {
        for sub in SUBS {
            assert!(!sub.exit_codes.is_empty(), "{}", sub.name);
            assert!(sub.examples.len() >= 2, "{}", sub.name);
        }
    }

    #[test]
    fn every_code_of_the_checks_is_a_class() {
        for code in [
            "signature",
            "statement",
            "reserved",
            "binding_mismatch",
            "git_commit",
            "git_tree",
            "file_mismatch",
            "file_unexplained",
            "file_missing",
            "report_missing",
            "report_parse",
            "result_mismatch",
            "config_mismatch",
            "floor_not_met",
            "workflow_changed",
            "tests_failed",
            "no_tests",
            "key_mismatch",
            "many_runs",
            "no_runs",
        ] {
            assert_ne!(class(code), Class::Internal, "{code}");
        }
    }
}
