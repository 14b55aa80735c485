//! What a run sends: one request, or the calls of a session.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use clap::ArgMatches;
use plimsoll_attestation::SigningKey;
use plimsoll_client::{CancelToken, OpenSession};
use plimsoll_console::{
    Class, Console, ExitCode, Failure,
    files::{Dash, Inputs, plain_words},
};
use plimsoll_harness::{
    Ledger, Prepared, RequestError, SessionPlan, Shorthand, Target,
    files::ReadError,
    project::{ProjectError, Selection, What},
    request::{self, MAX_REQUEST_BYTES},
    run::Phase,
    session::{self, CallsError},
    software::{self, SoftwareError},
};
use plimsoll_wire::{Rule, Tier, json::JsonError, proto::RunRequest};

use super::{
    failure::plain,
    flags::{Form, Source, all, name, one},
    usage,
};

/// Largest file of calls.
const MOST_CALLS_BYTES: u64 = 256 << 20;
/// The end of every message about a request that was not sent.
const NOTHING_RAN: &str = "; nothing was run";

/// What is sent.
pub enum Input {
    Single(Plan),
    Session(Calls),
}

/// A single run.
pub struct Plan {
    pub request: RunRequest,
    pub wait: Duration,
}

/// A session.
pub struct Calls {
    open: OpenSession,
    calls: Vec<RunRequest>,
    budget: Option<Duration>,
    wait: Duration,
}

impl Calls {
    /// The plan, with what it runs on.
    pub fn with<'a>(
        self,
        target: Target,
        key: &'a SigningKey,
        ledger: &'a Ledger,
        cancel: CancelToken,
        on_phase: &'a (dyn Fn(Phase) + Sync),
    ) -> SessionPlan<'a> {
        SessionPlan {
            target,
            key,
            ledger,
            open: self.open,
            calls: self.calls,
            budget: self.budget,
            wait: self.wait,
            cancel: Some(cancel),
            on_phase,
        }
    }
}

/// Flags whose values have a form of their own, which is judged with the flags.
pub struct Rules {
    software: Rule,
    selection: Selection,
}

impl Rules {
    /// Reads `--software`, `--exclude` and `--skip-binary`.
    ///
    /// # Errors
    /// Class `usage`, `io` or `request`. Nothing was run.
    pub fn of(matches: &ArgMatches) -> Result<Rules, Failure> {
        let software = match one::<String>(matches, "software") {
            Some(text) => software::parse(&text).map_err(|error| no_rule(&error))?,
            None => Rule::default(),
        };
        let exclude = all(matches, "exclude");
        let selection =
            Selection::new(&exclude, matches.get_flag("skip-binary")).map_err(|error| {
                usage(
                    &format!("--exclude: {error}"),
                    "Give a glob pattern such as 'node_modules/**' or '*.png'.",
                )
            })?;
        Ok(Rules {
            software,
            selection,
        })
    }
}

/// Reads and checks everything that will be sent.
///
/// # Errors
/// Class `request` (exit 1), or `io` and `usage` (exit 2). Nothing was run.
pub fn read(
    console: &Console,
    form: &Form,
    rules: Rules,
    matches: &ArgMatches,
) -> Result<Input, Failure> {
    let inputs = Inputs::new(console);
    if form.source == Source::Request {
        let file: PathBuf = one(matches, "request").unwrap_or_default();
        let text = inputs.read(&file, Dash::Allowed, MAX_REQUEST_BYTES as u64)?;
        let prepared = request::from_json(&text).map_err(|error| refused(&error, Some(&file)))?;
        let wait = form
            .timeout
            .or(form.wait)
            .unwrap_or_else(|| request::default_wait(None));
        return Ok(Input::Single(Plan {
            request: prepared.request,
            wait,
        }));
    }
    let floor = one::<String>(matches, "floor").and_then(|tier| Tier::parse(&tier));
    let wait = form
        .wait
        .unwrap_or_else(|| request::default_wait(form.timeout));
    if form.source == Source::Session {
        return session_calls(&inputs, form, matches, floor, rules.software, wait);
    }
    let source = source(&inputs, form, rules.selection, matches)?;
    let shorthand = Shorthand {
        source,
        floor,
        software: rules.software,
        grant_profile: one(matches, "grant-profile").unwrap_or_default(),
        trace_id: one(matches, "trace-id").unwrap_or_default(),
        budget: form.timeout,
    };
    let folder: Option<PathBuf> = one(matches, "project");
    let prepared = shorthand
        .prepare()
        .map_err(|error| refused(&error, folder.as_deref()))?;
    tell_left_out(console, &prepared);
    Ok(Input::Single(Plan {
        request: prepared.request,
        wait,
    }))
}

fn source(
    inputs: &Inputs<'_>,
    form: &Form,
    selection: Selection,
    matches: &ArgMatches,
) -> Result<request::Source, Failure> {
    Ok(match form.source {
        Source::File => {
            let file: PathBuf = one(matches, "file").unwrap_or_default();
            // Read further than code may be long: how long it may be is the request's rule.
            let limit = MAX_REQUEST_BYTES as u64;
            request::Source::File(inputs.read(&file, Dash::Allowed, limit)?)
        }
        Source::Project => request::Source::Project {
            folder: one(matches, "project").unwrap_or_default(),
            selection,
            steps: all(matches, "step"),
            artifacts: all(matches, "artifact"),
        },
        _ => request::Source::Code(one(matches, "js").unwrap_or_default()),
    })
}

