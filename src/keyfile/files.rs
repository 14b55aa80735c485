//! Reading the small files a key or a run is made of.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    path::Path,
};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's reason.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A FIFO, device or socket.
    #[error("not a regular file")]
    NotRegular,
    /// Over the limit.
    #[error("over {limit} bytes")]
    TooLarge {
        /// The limit.
        limit: usize,
    },
}

/// Opens a regular file to read. Opening never waits for a FIFO's writer, and
/// what was opened is looked at, not what the name meant before.
///
/// # Errors
/// [`ReadError`].
pub fn open_regular(path: &Path) -> Result<File, ReadError> {
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.custom_flags(rustix::fs::OFlags::NONBLOCK.bits().cast_signed());
    }
    let file = options.open(path)?;
    let kind = file.metadata()?.file_type();
    if kind.is_dir() {
        return Err(io::Error::from(io::ErrorKind::IsADirectory).into());
    }
    if !kind.is_file() {
        return Err(ReadError::NotRegular);
    }
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes; a symbolic link is followed.
///
/// # Errors
/// [`ReadError`].
pub fn read_regular(path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
    read_limited(open_regular(path)?, limit)
}

/// Reads to the end, and stops one byte past `limit`: the size a file states
/// is not the size it has when it is read.
///
/// # Errors
/// [`ReadError`].
pub fn read_limited(source: impl Read, limit: usize) -> Result<Vec<u8>, ReadError> {
    let mut bytes = Vec::new();
    source.take(limit as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_within_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, "12345").unwrap();
        assert_eq!(read_regular(&path, 5).unwrap(), b"12345");
        assert!(matches!(
            read_regular(&path, 4),
            Err(ReadError::TooLarge { limit: 4 })
        ));
        let directory = read_regular(folder.path(), 4);
        assert!(
            matches!(directory, Err(ReadError::Io(e)) if e.kind() == io::ErrorKind::IsADirectory)
        );
        let fifo = folder.path().join("fifo");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &fifo,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::RUSR,
            0,
        )
        .unwrap();
        assert!(matches!(read_regular(&fifo, 4), Err(ReadError::NotRegular)));
        let missing = read_regular(&folder.path().join("none"), 4);
        assert!(matches!(missing, Err(ReadError::Io(e)) if e.kind() == io::ErrorKind::NotFound));
    }
}
