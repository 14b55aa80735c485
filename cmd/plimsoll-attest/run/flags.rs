//! The flags of `run`, and the rules between them.

use std::{
    ffi::OsString,
    path::{Path, PathBuf},
    time::Duration,
};

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plimsoll_client::{BaseUrl, Options, Token, Trust};
use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Inputs},
    output, values,
};
use plimsoll_harness::{EmbeddedOptions, Target, embedded};
use zeroize::Zeroizing;

use super::usage;

/// Largest file of trust roots.
const MOST_CA_BYTES: u64 = 4 << 20;
/// The providers an embedded daemon can have in this build.
const PROVIDERS: [&str; 1] = ["wasm"];
/// Flags that say what a shorthand request asks.
const SHORTHAND: [&str; 4] = ["floor", "software", "grant-profile", "trace-id"];
/// Flags that go with a session alone.
const SESSION: [&str; 4] = ["lifetime", "idle", "language", "owner"];
/// Flags that go with a project alone.
const PROJECT: [&str; 4] = ["step", "artifact", "exclude", "skip-binary"];

/// How the guest's output is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Print {
    Escaped,
    Raw,
    None,
}

/// What kind of request the command line holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Request,
    Js,
    File,
    Project,
    Session,
}

/// The flags that are not about the request itself.
pub struct Form {
    pub source: Source,
    pub daemon: Option<BaseUrl>,
    pub ca_file: Option<PathBuf>,
    pub provider: String,
    pub key: Option<PathBuf>,
    pub bundle: PathBuf,
    pub shared_bundle: bool,
    pub timeout: Option<Duration>,
    pub wait: Option<Duration>,
    pub print: Print,
    pub save_artifacts: Option<PathBuf>,
    pub require_success: bool,
}

pub fn define(command: Command) -> Command {
    let path = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name(name)
            .value_parser(value_parser!(PathBuf))
            .help(help)
    };
    let text = |id: &'static str, name: &'static str, help: &'static str| {
        Arg::new(id).long(id).value_name(name).help(help)
    };
    let duration = |id: &'static str, help: &'static str| {
        Arg::new(id)
            .long(id)
            .value_name("D")
            .value_parser(values::duration)
            .help(help)
    };
    let switch = |id: &'static str, help: &'static str| {
        Arg::new(id).long(id).action(ArgAction::SetTrue).help(help)
    };
    command
        .about("Runs code in a sandbox, checks its record and signs it into a bundle")
        .arg(
            Arg::new("request")
                .value_name("REQUEST.json")
                .value_parser(value_parser!(PathBuf))
                .help("A RunRequest as proto3 JSON, sent exactly as given; - is standard input"),
        )
        .arg(text("js", "CODE", "A JavaScript snippet given as text"))
        .arg(path(
            "file",
            "FILE",
            "A JavaScript snippet from a file; - is standard input",
        ))
        .arg(path(
            "project",
            "DIR",
            "The files of a project; needs --step",
        ))
        .arg(path(
            "session",
            "CALLS.jsonl",
            "A session: one RunRequest a line, sent in order",
        ))
        .arg(
            text(
                "step",
                "CMD",
                "A shell command of the project, run by the sandbox; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text(
                "artifact",
                "PATH",
                "A file of the project to return; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(
            text(
                "exclude",
                "GLOB",
                "Paths of the project to leave out; ** crosses /; repeatable",
            )
            .action(ArgAction::Append),
        )
        .arg(switch(
            "skip-binary",
            "Leave out files of the project that are not UTF-8, and list them",
        ))
        .arg(text(
            "daemon",
            "URL",
            "The daemon [default: one started for this run]",
        ))
        .arg(path(
            "ca-file",
            "FILE",
            "The only trust roots for --daemon, as PEM",
        ))
        .arg(text(
            "provider",
            "NAME",
            "The provider of the daemon started for this run [default: wasm]",
        ))
        .arg(path(
            "key",
            "FILE",
            "The signing key [default: made on first use]",
        ))
        .arg(
            path("bundle", "FILE", "The bundle that is appended to")
                .default_value("plimsoll-runs.jsonl"),
        )
        .arg(switch(
            "shared-bundle",
            "Append although group or others can read the bundle",
        ))
        .arg(duration(
            "timeout",
            "The run's own budget; with REQUEST.json the whole wait",
        ))
        .arg(duration(
            "wait",
            "The whole wait [default: 6m, or the budget and 60s]",
        ))
        .arg(
            text("floor", "TIER", "The weakest tier the run accepts")
                .value_parser(values::words(&values::TIERS)),
        )
        .arg(text(
            "software",
            "RULE",
            "The software the run accepts: exact:ID, or approved:FILE with one ID a line",
        ))
        .arg(text(
            "grant-profile",
            "NAME",
            "A host-API capability of the daemon",
        ))
        .arg(text(
            "trace-id",
            "ID",
            "A correlation ID for the daemon's audit line",
        ))
        .arg(duration("lifetime", "How long the session may live"))
        .arg(duration("idle", "How long the session may stay unused"))
        .arg(
            text(
                "language",
                "L",
                "An interpreter the session will use; repeatable",
            )
            .action(ArgAction::Append)
            .value_parser(values::words(&["javascript", "python"])),
        )
        .arg(text(
            "owner",
            "NAME",
            "The end user the session is for; only a digest is sent",
        ))
        .arg(
            text(
                "print",
                "HOW",
                "How the guest's output is shown; raw writes its bytes unescaped",
            )
            .default_value("escaped")
            .value_parser(values::words(&["escaped", "raw", "none"])),
        )
        .arg(path(
            "save-artifacts",
            "DIR",
            "Write returned artifacts below this directory, absent or empty",
        ))
        .arg(switch(
            "require-success",
            "Exit 5 when the outcome is no success; the record is kept all the same",
        ))
        .args(output::shared_flags())
}

