//! Reading inputs.

use std::fs::File;
use std::io::{self, IsTerminal as _, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use super::plain_words;
use crate::class::Class;
use crate::failure::Failure;
use crate::output::Console;

/// Whether `-` stands for standard input in a place.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Dash {
    /// It does, and pipes named by a path are read too.
    Allowed,
    /// It does not: the input is read twice, locked or secret.
    Refused,
}

/// The inputs of one command, which may name standard input once.
pub struct Inputs<'a> {
    console: &'a Console,
    stdin_used: AtomicBool,
}

/// An open input.
#[derive(Debug)]
pub struct Input {
    path: PathBuf,
    source: Source,
    /// Size at the time of opening, when it is a regular file.
    size: Option<u64>,
}

#[derive(Debug)]
enum Source {
    File(File),
    Stdin(io::Stdin),
}

impl<'a> Inputs<'a> {
    /// The inputs of a command that prints on `console`.
    #[must_use]
    pub fn new(console: &'a Console) -> Self {
        Self {
            console,
            stdin_used: AtomicBool::new(false),
        }
    }

    /// Opens an input.
    ///
    /// # Errors
    /// Class `io` (exit 2) when it cannot be opened or is a directory, a socket, a device, or a
    /// pipe where `-` is refused; class `usage` for `-` where it is refused or named twice.
    pub fn open(&self, path: &Path, dash: Dash) -> Result<Input, Failure> {
        if path.as_os_str() == "-" {
            return self.stdin(dash);
        }
        let (file, size) = open_file(path, dash)?;
        Ok(Input {
            path: path.to_owned(),
            source: Source::File(file),
            size,
        })
    }

    /// Opens an input and reads all of it, at most `limit` bytes.
    ///
    /// # Errors
    /// As [`Inputs::open`] and [`Input::read_all`].
    pub fn read(&self, path: &Path, dash: Dash, limit: u64) -> Result<Vec<u8>, Failure> {
        self.open(path, dash)?.read_all(limit)
    }

    fn stdin(&self, dash: Dash) -> Result<Input, Failure> {
        if dash == Dash::Refused {
            return Err(Failure::new(
                Class::Usage,
                "- (standard input) is not allowed here",
                "Name a file: this input is read twice, locked or secret.",
            ));
        }
        if self.stdin_used.swap(true, Ordering::SeqCst) {
            return Err(Failure::new(
                Class::Usage,
                "standard input is named more than once",
                "Use - for one input and files for the others.",
            ));
        }
        let stdin = io::stdin();
        if stdin.is_terminal() {
            self.console
                .note("reading standard input; end it with Ctrl-D");
        }
        Ok(Input {
            path: PathBuf::from("-"),
            source: Source::Stdin(stdin),
            size: None,
        })
    }
}

impl Input {
    /// Its path as given, `-` for standard input.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its size when opened, known for regular files only; it may grow while it is read.
    #[must_use]
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// The file behind it, unless it is standard input: for permission checks and locks.
    #[must_use]
    pub fn file(&self) -> Option<&File> {
        match &self.source {
            Source::File(file) => Some(file),
            Source::Stdin(_) => None,
        }
    }

    /// Reads all of it, at most `limit` bytes; more is refused before it is held.
    ///
    /// # Errors
    /// Class `io`, exit 2.
    pub fn read_all(mut self, limit: u64) -> Result<Vec<u8>, Failure> {
        let too_large = |path: &Path| {
            Failure::new(
                Class::Io,
                format!("is larger than {limit} bytes"),
                "Give the right file; this is more than the command reads for this input.",
            )
            .file(path)
        };
        if self.size.is_some_and(|size| size > limit) {
            return Err(too_large(&self.path));
        }
        let mut bytes = Vec::new();
        let path = self.path.clone();
        // One byte beyond the limit shows that there is more, whatever the size said.
        let read = Read::take(&mut self, limit.saturating_add(1)).read_to_end(&mut bytes);
        if let Err(error) = read {
            return Err(unreadable(&path, &error));
        }
        if bytes.len() as u64 > limit {
            return Err(too_large(&path));
        }
        Ok(bytes)
    }

    /// The failure for a read error on this input.
    #[must_use]
    pub fn fault(&self, error: &io::Error) -> Failure {
        unreadable(&self.path, error)
    }
}

impl Read for Input {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &mut self.source {
            Source::File(file) => file.read(buffer),
            Source::Stdin(stdin) => stdin.read(buffer),
        }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    let advice = match error.kind() {
        io::ErrorKind::NotFound => "Check the path; nothing was read.",
        io::ErrorKind::PermissionDenied => "Make it readable for this user, or name another file.",
        io::ErrorKind::IsADirectory => "Name a file in it.",
        _ => "Check the file and the disk it is on.",
    };
    Failure::new(
        Class::Io,
        format!("cannot be read: {}", plain_words(error)),
        advice,
    )
    .file(path)
}

fn refused(path: &Path, what: &str) -> Failure {
    Failure::new(
        Class::Io,
        format!("cannot be read: {what}"),
        "Name a regular file.",
    )
    .file(path)
}

/// Opens without waiting, looks at what was opened, and refuses what would block or never end.
#[cfg(unix)]
fn open_file(path: &Path, dash: Dash) -> Result<(File, Option<u64>), Failure> {
    use rustix::event::{PollFd, PollFlags, poll};
    use rustix::fs::OFlags;
    use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _};

    // Without O_NONBLOCK the open itself would wait for the other end of a pipe; with O_NOCTTY a
    // terminal device does not become ours.
    let flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    let file = File::options()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            // A socket cannot be opened by its path.
            Some(code) if code == rustix::io::Errno::NXIO.raw_os_error() => {
                refused(path, "is a socket or a device without a driver")
            }
            _ => unreadable(path, &error),
        })?;
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    let kind = metadata.file_type();
    if kind.is_file() {
        return Ok((file, Some(metadata.len())));
    }
    let what = if kind.is_dir() {
        return Err(unreadable(path, &io::ErrorKind::IsADirectory.into()));
    } else if kind.is_fifo() {
        "is a pipe"
    } else if kind.is_char_device() {
        "is a character device"
    } else if kind.is_block_device() {
        "is a block device"
    } else {
        "is not a regular file"
    };
    if dash == Dash::Refused || kind.is_block_device() || kind.is_socket() {
        return Err(refused(path, what));
    }
    let waits = || -> rustix::io::Result<()> {
        if kind.is_fifo() {
            // A pipe nobody has opened for writing yet would read as empty: wait for the writer.
            while poll(&mut [PollFd::new(&file, PollFlags::IN)], None)
                == Err(rustix::io::Errno::INTR)
            {}
        }
        let flags = rustix::fs::fcntl_getfl(&file)?;
        rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)
    };
    waits().map_err(|error| unreadable(path, &error.into()))?;
    Ok((file, None))
}

#[cfg(not(unix))]
fn open_file(path: &Path, _dash: Dash) -> Result<(File, Option<u64>), Failure> {
    let file = File::open(path).map_err(|error| unreadable(path, &error))?;
    let metadata = file.metadata().map_err(|error| unreadable(path, &error))?;
    if metadata.is_dir() {
        return Err(unreadable(path, &io::ErrorKind::IsADirectory.into()));
    }
    if !metadata.is_file() {
        return Err(refused(path, "is not a regular file"));
    }
    Ok((file, Some(metadata.len())))
}
