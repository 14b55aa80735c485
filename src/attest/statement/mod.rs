//! in-toto statements: the exact encoding when signing, the strict reading when
//! verifying.
//!
//! Three predicate types belong to this system and each has a module. Reading
//! refuses what another reader could understand differently: unknown, repeated
//! or re-cased members, data after the object, numbers that are no plain
//! integers.

pub mod link;
pub mod run_record;
pub mod session_close;

mod predicate;

use std::{borrow::Cow, ops::Range};

use plimsoll_wire::proto::RunRecord;

use crate::{
    dsse::{Envelope, PAYLOAD_TYPE},
    escape::{self, Out},
    fault::{Fault, StatementReason},
    json::{Json, JsonFault, Kind},
    key::PublicKey,
};

pub use link::Link;
pub use session_close::SessionClose;

/// The type of every statement.
pub const STATEMENT_TYPE: &str = "https://in-toto.io/Statement/v1";

/// Most subjects of a statement.
pub const MAX_SUBJECTS: usize = 1024;

/// A subject as read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Subject<'a> {
    /// Its name; may be empty.
    pub name: Cow<'a, str>,
    /// Its digests by algorithm, in the order written.
    pub digests: Vec<(Cow<'a, str>, Cow<'a, str>)>,
}

/// A statement's frame; the predicate is checked JSON, not yet understood.
pub(crate) struct Statement<'a> {
    pub(crate) statement_type: Cow<'a, str>,
    pub(crate) subjects: Vec<Subject<'a>>,
    pub(crate) predicate_type: Cow<'a, str>,
    /// The predicate's bytes in the payload.
    pub(crate) predicate: Option<Range<usize>>,
    /// The first unknown member, to be refused after a reserved type is.
    pub(crate) unknown: Option<Fault>,
    pub(crate) has_type: bool,
}

impl<'a> Statement<'a> {
    /// Reads the frame of a payload: strict JSON, nothing repeated at any depth.
    pub(crate) fn read(payload: &'a [u8]) -> Result<Self, Fault> {
        let text = std::str::from_utf8(payload).map_err(|error| {
            Fault::new(StatementReason::Json)
                .in_member("payload")
                .over_bytes(error.valid_up_to()..payload.len())
        })?;
        let mut statement = Statement {
            statement_type: Cow::Borrowed(""),
            subjects: Vec::new(),
            predicate_type: Cow::Borrowed(""),
            predicate: None,
            unknown: None,
            has_type: false,
        };
        let mut json = Json::new(text);
        statement
            .members(&mut json)
            .and_then(|()| json.end())
            .map_err(|fault| refused(fault, "payload"))?;
        Ok(statement)
    }

    fn members(&mut self, json: &mut Json<'a>) -> Result<(), JsonFault> {
        json.object(|json, name, at| {
            match name {
                "_type" => self.statement_type = json.string()?,
                "subject" => json.array(|json| self.subject(json))?,
                "predicateType" => {
                    self.predicate_type = json.string()?;
                    self.has_type = true;
                }
                "predicate" => self.predicate = Some(json.skip()?),
                _ => {
                    let fault = json.unknown(name, at);
                    json.skip()?;
                    self.unknown
                        .get_or_insert_with(|| refused(fault, "payload"));
                }
            }
            Ok(())
        })
    }

    fn subject(&mut self, json: &mut Json<'a>) -> Result<(), JsonFault> {
        if self.subjects.len() > MAX_SUBJECTS {
            // Too many already, which the caller refuses; nothing more is kept.
            return json.skip().map(drop);
        }
        let mut subject = Subject {
            name: Cow::Borrowed(""),
            digests: Vec::new(),
        };
        json.object::<JsonFault>(|json, name, at| {
            match name {
                "name" => subject.name = json.string()?,
                "digest" => json.object::<JsonFault>(|json, algorithm, _| {
                    let value = json.string()?;
                    subject
                        .digests
                        .push((Cow::Owned(algorithm.to_owned()), value));
                    Ok(())
                })?,
                _ => {
                    let fault = json.unknown(name, at);
                    json.skip()?;
                    self.unknown
                        .get_or_insert_with(|| refused(fault, "payload.subject"));
                }
            }
            Ok(())
        })?;
        self.subjects.push(subject);
        Ok(())
    }

