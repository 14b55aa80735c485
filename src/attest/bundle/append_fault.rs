//! Why an append was refused or failed, and what became of file and entry.

use std::{error::Error, fmt, io, path::PathBuf};

use crate::{
    anchor::AnchorFault,
    fault::{Class, Fault, Reason, SealReason},
};

/// Why a bundle cannot be appended to, or was not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendFault {
    /// The bundle does not verify under the key, so it cannot be continued.
    #[error("the bundle cannot be continued: {}", told(.0))]
    Evidence(#[source] Fault),
    /// The wait for the lock was given up: its caller was asked to end.
    #[error("the wait for the bundle's lock was given up")]
    GivenUp,
    /// The guard refused.
    #[error("the bundle must not be appended to: {0}")]
    Guard(#[source] Box<dyn Error + Send + Sync>),
    /// A symbolic link that leads to no file: a new bundle is not made where a
    /// link points.
    #[error("the bundle's path is a symbolic link that leads nowhere")]
    Link,
    /// Another run held the lock for two minutes.
    #[error("the bundle is locked by another run")]
    Locked,
    /// The path names no regular file.
    #[error("the bundle is not a regular file")]
    NotRegular,
    /// Opening, locking or looking at the file failed.
    #[error("the bundle cannot be opened: {0}")]
    Open(#[source] io::Error),
    /// Group or others have permissions on the file.
    #[error("group or others have permissions on the bundle (mode {mode:03o})")]
    Permissions {
        /// The file's permission bits.
        mode: u32,
    },
    /// The path came to name another file again and again.
    #[error("the bundle is being replaced")]
    Replaced,
    /// A line that was checked before the run is another now.
    #[error("the bundle was replaced during the run: its line {line} is another than before")]
    Rewritten {
        /// The last line of the bundle that was checked.
        line: u64,
    },
    /// An entry or checkpoint could not be written.
    #[error("the bundle could not be written: {}", told(.0))]
    Seal(#[source] Fault),
    /// The bundle holds the session that was to be appended: another process
    /// appended it meanwhile. Its calls a second time, or a second close, would
    /// break the whole bundle.
    #[error("the bundle holds this session already; it was appended during the run")]
    SessionHeld {
        /// The session's fingerprint.
        session: String,
    },
    /// Lines that were checked before the run are gone. To begin anew here
    /// would hide that.
    #[error("the bundle was cut back or removed during the run: it had {had} lines and has {has}")]
    Shrunk {
        /// Lines that were checked.
        had: u64,
        /// Lines that are there.
        has: u64,
    },
    /// What was written could not be made to last.
    #[error("the bundle could not be synced: {0}")]
    Sync(#[source] io::Error),
}

impl AppendFault {
    /// The class: `bundle` where the file must not be appended to, `anchor`
    /// where the anchor's guard says so, `io` where the system failed.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            AppendFault::Evidence(fault) if fault.class() == Class::Io => Class::Io,
            AppendFault::Evidence(fault) if fault.class() == Class::Internal => Class::Internal,
            AppendFault::Guard(error) => match error.downcast_ref::<Fault>() {
                Some(fault) => fault.class(),
                None if error.is::<AnchorFault>() => Class::Io,
                None => Class::Bundle,
            },
            AppendFault::Evidence(_)
            | AppendFault::Link
            | AppendFault::NotRegular
            | AppendFault::Permissions { .. }
            | AppendFault::Replaced
            | AppendFault::Rewritten { .. }
            | AppendFault::SessionHeld { .. }
            | AppendFault::Shrunk { .. } => Class::Bundle,
            AppendFault::GivenUp
            | AppendFault::Locked
            | AppendFault::Open(_)
            | AppendFault::Seal(_)
            | AppendFault::Sync(_) => Class::Io,
        }
    }

    /// The stable word: the evidence class of a bundle that does not verify, the
    /// reason of an anchor that is not met.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            AppendFault::Evidence(fault) => fault.class().word(),
            AppendFault::Guard(error) => match error.downcast_ref::<Fault>() {
                Some(fault) => fault.reason().word(),
                None => error
                    .downcast_ref::<AnchorFault>()
                    .map_or("guard", AnchorFault::reason),
            },
            AppendFault::GivenUp => "given_up",
            AppendFault::Link => "link",
            AppendFault::Locked => "locked",
            AppendFault::NotRegular => "not_regular",
            AppendFault::Open(_) => "open",
            AppendFault::Permissions { .. } => "permissions",
            AppendFault::Replaced | AppendFault::Rewritten { .. } => "replaced",
            AppendFault::Seal(fault) => fault.reason().word(),
            AppendFault::SessionHeld { .. } => "session_held",
            AppendFault::Shrunk { .. } => "shrunk",
            AppendFault::Sync(_) => "sync",
        }
    }
}

/// A fault in words; where the system failed, in the system's: that writing
/// failed tells nobody that the disk is full.
fn told(fault: &Fault) -> String {
    match (fault.reason(), fault.found_value()) {
        (Reason::Seal(SealReason::Write) | Reason::Io(_), Some(system)) => system.to_owned(),
        _ => fault.to_string(),
    }
}

/// What became of the file after a failed append.
#[derive(Debug)]
pub enum Cut {
    /// Nothing had been written.
    NotNeeded,
    /// It is again as long as before, and synced.
    Done,
    /// Cutting back failed: it may hold part of a line and must be verified
    /// before the next run.
    Failed(io::Error),
}

/// An append that failed after the code ran.
#[derive(Debug)]
pub struct AppendError {
    /// Why.
    pub fault: AppendFault,
    /// What became of the bundle.
    pub cut: Cut,
    /// Where the signed entries were kept, or why they could not be; then
    /// nothing of them is left beside the bundle.
    pub kept: Result<PathBuf, io::Error>,
}

impl fmt::Display for AppendError {
    /// Fact only; the path of the side file is data and is left to the caller.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fault)?;
        if let Cut::Failed(error) = &self.cut {
            write!(
                f,
                "; the bundle may hold part of a line and must be verified before the next run \
                 ({error})"
            )?;
        }
        match &self.kept {
            Ok(_) => f.write_str("; the signed entry was kept in a side file"),
            Err(error) => write!(f, "; the signed entry could not be kept either ({error})"),
        }
    }
}

impl Error for AppendError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.fault)
    }
}
