//! Where code is sent: a daemon someone runs, or one started for this command.

use std::{ffi::OsString, path::PathBuf};

use clap::{Arg, ArgMatches, value_parser};
use plimsoll_client::{BaseUrl, Options, Token, Trust};
use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Inputs},
    values,
};
use plimsoll_harness::{EmbeddedOptions, Target, embedded};
use zeroize::Zeroizing;

/// Largest file of trust roots.
const MOST_CA_BYTES: u64 = 4 << 20;
/// The providers an embedded daemon can have in this build.
const PROVIDERS: &[&str] = &[
    "wasm",
    #[cfg(feature = "docker")]
    "docker",
];

/// What `--daemon`, `--ca-file` and `--provider` say.
pub struct Destination {
    command: &'static str,
    daemon: Option<BaseUrl>,
    ca_file: Option<PathBuf>,
    provider: String,
}

/// The flags of every command that sends code.
pub fn flags() -> [Arg; 3] {
    [
        Arg::new("daemon")
            .long("daemon")
            .value_name("URL")
            .help("The daemon [default: one started for this run]"),
        Arg::new("ca-file")
            .long("ca-file")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .help("The only trust roots for --daemon, as PEM"),
        Arg::new("provider")
            .long("provider")
            .value_name("NAME")
            .value_parser(values::offered(PROVIDERS))
            .help("The provider of the daemon started for this run [default: wasm]"),
    ]
}

impl Destination {
    /// Reads the flags of `command` and checks the rules between them.
    ///
    /// # Errors
    /// Class `usage`.
    pub fn read(command: &'static str, matches: &ArgMatches) -> Result<Self, Failure> {
        let usage = |fact: &str, advice: &str| {
            let words: Vec<&str> = command.split(' ').collect();
            plimsoll_console::args::rule(&crate::cli::definition(), &words, fact, advice)
        };
        let text = |id: &str| matches.get_one::<String>(id).cloned();
        let ca_file = matches.get_one::<PathBuf>("ca-file").cloned();
        let url = text("daemon");
        let provider = text("provider");
        if url.is_some() && provider.is_some() {
            return Err(usage(
                &format!("--provider is for the daemon that {command} starts itself"),
                "A daemon named with --daemon has its own provider. Leave out one of the two.",
            ));
        }
        if ca_file.is_some() && url.is_none() {
            return Err(usage(
                "--ca-file goes with --daemon",
                "Leave it out, or name the daemon.",
            ));
        }
        let provider = provider.unwrap_or_else(|| "wasm".to_owned());
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
        let daemon = match url {
            Some(url) => Some(BaseUrl::parse(&url).map_err(|error| {
                usage(
                    &format!("--daemon: {error}"),
                    "Give an absolute URL such as https://sandbox.example or \
                     http://127.0.0.1:8746.",
                )
            })?),
            None => None,
        };
        Ok(Destination {
            command,
            daemon,
            ca_file,
            provider,
        })
    }

    /// The target, with its token and trust roots read; nothing is contacted.
    ///
    /// # Errors
    /// Class `config` or `io`.
    pub fn target(&self, console: &Console) -> Result<Target, Failure> {
        let Some(base) = &self.daemon else {
            let options = EmbeddedOptions::new(&self.provider);
            if let Some(other) = embedded::other_provider(&options.environment, &self.provider) {
                console.note(&format!(
                    "SANDBOX_PROVIDER names {}, which is no choice for {}; it starts {}. Use \
                     --provider or --daemon.",
                    other.to_string_lossy(),
                    self.command,
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
