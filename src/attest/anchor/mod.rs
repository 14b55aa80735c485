//! Anchors: small files kept outside a bundle that remember how far it reached.
//!
//! A bundle cut back to an earlier checkpoint verifies as whole; only something
//! outside it can tell. An anchor proves that the file has not lost lines the
//! anchor had seen. It says nothing of what follows them, and whoever can put
//! an older pair of bundle and anchor in place of both wins, so it belongs
//! where the bundle's writer cannot reach.
//!
//! The signed text begins `plimsoll-attest.bundle/` and a DSSE signature's
//! input `DSSEv1 `: neither can pass for the other.

mod check;
mod file;
mod guard;
mod note;

pub use check::AnchorCheck;
pub use file::{AnchorFault, AnchorFile, Kept, lock_path};
pub use guard::AnchorGuard;
pub use note::{Anchor, MAX_ANCHOR_BYTES, MAX_SIGNATURE_LINES};

use plimsoll_record::Digest;

use crate::{
    bundle::{Appended, Report},
    key::SigningKey,
};

/// How far a bundle reaches: its last checkpoint.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Reach {
    /// ID of the key the bundle is signed by.
    key_id: String,
    /// LineDigest of line 1, in hex.
    first_line: String,
    /// Number of the checkpoint's line.
    lines: u64,
    /// LineDigest of the checkpoint's line.
    last: Digest,
}

impl Reach {
    /// Of a bundle that verified as whole; `None` for any other report.
    #[must_use]
    pub fn of(report: &Report) -> Option<Self> {
        if !report.ends_in_checkpoint() {
            return None;
        }
        Some(Reach {
            key_id: report.key_id.clone(),
            first_line: report.first_line?.to_hex(),
            lines: report.lines,
            last: report.last_line?,
        })
    }

    /// After an append that is done and synced, under the key that signed it.
    #[must_use]
    pub fn after(appended: &Appended, key: &SigningKey) -> Self {
        Reach {
            key_id: key.public().id().to_owned(),
            first_line: appended.first_line.to_hex(),
            lines: appended.checkpoint,
            last: appended.checkpoint_digest,
        }
    }

    /// ID of the key the bundle is signed by.
    #[must_use]
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The number of the checkpoint's line, counted from 1.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// LineDigest of the checkpoint's line.
    #[must_use]
    pub fn last_line(&self) -> Digest {
        self.last
    }
}
