//! The statement that signs a session's close.

use plimsoll_wire::ids::is_hex_digest;

use super::{Statement, encode as encode_statement, opened, predicate};
use crate::{
    dsse::Envelope,
    fault::{Fault, StatementReason},
    key::PublicKey,
};

/// The predicate type.
pub const PREDICATE_TYPE: &str = "https://plimsollmark.github.io/plimsoll/session-close/v1";

const SUBJECT: &str = "session";

/// What a close states about its session.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct SessionClose {
    /// The session's fingerprint.
    pub session: String,
    /// Calls of the session, unanswered ones included.
    pub calls: u64,
    /// Digest of the last call's record; empty when there was none.
    pub last_record_sha256: String,
}

/// The statement's bytes for a close, as they are signed.
#[must_use]
pub fn encode(close: &SessionClose) -> Vec<u8> {
    let predicate = predicate::Writer::new()
        .text("session", &close.session)
        .number("calls", close.calls)
        .text("last_record_sha256", &close.last_record_sha256)
        .end();
    encode_statement(SUBJECT, &close.session, PREDICATE_TYPE, &predicate)
}

/// Verifies a close's envelope on its own.
///
/// # Errors
/// Class `signature` or `statement`.
pub fn open(envelope: &Envelope<'_>, key: &PublicKey) -> Result<SessionClose, Fault> {
    let payload = opened(envelope, key)?;
    read(Statement::read(&payload)?, &payload)
}

/// Reads a close from the payload of a verified envelope.
pub(crate) fn read(statement: Statement<'_>, payload: &[u8]) -> Result<SessionClose, Fault> {
    let (subject, predicate) = statement.framed(PREDICATE_TYPE, SUBJECT)?;
    let mut close = SessionClose::default();
    predicate::read(payload, predicate, |json, name| {
        match name {
            "session" => close.session = json.string()?.into_owned(),
            "calls" => close.calls = json.integer()?,
            "last_record_sha256" => close.last_record_sha256 = json.string()?.into_owned(),
            _ => return Ok(false),
        }
        Ok(true)
    })?;
    if !is_hex_digest(&close.session) {
        return Err(Fault::new(StatementReason::Session)
            .in_member("payload.predicate.session")
            .expected("64 lowercase hex digits")
            .found(&close.session));
    }
    if close.session != subject {
        return Err(Fault::new(StatementReason::SubjectDigest)
            .in_member("payload.subject[0].digest.sha256")
            .expected(&close.session)
            .found(subject));
    }
    Ok(close)
}
