//! Ed25519 keys in PEM files: PKCS #8 for private, PKIX for public ones.
//!
//! Only canonical public keys of the prime-order subgroup are loaded, and
//! signatures are verified strictly (RFC 8032 with canonical S and R, no
//! small-order point, the cofactorless equation), one at a time, so that every
//! verifier gives one verdict for one signature.

mod fault;
mod multiples;
mod pem;

use std::{fmt, sync::Arc};

use ed25519_dalek::{Signature, Signer as _, VerifyingKey, pkcs8::DecodePrivateKey as _};
use plimsoll_record::Digest;
use zeroize::Zeroizing;

pub use fault::KeyFault;

use multiples::FixedKey;

/// Largest key file that is read.
pub const MAX_KEY_BYTES: usize = 64 << 10;

const PRIVATE_LABEL: &str = "PRIVATE KEY";
const PUBLIC_LABEL: &str = "PUBLIC KEY";

/// PKCS #8 before the 32 bytes of the seed: version 0, OID 1.3.101.112.
const PRIVATE_DER: [u8; 16] = *b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20";
/// SubjectPublicKeyInfo before the 32 bytes of the point.
const PUBLIC_DER: [u8; 12] = *b"\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00";

/// A public key that signatures are checked under.
#[derive(Clone)]
pub struct PublicKey {
    key: VerifyingKey,
    id: Digest,
    id_hex: String,
    fixed: Option<Arc<FixedKey>>,
}

impl PartialEq for PublicKey {
    fn eq(&self, other: &Self) -> bool {
        self.key == other.key
    }
}

impl Eq for PublicKey {}

impl PublicKey {
    /// Reads a PEM file with one `PUBLIC KEY` block; text around it is ignored.
    ///
    /// # Errors
    /// [`KeyFault`], without a byte of the file.
    pub fn from_pem(file: &[u8]) -> Result<Self, KeyFault> {
        let blocks = pem::blocks(file)?;
        let labels = || std::iter::once(blocks.first.label).chain(blocks.further.iter().copied());
        if labels().any(|label| label.ends_with(PRIVATE_LABEL)) {
            return Err(KeyFault::PrivateGiven);
        }
        match blocks.first.label {
            PUBLIC_LABEL => {}
            "RSA PUBLIC KEY" => return Err(KeyFault::Algorithm("RSA")),
            "SSH2 PUBLIC KEY" => return Err(KeyFault::OpenSsh),
            _ => return Err(KeyFault::OtherBlock),
        }
        if labels().filter(|label| *label == PUBLIC_LABEL).count() > 1 {
            return Err(KeyFault::TwoKeys);
        }
        let der = blocks.first.der()?;
        match der.strip_prefix(&PUBLIC_DER).map(<[u8; 32]>::try_from) {
            Some(Ok(point)) => Self::from_bytes(&point),
            _ => Err(pem::algorithm(&der).map_or(KeyFault::Malformed, KeyFault::Algorithm)),
        }
    }

    /// Takes the 32 bytes of a point.
    ///
    /// # Errors
    /// [`KeyFault::WeakPoint`] for bytes that are no point, not its canonical
    /// encoding, or a point outside the prime-order subgroup.
    pub fn from_bytes(point: &[u8; 32]) -> Result<Self, KeyFault> {
        let key = VerifyingKey::from_bytes(point).map_err(|_| KeyFault::WeakPoint)?;
        let edwards = key.to_edwards();
        if key.is_weak() || !edwards.is_torsion_free() || edwards.compress().as_bytes() != point {
            return Err(KeyFault::WeakPoint);
        }
        Ok(Self::of(key))
    }

    fn of(key: VerifyingKey) -> Self {
        let id = Digest::of(&spki(&key));
        PublicKey {
            key,
            id,
            id_hex: id.to_hex(),
            fixed: None,
        }
    }

    /// The same key with its multiples at hand: it checks a signature in less
    /// than half the time and gives the same verdict on every input.
    ///
    /// Making them takes as long as some thirty checks and under 400 KiB,
    /// shared by every clone; another 400 KiB are made once for all keys.
    #[must_use]
    pub fn prepared(&self) -> Self {
        let fixed = self
            .fixed
            .clone()
            .unwrap_or_else(|| Arc::new(FixedKey::new(self.key.to_edwards())));
        PublicKey {
            fixed: Some(fixed),
            ..self.clone()
        }
    }

    /// The key ID: SHA-256 of the PKIX DER, as 64 hex digits.
    #[must_use]
    pub fn id(&self) -> &str {
        &self.id_hex
    }

    /// The key ID's 32 bytes.
    #[must_use]
    pub fn id_digest(&self) -> Digest {
        self.id
    }

