//! `version`: what this build is.

use clap::{ArgMatches, Command};
use plimsoll_console::{
    Console, ExitCode, JsonObject, Stream,
    help::Sections,
    output::{self, Version},
};

use crate::cli::Entry;

/// The record versions this build reads; it makes 2 and 3.
const RECORD_VERSIONS: [u32; 3] = [1, 2, 3];

/// The commit of the sources, given by whoever builds a release.
const COMMIT: &str = match option_env!("PLIMSOLL_BUILD_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};

pub const ENTRY: Entry = Entry {
    name: "version",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[(ExitCode::Ok, "shown")],
        environment: &[],
        examples: &[
            (
                "version",
                "one line with the version, the protocol and the record versions",
            ),
            (
                "version --json",
                "the same and the providers compiled in, for a script",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Shows the version, the protocol and the record versions of this build")
        .args(output::shared_flags())
}

/// What `version`, `-V` and `--version` print.
pub fn facts() -> Version {
    Version {
        line: format!(
            "{} {} (protocol {}, records 1-3, {COMMIT})",
            plimsoll_console::PROGRAM,
            env!("CARGO_PKG_VERSION"),
            plimsoll_wire::PROTOCOL,
        ),
        members: JsonObject::new()
            .with("version", env!("CARGO_PKG_VERSION"))
            .with("protocol", &plimsoll_wire::PROTOCOL)
            .with("record_versions", &RECORD_VERSIONS)
            .with("commit", COMMIT)
            .with("providers", providers())
            .with("target", env!("PLIMSOLL_TARGET")),
    }
}

fn providers() -> &'static [&'static str] {
    if cfg!(feature = "wasm") {
        &["wasm"]
    } else {
        &[]
    }
}

fn run(console: &Console, _: &ArgMatches) -> ExitCode {
    let facts = facts();
    let shown = console.print(&(facts.line + "\n"));
    console.conclude(shown.map(|()| facts.members).map_err(Into::into))
}
