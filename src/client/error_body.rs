//! Reading an error: code, message, details, mark and class.

use http::{HeaderMap, StatusCode};
use plimsoll_wire::{
    Code, NOT_DISPATCHED_HEADER, Reason, detail::Details, proto::RunRecord, strict_json,
};
use serde::Deserialize;
use serde_json::Value;

use crate::failure::{CallFailure, Class, Ran, Stage};

/// Details read of one error; the daemon sends at most three.
const MAX_DETAILS: usize = 64;

/// An error with what it claims of an unanswered call, which only a session
/// can check.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) failure: Box<CallFailure>,
    pub(crate) claim: Option<Box<RunRecord>>,
}

impl From<CallFailure> for Fault {
    fn from(failure: CallFailure) -> Self {
        Fault {
            failure: Box::new(failure),
            claim: None,
        }
    }
}

impl From<Fault> for Box<CallFailure> {
    fn from(fault: Fault) -> Self {
        fault.failure
    }
}

#[derive(Default, Deserialize)]
struct ErrorBody {
    code: Option<String>,
    message: Option<String>,
    // Kept as values, so that one odd detail does not hide the others.
    details: Option<Vec<Value>>,
}

/// Reads an answer whose status is not 200. Unless it is `bound` to the
/// request, everything but code and message is dropped: what it says of a call
/// may be about another.
pub(crate) fn read(status: StatusCode, headers: &HeaderMap, body: &[u8], bound: bool) -> Fault {
    let parsed: Option<ErrorBody> = strict_json::check(body)
        .ok()
        .and_then(|()| serde_json::from_slice(body).ok());
    let parsed = parsed.unwrap_or_default();
    let code = parsed
        .code
        .and_then(|name| Code::parse(&name))
        .unwrap_or_else(|| Code::of_http_status(status.as_u16()));
    let message = parsed
        .message
        .unwrap_or_else(|| format!("HTTP status {}", status.as_u16()));
    let mut details = Details::default();
    if bound {
        for detail in parsed.details.iter().flatten().take(MAX_DETAILS) {
            if let (Some(name), Some(value)) = (detail["type"].as_str(), detail["value"].as_str()) {
                details.take_base64(name, value);
            }
        }
        if details.not_dispatched.is_none() {
            details.not_dispatched = header_mark(headers);
        }
    }
    let ran = match details.not_dispatched {
        Some(reason) => Ran::No { reason },
        None => Ran::Maybe,
    };
    let stage = if bound {
        Stage::Daemon
    } else {
        Stage::Unchecked
    };
    let class = class(code, &details);
    let mut failure = CallFailure::new(stage, class, code, ran, message);
    failure.ended = details.session_ended;
    // A call that did not run cannot be one that gave no answer.
    let claim = details
        .unanswered
        .filter(|_| details.not_dispatched.is_none());
    Fault {
        failure: Box::new(failure),
        claim,
    }
}

fn header_mark(headers: &HeaderMap) -> Option<Reason> {
    let mut values = headers.get_all(NOT_DISPATCHED_HEADER).iter();
    let value = values.next()?.to_str().ok()?;
    if values.next().is_some() {
        return None;
    }
    Reason::of_header(value)
}

fn class(code: Code, details: &Details) -> Class {
    let reason = details.not_dispatched;
    let ended = details.session_ended.is_some();
    match code {
        Code::FailedPrecondition if ended => Class::SessionEnded,
        Code::FailedPrecondition => match reason {
            Some(Reason::Isolation) => Class::InsufficientIsolation,
            Some(Reason::Environment) => Class::SoftwareMismatch,
            _ => Class::Disabled,
        },
        Code::Unimplemented if reason == Some(Reason::Protocol) => Class::ProtocolMismatch,
        Code::Unimplemented => Class::Unsupported,
        // By reason, not by code alone: a body over the limit is refused with
        // the same code and never fits later.
        Code::ResourceExhausted => match reason {
            Some(Reason::Capacity) => Class::AtCapacity,
            Some(Reason::Request) => Class::InvalidRequest,
            _ => Class::Generic,
        },
        Code::InvalidArgument => Class::InvalidRequest,
        Code::Canceled | Code::DeadlineExceeded => Class::Generic,
        _ if ended => Class::SessionEnded,
        _ => Class::Generic,
    }
}

#[cfg(test)]
#[path = "error_body_tests.rs"]
mod tests;
