//! Statements of a caller's own type: signing and opening.
//!
//! They prove who signed them and nothing of any run: a tool that relies on a
//! run verifies that run's bundle or line too, and compares digests itself.
//! The types of this system are refused both ways, so that a generic signature
//! cannot pass for a checked run.

pub mod reserved;

mod rules;

use std::borrow::Cow;

use plimsoll_record::Digest;

pub use rules::{MAX_PAYLOAD_BYTES, is_digest};
use rules::{Types, check, is_valid_type, subjects};

use crate::{
    base64::Alphabet,
    dsse::{Envelope, EnvelopeFault, Members, PAYLOAD_TYPE},
    escape,
    fault::{Fault, ReservedReason, SignatureReason, StatementReason},
    json::{Json, JsonFault, Kind},
    key::{PublicKey, SigningKey},
    statement::{self, Subject},
};

/// Largest envelope that is read: a full payload in base64 and its frame.
pub const MAX_ENVELOPE_BYTES: usize = MAX_PAYLOAD_BYTES / 3 * 4 + (64 << 10);

/// An own statement that follows the rules and may be signed.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct OwnStatement {
    payload: Vec<u8>,
    predicate_type: String,
}

impl OwnStatement {
    /// Builds a statement from its parts: subjects as name and SHA-256, and the
    /// predicate's JSON text or none. Member order and number texts of the
    /// predicate stay; white space goes, and `<`, `>`, `&`, U+2028 and U+2029
    /// are escaped.
    ///
    /// # Errors
    /// Class `reserved` or `statement`.
    pub fn build<'s>(
        predicate_type: &str,
        named: impl IntoIterator<Item = (&'s str, &'s str)>,
        predicate: Option<&[u8]>,
    ) -> Result<Self, Fault> {
        is_valid_type(predicate_type)?;
        Types::Own.refuse(predicate_type, ReservedReason::Asked)?;
        Self::assembled(predicate_type, named, predicate, Types::Own)
    }

    fn assembled<'s>(
        predicate_type: &str,
        named: impl IntoIterator<Item = (&'s str, &'s str)>,
        predicate: Option<&[u8]>,
        types: Types,
    ) -> Result<Self, Fault> {
        let listed: Vec<Subject<'_>> = named
            .into_iter()
            .map(|(name, digest)| Subject {
                name: Cow::Borrowed(name),
                digests: vec![(Cow::Borrowed("sha256"), Cow::Borrowed(digest))],
            })
            .collect();
        subjects(&listed)?;
        if let Some(place) = listed.iter().position(|subject| subject.name.is_empty()) {
            return Err(Fault::new(StatementReason::Subject)
                .in_member(format!("payload.subject[{place}].name"))
                .expected("a name"));
        }
        let mut out = String::new();
        statement::head(&mut out);
        for (n, subject) in listed.iter().enumerate() {
            if n > 0 {
                out.push(',');
            }
            let digests = subject
                .digests
                .iter()
                .map(|(a, d)| (a.as_ref(), d.as_ref()));
            statement::subject_into(&mut out, &subject.name, digests);
        }
        out.push_str("],\"predicateType\":");
        escape::string(&mut out, predicate_type);
        if let Some(predicate) = predicate {
            out.push_str(",\"predicate\":");
            compacted(predicate, &mut out)?;
        }
        out.push('}');
        Self::whole(out.into_bytes(), types)
    }

    /// Takes a whole statement and keeps its bytes as the payload, so that what
    /// is signed is what was reviewed.
    ///
    /// # Errors
    /// Class `statement` or `reserved`.
    pub fn from_payload(payload: Vec<u8>) -> Result<Self, Fault> {
        Self::whole(payload, Types::Own)
    }

    fn whole(payload: Vec<u8>, types: Types) -> Result<Self, Fault> {
        let checked = check(&payload, None, types).map_err(as_input)?;
        let predicate_type = checked.predicate_type.into_owned();
        Ok(OwnStatement {
            payload,
            predicate_type,
        })
    }

    /// The bytes that are signed.
    #[must_use]
    pub fn payload(&self) -> &[u8] {
        &self.payload
    }

    /// The predicate type.
    #[must_use]
    pub fn predicate_type(&self) -> &str {
        &self.predicate_type
    }

    /// Signs the statement.
    #[must_use]
    pub fn sign(&self, key: &SigningKey) -> Envelope<'static> {
        Envelope::sign(key, &self.payload)
    }
}

