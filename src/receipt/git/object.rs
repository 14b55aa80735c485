//! Names of objects, and commits.

use std::fmt;

use sha1_checked::{CollisionResult, Sha1};
use sha2::{Digest as _, Sha256};

use super::GitError;

/// What an object is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A file's bytes.
    Blob,
    /// A commit.
    Commit,
    /// A directory.
    Tree,
}

impl Kind {
    /// Git's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Kind::Blob => "blob",
            Kind::Commit => "commit",
            Kind::Tree => "tree",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The name of an object: 40 (SHA-1) or 64 (SHA-256) lowercase hex digits.
#[derive(Clone, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Oid(String);

impl Oid {
    /// Takes a full name; nothing shortened, no upper case.
    #[must_use]
    pub fn parse(text: &str) -> Option<Oid> {
        let hex = text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        (hex && matches!(text.len(), 40 | 64)).then(|| Oid(text.to_owned()))
    }

    /// Takes 20 or 32 bytes.
    #[must_use]
    pub fn from_bytes(bytes: &[u8]) -> Option<Oid> {
        matches!(bytes.len(), 20 | 32).then(|| Oid(hex::encode(bytes)))
    }

    /// The hex digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The hash that names are made with here.
    #[must_use]
    pub fn algorithm(&self) -> Algorithm {
        if self.0.len() == 64 {
            Algorithm::Sha256
        } else {
            Algorithm::Sha1
        }
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The hash a repository names its objects with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Algorithm {
    /// SHA-1, as most repositories.
    Sha1,
    /// SHA-256.
    Sha256,
}

impl Algorithm {
    /// Git's word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Algorithm::Sha1 => "sha1",
            Algorithm::Sha256 => "sha256",
        }
    }

    /// Bytes of a name.
    #[must_use]
    pub const fn bytes(self) -> usize {
        match self {
            Algorithm::Sha1 => 20,
            Algorithm::Sha256 => 32,
        }
    }
}

/// Hashes an object piece by piece.
pub struct Hasher(Inner);

enum Inner {
    Sha1(Box<Sha1>),
    Sha256(Box<Sha256>),
}

impl Hasher {
    /// Begins an object of a kind and size.
    #[must_use]
    pub fn new(algorithm: Algorithm, kind: Kind, size: u64) -> Self {
        let mut hasher = Hasher(match algorithm {
            Algorithm::Sha1 => Inner::Sha1(Box::default()),
            Algorithm::Sha256 => Inner::Sha256(Box::default()),
        });
        hasher.update(format!("{kind} {size}\0").as_bytes());
        hasher
    }

    /// Takes the next bytes.
    pub fn update(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Inner::Sha1(sha1) => sha1.update(bytes),
            Inner::Sha256(sha256) => sha256.update(bytes),
        }
    }

    /// The object's name; `None` when its bytes are made to collide.
    #[must_use]
    pub fn finish(self) -> Option<Oid> {
        match self.0 {
            Inner::Sha1(sha1) => match sha1.try_finalize() {
                CollisionResult::Ok(hash) => Oid::from_bytes(&hash),
                CollisionResult::Mitigated(_) | CollisionResult::Collision(_) => None,
            },
            Inner::Sha256(sha256) => Oid::from_bytes(&sha256.finalize()),
        }
    }
}

/// The name of whole bytes as an object; `None` for a made collision.
#[must_use]
pub fn name_of(algorithm: Algorithm, kind: Kind, bytes: &[u8]) -> Option<Oid> {
    let mut hasher = Hasher::new(algorithm, kind, bytes.len() as u64);
    hasher.update(bytes);
    hasher.finish()
}

/// What matters of a commit.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Commit {
    /// Its tree.
    pub tree: Oid,
    /// Its parents, in order.
    pub parents: Vec<Oid>,
}

impl Commit {
    /// Reads a commit's bytes.
    ///
    /// # Errors
    /// [`GitError::Form`].
    pub fn read(oid: &Oid, bytes: &[u8]) -> Result<Commit, GitError> {
        let bad = |what| GitError::Form {
            oid: oid.clone(),
            what,
        };
        let mut lines = bytes.split(|b| *b == b'\n');
        let named = |word: &str, line: Option<&[u8]>| -> Option<Oid> {
            let text = std::str::from_utf8(line?).ok()?;
            let name = Oid::parse(text.strip_prefix(word)?.strip_prefix(' ')?)?;
            (name.algorithm() == oid.algorithm()).then_some(name)
        };
        let tree = named("tree", lines.next()).ok_or_else(|| bad("no tree"))?;
        let mut parents = Vec::new();
        for line in lines {
            if !line.starts_with(b"parent ") {
                break;
            }
            parents.push(named("parent", Some(line)).ok_or_else(|| bad("a parent"))?);
            if parents.len() > 64 {
                return Err(bad("more than 64 parents"));
            }
        }
        Ok(Commit { tree, parents })
    }
}
