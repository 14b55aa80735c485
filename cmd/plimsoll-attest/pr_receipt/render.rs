//! `pr-receipt render`: summary and page, written again.

use std::path::PathBuf;

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_attestation::PublicKey;
use plimsoll_console::{
    Console, ExitCode, JsonObject, Stream, escape,
    output::{self, Stop},
};
use plimsoll_receipt::{
    assemble::render,
    folder::{PAGE, SUMMARY},
};

use super::{Sub, folder, shown};

pub const SUB: Sub = Sub {
    name: "render",
    stream: Stream::Text,
    define,
    exit_codes: &[
        (ExitCode::Ok, "both files were written"),
        (
            ExitCode::Refused,
            "bundle, statements and key do not belong together; the BOM is not compared",
        ),
        (ExitCode::Usage, "a file cannot be read or written"),
    ],
    environment: &[],
    examples: &[
        (
            "pr-receipt render plimsoll-receipt",
            "writes summary.md and report.html again; the evidence is not touched",
        ),
        (
            "pr-receipt render --json plimsoll-receipt",
            "the same, told to a script",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Writes a receipt's summary and page again from its evidence")
        .arg(
            Arg::new("receipt")
                .value_name("RECEIPT_DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The receipt's directory"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    console.conclude(rendered(console, matches))
}

fn rendered(console: &Console, matches: &ArgMatches) -> Result<JsonObject, Stop> {
    let path = matches
        .get_one::<PathBuf>("receipt")
        .cloned()
        .unwrap_or_default();
    let folder = folder::read(console, &path)?;
    let rendered = render(&folder).map_err(|error| {
        let key = PublicKey::from_pem(&folder.public_key).ok();
        folder::failure(&error, &path, key.as_ref())
    })?;
    folder::write_rendered(&path, &rendered)?;
    for name in [SUMMARY, PAGE] {
        console.success(&format!("{}\n", escape::path(&path.join(name))))?;
    }
    console.note("rendered, not checked: pr-receipt verify says whether the receipt holds");
    Ok(shown::members(&path, &rendered.facts))
}
