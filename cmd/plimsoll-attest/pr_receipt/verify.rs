//! `pr-receipt verify`: a reviewer's offline check of a receipt.

use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Stream, escape,
    output::{self, Stop},
    values,
};
use plimsoll_receipt::{
    folder::Folder,
    git::{Oid, Place},
    verify::{self, Options, Report, State, Step},
};
use serde::Serialize;

use super::{Sub, class, folder, shown, usage};
use crate::keys;

#[cfg(feature = "run")]
mod replay;

pub const SUB: Sub = Sub {
    name: "verify",
    stream: Stream::Verdict,
    define,
    exit_codes: super::EXIT_CODES,
    environment: &[(
        "PLIMSOLL_CALLER_TOKEN",
        "bearer token for the daemon of --replay",
    )],
    examples: &[
        (
            "pr-receipt verify --repo . --head 242085db39798080553c88a7f6e0b887ba5e33dc plimsoll-receipt",
            "is this a receipt of exactly that commit, and did its tests pass?",
        ),
        (
            "pr-receipt verify --repo . --keyid 8b101f25ca1dd8273794606a8172594ce47f8e53ae5bd2450cbf6026b862ab13 --base-ref origin/main --require-workflow-unchanged plimsoll-receipt",
            "with the key ID of the job's summary, and a workflow that the pull request did not touch",
        ),
        (
            "pr-receipt verify --repo . --replay --daemon http://127.0.0.1:8746 plimsoll-receipt",
            "also runs the same request on your own daemon and compares",
        ),
    ],
    run,
};

fn define(command: Command) -> Command {
    let text = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).help(help)
    };
    let switch = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
    };
    let command = command
        .about("Checks a receipt offline, against a git clone")
        .arg(
            Arg::new("receipt")
                .value_name("RECEIPT_DIR")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The receipt's directory"),
        )
        .arg(
            Arg::new("repo")
                .long("repo")
                .value_name("DIR")
                .value_parser(value_parser!(PathBuf))
                .help("A clone with the commits; needed unless --no-git"),
        )
        .arg(text(
            "head",
            "SHA",
            "The head commit you expect, in full [default: the clone's name for it]",
        ))
        .arg(
            Arg::new("pub")
                .long("pub")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .help("A public key learnt elsewhere [default: the receipt's own]"),
        )
        .arg(
            text(
                "keyid",
                "HEX",
                "A key ID learnt elsewhere, such as from the job's summary",
            )
            .value_parser(values::hex64),
        )
        .arg(text(
            "base-ref",
            "REF",
            "Your base: a branch such as origin/main, or a full commit [default: the clone's \
             branch of that name]",
        ))
        .arg(text("workflow", "PATH", "The workflow file you expect"))
        .arg(switch(
            "require-workflow-unchanged",
            "Refuse a changed workflow or configuration instead of warning",
        ))
        .arg(
            text("allow", "WHAT", "Whether WARNED counts as passing")
                .default_value("warned")
                .value_parser(values::words(&["warned", "none"])),
        )
        .arg(
            text("floor", "TIER", "The weakest stated tier you take")
                .default_value("kernel")
                .value_parser(values::words(&values::TIERS_OR_NONE)),
        )
        .arg(switch(
            "no-git",
            "Check everything but the commit and its files",
        ))
        .arg(switch(
            "allow-unbound",
            "With --no-git: exit 0 although nothing is tied to a revision",
        ));
    #[cfg(feature = "run")]
    let command = replay::define(command);
    command.args(output::shared_flags())
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let path = matches
        .get_one::<PathBuf>("receipt")
        .cloned()
        .unwrap_or_default();
    let options = match options(console, matches) {
        Ok(options) => options,
        Err(failure) => return console.conclude(Err(Stop::Failed(failure))),
    };
    #[cfg(feature = "run")]
    let replay = match replay::Replay::read(console, matches) {
        Ok(replay) => replay,
        Err(failure) => return console.conclude(Err(Stop::Failed(failure))),
    };
    let folder = match folder::read(console, &path) {
        Ok(folder) => folder,
        Err(failure) => return console.conclude(Err(Stop::Failed(failure))),
    };
    if let Err(failure) = named_head(&options, &folder) {
        return console.conclude(Err(Stop::Failed(failure)));
    }
    let report = verify::verify(&folder, &options);
    let refused = report.refusal().map(|step| failure(&path, step));
    #[allow(unused_mut)]
    let mut members = members(&path, &report);
    let _ = console.print(&told(&report));
    for warning in &report.warnings {
        console.warning(warning);
    }
    #[allow(unused_mut)]
    let mut failures: Vec<Failure> = refused.into_iter().collect();
    // What does not hold is not run.
    #[cfg(feature = "run")]
    if let Some(replay) = replay
        && failures
            .iter()
            .all(|failure| failure.exit_code() == ExitCode::Negative)
    {
        let (outcome, failed) = replay.run(console, &report, options.floor.as_deref());
        members.push("replay", &outcome);
        failures.extend(failed);
    }
    let code = ExitCode::combine_all(failures.iter().map(Failure::exit_code));
    let _ = console.print(&verdict(&report, &failures));
    match failures.as_slice() {
        [one] => console.finish(code, Errors::One(one), members),
        many => console.finish(code, Errors::Many(many), members),
    }
}

