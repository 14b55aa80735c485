//! The anchor as a file: read, and moved forward under its own lock.

use std::{
    fmt,
    io::{self, Read as _},
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use super::{
    Anchor, AnchorCheck, MAX_ANCHOR_BYTES, Reach,
    check::{NoCheckpoint, behind, same_line, same_origin},
};
use crate::{
    bundle::{
        append::{LOCK_POLL, LOCK_WAIT},
        disk::{BundleFile as _, Disk},
    },
    fault::{Class, Fault},
    key::{PublicKey, SigningKey},
    replace::{Readers, replace},
};

/// Why an anchor could not be read or kept.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum AnchorFault {
    /// The wait for the anchor's lock was given up: its caller was asked to end.
    #[error("the wait for the anchor's lock was given up")]
    GivenUp,
    /// The anchor's lock, a file beside it, cannot be opened or locked.
    #[error("the anchor's lock {} cannot be taken: {error}", path.display())]
    Lock {
        /// Where the lock lies.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// The anchor's lock is a symbolic link, which is not written through.
    #[error("the anchor's lock is a symbolic link")]
    LockLink(PathBuf),
    /// The path is a symbolic link, which is not written through.
    #[error("the anchor's path is a symbolic link")]
    Link,
    /// Another process held the anchor's lock for two minutes.
    #[error("the anchor is locked by another process")]
    Locked,
    /// Others moved the anchor while this bundle was read, to a line this pass
    /// no longer remembers. Verifying again settles it.
    #[error("the anchor was moved while the bundle was read")]
    Moved,
    /// The path names no regular file.
    #[error("the anchor is not a regular file")]
    NotRegular,
    /// Opening, locking or reading failed.
    #[error("the anchor cannot be read: {0}")]
    Open(#[source] io::Error),
    /// The anchor is not met, or is no anchor of this bundle.
    #[error("the anchor refuses the bundle: {0}")]
    Refused(#[source] Fault),
    /// The new anchor could not be written; the old one is there.
    #[error("the anchor could not be written: {0}")]
    Write(#[source] io::Error),
}

impl AnchorFault {
    /// The class: `anchor` for a refusal, `io` otherwise.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            AnchorFault::Refused(fault) => fault.class(),
            _ => Class::Io,
        }
    }

    /// The stable word.
    #[must_use]
    pub fn reason(&self) -> &'static str {
        match self {
            AnchorFault::GivenUp => "given_up",
            AnchorFault::Link => "link",
            AnchorFault::Lock { .. } => "lock",
            AnchorFault::LockLink(_) => "lock_link",
            AnchorFault::Locked => "locked",
            AnchorFault::Moved => "moved",
            AnchorFault::NotRegular => "not_regular",
            AnchorFault::Open(_) => "open",
            AnchorFault::Refused(fault) => fault.reason().word(),
            AnchorFault::Write(_) => "write",
        }
    }
}

impl From<Fault> for AnchorFault {
    fn from(fault: Fault) -> Self {
        AnchorFault::Refused(fault)
    }
}

/// Where the lock of an anchor lies: beside it, named with `.lock`.
#[must_use]
pub fn lock_path(anchor: &Path) -> PathBuf {
    let mut name = anchor.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// What became of an anchor that was to be kept.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kept {
    /// There was none; it was made.
    Created,
    /// It was moved forward.
    Moved,
    /// It named this line already and was left byte for byte.
    Unchanged,
    /// Another process moved it further while this one read the bundle; it was
    /// left alone.
    Ahead,
}

/// Where an anchor lies and who may have signed it.
pub struct AnchorFile<'d, D> {
    disk: &'d D,
    path: PathBuf,
    accepted: Vec<PublicKey>,
    while_locked: Option<&'d dyn Fn(Duration) -> ControlFlow<()>>,
}

impl<D> fmt::Debug for AnchorFile<'_, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AnchorFile")
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}

impl<'d, D: Disk> AnchorFile<'d, D> {
    /// `accepted` are the keys whose signature on an anchor counts.
    pub fn new(disk: &'d D, path: impl Into<PathBuf>, accepted: Vec<PublicKey>) -> Self {
        AnchorFile {
            disk,
            path: path.into(),
            accepted,
            while_locked: None,
        }
    }

