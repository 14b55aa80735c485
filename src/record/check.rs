//! Checks on records. Each failure is of one class, and none is ever a signal
//! to send the call again: the code may have run.

use plimsoll_wire::{
    Code, Kind, Rule,
    proto::{RunRecord, RunRequest, RunResponse},
    tier,
};

use crate::{
    Chain, VERSION_ANSWERED, VERSION_OLD, VERSION_UNANSWERED,
    fields::{record_digest, request_digest, result_digest},
    make::Stated,
};

/// Why a record does not stand for an exchange.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// An answer without a record.
    #[error("the answer carries no record")]
    NoRecord,
    /// A version that is unknown, or not allowed where it stands.
    #[error("record version {found} is not accepted here")]
    Version {
        /// The version stated.
        found: u32,
    },
    /// Something that can be recomputed differs.
    #[error("the record's {field} differs")]
    Mismatch {
        /// The record's field, or `software_rule` for the request's own rule.
        field: &'static str,
        /// What was recomputed or stated beside the record.
        expected: String,
        /// What the record states; data, to be escaped.
        found: String,
    },
    /// The tier is below the request's floor.
    #[error("the record's tier does not meet the request's floor {floor}")]
    IsolationEvidence {
        /// The request's floor.
        floor: String,
        /// The record's tier; data, to be escaped.
        tier: String,
    },
    /// The record does not continue its session's chain.
    #[error("the record does not continue its session: {field} differs")]
    Chain {
        /// The field that breaks the chain.
        field: &'static str,
        /// What would continue it.
        expected: String,
        /// What is stated; data, to be escaped.
        found: String,
    },
}

impl RecordError {
    /// The class's stable name.
    #[must_use]
    pub const fn class(&self) -> &'static str {
        match self {
            RecordError::NoRecord => "no_record",
            RecordError::Version { .. } => "version",
            RecordError::Mismatch { .. } => "mismatch",
            RecordError::IsolationEvidence { .. } => "isolation_evidence",
            RecordError::Chain { .. } => "chain",
        }
    }
}

/// An answer of another kind than its request, or either without one: no
/// record binds the two to each other's kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the answer holds {}, the request asked for {}",
    .got.map_or("no result", Kind::name),
    .asked.map_or("nothing", Kind::name)
)]
pub struct KindError {
    /// The request's kind; `None` without a payload.
    pub asked: Option<Kind>,
    /// The answer's kind; `None` without a result.
    pub got: Option<Kind>,
}

/// Checks that an answer is of its request's kind, and gives that. Comes before
/// the record's own checks.
///
/// # Errors
/// [`KindError`].
pub fn kinds(request: &RunRequest, response: &RunResponse) -> Result<Kind, KindError> {
    match (Kind::of_request(request), Kind::of_response(response)) {
        (Some(asked), Some(got)) if asked == got => Ok(got),
        (asked, got) => Err(KindError { asked, got }),
    }
}

fn same(field: &'static str, expected: &str, found: &str) -> Result<(), RecordError> {
    if expected == found {
        return Ok(());
    }
    Err(RecordError::Mismatch {
        field,
        expected: expected.to_owned(),
        found: found.to_owned(),
    })
}

fn rule_of(request: &RunRequest) -> Result<Rule, RecordError> {
    Rule::parse(request.software_rule.as_option()).map_err(|refusal| RecordError::Mismatch {
        field: "software_rule",
        expected: "a valid rule".to_owned(),
        found: refusal.message,
    })
}

fn software(rule: &Rule, record: &RunRecord) -> Result<(), RecordError> {
    same("software_rule_id", &rule.id(), &record.software_rule_id)?;
    if rule.allows(&record.software_identity) {
        return Ok(());
    }
    Err(RecordError::Mismatch {
        field: "software_identity",
        expected: rule.id(),
        found: record.software_identity.clone(),
    })
}

fn own_digest(record: &RunRecord) -> Result<(), RecordError> {
    let digest = record_digest(record).ok_or(RecordError::Version {
        found: record.version,
    })?;
    same("record_sha256", &digest.to_hex(), &record.record_sha256)
}

fn floor(request: &RunRequest, record: &RunRecord) -> Result<(), RecordError> {
    if tier::meets(&record.isolation, &request.minimum_isolation) {
        return Ok(());
    }
    Err(RecordError::IsolationEvidence {
        floor: request.minimum_isolation.clone(),
        tier: record.isolation.clone(),
    })
}