    /// The point's 32 bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8; 32] {
        self.key.as_bytes()
    }

    /// The PKIX PEM text, as `keygen` writes it.
    #[must_use]
    pub fn to_pem(&self) -> String {
        framed(PUBLIC_LABEL, &crate::base64::encode(&spki(&self.key)))
    }

    /// Whether the signature over `message` verifies, strictly.
    ///
    /// For forms other than DSSE, such as signed notes: DSSE's own input never
    /// begins like theirs.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        match &self.fixed {
            Some(fixed) => fixed.verifies(message, signature),
            None => self
                .key
                .verify_strict(message, &Signature::from_bytes(signature))
                .is_ok(),
        }
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PublicKey({})", self.id_hex)
    }
}

fn spki(key: &VerifyingKey) -> [u8; 44] {
    let mut der = [0; 44];
    der[..12].copy_from_slice(&PUBLIC_DER);
    der[12..].copy_from_slice(key.as_bytes());
    der
}

fn framed(label: &str, base64: &str) -> String {
    format!("-----BEGIN {label}-----\n{base64}\n-----END {label}-----\n")
}

/// A private key. Its bytes are zeroised when it is dropped and never shown.
pub struct SigningKey {
    key: ed25519_dalek::SigningKey,
    public: PublicKey,
}

impl SigningKey {
    /// Makes a new key from the system's random source.
    ///
    /// # Errors
    /// [`KeyFault::Entropy`].
    pub fn generate() -> Result<Self, KeyFault> {
        let mut seed = Zeroizing::new([0; 32]);
        getrandom::fill(seed.as_mut_slice()).map_err(|_| KeyFault::Entropy)?;
        Ok(Self::from_seed(&seed))
    }

    fn from_seed(seed: &[u8; 32]) -> Self {
        let key = ed25519_dalek::SigningKey::from_bytes(seed);
        let public = PublicKey::of(key.verifying_key());
        SigningKey { key, public }
    }

    /// Reads a PEM file whose first block is an Ed25519 `PRIVATE KEY`; text
    /// around it is ignored. The caller should zeroise `file`.
    ///
    /// # Errors
    /// [`KeyFault`], without a byte of the file.
    pub fn from_pem(file: &[u8]) -> Result<Self, KeyFault> {
        let blocks = pem::blocks(file)?;
        match blocks.first.label {
            PRIVATE_LABEL => {}
            "ENCRYPTED PRIVATE KEY" => return Err(KeyFault::Encrypted),
            "RSA PRIVATE KEY" => return Err(KeyFault::Algorithm("RSA")),
            "EC PRIVATE KEY" => {
                return Err(KeyFault::Algorithm("an elliptic-curve key (ECDSA)"));
            }
            "OPENSSH PRIVATE KEY" => return Err(KeyFault::OpenSsh),
            label if label.ends_with(PUBLIC_LABEL) => return Err(KeyFault::PublicGiven),
            _ => return Err(KeyFault::OtherBlock),
        }
        let der = blocks.first.der()?;
        if let Some(seed) = der.strip_prefix(&PRIVATE_DER)
            && let Ok(seed) = <&[u8; 32]>::try_from(seed)
        {
            return Ok(Self::from_seed(seed));
        }
        // The longer form states the public half too (RFC 5958); it must be this seed's.
        ed25519_dalek::SigningKey::from_pkcs8_der(&der)
            .map(|key| Self::from_seed(key.as_bytes()))
            .map_err(|_| pem::algorithm(&der).map_or(KeyFault::Malformed, KeyFault::Algorithm))
    }

    /// The PKCS #8 PEM text, as `keygen` writes it.
    #[must_use]
    pub fn to_pem(&self) -> Zeroizing<String> {
        let mut der = Zeroizing::new([0; 48]);
        der[..16].copy_from_slice(&PRIVATE_DER);
        der[16..].copy_from_slice(self.key.as_bytes());
        let base64 = Zeroizing::new(crate::base64::encode(der.as_slice()));
        Zeroizing::new(framed(PRIVATE_LABEL, &base64))
    }

    /// The public half.
    #[must_use]
    pub fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs a plimsoll-attest anchor's text: a signed note, which begins with
    /// a fixed prefix and so can never be read as a DSSE envelope's input.
    ///
    /// `None` when the text does not begin so: nothing else is signed raw.
    #[must_use]
    pub fn sign_anchor(&self, text: &str) -> Option<[u8; 64]> {
        text.starts_with("plimsoll-attest.bundle/")
            .then(|| self.key.sign(text.as_bytes()).to_bytes())
    }

    /// Signs a pre-authentication encoding.
    pub(crate) fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SigningKey({})", self.public.id_hex)
    }
}
