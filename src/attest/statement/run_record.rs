//! The statement that signs a run record.

use std::ops::Range;

use plimsoll_record::{VERSION_ANSWERED, VERSION_OLD, VERSION_UNANSWERED, record_digest};
use plimsoll_wire::proto::RunRecord;

use super::{Statement, encode as encode_statement, opened, predicate};
use crate::{
    dsse::Envelope,
    fault::{Fault, StatementReason},
    key::PublicKey,
};

/// The predicate type, for all record versions.
pub const PREDICATE_TYPE: &str = "https://plimsollmark.github.io/plimsoll/run-record/v1";

const SUBJECT: &str = "run-record";

/// The statement's bytes for a record, as they are signed.
#[must_use]
pub fn encode(record: &RunRecord) -> Vec<u8> {
    encode_statement(
        SUBJECT,
        &record.record_sha256,
        PREDICATE_TYPE,
        &predicate(record),
    )
}

/// The record as the predicate of its statement: compact JSON with the wire's
/// names, numbers as numbers.
#[must_use]
pub fn predicate(record: &RunRecord) -> String {
    predicate::Writer::new()
        .number("version", record.version)
        .text("request_sha256", &record.request_sha256)
        .text("result_sha256", &record.result_sha256)
        .text("provider", &record.provider)
        .text("isolation", &record.isolation)
        .text("environment", &record.environment)
        .some_text("software_identity", &record.software_identity)
        .some_text("software_rule_id", &record.software_rule_id)
        .text("policy", &record.policy)
        .number("started_unix_ms", record.started_unix_ms)
        .number("ended_unix_ms", record.ended_unix_ms)
        .text("session", &record.session)
        .number("sequence", record.sequence)
        .text("previous_sha256", &record.previous_sha256)
        .some_text("unanswered", &record.unanswered)
        .text("record_sha256", &record.record_sha256)
        .end()
}

/// Verifies a record's envelope on its own: it proves who signed which record,
/// and nothing about the stored messages.
///
/// # Errors
/// Class `signature` or `statement`.
pub fn open(envelope: &Envelope<'_>, key: &PublicKey) -> Result<RunRecord, Fault> {
    let payload = opened(envelope, key)?;
    read(Statement::read(&payload)?, &payload)
}

/// Reads a record from the payload of a verified envelope.
pub(crate) fn read(statement: Statement<'_>, payload: &[u8]) -> Result<RunRecord, Fault> {
    let (subject, predicate) = statement.framed(PREDICATE_TYPE, SUBJECT)?;
    let record = members(payload, predicate)?;
    consistent(&record, &subject)?;
    Ok(record)
}

/// Reads a record from its predicate's JSON text, for people who check by hand:
/// no signature, no digest and no version is checked.
///
/// # Errors
/// Class `statement`: not a strict JSON object of a record's members.
pub fn from_predicate(text: &[u8]) -> Result<RunRecord, Fault> {
    members(text, Some(0..text.len()))
}

fn members(payload: &[u8], predicate: Option<Range<usize>>) -> Result<RunRecord, Fault> {
    let mut record = RunRecord::default();
    predicate::read(payload, predicate, |json, name| {
        let text = match name {
            "version" => {
                record.version = json.integer()?;
                return Ok(true);
            }
            "started_unix_ms" => {
                record.started_unix_ms = json.integer()?;
                return Ok(true);
            }
            "ended_unix_ms" => {
                record.ended_unix_ms = json.integer()?;
                return Ok(true);
            }
            "sequence" => {
                record.sequence = json.integer()?;
                return Ok(true);
            }
            "request_sha256" => &mut record.request_sha256,
            "result_sha256" => &mut record.result_sha256,
            "provider" => &mut record.provider,
            "isolation" => &mut record.isolation,
            "environment" => &mut record.environment,
            "software_identity" => &mut record.software_identity,
            "software_rule_id" => &mut record.software_rule_id,
            "policy" => &mut record.policy,
            "session" => &mut record.session,
            "previous_sha256" => &mut record.previous_sha256,
            "unanswered" => &mut record.unanswered,
            "record_sha256" => &mut record.record_sha256,
            _ => return Ok(false),
        };
        *text = json.string()?.into_owned();
        Ok(true)
    })?;
    Ok(record)
}

/// What one statement can show about its record.
fn consistent(record: &RunRecord, subject: &str) -> Result<(), Fault> {
    let refuse =
        |reason, member: &str| Fault::new(reason).in_member(format!("payload.predicate.{member}"));
    let old = record.version == VERSION_OLD;
    if !old && !matches!(record.version, VERSION_ANSWERED | VERSION_UNANSWERED) {
        return Err(refuse(StatementReason::Version, "version")
            .expected("1, 2 or 3")
            .found(record.version));
    }
    if (record.version == VERSION_UNANSWERED) == record.unanswered.is_empty() {
        return Err(refuse(StatementReason::Unanswered, "unanswered").found(&record.unanswered));
    }
    if old && !(record.software_identity.is_empty() && record.software_rule_id.is_empty()) {
        return Err(refuse(StatementReason::SoftwareOnOld, "software_identity"));
    }
    let digest = record_digest(record);
    if !digest.is_some_and(|digest| digest.is(&record.record_sha256)) {
        return Err(refuse(StatementReason::RecordDigest, "record_sha256")
            .expected(digest.map_or_else(String::new, |digest| digest.to_hex()))
            .found(&record.record_sha256));
    }
    if record.record_sha256 != subject {
        return Err(Fault::new(StatementReason::SubjectDigest)
            .in_member("payload.subject[0].digest.sha256")
            .expected(&record.record_sha256)
            .found(subject));
    }
    Ok(())
}
