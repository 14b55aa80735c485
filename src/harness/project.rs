//! Collecting a project's files from a folder.
//!
//! The folder may belong to someone else. Links are not followed, also when a
//! directory is swapped for one while it is read: every step opens one name
//! below an open directory. No file is dropped without a word.

use std::{
    ffi::OsStr,
    fs::File,
    io,
    os::{
        fd::{AsFd, OwnedFd},
        unix::ffi::OsStrExt,
    },
    path::{Path, PathBuf},
};

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};
use plimsoll_wire::{
    limits::{MAX_FILES, MAX_FILES_BYTES},
    proto::ProjectFile,
    validate::{self, PathFault},
};
use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, fstat, openat, statat};

use crate::files::{ReadError, read_limited};

/// Names looked at in one folder tree; more is no project for a sandbox.
pub const MAX_ENTRIES: usize = 200_000;
/// Directories inside one another.
pub const MAX_DEPTH: usize = 128;
/// Exclude patterns.
pub const MAX_PATTERNS: usize = 1000;

/// Which files of a folder are sent.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    patterns: GlobSet,
    skip_binary: bool,
}

/// A pattern that is not valid, or too many of them.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Not a valid pattern.
    #[error("the pattern is not valid: {0}")]
    Invalid(#[from] globset::Error),
    /// More than [`MAX_PATTERNS`].
    #[error("more than {MAX_PATTERNS} patterns")]
    TooMany,
}

impl Selection {
    /// Leaves out paths that match a pattern. A pattern is matched on the path
    /// below the folder; `*` stays within a segment, `**` crosses `/`. A
    /// directory that matches is left out whole. With `skip_binary` files that
    /// are not UTF-8 are left out and listed, else they are refused.
    ///
    /// # Errors
    /// [`PatternError`].
    pub fn new<P: AsRef<str>>(exclude: &[P], skip_binary: bool) -> Result<Self, PatternError> {
        if exclude.len() > MAX_PATTERNS {
            return Err(PatternError::TooMany);
        }
        let mut set = GlobSetBuilder::new();
        for pattern in exclude {
            set.add(
                GlobBuilder::new(pattern.as_ref())
                    .literal_separator(true)
                    .build()?,
            );
        }
        Ok(Selection {
            patterns: set.build()?,
            skip_binary,
        })
    }

    fn excludes(&self, path: &[u8]) -> bool {
        self.patterns.is_match(OsStr::from_bytes(path))
    }
}

/// Something below the folder that is not sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// Its path below the folder; data, to be escaped.
    pub path: PathBuf,
    /// Why it is not sent.
    pub what: What,
}

/// Why something is not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Not UTF-8, and binary files are to be left out.
    Binary,
    /// A block or character device.
    Device,
    /// A FIFO.
    Fifo,
    /// A symbolic link; never followed.
    Link,
    /// A socket.
    Socket,
}

/// A project's files, sorted by path bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Collected {
    /// The files.
    pub files: Vec<ProjectFile>,
    /// What was left out, to be told.
    pub left_out: Vec<LeftOut>,
}

/// A file and its size in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sized {
    /// Path below the folder; data, to be escaped.
    pub path: PathBuf,
    /// Bytes.
    pub bytes: u64,
}

/// Why a folder is not a project that can be sent.
#[derive(Debug, thiserror::Error)]
pub enum ProjectError {
    /// A file's content is not UTF-8.
    #[error("a file is not UTF-8")]
    Binary {
        /// The file.
        path: PathBuf,
    },
    /// Directories nest too deep.
    #[error("directories nest deeper than {MAX_DEPTH}")]
    Deep {
        /// The directory.
        path: PathBuf,
    },
    /// More names than [`MAX_ENTRIES`].
    #[error("the folder holds more than {MAX_ENTRIES} names")]
    Entries,
    /// The system's reason; `path` is below the folder, empty for itself.
    #[error("{error}")]
    Io {
        /// Where.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// More files or bytes than a request holds.
    #[error(
        "the project has {files} files of {bytes} bytes; at most {MAX_FILES} files of {MAX_FILES_BYTES} bytes are sent"
    )]
    Large {
        /// Files found.
        files: usize,
        /// Their bytes together.
        bytes: u64,
        /// The ten largest, largest first.
        largest: Vec<Sized>,
    },
    /// A path that the wire refuses.
    #[error("a path cannot be sent")]
    Path {
        /// The path.
        path: PathBuf,
        /// What is wrong with it; `None` when it is not UTF-8.
        fault: Option<PathFault>,
    },
}

/// Collects the files below `folder`. `.git` directories are left out. The
/// folder itself may be named through a link.
///
/// # Errors
/// [`ProjectError`]; limits are judged over all files, before any is dropped.
pub fn collect(folder: &Path, selection: &Selection) -> Result<Collected, ProjectError> {
    let root = openat(
        CWD,
        folder,
        OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
        Mode::empty(),
    )
    .map_err(|error| io_at(&[], error))?;
    let mut walk = Walk {
        selection,
        entries: 0,
        found: Vec::new(),
        left_out: Vec::new(),
    };
    walk.directory(&root, &[], 0)?;
    walk.finish()
}

/// A file that is to be sent.
struct Found {
    path: Vec<u8>,
    bytes: u64,
    /// Dropped again when the project turns out too large.
    content: Option<String>,
}

struct Walk<'s> {
    selection: &'s Selection,
    entries: usize,
    found: Vec<Found>,
    left_out: Vec<LeftOut>,
}