    /// Checks the frame of one of this system's statements and gives the
    /// digest of its one subject.
    pub(crate) fn framed(
        mut self,
        predicate_type: &str,
        subject: &str,
    ) -> Result<(String, Option<Range<usize>>), Fault> {
        if let Some(fault) = self.unknown {
            return Err(fault);
        }
        let same = |reason, member: &str, expected: &str, found: &str| {
            if expected == found {
                return Ok(());
            }
            Err(Fault::new(reason)
                .in_member(member)
                .expected(expected)
                .found(found))
        };
        same(
            StatementReason::StatementType,
            "payload._type",
            STATEMENT_TYPE,
            &self.statement_type,
        )?;
        same(
            StatementReason::PredicateType,
            "payload.predicateType",
            predicate_type,
            &self.predicate_type,
        )?;
        let [one] = self.subjects.as_mut_slice() else {
            return Err(Fault::new(StatementReason::SubjectCount)
                .in_member("payload.subject")
                .expected(1)
                .found(self.subjects.len()));
        };
        same(
            StatementReason::SubjectName,
            "payload.subject[0].name",
            subject,
            &one.name,
        )?;
        match one.digests.as_mut_slice() {
            [(algorithm, digest)] if algorithm == "sha256" => {
                Ok((std::mem::take(digest).into_owned(), self.predicate))
            }
            _ => Err(Fault::new(StatementReason::SubjectDigest)
                .in_member("payload.subject[0].digest")
                .expected("sha256 alone")),
        }
    }
}

/// What a payload says, when nobody checked who signed it.
#[derive(Clone, Debug, PartialEq)]
pub enum Unverified {
    /// A run record, consistent in itself.
    Record(Box<RunRecord>),
    /// A session's close.
    Close(SessionClose),
    /// A line's link.
    Link(Link),
    /// A statement of another type.
    Other(String),
}

/// Reads a payload without any signature: for showing what a file says, never
/// for deciding anything.
///
/// # Errors
/// Class `statement`.
pub fn read_unverified(payload: &[u8]) -> Result<Unverified, Fault> {
    let statement = Statement::read(payload)?;
    match statement.predicate_type.as_ref() {
        run_record::PREDICATE_TYPE => {
            run_record::read(statement, payload).map(|record| Unverified::Record(Box::new(record)))
        }
        session_close::PREDICATE_TYPE => {
            session_close::read(statement, payload).map(Unverified::Close)
        }
        link::PREDICATE_TYPE => link::read(statement, payload).map(Unverified::Link),
        _ => Ok(Unverified::Other(statement.predicate_type.into_owned())),
    }
}

/// Checks signature and payload type of an envelope of a bundle and gives the
/// payload's bytes.
pub(crate) fn opened(envelope: &Envelope<'_>, key: &PublicKey) -> Result<Vec<u8>, Fault> {
    let payload = envelope.payload_bytes()?;
    verified(envelope, key, &payload)?;
    Ok(payload)
}

/// [`opened`] for a payload that was decoded already.
pub(crate) fn verified(
    envelope: &Envelope<'_>,
    key: &PublicKey,
    payload: &[u8],
) -> Result<(), Fault> {
    envelope.verify(key, payload, false)?;
    if envelope.payload_type == PAYLOAD_TYPE {
        return Ok(());
    }
    Err(Fault::new(StatementReason::PayloadType)
        .in_member("payloadType")
        .expected(PAYLOAD_TYPE)
        .found(&envelope.payload_type))
}

/// Encodes a statement of one subject.
pub(crate) fn encode(
    subject: &str,
    digest: &str,
    predicate_type: &str,
    predicate: &str,
) -> Vec<u8> {
    let mut out = String::with_capacity(300 + predicate.len());
    head(&mut out);
    subject_into(&mut out, subject, [("sha256", digest)].into_iter());
    out.put("],\"predicateType\":");
    escape::string(&mut out, predicate_type);
    out.put(",\"predicate\":");
    out.put(predicate);
    out.put("}");
    out.into_bytes()
}

/// Writes a statement up to its first subject.
pub(crate) fn head(out: &mut String) {
    out.put("{\"_type\":");
    escape::string(out, STATEMENT_TYPE);
    out.put(",\"subject\":[");
}

/// Writes one subject.
pub(crate) fn subject_into<'s>(
    out: &mut String,
    name: &str,
    digests: impl Iterator<Item = (&'s str, &'s str)>,
) {
    out.put("{\"name\":");
    escape::string(out, name);
    out.put(",\"digest\":{");
    for (n, (algorithm, digest)) in digests.enumerate() {
        if n > 0 {
            out.put(",");
        }
        escape::string(out, algorithm);
        out.put(":");
        escape::string(out, digest);
    }
    out.put("}}");
}

/// A JSON fault of a payload as a refusal under a member path.
pub(crate) fn refused(fault: JsonFault, path: &str) -> Fault {
    let reason = match fault.kind {
        Kind::ControlCharacter | Kind::Syntax => StatementReason::Json,
        Kind::NotInteger => StatementReason::NotInteger,
        Kind::Repeated => StatementReason::RepeatedMember,
        Kind::TooDeep => StatementReason::TooDeep,
        Kind::Trailing => StatementReason::TrailingData,
        Kind::Unknown => StatementReason::UnknownMember,
        Kind::WrongType => StatementReason::WrongType,
    };
    Fault::new(reason).in_member(match fault.member {
        Some(member) => format!("{path}.{member}"),
        None => path.to_owned(),
    })
}
