//! Anchors of the test bundle, honest and forged.

use plimsoll_attestation::{
    Fault, PublicKey, SigningKey,
    anchor::{Anchor, AnchorCheck, Reach},
    base64,
    bundle::Report,
};
use sha2::{Digest as _, Sha256};

use super::{check, check_with, lines, public, signing, vector};

pub fn own() -> Vec<u8> {
    vector("own-mixed.jsonl")
}

pub fn own_key() -> PublicKey {
    public("own-mixed.pub")
}

/// The first `count` lines of the test bundle.
pub fn cut(count: usize) -> Vec<u8> {
    let bundle = own();
    let end: usize = lines(&bundle)[..count].iter().map(|l| l.len() + 1).sum();
    bundle[..end].to_vec()
}

pub fn anchor_of(bundle: &[u8]) -> Anchor {
    let report = check(bundle, &own_key()).unwrap();
    Anchor::sign(&Reach::of(&report).unwrap(), &signing())
}

/// The verdict of a bundle under the test key against an anchor.
pub fn against(bundle: &[u8], anchor: Anchor) -> Result<Report, Fault> {
    let mut seen = AnchorCheck::new(Some(anchor));
    let report = check_with(bundle, &own_key(), &mut seen)?;
    seen.met(Some(&report))?;
    Ok(report)
}

pub fn word(fault: &Fault) -> (&'static str, &'static str) {
    (fault.class().word(), fault.reason().word())
}

/// An anchor with another text, signed in proper form by `key`.
pub fn forged(text: &str, key: &SigningKey) -> Vec<u8> {
    let name = text.split('\n').next().unwrap();
    format!("{text}\n{}", signature(text, name, key)).into_bytes()
}

/// A signature line over `text`.
pub fn signature(text: &str, name: &str, key: &SigningKey) -> String {
    let hash = Sha256::new()
        .chain_update(name)
        .chain_update(b"\n\x01")
        .chain_update(key.public().as_bytes())
        .finalize();
    let signed = key.sign_anchor(text).unwrap();
    let bytes = [&hash[..4], &signed[..]].concat();
    format!("\u{2014} {name} {}\n", base64::encode(&bytes))
}

pub fn text_of(anchor: &Anchor) -> String {
    let note = String::from_utf8(anchor.as_bytes().to_vec()).unwrap();
    note.split_once("\n\n").unwrap().0.to_owned() + "\n"
}
