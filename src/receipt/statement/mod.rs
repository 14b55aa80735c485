//! The two signed statements of a receipt, in their exact form.
//!
//! A payload is compact JSON with all members in one order. What is read is
//! written again and compared byte for byte, so that no second spelling of a
//! statement exists.

pub mod receipt;
pub mod test_result;

use plimsoll_attestation::{
    Fault, PublicKey,
    base64::Alphabet,
    own::{self, Opened, Wanted},
};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

pub use receipt::Receipt;
pub use test_result::TestResult;

/// A subject with the one digest it has here.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Subject {
    /// Its name.
    pub name: String,
    /// Its digest.
    pub digest: Digest,
}

/// A digest by the algorithm's name.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub enum Digest {
    /// A git commit.
    #[serde(rename = "gitCommit")]
    Commit(String),
    /// A git tree.
    #[serde(rename = "gitTree")]
    Tree(String),
    /// A git blob.
    #[serde(rename = "gitBlob")]
    Blob(String),
    /// SHA-256 of bytes.
    #[serde(rename = "sha256")]
    Sha256(String),
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Named {
    name: String,
    digest: Digest,
}

impl Serialize for Subject {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let named = Named {
            name: self.name.clone(),
            digest: self.digest.clone(),
        };
        named.serialize(to)
    }
}

impl<'de> Deserialize<'de> for Subject {
    fn deserialize<D: serde::Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let Named { name, digest } = Named::deserialize(from)?;
        Ok(Subject { name, digest })
    }
}

/// A whole statement.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Statement<P> {
    /// `https://in-toto.io/Statement/v1`.
    #[serde(rename = "_type")]
    pub statement_type: String,
    /// What it is about.
    pub subject: Vec<Subject>,
    /// What it says.
    #[serde(rename = "predicateType")]
    pub predicate_type: String,
    /// The rest.
    pub predicate: P,
}

impl<P: Serialize> Statement<P> {
    /// A statement of a type about subjects.
    pub fn new(predicate_type: &str, subject: Vec<Subject>, predicate: P) -> Self {
        Statement {
            statement_type: plimsoll_attestation::statement::STATEMENT_TYPE.to_owned(),
            subject,
            predicate_type: predicate_type.to_owned(),
            predicate,
        }
    }

    /// Its payload's bytes.
    #[must_use]
    pub fn payload(&self) -> Vec<u8> {
        // Strings and numbers alone: there is nothing that could not be written.
        serde_json::to_vec(self).unwrap_or_default()
    }
}

/// Why a statement is not a receipt's.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Its envelope, signature or frame.
    #[error("{}", .0.reason().text())]
    Fault(Box<Fault>),
    /// Its members are not those of its type, or not in the exact form.
    #[error("the statement is not in its exact form: {0}")]
    Form(String),
}

impl From<Fault> for OpenError {
    fn from(fault: Fault) -> Self {
        OpenError::Fault(Box::new(fault))
    }
}

/// Reads a payload that must be exactly what [`Statement::payload`] writes.
///
/// # Errors
/// [`OpenError::Form`].
pub fn read<P: DeserializeOwned + Serialize>(payload: &[u8]) -> Result<Statement<P>, OpenError> {
    let statement: Statement<P> =
        serde_json::from_slice(payload).map_err(|error| OpenError::Form(error.to_string()))?;
    let written = statement.payload();
    if written == payload {
        return Ok(statement);
    }
    let at = written.iter().zip(payload).position(|(a, b)| a != b);
    let at = at.unwrap_or(written.len().min(payload.len()));
    Err(OpenError::Form(format!(
        "another spelling at byte {at} of the payload"
    )))
}

/// Opens an envelope of a receipt's directory: one line with its newline, one
/// signature by `key`, standard base64 alone.
fn open(
    envelope: &[u8],
    key: &PublicKey,
    predicate_type: &str,
    receipt: bool,
) -> Result<Opened, OpenError> {
    let line = envelope.strip_suffix(b"\n").unwrap_or(envelope);
    let opened = if receipt {
        own::open_receipt(line, key, predicate_type)?
    } else {
        own::open(line, key, Wanted::Type(predicate_type))?
    };
    if opened.alphabet == Alphabet::UrlSafe {
        return Err(OpenError::Form("URL-safe base64".to_owned()));
    }
    // One spelling of the envelope too: what is attached is what is checked.
    let read: Envelope = serde_json::from_slice(line)
        .map_err(|error| OpenError::Form(format!("the envelope: {error}")))?;
    if read.written() != line {
        return Err(OpenError::Form(
            "another spelling of the envelope".to_owned(),
        ));
    }
    Ok(opened)
}

/// An envelope in the one spelling it is written in.
#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Envelope {
    #[serde(rename = "payloadType")]
    payload_type: String,
    payload: String,
    signatures: Vec<Signature>,
}

#[derive(Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Signature {
    keyid: String,
    sig: String,
}

impl Envelope {
    fn written(&self) -> Vec<u8> {
        serde_json::to_vec(self).unwrap_or_default()
    }
}
