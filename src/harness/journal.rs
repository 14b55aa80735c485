//! Keeps a session's signed entries while the session runs.
//!
//! The bundle takes a session whole, with its close and a checkpoint, so that
//! no run finds it open. Until then each signed entry is synced to a side file,
//! so that a crash in the middle loses no evidence of what ran. It is the side
//! file of an append that failed, only made before: where the session cannot
//! be appended it stays as it is.

use std::{
    io,
    path::{Path, PathBuf},
};

use plimsoll_attestation::bundle::{
    SignedEntry, create_side_file,
    disk::{BundleFile, Disk},
};

pub(crate) struct Journal<F> {
    path: PathBuf,
    file: F,
    length: u64,
    entries: usize,
    broken: bool,
}

impl<F: BundleFile> Journal<F> {
    /// Makes the side file, mode 0600, never an existing one.
    pub(crate) fn create<D: Disk<File = F>>(disk: &D, bundle: &Path) -> io::Result<Self> {
        let (path, file) = create_side_file(disk, bundle)?;
        if let Err(error) = disk.sync_directory_of(&path) {
            let _ = disk.remove(&path);
            return Err(error);
        }
        Ok(Journal {
            path,
            file,
            length: 0,
            entries: 0,
            broken: false,
        })
    }

    /// Keeps one entry. After a failure nothing more is written: a later line
    /// would follow half of one.
    pub(crate) fn keep(&mut self, entry: &SignedEntry) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other(
                "the side file could not be written before",
            ));
        }
        let line = entry.to_unlinked_line();
        let written = self
            .file
            .append(self.length, line.as_bytes())
            .and_then(|()| self.file.sync());
        match &written {
            Ok(()) => {
                self.length += line.len() as u64;
                self.entries += 1;
            }
            Err(_) => {
                self.broken = true;
                // Half a line proves nothing; the lines before it do.
                let _ = self.file.truncate(self.length);
                let _ = self.file.sync();
            }
        }
        written
    }

    /// Removes the side file: it is empty, or its entries are kept elsewhere.
    pub(crate) fn remove<D: Disk>(self, disk: &D) {
        // A file left behind repeats what is kept; no harm.
        let _ = disk.remove(&self.path);
    }

    /// Ends with the file, which stays. Gives its path and how many entries,
    /// from the first on, it holds.
    pub(crate) fn leave(self) -> (PathBuf, usize) {
        (self.path, self.entries)
    }
}
