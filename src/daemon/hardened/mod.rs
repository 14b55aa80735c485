//! The production policy of `PLIMSOLL_HARDENED`: what must hold for a daemon
//! that runs code of people its operator does not know.
//!
//! It is checked twice. The early pass comes before anything is bound, billed
//! or started and judges everything but isolation; the full pass comes when the
//! tier is proven. Every violation is reported, so that an operator mends them
//! in one go.

mod facts;
pub(crate) mod rules;

use crate::{
    admission::Limits,
    provider::{TierNow, tier_name},
};

pub use facts::Facts;

/// What the policy judges beside the [`Facts`].
#[derive(Clone, Debug)]
pub(crate) struct Situation<'a> {
    /// The provider's name.
    pub(crate) provider: &'a str,
    /// Whether it is billed by the second.
    pub(crate) metered: bool,
    /// Whether callers come from a registry file.
    pub(crate) registry: bool,
    /// Callers of the registry without a daily allowance.
    pub(crate) without_allowance: Vec<String>,
    /// Whether the listeners speak TLS.
    pub(crate) tls: bool,
    /// RPC listen address as set.
    pub(crate) address: &'a str,
    /// Metrics listen address as set; `None` is off.
    pub(crate) metrics: Option<&'a str>,
    /// Egress guard listen address as set; `None` when there is none.
    pub(crate) guard: Option<&'a str>,
    /// Admission, after the memory clamp.
    pub(crate) limits: Limits,
    /// Open sessions allowed; 0 is off.
    pub(crate) sessions: u64,
    /// The same for one caller; 0 is no cap.
    pub(crate) sessions_per_caller: u64,
}

/// One rule that is not met: a fact, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Violation {
    /// Rule 1.
    #[error("isolation is {}, not kernel or vm: use a provider that proves one of them", tier_name(*.proven))]
    Isolation {
        /// What start-up proved.
        proven: TierNow,
    },
    /// Rule 2.
    #[error("PLIMSOLL_CLIENTS_FILE is not in force: give each caller a token of its own")]
    NoRegistry,
    /// Rule 3.
    #[error("PLIMSOLL_INSECURE is set: unset it")]
    Insecure,
    /// Rules 4 to 6.
    #[error(
        "{variable} is not a loopback address and there is no TLS: set PLIMSOLL_TLS_CERT and PLIMSOLL_TLS_KEY, or listen on 127.0.0.1"
    )]
    ClearText {
        /// The listener's variable.
        variable: &'static str,
    },
    /// Rules 7, 8 and 10: images not bound to a digest.
    #[error("{variable} is off: images must be named by digest")]
    NotPinned {
        /// What would bind them.
        variable: &'static str,
    },
    /// Rule 7.
    #[error("SANDBOX_DOCKER_SECCOMP is unconfined: use the default profile or one of your own")]
    Unconfined,
    /// Rule 8.
    #[error("SANDBOX_DOCKERCLOUD_API is not set to connect: set it, the default does not count")]
    NotConnect,
    /// Rule 9.
    #[error("E2B_TEMPLATE is not set: name the template that was reviewed")]
    NoTemplate,
    /// Rule 12.
    #[error("{variable} is not set above 0: bound what one run can take")]
    NoBound {
        /// The dimension without a bound.
        variable: &'static str,
    },
    /// Rule 13.
    #[error("SANDBOX_RATE_PER_MIN is 0: bound how often a caller starts runs")]
    NoRate,
    /// Rule 13.
    #[error("SANDBOX_RATE_BURST is above SANDBOX_RATE_PER_MIN: lower it")]
    Burst,
    /// Rule 14.
    #[error("SANDBOX_PER_KEY_CONCURRENT is 0: bound how much one caller runs at once")]
    NoCallerCap,
    /// Rule 14.
    #[error(
        "SANDBOX_PER_KEY_CONCURRENT is not below the {max} runs the daemon has room for: one caller could take them all"
    )]
    CallerTakesAll {
        /// Runs at once, after the memory clamp.
        max: u32,
    },
    /// Rule 15.
    #[error("SANDBOX_MAX_SESSIONS_PER_CALLER is 0 with sessions on: bound it")]
    NoSessionCap,
    /// Rule 16.
    #[error("paid_seconds_per_day is missing for {}: every caller of a billed provider needs one", .callers.join(", "))]
    NoAllowance {
        /// The callers without one.
        callers: Vec<String>,
    },
}

/// The policy is not met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotHardened {
    violations: Vec<Violation>,
}

impl NotHardened {
    /// Whether only the proven tier is at fault: the settings are good and the
    /// environment is not.
    #[must_use]
    pub fn is_isolation_alone(&self) -> bool {
        let isolation = |violation: &Violation| matches!(violation, Violation::Isolation { .. });
        self.violations.iter().all(isolation)
    }
}

impl std::fmt::Display for NotHardened {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PLIMSOLL_HARDENED: the production policy is not met")?;
        for (number, violation) in self.violations.iter().enumerate() {
            write!(
                f,
                "{} ({}) {violation}",
                if number == 0 { ":" } else { ";" },
                number + 1
            )?;
        }
        Ok(())
    }
}

impl std::error::Error for NotHardened {}

/// The early pass: every rule but isolation.
pub(crate) fn check_settings(facts: &Facts, situation: &Situation<'_>) -> Result<(), NotHardened> {
    outcome(rules::settings(facts, situation, None))
}

/// The full pass, with the tier that start-up proved.
pub(crate) fn check_all(
    facts: &Facts,
    situation: &Situation<'_>,
    proven: TierNow,
) -> Result<(), NotHardened> {
    let mut violations = Vec::new();
    violations.extend(rules::isolation(proven));
    violations.extend(rules::settings(facts, situation, Some(proven)));
    outcome(violations)
}

fn outcome(violations: Vec<Violation>) -> Result<(), NotHardened> {
    if violations.is_empty() {
        Ok(())
    } else {
        Err(NotHardened { violations })
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
