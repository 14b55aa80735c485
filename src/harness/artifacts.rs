//! Writing returned artifacts to a folder.
//!
//! Their paths come from a daemon and their contents from a guest. Each path
//! is checked again by the rule of the wire, every step opens one name below
//! an open directory, nothing is followed and nothing replaced.

use std::{
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::{fd::OwnedFd, unix::ffi::OsStrExt},
    path::{Path, PathBuf},
};

use plimsoll_wire::{
    proto::{Artifact, RunResponse, run_response::Result as RunResult},
    validate,
};
use rustix::fs::{CWD, Dir, Mode, OFlags, mkdirat, openat};

/// Why artifacts were not all written.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system's reason.
    #[error("{error}")]
    Io {
        /// The folder or file; data, to be escaped.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The folder holds something already.
    #[error("the folder for artifacts is not empty")]
    NotEmpty {
        /// The folder.
        path: PathBuf,
    },
    /// A path that leads elsewhere.
    #[error("an artifact's path is not safe")]
    UnsafePath {
        /// The path; data, to be escaped.
        path: PathBuf,
    },
}

/// A folder that is there and was empty when the run began.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
}

impl Folder {
    /// Makes the folder, or takes an empty one. Before the run, so that a
    /// folder that cannot be used is told before any code runs.
    ///
    /// # Errors
    /// [`SaveError`].
    pub fn prepare(path: &Path) -> Result<Folder, SaveError> {
        let failed = |error: rustix::io::Errno| SaveError::Io {
            path: path.to_owned(),
            error: error.into(),
        };
        match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) | Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(failed(error)),
        }
        let descriptor = open_directory(CWD, path.as_os_str()).map_err(failed)?;
        for entry in Dir::read_from(&descriptor).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if !matches!(entry.file_name().to_bytes(), b"." | b"..") {
                return Err(SaveError::NotEmpty {
                    path: path.to_owned(),
                });
            }
        }
        Ok(Folder {
            path: path.to_owned(),
            descriptor,
        })
    }

    /// Writes the artifacts of an answer, mode 0600, and gives their count.
    ///
    /// # Errors
    /// [`SaveError`]; what was written before it stays.
    pub fn save(&self, response: &RunResponse) -> Result<usize, SaveError> {
        let Some(RunResult::Project(project)) = &response.result else {
            return Ok(0);
        };
        for artifact in &project.artifacts {
            self.write(artifact)?;
        }
        Ok(project.artifacts.len())
    }

    fn write(&self, artifact: &Artifact) -> Result<(), SaveError> {
        if validate::path(&artifact.path).is_err() {
            return Err(SaveError::UnsafePath {
                path: artifact.path.clone().into(),
            });
        }
        self.write_below(artifact).map_err(|error| SaveError::Io {
            path: self.path.join(&artifact.path),
            error,
        })
    }

    fn write_below(&self, artifact: &Artifact) -> io::Result<()> {
        let mut directory = self.descriptor.try_clone()?;
        let mut segments = artifact.path.split('/').peekable();
        while let Some(segment) = segments.next() {
            let name = OsStr::from_bytes(segment.as_bytes());
            if segments.peek().is_some() {
                match mkdirat(&directory, name, Mode::RWXU) {
                    Ok(()) | Err(rustix::io::Errno::EXIST) => {}
                    Err(error) => return Err(error.into()),
                }
                directory = open_directory(&directory, name)?;
                continue;
            }
            let flags =
                OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = openat(&directory, name, flags, Mode::RUSR | Mode::WUSR)?;
            File::from(file).write_all(&artifact.content)?;
        }
        Ok(())
    }
}

fn open_directory(at: impl std::os::fd::AsFd, name: &OsStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    openat(at, name, flags, Mode::empty())
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        os::unix::fs::{PermissionsExt, symlink},
    };

    use plimsoll_wire::proto::ProjectResult;

    use super::*;

    fn response(artifacts: &[(&str, &[u8])]) -> RunResponse {
        let artifacts = artifacts.iter().map(|(path, content)| Artifact {
            path: (*path).into(),
            content: content.to_vec(),
        });
        RunResponse {
            result: Some(RunResult::Project(Box::new(ProjectResult {
                artifacts: artifacts.collect(),
                ..Default::default()
            }))),
            ..Default::default()
        }
    }

    #[test]
    fn written_below_the_folder() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        let folder = Folder::prepare(&path).unwrap();
        let saved = folder.save(&response(&[
            ("a/b/c", b"\xff\x00"),
            ("a/d", b""),
            ("e", b"1"),
        ]));
        assert_eq!(saved.unwrap(), 3);
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"\xff\x00");
        let mode = |p: &str| fs::metadata(path.join(p)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a/b/c"), mode("a")), (0o600, 0o700));
        assert!(matches!(
            Folder::prepare(&path),
            Err(SaveError::NotEmpty { .. })
        ));
        assert!(matches!(
            folder.save(&response(&[("e", b"2")])),
            Err(SaveError::Io { .. })
        ));
        assert_eq!(
            fs::read(path.join("e")).unwrap(),
            b"1",
            "nothing is replaced"
        );
        assert_eq!(folder.save(&RunResponse::default()).unwrap(), 0);
    }

    #[test]
    fn paths_that_lead_elsewhere() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        let folder = Folder::prepare(&path).unwrap();
        for bad in ["../x", "/etc/x", "a/../../x", "", "a//b", "a\\b", "a\nb"] {
            let refused = folder.save(&response(&[(bad, b"")]));
            assert!(
                matches!(refused, Err(SaveError::UnsafePath { .. })),
                "{bad:?}"
            );
        }
        symlink(base.path(), path.join("link")).unwrap();
        symlink(base.path().join("target"), path.join("file")).unwrap();
        for through in ["link/x", "file"] {
            let refused = folder.save(&response(&[(through, b"")]));
            assert!(matches!(refused, Err(SaveError::Io { .. })), "{through}");
        }
        assert!(!base.path().join("x").exists() && !base.path().join("target").exists());
        // The folder itself behind a link, or a file.
        let link = base.path().join("outlink");
        symlink(&path, &link).unwrap();
        assert!(matches!(Folder::prepare(&link), Err(SaveError::Io { .. })));
        fs::write(base.path().join("f"), "").unwrap();
        assert!(Folder::prepare(&base.path().join("f")).is_err());
    }
}
