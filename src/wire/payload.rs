//! Payload kinds, and the `RunRequest` form of a session call.

use crate::proto::{
    RunRequest, RunResponse, SessionRunRequest, run_request, run_response, session_run_request,
};

/// What a request asks to run or an answer holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// One JavaScript snippet.
    Javascript,
    /// Files and shell steps.
    Project,
    /// A table of simulation runs.
    Module,
    /// One cell of a session's interpreter.
    Cell,
}

impl Kind {
    /// The name in digests, logs and JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Javascript => "javascript",
            Kind::Project => "project",
            Kind::Module => "module",
            Kind::Cell => "cell",
        }
    }

    /// The kind a request asks for; `None` without a payload.
    #[must_use]
    pub fn of_request(request: &RunRequest) -> Option<Kind> {
        use run_request::Payload;
        request.payload.as_ref().map(|p| match p {
            Payload::Javascript(_) => Kind::Javascript,
            Payload::Project(_) => Kind::Project,
            Payload::Module(_) => Kind::Module,
            Payload::Cell(_) => Kind::Cell,
        })
    }

    /// The kind an answer holds; `None` without a result.
    #[must_use]
    pub fn of_response(response: &RunResponse) -> Option<Kind> {
        use run_response::Result;
        response.result.as_ref().map(|r| match r {
            Result::Javascript(_) => Kind::Javascript,
            Result::Project(_) => Kind::Project,
            Result::Module(_) => Kind::Module,
            Result::Cell(_) => Kind::Cell,
        })
    }
}

impl From<SessionRunRequest> for RunRequest {
    /// The stored and digested form of a session call: everything but the
    /// session's ID, which is a capability and never leaves caller and daemon.
    fn from(call: SessionRunRequest) -> RunRequest {
        use session_run_request::Payload;
        RunRequest {
            protocol: call.protocol,
            minimum_isolation: call.minimum_isolation,
            trace_id: call.trace_id,
            timeout_ms: call.timeout_ms,
            software_rule: call.software_rule,
            payload: call.payload.map(|p| match p {
                Payload::Javascript(p) => run_request::Payload::Javascript(p),
                Payload::Project(p) => run_request::Payload::Project(p),
                Payload::Cell(p) => run_request::Payload::Cell(p),
            }),
        }
    }
}
