//! One caller: identity, fingerprint, scopes, allowance.

use std::{fmt, sync::Arc};

use crate::{fault::FaultKind, token::Fingerprint};

/// A caller's stable identity: limits, sessions and the audit line are keyed by
/// it. Not empty, not `*`, no white space around it, no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CallerId(Arc<str>);

impl CallerId {
    /// Reads an identity; white space around it is taken off.
    ///
    /// # Errors
    /// [`FaultKind::EmptyId`], [`FaultKind::StarId`], [`FaultKind::ControlInId`].
    pub fn parse(text: &str) -> Result<CallerId, FaultKind> {
        match text.trim() {
            "" => Err(FaultKind::EmptyId),
            "*" => Err(FaultKind::StarId),
            id if id.chars().any(char::is_control) => Err(FaultKind::ControlInId),
            id => Ok(CallerId(id.into())),
        }
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Its text, shared.
    #[must_use]
    pub fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }
}

impl fmt::Display for CallerId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A word for what a caller may do. The daemon knows `code:run`, and `*` for
/// everything; any other word allows nothing here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Scope(Box<str>);

impl Scope {
    /// The scope of every procedure, and the one a new caller gets.
    #[must_use]
    pub fn run() -> Scope {
        Scope("code:run".into())
    }

    /// Reads a scope: not empty, without white space or control characters.
    ///
    /// # Errors
    /// [`FaultKind::BadScope`].
    pub fn parse(text: &str) -> Result<Scope, FaultKind> {
        if text.is_empty() || text.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return Err(FaultKind::BadScope);
        }
        Ok(Scope(text.into()))
    }

    /// Its text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// One caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Who it is.
    pub id: CallerId,
    /// What is kept of its token.
    pub fingerprint: Fingerprint,
    /// What it may do; no scope twice.
    pub scopes: Vec<Scope>,
    /// Seconds a UTC day on a provider billed by the second; 0 is no allowance
    /// of its own.
    pub paid_seconds_per_day: u64,
}
