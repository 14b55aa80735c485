//! The statement that holds a line in its place.

use super::{Statement, encode as encode_statement, predicate, verified};
use crate::{
    dsse::Envelope,
    fault::{Fault, StatementReason},
    key::PublicKey,
};

/// The predicate type.
pub const PREDICATE_TYPE: &str = "https://plimsollmark.github.io/plimsoll/bundle-link/v1";

const SUBJECT: &str = "bundle-line";

/// What a link states about its line. Members that would be empty, false or 0
/// are left out when it is written.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Link {
    /// The line's position, counted from 1.
    pub index: u64,
    /// LineDigest of the line before; empty on line 1.
    pub previous_sha256: String,
    /// ContentDigest of this line; empty on a checkpoint.
    pub entry_sha256: String,
    /// Whether the line is a checkpoint.
    pub checkpoint: bool,
    /// On a checkpoint, the number of lines before it.
    pub lines: u64,
}

impl Link {
    fn subject(&self) -> &str {
        if self.checkpoint {
            &self.previous_sha256
        } else {
            &self.entry_sha256
        }
    }
}

/// The statement's bytes for a link, as they are signed.
#[must_use]
pub fn encode(link: &Link) -> Vec<u8> {
    let mut predicate = predicate::Writer::new()
        .number("index", link.index)
        .text("previous_sha256", &link.previous_sha256)
        .some_text("entry_sha256", &link.entry_sha256);
    if link.checkpoint {
        predicate = predicate.yes("checkpoint");
    }
    if link.lines > 0 {
        predicate = predicate.number("lines", link.lines);
    }
    encode_statement(SUBJECT, link.subject(), PREDICATE_TYPE, &predicate.end())
}

/// Verifies a link's envelope: exactly one signature, which names the key.
///
/// # Errors
/// Class `signature` or `statement`.
pub fn open(envelope: &Envelope<'_>, key: &PublicKey) -> Result<Link, Fault> {
    let payload = envelope.payload_bytes()?;
    verified(envelope, key, &payload)?;
    // A signature that verified is not enough here: nothing later covers the last
    // link of a file, so an added or unnamed one would be a free change.
    let signatures = envelope.signatures.as_deref().unwrap_or_default();
    match signatures {
        [one] if one.keyid == key.id() => {}
        [_] => {
            return Err(Fault::new(StatementReason::EmptyKeyId)
                .in_member("signatures[0].keyid")
                .expected(key.id()));
        }
        many => {
            return Err(Fault::new(StatementReason::ManySignatures)
                .in_member("signatures")
                .expected(1)
                .found(many.len()));
        }
    }
    read(Statement::read(&payload)?, &payload)
}

/// Reads a link from the payload of a verified envelope.
pub(crate) fn read(statement: Statement<'_>, payload: &[u8]) -> Result<Link, Fault> {
    let (subject, predicate) = statement.framed(PREDICATE_TYPE, SUBJECT)?;
    let mut link = Link::default();
    predicate::read(payload, predicate, |json, name| {
        match name {
            "index" => link.index = json.integer()?,
            "previous_sha256" => link.previous_sha256 = json.string()?.into_owned(),
            "entry_sha256" => link.entry_sha256 = json.string()?.into_owned(),
            "checkpoint" => link.checkpoint = json.boolean()?,
            "lines" => link.lines = json.integer()?,
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if link.subject() != subject {
        return Err(Fault::new(StatementReason::SubjectDigest)
            .in_member("payload.subject[0].digest.sha256")
            .expected(link.subject())
            .found(subject));
    }
    Ok(link)
}