/// Checks the record of an answer against one's own copies of request and
/// answer; the first failure wins.
///
/// # Errors
/// Any class but [`RecordError::Chain`].
pub fn answer<'a>(
    request: &RunRequest,
    response: &'a RunResponse,
) -> Result<&'a RunRecord, RecordError> {
    let rule = rule_of(request)?;
    let record = response.record.as_option().ok_or(RecordError::NoRecord)?;
    let version = RecordError::Version {
        found: record.version,
    };
    if !matches!(record.version, VERSION_OLD | VERSION_ANSWERED) {
        return Err(version);
    }
    let with_software = record.version == VERSION_ANSWERED;
    if request.protocol >= 2 && !with_software {
        return Err(version);
    }
    if !with_software {
        same("software_identity", "", &record.software_identity)?;
        same("software_rule_id", "", &record.software_rule_id)?;
    }
    same("unanswered", "", &record.unanswered)?;
    same(
        "request_sha256",
        &request_digest(request).to_hex(),
        &record.request_sha256,
    )?;
    same(
        "result_sha256",
        &result_digest(response).to_hex(),
        &record.result_sha256,
    )?;
    same("provider", &response.sandbox, &record.provider)?;
    same("isolation", &response.isolation, &record.isolation)?;
    if with_software {
        same("environment", &response.environment, &record.environment)?;
        same(
            "software_identity",
            &response.software_identity,
            &record.software_identity,
        )?;
        software(&rule, record)?;
    }
    own_digest(record)?;
    floor(request, record)?;
    Ok(record)
}

/// [`answer`] for a single run: the record has no chain fields.
///
/// # Errors
/// As [`answer`].
pub fn single_run<'a>(
    request: &RunRequest,
    response: &'a RunResponse,
) -> Result<&'a RunRecord, RecordError> {
    let record = answer(request, response)?;
    same("session", "", &record.session)?;
    same("sequence", "0", &record.sequence.to_string())?;
    same("previous_sha256", "", &record.previous_sha256)?;
    Ok(record)
}

/// [`answer`] for a session call: the record continues the chain. The caller
/// moves the chain on.
///
/// # Errors
/// Any class.
pub fn session_call<'a>(
    request: &RunRequest,
    response: &'a RunResponse,
    chain: &Chain,
) -> Result<&'a RunRecord, RecordError> {
    let record = answer(request, response)?;
    chain.continues(record)?;
    Ok(record)
}

/// Checks the record of an unanswered call against the request, without its
/// chain: what a verifier can do from a stored request.
///
/// # Errors
/// Any class but [`RecordError::Chain`].
pub fn unanswered<'a>(
    request: &RunRequest,
    record: Option<&'a RunRecord>,
) -> Result<&'a RunRecord, RecordError> {
    let record = record.ok_or(RecordError::NoRecord)?;
    if record.version != VERSION_UNANSWERED {
        return Err(RecordError::Version {
            found: record.version,
        });
    }
    same("result_sha256", "", &record.result_sha256)?;
    if Code::parse(&record.unanswered).is_none() {
        return Err(RecordError::Mismatch {
            field: "unanswered",
            expected: "a status code".to_owned(),
            found: record.unanswered.clone(),
        });
    }
    same(
        "request_sha256",
        &request_digest(request).to_hex(),
        &record.request_sha256,
    )?;
    software(&rule_of(request)?, record)?;
    own_digest(record)?;
    floor(request, record)?;
    Ok(record)
}

/// [`unanswered`] at a live client: the record continues the chain, and states
/// what the session stated when it opened.
///
/// # Errors
/// Any class.
pub fn live_unanswered<'a>(
    request: &RunRequest,
    record: Option<&'a RunRecord>,
    chain: &Chain,
    opened: &Stated,
) -> Result<&'a RunRecord, RecordError> {
    let record = unanswered(request, record)?;
    chain.continues(record)?;
    same("provider", &opened.provider, &record.provider)?;
    same("isolation", &opened.isolation, &record.isolation)?;
    same(
        "software_identity",
        &opened.software_identity,
        &record.software_identity,
    )?;
    Ok(record)
}
