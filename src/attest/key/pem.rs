//! Reading PEM blocks (RFC 7468) without keeping or showing what is in them.

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, general_purpose::PAD},
};
use zeroize::Zeroizing;

use super::{KeyFault, MAX_KEY_BYTES};

const BASE64: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PAD);
const BEGIN: &str = "-----BEGIN ";
const END: &str = "-----END ";
const DASHES: &str = "-----";

/// What a PEM file holds.
pub(super) struct Blocks<'a> {
    pub(super) first: Block<'a>,
    /// The labels of the blocks after the first.
    pub(super) further: Vec<&'a str>,
}

/// The first block of a file.
pub(super) struct Block<'a> {
    pub(super) label: &'a str,
    body: Vec<&'a str>,
}

impl Block<'_> {
    /// The block's bytes. White space between base64 characters is ignored;
    /// header lines are not a key's.
    pub(super) fn der(&self) -> Result<Zeroizing<Vec<u8>>, KeyFault> {
        // A header line, which base64 never is: it holds a colon.
        let is_encrypted = |line: &&str| line.contains(':') && line.contains("ENCRYPTED");
        if self.body.iter().any(is_encrypted) {
            return Err(KeyFault::Encrypted);
        }
        let mut text = Zeroizing::new(String::with_capacity(
            self.body.iter().map(|line| line.len()).sum(),
        ));
        for line in &self.body {
            for part in line.split_ascii_whitespace() {
                text.push_str(part);
            }
        }
        let mut der = Zeroizing::new(vec![0; base64::decoded_len_estimate(text.len())]);
        let length = BASE64
            .decode_slice(text.as_bytes(), der.as_mut_slice())
            .map_err(|_| KeyFault::Malformed)?;
        der.truncate(length);
        Ok(der)
    }
}

/// Finds the blocks of a key file and tells what else it may be.
pub(super) fn blocks(file: &[u8]) -> Result<Blocks<'_>, KeyFault> {
    if file.len() > MAX_KEY_BYTES {
        return Err(KeyFault::TooLarge);
    }
    if file.iter().all(u8::is_ascii_whitespace) {
        return Err(KeyFault::Empty);
    }
    // A DER key is one SEQUENCE: it begins with 0x30, which is also the digit 0.
    let Ok(text) = std::str::from_utf8(file) else {
        return Err(if file[0] == 0x30 {
            KeyFault::Der
        } else {
            KeyFault::NoBlock
        });
    };
    let mut found = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in text.lines() {
        let line = line.trim_end();
        if let Some(label) = framed(line, BEGIN) {
            if open.is_some() {
                return Err(KeyFault::Truncated);
            }
            open = Some(Block {
                label,
                body: Vec::new(),
            });
        } else if let Some(label) = framed(line, END) {
            match open.take() {
                Some(block) if block.label == label => found.push(block),
                Some(_) => return Err(KeyFault::Malformed),
                None => {}
            }
        } else if let Some(block) = &mut open {
            block.body.push(line);
        }
    }
    if open.is_some() {
        return Err(KeyFault::Truncated);
    }
    let mut found = found.into_iter();
    match found.next() {
        Some(first) => Ok(Blocks {
            first,
            further: found.map(|block| block.label).collect(),
        }),
        None if text.contains(BEGIN) => Err(KeyFault::Truncated),
        None if is_openssh(text) => Err(KeyFault::OpenSsh),
        None if text.starts_with('0') && text.contains('\0') => Err(KeyFault::Der),
        None => Err(KeyFault::NoBlock),
    }
}

fn framed<'a>(line: &'a str, start: &str) -> Option<&'a str> {
    line.strip_prefix(start)?.strip_suffix(DASHES)
}

fn is_openssh(text: &str) -> bool {
    text.lines().any(|line| {
        ["ssh-", "ecdsa-sha2-", "sk-ssh-", "sk-ecdsa-"]
            .iter()
            .any(|start| line.trim_start().starts_with(start))
    })
}

/// The name of the algorithm a key's DER speaks of, for the refusal.
pub(super) fn algorithm(der: &[u8]) -> Option<&'static str> {
    const KNOWN: [(&[u8], &str); 6] = [
        // OIDs 1.2.840.113549.1.1.1, 1.2.840.113549.1.1.10, 1.2.840.10045.2.1, 1.3.101.113,
        // 1.3.101.110 and 1.2.840.10040.4.1 with their tag and length.
        (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01", "RSA"),
        (b"\x06\x09\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSA"),
        (
            b"\x06\x07\x2a\x86\x48\xce\x3d\x02\x01",
            "an elliptic-curve key (ECDSA)",
        ),
        (b"\x06\x03\x2b\x65\x71", "Ed448"),
        (b"\x06\x03\x2b\x65\x6e", "X25519"),
        (b"\x06\x07\x2a\x86\x48\xce\x38\x04\x01", "DSA"),
    ];
    // The algorithm stands in the first bytes; further in, key bytes could look like one.
    let head = &der[..der.len().min(32)];
    KNOWN
        .iter()
        .find(|(oid, _)| head.windows(oid.len()).any(|window| window == *oid))
        .map(|(_, name)| *name)
}
