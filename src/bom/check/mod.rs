//! The check of a BOM: what it says of itself, then the evidence, then the bytes.
//!
//! The early steps say what is wrong in words a person can act on. The last
//! alone decides: the BOM is rebuilt from verified evidence with the choices it
//! names, and must be the same bytes.

mod attached;
mod claims;
mod rebuilt;
mod stated;

use plimsoll_attestation::PublicKey;
use plimsoll_record::Digest;

pub use claims::Claimed;

use crate::{
    bundle::Bundle,
    fault::BomError,
    profile::{Kind, Scope},
};

/// A BOM that was rebuilt from evidence, byte for byte.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Checked {
    /// Its serial number.
    pub serial_number: String,
    /// Its SHA-256.
    pub sha256: Digest,
    /// What it describes.
    pub kind: Kind,
    /// How much of the bundle it rests on.
    pub scope: Scope,
    /// The lines it rests on.
    pub lines: Vec<u64>,
    /// The digests of its records.
    pub records: Vec<String>,
    /// The weakest tier its records state.
    pub isolation: String,
    /// The one thing in it that is its author's word: the image's name.
    pub image_name: Option<String>,
}

impl Checked {
    /// The BOM's properties that were not rebuilt from evidence but are its
    /// author's statement.
    #[must_use]
    pub fn stated_by_author(&self) -> &'static [&'static str] {
        match self.image_name {
            Some(_) => &["bom:imageName"],
            None => &[],
        }
    }
}

/// Checks a BOM against the bundle it was made from, or one that has grown from
/// it, verified as [`Claimed::scope`] says.
///
/// # Errors
/// The code of the first step that fails.
pub fn check(text: &[u8], key: &PublicKey, bundle: &Bundle<'_>) -> Result<Checked, BomError> {
    Claimed::read(text, key)?.against_bundle(bundle)
}

/// Checks a BOM against the lines attached to it: nothing is established of the
/// rest of the file they came from.
///
/// # Errors
/// The code of the first step that fails.
pub fn check_attached(text: &[u8], key: &PublicKey) -> Result<Checked, BomError> {
    Claimed::read(text, key)?.against_attached()
}
