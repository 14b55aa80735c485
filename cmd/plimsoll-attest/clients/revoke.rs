//! `clients revoke`: removes a caller.

use clap::{ArgMatches, Command};
use plimsoll_console::{Console, Stream, output};

use super::{
    Sub,
    edit::{change, members},
    flags,
    refusal::Outcome,
};

pub const SUB: Sub = Sub {
    name: "revoke",
    define,
    stream: |_| Stream::Verdict,
    examples: &[
        (
            "clients revoke --file clients.json --id gateway",
            "its token is refused once every daemon is restarted",
        ),
        (
            "clients revoke --file clients.json --id gateway --json",
            "the same, for a script",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Removes a caller")
        .args([flags::file(), flags::id()])
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> Outcome {
    let (path, id) = (flags::file_of(matches)?, flags::id_of(matches)?);
    let _held = change(console, &path, &id, false, |registry| registry.revoke(&id))?;
    Ok(members(&id, "revoked"))
}
