//! Why an append was refused or failed, and what became of file and entry.

use std::{error::Error, fmt, io, path::PathBuf};

use crate::fault::{Class, Fault};

/// Why a bundle cannot be appended to, or was not.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AppendFault {
    /// The bundle does not verify under the key, so it cannot be continued.
    #[error("the bundle cannot be continued: {0}")]
    Evidence(#[source] Fault),
    /// The guard refused.
    #[error("the bundle must not be appended to: {0}")]
    Guard(#[source] Box<dyn Error + Send + Sync>),
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
    /// An entry or checkpoint could not be written.
    #[error("the bundle could not be written: {0}")]
    Seal(#[source] Fault),
    /// What was written could not be made to last.
    #[error("the bundle could not be synced: {0}")]
    Sync(#[source] io::Error),
}

impl AppendFault {
    /// The class: `bundle` where the file must not be appended to, `io` where
    /// the system failed.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            AppendFault::Evidence(fault) if fault.class() == Class::Io => Class::Io,
            AppendFault::Evidence(_)
            | AppendFault::Guard(_)
            | AppendFault::NotRegular
            | AppendFault::Permissions { .. }
            | AppendFault::Replaced => Class::Bundle,
            AppendFault::Locked
            | AppendFault::Open(_)
            | AppendFault::Seal(_)
            | AppendFault::Sync(_) => Class::Io,
        }
    }

    /// The stable word: the evidence class of a bundle that does not verify.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            AppendFault::Evidence(fault) => fault.class().word(),
            AppendFault::Guard(_) => "guard",
            AppendFault::Locked => "locked",
            AppendFault::NotRegular => "not_regular",
            AppendFault::Open(_) => "open",
            AppendFault::Permissions { .. } => "permissions",
            AppendFault::Replaced => "replaced",
            AppendFault::Seal(fault) => fault.reason().word(),
            AppendFault::Sync(_) => "sync",
        }
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
    /// Where the signed entries were kept, or why they could not be.
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
