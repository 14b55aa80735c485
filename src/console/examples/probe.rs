//! A small program made of this crate: how a subcommand is written, and what the tests of pipes,
//! panics and signals run.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::PathBuf;
use std::process::ExitCode as ProcessCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_console::files::{Dash, Inputs, Mode, OutFile, Replace};
use plimsoll_console::help::{self, Sections};
use plimsoll_console::output::{self, Version, shared_flags};
use plimsoll_console::progress::Measure;
use plimsoll_console::signals::Interrupts;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Options, Stop, Stream, args, escape,
    fault,
};

fn main() -> ProcessCode {
    fault::run(program).into()
}

fn program() -> ExitCode {
    let matches = match args::parse(&root(), std::env::args_os().skip(1)) {
        Ok(matches) => matches,
        Err(outcome) => {
            let line = "plimsoll-attest 0.0.0 (probe)".to_owned();
            return output::report(
                outcome,
                Version {
                    line,
                    members: JsonObject::new(),
                },
            );
        }
    };
    match matches.subcommand() {
        Some(("check", matches)) => {
            let console = Console::new(Options::from_matches("check", Stream::Verdict, matches));
            let result = check(&console, matches);
            console.conclude(result)
        }
        Some(("show", matches)) => {
            let console = Console::new(Options::from_matches("show", Stream::Text, matches));
            let result = show(&console, matches);
            console.conclude(result)
        }
        Some(("give", matches)) => {
            let console = Console::new(Options::from_matches("give", Stream::Product, matches));
            let result = console.product(b"product\n").map(|()| JsonObject::new());
            console.conclude(result.map_err(Stop::from))
        }
        Some(("panic", matches)) => {
            let _console = Console::new(Options::from_matches("panic", Stream::Verdict, matches));
            leave_unfinished_file(matches);
            ExitCode::ALL[path(matches).as_os_str().len() + ExitCode::ALL.len()]
        }
        Some(("wait", matches)) => wait(matches),
        _ => {
            let console = Console::new(Options::new("", Stream::Verdict));
            let failure = fault::internal("dispatch");
            console.finish(
                failure.exit_code(),
                Errors::One(&failure),
                JsonObject::new(),
            )
        }
    }
}

fn root() -> Command {
    let file = || {
        Arg::new("FILE")
            .required(true)
            .value_parser(value_parser!(PathBuf))
    };
    let check = Command::new("check")
        .about("Refuse a file that holds the word bad")
        .arg(file());
    let check = help::with_sections(
        check,
        &Sections {
            exit_codes: &[(ExitCode::Ok, "no line is bad"), (ExitCode::Refused, "")],
            environment: &[("NO_COLOR", "when not empty, no colour")],
            examples: &[
                ("check notes.txt", "check a file"),
                ("check -", "check standard input"),
            ],
        },
    );
    let commands = [
        check,
        Command::new("show")
            .about("Show a file's lines")
            .arg(file()),
        Command::new("give").about("Write a product"),
        Command::new("panic").about("Fault").arg(file()),
        Command::new("wait")
            .about("Wait for a signal")
            .arg(file())
            .arg(
                Arg::new("graceful")
                    .long("graceful")
                    .action(clap::ArgAction::SetTrue),
            ),
    ];
    Command::new("plimsoll-attest")
        .version("0.0.0")
        .about("A probe")
        .subcommand_required(true)
        .subcommands(commands.map(|command| command.args(shared_flags())))
}

fn path(matches: &ArgMatches) -> PathBuf {
    matches
        .get_one::<PathBuf>("FILE")
        .cloned()
        .unwrap_or_default()
}

/// A verdict: reads all of the input and refuses at its first bad line.
fn check(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let inputs = Inputs::new(console);
    let input = inputs.open(&path(matches), Dash::Allowed)?;
    let name = input.path().to_owned();
    let progress = console.progress(Measure::Bytes(input.size()));
    let mut lines = 0_u64;
    for line in BufReader::new(input).split(b'\n') {
        let line =
            line.map_err(|_| Failure::new(Class::Io, "cannot be read", "Check it.").file(&name))?;
        lines += 1;
        progress.advance(line.len() as u64 + 1);
        if line == b"bad" {
            let failure = Failure::new(Class::Line, "the line is bad", "Remove the line.");
            return Err(failure
                .file(&name)
                .line(lines)
                .found(escape::line(&line))
                .into());
        }
    }
    drop(progress);
    console.print(&format!(
        "checked {lines} lines of {}\n",
        escape::path(&name)
    ))?;
    Ok(JsonObject::new().with("lines", &lines))
}

/// Text: stops when nobody reads on.
fn show(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let bytes = Inputs::new(console).read(&path(matches), Dash::Allowed, 1 << 20)?;
    loop {
        console.print(&escape::block(&bytes, 1 << 16))?;
        console.flush()?;
        if bytes.len() < 4096 {
            return Ok(JsonObject::new());
        }
    }
}

/// Begins an output and says where, without finishing it.
fn leave_unfinished_file(matches: &ArgMatches) {
    if let Ok(mut file) = OutFile::create(&path(matches), Mode::Private, Replace::Never) {
        let _ = file.write_all(b"half");
        // Lost on purpose: only the registry can remove it now.
        std::mem::forget(file);
    }
}

fn wait(matches: &ArgMatches) -> ExitCode {
    let console = Console::new(Options::from_matches("wait", Stream::Verdict, matches));
    let (sender, receiver) = std::sync::mpsc::channel();
    let Ok(interrupts) = Interrupts::install() else {
        return ExitCode::Internal;
    };
    if matches.get_flag("graceful") {
        let sender = sender.clone();
        interrupts.on_first(move |signal| {
            let _ = sender.send(signal);
        });
    }
    leave_unfinished_file(matches);
    let _ = console.print("ready\n");
    let _ = console.flush();
    if let Ok(signal) = receiver.recv() {
        console.warning(&format!("stopped by {signal}; the code may have run"));
    }
    drop(sender);
    interrupts.end(console.finish(ExitCode::Unrecorded, Errors::None, JsonObject::new()))
}
