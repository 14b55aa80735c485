//! Everything that can be checked of a line without its neighbours.
//!
//! A pure function of key and bytes, and the expensive part: it may run on any
//! core in any order. What depends on order is in [`super::verify`], which
//! takes these results in the order of the lines, so verdict, class and refused
//! line are those of one pass.

use plimsoll_record::{
    VERSION_OLD, VERSION_UNANSWERED,
    check::{self, RecordError},
};
use plimsoll_wire::{
    Kind,
    proto::{self, Message, RunRecord, RunRequest, RunResponse},
};

use crate::{
    fault::{Fault, LinkReason, SignatureReason, StoredReason},
    key::PublicKey,
    line::{Line, LineDigests},
    statement::{self, Link, SessionClose, Statement, link, run_record, session_close},
};

/// A line that stands on its own; its place is still to be checked.
pub(super) struct Examined {
    pub(super) digests: LineDigests,
    pub(super) link: Link,
    /// The entry under the link; refused only after the link's place.
    pub(super) content: Result<Content, Fault>,
}

/// What a line holds.
pub(super) enum Content {
    Checkpoint,
    Close(SessionClose),
    Call(Box<Exchange>),
}

/// A call's record and messages, checked against each other.
pub(super) struct Exchange {
    pub(super) record: RunRecord,
    pub(super) request: RunRequest,
    pub(super) response: Option<RunResponse>,
}

/// A decoded line with a link.
pub(super) struct Linked<'a> {
    line: Line<'a>,
    key_id: String,
}

impl<'a> Linked<'a> {
    /// Decodes a line and refuses one without a link.
    pub(super) fn decode(bytes: &'a [u8]) -> Result<Self, Fault> {
        let line = Line::decode(bytes)?;
        let Some(link) = &line.link else {
            return Err(Fault::new(LinkReason::Missing).in_member("link"));
        };
        let key_id = link.key_ids().next().unwrap_or_default().to_owned();
        Ok(Linked { line, key_id })
    }

    /// The key ID its link names first; data until its signature verified.
    pub(super) fn key_id(&self) -> &str {
        &self.key_id
    }

    /// Checks the line under a key.
    pub(super) fn examine(mut self, key: &PublicKey) -> Result<Examined, Fault> {
        let link = match self.line.link.take() {
            Some(envelope) => link::open(&envelope, key).map_err(|fault| fault.under("link"))?,
            None => return Err(Fault::new(LinkReason::Missing).in_member("link")),
        };
        let digests = self.line.digests();
        let content = in_place(&link, &digests).and_then(|()| {
            if link.checkpoint {
                return Ok(Content::Checkpoint);
            }
            entry(self.line, key)
        });
        Ok(Examined {
            digests,
            link,
            content,
        })
    }
}

/// What a link says of its own line.
fn in_place(link: &Link, digests: &LineDigests) -> Result<(), Fault> {
    let refuse = |reason, member: &str| {
        Fault::new(reason).in_member(format!("link.payload.predicate.{member}"))
    };
    if link.checkpoint {
        if !link.entry_sha256.is_empty() {
            return Err(
                refuse(LinkReason::CheckpointEntry, "entry_sha256").found(&link.entry_sha256)
            );
        }
        if link.lines != link.index.saturating_sub(1) {
            return Err(refuse(LinkReason::CheckpointLines, "lines")
                .expected(link.index.saturating_sub(1))
                .found(link.lines));
        }
        if digests.content.is_some() {
            return Err(Fault::new(LinkReason::CheckpointNotAlone));
        }
        return Ok(());
    }
    if link.lines != 0 {
        return Err(refuse(LinkReason::LinesOnEntry, "lines").found(link.lines));
    }
    match digests.content {
        Some(content) if content.is(&link.entry_sha256) => Ok(()),
        content => Err(refuse(LinkReason::Content, "entry_sha256")
            .expected(content.map_or_else(String::new, |content| content.to_hex()))
            .found(&link.entry_sha256)),
    }
}

