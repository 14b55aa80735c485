//! The anchor's text and signature lines: a C2SP signed note whose text has the
//! shape of a C2SP `tlog-checkpoint`. It is no Merkle log: the hash is a
//! bundle's LineDigest, and no proofs exist.

use plimsoll_record::Digest;
use plimsoll_wire::ids::is_hex_digest;
use sha2::{Digest as _, Sha256};

use super::Reach;
use crate::{
    base64,
    fault::{AnchorReason, Fault},
    key::{PublicKey, SigningKey},
};

/// Largest anchor that is read.
pub const MAX_ANCHOR_BYTES: usize = 16 << 10;

/// Most signature lines.
pub const MAX_SIGNATURE_LINES: usize = 16;

const PREFIX: &str = "plimsoll-attest.bundle/";
/// The signature type of Ed25519 in a note's key hash.
const ED25519: u8 = 1;

/// What an anchor says, once an accepted key was found to have signed it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Anchor {
    reach: Reach,
    bytes: Vec<u8>,
}

impl Anchor {
    /// Reads an anchor that one of `accepted` must have signed. Signature lines
    /// by other keys are ignored; each line by an accepted key must verify.
    ///
    /// # Errors
    /// Class `anchor`: `format`, then `signature`.
    pub fn open(bytes: &[u8], accepted: &[PublicKey]) -> Result<Self, Fault> {
        let (reach, text, lines) = parse(bytes)?;
        let mut signed = false;
        for (place, line) in lines.iter().enumerate() {
            // A key's name in an anchor is the anchor's own origin.
            if line.name != reach.origin() {
                continue;
            }
            for key in accepted {
                if line.bytes[..4] != key_hash(line.name, key) {
                    continue;
                }
                let signature = <&[u8; 64]>::try_from(&line.bytes[4..]);
                if !signature.is_ok_and(|s| key.verifies(text.as_bytes(), s)) {
                    return Err(Fault::new(AnchorReason::Signature)
                        .in_member(format!("signature[{place}]"))
                        .expected(key.id()));
                }
                signed = true;
            }
        }
        if !signed {
            let ids: Vec<&str> = accepted.iter().map(PublicKey::id).collect();
            return Err(Fault::new(AnchorReason::Signature)
                .in_member("signature")
                .expected(ids.join(" or ")));
        }
        Ok(Anchor {
            reach,
            bytes: bytes.to_vec(),
        })
    }

    /// Writes and signs the anchor of a bundle.
    #[must_use]
    pub fn sign(reach: &Reach, key: &SigningKey) -> Self {
        let origin = reach.origin();
        let hash = base64::encode(reach.last.as_bytes());
        let text = format!("{origin}\n{}\n{hash}\n", reach.lines);
        let mut signature = key_hash(&origin, key.public()).to_vec();
        // The text begins as the key's raw signing asks for.
        signature.extend(key.sign_anchor(&text).unwrap_or([0; 64]));
        let signature = base64::encode(&signature);
        Anchor {
            reach: reach.clone(),
            bytes: format!("{text}\n\u{2014} {origin} {signature}\n").into_bytes(),
        }
    }

    /// How far the bundle reached.
    #[must_use]
    pub fn reach(&self) -> &Reach {
        &self.reach
    }

    /// The note's bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

impl Reach {
    /// The origin line, which names the bundle by its key and its first line.
    #[must_use]
    pub fn origin(&self) -> String {
        format!("{PREFIX}{}/{}", self.key_id, self.first_line)
    }
}

/// The first four bytes of SHA-256 over name, newline, type and key.
fn key_hash(name: &str, key: &PublicKey) -> [u8; 4] {
    let hash = Sha256::new()
        .chain_update(name)
        .chain_update([b'\n', ED25519])
        .chain_update(key.as_bytes())
        .finalize();
    [hash[0], hash[1], hash[2], hash[3]]
}

struct SignatureLine<'a> {
    name: &'a str,
    /// Key hash and signature; at least five bytes.
    bytes: Vec<u8>,
}

fn format(member: &str) -> Fault {
    Fault::new(AnchorReason::Format).in_member(member)
}

/// Reads the whole form; nothing is believed yet.
fn parse(bytes: &[u8]) -> Result<(Reach, &str, Vec<SignatureLine<'_>>), Fault> {
    if bytes.len() > MAX_ANCHOR_BYTES {
        return Err(format("note").expected(MAX_ANCHOR_BYTES).found(bytes.len()));
    }
    let note = std::str::from_utf8(bytes).map_err(|_| format("note").expected("UTF-8"))?;
    // A note's text holds no other control character, and no CR in particular.
    if note.bytes().any(|byte| byte != b'\n' && byte < 0x20) {
        return Err(format("note").expected("no control characters"));
    }
    let (text, signatures) = note
        .find("\n\n")
        .and_then(|end| Some((note.get(..=end)?, note.get(end + 2..)?)))
        .ok_or_else(|| format("note").expected("a blank line"))?;
    let mut lines = text.split_terminator('\n');
    let (Some(origin), Some(size), Some(hash), None) =
        (lines.next(), lines.next(), lines.next(), lines.next())
    else {
        return Err(format("text").expected("three lines"));
    };
    let (key_id, first_line) = origin
        .strip_prefix(PREFIX)
        .and_then(|rest| rest.split_once('/'))
        .filter(|(key, line)| is_hex_digest(key) && is_hex_digest(line))
        .ok_or_else(|| format("origin").found(origin))?;
    let plain = size.bytes().all(|byte| byte.is_ascii_digit()) && !size.starts_with('0');
    let lines = match size.parse() {
        Ok(lines) if plain => lines,
        _ => return Err(format("lines").found(size)),
    };
    let last = base64::decode(hash)
        .ok()
        .and_then(|bytes| <[u8; 32]>::try_from(bytes).ok())
        .ok_or_else(|| format("hash").found(hash))?;
    let reach = Reach {
        key_id: key_id.to_owned(),
        first_line: first_line.to_owned(),
        lines,
        last: Digest::from(last),
    };
    Ok((reach, text, signature_lines(signatures)?))
}

fn signature_lines(text: &str) -> Result<Vec<SignatureLine<'_>>, Fault> {
    let text = text
        .strip_suffix('\n')
        .ok_or_else(|| format("signature").expected("a line's end"))?;
    let mut lines = Vec::new();
    for line in text.split('\n') {
        let member = format!("signature[{}]", lines.len());
        if lines.len() == MAX_SIGNATURE_LINES {
            return Err(format(&member).expected(MAX_SIGNATURE_LINES));
        }
        let parts = line
            .strip_prefix("\u{2014} ")
            .and_then(|rest| rest.split_once(' '))
            .filter(|(name, _)| {
                !name.is_empty() && !name.contains(|c: char| c == '+' || c.is_whitespace())
            });
        let Some((name, signature)) = parts else {
            return Err(format(&member).found(line));
        };
        match base64::decode(signature) {
            Ok(bytes) if bytes.len() > 4 => lines.push(SignatureLine { name, bytes }),
            _ => return Err(format(&member).found(signature)),
        }
    }
    Ok(lines)
}
