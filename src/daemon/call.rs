//! The seam between transport and service: what a call is, who makes it, and
//! the one type every error of a procedure is built through.

use std::{
    future::Future,
    sync::Arc,
    time::{Instant, SystemTime},
};

use plimsoll_wire::{
    Code, Reason, Refusal,
    proto::{
        CloseSessionRequest, CloseSessionResponse, DescribeRequest, DescribeResponse,
        OpenSessionRequest, OpenSessionResponse, RunRecord, RunRequest, RunResponse, SessionEnded,
        SessionRunRequest, SessionRunResponse,
    },
};
use tokio_util::sync::CancellationToken;

/// Who makes a call.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal {
    /// Stable identity; `None` in open development mode.
    pub id: Option<Arc<str>>,
}

impl Principal {
    /// The identity limits and sessions are keyed by, also the audit name.
    #[must_use]
    pub fn key(&self) -> &str {
        self.id.as_deref().unwrap_or("anon")
    }
}

/// What the transport knows of one call.
#[derive(Clone, Debug)]
pub struct Call {
    /// Who makes it.
    pub principal: Principal,
    /// When the message had been received, for the record's start.
    pub received: SystemTime,
    /// The same moment on the monotonic clock, for the record's end.
    pub received_at: Instant,
    /// The caller's own deadline, from its timeout header.
    pub deadline: Option<Instant>,
    /// Cancelled when the caller has gone. The call itself is never dropped:
    /// it decides how to end.
    pub caller_gone: CancellationToken,
}

/// An error of a procedure as its caller sees it.
///
/// Only the two constructors make one, so that the not-dispatched mark is never
/// attached by accident: an error without a mark reads "may have run".
#[derive(Clone, Debug)]
pub struct CallError {
    code: Code,
    message: String,
    not_dispatched: Option<Reason>,
    session_ended: Option<SessionEnded>,
    unanswered: Option<Box<RunRecord>>,
}

impl CallError {
    /// A refusal: nothing of the call ran.
    #[must_use]
    pub fn refused(refusal: &Refusal) -> Self {
        CallError {
            code: refusal.code,
            message: refusal.message.clone(),
            not_dispatched: Some(refusal.reason),
            session_ended: None,
            unanswered: None,
        }
    }

    /// A failure of a provider: `mark` only when the provider itself said that
    /// nothing ran. `message` is text this program composed.
    #[must_use]
    pub fn failed(code: Code, message: String, mark: Option<Reason>) -> Self {
        CallError {
            code,
            message,
            not_dispatched: mark,
            session_ended: None,
            unanswered: None,
        }
    }

    /// The same error, saying that the session has ended.
    #[must_use]
    pub fn with_session_ended(mut self, ended: SessionEnded) -> Self {
        self.session_ended = Some(ended);
        self
    }

    /// The same error with the record of the unanswered call. Dropped when the
    /// error is marked: a call that did not run has no record.
    #[must_use]
    pub fn with_unanswered(mut self, record: RunRecord) -> Self {
        if self.not_dispatched.is_none() {
            self.unanswered = Some(Box::new(record));
        }
        self
    }

    /// The status code.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// The text for the caller.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Why nothing ran; `None` means the call may have run.
    #[must_use]
    pub fn not_dispatched(&self) -> Option<Reason> {
        self.not_dispatched
    }

    /// The session's end, when it has one.
    #[must_use]
    pub fn session_ended(&self) -> Option<&SessionEnded> {
        self.session_ended.as_ref()
    }

    /// The record of an unanswered session call.
    #[must_use]
    pub fn unanswered(&self) -> Option<&RunRecord> {
        self.unanswered.as_deref()
    }
}

/// The answer of a procedure.
pub type Answer<T> = Result<T, CallError>;

/// The five procedures. The transport calls a method only after every check of
/// the HTTP layer passed and the message was decoded, and runs it in a task of
/// its own that is never dropped before it ends.
pub trait Service: Send + Sync + 'static {
    /// Runs one snippet, project or module table.
    fn run(
        &self,
        call: Call,
        request: RunRequest,
    ) -> impl Future<Output = Answer<RunResponse>> + Send;

    /// States provider, tier and capabilities.
    fn describe(
        &self,
        call: Call,
        request: DescribeRequest,
    ) -> impl Future<Output = Answer<DescribeResponse>> + Send;

    /// Opens a session.
    fn open_session(
        &self,
        call: Call,
        request: OpenSessionRequest,
    ) -> impl Future<Output = Answer<OpenSessionResponse>> + Send;

    /// Runs one call in a session.
    fn session_run(
        &self,
        call: Call,
        request: SessionRunRequest,
    ) -> impl Future<Output = Answer<SessionRunResponse>> + Send;

    /// Closes a session.
    fn close_session(
        &self,
        call: Call,
        request: CloseSessionRequest,
    ) -> impl Future<Output = Answer<CloseSessionResponse>> + Send;

    /// Whether the provider is ready, for `/readyz`. The cause of a failure
    /// goes to the log, never into the answer.
    fn ready(&self) -> impl Future<Output = bool> + Send;

    /// The text a caller sees for a fault of this program (a panic): `internal
    /// error <id>`. `detail` goes to the log under the ID, never to the caller.
    fn internal_error(&self, detail: &str) -> CallError;
}
