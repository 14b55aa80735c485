//! `replay`: recorded requests run again, and their results compared.

mod shown;

use std::{io::BufReader, path::PathBuf, time::Duration};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_attestation::{
    PublicKey,
    bundle::{SeenLine, Visitor},
};
use plimsoll_client::CancelToken;
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, Ran, Stream, args,
    files::{Dash, Input, Inputs},
    help::Sections,
    output::{self, Stop},
    progress::{Measure, Progress},
    signals::Interrupts,
    values,
};
use plimsoll_harness::{
    Target,
    replay::{self, Halt, ReplayPlan, SelectError, Selection},
    request,
};

use crate::{
    cli::{self, Entry},
    keys, refusal,
    run::{self, Facts, failure},
    target::{self, Destination},
};
use shown::Results;

pub const ENTRY: Entry = Entry {
    name: "replay",
    stream: Stream::Verdict,
    define,
    sections: Sections {
        exit_codes: &[
            (ExitCode::Ok, "every result recorded was reproduced"),
            (
                ExitCode::Refused,
                "the bundle is refused, or a line is no call; nothing was sent",
            ),
            (
                ExitCode::Usage,
                "a flag, a key or a file cannot be used; nothing was sent",
            ),
            (
                ExitCode::Unrecorded,
                "a call may have run and gave no checked answer",
            ),
            (
                ExitCode::Unavailable,
                "a call was refused before it ran, or no daemon could be reached or started",
            ),
            (
                ExitCode::Negative,
                "a result differs, or no call was recorded with an answer",
            ),
        ],
        environment: &[
            (
                "PLIMSOLL_CALLER_TOKEN",
                "bearer token for the daemon named with --daemon",
            ),
            (
                "XDG_CONFIG_HOME, HOME",
                "where the default key lies, for --own",
            ),
        ],
        examples: &[
            (
                "replay --own plimsoll-runs.jsonl",
                "your own runs again, in an embedded daemon",
            ),
            (
                "replay --pub ci.pub --daemon https://sandbox.example plimsoll-runs.jsonl",
                "someone else's runs, on your own daemon: does it give what they recorded?",
            ),
            (
                "replay --pub ci.pub --line 7 --json plimsoll-runs.jsonl",
                "one call for a script, after the calls of its session before it",
            ),
        ],
    },
    run,
};

fn define(command: Command) -> Command {
    let wait = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("D")
            .value_parser(values::duration)
            .help(help)
    };
    command
        .about("Runs the calls of a bundle again and compares the results")
        .long_about(
            "Runs the calls of a bundle again and compares each result with the signed one. \
             Nothing is sent unless the whole bundle verifies. Single runs are sent exactly as \
             stored; each recorded session gets one fresh session. The code runs again, with \
             whatever it does. Replays are not signed.",
        )
        .args(keys::verifying_flag())
        .args(target::flags())
        .arg(wait("wait", "The longest wait for one call [default: 6m]"))
        .arg(wait("timeout", "The same as --wait"))
        .arg(
            Arg::new("line")
                .long("line")
                .value_name("N")
                .action(ArgAction::Append)
                .value_parser(values::number(1..=i64::MAX))
                .help("Only this call, after those of its session before it; repeatable"),
        )
        .arg(
            Arg::new("bundle")
                .value_name("BUNDLE")
                .required(true)
                .value_parser(value_parser!(PathBuf))
                .help("The bundle"),
        )
        .args(output::shared_flags())
}

fn usage(fact: &str, advice: &str) -> Failure {
    args::rule(&cli::definition(), &["replay"], fact, advice)
}

/// What a command line asks for.
struct Form {
    destination: Destination,
    wait: Duration,
    lines: Vec<u64>,
    file: PathBuf,
}

impl Form {
    fn read(matches: &ArgMatches) -> Result<Self, Failure> {
        let duration = |id: &str| matches.get_one::<Duration>(id).copied();
        let wait = match (duration("wait"), duration("timeout")) {
            (Some(_), Some(_)) => {
                return Err(usage(
                    "--timeout and --wait are one thing",
                    "Give one of them.",
                ));
            }
            (Some(wait), None) | (None, Some(wait)) => wait,
            (None, None) => request::default_wait(None),
        };
        if wait.is_zero() {
            return Err(usage(
                "no call can answer within a wait of 0",
                "Give a longer one, or leave it out.",
            ));
        }
        Ok(Form {
            destination: Destination::read("replay", matches)?,
            wait,
            lines: matches
                .get_many::<i64>("line")
                .unwrap_or_default()
                .map(|line| line.unsigned_abs())
                .collect(),
            file: matches
                .get_one::<PathBuf>("bundle")
                .cloned()
                .unwrap_or_default(),
        })
    }
}

fn run(console: &Console, matches: &ArgMatches) -> ExitCode {
    let interrupts = match Interrupts::install() {
        Ok(interrupts) => interrupts,
        Err(error) => {
            let fact = format!("signals cannot be handled: {error}");
            return console.conclude(Err(Stop::Failed(failure::environment(&fact))));
        }
    };
    let code = match prepared(console, matches) {
        Ok(prepared) => replayed(console, prepared, &interrupts),
        Err(failure) => {
            let failure = failure.ran(Ran::No);
            console.conclude(Err(Stop::Failed(failure)))
        }
    };
    interrupts.end(code)
}

