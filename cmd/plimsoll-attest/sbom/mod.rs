//! `sbom`: CycloneDX BOMs of signed runs, and their check.

mod build;
mod check;
mod failure;
mod flags;
mod places;
mod shown;

use clap::{ArgMatches, Command};
use plimsoll_console::{Console, ExitCode, Options, Stream, help::Sections};

use crate::cli::Entry;
use flags::{Form, What};

pub const ENTRY: Entry = Entry {
    name: "sbom",
    stream: Stream::Verdict,
    define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "every BOM was written, or is what the evidence gives",
            ),
            (
                ExitCode::Refused,
                "the evidence or a BOM is refused, or the selection gives no BOM",
            ),
            (
                ExitCode::Usage,
                "a file or the key cannot be read, an output cannot be created, or flags are wrong",
            ),
            (
                ExitCode::Negative,
                "with --check: the evidence is good and the BOM rebuilt from it differs",
            ),
            (
                ExitCode::Internal,
                "a built BOM is not valid: a bug, nothing written",
            ),
        ],
        environment: &[(
            "XDG_CONFIG_HOME, HOME",
            "where the default key lies, for --own",
        )],
        examples: &[
            (
                "sbom --pub ci.pub --line 1 --out run.cdx.json plimsoll-runs.jsonl",
                "the BOM of the call on line 1, with its signed line attached",
            ),
            (
                "sbom --pub ci.pub --all --out boms plimsoll-runs.jsonl",
                "a BOM for each call, in the directory boms",
            ),
            (
                "sbom --check --pub ci.pub --bundle plimsoll-runs.jsonl run.cdx.json",
                "is this BOM exactly what the bundle gives?",
            ),
            (
                "sbom --check --pub ci.pub --attached run.cdx.json",
                "the same with the lines inside the BOM as the only evidence",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    flags::define(
        command
            .about("Writes CycloneDX BOMs of signed runs, or checks them")
            .long_about(
                "Writes CycloneDX BOMs of signed runs. Each is built from evidence that was \
                 verified, carries the signed lines and is validated against the official schema \
                 before it is written. The same evidence always gives the same bytes: with \
                 --check a BOM is rebuilt and compared. A BOM states a tier as the daemon stated \
                 it, which is not hardware attestation, and an image's digest, which is not a \
                 list of what is in the image.",
            ),
    )
}

fn run(_: &Console, matches: &ArgMatches) -> ExitCode {
    let form = Form::read(matches);
    // What a reader that goes away means depends on what is printed.
    let stream = match &form {
        Ok(Form {
            what: What::Build(build),
            ..
        }) if build.out.is_none() => Stream::Product,
        _ => Stream::Verdict,
    };
    let console = Console::new(Options::from_matches(ENTRY.name, stream, matches));
    match form {
        Err(failure) => console.conclude(Err(failure.into())),
        Ok(form) => match &form.what {
            What::Build(asked) => build::run(&console, matches, asked),
            What::Check(asked) => check::run(&console, matches, asked),
        },
    }
}
