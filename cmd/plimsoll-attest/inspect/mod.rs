//! `inspect`: what a file says, without claiming that it is true.

mod detail;
mod json;
mod lines;
mod pass;
mod seen;
mod text;
mod time;
mod unknown;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::PublicKey;
use plimsoll_console::{
    Console, Errors, ExitCode, Stream, args,
    help::Sections,
    output::{self, Stop},
    values,
};

use crate::{
    cli::{self, Entry},
    keys,
};
use pass::{End, inspected};

pub const ENTRY: Entry = Entry {
    name: "inspect",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "every line could be read; nothing is verified unless a key was given",
            ),
            (
                ExitCode::Refused,
                "a line could not be read, is not there, or the key does not verify the file",
            ),
            (
                ExitCode::Usage,
                "a file or a key cannot be read, or flags are wrong",
            ),
        ],
        environment: &[(
            "XDG_CONFIG_HOME, HOME",
            "where the default key lies, for --own",
        )],
        examples: &[
            (
                "inspect plimsoll-runs.jsonl",
                "what each line says, whoever wrote it",
            ),
            (
                "inspect --pub ci.pub plimsoll-runs.jsonl",
                "the same, below the verdict of verify",
            ),
            (
                "inspect --line 3 --full plimsoll-runs.jsonl",
                "line 3 with its code, files and output, however long",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Shows what a bundle holds, without claiming that it is true")
        .long_about(
            "Shows what a bundle holds, line by line, without claiming that it is true: anyone \
             can write such a file. With --pub the bundle is verified first. A line that cannot \
             be read is shown as broken, and the next is read. Memory is that of one line; with \
             --json it is that of the object.",
        )
        .args(keys::verifying_flags())
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("N")
                .value_parser(values::number(1..=i64::MAX))
                .help("Only this line, with code, files and output of at most 64 KiB each"),
        )
        .arg(
            Arg::new("full")
                .long("full")
                .action(ArgAction::SetTrue)
                .help("With --line: all of them, however long"),
        )
        .arg(
            Arg::new("bundle")
                .value_name("BUNDLE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The bundle; - is standard input"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    match Form::read(console, matches).and_then(|form| inspected(console, form)) {
        Ok(End {
            failure: Some(failure),
            members,
        }) => console.finish(failure.exit_code(), Errors::One(&failure), members),
        Ok(End {
            failure: None,
            members,
        }) => console.finish(ExitCode::Ok, Errors::None, members),
        Err(stop) => console.conclude(Err(stop)),
    }
}

/// What a command line asks for.
struct Form {
    file: PathBuf,
    /// None when nothing is to be verified.
    keys: Vec<PublicKey>,
    line: Option<u64>,
    full: bool,
}

impl Form {
    fn read(console: &Console, matches: &ArgMatches) -> Result<Self, Stop> {
        let line = matches
            .get_one::<i64>("line")
            .map(|line| line.unsigned_abs());
        let full = matches.get_flag("full");
        if full && line.is_none() {
            return Err(args::rule(
                &cli::definition(),
                &["inspect"],
                "--full goes with --line",
                "Name the line whose content is to be shown.",
            )
            .into());
        }
        let keys = if matches.contains_id("pub") || matches.get_flag("own") {
            keys::verifying(console, matches)?
        } else {
            Vec::new()
        };
        Ok(Form {
            file: matches
                .get_one::<PathBuf>("bundle")
                .cloned()
                .unwrap_or_default(),
            keys,
            line,
            full,
        })
    }
}