fn options(console: &Console, matches: &ArgMatches) -> Result<Options, Failure> {
    let text = |id: &str| matches.get_one::<String>(id).cloned();
    let no_git = matches.get_flag("no-git");
    let repo = matches.get_one::<PathBuf>("repo");
    let usage = |fact: &str, advice: &str| usage(SUB.name, fact, advice);
    let place = match (repo, no_git) {
        (Some(_), true) => {
            return Err(usage(
                "--no-git and --repo exclude each other",
                "Leave out one of the two.",
            ));
        }
        (None, false) => {
            return Err(usage(
                "there is no clone to check against",
                "Name one with --repo, or give --no-git.",
            ));
        }
        (None, true) => None,
        (Some(repo), false) => Some(self::place(repo)?),
    };
    if matches.get_flag("allow-unbound") && !no_git {
        return Err(usage("--allow-unbound goes with --no-git", "Leave it out."));
    }
    let head = match text("head") {
        None => None,
        Some(text) => Some(Oid::parse(&text).ok_or_else(|| {
            usage(
                "--head is not a full commit",
                "Give 40 (or 64) lowercase hex digits, as the pull request's page shows them.",
            )
        })?),
    };
    let public_key = match matches.get_one::<PathBuf>("pub") {
        Some(file) => Some(keys::public(console, file)?),
        None => None,
    };
    Ok(Options {
        place,
        head,
        public_key,
        key_id: matches.get_one::<[u8; 32]>("keyid").map(hex::encode),
        base: text("base-ref"),
        workflow: text("workflow"),
        require_workflow_unchanged: matches.get_flag("require-workflow-unchanged"),
        floor: text("floor").filter(|floor| floor != "none"),
        refuse_warned: text("allow").is_some_and(|allow| allow == "none"),
        allow_unbound: matches.get_flag("allow-unbound"),
    })
}

/// Without `--head` the clone must have a name for the head of the pull
/// request that the receipt says it is of.
fn named_head(options: &Options, folder: &Folder) -> Result<(), Failure> {
    let (None, Some(place)) = (&options.head, &options.place) else {
        return Ok(());
    };
    let Some(number) = verify::stated_pull_request(folder) else {
        // Refused by the check itself, with what is wrong.
        return Ok(());
    };
    match place.pull_request_heads(number) {
        Ok(heads) if heads.is_empty() => Err(usage(
            SUB.name,
            "the clone has no name for the pull request's head",
            &format!(
                "Give --head, copied from the pull request's page; or fetch it with git fetch \
                 origin pull/{number}/head:refs/pull/{number}/head."
            ),
        )),
        _ => Ok(()),
    }
}

/// Finds a clone.
///
/// # Errors
/// Class `io`.
pub fn place(repo: &Path) -> Result<Place, Failure> {
    Place::find(repo).map_err(|error| {
        Failure::new(
            Class::Io,
            error.to_string(),
            "Name a git clone, or a bare repository, with --repo.",
        )
        .file(repo)
    })
}

