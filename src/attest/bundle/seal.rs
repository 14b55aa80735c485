//! Checked exchanges and closes: the only things that are signed into a bundle.
//!
//! An [`Entry`] exists only when the record passed the same checks a verifier
//! makes, over the harness's own copies of request and response. What is stored
//! are the bytes encoded from those checked messages, never the bytes received.

use plimsoll_record::{
    Chain, Digest, VERSION_ANSWERED, VERSION_UNANSWERED,
    check::{self, RecordError},
};
use plimsoll_wire::{
    Kind,
    ids::is_hex_digest,
    proto::{Message, RunRecord, RunRequest, RunResponse},
};

use crate::{
    dsse::Envelope,
    fault::{Fault, SealReason},
    key::SigningKey,
    line::encode_content,
    statement::{SessionClose, run_record, session_close},
};

/// A checked exchange or close, not yet signed.
#[derive(Clone, Debug)]
pub struct Entry {
    request: Option<Vec<u8>>,
    response: Option<Vec<u8>>,
    payload: Vec<u8>,
    /// Fingerprint of the session it belongs to; empty for a single run.
    session: String,
}

impl Entry {
    /// An answered call: a single run, or a session's call in its `RunRequest`
    /// form. Its record is the one in the response.
    ///
    /// # Errors
    /// Class `bundle`: the result is of another kind than the request, the
    /// record does not check, is of version 1, or its place in a session is not
    /// well-formed.
    pub fn answered(request: &RunRequest, response: &RunResponse) -> Result<Self, Fault> {
        check::kinds(request, response).map_err(|error| {
            let name = |kind: Option<Kind>| kind.map_or("none", Kind::name);
            Fault::new(SealReason::Record)
                .in_member("result")
                .expected(name(error.asked))
                .found(name(error.got))
        })?;
        let record = check::answer(request, response).map_err(|error| unchecked(&error))?;
        if record.version != VERSION_ANSWERED {
            return Err(version(record.version));
        }
        placed(record)?;
        Ok(Entry {
            request: Some(request.encode_to_vec()),
            response: Some(response.encode_to_vec()),
            payload: run_record::encode(record),
            session: record.session.clone(),
        })
    }

    /// A session's call that gave no answer, with the record that came beside
    /// its error.
    ///
    /// # Errors
    /// As [`Entry::answered`].
    pub fn unanswered(request: &RunRequest, record: &RunRecord) -> Result<Self, Fault> {
        check::unanswered(request, Some(record)).map_err(|error| unchecked(&error))?;
        if record.version != VERSION_UNANSWERED {
            return Err(version(record.version));
        }
        placed(record)?;
        Ok(Entry {
            request: Some(request.encode_to_vec()),
            response: None,
            payload: run_record::encode(record),
            session: record.session.clone(),
        })
    }

    /// A session's close. `chain` is what this side saw; `calls` and `last` are
    /// what the daemon states.
    ///
    /// # Errors
    /// Class `bundle`: the two differ, or the session is no fingerprint.
    pub fn close(chain: &Chain, calls: u64, last: &str) -> Result<Self, Fault> {
        chain
            .closes(chain.fingerprint(), calls, last)
            .map_err(|error| match error {
                RecordError::Chain {
                    field,
                    expected,
                    found,
                } => Fault::new(SealReason::Close)
                    .in_member(field)
                    .expected(expected)
                    .found(found),
                _ => Fault::new(SealReason::Close),
            })?;
        if !is_hex_digest(chain.fingerprint()) {
            return Err(Fault::new(SealReason::Close).in_member("session"));
        }
        let close = SessionClose {
            session: chain.fingerprint().to_owned(),
            calls,
            last_record_sha256: last.to_owned(),
        };
        Ok(Entry {
            request: None,
            response: None,
            payload: session_close::encode(&close),
            session: close.session,
        })
    }

    /// Signs the entry.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> SignedEntry {
        let envelope = Envelope::sign(key, &self.payload);
        let content = encode_content(self.request.as_deref(), self.response.as_deref(), &envelope);
        SignedEntry {
            content,
            session: self.session.clone(),
        }
    }
}

/// A signed entry without a link: not yet in any bundle.
#[derive(Clone, Debug)]
pub struct SignedEntry {
    /// The line without its link and closing brace.
    content: String,
    /// Fingerprint of the session it belongs to; empty for a single run.
    session: String,
}

impl SignedEntry {
    /// The entry as a line without a link, its newline included.
    #[must_use]
    pub fn to_unlinked_line(&self) -> String {
        format!("{}}}\n", self.content)
    }

    /// The session it belongs to, by its fingerprint.
    pub(super) fn session(&self) -> Option<&str> {
        Some(self.session.as_str()).filter(|session| !session.is_empty())
    }

    pub(super) fn content(&self) -> &str {
        &self.content
    }

    pub(super) fn content_digest(&self) -> Digest {
        Digest::of(format!("{}}}", self.content).as_bytes())
    }
}

fn unchecked(error: &RecordError) -> Fault {
    let fault = Fault::new(SealReason::Record);
    match error {
        RecordError::NoRecord => fault.in_member("record"),
        RecordError::Version { found } => version(*found),
        RecordError::Mismatch {
            field,
            expected,
            found,
        }
        | RecordError::Chain {
            field,
            expected,
            found,
        } => fault
            .in_member(format!("record.{field}"))
            .expected(expected)
            .found(found),
        RecordError::IsolationEvidence { floor, tier } => fault
            .in_member("record.isolation")
            .expected(format!("at least {floor}"))
            .found(tier),
    }
}

fn version(found: u32) -> Fault {
    Fault::new(SealReason::Version)
        .in_member("record.version")
        .expected("2 or 3")
        .found(found)
}

/// Whether a record's chain fields are well-formed, so that the line can be
/// verified on its own.
fn placed(record: &RunRecord) -> Result<(), Fault> {
    let refuse =
        |member: &str| Err(Fault::new(SealReason::Chain).in_member(format!("record.{member}")));
    let previous = &record.previous_sha256;
    if record.session.is_empty() {
        if !record.unanswered.is_empty() {
            return refuse("session");
        }
        if record.sequence != 0 {
            return refuse("sequence");
        }
        if !previous.is_empty() {
            return refuse("previous_sha256");
        }
        return Ok(());
    }
    if !is_hex_digest(&record.session) {
        return refuse("session");
    }
    if record.sequence == 0 {
        return refuse("sequence");
    }
    if previous.is_empty() != (record.sequence == 1)
        || !(previous.is_empty() || is_hex_digest(previous))
    {
        return refuse("previous_sha256");
    }
    Ok(())
}
