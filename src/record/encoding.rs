//! The length-prefixed encoding that digests are taken over.
//!
//! `value(b)` is the length of `b` as a big-endian `u64`, then `b`. An input is
//! `value(domain)`, then for each field `value(name)` and `value(content)`.

use std::fmt;

use sha2::{Digest as _, Sha256};

/// A SHA-256 digest, shown as 64 lowercase hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest([u8; 32]);

impl Digest {
    /// SHA-256 of bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Digest {
        Digest(Sha256::digest(bytes).into())
    }

    /// The raw 32 bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// 64 lowercase hex digits.
    #[must_use]
    pub fn to_hex(&self) -> String {
        hex::encode(self.0)
    }

    /// Whether `text` is this digest in hex. Upper case never is.
    #[must_use]
    pub fn is(&self, text: &str) -> bool {
        let mut hex = [0; 64];
        hex::encode_to_slice(self.0, &mut hex).is_ok() && hex == text.as_bytes()
    }
}

impl From<[u8; 32]> for Digest {
    fn from(bytes: [u8; 32]) -> Self {
        Digest(bytes)
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_hex())
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Takes the fields of one digest input, in order.
///
/// The field lists are written once against this trait; hashing and showing
/// them are two sinks.
pub trait Sink {
    /// Takes the domain, first and once.
    fn domain(&mut self, domain: &str);

    /// Takes one field.
    fn bytes(&mut self, name: &'static str, content: &[u8]);

    /// Takes a field of text.
    fn text(&mut self, name: &'static str, content: &str) {
        self.bytes(name, content.as_bytes());
    }

    /// Takes an integer field: ASCII decimal.
    fn integer(&mut self, name: &'static str, content: impl Into<i128>)
    where
        Self: Sized,
    {
        self.bytes(name, content.into().to_string().as_bytes());
    }

    /// Takes a boolean field.
    fn boolean(&mut self, name: &'static str, content: bool) {
        self.bytes(name, if content { b"true" } else { b"false" });
    }

    /// Takes the count of a repeated group.
    fn count(&mut self, name: &'static str, count: usize) {
        self.bytes(name, count.to_string().as_bytes());
    }

    /// Takes doubles as one field: their bits, big-endian, never normalised.
    fn doubles(&mut self, name: &'static str, values: &[f64]) {
        let mut content = Vec::with_capacity(values.len() * 8);
        for value in values {
            content.extend_from_slice(&value.to_bits().to_be_bytes());
        }
        self.bytes(name, &content);
    }
}

/// Hashes the encoding.
#[derive(Default)]
pub(crate) struct Hasher(Sha256);

impl Hasher {
    fn value(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }

    pub(crate) fn finish(self) -> Digest {
        Digest(self.0.finalize().into())
    }
}

impl Sink for Hasher {
    fn domain(&mut self, domain: &str) {
        self.value(domain.as_bytes());
    }

    fn bytes(&mut self, name: &'static str, content: &[u8]) {
        self.value(name.as_bytes());
        self.value(content);
    }
}

/// One field of a digest input, for people who check by hand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name; the domain's is empty.
    pub name: &'static str,
    /// The content's bytes.
    pub content: Vec<u8>,
}

/// Keeps the fields.
#[derive(Default)]
pub(crate) struct Lister(pub(crate) Vec<Field>);

impl Sink for Lister {
    fn domain(&mut self, domain: &str) {
        self.bytes("", domain.as_bytes());
    }

    fn bytes(&mut self, name: &'static str, content: &[u8]) {
        self.0.push(Field {
            name,
            content: content.to_vec(),
        });
    }
}
