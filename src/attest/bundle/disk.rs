//! The file operations an append needs, as traits, so that tests can make each
//! of them fail.

use std::{
    fs::{File, OpenOptions, TryLockError},
    io::{self, BufRead, BufReader, Read as _, Seek as _, SeekFrom, Write as _},
    path::Path,
    time::{Duration, Instant, SystemTime},
};

/// What a descriptor or a path says about a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Facts {
    /// Whether it is a regular file.
    pub regular: bool,
    /// Its length in bytes.
    pub length: u64,
    /// Its permission bits; `None` where the system has none.
    pub mode: Option<u32>,
    /// Device and file number; `None` where the system has none.
    pub identity: Option<(u64, u64)>,
}

/// An open bundle.
pub trait BundleFile {
    /// Facts about the open descriptor.
    ///
    /// # Errors
    /// As the system says.
    fn facts(&self) -> io::Result<Facts>;

    /// Takes the exclusive advisory lock if it is free. It is held until the
    /// file is dropped or the process dies.
    ///
    /// # Errors
    /// As the system says.
    fn try_lock(&self) -> io::Result<bool>;

    /// Reads from the start.
    ///
    /// # Errors
    /// As the system says.
    fn read(&mut self) -> io::Result<impl BufRead>;

    /// Reads from an offset on.
    ///
    /// # Errors
    /// As the system says.
    fn read_from(&mut self, offset: u64) -> io::Result<impl BufRead> {
        let mut source = self.read()?;
        io::copy(&mut (&mut source).take(offset), &mut io::sink())?;
        Ok(source)
    }

    /// Writes at `length`, the end as the caller knows it.
    ///
    /// # Errors
    /// As the system says; part of `bytes` may have been written.
    fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()>;

    /// Cuts the file back.
    ///
    /// # Errors
    /// As the system says.
    fn truncate(&mut self, length: u64) -> io::Result<()>;

    /// Makes what was written and cut last through a crash.
    ///
    /// # Errors
    /// As the system says.
    fn sync(&mut self) -> io::Result<()>;
}

/// Where bundles are.
pub trait Disk {
    /// An open bundle.
    type File: BundleFile;

    /// Opens an existing file to read; `None` when there is none.
    ///
    /// # Errors
    /// As the system says.
    fn open_to_read(&self, path: &Path) -> io::Result<Option<Self::File>>;

    /// Opens a file to read and write, making it with mode 0600 when there is
    /// none; says whether it was made.
    ///
    /// # Errors
    /// As the system says.
    fn open_to_append(&self, path: &Path) -> io::Result<(Self::File, bool)>;

    /// Makes a new file with mode 0600, never opening an existing one.
    ///
    /// # Errors
    /// As the system says.
    fn create_new(&self, path: &Path) -> io::Result<Self::File>;

    /// Makes a new file that everyone may read, mode 0644 under the process's
    /// mask, never opening an existing one.
    ///
    /// # Errors
    /// As the system says.
    fn create_new_public(&self, path: &Path) -> io::Result<Self::File> {
        self.create_new(path)
    }

    /// Gives a file another name, in place of what has that name.
    ///
    /// # Errors
    /// As the system says.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    /// Gives a file a second name, which must be free.
    ///
    /// # Errors
    /// As the system says.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::hard_link(from, to)
    }

    /// Removes a file.
    ///
    /// # Errors
    /// As the system says.
    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    /// Whether a path is a symbolic link, whatever that leads to.
    ///
    /// # Errors
    /// As the system says.
    fn is_link(&self, path: &Path) -> io::Result<bool> {
        match std::fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.is_symlink()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether an existing file can be opened to write; changes nothing. Asked
    /// of the system itself: permission bits do not tell of a read-only mount,
    /// an immutable file or an access list.
    ///
    /// # Errors
    /// Why not, as the system says.
    fn can_write(&self, path: &Path) -> io::Result<()> {
        quiet(OpenOptions::new().read(true).write(true))
            .open(path)
            .map(drop)
    }

    /// Facts about what a path names now; `None` when it names nothing.
    ///
    /// # Errors
    /// As the system says.
    fn facts(&self, path: &Path) -> io::Result<Option<Facts>>;

    /// Makes a new name in the directory of `path` last through a crash.
    ///
    /// # Errors
    /// As the system says.
    fn sync_directory_of(&self, path: &Path) -> io::Result<()>;

    /// The wall clock, for names only.
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// A clock that only goes forward.
    fn instant(&self) -> Instant {
        Instant::now()
    }

    /// Waits before the lock is tried again.
    fn wait(&self, time: Duration) {
        std::thread::sleep(time);
    }
}

