//! The session procedures of a daemon that keeps no sessions.
//!
//! They answer in the order of a daemon that does, so that a caller learns the
//! same of a bad request everywhere.

use plimsoll_wire::{
    Code, Reason, Refusal, Rule,
    proto::{
        CloseSessionRequest, EnumValue, OpenSessionRequest, SessionEnd, SessionEnded,
        SessionRunRequest, SoftwareRule,
    },
    validate,
};

use crate::call::CallError;

const NOT_FOUND: &str = "no such session for this caller";

/// The refusal of an open.
pub(super) fn open(request: &OpenSessionRequest) -> CallError {
    let checked = envelope(
        request.protocol,
        &request.minimum_isolation,
        request.software_rule.as_option(),
    );
    CallError::refused(&checked.err().unwrap_or_else(|| {
        Refusal::new(
            Code::Unimplemented,
            Reason::Unsupported,
            "this daemon keeps no sessions",
        )
    }))
}

/// The refusal of a call.
pub(super) fn run(request: &SessionRunRequest) -> CallError {
    let checked = envelope(
        request.protocol,
        &request.minimum_isolation,
        request.software_rule.as_option(),
    );
    checked
        .err()
        .map_or_else(not_found, |r| CallError::refused(&r))
}

/// The refusal of a close.
pub(super) fn close(request: &CloseSessionRequest) -> CallError {
    validate::protocol(request.protocol)
        .err()
        .map_or_else(not_found, |r| CallError::refused(&r))
}

fn envelope(protocol: u32, floor: &str, rule: Option<&SoftwareRule>) -> Result<(), Refusal> {
    validate::protocol(protocol)?;
    validate::floor(floor)?;
    Rule::parse(rule)?;
    Ok(())
}

/// One answer for an unknown, a foreign, a malformed and a forgotten ID.
fn not_found() -> CallError {
    CallError::refused(&Refusal::new(Code::NotFound, Reason::Request, NOT_FOUND))
        .with_session_ended(SessionEnded {
            reason: EnumValue::from(SessionEnd::SESSION_END_NOT_FOUND),
            detail: NOT_FOUND.to_owned(),
        })
}
