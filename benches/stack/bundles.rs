//! Bundles to append to, and the floor of an append.

use std::{
    cell::Cell,
    fs::{File, OpenOptions},
    io::Write as _,
    os::unix::fs::OpenOptionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use plimsoll_attestation::{
    SigningKey,
    bundle::{Appended, BundleWriter, Options, SignedEntry, append, disk::Disk},
};
use tempfile::TempDir;

use crate::measure::{Outcome, timed};

/// A folder on the disk of the target directory: a memory file system would
/// make syncing free.
pub struct Bundles {
    folder: TempDir,
    long: Vec<u8>,
    made: Cell<u64>,
}

impl Bundles {
    /// Also makes the long bundle: `lines` lines as single runs leave them, a
    /// checkpoint after each entry.
    pub fn new(key: &SigningKey, entry: &SignedEntry, lines: usize) -> Outcome<Self> {
        let mut writer = BundleWriter::new(Vec::new(), key);
        for _ in 0..lines / 2 {
            writer.entry(entry)?;
            writer.checkpoint()?;
        }
        Ok(Bundles {
            folder: tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR"))?,
            long: writer.into_inner(),
            made: Cell::new(0),
        })
    }

    /// The long bundle's bytes.
    pub fn long(&self) -> &[u8] {
        &self.long
    }

    /// A path that names nothing yet.
    pub fn absent(&self) -> PathBuf {
        self.made.set(self.made.get() + 1);
        self.folder
            .path()
            .join(format!("{}.jsonl", self.made.get()))
    }

    /// A file that holds the long bundle and has reached the disk.
    pub fn long_file(&self) -> Outcome<PathBuf> {
        let path = self.absent();
        let mut file = private(&path)?;
        file.write_all(&self.long)?;
        file.sync_all()?;
        File::open(self.folder.path())?.sync_all()?;
        Ok(path)
    }

    /// The floor of a first append: the same two writes to a new file, its
    /// bytes synced and then its name.
    pub fn write_new(&self, lines: [&[u8]; 2]) -> Outcome<Duration> {
        let path = self.absent();
        let (time, written) = timed(|| {
            let mut file = private(&path)?;
            for line in lines {
                file.write_all(line)?;
            }
            file.sync_all()?;
            File::open(self.folder.path())?.sync_all()
        });
        written?;
        std::fs::remove_file(path)?;
        Ok(time)
    }

    /// The floor of a later append: the same two writes at a file's end, synced.
    pub fn write_more(&self, path: &Path, lines: [&[u8]; 2]) -> Outcome<Duration> {
        let (time, written) = timed(|| {
            let mut file = OpenOptions::new().append(true).open(path)?;
            for line in lines {
                file.write_all(line)?;
            }
            file.sync_all()
        });
        written?;
        self.cut_back(path)?;
        Ok(time)
    }

    /// Makes a file the long bundle again, on the disk too, so that the next
    /// append does not pay for it.
    pub fn cut_back(&self, path: &Path) -> Outcome<()> {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(self.long.len() as u64)?;
        Ok(file.sync_all()?)
    }
}

/// One append as `run` makes it.
pub fn append_one(
    disk: &impl Disk,
    path: &Path,
    key: &SigningKey,
    entry: &SignedEntry,
) -> Outcome<Appended> {
    Ok(append(
        disk,
        path,
        key,
        std::slice::from_ref(entry),
        Options::default(),
        &mut (),
    )?)
}

fn private(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .create_new(true)
        .append(true)
        .mode(0o600)
        .open(path)
}