fn session_calls(
    inputs: &Inputs<'_>,
    form: &Form,
    matches: &ArgMatches,
    floor: Option<Tier>,
    rule: Rule,
    wait: Duration,
) -> Result<Input, Failure> {
    let file: PathBuf = one(matches, "session").unwrap_or_default();
    let text = inputs.read(&file, Dash::Allowed, MOST_CALLS_BYTES)?;
    let open = OpenSession {
        floor,
        rule,
        lifetime: one(matches, "lifetime"),
        idle: one(matches, "idle"),
        languages: all(matches, "language"),
        owner: one(matches, "owner"),
        ..OpenSession::default()
    };
    let calls = session::parse_calls(&text, &open).map_err(|error| {
        let failure = Failure::new(
            Class::Request,
            format!("{error}{NOTHING_RAN}"),
            "Each line is one RunRequest with protocol 3 and a javascript, project or cell payload.",
        )
        .file(&file);
        match error {
            CallsError::Json {
                line,
                error: JsonError::Unknown { path } | JsonError::Message { path, .. },
            } if !path.is_empty() => failure.line(line as u64).member(path),
            CallsError::Json { line, .. } | CallsError::Long { line } => failure.line(line as u64),
            CallsError::Refused { line, refusal } => {
                let failure = failure.line(line as u64);
                if refusal.member.is_empty() { failure } else { failure.member(refusal.member) }
            }
            CallsError::Empty | CallsError::Many => failure,
        }
    })?;
    Ok(Input::Session(Calls {
        open,
        calls,
        budget: form.timeout,
        wait,
    }))
}

fn no_rule(error: &SoftwareError) -> Failure {
    let form = "Give exact:ID, or approved:FILE with one identity a line.";
    let of = |class, fact: String| Failure::new(class, format!("{fact}{NOTHING_RAN}"), form);
    match error {
        SoftwareError::File { path, error } => {
            let reason = match error {
                ReadError::Io(error) => plain_words(error),
                other => other.to_string(),
            };
            let fact = format!("the file of identities cannot be read: {reason}");
            of(Class::Io, fact).file(path)
        }
        SoftwareError::Form => usage(&format!("--software: {error}"), form),
        SoftwareError::NotUtf8 { path } => of(Class::Request, error.to_string()).file(path),
        SoftwareError::Rule(refusal) => {
            let failure = of(Class::Request, format!("--software: {refusal}"));
            if refusal.member.is_empty() {
                failure
            } else {
                failure.member(refusal.member.clone())
            }
        }
    }
}

fn refused(error: &RequestError, place: Option<&Path>) -> Failure {
    let advice = match error {
        RequestError::Json(JsonError::Unknown { .. }) => {
            "Remove the member or correct its name; a misspelt one would be ignored by a daemon."
                .to_owned()
        }
        RequestError::Json(_) => "Give one RunRequest as proto3 JSON.".to_owned(),
        RequestError::Project(ProjectError::Large { largest, .. }) => format!(
            "Leave files out with --exclude. The largest: {}.",
            largest
                .iter()
                .map(|file| format!("{} ({} bytes)", name(&file.path), file.bytes))
                .collect::<Vec<_>>()
                .join(", ")
        ),
        RequestError::Project(ProjectError::Binary { .. }) => {
            "Leave it out with --exclude, or all such files with --skip-binary.".to_owned()
        }
        RequestError::Project(ProjectError::Path { .. }) => {
            "Rename it, or leave it out with --exclude: a path is relative, UTF-8 and has no \
             backslash or control character."
                .to_owned()
        }
        RequestError::Project(_) => "Name a directory that can be read with --project.".to_owned(),
        _ => "Correct the request and run it again.".to_owned(),
    };
    let class = if error.is_io() {
        Class::Io
    } else {
        Class::Request
    };
    let fact = plain(&error.to_string());
    let mut failure = Failure::new(class, format!("{fact}{NOTHING_RAN}"), advice);
    let at = match error {
        RequestError::Project(
            ProjectError::Binary { path }
            | ProjectError::Deep { path }
            | ProjectError::Io { path, .. }
            | ProjectError::Path { path, .. },
        ) => place.map(|folder| folder.join(path)),
        _ => place.map(Path::to_owned),
    };
    if let Some(at) = at {
        failure = failure.file(at);
    }
    if !error.member().is_empty() {
        failure = failure.member(error.member());
    }
    match error {
        RequestError::Json(JsonError::Text(at)) => failure.offset(at.offset as u64),
        RequestError::Json(JsonError::Message { line, .. }) => failure.line(*line as u64),
        _ if error.is_io() => failure.exit(ExitCode::Usage),
        _ => failure,
    }
}

fn tell_left_out(console: &Console, prepared: &Prepared) {
    for left in &prepared.left_out {
        let what = match left.what {
            What::Binary => "a file that is not UTF-8",
            What::Device => "a device",
            What::Fifo => "a FIFO",
            What::Link => "a symbolic link",
            What::Socket => "a socket",
        };
        console.warning(&format!("left out {}: {what}", name(&left.path)));
    }
}
