//! `verify-entry`: one line of a bundle that need not be whole.

use std::{io::BufReader, path::PathBuf};

use clap::{Arg, ArgMatches, Command, value_parser};
use plimsoll_attestation::bundle::{self, EntryReport};
use plimsoll_console::{
    Console, Errors, ExitCode, Failure, JsonObject, Stream, escape,
    files::{Dash, Inputs},
    help::Sections,
    output::{self, Stop},
    values,
};
use plimsoll_wire::proto::RunRecord;
use serde::Serialize;

use crate::{
    cli::Entry,
    expect, keys,
    policy::{self, Policies},
    refusal,
};

/// What one line alone does not show.
const NOT_ESTABLISHED: [&str; 4] = [
    "file_whole",
    "neighbours",
    "chain_complete",
    "session_closed",
];

pub const ENTRY: Entry = Entry {
    name: "verify-entry",
    stream: Stream::Verdict,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "the line verifies"),
            (
                ExitCode::Refused,
                "it does not, is no call, or is not there",
            ),
            (
                ExitCode::Usage,
                "a file or a key cannot be read, or flags are wrong",
            ),
            (
                ExitCode::Negative,
                "the line is good evidence and a policy is not met",
            ),
        ],
        environment: &[(
            "XDG_CONFIG_HOME, HOME",
            "where the default key lies, for --own",
        )],
        examples: &[
            (
                "verify-entry --pub ci.pub --line 3 plimsoll-runs.jsonl",
                "is line 3 what the key holder's harness checked and signed?",
            ),
            (
                "verify-entry --pub ci.pub --line 3 --json plimsoll-runs.jsonl",
                "the same, with the signed record for a script",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    command
        .about("Verifies one line of a bundle, also while the file is still being written")
        .args(keys::verifying_flags())
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("N")
                .required(true)
                .value_parser(values::number(1..=i64::MAX))
                .help("The line, counted from 1"),
        )
        .args(policy::flags())
        .arg(
            Arg::new("expect-request")
                .long("expect-request")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("The call is this RunRequest, as proto3 JSON"),
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
    match checked(console, matches) {
        Ok((members, failures)) => match failures.as_slice() {
            [failure] => console.finish(failure.exit_code(), Errors::One(failure), members),
            failures => {
                let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
                console.finish(code, Errors::Many(failures), members)
            }
        },
        Err(stop) => console.conclude(Err(stop)),
    }
}

fn checked(console: &Console, matches: &ArgMatches) -> Result<(JsonObject, Vec<Failure>), Stop> {
    let file = matches
        .get_one::<PathBuf>("bundle")
        .cloned()
        .unwrap_or_default();
    let number = matches
        .get_one::<i64>("line")
        .map_or(0, |line| line.unsigned_abs());
    let keys = keys::verifying(console, matches)?;
    let inputs = Inputs::new(console);
    let wanted = match matches.get_one::<PathBuf>("expect-request") {
        Some(request) => Some(expect::request_digest_of(&inputs, request)?),
        None => None,
    };
    let mut policies = Policies::read(matches);
    let input = inputs.open(&file, Dash::Allowed)?;
    let entry = bundle::verify_entry(BufReader::new(input), &keys, number)
        .map_err(|fault| refusal::failure(&file, &fault, &keys))?;
    let record = &entry.call().record;
    if let Some(wanted) = wanted.filter(|wanted| *wanted != record.request_sha256) {
        return Err(
            expect::other_request(&file, &wanted, &record.request_sha256)
                .line(number)
                .into(),
        );
    }
    policies.judge(entry.call());
    console.print(&success(number, &entry))?;
    for line in policies.met_lines() {
        console.print(&format!("{line}\n"))?;
    }
    let mut members = JsonObject::new()
        .with("file", &file.to_string_lossy())
        .with("key_id", &entry.key_id)
        .with("line", &number)
        .with("record", &Signed::from(record))
        .with("not_established", &NOT_ESTABLISHED);
    if !policies.is_empty() {
        members.push("policy", &policies.verdicts());
    }
    Ok((members, policies.failures(&file)))
}

fn success(number: u64, entry: &EntryReport) -> String {
    let record = &entry.call().record;
    let mut line = format!(
        "verified line {number} signed by key {}: {} ({}), record {}, request {}",
        entry.key_id,
        escape::line(&record.provider),
        escape::line(&record.isolation),
        record.record_sha256,
        record.request_sha256
    );
    if !record.session.is_empty() {
        let short: String = record.session.chars().take(12).collect();
        line += &format!(
            ", session {}… call {}",
            escape::line(short),
            record.sequence
        );
    }
    if !record.unanswered.is_empty() {
        line += &format!(", unanswered {}", escape::line(&record.unanswered));
    }
    line + "\nthis line only: it does not show that the rest of the file is whole, that no line is \
            missing or that the session is complete\n\
            the tier is stated by the daemon; not hardware attestation\n"
}

/// A record as its predicate names the members.
#[derive(Serialize)]
struct Signed<'a> {
    version: u32,
    request_sha256: &'a str,
    result_sha256: &'a str,
    provider: &'a str,
    isolation: &'a str,
    environment: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    software_identity: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    software_rule_id: &'a str,
    policy: &'a str,
    started_unix_ms: i64,
    ended_unix_ms: i64,
    session: &'a str,
    sequence: u64,
    previous_sha256: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    unanswered: &'a str,
    record_sha256: &'a str,
}

impl<'a> From<&'a RunRecord> for Signed<'a> {
    fn from(record: &'a RunRecord) -> Self {
        Signed {
            version: record.version,
            request_sha256: &record.request_sha256,
            result_sha256: &record.result_sha256,
            provider: &record.provider,
            isolation: &record.isolation,
            environment: &record.environment,
            software_identity: &record.software_identity,
            software_rule_id: &record.software_rule_id,
            policy: &record.policy,
            started_unix_ms: record.started_unix_ms,
            ended_unix_ms: record.ended_unix_ms,
            session: &record.session,
            sequence: record.sequence,
            previous_sha256: &record.previous_sha256,
            unanswered: &record.unanswered,
            record_sha256: &record.record_sha256,
        }
    }
}
