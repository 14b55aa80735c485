//! Writing returned artifacts to a folder.
//!
//! Their paths come from a daemon and their contents from a guest. Only what
//! was asked for is written, each path is checked again by the rule of the
//! wire, every step opens one name below an open directory, nothing is followed
//! and nothing replaced. Either all are written or none is left.

use std::{
    collections::HashSet,
    ffi::OsStr,
    fs::File,
    io::{self, Write},
    os::fd::OwnedFd,
    path::{Path, PathBuf},
};

use plimsoll_wire::{
    limits::MAX_ARTIFACTS,
    proto::{
        Artifact, RunRequest, RunResponse, run_request::Payload, run_response::Result as RunResult,
    },
    validate,
};
use rustix::fs::{AtFlags, CWD, Dir, Mode, OFlags, mkdirat, openat, unlinkat};

/// Why artifacts were not written.
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
    /// More came than a request may ask for.
    #[error("the answer holds {count} artifacts; at most {MAX_ARTIFACTS} can be asked for")]
    Many {
        /// The folder.
        path: PathBuf,
        /// How many came.
        count: usize,
    },
    /// One came that the request did not ask for, or came twice.
    #[error("an artifact was not asked for, or came twice")]
    NotAsked {
        /// The path; data, to be escaped.
        path: PathBuf,
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

impl SaveError {
    /// The folder or file it is about, or the artifact's own path; data, to be
    /// escaped.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            SaveError::Io { path, .. }
            | SaveError::Many { path, .. }
            | SaveError::NotAsked { path }
            | SaveError::NotEmpty { path }
            | SaveError::UnsafePath { path } => path,
        }
    }
}

/// A folder that is there and was empty when the run began.
#[derive(Debug)]
pub struct Folder {
    path: PathBuf,
    descriptor: OwnedFd,
    made: bool,
}

