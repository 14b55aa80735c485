//! `verify`: whole bundles, offline.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    bundle::{self, Call, Report, Visitor},
};
use plimsoll_console::{
    Console, Errors, ExitCode, Failure, JsonObject, Stream, args, escape,
    files::{Dash, Input, Inputs},
    help::Sections,
    output::{self, Stop},
    progress::{Measure, Progress},
    values,
};
use serde::Serialize;

use crate::{
    cli::{self, Entry},
    expect::Expectations,
    keys, refusal,
};

/// Sessions named in the success line.
const SHOWN_SESSIONS: usize = 20;

pub const ENTRY: Entry = Entry {
    name: "verify",
    stream: Stream::Verdict,
    define,
    sections: Sections {
        exit_codes: &[
            (
                ExitCode::Ok,
                "every bundle verifies and meets what was asked",
            ),
            (
                ExitCode::Refused,
                "evidence is refused, or an expectation is not met",
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
                "verify --pub ci.pub plimsoll-runs.jsonl",
                "is this file exactly what the key holder wrote?",
            ),
            (
                "verify --pub ci.pub --expect requests.txt plimsoll-runs.jsonl",
                "and does it hold exactly these requests?",
            ),
            (
                "verify --pub a.pub --pub b.pub --json one.jsonl two.jsonl",
                "several bundles, each signed by one of two keys, for a script",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Verifies whole bundles offline")
        .args(keys::verifying_flags())
        .arg(
            Arg::new("allow-empty")
                .long("allow-empty")
                .action(ArgAction::SetTrue)
                .help("Accept a bundle that holds no call"),
        )
        .arg(
            Arg::new("expect")
                .long("expect")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The calls are exactly these: one request digest a line, labels allowed"),
        )
        .arg(
            Arg::new("expect-count")
                .long("expect-count")
                .value_name("N")
                .default_value("-1")
                .value_parser(values::number(-1..=i64::MAX))
                .help("The number of calls; -1 does not ask"),
        )
        .arg(
            Arg::new("expect-request")
                .long("expect-request")
                .value_name("FILE")
                .action(ArgAction::Append)
                .value_parser(value_parser!(PathBuf))
                .help("Some call is this RunRequest, as proto3 JSON; repeatable"),
        )
        .arg(
            Arg::new("bundle")
                .value_name("BUNDLE")
                .required(true)
                .num_args(1..)
                .value_parser(value_parser!(PathBuf))
                .help("The bundles; - is standard input"),
        )
        .args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let bundles: Vec<PathBuf> = matches
        .get_many::<PathBuf>("bundle")
        .unwrap_or_default()
        .cloned()
        .collect();
    let mut inputs = Inputs::new(console);
    let prepared = keys::verifying(console, matches).and_then(|keys| {
        let expectations = Expectations::read(&mut inputs, matches)?;
        if bundles.len() > 1 && expectations.speak_of_one() {
            return Err(args::rule(
                &cli::definition(),
                &["verify"],
                "--expect, --expect-count and --expect-request speak of one bundle",
                "Verify that bundle alone.",
            ));
        }
        Ok((keys, expectations))
    });
    let (keys, expectations) = match prepared {
        Ok(prepared) => prepared,
        Err(failure) => return console.conclude(Err(Stop::Failed(failure))),
    };
    let mut verdicts = Vec::new();
    let mut failures = Vec::new();
    for file in &bundles {
        let verdict = one(console, &mut inputs, file, &keys, expectations.clone());
        match &verdict.failure {
            None => {
                let prefix = if bundles.len() > 1 {
                    format!("{}: ", escape::path(file))
                } else {
                    String::new()
                };
                let _ = console.print(&format!("{prefix}{}\n", success_line(&verdict.report)));
            }
            Some(failure) => {
                if bundles.len() > 1 {
                    console.show(failure);
                }
                failures.push(failure.clone());
            }
        }
        verdicts.push(verdict);
    }
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    let shown: Vec<Shown<'_>> = verdicts.iter().map(Shown::from).collect();
    let members = JsonObject::new().with("bundles", &shown);
    match failures.as_slice() {
        [failure] if bundles.len() == 1 => console.finish(code, Errors::One(failure), members),
        failures if console.options().json => console.finish(code, Errors::Many(failures), members),
        // Their blocks were shown as they came.
        _ => console.finish(code, Errors::None, members),
    }
}

struct Verdict {
    file: PathBuf,
    report: Report,
    expected: &'static str,
    missing: Vec<String>,
    unexpected: Vec<String>,
    failure: Option<Failure>,
}

fn one(
    console: &Console,
    inputs: &mut Inputs<'_>,
    file: &Path,
    keys: &[PublicKey],
    mut expectations: Expectations,
) -> Verdict {
    let mut verdict = Verdict {
        file: file.to_owned(),
        report: Report::default(),
        expected: if expectations.speak_of_one() {
            "failed"
        } else {
            "not_asked"
        },
        missing: Vec::new(),
        unexpected: Vec::new(),
        failure: None,
    };
    let input = match inputs.open(file, Dash::Allowed) {
        Ok(input) => input,
        Err(failure) => {
            verdict.failure = Some(failure);
            return verdict;
        }
    };
    match checked(console, input, keys, &mut expectations) {
        Ok(report) => {
            let met = expectations.met(&report);
            verdict.report = report;
            if met.is_ok() && expectations.speak_of_one() {
                verdict.expected = "met";
            }
            if let Err(unmet) = met {
                verdict.missing = unmet.missing().to_vec();
                verdict.unexpected = unmet.unexpected().to_vec();
                verdict.failure = Some(unmet.failure(file));
            }
        }
        Err(fault) => verdict.failure = Some(refusal::failure(file, &fault, keys)),
    }
    verdict
}

fn checked(
    console: &Console,
    input: Input,
    keys: &[PublicKey],
    expectations: &mut Expectations,
) -> Result<Report, Fault> {
    let progress = console.progress(Measure::Bytes(input.size()));
    let mut visitor = (expectations, Shower(&progress));
    let report = bundle::verify(BufReader::with_capacity(1 << 16, input), keys, &mut visitor)?;
    if report.records == 0 && !visitor.0.allow_empty() {
        return Err(Fault::new(Reason::Empty));
    }
    Ok(report)
}

/// Shows how far the pass has come.
struct Shower<'a>(&'a Progress);

impl Visitor for Shower<'_> {
    fn line(&mut self, line: &bundle::SeenLine) {
        self.0.advance(line.length + 1);
    }

    fn call(&mut self, _: &Call<'_>) {}
}

fn success_line(report: &Report) -> String {
    let mut line = format!(
        "verified {} entries ({} records) signed by key {}, whole to its last checkpoint: {} single runs",
        report.lines, report.records, report.key_id, report.single_runs
    );
    for session in report.sessions.iter().take(SHOWN_SESSIONS) {
        line += &format!(
            "; session {}…, {} calls, chain closed",
            escape::line(session.session.chars().take(12).collect::<String>()),
            session.calls
        );
    }
    if report.sessions.len() > SHOWN_SESSIONS {
        line += &format!(
            "; and {} more sessions",
            report.sessions.len() - SHOWN_SESSIONS
        );
    }
    line
}

#[derive(Serialize)]
struct ShownSession<'a> {
    session: &'a str,
    calls: u64,
    unanswered: u64,
}

/// A bundle's verdict as a script sees it. What was found before a refusal is
/// not shown: only a whole bundle's counts mean anything.
#[derive(Serialize)]
struct Shown<'a> {
    file: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<ShownSession<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<&'a std::collections::BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unix_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_unix_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_line_sha256: Option<String>,
    expected: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    missing: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unexpected: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl<'a> From<&'a Verdict> for Shown<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let report = &verdict.report;
        let whole = report.lines > 0;
        let in_sessions = report.records - report.single_runs;
        Shown {
            file: verdict.file.to_string_lossy().into_owned(),
            ok: verdict.failure.is_none(),
            key_id: whole.then_some(report.key_id.as_str()),
            lines: whole.then_some(report.lines),
            records: whole.then_some(report.records),
            checkpoints: whole.then_some(report.checkpoints.as_slice()),
            runs: whole.then_some(report.single_runs),
            calls: whole.then_some(in_sessions),
            sessions: whole.then(|| {
                report
                    .sessions
                    .iter()
                    .map(|session| ShownSession {
                        session: &session.session,
                        calls: session.calls,
                        unanswered: session.unanswered,
                    })
                    .collect()
            }),
            tiers: whole.then_some(&report.tiers),
            first_unix_ms: report.first_unix_ms,
            last_unix_ms: report.last_unix_ms,
            last_line_sha256: report.last_line.map(|digest| digest.to_hex()),
            expected: verdict.expected,
            missing: &verdict.missing,
            unexpected: &verdict.unexpected,
            error: verdict.failure.as_ref(),
        }
    }
}