fn failure(path: &Path, step: &Step) -> Failure {
    let code = step.code.unwrap_or("internal");
    Failure::new(class(code), step.detail.clone(), advice(code)).file(path)
}

fn advice(code: &str) -> &'static str {
    match code {
        "git_commit" => {
            "Take the head from the pull request's page; fetch it into the clone. If both are \
             right, this receipt is of another commit."
        }
        "tests_failed" | "no_tests" => {
            "The receipt is good evidence of a result that is not a pass. Look at the tests it lists."
        }
        "floor_not_met" => {
            "Run the tests behind a stronger tier, or lower --floor if you accept less."
        }
        "workflow_changed" => {
            "Read what the pull request changes there, or run the tests again with --replay."
        }
        "key_mismatch" => {
            "Compare the key ID with the one in the job's summary; a receipt under another key is \
             another receipt."
        }
        _ => {
            "Do not rely on this receipt: its parts do not belong together. Get it again from the \
             job that made it, or run the tests yourself."
        }
    }
}

/// A step for a script.
#[derive(Serialize)]
struct Shown<'a> {
    n: u8,
    ok: bool,
    state: State,
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'a str>,
    #[serde(skip_serializing_if = "str::is_empty")]
    detail: &'a str,
}

fn members(path: &Path, report: &Report) -> JsonObject {
    let mut members = match &report.facts {
        Some(facts) => shown::members(path, facts),
        None => JsonObject::new().with("receipt", &path.to_string_lossy()),
    };
    let steps: Vec<Shown<'_>> = report
        .steps
        .iter()
        .map(|step| Shown {
            n: step.number,
            ok: matches!(step.state, State::Ok | State::Warned),
            state: step.state,
            code: step.code,
            detail: &step.detail,
        })
        .collect();
    members.push("steps", &steps);
    members.push("sources", &report.sources);
    members.push("warnings", &report.warnings);
    members
}

fn told(report: &Report) -> String {
    let mut out = String::new();
    if let Some(facts) = &report.facts {
        let workflow = match report.steps.get(11).map(|step| step.state) {
            Some(State::Ok) => "same as base",
            Some(State::Warned) => "differs from base",
            Some(State::Refused) => "refused",
            _ => "not checked",
        };
        out += &shown::table(facts, workflow);
    }
    for source in &report.sources {
        out += &format!("{}\n", escape::line_cut(source, 200));
    }
    for step in &report.steps {
        let word = match step.state {
            State::Ok => "ok",
            State::Warned => "warned",
            State::Refused => "REFUSED",
            State::NotChecked => "not checked",
        };
        out += &format!("{:>2}  {word:<12}{}\n", step.number, step.name);
        for line in wrapped(&escape::line_cut(&step.detail, 400)) {
            out += &format!("{:16}{line}\n", "");
        }
    }
    out
}

/// Lines of at most 84 columns, broken at spaces alone.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= 84 => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

fn verdict(report: &Report, failures: &[Failure]) -> String {
    if let Some(failure) = failures.first() {
        return format!(
            "RECEIPT REFUSED {}: {}\n",
            failure.class(),
            escape::line_cut(failure.message(), 200)
        );
    }
    match &report.facts {
        Some(facts) => {
            let counts = &facts.counts;
            let head: String = facts.head_sha.chars().take(12).collect();
            let merge = match facts.tested_kind.as_str() {
                "merge" => {
                    let base: String = facts.base_sha.chars().take(12).collect();
                    format!(" merged into {base}")
                }
                _ => String::new(),
            };
            let unbound = match report.steps.get(4).map(|step| step.state) {
                Some(State::Ok) => "",
                _ => "  not tied to a revision",
            };
            format!(
                "RECEIPT OK  {} at {head}{merge}  {} {}/{}/{}/{}  tier {} ({}){unbound}\n",
                shown::name(facts),
                facts.result,
                counts.passed,
                counts.warned,
                counts.failed,
                counts.skipped,
                escape::line_cut(&facts.run.tier, 20),
                plimsoll_receipt::show::TIER_SHORT
            )
        }
        None => "RECEIPT REFUSED internal: the receipt could not be read\n".to_owned(),
    }
}
