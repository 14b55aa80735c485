//! The check of a BOM in memory and of one in a file, which must agree.
#![allow(dead_code)]

use std::io::Cursor;

use plimsoll_attestation::PublicKey;
use plimsoll_bom::{BomError, Bundle, Checked, Outline};

/// [`plimsoll_bom::check`], after which an outline says the same.
pub fn check(text: &[u8], key: &PublicKey, bundle: &Bundle<'_>) -> Result<Checked, BomError> {
    let checked = plimsoll_bom::check(text, key, bundle);
    let outline = Outline::read(Cursor::new(text), key);
    let streamed = outline.and_then(|outline| outline.against_bundle(bundle));
    assert_eq!(streamed.as_ref(), checked.as_ref().ok(), "{checked:?}");
    checked
}

/// [`plimsoll_bom::check_attached`], after which an outline says the same.
pub fn check_attached(text: &[u8], key: &PublicKey) -> Result<Checked, BomError> {
    let checked = plimsoll_bom::check_attached(text, key);
    let outline = Outline::read(Cursor::new(text), key);
    let streamed = outline.and_then(|outline| outline.against_attached());
    assert_eq!(streamed.as_ref(), checked.as_ref().ok(), "{checked:?}");
    checked
}