/// The statement of a pull-request receipt: the one kind under the reserved
/// `urn:plimsoll-attest:` that is signed, by the code that made the receipt.
///
/// # Errors
/// Class `statement`, or `reserved` for any other type.
pub fn receipt<'s>(
    predicate_type: &str,
    named: impl IntoIterator<Item = (&'s str, &'s str)>,
    predicate: &[u8],
) -> Result<OwnStatement, Fault> {
    is_valid_type(predicate_type)?;
    Types::Receipt.refuse(predicate_type, ReservedReason::Asked)?;
    OwnStatement::assembled(predicate_type, named, Some(predicate), Types::Receipt)
}

/// [`receipt`] for a whole statement, whose subjects may name git objects too.
/// Its bytes are the payload.
///
/// # Errors
/// As [`receipt`].
pub fn receipt_statement(payload: Vec<u8>) -> Result<OwnStatement, Fault> {
    OwnStatement::whole(payload, Types::Receipt)
}

/// Which predicate type an opened statement must have.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Wanted<'a> {
    /// Exactly this one, byte for byte.
    Type(&'a str),
    /// Any that is not reserved; an unchecked type is how a statement of one
    /// kind passes for another.
    Any,
}

/// A statement whose signature, form and type were checked.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Opened {
    /// ID of the key that signed it.
    pub key_id: String,
    /// The predicate type.
    pub predicate_type: String,
    /// The subjects; at least one.
    pub subjects: Vec<Subject<'static>>,
    /// The payload's bytes, as signed.
    pub payload: Vec<u8>,
    /// The alphabet: URL-safe when payload or signature used it.
    pub alphabet: Alphabet,
    predicate: Option<std::ops::Range<usize>>,
}

impl Opened {
    /// The predicate's bytes as they stand in the payload.
    #[must_use]
    pub fn predicate(&self) -> Option<&[u8]> {
        self.payload.get(self.predicate.clone()?)
    }

    /// SHA-256 of the payload.
    #[must_use]
    pub fn payload_sha256(&self) -> Digest {
        Digest::of(&self.payload)
    }

    /// Names of the subjects that have this digest; any listed subject may match.
    ///
    /// # Errors
    /// Class `statement` when none has.
    pub fn subjects_with(&self, algorithm: &str, digest: &str) -> Result<Vec<&str>, Fault> {
        let names: Vec<&str> = self
            .subjects
            .iter()
            .filter(|subject| {
                subject
                    .digests
                    .iter()
                    .any(|(a, d)| a == algorithm && d == digest)
            })
            .map(|subject| subject.name.as_ref())
            .collect();
        if names.is_empty() {
            return Err(Fault::new(StatementReason::SubjectAbsent)
                .in_member("payload.subject")
                .expected(format!("{algorithm}:{digest}")));
        }
        Ok(names)
    }
}

/// Opens an envelope of a caller's own statement: one signature by `key`.
/// Payload and signature may use the standard or the URL-safe alphabet.
///
/// # Errors
/// Class `reserved`, `signature` or `statement`. A reserved type asked for is
/// refused before anything is read.
pub fn open(envelope: &[u8], key: &PublicKey, wanted: Wanted<'_>) -> Result<Opened, Fault> {
    open_as(envelope, key, wanted, Types::Own)
}

/// [`open`] for a receipt's statement, which must have exactly `predicate_type`.
///
/// # Errors
/// As [`open`]; class `reserved` for a type that is not a receipt's.
pub fn open_receipt(
    envelope: &[u8],
    key: &PublicKey,
    predicate_type: &str,
) -> Result<Opened, Fault> {
    open_as(envelope, key, Wanted::Type(predicate_type), Types::Receipt)
}

fn open_as(
    envelope: &[u8],
    key: &PublicKey,
    wanted: Wanted<'_>,
    types: Types,
) -> Result<Opened, Fault> {
    let wanted = match wanted {
        Wanted::Type(text) => {
            types.refuse(text, ReservedReason::Asked)?;
            Some(text)
        }
        Wanted::Any => None,
    };
    let envelope = read_envelope(envelope)?;
    if envelope.payload_type != PAYLOAD_TYPE {
        return Err(Fault::new(StatementReason::PayloadType)
            .in_member("payloadType")
            .expected(PAYLOAD_TYPE)
            .found(&envelope.payload_type));
    }
    let (payload, alphabet) = envelope.payload_bytes_either()?;
    let signed_in = envelope.verify(key, &payload, true)?;
    let signatures = envelope.signatures.as_deref().unwrap_or_default().len();
    if signatures != 1 {
        return Err(Fault::new(StatementReason::ManySignatures)
            .in_member("signatures")
            .expected(1)
            .found(signatures));
    }
    let checked = check(&payload, wanted, types)?;
    let subjects = checked.subjects.into_iter().map(owned).collect();
    let (predicate_type, predicate) = (checked.predicate_type.into_owned(), checked.predicate);
    Ok(Opened {
        key_id: key.id().to_owned(),
        predicate_type,
        subjects,
        predicate,
        payload,
        alphabet: if signed_in == Alphabet::UrlSafe {
            signed_in
        } else {
            alphabet
        },
    })
}

