//! A disk whose unfinished files do not outlive the process.
//!
//! For small files that are written beside their place and then moved there. A
//! bundle's side files hold evidence and are never of this kind.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
};

use plimsoll_attestation::bundle::disk::{Disk, Facts, OsDisk, OsFile};
use plimsoll_console::cleanup::{self, Registered};

/// The machine's own files; a new one is removed when a signal or a fault ends
/// the process before it got its name.
#[derive(Debug, Default)]
pub struct TidyDisk {
    unfinished: Mutex<Vec<Registered>>,
}

impl TidyDisk {
    pub const fn new() -> Self {
        TidyDisk {
            unfinished: Mutex::new(Vec::new()),
        }
    }

    fn unfinished(&self) -> MutexGuard<'_, Vec<Registered>> {
        self.unfinished
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a name before the file has it: between the two no signal may
    /// find the file unknown. The name is random, so no other file has it.
    fn begin(&self, path: &Path) {
        self.unfinished()
            .push(cleanup::register(PathBuf::from(path)));
    }

    fn end(&self, path: &Path) {
        self.unfinished().retain(|file| file.path() != path);
    }
}

impl Disk for TidyDisk {
    type File = OsFile;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<OsFile>> {
        OsDisk.open_to_read(path)
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(OsFile, bool)> {
        OsDisk.open_to_append(path)
    }

    fn create_new(&self, path: &Path) -> io::Result<OsFile> {
        self.begin(path);
        OsDisk.create_new(path).inspect_err(|_| self.end(path))
    }

    fn create_new_public(&self, path: &Path) -> io::Result<OsFile> {
        self.begin(path);
        OsDisk
            .create_new_public(path)
            .inspect_err(|_| self.end(path))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        OsDisk.rename(from, to)?;
        self.end(from);
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        OsDisk.remove(path)?;
        self.end(path);
        Ok(())
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        Disk::facts(&OsDisk, path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        OsDisk.sync_directory_of(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unfinished_file_goes_with_the_process_and_a_finished_one_stays() {
        let folder = tempfile::tempdir().unwrap();
        let disk = TidyDisk::new();
        let (first, second, place) = (
            folder.path().join("a.new-1"),
            folder.path().join("a.new-2"),
            folder.path().join("a"),
        );
        drop(disk.create_new(&first).unwrap());
        drop(disk.create_new_public(&second).unwrap());
        disk.rename(&second, &place).unwrap();
        assert!(disk.create_new(&place).is_err(), "it is there");
        cleanup::remove_all();
        assert!(!first.exists() && place.exists());
        disk.remove(&place).unwrap();
        assert!(disk.unfinished().iter().all(|file| file.path() == first));
    }
}
