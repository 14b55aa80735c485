//! Why a text is not a usable key. No variant carries a byte of the text.

/// Why a key was refused. Each wrong input has its own sentence.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum KeyFault {
    /// Another key algorithm than Ed25519.
    #[error("the key is {0}, not Ed25519")]
    Algorithm(&'static str),
    /// Binary DER without its PEM frame.
    #[error("the key is binary DER without a PEM frame")]
    Der,
    /// Nothing, or white space alone.
    #[error("the key file is empty")]
    Empty,
    /// A private key under a pass phrase.
    #[error("the private key is encrypted")]
    Encrypted,
    /// The system gave no random bytes.
    #[error("no random bytes for a new key")]
    Entropy,
    /// A PEM block whose content is not base64 or not the DER of a key.
    #[error("the PEM block does not hold a well-formed key")]
    Malformed,
    /// Text without any PEM block.
    #[error("the file holds no PEM block")]
    NoBlock,
    /// A key of OpenSSH.
    #[error("the key is in OpenSSH's format")]
    OpenSsh,
    /// A PEM block of another kind.
    #[error("the PEM block is not a key of the kind asked for")]
    OtherBlock,
    /// A private key where a public one belongs.
    #[error("the file holds a private key where a public one belongs")]
    PrivateGiven,
    /// A public key where a private one belongs.
    #[error("the file holds a public key where a private one belongs")]
    PublicGiven,
    /// Larger than [`super::MAX_KEY_BYTES`].
    #[error("the key file is over 64 KiB")]
    TooLarge,
    /// A PEM block that ends before its end line.
    #[error("the PEM block is cut off")]
    Truncated,
    /// More than one public key.
    #[error("the file holds more than one public key")]
    TwoKeys,
    /// A public key that is not a canonical point of the prime-order group. A
    /// holder of such a key could make signatures that verify for many texts.
    #[error("the public key is a weak or malformed point")]
    WeakPoint,
}

impl KeyFault {
    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            KeyFault::Algorithm(_) => "algorithm",
            KeyFault::Der => "der",
            KeyFault::Empty => "empty",
            KeyFault::Encrypted => "encrypted",
            KeyFault::Entropy => "entropy",
            KeyFault::Malformed => "malformed",
            KeyFault::NoBlock => "no_block",
            KeyFault::OpenSsh => "openssh",
            KeyFault::OtherBlock => "other_block",
            KeyFault::PrivateGiven => "private_given",
            KeyFault::PublicGiven => "public_given",
            KeyFault::TooLarge => "too_large",
            KeyFault::Truncated => "truncated",
            KeyFault::TwoKeys => "two_keys",
            KeyFault::WeakPoint => "weak_point",
        }
    }

    /// What to do about it.
    #[must_use]
    pub const fn cure(self) -> &'static str {
        match self {
            KeyFault::Algorithm(_) => "Only Ed25519 keys are used. Make one with `keygen`.",
            KeyFault::Der => "Give the PEM form, which begins with a BEGIN line.",
            KeyFault::Empty | KeyFault::NoBlock => "Give a PEM file as `keygen` writes it.",
            KeyFault::Encrypted => {
                "Keys under a pass phrase are not read. Store the decrypted PKCS #8 form, readable \
                 by its owner only."
            }
            KeyFault::Entropy => "Try again; the system's random source failed.",
            KeyFault::Malformed | KeyFault::Truncated => {
                "The file was altered or cut. Get it again from where it was made."
            }
            KeyFault::OpenSsh => "Convert it to PEM, or make a key with `keygen`.",
            KeyFault::OtherBlock => {
                "A private key is a PRIVATE KEY block, a public key a PUBLIC KEY block."
            }
            KeyFault::PrivateGiven => {
                "Give the public half. Whoever can read this file can sign as its owner: do not \
                 pass it on."
            }
            KeyFault::PublicGiven => "Give the private half, the file `keygen` names PREFIX.key.",
            KeyFault::TooLarge => "This is not a key file.",
            KeyFault::TwoKeys => "Give one key a file.",
            KeyFault::WeakPoint => "No honest signer has such a key. Ask for the right one.",
        }
    }
}
