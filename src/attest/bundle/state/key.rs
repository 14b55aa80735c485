//! The key that says which states this user's own verifications wrote.

use std::{io, path::Path};

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use crate::{
    bundle::disk::{BundleFile as _, Disk},
    replace::{Readers, create},
};

const BYTES: usize = 32;

/// Why there is no key. States are then neither believed nor written; a
/// verification needs none.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StateKeyFault {
    /// The file is not 32 bytes.
    #[error("the state key is not one that was made here")]
    Malformed,
    /// The path names no regular file.
    #[error("the state key is not a regular file")]
    NotRegular,
    /// Group or others have permissions on the file: whoever can read it can
    /// write states that are believed.
    #[error("group or others have permissions on the state key (mode {mode:03o})")]
    Permissions {
        /// The file's permission bits.
        mode: u32,
    },
    /// Making or reading it failed.
    #[error("the state key cannot be read or made: {0}")]
    Io(#[source] io::Error),
}

/// A user's secret for states. Its bytes are zeroised when it is dropped and
/// never shown.
pub struct StateKey(Zeroizing<[u8; BYTES]>);

impl StateKey {
    /// Reads the key file, or makes it with mode 0600 when there is none. Of two
    /// processes that make it at once both get the same key. The directory must
    /// be there.
    ///
    /// # Errors
    /// [`StateKeyFault`].
    pub fn load_or_create<D: Disk>(disk: &D, path: &Path) -> Result<Self, StateKeyFault> {
        if let Some(key) = Self::load(disk, path)? {
            return Ok(key);
        }
        let mut bytes = Zeroizing::new([0; BYTES]);
        getrandom::fill(bytes.as_mut_slice())
            .map_err(|_| StateKeyFault::Io(io::Error::other("no random bytes")))?;
        match create(disk, path, bytes.as_slice(), Readers::Owner) {
            Ok(()) => Ok(StateKey(bytes)),
            // Another process was faster; its file is whole, since the name
            // appears only after the content.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Self::load(disk, path)?.ok_or(StateKeyFault::Io(error))
            }
            Err(error) => Err(StateKeyFault::Io(error)),
        }
    }

    fn load<D: Disk>(disk: &D, path: &Path) -> Result<Option<Self>, StateKeyFault> {
        let opened = disk.open_to_read(path).map_err(StateKeyFault::Io)?;
        let Some(mut file) = opened else {
            return Ok(None);
        };
        let facts = file.facts().map_err(StateKeyFault::Io)?;
        if !facts.regular {
            return Err(StateKeyFault::NotRegular);
        }
        if let Some(mode) = facts.mode.filter(|mode| mode & 0o077 != 0) {
            return Err(StateKeyFault::Permissions { mode });
        }
        if facts.length != BYTES as u64 {
            return Err(StateKeyFault::Malformed);
        }
        let mut bytes = Zeroizing::new([0; BYTES]);
        let mut source = file.read().map_err(StateKeyFault::Io)?;
        io::Read::read_exact(&mut source, bytes.as_mut_slice()).map_err(StateKeyFault::Io)?;
        Ok(Some(StateKey(bytes)))
    }

    /// Names the key without showing it.
    pub(super) fn id(&self) -> String {
        hex::encode(
            self.mac(b"plimsoll-attest state key")
                .finalize()
                .into_bytes(),
        )
    }

    /// The code over a state's text, in hex.
    pub(super) fn code(&self, text: &[u8]) -> String {
        hex::encode(self.mac(text).finalize().into_bytes())
    }

    /// Whether `code` is the code over `text`, in time that does not depend on
    /// where they differ.
    pub(super) fn is_code(&self, text: &[u8], code: &str) -> bool {
        let mut bytes = [0; 32];
        hex::decode_to_slice(code, &mut bytes).is_ok()
            && self.mac(text).verify_slice(&bytes).is_ok()
            && code.bytes().all(|byte| !byte.is_ascii_uppercase())
    }

    fn mac(&self, text: &[u8]) -> Hmac<Sha256> {
        // A key shorter than the hash's block is filled up with zeros (RFC 2104);
        // a whole block as key can be refused by nothing.
        let mut block = Zeroizing::new([0; 64]);
        block[..BYTES].copy_from_slice(self.0.as_slice());
        let mut mac = <Hmac<Sha256> as Mac>::new((&*block).into());
        mac.update(text);
        mac
    }
}

impl std::fmt::Debug for StateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("StateKey")
    }
}
