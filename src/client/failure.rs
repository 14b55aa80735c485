//! How a call fails, and what is known of whether it ran.

use plimsoll_record::check::RecordError;
use plimsoll_wire::{
    Code, Reason, Refusal,
    detail::End,
    proto::{RunRecord, RunRequest, RunResponse},
};

use crate::{recorder::RecorderError, session::Closed, tls_fault::TlsFault};

/// An exchange that passed every check.
#[derive(Clone, Debug, PartialEq)]
pub struct Checked {
    /// The request as sent; a session call in its `RunRequest` form.
    pub request: RunRequest,
    /// The answer as received, with its record.
    pub response: RunResponse,
}

impl Checked {
    /// The daemon's record of the call.
    #[must_use]
    pub fn record(&self) -> &RunRecord {
        &self.response.record
    }
}

/// Whether code of the call ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ran {
    /// Nothing of it ran; sending it again cannot run it twice.
    No {
        /// Why.
        reason: Reason,
    },
    /// It may have run. Never a signal to send it again.
    Maybe,
    /// It ran, and its answer passed every check.
    Yes,
}

impl Ran {
    /// The word in machine-readable output.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Ran::No { .. } => "no",
            Ran::Maybe => "maybe",
            Ran::Yes => "yes",
        }
    }
}

/// How far a failed call came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Refused by this program; nothing was sent.
    Local,
    /// Lookup, connection or TLS failed, or time ran out there; no byte of the
    /// request left.
    Unreachable,
    /// A byte may have left and no whole answer came.
    NoAnswer,
    /// The daemon answered with an error bound to the request.
    Daemon,
    /// An answer came that is not bound, not readable or does not check.
    Unchecked,
    /// It ran and its answer checks; the recorder did not keep it.
    NotKept,
}

/// What kind of failure it is. The class alone does not say whether the call
/// ran; [`CallFailure::ran`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// The answer is not a well-formed message of its type.
    AnswerMalformed,
    /// The answer states no request ID, another's, or more than one.
    AnswerNotBound,
    /// The answer is over 32 MiB.
    AnswerTooLarge,
    /// A limit of the daemon is used up; later or elsewhere it may run.
    AtCapacity,
    /// The caller gave up.
    Canceled,
    /// The record does not continue the session's chain.
    ChainBroken,
    /// The daemon runs no code, or refused for a reason without its own class.
    Disabled,
    /// None of the others; the code says more.
    Generic,
    /// The provider's tier is below the floor; refused before anything ran.
    InsufficientIsolation,
    /// The request is malformed or out of bounds.
    InvalidRequest,
    /// It may have run below the floor: the answer's tier does not meet it.
    IsolationEvidence,
    /// The connection broke after a byte may have left.
    NoAnswer,
    /// The recorder did not keep it.
    NotRecorded,
    /// The daemon serves another protocol number.
    ProtocolMismatch,
    /// The record is missing or differs from the exchange.
    RecordRefused,
    /// The answer holds another kind of result, or none.
    ResultKind,
    /// The session has ended.
    SessionEnded,
    /// The session was stopped after an earlier call whose record is unknown.
    SessionStopped,
    /// The selected software does not meet the rule.
    SoftwareMismatch,
    /// The budget passed.
    TimedOut,
    /// The daemon cannot be reached.
    Unreachable,
    /// The provider or the daemon has no such operation.
    Unsupported,
}

/// A call that did not end in a checked and recorded answer.
///
/// Texts in it that came from a daemon are data: escape them before they reach
/// a terminal.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{code}: {message}")]
pub struct CallFailure {
    /// The status code, the daemon's or this client's.
    pub code: Code,
    /// What went wrong.
    pub message: String,
    /// Whether it ran.
    pub ran: Ran,
    /// What kind of failure it is.
    pub class: Class,
    /// How far it came.
    pub stage: Stage,
    /// The request's member at fault, for a refusal made here; may be empty.
    pub member: String,
    /// The session's end, where the daemon stated one.
    pub ended: Option<End>,
    /// The answer that did not check, without its record.
    pub unchecked: Option<Box<RunResponse>>,
    /// What is wrong with its record.
    pub record_error: Option<RecordError>,
    /// The checked exchange a recorder did not keep.
    pub checked: Option<Box<Checked>>,
    /// The checked record of a session call that gave no answer, and the
    /// request it is about.
    pub unanswered: Option<Box<(RunRequest, RunRecord)>>,
    /// What the daemon stated of a session's close that differs from what this
    /// client saw, or that a recorder did not keep.
    pub closed: Option<Box<Closed>>,
    /// Why the recorder did not keep it.
    pub recorder_error: Option<RecorderError>,
    /// What is wrong with the other side of a TLS connection that was not made.
    pub tls: Option<TlsFault>,
}

impl CallFailure {
    pub(crate) fn new(
        stage: Stage,
        class: Class,
        code: Code,
        ran: Ran,
        message: impl Into<String>,
    ) -> Self {
        CallFailure {
            code,
            message: message.into(),
            ran,
            class,
            stage,
            member: String::new(),
            ended: None,
            unchecked: None,
            record_error: None,
            checked: None,
            unanswered: None,
            closed: None,
            recorder_error: None,
            tls: None,
        }
    }

    /// A refusal by this program.
    pub(crate) fn local(class: Class, code: Code, message: impl Into<String>) -> Self {
        let ran = Ran::No {
            reason: Reason::Request,
        };
        Self::new(Stage::Local, class, code, ran, message)
    }

    /// An answer that cannot be trusted.
    pub(crate) fn unchecked(class: Class, code: Code, message: impl Into<String>) -> Self {
        Self::new(Stage::Unchecked, class, code, Ran::Maybe, message)
    }

    /// An answer whose record does not stand for the exchange.
    pub(crate) fn record(error: RecordError, response: Option<RunResponse>) -> Self {
        let class = match error {
            RecordError::IsolationEvidence { .. } => Class::IsolationEvidence,
            RecordError::Chain { .. } => Class::ChainBroken,
            _ => Class::RecordRefused,
        };
        let mut failure = Self::unchecked(class, Code::DataLoss, error.to_string());
        failure.unchecked = response.map(without_record);
        failure.record_error = Some(error);
        failure
    }

    /// A checked exchange that was not kept.
    pub(crate) fn not_recorded(error: RecorderError) -> Self {
        let mut failure = Self::new(
            Stage::NotKept,
            Class::NotRecorded,
            Code::DataLoss,
            Ran::Yes,
            "it ran and was not recorded",
        );
        failure.recorder_error = Some(error);
        failure
    }

    /// Why nothing ran; `None` when it may have.
    #[must_use]
    pub fn not_dispatched(&self) -> Option<Reason> {
        match self.ran {
            Ran::No { reason } => Some(reason),
            Ran::Maybe | Ran::Yes => None,
        }
    }
}

impl From<Refusal> for CallFailure {
    fn from(refusal: Refusal) -> Self {
        let ran = Ran::No {
            reason: refusal.reason,
        };
        let mut failure = Self::new(
            Stage::Local,
            Class::InvalidRequest,
            refusal.code,
            ran,
            refusal.message,
        );
        failure.member = refusal.member;
        failure
    }
}

impl From<Refusal> for Box<CallFailure> {
    fn from(refusal: Refusal) -> Self {
        Box::new(refusal.into())
    }
}

/// A record that was not accepted is not handed out: nobody can then mistake
/// it for evidence.
pub(crate) fn without_record(mut response: RunResponse) -> Box<RunResponse> {
    response.record = Default::default();
    Box::new(response)
}