impl Form {
    /// Reads the flags and checks the rules between them.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn of(matches: &ArgMatches) -> Result<Form, Failure> {
        let source = source(matches)?;
        let given =
            |id: &str| matches.value_source(id) == Some(clap::parser::ValueSource::CommandLine);
        let only = |flags: &[&'static str], allowed: bool, with: &str| match flags
            .iter()
            .find(|flag| !allowed && given(flag))
        {
            Some(flag) => Err(usage(
                &format!("--{flag} goes with {with}"),
                "Leave it out, or choose the form it belongs to.",
            )),
            None => Ok(()),
        };
        only(&PROJECT, source == Source::Project, "--project")?;
        only(&SESSION, source == Source::Session, "--session")?;
        only(
            &SHORTHAND,
            source != Source::Request,
            "a shorthand; REQUEST.json is sent exactly as given",
        )?;
        only(
            &["grant-profile", "trace-id"],
            source != Source::Session,
            "a single run; each line of a session states its own",
        )?;
        only(
            &["save-artifacts"],
            source != Source::Session,
            "a single run",
        )?;
        if source == Source::Project && !given("step") {
            return Err(usage(
                "--project needs at least one --step",
                "Name the commands to run over the files, such as --step 'npm test'.",
            ));
        }
        if source == Source::Request && given("timeout") && given("wait") {
            return Err(usage(
                "--timeout and --wait are one thing with REQUEST.json",
                "Give one of them.",
            ));
        }
        if given("daemon") && given("provider") {
            return Err(usage(
                "--provider is for the daemon that run starts itself",
                "A daemon named with --daemon has its own provider. Leave out one of the two.",
            ));
        }
        if given("ca-file") && !given("daemon") {
            return Err(usage(
                "--ca-file goes with --daemon",
                "Leave it out, or name the daemon.",
            ));
        }
        let provider = one::<String>(matches, "provider").unwrap_or_else(|| "wasm".to_owned());
        if !PROVIDERS.contains(&provider.as_str()) {
            return Err(usage(
                &format!("this build has no provider {provider} to start"),
                &format!(
                    "It has {}. Other providers run in a daemon of their own: name it with \
                     --daemon.",
                    PROVIDERS.join(", ")
                ),
            ));
        }
        let daemon = match one::<String>(matches, "daemon") {
            Some(url) => Some(BaseUrl::parse(&url).map_err(|error| {
                usage(
                    &format!("--daemon: {error}"),
                    "Give an absolute URL such as https://sandbox.example or \
                     http://127.0.0.1:8746.",
                )
            })?),
            None => None,
        };
        Ok(Form {
            source,
            daemon,
            ca_file: one(matches, "ca-file"),
            provider,
            key: one(matches, "key"),
            bundle: one(matches, "bundle").unwrap_or_default(),
            shared_bundle: matches.get_flag("shared-bundle"),
            timeout: one(matches, "timeout"),
            wait: one(matches, "wait"),
            print: match matches.get_one::<String>("print").map(String::as_str) {
                Some("raw") => Print::Raw,
                Some("none") => Print::None,
                _ => Print::Escaped,
            },
            save_artifacts: one(matches, "save-artifacts"),
            require_success: matches.get_flag("require-success"),
        })
    }

