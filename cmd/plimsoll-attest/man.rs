//! `man`: manual pages, made from the same definitions as the help.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Class, Console, ExitCode, Failure, JsonObject, Stream,
    files::{self, Mode, Replace},
    help::Sections,
    output::{self, Stop},
    pages::{self, PageInfo},
};

use crate::cli::{self, Entry};

/// The release's date, fixed so that two builds make the same pages.
const INFO: PageInfo<'static> = PageInfo {
    date: "2026-11-29",
    version: env!("CARGO_PKG_VERSION"),
};

pub const ENTRY: Entry = Entry {
    name: "man",
    stream: Stream::Text,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "printed or written"),
            (
                ExitCode::Usage,
                "no such command, or a page could not be written",
            ),
        ],
        environment: &[],
        examples: &[
            ("man run | man -l -", "read one page"),
            ("man --out /usr/local/share/man/man1", "install all pages"),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Prints a manual page, or writes all of them")
        .arg(
            Arg::new("command")
                .value_name("COMMAND")
                .num_args(0..)
                .help("The command; none is the program itself"),
        )
        .arg(
            Arg::new("out")
                .short('o')
                .long("out")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("Write every page into this directory, which must exist"),
        )
        .args(
            output::shared_flags()
                .into_iter()
                .filter(|flag| flag.get_id() != "json"),
        )
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let words: Vec<&str> = matches
        .get_many::<String>("command")
        .unwrap_or_default()
        .map(String::as_str)
        .collect();
    let result = match matches.get_one::<PathBuf>("out") {
        Some(dir) => write_all(console, dir),
        None => print(console, &words),
    };
    console.conclude(result)
}

fn print(console: &Console, words: &[&str]) -> Result<JsonObject, Stop> {
    let page = pages::manual_page(&cli::definition(), words, INFO).ok_or_else(|| {
        Failure::new(
            Class::Usage,
            format!("there is no command {}", words.join(" ")),
            "Run plimsoll-attest --help for the commands there are.",
        )
    })?;
    console.product(&page.text)?;
    Ok(JsonObject::new())
}

fn write_all(console: &Console, dir: &Path) -> Result<JsonObject, Stop> {
    for page in pages::manual(&cli::definition(), INFO) {
        let path = dir.join(&page.file);
        files::write(&path, &page.text, Mode::Public, Replace::Forced)?;
        console.success(&format!("{}\n", plimsoll_console::escape::path(&path)))?;
    }
    Ok(JsonObject::new())
}
