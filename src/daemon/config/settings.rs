//! The settings of a daemon, read and checked in the order of its start.

use std::{path::PathBuf, sync::Arc, time::Duration};

use plimsoll_callers::Registry;
use plimsoll_wire::Tier;
use zeroize::Zeroizing;

use super::{
    auth,
    environment::{Environment, Reader},
    error::ConfigError,
    providers::Choice,
    rules, sessions, variable as v,
};
use crate::{admission::Limits, hardened::Facts, log::Format, provider::Resources};

/// How callers are known.
#[derive(Clone)]
pub enum Auth {
    /// Not at all: development.
    Open,
    /// By one token.
    Token(Zeroizing<String>),
    /// Each by a token of its own.
    Registry(Arc<Registry>),
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
    /// The provider with its own settings.
    pub provider: Choice,
    /// The envelope of one run.
    pub resources: Resources,
    /// Images must be named by digest.
    pub pinned_images: bool,
    /// The weakest tier the daemon may start with.
    pub min_isolation: Option<Tier>,
    /// Seconds a day on a provider billed by the second, whole daemon; 0 is no
    /// allowance of its own.
    pub paid_seconds_per_day: u64,
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
        let profile = provider.profile();
        let resources = rules::envelope(reader, &profile)?;
        let pinned_images = reader.opt_in(&v::SANDBOX_REQUIRE_PINNED_IMAGES)?;
        rules::guest_uid(reader, &profile)?;
        rules::guard(reader, &profile)?;
        let paid_seconds_per_day = rules::paid_seconds(reader, &profile)?;
        let min_isolation = rules::min_isolation(reader)?;
        let sessions = sessions::read(reader)?;
        let total_memory_mb = reader.count(&v::SANDBOX_TOTAL_MEMORY_MB)?;
        let host = rules::HostMemory {
            // Runs elsewhere do not use this host's memory.
            total_mb: if profile.host_memory {
                total_memory_mb
            } else {
                0
            },
            per_run_mb: resources.memory_mb,
            pool: sessions.pool.saturating_add(provider.kept_ready()),
        };
        let (limits, clamp) = rules::limits(reader, host)?;
        sessions::with_provider(&sessions, &profile)?;
        rules::later(
            reader,
            &v::PLIMSOLL_GRANTS_FILE,
            "unset it; every grant is refused",
        )?;
        let auth = auth::read(reader, &provider)?;
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
            foreign: rules::foreign(environment, &profile),
            provider,
            resources,
            pinned_images,
            min_isolation,
            paid_seconds_per_day,
            limits,
            clamp,
            sessions,
        })
    }
}
