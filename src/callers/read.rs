//! Reading the file: opened once, looked at through that descriptor, bounded.

use std::{
    fs::{File, Metadata, OpenOptions},
    io::{self, Read as _},
    path::Path,
};

use crate::MAX_BYTES;

/// Whether the last part of a path may be a symbolic link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Links {
    /// It may: secrets are often mounted as one.
    Follow,
    /// It may not: what is written to must be what was named.
    Refuse,
}

/// A file that was read.
#[derive(Debug)]
pub struct Source {
    /// Its bytes.
    pub text: Vec<u8>,
    /// What the system said of it when it was opened.
    pub metadata: Metadata,
}

impl Source {
    /// Whether group or others can write it, and so add callers.
    #[must_use]
    pub fn others_can_write(&self) -> bool {
        #[cfg(unix)]
        {
            use std::os::unix::fs::MetadataExt as _;
            self.metadata.mode() & 0o022 != 0
        }
        #[cfg(not(unix))]
        false
    }
}

/// Why a registry's file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's refusal.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// A symbolic link where none may be.
    #[error("is a symbolic link")]
    Link,
    /// A directory, a pipe, a device or a socket.
    #[error("is not a regular file")]
    NotRegular,
    /// More than a registry may have.
    #[error("is larger than {MAX_BYTES} bytes")]
    TooLarge,
}

/// Reads the whole file.
///
/// # Errors
/// [`ReadError`]; never waits for the other end of a pipe.
pub fn read(path: &Path, links: Links) -> Result<Source, ReadError> {
    let file = open(path, links)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(ReadError::NotRegular);
    }
    if metadata.len() > MAX_BYTES {
        return Err(ReadError::TooLarge);
    }
    let mut text = Vec::new();
    // One byte more shows a file that grew meanwhile.
    file.take(MAX_BYTES + 1).read_to_end(&mut text)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(ReadError::TooLarge);
    }
    Ok(Source { text, metadata })
}

#[cfg(unix)]
fn open(path: &Path, links: Links) -> Result<File, ReadError> {
    use rustix::{fs::OFlags, io::Errno};
    use std::os::unix::fs::OpenOptionsExt as _;

    let mut flags = OFlags::NONBLOCK | OFlags::NOCTTY;
    if links == Links::Refuse {
        flags |= OFlags::NOFOLLOW;
    }
    OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits().cast_signed())
        .open(path)
        .map_err(|error| match error.raw_os_error() {
            Some(code) if code == Errno::LOOP.raw_os_error() && links == Links::Refuse => {
                ReadError::Link
            }
            // A socket cannot be opened by its path.
            Some(code) if code == Errno::NXIO.raw_os_error() => ReadError::NotRegular,
            _ => ReadError::Io(error),
        })
}

#[cfg(not(unix))]
fn open(path: &Path, links: Links) -> Result<File, ReadError> {
    if links == Links::Refuse && std::fs::symlink_metadata(path)?.is_symlink() {
        return Err(ReadError::Link);
    }
    Ok(OpenOptions::new().read(true).open(path)?)
}