struct Prepared {
    form: Form,
    input: Input,
    selection: Selection,
    target: Target,
    runtime: tokio::runtime::Runtime,
}

/// Everything up to the first byte that leaves: flags, keys, the bundle whole.
fn prepared(console: &Console, matches: &ArgMatches) -> Result<Prepared, Failure> {
    let form = Form::read(matches)?;
    let keys = keys::verifying(console, matches)?;
    let input = Inputs::new(console).open(&form.file, Dash::Refused)?;
    let selection = {
        let mut watcher = Watcher(console.progress(Measure::Bytes(input.size())));
        // Only standard input is no file, and it was refused.
        let file = input.file().ok_or_else(|| no_file(&form))?;
        let source = BufReader::with_capacity(1 << 16, file);
        replay::select(source, &keys, &form.lines, &mut watcher)
            .map_err(|error| refused(&error, &form, &keys))?
    };
    let target = form.destination.target(console)?;
    let runtime =
        crate::runtime::start().map_err(|error| failure::environment(&error.to_string()))?;
    Ok(Prepared {
        form,
        input,
        selection,
        target,
        runtime,
    })
}

fn replayed(console: &Console, prepared: Prepared, interrupts: &Interrupts) -> ExitCode {
    let Prepared {
        form,
        input,
        selection,
        target,
        runtime,
    } = prepared;
    let cancel = CancelToken::new();
    let token = cancel.clone();
    interrupts.on_first(move |_| token.cancel());
    let embedded = matches!(target, Target::Embedded(_));
    let progress = console.progress(Measure::Phase);
    let on_phase = |phase| run::show_phase(&progress, phase);
    let plan = ReplayPlan {
        target,
        wait: form.wait,
        cancel: Some(cancel),
        on_phase: &on_phase,
    };
    let mut results = Results::new(&form.file, embedded);
    let Some(mut source) = input.file() else {
        return console.conclude(Err(Stop::Failed(no_file(&form))));
    };
    let mut on_call = |call| {
        for line in results.take(call) {
            let _ = console.print(&line);
        }
        let _ = console.flush();
    };
    let work = replay::replay(plan, &selection, &mut source, &mut on_call);
    let report = runtime.block_on(Box::pin(work));
    drop(progress);
    run::warn_of_killed(console, report.embedded.as_ref());
    for (session, failure) in &report.closes {
        console.warning(&shown::close_warning(session, failure));
    }
    if let Some(halt) = &report.halt {
        results.halted(halted(halt, &form, &selection, embedded));
    }
    if results.any() {
        let _ = console.print(&results.summary());
    }
    let (code, failure) = results.verdict();
    let mut members = JsonObject::new().with("file", &form.file.to_string_lossy());
    results.members(&mut members);
    match &failure {
        Some(failure) => console.finish(code, Errors::One(failure), members),
        None => console.finish(code, Errors::None, members),
    }
}

fn no_file(form: &Form) -> Failure {
    Failure::new(
        Class::Usage,
        "the bundle is no file",
        "Name a file: it is read twice.",
    )
    .file(&form.file)
}

fn refused(error: &SelectError, form: &Form, keys: &[PublicKey]) -> Failure {
    match error {
        SelectError::Evidence(fault) => refusal::of_calls(
            &form.file,
            fault,
            keys,
            "There is nothing to replay. Name the bundle that holds the calls.",
        ),
        SelectError::NoLine { line, lines } => Failure::new(
            Class::NoLine,
            error.to_string(),
            "Name a line the file has.",
        )
        .reason("no_line")
        .file(&form.file)
        .line(*line)
        .expected(line)
        .found(lines),
        SelectError::NotACall { line, reason } => Failure::new(
            Class::NotACall,
            reason.text(),
            "Only calls are replayed. inspect shows which lines are calls.",
        )
        .reason(reason.word())
        .file(&form.file)
        .line(*line),
    }
}

fn halted(halt: &Halt, form: &Form, selection: &Selection, embedded: bool) -> Failure {
    match halt {
        Halt::Before(failed) => failure::of_run(
            failed,
            &Facts {
                bundle: form.file.display().to_string(),
                anchor: None,
                key_id: selection.report().key_id.clone(),
                key_created: false,
                embedded,
            },
            None,
        ),
        Halt::Changed { line } => Failure::new(
            Class::Line,
            "the line is no longer what was verified; it was not sent, nor any after it",
            "The file was changed meanwhile. Replay a copy that nobody writes to.",
        )
        .reason("replaced")
        .file(&form.file)
        .line(*line),
        Halt::Read { line, error } => Failure::new(
            Class::Io,
            format!(
                "the bundle cannot be read any further: {}; the line was not sent, nor any after it",
                plimsoll_console::files::plain_words(error)
            ),
            "Check the file and the disk it is on.",
        )
        .file(&form.file)
        .line(*line),
    }
}

/// Shows how far the verification has come.
struct Watcher(Progress);

impl Visitor for Watcher {
    fn line(&mut self, line: &SeenLine) {
        self.0.advance(line.length + 1);
    }
}
