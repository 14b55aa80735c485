//! `clients limit`: a caller's daily allowance.

use clap::{ArgMatches, Command};
use plimsoll_console::{Console, Stream, output};

use super::{
    Sub,
    edit::{change, members, warn_of_allowance},
    flags,
    refusal::Outcome,
};

pub const SUB: Sub = Sub {
    name: "limit",
    define,
    stream: |_| Stream::Verdict,
    examples: &[
        (
            "clients limit --file clients.json --id batch --paid-seconds-per-day 7200",
            "two hours a day",
        ),
        (
            "clients limit --file clients.json --id batch --paid-seconds-per-day 0",
            "no allowance of its own; the daemon's still holds",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Sets a caller's daily allowance on a provider billed by the second")
        .args([flags::file(), flags::id()])
        .arg(flags::paid().required(true))
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> Outcome {
    let (path, id) = (flags::file_of(matches)?, flags::id_of(matches)?);
    let seconds = flags::paid_of(matches);
    let _held = change(console, &path, &id, false, |registry| {
        registry.limit(&id, seconds)
    })?;
    console.note(
        "applying it gives every caller a fresh day: a daemon that restarts has forgotten what was \
         spent",
    );
    warn_of_allowance(console, seconds);
    Ok(members(&id, "limit_set"))
}
