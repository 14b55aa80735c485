//! Reading the small files a run is made of.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read},
    os::unix::fs::OpenOptionsExt,
    path::Path,
};

use rustix::fs::OFlags;

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system's reason.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A directory, FIFO, device or socket.
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
pub(crate) fn open_regular(path: &Path) -> Result<File, ReadError> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(OFlags::NONBLOCK.bits() as i32)
        .open(path)?;
    if !file.metadata()?.is_file() {
        return Err(ReadError::NotRegular);
    }
    Ok(file)
}

/// Reads a regular file of at most `limit` bytes; a symbolic link is followed.
pub(crate) fn read_regular(path: &Path, limit: usize) -> Result<Vec<u8>, ReadError> {
    read_limited(open_regular(path)?, limit)
}

/// Reads to the end, and stops one byte past `limit`: the size a file states
/// is not the size it has when it is read.
pub(crate) fn read_limited(source: impl Read, limit: usize) -> Result<Vec<u8>, ReadError> {
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
        assert!(matches!(
            read_regular(folder.path(), 4),
            Err(ReadError::NotRegular)
        ));
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
