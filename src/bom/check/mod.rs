//! The check of a BOM: what it says of itself, then the evidence, then the bytes.
//!
//! The early steps say what is wrong in words a person can act on. The last
//! alone decides: the BOM is rebuilt from verified evidence with the choices it
//! names, and must be the same bytes.

mod attached;
pub(crate) mod bound;
mod claims;
mod outline;
mod rebuilt;
mod stated;

use plimsoll_attestation::PublicKey;
use plimsoll_record::Digest;

pub use claims::Claimed;
pub use outline::Outline;

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
    /// Whether the lines attached to it were the only evidence.
    pub attached: bool,
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

    /// What the BOM states and this check did not decide: properties of the
    /// BOM, then members of a receipt's statement, which need the repository.
    #[must_use]
    pub fn not_established(&self) -> Vec<String> {
        let mut named = Vec::new();
        if self.attached {
            named.push("evidence:scope".to_owned());
        }
        if self.kind == Kind::Receipt {
            let alone = self.attached.then_some("bundle_sha256");
            let members = bound::NEEDS_THE_REPOSITORY.into_iter().chain(alone);
            named.extend(members.map(|member| format!("receipt:{member}")));
        }
        named
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