/// The machine's own files.
#[derive(Clone, Copy, Debug, Default)]
pub struct OsDisk;

/// A file of [`OsDisk`].
#[derive(Debug)]
pub struct OsFile(pub(super) File);

impl Disk for OsDisk {
    type File = OsFile;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<OsFile>> {
        match quiet(OpenOptions::new().read(true)).open(path) {
            Ok(file) => Ok(Some(OsFile(file))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(OsFile, bool)> {
        // Two first writers at once: the one that loses opens the other's file.
        // A file removed in between is made anew; a few tries end any race.
        let mut last = io::Error::from(io::ErrorKind::NotFound);
        for _ in 0..16 {
            match private(OpenOptions::new().read(true).write(true)).open(path) {
                Ok(file) => return Ok((OsFile(file), true)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error),
            }
            match quiet(OpenOptions::new().read(true).write(true)).open(path) {
                Ok(file) => return Ok((OsFile(file), false)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => last = error,
                Err(error) => return Err(error),
            }
        }
        Err(last)
    }

    fn create_new(&self, path: &Path) -> io::Result<OsFile> {
        private(OpenOptions::new().read(true).write(true))
            .open(path)
            .map(OsFile)
    }

    fn create_new_public(&self, path: &Path) -> io::Result<OsFile> {
        mode(OpenOptions::new().read(true).write(true), 0o644)
            .open(path)
            .map(OsFile)
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        match std::fs::metadata(path) {
            Ok(metadata) => Ok(Some(facts(&metadata))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        if cfg!(unix) {
            File::open(directory)?.sync_all()
        } else {
            Ok(())
        }
    }
}

impl BundleFile for OsFile {
    fn facts(&self) -> io::Result<Facts> {
        self.0.metadata().map(|metadata| facts(&metadata))
    }

    fn try_lock(&self) -> io::Result<bool> {
        match self.0.try_lock() {
            Ok(()) => Ok(true),
            Err(TryLockError::WouldBlock) => Ok(false),
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Interrupted => {
                Ok(false)
            }
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    fn read(&mut self) -> io::Result<impl BufRead> {
        self.read_from(0)
    }

    fn read_from(&mut self, offset: u64) -> io::Result<impl BufRead> {
        self.0.seek(SeekFrom::Start(offset))?;
        Ok(BufReader::with_capacity(64 << 10, &self.0))
    }

    fn append(&mut self, length: u64, bytes: &[u8]) -> io::Result<()> {
        self.0.seek(SeekFrom::Start(length))?;
        self.0.write_all(bytes)
    }

    fn truncate(&mut self, length: u64) -> io::Result<()> {
        self.0.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.0.sync_all()
    }
}

/// Opening a FIFO must not wait for its other end.
fn quiet(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        // Has no effect on regular files, and no others are used.
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    options
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    mode(options, 0o600)
}

/// For a new file with these permission bits, where the system has any.
fn mode(options: &mut OpenOptions, bits: u32) -> &mut OpenOptions {
    options.create_new(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(bits);
    }
    #[cfg(not(unix))]
    let _ = bits;
    options
}

#[cfg(unix)]
fn facts(metadata: &std::fs::Metadata) -> Facts {
    use std::os::unix::fs::MetadataExt as _;
    Facts {
        regular: metadata.is_file(),
        length: metadata.len(),
        mode: Some(metadata.mode() & 0o7777),
        identity: Some((metadata.dev(), metadata.ino())),
    }
}

#[cfg(not(unix))]
fn facts(metadata: &std::fs::Metadata) -> Facts {
    Facts {
        regular: metadata.is_file(),
        length: metadata.len(),
        mode: None,
        identity: None,
    }
}