    /// Where the request goes.
    ///
    /// # Errors
    /// Class `config` or `io`.
    pub fn target(&self, console: &Console) -> Result<Target, Failure> {
        let Some(base) = &self.daemon else {
            let options = EmbeddedOptions::new(&self.provider);
            if let Some(other) = embedded::other_provider(&options.environment, &self.provider) {
                console.note(&format!(
                    "SANDBOX_PROVIDER names {}, which is no choice for run; it starts {}. Use \
                     --provider or --daemon.",
                    other.to_string_lossy(),
                    self.provider
                ));
            }
            return Ok(Target::Embedded(options));
        };
        let mut options = Options::new(base.clone());
        options.token = caller_token()?;
        if let Some(file) = &self.ca_file {
            let pem = Inputs::new(console).read(file, Dash::Refused, MOST_CA_BYTES)?;
            options.trust = Trust::Pem(pem);
        }
        Ok(Target::Remote(Box::new(options)))
    }
}

/// One value of a flag, cloned out of its matches.
pub fn one<T: Clone + Send + Sync + 'static>(matches: &ArgMatches, id: &str) -> Option<T> {
    matches.get_one::<T>(id).cloned()
}

/// Every value of a repeatable flag.
pub fn all(matches: &ArgMatches, id: &str) -> Vec<String> {
    matches
        .get_many::<String>(id)
        .unwrap_or_default()
        .cloned()
        .collect()
}

fn source(matches: &ArgMatches) -> Result<Source, Failure> {
    let forms = [
        ("request", Source::Request),
        ("js", Source::Js),
        ("file", Source::File),
        ("project", Source::Project),
        ("session", Source::Session),
    ];
    let mut given = forms.iter().filter(|(id, _)| matches.contains_id(id));
    match (given.next(), given.next()) {
        (Some((_, source)), None) => Ok(*source),
        (None, _) => Err(usage(
            "nothing to run was given",
            "Give REQUEST.json, or one of --js, --file, --project, --session.",
        )),
        (Some(_), Some(_)) => Err(usage(
            "more than one thing to run was given",
            "Give exactly one of REQUEST.json, --js, --file, --project, --session.",
        )),
    }
}

/// The bearer token for a remote daemon; never a flag, so that it is in no
/// process list.
fn caller_token() -> Result<Option<Token>, Failure> {
    let Some(value) = std::env::var_os("PLIMSOLL_CALLER_TOKEN").filter(|v| !v.is_empty()) else {
        return Ok(None);
    };
    let refused = || {
        Failure::new(
            Class::Config,
            "PLIMSOLL_CALLER_TOKEN is no token: it is not visible ASCII, or too long",
            "Set it to the token itself, without spaces or line breaks.",
        )
    };
    let text = Zeroizing::new(OsString::into_string(value).map_err(|_| refused())?);
    Token::new(&text).map(Some).map_err(|_| refused())
}

/// A path as messages name it.
pub fn name(path: &Path) -> String {
    path.display().to_string()
}