impl Walk<'_> {
    fn directory(
        &mut self,
        directory: &OwnedFd,
        path: &[u8],
        depth: usize,
    ) -> Result<(), ProjectError> {
        if depth > MAX_DEPTH {
            return Err(ProjectError::Deep {
                path: path_of(path),
            });
        }
        let mut names = Vec::new();
        for entry in Dir::read_from(directory).map_err(|e| io_at(path, e))? {
            let entry = entry.map_err(|e| io_at(path, e))?;
            let name = entry.file_name().to_bytes();
            if !matches!(name, b"." | b"..") {
                self.entries += 1;
                if self.entries > MAX_ENTRIES {
                    return Err(ProjectError::Entries);
                }
                names.push(name.to_vec());
            }
        }
        // Warnings come in one order whatever the file system's is.
        names.sort_unstable();
        for name in names {
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(&name);
            if !self.selection.excludes(&below) {
                self.entry(directory, &name, below, depth)?;
            }
        }
        Ok(())
    }

    fn entry(
        &mut self,
        directory: &OwnedFd,
        name: &[u8],
        path: Vec<u8>,
        depth: usize,
    ) -> Result<(), ProjectError> {
        let name = OsStr::from_bytes(name);
        let facts =
            statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| io_at(&path, e))?;
        let what = match FileType::from_raw_mode(facts.st_mode) {
            FileType::Directory if name == ".git" => return Ok(()),
            FileType::Directory => {
                let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
                let inner =
                    openat(directory, name, flags, Mode::empty()).map_err(|e| io_at(&path, e))?;
                return self.directory(&inner, &path, depth + 1);
            }
            FileType::RegularFile => return self.file(directory, name, path),
            FileType::Symlink => What::Link,
            FileType::Fifo => What::Fifo,
            FileType::Socket => What::Socket,
            _ => What::Device,
        };
        self.leave_out(&path, what);
        Ok(())
    }

    fn file(
        &mut self,
        directory: &OwnedFd,
        name: &OsStr,
        path: Vec<u8>,
    ) -> Result<(), ProjectError> {
        // Not blocking: the name may have become a FIFO's since it was looked at.
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = openat(directory, name, flags, Mode::empty()).map_err(|e| io_at(&path, e))?;
        let facts = fstat(file.as_fd()).map_err(|e| io_at(&path, e))?;
        if FileType::from_raw_mode(facts.st_mode) != FileType::RegularFile {
            self.leave_out(&path, What::Device);
            return Ok(());
        }
        let stated = u64::try_from(facts.st_size).unwrap_or(0);
        let bytes = match read_limited(File::from(file), MAX_FILES_BYTES) {
            Ok(bytes) => bytes,
            Err(ReadError::Io(error)) => {
                return Err(ProjectError::Io {
                    path: path_of(&path),
                    error,
                });
            }
            Err(_) => {
                self.found.push(Found {
                    path,
                    bytes: stated.max(MAX_FILES_BYTES as u64 + 1),
                    content: None,
                });
                return Ok(());
            }
        };
        let size = bytes.len() as u64;
        match String::from_utf8(bytes) {
            Ok(content) => {
                // Over a limit nothing is sent, so no content is kept either:
                // a large tree does not fill memory before it is refused.
                let total: u64 = self.found.iter().map(|f| f.bytes).sum();
                let fits = self.found.len() < MAX_FILES && total + size <= MAX_FILES_BYTES as u64;
                self.found.push(Found {
                    path,
                    bytes: size,
                    content: fits.then_some(content),
                });
            }
            Err(_) if self.selection.skip_binary => self.leave_out(&path, What::Binary),
            Err(_) => {
                return Err(ProjectError::Binary {
                    path: path_of(&path),
                });
            }
        }
        Ok(())
    }

    fn leave_out(&mut self, path: &[u8], what: What) {
        self.left_out.push(LeftOut {
            path: path_of(path),
            what,
        });
    }

    fn finish(mut self) -> Result<Collected, ProjectError> {
        let bytes: u64 = self.found.iter().map(|f| f.bytes).sum();
        if self.found.len() > MAX_FILES || bytes > MAX_FILES_BYTES as u64 {
            let files = self.found.len();
            self.found.sort_by_key(|f| std::cmp::Reverse(f.bytes));
            let largest = self.found.iter().take(10).map(|f| Sized {
                path: path_of(&f.path),
                bytes: f.bytes,
            });
            return Err(ProjectError::Large {
                files,
                bytes,
                largest: largest.collect(),
            });
        }
        self.found.sort_by(|a, b| a.path.cmp(&b.path));
        let mut files = Vec::with_capacity(self.found.len());
        for found in self.found {
            let bad = |fault| ProjectError::Path {
                path: path_of(&found.path),
                fault,
            };
            let path = std::str::from_utf8(&found.path).map_err(|_| bad(None))?;
            validate::path(path).map_err(|fault| bad(Some(fault)))?;
            files.push(ProjectFile {
                path: path.to_owned(),
                content: found.content.unwrap_or_default(),
            });
        }
        Ok(Collected {
            files,
            left_out: self.left_out,
        })
    }
}

fn path_of(path: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(path))
}

fn io_at(path: &[u8], error: rustix::io::Errno) -> ProjectError {
    ProjectError::Io {
        path: path_of(path),
        error: error.into(),
    }
}

#[cfg(test)]
#[path = "project_tests.rs"]
mod tests;
