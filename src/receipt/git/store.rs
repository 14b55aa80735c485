//! Objects by name, each hashed again.

use std::{
    io::{BufRead, BufReader, Read, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
};

use super::{
    GitError, Kind, Oid, Place,
    object::{Algorithm, Commit, Hasher},
};

/// Largest commit or tree that is read.
pub const MAX_META_BYTES: u64 = 32 << 20;

/// An object store: a `git cat-file` that runs in a repository of our own.
pub struct Store {
    home: tempfile::TempDir,
    algorithm: Algorithm,
    child: Child,
    questions: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Store {
    /// Opens the objects of a clone, named with `algorithm`.
    ///
    /// # Errors
    /// [`GitError::Io`]: git is not installed, or no temporary directory.
    pub fn open(place: &Place, algorithm: Algorithm) -> Result<Store, GitError> {
        let home = home(&place.objects(), algorithm)
            .map_err(|error| GitError::Io("no temporary repository could be made", error))?;
        let mut child = command(home.path())
            .args(["cat-file", "--batch"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|error| GitError::Io("git could not be started", error))?;
        let (Some(questions), Some(answers)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(GitError::Answer);
        };
        Ok(Store {
            home,
            algorithm,
            child,
            questions: Some(questions),
            answers: BufReader::with_capacity(64 << 10, answers),
        })
    }

    /// The hash objects are named with.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// A git command in the same repository of our own.
    pub(super) fn command(&self) -> Command {
        command(self.home.path())
    }

    /// Reads a commit.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn commit(&mut self, oid: &Oid) -> Result<Commit, GitError> {
        let bytes = self.meta(Kind::Commit, oid)?;
        Commit::read(oid, &bytes)
    }

    /// Whether a commit is there and sound.
    ///
    /// # Errors
    /// [`GitError`] but for one that is missing.
    pub fn has_commit(&mut self, oid: &Oid) -> Result<bool, GitError> {
        match self.commit(oid) {
            Ok(_) => Ok(true),
            Err(GitError::Missing(..)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    pub(super) fn meta(&mut self, kind: Kind, oid: &Oid) -> Result<Vec<u8>, GitError> {
        match self.read(kind, oid, MAX_META_BYTES)? {
            Content::Whole(bytes) => Ok(bytes),
            Content::Large(_) => Err(GitError::Limit("a commit or tree has more than 32 MiB")),
        }
    }

    /// Reads an object. Over `most` bytes it is hashed and not kept.
    ///
    /// # Errors
    /// [`GitError`].
    pub fn read(&mut self, kind: Kind, oid: &Oid, most: u64) -> Result<Content, GitError> {
        if oid.algorithm() != self.algorithm {
            return Err(GitError::Missing(kind, oid.clone()));
        }
        let failed = |error| GitError::Io("git ended early", error);
        let questions = self.questions.as_mut().ok_or(GitError::Answer)?;
        questions
            .write_all(format!("{oid}\n").as_bytes())
            .and_then(|()| questions.flush())
            .map_err(failed)?;
        let mut head = String::new();
        (&mut self.answers)
            .take(256)
            .read_line(&mut head)
            .map_err(failed)?;
        let mut words = head.trim_end().split(' ');
        if words.next() != Some(oid.as_str()) {
            return Err(GitError::Answer);
        }
        let found = words.next();
        let Some(size) = words.next().and_then(|size| size.parse::<u64>().ok()) else {
            return match found {
                Some("missing") => Err(GitError::Missing(kind, oid.clone())),
                _ => Err(GitError::Answer),
            };
        };
        let mut hasher = Hasher::new(self.algorithm, kind, size);
        let mut kept = Vec::new();
        let mut left = size;
        let mut buffer = [0; 16 << 10];
        while left > 0 {
            let room = usize::try_from(left)
                .unwrap_or(usize::MAX)
                .min(buffer.len());
            let (part, _) = buffer.split_at_mut(room);
            self.answers.read_exact(part).map_err(failed)?;
            hasher.update(part);
            if size <= most {
                kept.extend_from_slice(part);
            }
            left -= room as u64;
        }
        let mut newline = [0];
        self.answers.read_exact(&mut newline).map_err(failed)?;
        if found != Some(kind.word()) {
            return Err(GitError::Form {
                oid: oid.clone(),
                what: "it is of another kind",
            });
        }
        match hasher.finish() {
            None => Err(GitError::Collision(oid.clone())),
            Some(name) if name != *oid => Err(GitError::Hash(oid.clone())),
            Some(_) if size <= most => Ok(Content::Whole(kept)),
            Some(_) => Ok(Content::Large(size)),
        }
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        // Its input's end is its end; killed too, should it not listen.
        drop(self.questions.take());
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// An object's bytes.
#[derive(Debug, Eq, PartialEq)]
pub enum Content {
    /// All of them.
    Whole(Vec<u8>),
    /// Too many to be kept; their number. They were hashed.
    Large(u64),
}

/// A bare repository without a name in it, that borrows an object store.
fn home(objects: &Path, algorithm: Algorithm) -> std::io::Result<tempfile::TempDir> {
    use std::os::unix::ffi::OsStrExt as _;
    let home = tempfile::Builder::new().prefix("plimsoll-git-").tempdir()?;
    let objects: PathBuf = objects.canonicalize()?;
    let mut line = objects.as_os_str().as_bytes().to_vec();
    if line.contains(&b'\n') || line.first() == Some(&b'"') {
        return Err(std::io::Error::new(
            std::io::ErrorKind::InvalidInput,
            "the path of the object store holds a line break or quote",
        ));
    }
    line.push(b'\n');
    let path = home.path();
    std::fs::create_dir_all(path.join("objects/info"))?;
    std::fs::create_dir_all(path.join("refs"))?;
    std::fs::write(path.join("objects/info/alternates"), line)?;
    std::fs::write(path.join("HEAD"), "ref: refs/heads/none\n")?;
    let version = match algorithm {
        Algorithm::Sha1 => "0\n",
        Algorithm::Sha256 => "1\n[extensions]\n\tobjectformat = sha256\n",
    };
    // A commit graph beside the objects is not hashed by anyone: not used.
    let version = format!(
        "[core]\n\tbare = true\n\tcommitGraph = false\n\trepositoryformatversion = {version}"
    );
    std::fs::write(path.join("config"), version)?;
    Ok(home)
}

/// Git with nothing of its surroundings: no configuration of system or user,
/// no replacement, graft or lazy fetch, no way to ask or to reach out.
fn command(home: &Path) -> Command {
    let mut command = Command::new("git");
    command.env_clear();
    if let Some(path) = std::env::var_os("PATH") {
        command.env("PATH", path);
    }
    command
        .env("GIT_DIR", home)
        .env("HOME", home)
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_ATTR_NOSYSTEM", "1")
        .env("GIT_NO_REPLACE_OBJECTS", "1")
        .env("GIT_GRAFT_FILE", "/dev/null")
        .env("GIT_NO_LAZY_FETCH", "1")
        .env("GIT_ALLOW_PROTOCOL", "none")
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("GIT_OPTIONAL_LOCKS", "0")
        .current_dir(home)
        .stdin(Stdio::null())
        .stderr(Stdio::null());
    command
}
