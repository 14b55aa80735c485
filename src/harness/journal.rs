//! Keeps a session's signed entries while the session runs.
//!
//! The bundle takes a session whole, with its close and a checkpoint, so that
//! no run finds it open. Until then each signed entry is synced to a side
//! file, so that a crash in the middle loses no evidence of what ran.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use plimsoll_attestation::bundle::{
    SignedEntry,
    disk::{BundleFile, Disk},
};

pub(crate) struct Journal<F> {
    path: PathBuf,
    file: F,
    length: u64,
    broken: bool,
}

impl<F: BundleFile> Journal<F> {
    /// Makes the side file, mode 0600, never an existing one.
    pub(crate) fn create<D: Disk<File = F>>(disk: &D, bundle: &Path) -> io::Result<Self> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
        let mut name = bundle.as_os_str().to_owned();
        name.push(format!(".session-{}.jsonl", hex::encode(random)));
        let path = PathBuf::from(name);
        let file = disk.create_new(&path)?;
        disk.sync_directory_of(&path)?;
        Ok(Journal {
            path,
            file,
            length: 0,
            broken: false,
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
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
            Ok(()) => self.length += line.len() as u64,
            Err(_) => self.broken = true,
        }
        written
    }

    /// Removes the side file once its entries are kept elsewhere.
    pub(crate) fn remove(self) {
        // A file left behind repeats what the bundle holds; no harm.
        let _ = fs::remove_file(&self.path);
    }
}
