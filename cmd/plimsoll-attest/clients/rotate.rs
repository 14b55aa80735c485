//! `clients rotate`: another token for a caller.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plimsoll_console::{Console, Stream, output};

use super::{
    Sub, delivery,
    edit::{change, members},
    flags,
    refusal::Outcome,
};

pub const SUB: Sub = Sub {
    name: "rotate",
    define,
    stream: |matches| {
        if matches.get_flag("token-stdout") {
            Stream::Delivery
        } else {
            Stream::Verdict
        }
    },
    examples: &[
        (
            "clients rotate --file clients.json --id gateway --token-stdout > gateway.token",
            "a new token; the old one is refused once every daemon is restarted",
        ),
        (
            "clients rotate --file clients.json --id gateway --token-stdin < gateway.token",
            "a token that was made elsewhere",
        ),
    ],
    run,
};

const WORDS: [&str; 2] = ["clients", "rotate"];

fn define(command: Command) -> Command {
    command
        .about("Replaces a caller's token; ID, scopes and allowance stay")
        .long_about(
            "Replaces a caller's token; ID, scopes and allowance stay. One ID has one token, so the \
             old and the new one are never valid together. For a change without a gap use two \
             callers: create the second, move to it, revoke the first.",
        )
        .args([flags::file(), flags::id(), flags::token_stdout()])
        .arg(
            Arg::new("token-stdin")
                .long("token-stdin")
                .action(ArgAction::SetTrue)
                .help("Take the new token from standard input"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> Outcome {
    let (out, stdin) = (
        matches.get_flag("token-stdout"),
        matches.get_flag("token-stdin"),
    );
    if out == stdin {
        let fact = if out {
            "--token-stdout cannot be given with --token-stdin"
        } else {
            "--token-stdout or --token-stdin must be given"
        };
        return Err(flags::rule(
            &WORDS,
            fact,
            "Give one of the two: where the new token comes from or goes to.",
        )
        .into());
    }
    flags::no_json_with_token(&WORDS, matches)?;
    let (path, id) = (flags::file_of(matches)?, flags::id_of(matches)?);
    let token = if stdin {
        delivery::take(console)?
    } else {
        delivery::make()?
    };
    let fingerprint = token.fingerprint();
    let _held = change(console, &path, &id, false, |registry| {
        registry.rotate(&id, fingerprint)
    })?;
    if out {
        delivery::give(console, &id, &token)?;
    }
    Ok(members(&id, "rotated"))
}
