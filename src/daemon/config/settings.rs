//! The settings of a daemon, read and checked in the order of its start.

use std::{path::PathBuf, time::Duration};

use plimsoll_wire::Tier;
use zeroize::Zeroizing;

use super::{
    environment::{Environment, Reader},
    error::ConfigError,
    rules, variable as v,
};
use crate::{admission::Limits, hardened::Facts, log::Format, provider::Resources};

/// The provider chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Choice {
    /// None: every run is refused.
    Disabled,
    /// JavaScript snippets inside this process.
    Wasm,
}

impl Choice {
    const KNOWN: [&str; 6] = [
        "wasm",
        "docker",
        "e2b",
        "dockercloud",
        "openshell",
        "agentsandbox",
    ];

    /// The names this build has, with commas.
    #[must_use]
    pub fn built_names() -> &'static str {
        if cfg!(feature = "wasm") {
            "wasm"
        } else {
            "none"
        }
    }

    /// The provider's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Choice::Disabled => "disabled",
            Choice::Wasm => "wasm",
        }
    }

    fn read(reader: &Reader<'_>) -> Result<Choice, ConfigError> {
        let value = reader.text(&v::SANDBOX_PROVIDER)?;
        let lower = value.to_ascii_lowercase();
        if lower.is_empty() {
            return Ok(Choice::Disabled);
        }
        match Self::KNOWN.into_iter().find(|known| *known == lower) {
            Some("wasm") if cfg!(feature = "wasm") => Ok(Choice::Wasm),
            Some(name) => Err(ConfigError::ProviderNotBuilt {
                name,
                built: Self::built_names().to_owned(),
            }),
            None => Err(ConfigError::UnknownProvider {
                value: value.to_owned(),
                known: Self::KNOWN.join(", "),
            }),
        }
    }
}

/// How callers are known.
#[derive(Clone)]
pub enum Auth {
    /// Not at all: development.
    Open,
    /// By one token.
    Token(Zeroizing<String>),
}

/// The files of the listener's TLS identity.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain.
    pub certificate: PathBuf,
    /// Private key.
    pub key: PathBuf,
}

/// The memory budget lowered how many run at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Clamp {
    /// What was asked for.
    pub asked: u32,
    /// What the budget holds.
    pub fit: u32,
}

/// Session settings; read and checked whether or not sessions are on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSettings {
    /// Open sessions; 0 is off.
    pub max: u64,
    /// Open sessions of one caller; 0 is no cap.
    pub per_caller: u64,
    /// Open sessions of one owner; 0 is no cap.
    pub per_owner: u64,
    /// Sandboxes kept ready.
    pub pool: u64,
    /// Longest life.
    pub lifetime: Duration,
    /// Idle time before a suspend; zero is never.
    pub idle: Duration,
    /// Files after a call in MiB; 0 is no bound.
    pub disk_mb: u64,
}

/// Everything a daemon is told.
#[derive(Clone)]
pub struct Settings {
    /// RPC listen address as set.
    pub address: String,
    /// Metrics listen address as set; `None` is off.
    pub metrics_address: Option<String>,
    /// How callers are known.
    pub auth: Auth,
    /// TLS identity of the listeners.
    pub tls: Option<TlsFiles>,
    /// What the production policy is checked against, when it is in force.
    pub hardened: Option<Facts>,
    /// End of standard input is a stop signal.
    pub embedded: bool,
    /// The provider.
    pub provider: Choice,
    /// The envelope of one run.
    pub resources: Resources,
    /// The weakest tier the daemon may start with.
    pub min_isolation: Option<Tier>,
    /// Admission, after the clamp.
    pub limits: Limits,
    /// The clamp, when it changed something.
    pub clamp: Option<Clamp>,
    /// Sessions.
    pub sessions: SessionSettings,
    /// Names set that belong to a provider that is not chosen.
    pub foreign: Vec<&'static str>,
}

impl Settings {
    /// Reads and checks everything, in the order of the start: what comes
    /// first there is reported first.
    ///
    /// # Errors
    /// The first setting or combination that is refused.
    pub fn read(environment: &Environment) -> Result<Settings, ConfigError> {
        let reader = Reader::new(environment);
        Self::read_with(&reader, environment)
    }

    /// The format of the log; it is needed before anything can be refused, so
    /// no value of it is an error.
    #[must_use]
    pub fn log_format(environment: &Environment) -> Format {
        rules::log_format(&Reader::new(environment))
    }

    /// As [`Settings::read`], with the names of everything that was read.
    #[cfg(test)]
    pub(super) fn read_recording(
        environment: &Environment,
    ) -> (
        Result<Settings, ConfigError>,
        std::collections::BTreeSet<&'static str>,
    ) {
        let reader = Reader::new(environment);
        let settings = Self::read_with(&reader, environment);
        let _ = rules::log_format(&reader);
        (settings, reader.names_read())
    }

    fn read_with(reader: &Reader<'_>, environment: &Environment) -> Result<Settings, ConfigError> {
        let provider = Choice::read(reader)?;
        let resources = rules::envelope(reader, provider)?;
        reader.opt_in(&v::SANDBOX_REQUIRE_PINNED_IMAGES)?;
        rules::absent_with(
            reader,
            &v::SANDBOX_GUEST_UID,
            provider,
            "does not choose a guest's user",
        )?;
        rules::absent_with(
            reader,
            &v::PLIMSOLL_GUARD_ADDR,
            provider,
            "serves no egress guard",
        )?;
        if reader.count(&v::SANDBOX_PAID_SECONDS_PER_DAY)? > 0 {
            return Err(rules::not_with(
                &v::SANDBOX_PAID_SECONDS_PER_DAY,
                provider,
                "is not billed by the second",
            ));
        }
        let min_isolation = rules::min_isolation(reader)?;
        let sessions = rules::sessions(reader)?;
        let (limits, clamp) = rules::limits(reader, resources.memory_mb, sessions.pool)?;
        if sessions.max > 0 {
            return Err(rules::not_with(
                &v::SANDBOX_MAX_SESSIONS,
                provider,
                "keeps no sessions",
            ));
        }
        if sessions.pool > 0 {
            return Err(rules::not_with(
                &v::SANDBOX_SESSION_POOL,
                provider,
                "keeps no session pool",
            ));
        }
        rules::later(
            reader,
            &v::PLIMSOLL_GRANTS_FILE,
            "unset it; every grant is refused",
        )?;
        let auth = rules::auth(reader, provider)?;
        let tls = rules::tls(reader)?;
        let metrics_address = rules::metrics(reader)?;
        let hardened = match reader.opt_in(&v::PLIMSOLL_HARDENED)? {
            true => Some(Facts::read(reader)?),
            false => None,
        };
        Ok(Settings {
            address: match reader.raw(&v::PLIMSOLL_ADDR)? {
                "" => ":8746".to_owned(),
                address => address.to_owned(),
            },
            metrics_address,
            auth,
            tls,
            hardened,
            embedded: reader.exactly_one(&v::PLIMSOLL_EMBEDDED)?,
            provider,
            resources,
            min_isolation,
            limits,
            clamp,
            sessions,
            foreign: rules::foreign(environment),
        })
    }
}
