//! The bundle a run is recorded in.

use std::{
    io,
    path::{Path, PathBuf},
};

use plimsoll_attestation::{
    SigningKey,
    bundle::{
        self, AppendError, AppendFault, Appended, Options, Report, SignedEntry,
        disk::{Disk, OsDisk},
    },
};

use rustix::fs::{Access, access};

use crate::witness::Witness;

/// A bundle file and how it may be used. The disk is a parameter so that tests
/// can make it fail at any byte.
#[derive(Debug)]
pub struct Ledger<D = OsDisk> {
    disk: D,
    path: PathBuf,
    shared: bool,
}

impl Ledger {
    /// A bundle on this machine's disk. With `shared`, a file that group or
    /// others have permissions on is taken too.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>, shared: bool) -> Self {
        Self::on(OsDisk, path, shared)
    }
}

impl<D: Disk> Ledger<D> {
    /// A bundle on another disk.
    pub fn on(disk: D, path: impl Into<PathBuf>, shared: bool) -> Self {
        Ledger {
            disk,
            path: path.into(),
            shared,
        }
    }

    /// The bundle's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn disk(&self) -> &D {
        &self.disk
    }

    /// Whether it can be appended to, before anything is contacted.
    pub(crate) fn check(
        &self,
        key: &SigningKey,
        witness: &mut impl Witness,
    ) -> Result<Option<Report>, AppendFault> {
        let report = bundle::check(&self.disk, &self.path, key, self.options(), witness)?;
        if report.is_none() {
            self.can_be_made().map_err(AppendFault::Open)?;
        }
        Ok(report)
    }

    /// Whether the folder takes a new file: code must not run when the place
    /// for its record is known to be missing. Nothing is made yet.
    fn can_be_made(&self) -> io::Result<()> {
        if self.path.file_name().is_none() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        let folder = match self.path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        if !folder.metadata()?.is_dir() {
            return Err(io::ErrorKind::NotADirectory.into());
        }
        Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
    }

    /// Checks again under the lock and appends. May wait for the lock up to
    /// two minutes, on the calling thread.
    pub(crate) fn append(
        &self,
        key: &SigningKey,
        entries: &[SignedEntry],
        witness: &mut impl Witness,
    ) -> Result<Appended, AppendError> {
        bundle::append(
            &self.disk,
            &self.path,
            key,
            entries,
            self.options(),
            witness,
        )
    }

    fn options(&self) -> Options<'static> {
        Options {
            shared: self.shared,
            // A session is appended whole, so none is ever left open here.
            open_session: None,
        }
    }
}
