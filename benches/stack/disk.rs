//! A disk that says how long it took: its part of an append is the machine's,
//! and on a shared machine it swings by a factor of thirty.

use std::{
    cell::Cell,
    io::{self, BufRead},
    path::Path,
    rc::Rc,
    time::Duration,
};

use plimsoll_attestation::bundle::disk::{BundleFile, Disk, Facts, OsDisk, OsFile};

use crate::measure::timed;

/// Time that writing and syncing took so far.
#[derive(Clone, Debug, Default)]
struct Spent(Rc<Cell<Duration>>);

impl Spent {
    fn on<T>(&self, work: impl FnOnce() -> T) -> T {
        let (time, result) = timed(work);
        self.0.set(self.0.get() + time);
        result
    }
}

/// The machine's files; writing and syncing are timed.
#[derive(Clone, Debug, Default)]
pub struct MeteredDisk(Spent);

impl MeteredDisk {
    /// Time spent since this was asked last.
    pub fn take(&self) -> Duration {
        self.0.0.take()
    }

    fn metered(&self, file: OsFile) -> MeteredFile {
        MeteredFile {
            file,
            spent: self.0.clone(),
        }
    }
}

/// A file of [`MeteredDisk`].
#[derive(Debug)]
pub struct MeteredFile {
    file: OsFile,
    spent: Spent,
}

impl Disk for MeteredDisk {
    type File = MeteredFile;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<MeteredFile>> {
        let file = OsDisk.open_to_read(path)?;
        Ok(file.map(|file| self.metered(file)))
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(MeteredFile, bool)> {
        let (file, created) = OsDisk.open_to_append(path)?;
        Ok((self.metered(file), created))
    }

    fn create_new(&self, path: &Path) -> io::Result<MeteredFile> {
        Ok(self.metered(OsDisk.create_new(path)?))
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        OsDisk.facts(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.0.on(|| OsDisk.sync_directory_of(path))
    }
}

impl BundleFile for MeteredFile {
    fn facts(&self) -> io::Result<Facts> {
        self.file.facts()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.file.try_lock()
    }

    fn read(&mut self) -> io::Result<impl BufRead> {
        self.file.read()
    }

    fn read_from(&mut self, offset: u64) -> io::Result<impl BufRead> {
        self.file.read_from(offset)
    }

    fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        self.spent.on(|| self.file.append(length, bytes))
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.spent.on(|| self.file.truncate(length))
    }

    fn sync(&mut self) -> io::Result<()> {
        self.spent.on(|| self.file.sync())
    }
}