/// What was made below the folder, in order: relative paths.
#[derive(Default)]
struct Made(Vec<(PathBuf, AtFlags)>);

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
        let made = match mkdirat(CWD, path, Mode::RWXU) {
            Ok(()) => true,
            Err(rustix::io::Errno::EXIST) => false,
            Err(error) => return Err(failed(error)),
        };
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
            made,
        })
    }

    /// Removes the folder again when this run made it and nothing is in it.
    pub fn abandon(self) {
        if self.made {
            let _ = unlinkat(CWD, &self.path, AtFlags::REMOVEDIR);
        }
    }

    /// Writes the artifacts of an answer to its request, mode 0600, and gives
    /// their count.
    ///
    /// # Errors
    /// [`SaveError`]; nothing that was written is left.
    pub fn save(self, request: &RunRequest, response: &RunResponse) -> Result<usize, SaveError> {
        let artifacts: &[Artifact] = match &response.result {
            Some(RunResult::Project(project)) => &project.artifacts,
            _ => &[],
        };
        let mut made = Made::default();
        let saved = asked(&self.path, request, artifacts).and_then(|()| {
            artifacts.iter().try_for_each(|artifact| {
                (self.write_below(artifact, &mut made)).map_err(|error| SaveError::Io {
                    path: self.path.join(&artifact.path),
                    error,
                })
            })
        });
        match saved {
            Ok(()) => Ok(artifacts.len()),
            Err(error) => {
                for (path, kind) in made.0.iter().rev() {
                    // What cannot be removed is named by the error's own path.
                    let _ = self.remove(path, *kind);
                }
                self.abandon();
                Err(error)
            }
        }
    }

    fn write_below(&self, artifact: &Artifact, made: &mut Made) -> io::Result<()> {
        let path = Path::new(&artifact.path);
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        let mut directory = self.descriptor.try_clone()?;
        let mut below = PathBuf::new();
        for segment in path.parent().into_iter().flatten() {
            below.push(segment);
            match mkdirat(&directory, segment, Mode::RWXU) {
                Ok(()) => made.0.push((below.clone(), AtFlags::REMOVEDIR)),
                Err(rustix::io::Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            directory = open_directory(&directory, segment)?;
        }
        let flags =
            OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = openat(&directory, name, flags, Mode::RUSR | Mode::WUSR)?;
        made.0.push((path.to_owned(), AtFlags::empty()));
        File::from(file).write_all(&artifact.content)
    }

    fn remove(&self, path: &Path, kind: AtFlags) -> io::Result<()> {
        let mut directory = self.descriptor.try_clone()?;
        for segment in path.parent().into_iter().flatten() {
            directory = open_directory(&directory, segment)?;
        }
        let name = path.file_name().ok_or(io::ErrorKind::InvalidFilename)?;
        Ok(unlinkat(&directory, name, kind)?)
    }
}

/// Whether each artifact was asked for, comes once and leads nowhere else; all
/// are looked at before the first is written.
fn asked(folder: &Path, request: &RunRequest, artifacts: &[Artifact]) -> Result<(), SaveError> {
    if artifacts.len() > MAX_ARTIFACTS {
        return Err(SaveError::Many {
            path: folder.to_owned(),
            count: artifacts.len(),
        });
    }
    let mut left: HashSet<&str> = match &request.payload {
        Some(Payload::Project(run)) => run.artifacts.iter().map(String::as_str).collect(),
        _ => HashSet::new(),
    };
    for artifact in artifacts {
        let path = || PathBuf::from(&artifact.path);
        if validate::path(&artifact.path).is_err() {
            return Err(SaveError::UnsafePath { path: path() });
        }
        if !left.remove(artifact.path.as_str()) {
            return Err(SaveError::NotAsked { path: path() });
        }
    }
    Ok(())
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

    use plimsoll_wire::proto::{ProjectResult, ProjectRun};

    use super::*;

    fn request(paths: &[&str]) -> RunRequest {
        RunRequest {
            payload: Some(Payload::Project(Box::new(ProjectRun {
                artifacts: paths.iter().map(|path| (*path).into()).collect(),
                ..Default::default()
            }))),
            ..Default::default()
        }
    }

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

    /// Saves artifacts that were all asked for.
    fn save(folder: Folder, artifacts: &[(&str, &[u8])]) -> Result<usize, SaveError> {
        let paths: Vec<_> = artifacts.iter().map(|(path, _)| *path).collect();
        folder.save(&request(&paths), &response(artifacts))
    }

    #[test]
    fn written_below_the_folder() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        let folder = Folder::prepare(&path).unwrap();
        let saved = save(folder, &[("a/b/c", b"\xff\x00"), ("a/d", b""), ("e", b"1")]);
        assert_eq!(saved.unwrap(), 3);
        assert_eq!(fs::read(path.join("a/b/c")).unwrap(), b"\xff\x00");
        let mode = |p: &str| fs::metadata(path.join(p)).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode("a/b/c"), mode("a")), (0o600, 0o700));
        let error = Folder::prepare(&path).unwrap_err();
        assert!(matches!(error, SaveError::NotEmpty { .. }) && error.path() == path);
        let empty = base.path().join("empty");
        let none = Folder::prepare(&empty).unwrap();
        let saved = none.save(&request(&["a"]), &RunResponse::default());
        assert_eq!(saved.unwrap(), 0);
        assert!(empty.is_dir(), "what was asked for is a folder");
    }

    #[test]
    fn only_what_was_asked_for_and_once() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        let asked = request(&["a", "b"]);
        for (came, culprit) in [
            (vec!["a", "c"], "c"),
            (vec!["a", "b", "a"], "a"),
            (vec!["A"], "A"),
        ] {
            let came: Vec<_> = came.iter().map(|path| (*path, b"x".as_slice())).collect();
            let folder = Folder::prepare(&path).unwrap();
            let error = folder.save(&asked, &response(&came)).unwrap_err();
            assert!(matches!(error, SaveError::NotAsked { .. }));
            assert_eq!(error.path(), Path::new(culprit));
            assert!(!path.exists(), "nothing is left of a folder that was made");
        }
        // A request of another kind asks for none.
        let folder = Folder::prepare(&path).unwrap();
        let saved = folder.save(&RunRequest::default(), &response(&[("a", b"x")]));
        assert!(matches!(saved, Err(SaveError::NotAsked { .. })));
        let names: Vec<_> = (0..=MAX_ARTIFACTS).map(|n| n.to_string()).collect();
        let many: Vec<_> = names.iter().map(|n| (n.as_str(), b"".as_slice())).collect();
        let error = save(Folder::prepare(&path).unwrap(), &many).unwrap_err();
        assert!(matches!(error, SaveError::Many { count: 101, .. }));
        assert_eq!(error.path(), path);
        assert_eq!(
            save(Folder::prepare(&path).unwrap(), &many[1..]).unwrap(),
            100
        );
    }

    #[test]
    fn a_failure_leaves_nothing_partial() {
        let base = tempfile::tempdir().unwrap();
        // A folder that was there stays, and what someone else put there since.
        for theirs in [false, true] {
            let path = base.path().join(format!("out{theirs}"));
            fs::create_dir(&path).unwrap();
            let folder = Folder::prepare(&path).unwrap();
            if theirs {
                fs::create_dir(path.join("a")).unwrap();
                fs::write(path.join("a/z"), "theirs").unwrap();
            }
            // A file, and then a directory of the same name.
            let error = save(
                folder,
                &[("a/b/c", b"1"), ("d", b"2"), ("a/x", b"3"), ("d/e", b"4")],
            )
            .unwrap_err();
            assert_eq!(error.path(), path.join("d/e"));
            let left: Vec<_> = fs::read_dir(&path).unwrap().collect();
            assert_eq!(left.len(), usize::from(theirs), "{left:?}");
            if theirs {
                assert_eq!(fs::read_dir(path.join("a")).unwrap().count(), 1);
                assert_eq!(fs::read(path.join("a/z")).unwrap(), b"theirs");
            }
        }
    }

    #[test]
    fn a_folder_that_was_made_for_nothing_is_removed() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        Folder::prepare(&path).unwrap().abandon();
        assert!(!path.exists());
        fs::create_dir(&path).unwrap();
        Folder::prepare(&path).unwrap().abandon();
        assert!(path.exists(), "it was there before");
    }

    #[test]
    fn paths_that_lead_elsewhere() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("out");
        fs::create_dir(&path).unwrap();
        for bad in ["../x", "/etc/x", "a/../../x", "", "a//b", "a\\b", "a\nb"] {
            let refused = save(
                Folder::prepare(&path).unwrap(),
                &[("good", b""), (bad, b"")],
            );
            assert!(
                matches!(refused, Err(SaveError::UnsafePath { .. })),
                "{bad:?}"
            );
            assert!(!path.join("good").exists());
        }
        for through in ["link/x", "file"] {
            let folder = Folder::prepare(&path).unwrap();
            symlink(base.path(), path.join("link")).unwrap();
            symlink(base.path().join("target"), path.join("file")).unwrap();
            let refused = save(folder, &[(through, b"")]);
            assert!(matches!(refused, Err(SaveError::Io { .. })), "{through}");
            fs::remove_file(path.join("link")).unwrap();
            fs::remove_file(path.join("file")).unwrap();
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
