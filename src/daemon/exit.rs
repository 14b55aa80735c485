//! How a daemon ends, and why one did not start.

use std::{fmt, io};

use plimsoll_wire::Tier;

use crate::{
    config::ConfigError,
    hardened::NotHardened,
    provider::{ProviderError, TierNow, tier_name},
    service::log_text,
    transport::tls,
};

/// Exit status of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// A clean stop, or help.
    Ok = 0,
    /// A setting or an argument is refused; restarting cannot help.
    Configuration = 2,
    /// The settings are good and the environment is not.
    Environment = 4,
    /// A fault of this program.
    Internal = 70,
}

impl Exit {
    /// All of them, in ascending order.
    pub const ALL: [Exit; 4] = [
        Exit::Ok,
        Exit::Configuration,
        Exit::Environment,
        Exit::Internal,
    ];

    /// When a daemon ends with it.
    #[must_use]
    pub const fn meaning(self) -> &'static str {
        match self {
            Exit::Ok => "help, or a clean stop after a signal",
            Exit::Configuration => {
                "an argument, a setting, a file or a combination of settings is refused: restarting cannot help"
            }
            Exit::Environment => {
                "settings are good and the environment is not: an address, the provider, its tier; or a listener \
                 failed while serving, after the drain"
            }
            Exit::Internal => "a fault of this program",
        }
    }

    /// The number.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }
}

/// Why a daemon did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting is refused.
    #[error("{0}")]
    Settings(#[from] ConfigError),
    /// The TLS identity cannot be used.
    #[error("PLIMSOLL_TLS_CERT, PLIMSOLL_TLS_KEY: {0}")]
    Tls(#[from] tls::TlsError),
    /// The production policy is not met.
    #[error("{0}")]
    NotHardened(#[from] NotHardened),
    /// The address cannot be bound.
    #[error("{variable}={address:?} cannot be bound: {error}")]
    Bind {
        /// The listener's variable.
        variable: &'static str,
        /// The address as set.
        address: String,
        /// The system's words.
        #[source]
        error: io::Error,
    },
    /// Preflight or smoke test failed.
    #[error("the provider {provider} is not ready: {0}", log_text(.error))]
    NotReady {
        /// The provider.
        provider: &'static str,
        /// Its error; shown whole, since only the log sees it.
        error: ProviderError,
    },
    /// The provider cannot work with the value of one of its settings.
    #[error("{variable}: the provider {provider} cannot start with it: {0}", log_text(.error))]
    Unusable {
        /// The setting.
        variable: &'static str,
        /// The provider.
        provider: &'static str,
        /// Its error; shown whole, since only the log sees it.
        error: ProviderError,
    },
    /// The proven tier is below the operator's floor.
    #[error("SANDBOX_MIN_ISOLATION={floor}: the provider {provider} proved {}", tier_name(*.proven))]
    Isolation {
        /// The provider.
        provider: &'static str,
        /// The operator's floor.
        floor: Tier,
        /// What was proven.
        proven: TierNow,
    },
    /// Signals cannot be handled.
    #[error("signal handlers cannot be installed: {0}")]
    Signals(#[source] io::Error),
}

impl StartError {
    /// The exit status of this failure.
    #[must_use]
    pub fn exit(&self) -> Exit {
        match self {
            StartError::Settings(_) | StartError::Tls(_) | StartError::Unusable { .. } => {
                Exit::Configuration
            }
            StartError::NotHardened(policy) if !policy.is_isolation_alone() => Exit::Configuration,
            StartError::NotHardened(_)
            | StartError::Bind { .. }
            | StartError::NotReady { .. }
            | StartError::Isolation { .. }
            | StartError::Signals(_) => Exit::Environment,
        }
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.code())
    }
}
