//! `daemon`: runs untrusted code for callers. It has no flags; its settings are
//! environment variables.

use std::ffi::OsString;

use clap::{ArgMatches, Command};
use plimsoll_console::{Console, ExitCode, Stream, help::Sections};

use crate::cli::Entry;

pub const ENTRY: Entry = Entry {
    name: "daemon",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "help, or a clean stop after a signal"),
            (
                ExitCode::Usage,
                "an argument, or a setting that is refused: restarting cannot help",
            ),
            (
                ExitCode::Unavailable,
                "settings are good and the environment is not, or a listener failed while serving",
            ),
            (ExitCode::Internal, ""),
        ],
        environment: &[(
            "PLIMSOLL_*, SANDBOX_*",
            "the settings; plimsoll-attest daemon --help names every one",
        )],
        examples: &[
            (
                "daemon",
                "execution disabled, for a first look at its endpoints",
            ),
            (
                "daemon --help",
                "every setting with its default and bounds; start with SANDBOX_PROVIDER=wasm and \
                 PLIMSOLL_TOKEN",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command.about("Runs the daemon; its settings are environment variables")
}

/// Runs the daemon with the arguments after its word.
pub fn main(args: &[OsString]) -> ExitCode {
    let code = plimsoll_daemon::main(args.iter().cloned());
    ExitCode::ALL
        .into_iter()
        .find(|known| known.code() == code)
        .unwrap_or(ExitCode::Internal)
}

fn run(_: &Console, _: &ArgMatches) -> ExitCode {
    main(&[])
}
