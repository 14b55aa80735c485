//! The flags of `sign-statement`, and the three forms they make.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::{Failure, args, output, values};

use super::parts::{Runs, Subject};
use crate::{cli, keys};

/// What a command line asks for.
pub struct Form {
    pub what: What,
    pub key: Option<PathBuf>,
    /// `None` for standard output.
    pub out: Option<PathBuf>,
}

/// What is signed.
pub enum What {
    /// A statement as it stands in a file.
    Whole { file: PathBuf, canonical: bool },
    /// A statement about subjects that are named.
    Named {
        predicate_type: String,
        subjects: Vec<Subject>,
        predicate: Option<PathBuf>,
    },
    /// A statement about runs of a bundle.
    About {
        predicate_type: String,
        bundle: PathBuf,
        runs: Runs,
        predicate: Option<PathBuf>,
    },
}

/// Flags of the forms that build a statement.
const BUILDING: [&str; 8] = [
    "type",
    "subject",
    "predicate",
    "about",
    "line",
    "all-runs",
    "pub",
    "own",
];
/// Flags that speak of a bundle.
const ABOUT: [&str; 4] = ["line", "all-runs", "pub", "own"];

pub fn define(command: Command) -> Command {
    let path = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(name)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    command
        .about("Signs an in-toto statement of your own type")
        .long_about(
            "Signs an in-toto statement of your own type: a whole one from a file, or one built \
             from a type, subjects and a predicate. With --about the subjects are the records of \
             runs, which must verify. The types of this program's own evidence are refused, so \
             that such a signature never passes for a checked run.",
        )
        .arg(
            Arg::new("statement")
                .value_name("STATEMENT.json")
                .value_parser(value_parser!(PathBuf))
                .help("A whole statement, signed byte for byte; - is standard input"),
        )
        .arg(
            Arg::new("type")
                .long("type")
                .value_name("URI")
                .help("The predicate type of a statement to build"),
        )
        .arg(
            Arg::new("subject")
                .long("subject")
                .value_name("NAME=ALG:HEX")
                .action(ArgAction::Append)
                .help("A subject; ALG: may be left out for sha256; repeatable"),
        )
        .arg(path(
            "predicate",
            "FILE",
            "The predicate, a JSON object; - is standard input [default: none]",
        ))
        .arg(path(
            "about",
            "BUNDLE",
            "Make the records of runs of this bundle the subjects",
        ))
        .args(keys::verifying_flag())
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("N")
                .action(ArgAction::Append)
                .value_parser(values::number(1..=i64::MAX))
                .help("The run on this line of --about, verified alone; repeatable"),
        )
        .arg(
            Arg::new("all-runs")
                .long("all-runs")
                .action(ArgAction::SetTrue)
                .help("Every run of --about, verified whole"),
        )
        .arg(
            Arg::new("canonical")
                .long("canonical")
                .action(ArgAction::SetTrue)
                .help(
                    "Sign the RFC 8785 form of STATEMENT.json; a number it would change is refused",
                ),
        )
        .arg(path(
            "key",
            "FILE",
            "The signing key [default: the one run made]",
        ))
        .arg(
            path(
                "out",
                "FILE",
                "The envelope, a new file; - is standard output",
            )
            .short('o')
            .default_value("-"),
        )
        .args(output::shared_flags())
}

fn usage(fact: &str, advice: &str) -> Failure {
    args::rule(&cli::definition(), &["sign-statement"], fact, advice)
}

impl Form {
    /// Reads the flags and checks the rules between them.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn read(matches: &ArgMatches, json: bool) -> Result<Self, Failure> {
        let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        let key = path("key");
        if key.as_ref().is_some_and(|key| key.as_os_str() == "-") {
            return Err(usage(
                "--key does not take - (standard input)",
                "Name a file, or set PLIMSOLL_ATTEST_KEY.",
            ));
        }
        let out = path("out").filter(|out| out.as_os_str() != "-");
        if json && out.is_none() {
            return Err(usage(
                "with --json the envelope does not go to standard output",
                "Name a new file with --out.",
            ));
        }
        let what = What::read(matches)?;
        Ok(Form { what, key, out })
    }
}

impl What {
    fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let given =
            |id: &&&str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let path = |id: &str| matches.get_one::<PathBuf>(id).cloned();
        let canonical = matches.get_flag("canonical");
        if let Some(file) = path("statement") {
            if let Some(flag) = BUILDING.iter().find(given) {
                return Err(usage(
                    &format!("--{flag} builds a statement, STATEMENT.json is a whole one"),
                    "Give one or the other.",
                ));
            }
            return Ok(What::Whole { file, canonical });
        }
        if canonical {
            return Err(usage(
                "--canonical goes with STATEMENT.json",
                "Leave it out: a statement that is built has one form.",
            ));
        }
        let Some(predicate_type) = matches.get_one::<String>("type").cloned() else {
            return Err(usage(
                "nothing to sign was given",
                "Give STATEMENT.json, or --type URI with --subject or --about.",
            ));
        };
        let mut subjects = Vec::new();
        for text in matches.get_many::<String>("subject").unwrap_or_default() {
            subjects.push(Subject::read(text).ok_or_else(|| {
                usage(
                    "--subject has no name",
                    "Give NAME=ALG:HEX, such as app.tar=sha256: and 64 lowercase hex digits.",
                )
            })?);
        }
        let predicate = path("predicate");
        let about = path("about");
        match (about, subjects.is_empty()) {
            (Some(_), false) => Err(usage(
                "--subject and --about exclude each other",
                "With --about the subjects are the records of its runs.",
            )),
            (None, true) => Err(usage(
                "the statement is about nothing",
                "Give --subject NAME=ALG:HEX, or --about BUNDLE.",
            )),
            (None, false) => match ABOUT.iter().find(given) {
                Some(flag) => Err(usage(
                    &format!("--{flag} goes with --about"),
                    "Leave it out, or name the bundle.",
                )),
                None => Ok(What::Named {
                    predicate_type,
                    subjects,
                    predicate,
                }),
            },
            (Some(bundle), true) => Ok(What::About {
                predicate_type,
                bundle,
                runs: runs(matches)?,
                predicate,
            }),
        }
    }
}

fn runs(matches: &ArgMatches) -> Result<Runs, Failure> {
    let lines: Vec<u64> = matches
        .get_many::<i64>("line")
        .unwrap_or_default()
        .map(|line| line.unsigned_abs())
        .collect();
    match (lines.is_empty(), matches.get_flag("all-runs")) {
        (true, true) => Ok(Runs::All),
        (false, false) => Ok(Runs::Lines(lines)),
        _ => Err(usage(
            "--about needs either --line or --all-runs",
            "Name the runs the statement is about.",
        )),
    }
}
