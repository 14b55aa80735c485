//! Writing outputs: a temporary file beside the place, synced, then moved there.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

use super::plain_words;
use crate::class::Class;
use crate::cleanup::{self, Registered};
use crate::exit::ExitCode;
use crate::failure::Failure;

/// Who may read the file, on Unix.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// 0600: keys, bundles, artifacts and other content.
    Private,
    /// 0644 under the umask: public keys, envelopes, manual pages.
    Public,
}

/// What happens to a file that is there already. A symbolic link, a directory or a device is
/// refused in any case.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Replace {
    /// It is refused, also when it appears while ours is being written.
    Never,
    /// It is refused with advice to use `--force`, which was not given.
    WithForce,
    /// It is replaced: `--force` was given.
    Forced,
}

/// A file being written. Dropped without [`OutFile::commit`], it leaves nothing behind.
#[derive(Debug)]
pub struct OutFile {
    path: PathBuf,
    replace: Replace,
    temporary: NamedTempFile,
    // After the file, so that the file is gone before it is forgotten.
    _registered: Registered,
}

impl OutFile {
    /// Begins to write a file. Nothing is at `path` before [`OutFile::commit`].
    ///
    /// # Errors
    /// Class `exists` when something is there that is not to be replaced, `io` when the directory
    /// takes no file; both exit 2, since no work was done yet.
    pub fn create(path: &Path, mode: Mode, replace: Replace) -> Result<Self, Failure> {
        check_place(path, replace)?;
        let mut builder = tempfile::Builder::new();
        builder.prefix(".plimsoll-").suffix(".tmp");
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt as _;
            builder.permissions(fs::Permissions::from_mode(match mode {
                Mode::Private => 0o600,
                Mode::Public => 0o644,
            }));
        }
        #[cfg(not(unix))]
        let _ = mode;
        let (temporary, registered) =
            cleanup::create(|| builder.tempfile_in(directory(path)), NamedTempFile::path)
                .map_err(|error| unwritable(path, &error, ExitCode::Usage))?;
        Ok(Self {
            path: path.to_owned(),
            replace,
            temporary,
            _registered: registered,
        })
    }

    /// Syncs the file, moves it to its place and syncs the directory.
    ///
    /// # Errors
    /// Class `exists` (exit 2) when something appeared at the place meanwhile, else `io` (exit 1).
    /// Nothing partial is left.
    pub fn commit(self) -> Result<(), Failure> {
        let Self {
            path,
            replace,
            temporary,
            _registered,
        } = self;
        let failed = |error: &io::Error| unwritable(&path, error, ExitCode::Refused);
        temporary
            .as_file()
            .sync_all()
            .map_err(|error| failed(&error))?;
        check_place(&path, replace)?;
        let moved = match replace {
            // Exclusive: whoever came first keeps the name.
            Replace::Never | Replace::WithForce => temporary.persist_noclobber(&path),
            Replace::Forced => temporary.persist(&path),
        };
        moved.map_err(|error| match error.error.kind() {
            io::ErrorKind::AlreadyExists => exists(&path, replace),
            _ => failed(&error.error),
        })?;
        // Without this a power cut could forget the name. Some file systems cannot sync a
        // directory; the file itself is safe by then.
        if let Ok(directory) = fs::File::open(directory(&path)) {
            let _ = directory.sync_all();
        }
        Ok(())
    }

    /// The failure for a write error on this file: class `io`, exit 1.
    #[must_use]
    pub fn fault(&self, error: &io::Error) -> Failure {
        unwritable(&self.path, error, ExitCode::Refused)
    }
}

impl Write for OutFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.temporary.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.temporary.as_file_mut().flush()
    }
}

/// Whether a file could be put at a place as far as what is there decides, for a command that
/// writes several and wants all or none.
///
/// # Errors
/// Class `exists` or `io`, exit 2, as [`OutFile::create`].
pub fn replaceable(path: &Path, replace: Replace) -> Result<(), Failure> {
    check_place(path, replace)
}

/// Writes a whole file.
///
/// # Errors
/// As [`OutFile::create`] and [`OutFile::commit`].
pub fn write(path: &Path, bytes: &[u8], mode: Mode, replace: Replace) -> Result<(), Failure> {
    let mut file = OutFile::create(path, mode, replace)?;
    file.write_all(bytes).map_err(|error| file.fault(&error))?;
    file.commit()
}

/// The directory that holds a path; `.` for a bare name.
fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

/// Refuses what must not be replaced. A link is looked at, not followed: writing through one could
/// change a file its planter chose.
fn check_place(path: &Path, replace: Replace) -> Result<(), Failure> {
    let metadata = match fs::symlink_metadata(path) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(unwritable(path, &error, ExitCode::Usage)),
    };
    let kind = metadata.file_type();
    let refused = |what: &str, advice: &str| {
        Err(Failure::new(
            Class::Exists,
            format!("is {what} and is not replaced"),
            advice,
        )
        .file(path))
    };
    if kind.is_symlink() {
        refused(
            "a symbolic link",
            "Name the file itself, or remove the link.",
        )
    } else if kind.is_dir() {
        refused("a directory", "Name a file in it.")
    } else if !kind.is_file() {
        refused(
            "not a regular file",
            "Name a regular file, or one that does not exist.",
        )
    } else if replace == Replace::Forced {
        Ok(())
    } else {
        Err(exists(path, replace))
    }
}

fn exists(path: &Path, replace: Replace) -> Failure {
    let advice = match replace {
        Replace::Never => "Name another file, or move this one away.",
        Replace::WithForce | Replace::Forced => "Name another file, or give --force to replace it.",
    };
    Failure::new(Class::Exists, "exists already", advice).file(path)
}

fn unwritable(path: &Path, error: &io::Error, exit: ExitCode) -> Failure {
    Failure::new(
        Class::Io,
        format!("cannot be written: {}", plain_words(error)),
        "Check the directory, its permissions and the space on its disk; no part of the file is \
         left.",
    )
    .file(path)
    .exit(exit)
}
