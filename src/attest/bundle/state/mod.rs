//! What an earlier verification leaves, so that a later one checks only what
//! was appended.
//!
//! A state stands for the verification of a file's first bytes and binds their
//! SHA-256. Hashing is cheap and signatures are not: the later run hashes those
//! bytes again, and an equal digest stands for their checks. A state is
//! believed only under the code of a key that this user alone can read. One
//! that is missing, foreign, altered or of another version costs a full
//! verification and nothing else: it is never an error and never trusted.

mod format;
mod key;
mod resume;

use std::{io, io::Read as _, path::Path};

use plimsoll_record::Digest;

use super::{
    disk::{BundleFile as _, Disk},
    report::Report,
};
use crate::replace::{Readers, replace};

pub use key::{StateKey, StateKeyFault};
pub use resume::{Resumption, verify_from};

/// Largest state that is read or written. It grows with a bundle's sessions
/// and checkpoints: this is room for some hundred thousand sessions.
pub const MAX_STATE_BYTES: usize = 64 << 20;

/// Why a state was not used. Never an error: everything is verified instead.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum StateNote {
    /// The text is not what the key's holder wrote.
    #[error("the state was altered")]
    Altered,
    /// The file's bytes are not those verified earlier.
    #[error("the bundle's earlier lines are not those verified before")]
    Changed,
    /// Another user or machine wrote it.
    #[error("the state was written under another key")]
    Foreign,
    /// It is no state.
    #[error("the file is not a state")]
    Malformed,
    /// There is none yet.
    #[error("there is no state yet")]
    Missing,
    /// It stands for a verification under a key that is not asked for now.
    #[error("the state is of a verification under another public key")]
    OtherKey,
    /// The file is shorter than what was verified earlier.
    #[error("the bundle is shorter than what was verified before")]
    Shorter,
    /// Over [`MAX_STATE_BYTES`].
    #[error("the state is too large")]
    TooLarge,
    /// The file cannot be read.
    #[error("the state cannot be read ({0})")]
    Unreadable(io::ErrorKind),
    /// Another version of the format.
    #[error("the state is of another version")]
    Version,
}

impl StateNote {
    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            StateNote::Altered => "altered",
            StateNote::Changed => "changed",
            StateNote::Foreign => "foreign",
            StateNote::Malformed => "malformed",
            StateNote::Missing => "missing",
            StateNote::OtherKey => "other_key",
            StateNote::Shorter => "shorter",
            StateNote::TooLarge => "too_large",
            StateNote::Unreadable(_) => "unreadable",
            StateNote::Version => "version",
        }
    }
}

/// A verification's end at a whole bundle's last checkpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct State {
    report: Report,
    /// SHA-256 of the file's bytes up to the end of the report's last line.
    prefix: Digest,
}

impl State {
    /// Reads a state.
    ///
    /// # Errors
    /// [`StateNote`], after which everything is to be verified.
    pub fn load<D: Disk>(disk: &D, path: &Path, key: &StateKey) -> Result<Self, StateNote> {
        let unreadable = |error: io::Error| StateNote::Unreadable(error.kind());
        let opened = disk.open_to_read(path).map_err(unreadable)?;
        let mut file = opened.ok_or(StateNote::Missing)?;
        if !file.facts().map_err(unreadable)?.regular {
            return Err(StateNote::Malformed);
        }
        let mut bytes = Vec::new();
        let source = file.read().map_err(unreadable)?;
        source
            .take(MAX_STATE_BYTES as u64 + 1)
            .read_to_end(&mut bytes)
            .map_err(unreadable)?;
        if bytes.len() > MAX_STATE_BYTES {
            return Err(StateNote::TooLarge);
        }
        format::decode(&bytes, key)
    }

    /// Writes the state in place of an older one, atomically, with mode 0600.
    ///
    /// # Errors
    /// As the system says; a symbolic link, a place where no state may be kept
    /// ([`State::may_lie_at`]) and a state over [`MAX_STATE_BYTES`] are refused.
    /// What is there stays.
    pub fn save<D: Disk>(&self, disk: &D, path: &Path, key: &StateKey) -> io::Result<()> {
        if disk.is_link(path)? {
            return Err(io::Error::from(io::ErrorKind::InvalidInput));
        }
        if !Self::may_lie_at(disk, path)? {
            return Err(io::Error::from(io::ErrorKind::AlreadyExists));
        }
        let text = format::encode(self, key);
        if text.len() > MAX_STATE_BYTES {
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        replace(disk, path, text.as_bytes(), Readers::Owner)
    }

    /// Whether a state may be written to a path: it names nothing, an empty
    /// file, or a file that begins as every state does. A mistaken path must
    /// cost nobody a bundle or a key.
    ///
    /// # Errors
    /// As the system says.
    pub fn may_lie_at<D: Disk>(disk: &D, path: &Path) -> io::Result<bool> {
        let Some(mut file) = disk.open_to_read(path)? else {
            return Ok(true);
        };
        if !file.facts()?.regular {
            return Ok(false);
        }
        let mut head = Vec::new();
        let length = format::HEAD.len() as u64;
        file.read()?.take(length).read_to_end(&mut head)?;
        Ok(head.is_empty() || head == format::HEAD.as_bytes())
    }

    /// Lines it stands for.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.report.lines
    }

    /// Bytes it stands for.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.report.bytes
    }
}
