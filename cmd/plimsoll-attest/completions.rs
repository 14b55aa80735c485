//! `completions`: a shell's completion script.

use clap::{Arg, ArgMatches, Command};
use plimsoll_console::{
    Console, ExitCode, JsonObject, Stream, help::Sections, output, pages, values,
};

use crate::cli::{self, Entry};

pub const ENTRY: Entry = Entry {
    name: "completions",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "printed"),
            (ExitCode::Usage, "no such shell"),
        ],
        environment: &[],
        examples: &[
            (
                "completions bash > /etc/bash_completion.d/plimsoll-attest",
                "for every user of bash",
            ),
            (
                "completions fish > ~/.config/fish/completions/plimsoll-attest.fish",
                "for one user of fish",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Prints a shell's completion script")
        .arg(
            Arg::new("shell")
                .value_name("SHELL")
                .required(true)
                .value_parser(values::words(&pages::SHELLS))
                .help("The shell"),
        )
        .args(
            output::shared_flags()
                .into_iter()
                .filter(|flag| flag.get_id() != "json"),
        )
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let shell = matches
        .get_one::<String>("shell")
        .map_or("", String::as_str);
    let script = pages::completions(&cli::definition(), shell).unwrap_or_default();
    let shown = console.product(&script);
    console.conclude(shown.map(|()| JsonObject::new()).map_err(Into::into))
}
