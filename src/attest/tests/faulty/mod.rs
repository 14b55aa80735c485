//! A disk whose operations can be made to fail.
#![allow(dead_code)]

use std::{
    cell::{Cell, RefCell},
    io::{self, BufRead},
    path::Path,
    rc::Rc,
    time::{Duration, Instant},
};

use plimsoll_attestation::bundle::disk::{BundleFile, Disk, Facts, OsDisk};

/// Which operations fail, and a clock that only waiting moves.
#[derive(Default)]
pub struct Faults {
    /// Bytes that may still be written to the bundle; `None` for any.
    pub budget: Cell<Option<usize>>,
    /// Syncs that still succeed.
    pub syncs: Cell<Option<usize>>,
    /// Everything fails from the first fault on, as after a kill.
    pub dead: Cell<bool>,
    pub dies: Cell<bool>,
    pub no_truncate: Cell<bool>,
    pub no_side_file: Cell<bool>,
    /// Bytes that may still be written to side files; `None` for any.
    pub side_budget: Cell<Option<usize>>,
    pub no_side_sync: Cell<bool>,
    pub no_directory_sync: Cell<bool>,
    pub no_rename: Cell<bool>,
    pub clock: Cell<Duration>,
    pub waits: Cell<usize>,
    pub at_first_wait: RefCell<Option<Box<dyn FnOnce()>>>,
}

impl Faults {
    fn alive(&self) -> io::Result<()> {
        if self.dead.get() {
            Err(self.fault())
        } else {
            Ok(())
        }
    }

    fn fault(&self) -> io::Error {
        self.dead.set(self.dies.get());
        io::Error::from(io::ErrorKind::StorageFull)
    }
}

/// The machine's disk with faults.
pub struct FaultyDisk(pub Rc<Faults>, Instant);

/// A file of [`FaultyDisk`]; the last part says whether it is the bundle.
pub struct FaultyFile<F>(F, Rc<Faults>, bool);

impl FaultyDisk {
    pub fn new() -> Self {
        FaultyDisk(Rc::default(), Instant::now())
    }
}

type OsFile = <OsDisk as Disk>::File;

impl Disk for FaultyDisk {
    type File = FaultyFile<OsFile>;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<Self::File>> {
        let file = OsDisk.open_to_read(path)?;
        Ok(file.map(|file| FaultyFile(file, self.0.clone(), true)))
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(Self::File, bool)> {
        let (file, created) = OsDisk.open_to_append(path)?;
        Ok((FaultyFile(file, self.0.clone(), true), created))
    }

    fn create_new(&self, path: &Path) -> io::Result<Self::File> {
        self.0.alive()?;
        if self.0.no_side_file.get() {
            return Err(self.0.fault());
        }
        Ok(FaultyFile(OsDisk.create_new(path)?, self.0.clone(), false))
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        OsDisk.facts(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.0.alive()?;
        if self.0.no_rename.get() {
            return Err(self.0.fault());
        }
        OsDisk.rename(from, to)
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.0.alive()?;
        if self.0.no_directory_sync.take() {
            return Err(self.0.fault());
        }
        OsDisk.sync_directory_of(path)
    }

    fn instant(&self) -> Instant {
        self.1 + self.0.clock.get()
    }

    fn wait(&self, time: Duration) {
        self.0.clock.set(self.0.clock.get() + time);
        self.0.waits.set(self.0.waits.get() + 1);
        if let Some(act) = self.0.at_first_wait.take() {
            act();
        }
    }
}

impl<F: BundleFile> BundleFile for FaultyFile<F> {
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
        self.1.alive()?;
        match self.1.budget.get() {
            Some(budget) if self.2 && bytes.len() > budget => {
                self.1.budget.set(Some(0));
                self.0.append(length, &bytes[..budget])?;
                Err(self.1.fault())
            }
            budget => {
                if let Some(room) = self.1.side_budget.get().filter(|_| !self.2) {
                    self.0.append(length, &bytes[..room.min(bytes.len())])?;
                    return Err(self.1.fault());
                }
                if self.2 {
                    self.1.budget.set(budget.map(|budget| budget - bytes.len()));
                }
                self.0.append(length, bytes)
            }
        }
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.1.alive()?;
        if self.1.no_truncate.get() {
            return Err(self.1.fault());
        }
        self.0.truncate(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.1.alive()?;
        match self.1.syncs.get() {
            Some(0) if self.2 => Err(self.1.fault()),
            Some(left) if self.2 => {
                self.1.syncs.set(Some(left - 1));
                self.0.sync()
            }
            _ if !self.2 && self.1.no_side_sync.get() => Err(self.1.fault()),
            _ => self.0.sync(),
        }
    }
}
