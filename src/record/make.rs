//! Making records, the daemon's side.

use plimsoll_wire::{
    Code, Rule,
    proto::{RunRecord, RunResponse},
};

use crate::{
    Chain, Digest, VERSION_ANSWERED, VERSION_UNANSWERED, fields::record_digest, result_digest,
};

/// What the daemon itself knows of a call.
#[derive(Clone, Debug)]
pub struct Facts<'a> {
    /// Digest of the request as received.
    pub request: Digest,
    /// The request's software rule.
    pub rule: &'a Rule,
    /// Digest of the provider's verified policy, prefixed by how it was
    /// derived; may be empty.
    pub policy: &'a str,
    /// When the request was received, Unix milliseconds.
    pub started_unix_ms: i64,
    /// Start plus elapsed monotonic time; never before the start.
    pub ended_unix_ms: i64,
    /// The session's chain before this call; `None` for a single run.
    pub chain: Option<&'a Chain>,
}

/// What a session stated when it opened.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stated {
    /// The provider's name.
    pub provider: String,
    /// The tier measured at open.
    pub isolation: String,
    /// The outer image or interpreter.
    pub environment: String,
    /// The selected image.
    pub software_identity: String,
}

/// The record of an answered call. `response` is the answer exactly as it will
/// be sent, without its record; provider, tier, environment and software are
/// copied from it, so that record and answer cannot disagree.
#[must_use]
pub fn answered(facts: &Facts<'_>, response: &RunResponse) -> RunRecord {
    let stated = Stated {
        provider: response.sandbox.clone(),
        isolation: response.isolation.clone(),
        environment: response.environment.clone(),
        software_identity: response.software_identity.clone(),
    };
    let mut record = record(facts, stated, VERSION_ANSWERED);
    record.result_sha256 = result_digest(response).to_hex();
    seal(record)
}

/// The record of a session call that may have run and ended in an error.
/// `code` is the code of that error as it is sent.
#[must_use]
pub fn unanswered(facts: &Facts<'_>, stated: &Stated, code: Code) -> RunRecord {
    let mut record = record(facts, stated.clone(), VERSION_UNANSWERED);
    code.name().clone_into(&mut record.unanswered);
    seal(record)
}

fn record(facts: &Facts<'_>, stated: Stated, version: u32) -> RunRecord {
    let mut record = RunRecord {
        version,
        request_sha256: facts.request.to_hex(),
        provider: stated.provider,
        isolation: stated.isolation,
        environment: stated.environment,
        software_identity: stated.software_identity,
        software_rule_id: facts.rule.id(),
        policy: facts.policy.to_owned(),
        started_unix_ms: facts.started_unix_ms,
        ended_unix_ms: facts.ended_unix_ms.max(facts.started_unix_ms),
        ..Default::default()
    };
    if let Some(chain) = facts.chain {
        chain.fingerprint().clone_into(&mut record.session);
        record.sequence = chain.calls() + 1;
        chain.last().clone_into(&mut record.previous_sha256);
    }
    record
}

fn seal(mut record: RunRecord) -> RunRecord {
    record.record_sha256 = record_digest(&record).map_or_else(String::new, |d| d.to_hex());
    record
}
