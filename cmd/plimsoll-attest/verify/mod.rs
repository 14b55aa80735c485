//! `verify`: whole bundles, offline.

mod check;
mod shown;

use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Console, Errors, ExitCode, Failure, JsonObject, Stream, args, escape,
    files::Inputs,
    help::Sections,
    output::{self, Stop},
    values,
};

use crate::{
    cli::{self, Entry},
    expect::{self, Expectations},
    explain::Explain,
    keys,
    policy::{self, Policies},
};
use check::Asked;
use shown::Shown;
pub use shown::success_line;

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
            (
                ExitCode::Negative,
                "the evidence is good and a policy is not met",
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
                "verify --pub ci.pub --require-tier kernel --require-outcome success runs.jsonl",
                "and did every call succeed behind a kernel boundary or better?",
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
        .args(policy::flags())
        .arg(
            Arg::new("explain")
                .long("explain")
                .action(ArgAction::SetTrue)
                .help("Say what is established, by which key and which bytes, and what is not"),
        )
        .arg(
            Arg::new("stats")
                .long("stats")
                .action(ArgAction::SetTrue)
                .help("Say how long it took, on standard error"),
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
        let dashes = bundles
            .iter()
            .filter(|path| path.as_os_str() == "-")
            .count();
        if dashes + expect::dashes(matches) > 1 {
            return Err(args::rule(
                &cli::definition(),
                &["verify"],
                "standard input is named more than once",
                "It can be read once: name a file for the others.",
            ));
        }
        let expectations = Expectations::read(&mut inputs, matches)?;
        if bundles.len() > 1 && expectations.speak_of_one() {
            return Err(args::rule(
                &cli::definition(),
                &["verify"],
                "--expect, --expect-count and --expect-request speak of one bundle",
                "Verify that bundle alone.",
            ));
        }
        Ok(Asked {
            keys,
            expectations,
            policies: Policies::read(matches),
            explain: matches.get_flag("explain").then(Explain::default),
        })
    });
    let asked = match prepared {
        Ok(asked) => asked,
        Err(failure) => return console.conclude(Err(Stop::Failed(failure))),
    };
    let stats = matches.get_flag("stats").then(shown::Clock::start);
    let several = bundles.len() > 1;
    let mut verdicts = Vec::new();
    for file in &bundles {
        let verdict = check::one(console, &mut inputs, file, asked.clone());
        let prefix = if several {
            format!("{}: ", escape::path(file))
        } else {
            String::new()
        };
        for line in shown::lines(&verdict) {
            let _ = console.print(&format!("{prefix}{line}\n"));
        }
        if several {
            verdict
                .failures
                .iter()
                .for_each(|failure| console.show(failure));
        }
        verdicts.push(verdict);
    }
    let mut members = JsonObject::new();
    if let Some(clock) = stats {
        let stats = clock.stop(&verdicts);
        if !console.options().json {
            console.note(&stats.to_text());
        }
        members.push("stats", &stats);
    }
    let failures: Vec<Failure> = verdicts
        .iter()
        .flat_map(|verdict| verdict.failures.iter().cloned())
        .collect();
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    members.push(
        "bundles",
        &verdicts.iter().map(Shown::from).collect::<Vec<_>>(),
    );
    let explained: Vec<_> = verdicts
        .iter()
        .filter_map(check::Verdict::explained)
        .collect();
    for (text, _) in &explained {
        let _ = console.print(text);
    }
    match explained.as_slice() {
        [] => {}
        [(_, explained)] => members.push("explain", explained),
        several => {
            let lists: Vec<_> = several.iter().map(|(_, explained)| explained).collect();
            members.push("explain", &lists);
        }
    }
    match failures.as_slice() {
        [failure] if !several => console.finish(code, Errors::One(failure), members),
        failures if console.options().json || !several => {
            console.finish(code, Errors::Many(failures), members)
        }
        // Their blocks were shown as they came.
        _ => console.finish(code, Errors::None, members),
    }
}
