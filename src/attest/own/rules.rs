//! The rules of a caller's own statement, the same when signing and opening.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use super::reserved::{is_reserved, is_type};
use crate::{
    fault::{Fault, ReservedReason, StatementReason},
    statement::{MAX_SUBJECTS, STATEMENT_TYPE, Statement, Subject},
};

/// Largest payload of an own statement.
pub const MAX_PAYLOAD_BYTES: usize = 16 << 20;

/// Whether reserved types are refused, or only receipts' types allowed.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(super) enum Types {
    Own,
    Receipt,
}

impl Types {
    pub(super) fn refuse(self, text: &str, reason: ReservedReason) -> Result<(), Fault> {
        let receipt = text.starts_with(super::reserved::RESERVED_URN);
        let refused = match self {
            Types::Own => is_reserved(text),
            Types::Receipt => !receipt,
        };
        if refused {
            return Err(Fault::new(reason)
                .in_member("payload.predicateType")
                .found(text));
        }
        Ok(())
    }
}

/// A statement that follows the rules.
#[derive(Debug)]
pub(super) struct Checked<'a> {
    pub(super) predicate_type: Cow<'a, str>,
    pub(super) subjects: Vec<Subject<'a>>,
    pub(super) predicate: Option<Range<usize>>,
}

/// Checks a payload. `wanted` is compared after a reserved type was refused,
/// so that a run record never opens here, whatever was asked.
pub(super) fn check<'a>(
    payload: &'a [u8],
    wanted: Option<&str>,
    types: Types,
) -> Result<Checked<'a>, Fault> {
    if payload.len() > MAX_PAYLOAD_BYTES {
        return Err(Fault::new(StatementReason::TooLarge)
            .expected(MAX_PAYLOAD_BYTES)
            .found(payload.len()));
    }
    let statement = Statement::read(payload)?;
    types.refuse(&statement.predicate_type, ReservedReason::Payload)?;
    if let Some(wanted) = wanted
        && wanted != statement.predicate_type
    {
        return Err(Fault::new(StatementReason::PredicateType)
            .in_member("payload.predicateType")
            .expected(wanted)
            .found(&statement.predicate_type));
    }
    if let Some(fault) = statement.unknown {
        return Err(fault);
    }
    if statement.statement_type != STATEMENT_TYPE {
        return Err(Fault::new(StatementReason::StatementType)
            .in_member("payload._type")
            .expected(STATEMENT_TYPE)
            .found(&statement.statement_type));
    }
    if !statement.has_type {
        return Err(Fault::new(StatementReason::Shape).in_member("payload.predicateType"));
    }
    is_valid_type(&statement.predicate_type)?;
    subjects(&statement.subjects)?;
    if let Some(range) = &statement.predicate
        && payload.get(range.start) != Some(&b'{')
    {
        return Err(Fault::new(StatementReason::Shape).in_member("payload.predicate"));
    }
    Ok(Checked {
        predicate_type: statement.predicate_type,
        subjects: statement.subjects,
        predicate: statement.predicate,
    })
}

pub(super) fn is_valid_type(text: &str) -> Result<(), Fault> {
    if is_type(text) {
        return Ok(());
    }
    Err(Fault::new(StatementReason::Type)
        .in_member("payload.predicateType")
        .found(text))
}

/// Checks subjects: 1 to 1024, digests of known form, no two the same.
pub(super) fn subjects(subjects: &[Subject<'_>]) -> Result<(), Fault> {
    let refuse = |place: usize| {
        Fault::new(StatementReason::Subject).in_member(format!("payload.subject[{place}]"))
    };
    if !(1..=MAX_SUBJECTS).contains(&subjects.len()) {
        return Err(Fault::new(StatementReason::Subject)
            .in_member("payload.subject")
            .expected(format!("1 to {MAX_SUBJECTS} subjects"))
            .found(subjects.len()));
    }
    let mut seen = HashSet::new();
    for (place, subject) in subjects.iter().enumerate() {
        if subject.digests.is_empty() {
            return Err(refuse(place).expected("a digest"));
        }
        for (algorithm, digest) in &subject.digests {
            if !is_digest(algorithm, digest) {
                return Err(refuse(place)
                    .expected("a digest in lowercase hex of its algorithm's length")
                    .found(format!("{algorithm}:{digest}")));
            }
        }
        // The order digests are written in makes no other subject.
        let mut digests: Vec<(&str, &str)> = subject
            .digests
            .iter()
            .map(|(algorithm, digest)| (algorithm.as_ref(), digest.as_ref()))
            .collect();
        digests.sort_unstable();
        if !seen.insert((subject.name.as_ref(), digests)) {
            return Err(refuse(place)
                .expected("no two subjects of one name and digest")
                .found(&subject.name));
        }
    }
    Ok(())
}

/// Whether a digest has its algorithm's form.
#[must_use]
pub fn is_digest(algorithm: &str, digest: &str) -> bool {
    let hex = |lengths: &[usize]| {
        lengths.contains(&digest.len())
            && digest
                .bytes()
                .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
    };
    match algorithm {
        "sha256" => hex(&[64]),
        "sha384" => hex(&[96]),
        "sha512" => hex(&[128]),
        "sha1" => hex(&[40]),
        "gitCommit" | "gitTree" | "gitBlob" | "gitTag" => hex(&[40, 64]),
        other => {
            let mut letters = other.bytes();
            (1..=33).contains(&other.len())
                && letters
                    .next()
                    .is_some_and(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
                && letters.all(|b| b.is_ascii_alphanumeric() || b == b'_')
                && (1..=512).contains(&digest.len())
                && digest.bytes().all(|b| matches!(b, b' '..=b'~'))
        }
    }
}
