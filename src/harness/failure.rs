//! How a run fails: what class it is, and whether anything ran.

use std::{error::Error, fmt};

use plimsoll_attestation::{
    self as attestation, Fault,
    bundle::{AppendError, AppendFault, Appended},
};
use plimsoll_client::{CallFailure, Checked, ClientError, Ran, Stage};
use plimsoll_wire::Reason;

use crate::{artifacts::SaveError, embedded::StartError};

/// The stable class of a failure. Whoever shows it maps it to an exit code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Class {
    /// The anchor kept outside the bundle does not allow the run.
    Anchor,
    /// The bundle must not be appended to.
    Bundle,
    /// A setting cannot be used.
    Config,
    /// The embedded daemon could not start.
    Environment,
    /// A file or folder could not be used.
    Io,
    /// An error came without a mark, or no answer: it may have run.
    MayHaveRun,
    /// The daemon refused before anything ran.
    NotDispatched,
    /// It ran and its record, or a session's close, could not be kept.
    NotKept,
    /// The request is not valid.
    Request,
    /// An answer came that does not check.
    Unchecked,
    /// Nothing could be sent.
    Unreachable,
}

impl Class {
    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Class::Anchor => "anchor",
            Class::Bundle => "bundle",
            Class::Config => "config",
            Class::Environment => "environment",
            Class::Io => "io",
            Class::MayHaveRun => "may_have_run",
            Class::NotDispatched => "not_dispatched",
            Class::NotKept => "not_kept",
            Class::Request => "request",
            Class::Unchecked => "unchecked",
            Class::Unreachable => "unreachable",
        }
    }
}

/// A run that did not end in a kept record.
#[derive(Debug)]
pub enum RunFailure {
    /// The folder for artifacts cannot be used. Nothing was run.
    Artifacts(SaveError),
    /// The bundle cannot be appended to. Nothing was run.
    Bundle(AppendFault),
    /// The call failed.
    Call(Box<CallFailure>),
    /// No client can be made of these settings. Nothing was run.
    Client(ClientError),
    /// The embedded daemon did not start. Nothing was run.
    Environment(StartError),
    /// It ran, its answer checks, and it was not kept.
    NotKept {
        /// The exchange.
        checked: Box<Checked>,
        /// Why it was not kept, or not wholly.
        why: NotKept,
    },
}

/// Why a run that checks was not kept.
#[derive(Debug)]
pub enum NotKept {
    /// It is recorded; the anchor was not written.
    Anchor {
        /// Where it is recorded.
        appended: Appended,
        /// Why.
        error: Box<dyn Error + Send + Sync>,
    },
    /// The append failed; a side file may hold the signed entry.
    Append(AppendError),
    /// The exchange cannot be signed.
    Sign(Fault),
}

impl RunFailure {
    /// Its class.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            RunFailure::Artifacts(_) => Class::Io,
            RunFailure::Bundle(fault) => match fault.class() {
                attestation::Class::Io => Class::Io,
                attestation::Class::Anchor => Class::Anchor,
                // A witness of another kind gave its own reason.
                _ if matches!(fault, AppendFault::Guard(_)) => Class::Anchor,
                _ => Class::Bundle,
            },
            RunFailure::Call(failure) => class_of_call(failure),
            RunFailure::Client(_) => Class::Config,
            RunFailure::Environment(_) => Class::Environment,
            RunFailure::NotKept { .. } => Class::NotKept,
        }
    }

    /// Whether code ran.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match self {
            RunFailure::Call(failure) => failure.ran,
            RunFailure::NotKept { .. } => Ran::Yes,
            RunFailure::Environment(_) => Ran::No {
                reason: Reason::Environment,
            },
            RunFailure::Artifacts(_) | RunFailure::Bundle(_) | RunFailure::Client(_) => Ran::No {
                reason: Reason::Request,
            },
        }
    }

    /// The stable word beside the class, where there is one: the daemon's
    /// reason, the bundle's evidence class, or what of a run was not kept.
    #[must_use]
    pub fn reason(&self) -> Option<&'static str> {
        match self {
            RunFailure::Bundle(fault) => Some(fault.reason()),
            RunFailure::Call(failure) => failure.not_dispatched().map(Reason::name),
            RunFailure::NotKept { why, .. } => Some(match why {
                NotKept::Anchor { .. } => "anchor",
                NotKept::Append(error) => error.fault.reason(),
                NotKept::Sign(fault) => fault.reason().word(),
            }),
            _ => None,
        }
    }
}

/// The class of a failed call.
#[must_use]
pub fn class_of_call(failure: &CallFailure) -> Class {
    match (failure.stage, failure.ran) {
        (Stage::Local, _) => match failure.class {
            plimsoll_client::Class::InvalidRequest => Class::Request,
            _ => Class::NotDispatched,
        },
        (Stage::Unreachable, _) => Class::Unreachable,
        (Stage::Daemon, Ran::No { .. }) => Class::NotDispatched,
        (Stage::Daemon | Stage::NoAnswer, _) => Class::MayHaveRun,
        (Stage::Unchecked, _) => Class::Unchecked,
        (Stage::NotKept, _) => Class::NotKept,
    }
}

impl fmt::Display for RunFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RunFailure::Artifacts(error) => write!(f, "{error}; nothing was run"),
            RunFailure::Bundle(fault) => write!(f, "{fault}; nothing was run"),
            RunFailure::Call(failure) => match class_of_call(failure) {
                Class::Unreachable => write!(f, "{failure}; nothing was sent, nothing was run"),
                Class::NotDispatched => write!(
                    f,
                    "refused before anything ran, reason {}: {failure}; nothing was run",
                    failure.not_dispatched().map_or("unknown", Reason::name)
                ),
                Class::Request => write!(f, "{failure}; nothing was run"),
                Class::Unchecked => write!(
                    f,
                    "it may have run; its record was refused and not signed: {failure}"
                ),
                _ => write!(
                    f,
                    "it may have run; do not send it again blindly: {failure}"
                ),
            },
            RunFailure::Client(error) => write!(f, "{error}; nothing was run"),
            RunFailure::Environment(error) => write!(f, "{error}; nothing was run"),
            RunFailure::NotKept { why, .. } => match why {
                NotKept::Anchor { error, .. } => {
                    write!(
                        f,
                        "it ran and is recorded; the anchor was not written: {error}"
                    )
                }
                NotKept::Append(error) => write!(f, "it ran and was not recorded: {error}"),
                NotKept::Sign(fault) => write!(f, "it ran and cannot be signed: {fault}"),
            },
        }
    }
}

impl Error for RunFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            RunFailure::Artifacts(error) => Some(error),
            RunFailure::Bundle(error) => Some(error),
            RunFailure::Call(error) => Some(&**error),
            RunFailure::Client(error) => Some(error),
            RunFailure::Environment(error) => Some(error),
            RunFailure::NotKept { why, .. } => match why {
                NotKept::Anchor { error, .. } => Some(&**error),
                NotKept::Append(error) => Some(error),
                NotKept::Sign(error) => Some(error),
            },
        }
    }
}
