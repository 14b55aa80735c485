//! The lock of an edit: a directory beside the file.
//!
//! Making a directory is exclusive on every file system, also over a network. A
//! process that is killed leaves it behind; nobody but a person can know that
//! the process is gone, so it is never removed by another's edit.

use std::{
    fs::{self, DirBuilder},
    io,
    path::{Path, PathBuf},
};

/// Where the lock of a registry lies: `PATH.lock`.
#[must_use]
pub fn lock_path(registry: &Path) -> PathBuf {
    let mut name = registry.as_os_str().to_owned();
    name.push(".lock");
    PathBuf::from(name)
}

/// The lock; released when dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    path: Option<PathBuf>,
}

impl Lock {
    /// Takes the lock; `AlreadyExists` when another edit holds it.
    pub(crate) fn take(registry: &Path) -> io::Result<Lock> {
        let path = lock_path(registry);
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&path)?;
        Ok(Lock { path: Some(path) })
    }

    /// Gives it back and says whether that went well.
    pub(crate) fn release(mut self) -> io::Result<()> {
        self.path.take().map_or(Ok(()), fs::remove_dir)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        if let Some(path) = self.path.take() {
            // An edit that failed has said so; the next one names a lock that stays.
            let _ = fs::remove_dir(path);
        }
    }
}
