//! `clients`: edits the registry of callers. It never contacts a daemon.

mod check;
mod create;
mod delivery;
mod edit;
mod flags;
mod limit;
mod list;
mod refusal;
mod revoke;
mod rotate;

use clap::{ArgMatches, Command};
use plimsoll_console::{
    Console, ExitCode, Options, Stream,
    args::{ParseOutcome, UsageKind},
    help::{self, Sections},
};

use crate::cli::Entry;
use refusal::Outcome;

const EXIT_CODES: &[(ExitCode, &str)] = &[
    (ExitCode::Ok, "done"),
    (
        ExitCode::Refused,
        "refused, or done and the new token could not be handed over",
    ),
    (
        ExitCode::Usage,
        "a flag is missing or wrong, or the file cannot be read; nothing was changed",
    ),
];

pub const ENTRY: Entry = Entry {
    name: "clients",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: EXIT_CODES,
        environment: &[],
        examples: &[
            (
                "clients create --file clients.json --id gateway --token-stdout > gateway.token",
                "adds a caller, and the file when there is none; the token is shown this once",
            ),
            (
                "clients list --file clients.json",
                "who may call, what, and how much a day",
            ),
        ],
    },
    run,
};

/// One command of the group.
struct Sub {
    name: &'static str,
    define: fn(Command) -> Command,
    stream: fn(&ArgMatches) -> Stream,
    examples: &'static [(&'static str, &'static str)],
    run: fn(&Console, &ArgMatches) -> Outcome,
}

const SUBS: &[Sub] = &[
    create::CREATE,
    create::IMPORT,
    limit::SUB,
    list::SUB,
    rotate::SUB,
    revoke::SUB,
    check::SUB,
];

fn define(command: Command) -> Command {
    let group = command
        .about("Edits the registry of callers that a daemon reads at start")
        .long_about(
            "Edits the registry of callers, the file of PLIMSOLL_CLIENTS_FILE. It never contacts a \
             daemon: a change takes effect when every daemon that uses the file is restarted. Only \
             the SHA-256 of a token is kept.",
        )
        .subcommand_required(true);
    SUBS.iter().fold(group, |group, sub| {
        let command = (sub.define)(Command::new(sub.name));
        let sections = Sections {
            exit_codes: EXIT_CODES,
            environment: &[],
            examples: sub.examples,
        };
        group.subcommand(help::with_sections(command, &sections))
    })
}

/// Takes a stray argument of the group out of a refusal: it may be a token that
/// someone took for an argument.
pub fn without_tokens(mut outcome: ParseOutcome) -> ParseOutcome {
    const HIDDEN: &str = "(not shown, since it may be a token)";
    if let ParseOutcome::Usage(error) = &mut outcome
        && error.command.first().is_some_and(|word| word == ENTRY.name)
        && let UsageKind::ExtraArgument { given } | UsageKind::UnknownCommand { given, near: None } =
            &mut error.kind
    {
        HIDDEN.clone_into(given);
    }
    outcome
}

fn run(_: &Console, matches: &ArgMatches) -> ExitCode {
    let found = matches.subcommand().and_then(|(name, matches)| {
        let sub = SUBS.iter().find(|sub| sub.name == name)?;
        Some((sub, matches))
    });
    let Some((sub, matches)) = found else {
        return ExitCode::Internal;
    };
    let words = format!("{} {}", ENTRY.name, sub.name);
    let options = Options::from_matches(words, (sub.stream)(matches), matches);
    let console = Console::new(options);
    refusal::conclude(&console, (sub.run)(&console, matches))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_two_examples() {
        for sub in SUBS {
            assert!(sub.examples.len() >= 2, "{}", sub.name);
        }
    }
}