fn entry(mut line: Line<'_>, key: &PublicKey) -> Result<Content, Fault> {
    let Some(envelope) = line.envelope.take() else {
        return Err(Fault::new(SignatureReason::None).in_member("envelope"));
    };
    let in_envelope = |fault: Fault| fault.under("envelope");
    let payload = statement::opened(&envelope, key).map_err(in_envelope)?;
    let statement = Statement::read(&payload).map_err(in_envelope)?;
    if statement.predicate_type == session_close::PREDICATE_TYPE {
        let close = session_close::read(statement, &payload).map_err(in_envelope)?;
        if line.request.is_some() || line.response.is_some() {
            let member = if line.request.is_some() {
                "request"
            } else {
                "response"
            };
            return Err(Fault::new(StoredReason::CloseWithMessages).in_member(member));
        }
        return Ok(Content::Close(close));
    }
    let record = run_record::read(statement, &payload).map_err(in_envelope)?;
    drop(payload);
    exchange(line, record).map(|exchange| Content::Call(Box::new(exchange)))
}

/// Checks the stored messages against the signed record.
fn exchange(line: Line<'_>, record: RunRecord) -> Result<Exchange, Fault> {
    if record.version == VERSION_OLD {
        return Err(Fault::new(StoredReason::OldRecord)
            .in_member("envelope.payload.predicate.version")
            .expected("2 or 3")
            .found(1));
    }
    let request: RunRequest = message(
        line.request,
        "request",
        StoredReason::RequestMissing,
        StoredReason::RequestDecode,
    )?;
    if record.version == VERSION_UNANSWERED {
        if line.response.is_some() {
            return Err(Fault::new(StoredReason::ResponseOnUnanswered).in_member("response"));
        }
        check::unanswered(&request, Some(&record)).map_err(|error| stored(&error))?;
        return Ok(Exchange {
            record,
            request,
            response: None,
        });
    }
    let response: RunResponse = message(
        line.response,
        "response",
        StoredReason::ResponseMissing,
        StoredReason::ResponseDecode,
    )?;
    // What no client accepts: a result that answers another question.
    check::kinds(&request, &response).map_err(|error| {
        let name = |kind: Option<Kind>| kind.map_or("none", Kind::name);
        Fault::new(StoredReason::ResultKind)
            .in_member("response")
            .expected(name(error.asked))
            .found(name(error.got))
    })?;
    let inner = check::answer(&request, &response).map_err(|error| stored(&error))?;
    if let Some((field, signed, found)) = first_difference(&record, inner) {
        return Err(Fault::new(StoredReason::RecordDiffers)
            .in_member(format!("response.record.{field}"))
            .expected(signed)
            .found(found));
    }
    Ok(Exchange {
        record,
        request,
        response: Some(response),
    })
}

fn message<M: Message>(
    bytes: Option<Vec<u8>>,
    member: &str,
    missing: StoredReason,
    broken: StoredReason,
) -> Result<M, Fault> {
    let bytes = bytes.ok_or_else(|| Fault::new(missing).in_member(member))?;
    proto::decode(&bytes).map_err(|error| Fault::new(broken).in_member(member).found(error))
}

fn stored(error: &RecordError) -> Fault {
    let at = |reason, field: &str| Fault::new(reason).in_member(format!("record.{field}"));
    match error {
        RecordError::NoRecord => Fault::new(StoredReason::NoRecord).in_member("response.record"),
        RecordError::Version { found } => at(StoredReason::Version, "version").found(found),
        RecordError::Mismatch {
            field,
            expected,
            found,
        }
        | RecordError::Chain {
            field,
            expected,
            found,
        } => at(StoredReason::Mismatch, field)
            .expected(expected)
            .found(found),
        RecordError::IsolationEvidence { floor, tier } => at(StoredReason::Isolation, "isolation")
            .expected(format!("at least {floor}"))
            .found(tier),
    }
}

/// The first field in which two records differ, and its two values. Every
/// field of the message is named: a new one does not compile until it is here.
fn first_difference(
    signed: &RunRecord,
    stored: &RunRecord,
) -> Option<(&'static str, String, String)> {
    macro_rules! compare {
        ($($field:ident),+ $(,)?) => {{
            let RunRecord { $($field),+ } = signed;
            $(if *$field != stored.$field {
                return Some((stringify!($field), $field.to_string(), stored.$field.to_string()));
            })+
            None
        }};
    }
    compare!(
        version,
        request_sha256,
        result_sha256,
        provider,
        isolation,
        environment,
        policy,
        started_unix_ms,
        ended_unix_ms,
        session,
        sequence,
        previous_sha256,
        record_sha256,
        software_identity,
        software_rule_id,
        unanswered,
    )
}
