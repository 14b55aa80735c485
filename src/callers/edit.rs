//! One change of a registry file: locked, read, changed, replaced.

use std::{
    fs::Metadata,
    io,
    path::{Path, PathBuf},
};

use crate::{
    fault::Faults,
    lock::Lock,
    read::{Links, ReadError, read},
    registry::Registry,
    replace::{Failed, replace},
};

/// An edit under way. Dropped without [`Edit::save`] it changes nothing.
#[derive(Debug)]
pub struct Edit {
    path: PathBuf,
    lock: Lock,
    old: Option<Metadata>,
    /// The registry to change.
    pub registry: Registry,
}

/// Why an edit does not begin; nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum BeginError {
    /// Another edit holds the lock, or one was killed.
    #[error("another edit holds the lock")]
    Locked,
    /// The lock cannot be made.
    #[error("the lock cannot be made: {0}")]
    Lock(#[source] io::Error),
    /// The file cannot be read.
    #[error("{0}")]
    Read(#[from] ReadError),
    /// The registry is not valid.
    #[error("{0}")]
    Invalid(#[from] Faults),
}

/// Why an edit was not saved as it should.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The new registry would be larger than a daemon reads.
    #[error("the registry would be larger than {} bytes", crate::MAX_BYTES)]
    TooLarge,
    /// The file at the path is not the one that was read. Nothing was changed.
    #[error("the file was changed by another program")]
    Changed,
    /// Writing failed; the old file is there byte for byte.
    #[error("the new registry could not be written: {0}")]
    Before(#[source] io::Error),
    /// The new file is in place and something after that failed.
    #[error("the registry was replaced, but completion failed: {0}")]
    After(#[source] io::Error),
}

impl Edit {
    /// Locks and reads a registry. With `make`, a file that is not there begins
    /// as an empty registry. A symbolic link is refused.
    ///
    /// # Errors
    /// [`BeginError`].
    pub fn begin(path: &Path, make: bool) -> Result<Edit, BeginError> {
        let lock = Lock::take(path).map_err(|error| match error.kind() {
            io::ErrorKind::AlreadyExists => BeginError::Locked,
            _ => BeginError::Lock(error),
        })?;
        let (registry, old) = match read(path, Links::Refuse) {
            Ok(source) => (Registry::parse(&source.text)?, Some(source.metadata)),
            Err(ReadError::Io(error)) if make && error.kind() == io::ErrorKind::NotFound => {
                (Registry::default(), None)
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Edit {
            path: path.to_owned(),
            lock,
            old,
            registry,
        })
    }

    /// Writes the registry in place of the one that was read and gives the lock
    /// back.
    ///
    /// # Errors
    /// [`SaveError`]; only [`SaveError::After`] leaves a changed file.
    pub fn save(self) -> Result<(), SaveError> {
        let text = self
            .registry
            .to_text()
            .map_err(|error| SaveError::Before(error.into()))?;
        if text.len() as u64 > crate::MAX_BYTES {
            return Err(SaveError::TooLarge);
        }
        replace(&self.path, text.as_bytes(), self.old.as_ref()).map_err(|failed| match failed {
            Failed::Before(error) => SaveError::Before(error),
            Failed::Changed => SaveError::Changed,
            Failed::After(error) => SaveError::After(error),
        })?;
        self.lock.release().map_err(SaveError::After)
    }
}
