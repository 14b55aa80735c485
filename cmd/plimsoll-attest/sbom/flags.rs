//! The flags of `sbom`, and what they may be together.

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, parser::ValueSource, value_parser};
use plimsoll_bom::{Attach, DEFAULT_MAX_ATTACH, ImageName, Options, Scope, Selection, SpecVersion};
use plimsoll_console::{Failure, args, output, values};

use crate::{cli, keys};

/// What the command line asks for.
pub struct Form {
    pub what: What,
}

pub enum What {
    Build(Build),
    Check(Check),
}

/// BOMs to write.
pub struct Build {
    pub bundle: PathBuf,
    /// `None` for one BOM per call.
    pub selection: Option<Selection>,
    pub scope: Scope,
    pub options: Options,
    /// A file, or the directory of one BOM per call; `None` for standard output.
    pub out: Option<PathBuf>,
    pub force: bool,
}

/// BOMs to check.
pub struct Check {
    pub boms: Vec<PathBuf>,
    /// `None` for the attached lines.
    pub bundle: Option<PathBuf>,
}

/// Flags of building alone.
const BUILDING: [&str; 10] = [
    "line",
    "session",
    "all",
    "scope",
    "attach",
    "image-name",
    "spec-version",
    "out",
    "force",
    "max-attach",
];

pub fn define(command: Command) -> Command {
    let text = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).help(help)
    };
    let switch = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .action(ArgAction::SetTrue)
            .help(help)
    };
    let file = |name: &'static str, value: &'static str, help: &'static str| {
        text(name, value, help).value_parser(value_parser!(PathBuf))
    };
    command
        .args(keys::verifying_flag())
        .arg(
            text("line", "N", "The call on this line of the bundle")
                .value_parser(values::number(1..=i64::MAX)),
        )
        .arg(text(
            "session",
            "FINGERPRINT",
            "The closed session with this fingerprint",
        ))
        .arg(switch(
            "all",
            "A BOM for each call, into the directory --out names",
        ))
        .arg(
            text(
                "scope",
                "WHAT",
                "What is verified first; line is for a file that is still being written",
            )
            .value_parser(values::words(&["bundle", "line"]))
            .default_value("bundle"),
        )
        .arg(
            text(
                "attach",
                "WHAT",
                "What is attached: the whole line, or its envelope alone",
            )
            .value_parser(values::words(&["line", "envelope"]))
            .default_value("line"),
        )
        .arg(text(
            "image-name",
            "NAME",
            "A repository name you state for the image; a record names it by digest alone",
        ))
        .arg(
            text("spec-version", "VERSION", "The version of CycloneDX")
                .value_parser(values::words(&["1.6", "1.7"]))
                .default_value("1.6"),
        )
        .arg(
            file(
                "out",
                "PATH",
                "The BOM's file, or a directory with --all; - is standard output",
            )
            .default_value("-"),
        )
        .arg(switch("force", "Replace files that exist"))
        .arg(
            text("max-attach", "BYTES", "Largest line that is attached whole")
                .value_parser(values::size)
                .default_value("16MiB"),
        )
        .arg(switch("check", "Check BOMs instead of writing them"))
        .arg(file(
            "bundle",
            "BUNDLE",
            "With --check: the bundle the BOMs are rebuilt from",
        ))
        .arg(switch(
            "attached",
            "With --check: the lines inside each BOM are the only evidence",
        ))
        .arg(
            Arg::new("file")
                .value_name("FILE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("The bundle; with --check the BOMs"),
        )
        .args(output::shared_flags())
}

/// A rule of this command that was broken.
pub fn usage(fact: &str, advice: &str) -> Failure {
    args::rule(&cli::definition(), &["sbom"], fact, advice)
}

impl Form {
    /// Reads the flags.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let what = if matches.get_flag("check") {
            What::Check(check(matches)?)
        } else {
            What::Build(build(matches)?)
        };
        Ok(Form { what })
    }
}

fn given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

fn files(matches: &ArgMatches) -> Vec<PathBuf> {
    let files = matches.get_many::<PathBuf>("file");
    files.unwrap_or_default().cloned().collect()
}

fn check(matches: &ArgMatches) -> Result<Check, Failure> {
    if let Some(flag) = BUILDING.into_iter().find(|name| given(matches, name)) {
        return Err(usage(
            &format!("--check and --{flag} exclude each other"),
            "A check takes every choice from the BOM itself.",
        ));
    }
    let bundle = matches.get_one::<PathBuf>("bundle").cloned();
    match (&bundle, matches.get_flag("attached")) {
        (Some(_), true) => Err(usage(
            "--bundle and --attached exclude each other",
            "Give the bundle if you have it: it shows more than the attached lines do.",
        )),
        (None, false) => Err(usage(
            "--check has no evidence",
            "Give --bundle BUNDLE, or --attached to use the lines inside the BOM.",
        )),
        _ => Ok(Check {
            boms: files(matches),
            bundle,
        }),
    }
}

fn build(matches: &ArgMatches) -> Result<Build, Failure> {
    for name in ["bundle", "attached"] {
        if given(matches, name) {
            return Err(usage(
                &format!("--{name} is for --check"),
                "Give --check, or name the bundle without a flag.",
            ));
        }
    }
    let mut bundles = files(matches).into_iter();
    let (Some(bundle), None) = (bundles.next(), bundles.next()) else {
        return Err(usage(
            "more than one bundle is named",
            "Name one; --check takes several BOMs.",
        ));
    };
    let word = |name: &str| matches.get_one::<String>(name).map_or("", String::as_str);
    let scope = Scope::parse(word("scope")).unwrap_or_default();
    let line = matches
        .get_one::<i64>("line")
        .map(|line| line.unsigned_abs());
    let session = matches.get_one::<String>("session").cloned();
    let all = matches.get_flag("all");
    let selection = match (line, session, all) {
        (None, None, false) => Some(Selection::Only),
        (Some(line), None, false) => Some(Selection::Line(line)),
        (None, Some(session), false) => Some(Selection::Session(session)),
        (None, None, true) => None,
        _ => {
            return Err(usage(
                "--line, --session and --all exclude each other",
                "Give one of them.",
            ));
        }
    };
    if scope == Scope::Line && line.is_none() {
        return Err(usage(
            "--scope line is for one line",
            "Give --line N with it. A session, or every call, needs the whole bundle.",
        ));
    }
    let out = matches.get_one::<PathBuf>("out").cloned();
    let out = out.filter(|out| out.as_os_str() != "-");
    if out.is_none() && all {
        return Err(usage(
            "--all has no directory to write to",
            "Give --out DIRECTORY.",
        ));
    }
    if out.is_none() && matches.get_flag("json") {
        return Err(usage(
            "--json and a BOM on standard output exclude each other",
            "Give --out FILE for the BOM.",
        ));
    }
    let image_name = match matches.get_one::<String>("image-name") {
        None => None,
        Some(text) => Some(ImageName::parse(text).ok_or_else(|| {
            usage(
                "--image-name is no repository name",
                "Give a name such as docker.io/library/node: lowercase, no tag, no digest, at \
                 most 255 characters.",
            )
        })?),
    };
    Ok(Build {
        bundle,
        selection,
        scope,
        options: Options {
            attach: Attach::parse(word("attach")).unwrap_or_default(),
            image_name,
            spec_version: SpecVersion::parse(word("spec-version")).unwrap_or_default(),
            max_attach: matches
                .get_one::<u64>("max-attach")
                .copied()
                .unwrap_or(DEFAULT_MAX_ATTACH),
        },
        out,
        force: matches.get_flag("force"),
    })
}
