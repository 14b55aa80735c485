//! Where a clone keeps its objects and names, read without asking git: asking
//! would mean to obey the clone's configuration.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

use super::{GitError, Oid};

/// Largest file of packed names.
const MOST_PACKED: u64 = 64 << 20;
/// Largest loose name or pointer file.
const MOST_LOOSE: u64 = 4 << 10;
/// Remotes and names looked at.
const MOST_NAMES: usize = 10_000;

/// A clone.
#[derive(Clone, Debug)]
pub struct Place {
    /// The directory of this work tree's own names.
    own: PathBuf,
    /// The directory of objects and shared names.
    common: PathBuf,
}

impl Place {
    /// Finds the repository at `path`: a work tree, one of several, or bare.
    ///
    /// # Errors
    /// [`GitError::NoRepository`] or [`GitError::Io`].
    pub fn find(path: &Path) -> Result<Place, GitError> {
        let dot = path.join(".git");
        let own = if dot.is_dir() {
            dot
        } else if dot.is_file() {
            let text = read(&dot, MOST_LOOSE)?.ok_or(GitError::NoRepository)?;
            let named = text.trim_end().strip_prefix("gitdir: ");
            path.join(named.ok_or(GitError::NoRepository)?)
        } else {
            path.to_owned()
        };
        let common = match read(&own.join("commondir"), MOST_LOOSE)? {
            Some(text) => own.join(text.trim_end()),
            None => own.clone(),
        };
        if !common.join("objects").is_dir() || !own.join("HEAD").exists() {
            return Err(GitError::NoRepository);
        }
        Ok(Place { own, common })
    }

    /// The object store.
    #[must_use]
    pub fn objects(&self) -> PathBuf {
        self.common.join("objects")
    }

    /// The commit a full name such as `refs/heads/main` stands for; `None` when
    /// there is none. A name that leaves the repository is none.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn read_ref(&self, name: &str) -> Result<Option<Oid>, GitError> {
        let mut name = name.to_owned();
        for _ in 0..5 {
            if !is_name(&name) {
                return Ok(None);
            }
            let own = read(&self.own.join(&name), MOST_LOOSE)?;
            let text = match own {
                Some(text) => Some(text),
                None => read(&self.common.join(&name), MOST_LOOSE)?,
            };
            let Some(text) = text else {
                return Ok(self
                    .packed()?
                    .into_iter()
                    .find_map(|(n, oid)| (n == name).then_some(oid)));
            };
            match text.trim_end().strip_prefix("ref: ") {
                Some(next) => name = next.trim().to_owned(),
                None => return Ok(Oid::parse(text.trim_end())),
            }
        }
        Ok(None)
    }

    /// What a person means by a word: a full commit, a full name, a remote's
    /// branch such as `origin/main`, a branch.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn resolve(&self, word: &str) -> Result<Option<Oid>, GitError> {
        if let Some(oid) = Oid::parse(word) {
            return Ok(Some(oid));
        }
        if word == "HEAD" || word.starts_with("refs/") {
            return self.read_ref(word);
        }
        for prefix in ["refs/remotes/", "refs/heads/", "refs/tags/"] {
            if let Some(oid) = self.read_ref(&format!("{prefix}{word}"))? {
                return Ok(Some(oid));
            }
        }
        Ok(None)
    }

    /// Heads this clone has for a pull request: `refs/pull/<n>/head` and
    /// `refs/remotes/*/pr/<n>`; each once.
    ///
    /// # Errors
    /// [`GitError::Io`].
    pub fn pull_request_heads(&self, number: u64) -> Result<Vec<Oid>, GitError> {
        let mut names = vec![format!("refs/pull/{number}/head")];
        match fs::read_dir(self.common.join("refs/remotes")) {
            Ok(remotes) => {
                for remote in remotes.take(MOST_NAMES) {
                    let remote = remote.map_err(|e| GitError::Io("names cannot be listed", e))?;
                    if let Some(remote) = remote.file_name().to_str() {
                        names.push(format!("refs/remotes/{remote}/pr/{number}"));
                    }
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(GitError::Io("names cannot be listed", error)),
        }
        let mut heads = Vec::new();
        for name in &names {
            heads.extend(self.read_ref(name)?);
        }
        let suffix = format!("/pr/{number}");
        for (name, oid) in self.packed()? {
            let remote = name
                .strip_prefix("refs/remotes/")
                .and_then(|rest| rest.strip_suffix(&suffix));
            if remote.is_some_and(|remote| !remote.contains('/')) {
                heads.push(oid);
            }
        }
        heads.sort();
        heads.dedup();
        Ok(heads)
    }

    fn packed(&self) -> Result<Vec<(String, Oid)>, GitError> {
        let Some(text) = read(&self.common.join("packed-refs"), MOST_PACKED)? else {
            return Ok(Vec::new());
        };
        Ok(text
            .lines()
            .filter_map(|line| line.split_once(' '))
            .filter_map(|(oid, name)| Some((name.to_owned(), Oid::parse(oid)?)))
            .collect())
    }
}

/// Whether a name stays below the repository's directory of names.
fn is_name(name: &str) -> bool {
    let safe = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && !part.contains(|c: char| c.is_control() || matches!(c, '\\' | ':' | '~' | '^'))
    };
    (name == "HEAD" || name.starts_with("refs/")) && name.split('/').all(safe)
}

/// A regular file's text; `None` when there is none, or it is a directory.
fn read(path: &Path, most: u64) -> Result<Option<String>, GitError> {
    use std::io::Read as _;
    let failed = |error| GitError::Io("a name cannot be read", error);
    match fs::metadata(path) {
        Ok(facts) if facts.is_file() => {}
        Ok(_) => return Ok(None),
        Err(error) => {
            return match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::NotADirectory => Ok(None),
                _ => Err(failed(error)),
            };
        }
    }
    let mut text = Vec::new();
    let file = fs::File::open(path).map_err(failed)?;
    file.take(most + 1).read_to_end(&mut text).map_err(failed)?;
    if text.len() as u64 > most {
        return Err(GitError::Limit("a file of names is too large"));
    }
    Ok(String::from_utf8(text).ok())
}