    /// Is asked each time before the lock is waited for again, with the time
    /// waited so far; a break gives the anchor up. It must not block.
    #[must_use]
    pub fn while_locked(mut self, ask: &'d dyn Fn(Duration) -> ControlFlow<()>) -> Self {
        self.while_locked = Some(ask);
        self
    }

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Reads it; `None` when there is no file.
    ///
    /// # Errors
    /// [`AnchorFault`]: `format` and `signature` among the refusals.
    pub fn read(&self) -> Result<Option<Anchor>, AnchorFault> {
        let opened = self.disk.open_to_read(&self.path);
        let Some(mut file) = opened.map_err(AnchorFault::Open)? else {
            return Ok(None);
        };
        if !file.facts().map_err(AnchorFault::Open)?.regular {
            return Err(AnchorFault::NotRegular);
        }
        let mut bytes = Vec::new();
        // One byte more, so that too long a file is seen to be so.
        let limit = MAX_ANCHOR_BYTES as u64 + 1;
        let source = file.read().map_err(AnchorFault::Open)?;
        source
            .take(limit)
            .read_to_end(&mut bytes)
            .map_err(AnchorFault::Open)?;
        Ok(Some(Anchor::open(&bytes, &self.accepted)?))
    }

    /// Moves the anchor to where a bundle reaches, or makes it. `check` saw the
    /// bundle, and [`AnchorCheck::met`] said yes; `reach` may lie beyond what it
    /// saw by one append of the caller's own.
    ///
    /// Under an exclusive lock on a file beside it, named with `.lock` and kept
    /// empty, the present anchor is read and checked once more: it never goes
    /// backwards and never to another bundle.
    ///
    /// # Errors
    /// [`AnchorFault`]; the file is as before.
    pub fn keep(
        &self,
        check: &AnchorCheck,
        reach: &Reach,
        signer: &SigningKey,
    ) -> Result<Kept, AnchorFault> {
        let _lock = self.lock()?;
        let present = self.read()?;
        if let Some(anchor) = &present {
            let there = anchor.reach();
            same_origin(there, &reach.key_id, &reach.first_line)?;
            if there.lines == reach.lines {
                same_line(there, Some(reach.last))?;
                return Ok(Kept::Unchanged);
            }
            if there.lines > reach.lines {
                // One that was there before the bundle was read would have been
                // met: this one came since, from a writer that saw more.
                if check.anchor() == Some(anchor) {
                    return Err(behind(there.lines, reach.lines).into());
                }
                return Ok(Kept::Ahead);
            }
            match check.checkpoint(there.lines) {
                Ok(digest) => same_line(there, Some(digest))?,
                Err(NoCheckpoint::None) => same_line(there, None)?,
                Err(NoCheckpoint::Forgotten) => return Err(AnchorFault::Moved),
            }
        }
        if self.disk.is_link(&self.path).map_err(AnchorFault::Open)? {
            return Err(AnchorFault::Link);
        }
        let next = Anchor::sign(reach, signer);
        replace(self.disk, &self.path, next.as_bytes(), Readers::Everyone)
            .map_err(AnchorFault::Write)?;
        Ok(if present.is_some() {
            Kept::Moved
        } else {
            Kept::Created
        })
    }

    /// Whether the anchor's lock could be taken, as far as can be told without
    /// making it: one that another process holds is only a matter of time.
    ///
    /// # Errors
    /// [`AnchorFault::Lock`] or [`AnchorFault::LockLink`].
    pub fn lockable(&self) -> Result<(), AnchorFault> {
        let path = self.lock_of_its_own()?;
        let fault = |error| AnchorFault::Lock {
            path: path.clone(),
            error,
        };
        if self.disk.facts(&path).map_err(fault)?.is_none() {
            return Ok(());
        }
        let (file, _) = self.disk.open_to_append(&path).map_err(fault)?;
        file.try_lock().map_err(fault).map(drop)
    }

    /// Where the lock lies, which is not written through a link.
    fn lock_of_its_own(&self) -> Result<PathBuf, AnchorFault> {
        let path = lock_path(&self.path);
        match self.disk.is_link(&path) {
            Ok(false) => Ok(path),
            Ok(true) => Err(AnchorFault::LockLink(path)),
            Err(error) => Err(AnchorFault::Lock { path, error }),
        }
    }

    /// Takes the lock; it is held until the file is dropped.
    fn lock(&self) -> Result<D::File, AnchorFault> {
        let path = self.lock_of_its_own()?;
        let fault = |error| AnchorFault::Lock {
            path: path.clone(),
            error,
        };
        let (file, _) = self.disk.open_to_append(&path).map_err(fault)?;
        let start = self.disk.instant();
        while !file.try_lock().map_err(fault)? {
            let waited = self.disk.instant().saturating_duration_since(start);
            if waited >= LOCK_WAIT {
                return Err(AnchorFault::Locked);
            }
            if self.while_locked.is_some_and(|ask| ask(waited).is_break()) {
                return Err(AnchorFault::GivenUp);
            }
            self.disk.wait(LOCK_POLL);
        }
        Ok(file)
    }
}