fn owned(subject: Subject<'_>) -> Subject<'static> {
    let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
    Subject {
        name: own(subject.name),
        digests: subject
            .digests
            .into_iter()
            .map(|(algorithm, digest)| (own(algorithm), own(digest)))
            .collect(),
    }
}

fn read_envelope(text: &[u8]) -> Result<Envelope<'_>, Fault> {
    if text.len() > MAX_ENVELOPE_BYTES {
        return Err(Fault::new(StatementReason::TooLarge)
            .expected(MAX_ENVELOPE_BYTES)
            .found(text.len()));
    }
    let parse = |at: usize| Fault::new(StatementReason::Parse).over_bytes(at..at + 1);
    let text = std::str::from_utf8(text).map_err(|error| parse(error.valid_up_to()))?;
    let mut json = Json::new(text);
    let envelope = Envelope::read(&mut json, Members::Foreign).map_err(|fault| match fault {
        EnvelopeFault::Json(fault) => envelope_fault(fault),
        EnvelopeFault::Missing("signatures", _) => Fault::new(SignatureReason::None),
        EnvelopeFault::Missing(member, at) => parse(at).in_member(member),
        EnvelopeFault::TooMany(_) => Fault::new(SignatureReason::TooMany),
    })?;
    json.end().map_err(envelope_fault)?;
    Ok(envelope)
}

fn envelope_fault(fault: JsonFault) -> Fault {
    let at = fault.at;
    let refusal = Fault::new(match fault.kind {
        Kind::Repeated => StatementReason::RepeatedMember,
        Kind::Unknown => StatementReason::UnknownMember,
        _ => StatementReason::Parse,
    })
    .over_bytes(at..at + 1);
    match fault.member {
        Some(member) => refusal.in_member(member),
        None => refusal,
    }
}

/// A fault of a statement that was given, rather than found in an envelope:
/// one word for everything that is no strict JSON of a statement's form.
fn as_input(fault: Fault) -> Fault {
    use crate::fault::Reason::Statement;
    let reason = match fault.reason() {
        Statement(
            StatementReason::Json
            | StatementReason::RepeatedMember
            | StatementReason::TooDeep
            | StatementReason::TooLarge
            | StatementReason::TrailingData,
        ) => StatementReason::Parse,
        Statement(StatementReason::UnknownMember | StatementReason::WrongType) => {
            StatementReason::Shape
        }
        Statement(StatementReason::StatementType) => StatementReason::Type,
        _ => return fault,
    };
    fault.with_reason(reason)
}

/// Writes a predicate without white space and with the escapes of statements.
fn compacted(predicate: &[u8], out: &mut String) -> Result<(), Fault> {
    let refuse = |reason| Fault::new(reason).in_member("payload.predicate");
    if predicate.len() > MAX_PAYLOAD_BYTES {
        return Err(refuse(StatementReason::Parse).expected("at most 16 MiB"));
    }
    let text = std::str::from_utf8(predicate).map_err(|_| refuse(StatementReason::Parse))?;
    let mut json = Json::new(text);
    let range = json
        .skip()
        .and_then(|range| json.end().map(|()| range))
        .map_err(|fault| as_input(statement::refused(fault, "payload.predicate")))?;
    let text = &text[range];
    if !text.starts_with('{') {
        return Err(refuse(StatementReason::Shape));
    }
    let mut in_string = false;
    let mut escaped = false;
    for c in text.chars() {
        match c {
            ' ' | '\t' | '\n' | '\r' if !in_string => continue,
            // Outside strings JSON has none of these.
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
        if c == '"' && !escaped {
            in_string = !in_string;
        }
        escaped = in_string && c == '\\' && !escaped;
    }
    Ok(())
}
