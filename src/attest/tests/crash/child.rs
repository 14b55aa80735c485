//! The process that is killed: it appends runs to a bundle with an anchor and
//! says so after each.

use std::{
    cell::Cell,
    io::{self, BufRead, Write as _},
    path::Path,
};

use plimsoll_attestation::{
    anchor::{AnchorFile, AnchorGuard},
    bundle::{
        Options, append,
        disk::{BundleFile, Disk, Facts, OsDisk},
    },
};

use crate::common::{signing, single_run};

type OsFile = <OsDisk as Disk>::File;

/// Aborts the process, without any clean-up, at the step with this number. A
/// write is three steps: before it, in its middle, after it.
struct Killer(Cell<u64>);

impl Killer {
    fn step(&self) {
        match self.0.get().checked_sub(1) {
            Some(left) => self.0.set(left),
            None => std::process::abort(),
        }
    }
}

struct KillFile<'k>(OsFile, &'k Killer);

impl<'k> Disk for &'k Killer {
    type File = KillFile<'k>;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<Self::File>> {
        Ok(OsDisk.open_to_read(path)?.map(|file| KillFile(file, self)))
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(Self::File, bool)> {
        self.step();
        let (file, created) = OsDisk.open_to_append(path)?;
        self.step();
        Ok((KillFile(file, self), created))
    }

    fn create_new(&self, path: &Path) -> io::Result<Self::File> {
        self.step();
        let file = OsDisk.create_new(path)?;
        self.step();
        Ok(KillFile(file, self))
    }

    fn create_new_public(&self, path: &Path) -> io::Result<Self::File> {
        self.step();
        let file = OsDisk.create_new_public(path)?;
        self.step();
        Ok(KillFile(file, self))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.step();
        OsDisk.rename(from, to)?;
        self.step();
        Ok(())
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        OsDisk.facts(path)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.step();
        OsDisk.sync_directory_of(path)
    }
}

impl BundleFile for KillFile<'_> {
    fn facts(&self) -> io::Result<Facts> {
        self.0.facts()
    }

    fn try_lock(&self) -> io::Result<bool> {
        self.0.try_lock()
    }

    fn read(&mut self) -> io::Result<impl BufRead> {
        self.0.read()
    }

    fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        self.1.step();
        let (head, tail) = bytes.split_at(bytes.len() / 2);
        self.0.append(length, head)?;
        self.1.step();
        self.0.append(length + head.len() as u64, tail)?;
        self.1.step();
        Ok(())
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.1.step();
        self.0.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.step();
        self.0.sync()
    }
}

/// Appends the runs numbered from `first`, `count` of them. Prints `done N`
/// when an append is done and `kept N` when it failed and the entry lies in a
/// side file; fails when that is not so.
pub fn run(directory: &Path, first: u32, count: u32, kill_at: u64) {
    let killer = Killer(Cell::new(kill_at));
    let disk = &killer;
    let key = signing();
    let bundle = directory.join("runs.jsonl");
    for n in first..first + count {
        let accepted = vec![key.public().clone()];
        let mut guard =
            AnchorGuard::new(AnchorFile::new(&disk, directory.join("anchor"), accepted));
        let entry = [single_run(n).sign(&key)];
        let word = match append(&disk, &bundle, &key, &entry, Options::default(), &mut guard) {
            Ok(appended) => {
                guard.appended(&appended, &key).expect("the anchor moves");
                "done"
            }
            Err(error) => {
                error.kept.expect("the entry is kept");
                "kept"
            }
        };
        // One write: a reader of the pipe sees whole lines.
        let line = format!("{word} {n}\n");
        io::stdout()
            .write_all(line.as_bytes())
            .expect("the parent reads");
    }
}
