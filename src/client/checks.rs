//! Checks of a run's answer, in their order.

use plimsoll_record::{Chain, check};
use plimsoll_wire::{
    Code, Refusal, Rule, Tier,
    proto::{
        RunRequest, RunResponse, SessionRunRequest, decode, run_request::Payload,
        session_run_request::Payload as SessionPayload,
    },
    validate,
};

use crate::{
    exchange::malformed,
    failure::{CallFailure, Checked, Class, without_record},
    scan,
};

/// Reads and checks the answer of a single run.
pub(crate) fn single_run(request: RunRequest, body: &[u8]) -> Result<Checked, Box<CallFailure>> {
    let response: RunResponse = decode(body).map_err(|error| malformed(error.to_string()))?;
    one_result(scan::results(body))?;
    let response = kind(&request, response)?;
    match check::single_run(&request, &response) {
        Ok(_) => Ok(Checked { request, response }),
        Err(error) => Err(CallFailure::record(error, Some(response)).into()),
    }
}

/// Checks the answer of a session call; the caller moves the chain on.
pub(crate) fn session_call(
    request: RunRequest,
    response: RunResponse,
    chain: &Chain,
) -> Result<Checked, Box<CallFailure>> {
    let response = kind(&request, response)?;
    match check::session_call(&request, &response, chain) {
        Ok(_) => Ok(Checked { request, response }),
        Err(error) => Err(CallFailure::record(error, Some(response)).into()),
    }
}

/// Refuses an answer with more than one result.
pub(crate) fn one_result(count: Option<usize>) -> Result<(), Box<CallFailure>> {
    match count {
        Some(0 | 1) => Ok(()),
        _ => Err(malformed("the answer holds more than one result").into()),
    }
}

fn kind(request: &RunRequest, response: RunResponse) -> Result<RunResponse, Box<CallFailure>> {
    let Err(error) = check::kinds(request, &response) else {
        return Ok(response);
    };
    let mut failure = CallFailure::unchecked(Class::ResultKind, Code::DataLoss, error.to_string());
    failure.unchecked = Some(without_record(response));
    Err(failure.into())
}

/// A call as a session sends it: the stronger of both floors, what both rules
/// allow, and the call's own payload, checked as the daemon checks it.
pub(crate) fn in_session(
    call: &RunRequest,
    floor: Option<Tier>,
    rule: &Rule,
) -> Result<RunRequest, Refusal> {
    let call_floor = validate::floor(&call.minimum_isolation)?;
    let call_rule = Rule::parse(call.software_rule.as_option())?;
    if !call.trace_id.is_empty() && !validate::is_trace_id(&call.trace_id) {
        return Err(Refusal::invalid(
            "traceId",
            "a trace ID is 1 to 64 of A-Z a-z 0-9 . _ : -",
        ));
    }
    match &call.payload {
        Some(Payload::Module(_)) => {
            return Err(Refusal::invalid(
                "module",
                "a session runs no module tables",
            ));
        }
        Some(Payload::Cell(cell)) => validate::cell(cell)?,
        other => validate::payload(other.as_ref())?,
    }
    validate::grant_profile(validate::grant_of(call.payload.as_ref()))?;
    let rule = Rule::merge(rule, &call_rule)?;
    Ok(RunRequest {
        minimum_isolation: floor
            .max(call_floor)
            .map_or_else(String::new, |tier| tier.name().to_owned()),
        software_rule: rule.to_message().into(),
        ..call.clone()
    })
}

/// The wire form of a session call.
pub(crate) fn session_message(call: &RunRequest, session_id: &str) -> SessionRunRequest {
    let payload = match call.payload.clone() {
        Some(Payload::Javascript(run)) => Some(SessionPayload::Javascript(run)),
        Some(Payload::Project(run)) => Some(SessionPayload::Project(run)),
        Some(Payload::Cell(run)) => Some(SessionPayload::Cell(run)),
        Some(Payload::Module(_)) | None => None,
    };
    SessionRunRequest {
        protocol: call.protocol,
        minimum_isolation: call.minimum_isolation.clone(),
        trace_id: call.trace_id.clone(),
        timeout_ms: call.timeout_ms,
        session_id: session_id.to_owned(),
        software_rule: call.software_rule.clone(),
        payload,
    }
}
