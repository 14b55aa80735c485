//! The bundle a run is recorded in.

use std::{
    cell::Cell,
    io,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use plimsoll_attestation::{
    SigningKey,
    bundle::{
        self, AppendError, AppendFault, Appended, Options, Position, Report, SignedEntry,
        disk::{Disk, OsDisk},
    },
};
use plimsoll_client::CancelToken;
use rustix::fs::{Access, access};

use crate::{run::Phase, witness::Witness};

/// After so long a wait for the lock is told as a phase of its own.
const TELL_WAIT_AFTER: Duration = Duration::from_millis(500);

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
        let options = Options {
            shared: self.shared,
            ..Options::default()
        };
        let report = bundle::check(&self.disk, &self.path, key, options, witness)?;
        if report.is_none() {
            can_be_made(&self.path).map_err(AppendFault::Open)?;
        }
        Ok(report)
    }

    /// Checks again under the lock, also that what `before` found is still
    /// there, and appends. May wait for the lock up to two minutes, on the
    /// calling thread; the token, cancelled on another one, ends that wait.
    pub(crate) fn append(
        &self,
        key: &SigningKey,
        entries: &[SignedEntry],
        before: Option<&Report>,
        wait: Wait<'_>,
        witness: &mut impl Witness,
    ) -> Result<Appended, AppendError> {
        let told = Cell::new(false);
        let while_locked = |waited| {
            if wait.cancel.is_some_and(CancelToken::is_cancelled) {
                return ControlFlow::Break(());
            }
            if waited >= TELL_WAIT_AFTER && !told.replace(true) {
                (wait.on_phase)(Phase::WaitingForTheLock);
            }
            ControlFlow::Continue(())
        };
        let options = Options {
            shared: self.shared,
            // A session is appended whole, so none is ever left open here.
            open_session: None,
            continues: Some(before.map_or_else(Position::default, Position::after)),
            while_locked: Some(&while_locked),
        };
        bundle::append(&self.disk, &self.path, key, entries, options, witness)
    }
}

/// Whether a path's folder takes a new file: code must not run when the place
/// for its record, or for an anchor, is known to be missing. Makes nothing.
///
/// # Errors
/// As the system says.
pub fn can_be_made(path: &Path) -> io::Result<()> {
    if path.file_name().is_none() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    if !folder.metadata()?.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    Ok(access(folder, Access::WRITE_OK | Access::EXEC_OK)?)
}

/// What happens while the bundle's lock is waited for.
#[derive(Clone, Copy)]
pub(crate) struct Wait<'a> {
    /// Ends the wait: the entries are then kept in a side file.
    pub(crate) cancel: Option<&'a CancelToken>,
    /// Told when the wait takes long.
    pub(crate) on_phase: &'a (dyn Fn(Phase) + Sync),
}
