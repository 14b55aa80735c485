//! `pr-receipt challenge`: wrong receipts that must be refused.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Stream, escape,
    files::{self, Mode, Replace, plain_words},
    output::{self, Stop},
};
use plimsoll_receipt::{
    challenge::{Challenge, Original, mutations},
    git::Oid,
    verify::{self, Options},
};
use serde::Serialize;

use super::{Sub, folder, shown, usage};

pub const SUB: Sub = Sub {
    name: "challenge",
    stream: Stream::Verdict,
    define,
    exit_codes: &[
        (
            ExitCode::Ok,
            "every wrong receipt was refused with its code",
        ),
        (
            ExitCode::Refused,
            "one was accepted or refused with another code, or the receipt itself does not hold",
        ),
        (ExitCode::Usage, "a flag or a file cannot be used"),
    ],
    environment: &[],
    examples: &[
        (
            "pr-receipt challenge --repo . --head 242085db39798080553c88a7f6e0b887ba5e33dc --out wrong plimsoll-receipt",
            "writes wrong receipts below wrong/ and checks that each is refused",
        ),
        (
            "pr-receipt challenge --repo . --out wrong --json plimsoll-receipt",
            "the same for a script; the clone has a name for the head",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Writes deliberately wrong receipts and checks that each is refused")
        .arg(
            Arg::new("receipt")
                .value_name("RECEIPT_DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("A receipt that holds"),
        )
        .arg(
            Arg::new("out")
                .short('o')
                .long("out")
                .value_name("DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("Where they go, one directory each: absent or empty"),
        )
        .arg(
            Arg::new("repo")
                .long("repo")
                .value_name("DIR")
                .default_value(".")
                .value_parser(value_parser!(PathBuf))
                .help("A clone with the commits"),
        )
        .arg(
            Arg::new("head")
                .long("head")
                .value_name("SHA")
                .help("The head commit, in full [default: the clone's name for it]"),
        )
        .args(output::shared_flags())
}

/// One line of `challenge.json`.
#[derive(Serialize)]
struct Listed {
    directory: &'static str,
    mutation: &'static str,
    code: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    refused: Option<&'static str>,
    ok: bool,
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    match challenged(console, matches) {
        Err(stop) => console.conclude(Err(stop)),
        Ok((members, None)) => console.finish(ExitCode::Ok, Errors::None, members),
        Ok((members, Some(failure))) => {
            console.finish(failure.exit_code(), Errors::One(&failure), members)
        }
    }
}

fn challenged(
    console: &Console,
    matches: &ArgMatches,
) -> Result<(JsonObject, Option<Failure>), Stop> {
    let path = |id: &str| matches.get_one::<PathBuf>(id).cloned().unwrap_or_default();
    let (receipt, out) = (path("receipt"), path("out"));
    let head = match matches.get_one::<String>("head") {
        None => None,
        Some(text) => Some(Oid::parse(text).ok_or_else(|| {
            usage(
                SUB.name,
                "--head is not a full commit",
                "Give 40 (or 64) lowercase hex digits.",
            )
        })?),
    };
    let options = Options {
        place: Some(super::verify::place(&path("repo"))?),
        head,
        ..Options::default()
    };
    let whole = folder::read(console, &receipt)?;
    let report = verify::verify(&whole, &options);
    let holds = report
        .refusal()
        .is_none_or(|step| matches!(step.code, Some("tests_failed" | "no_tests")));
    let (Some(original), Some(facts), true) = (Original::open(&whole), &report.facts, holds) else {
        let step = report.refusal();
        let code = step.and_then(|step| step.code).unwrap_or("internal");
        let detail = step.map_or("it cannot be read", |step| &step.detail);
        return Err(Failure::new(
            super::class(code),
            format!("the receipt itself does not hold: {detail}"),
            "Challenge a receipt that pr-receipt verify accepts.",
        )
        .file(&receipt)
        .exit(ExitCode::Refused)
        .into());
    };
    // Behind the tier it was made at, so that a weaker one is refused.
    let options = Options {
        floor: Some(facts.run.tier.clone())
            .filter(|tier| tier != "process" && tier != "none")
            .or(Some("container".to_owned())),
        ..options
    };
    prepare(&out)?;
    let mut listed = Vec::new();
    for mutation in mutations() {
        let Some(mut challenge) = original.challenge(mutation, &options) else {
            continue;
        };
        listed.push(write(&out, &mut challenge)?);
        let word = if challenge.met() { "ok" } else { "WRONG" };
        console.print(&format!(
            "{word:<6}{:<32}{}\n",
            mutation.code, mutation.sentence
        ))?;
    }
    let text = serde_json::to_string_pretty(&listed).unwrap_or_default() + "\n";
    files::write(
        &out.join("challenge.json"),
        text.as_bytes(),
        Mode::Public,
        Replace::Never,
    )?;
    let wrong: Vec<&Listed> = listed.iter().filter(|one| !one.ok).collect();
    let failure = wrong.first().map(|one| {
        Failure::new(
            Class::Expected,
            format!(
                "{} of {} wrong receipts were not refused with their code",
                wrong.len(),
                listed.len()
            ),
            "Please report it, with the directory named: a receipt of that kind would be believed.",
        )
        .file(out.join(one.directory))
        .expected(one.code)
        .found(one.refused.unwrap_or("accepted"))
    });
    if failure.is_none() {
        console.success(&format!(
            "{} wrong receipts, each refused with its code; in {}\n",
            listed.len(),
            escape::path(&out)
        ))?;
    }
    Ok((
        shown::members(&receipt, facts).with("challenges", &listed),
        failure,
    ))
}

fn prepare(out: &Path) -> Result<(), Failure> {
    match fs::create_dir(out) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let plain = out.symlink_metadata().is_ok_and(|facts| facts.is_dir());
            if plain && fs::read_dir(out).is_ok_and(|mut names| names.next().is_none()) {
                return Ok(());
            }
            Err(Failure::new(
                Class::Exists,
                "is no empty directory",
                "Name another with --out.",
            )
            .file(out))
        }
        Err(error) => Err(Failure::new(
            Class::Io,
            format!("cannot be made: {}", plain_words(&error)),
            "Name a place that can be written to with --out.",
        )
        .file(out)),
    }
}

fn write(out: &Path, challenge: &mut Challenge) -> Result<Listed, Failure> {
    let name = challenge.mutation.name;
    let directory = out.join(name);
    fs::create_dir(&directory).map_err(|error| {
        Failure::new(
            Class::Io,
            format!("cannot be made: {}", plain_words(&error)),
            "Check the directory and the space on its disk.",
        )
        .file(&directory)
        .exit(ExitCode::Refused)
    })?;
    folder::write(&directory, &mut challenge.folder)?;
    Ok(Listed {
        directory: name,
        mutation: challenge.mutation.sentence,
        code: challenge.mutation.code,
        refused: challenge.refused,
        ok: challenge.met(),
    })
}
