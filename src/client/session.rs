//! A session: calls one after another, each chained to the one before.

use std::{
    fmt,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use plimsoll_record::{Chain, check, make::Stated};
use plimsoll_wire::{
    Code, Refusal, Rule, Tier,
    detail::{End, session_end_name},
    proto::{Message, RunRecord, RunRequest, SessionRunResponse, decode},
};
use tokio::time::{Instant, timeout_at};
use zeroize::Zeroizing;

use crate::{
    CancelToken, checks,
    client::{CallOptions, Client},
    error_body::Fault,
    exchange::{Plan, Procedure, Progress, canceled, exchange, malformed, timed_out},
    failure::{CallFailure, Checked, Class},
    scan,
};

/// What a session is opened with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpenSession {
    /// The weakest tier the session may have.
    pub floor: Option<Tier>,
    /// Which software its calls may use.
    pub rule: Rule,
    /// For the daemon's audit line; empty for none.
    pub trace_id: String,
    /// A shorter lifetime than the daemon's; `None` for the daemon's.
    pub lifetime: Option<Duration>,
    /// A shorter idle timeout than the daemon's; `None` for the daemon's.
    pub idle: Option<Duration>,
    /// Interpreters that will be used: a hint for latency.
    pub languages: Vec<String>,
    /// The end user the session is for. A digest of it is sent, never the name.
    pub owner: Option<String>,
}

impl OpenSession {
    /// A call as a session opened with this sends it: the stronger of both
    /// floors, what both rules allow, everything else as given. The checks are
    /// those made before it is sent, so a list of calls can be judged whole.
    ///
    /// # Errors
    /// [`Refusal`], for the first fault.
    pub fn merge(&self, call: &RunRequest) -> Result<RunRequest, Refusal> {
        checks::in_session(call, self.floor, &self.rule)
    }
}

/// What the daemon stated when a session opened, checked against what was
/// asked. The session's ID is not part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Opened {
    /// The session's fingerprint, as records name it.
    pub session: String,
    /// The provider.
    pub provider: String,
    /// The tier measured at open.
    pub isolation: String,
    /// The selected software; may be empty.
    pub software_identity: String,
    /// When the session ends at the latest, Unix milliseconds.
    pub expires_unix_ms: i64,
    /// Milliseconds without use after which it is suspended or ended; 0 for never.
    pub idle_timeout_ms: u32,
}

/// What the daemon stated when a session closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Closed {
    /// The session's fingerprint.
    pub session: String,
    /// Calls in its chain, unanswered ones included.
    pub calls: u64,
    /// Digest of the last call's record; empty when there was none.
    pub last_record_sha256: String,
    /// How it ended: `closed` for this request, or an earlier end.
    pub ended: &'static str,
}

/// An open session. Calls are made one at a time, in the order they came; each
/// is checked and chained before its result is handed out.
///
/// Dropping it closes nothing: the daemon ends it by itself.
pub struct Session {
    pub(crate) client: Client,
    pub(crate) id: Zeroizing<String>,
    pub(crate) opened: Opened,
    pub(crate) floor: Option<Tier>,
    pub(crate) rule: Rule,
    /// Held by the call in progress.
    pub(crate) turn: tokio::sync::Mutex<Turn>,
    /// Readable while a call is in progress.
    pub(crate) state: Mutex<State>,
}

pub(crate) struct Turn {
    pub(crate) chain: Chain,
    /// The first close's outcome.
    pub(crate) closed: Option<Result<Closed, Box<CallFailure>>>,
}

#[derive(Default)]
pub(crate) struct State {
    pub(crate) ended: Option<End>,
    pub(crate) stopped: bool,
}

impl Session {
    /// What the daemon stated at open.
    #[must_use]
    pub fn opened(&self) -> &Opened {
        &self.opened
    }

    /// How the session ended, as far as an answer or a close said so.
    #[must_use]
    pub fn ended(&self) -> Option<End> {
        self.state().ended.clone()
    }

    /// Whether a call was lost: nothing is sent any more but a close.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state().stopped
    }

    /// Makes a call: floor and rule are merged with the session's, everything
    /// else is sent as given. A call whose future is dropped after a byte left
    /// stops the session.
    ///
    /// # Errors
    /// [`CallFailure`]. One that may have run stops the session, unless the
    /// daemon gave a record of it that checks
    /// ([`CallFailure::unanswered`]): then the session goes on.
    pub async fn call(
        &self,
        call: &RunRequest,
        options: &CallOptions,
    ) -> Result<Checked, Box<CallFailure>> {
        let request = checks::in_session(call, self.floor, &self.rule)?;
        let deadline = self.client.deadline(options);
        let mut turn = self.take_turn(options.cancel.as_ref(), deadline).await?;
        self.may_call(&turn)?;
        let progress = Progress::default();
        let guard = StopUnlessSettled {
            session: self,
            progress: &progress,
            settled: false,
        };
        let plan = Plan {
            procedure: Procedure::SessionRun,
            body: checks::session_message(&request, &self.id)
                .encode_to_vec()
                .into(),
            deadline,
            cancel: options.cancel.as_ref(),
            keep_after_send: false,
            progress: &progress,
            session_id: &self.id,
        };
        let answer = exchange(&self.client.0, plan).await;
        guard.settle();
        match answer {
            Ok(body) => self.answered(&mut turn, request, &body),
            Err(fault) => Err(self.failed(&mut turn, request, fault)),
        }
    }

    fn answered(
        &self,
        turn: &mut Turn,
        request: RunRequest,
        body: &[u8],
    ) -> Result<Checked, Box<CallFailure>> {
        let checked = self
            .check(turn, request, body)
            .inspect_err(|_| self.stop())?;
        if let Err(error) = turn.chain.advance(checked.record()) {
            // The check above has just accepted the same record.
            self.stop();
            return Err(CallFailure::record(error, Some(checked.response)).into());
        }
        self.client.keep(checked)
    }

    fn check(
        &self,
        turn: &Turn,
        request: RunRequest,
        body: &[u8],
    ) -> Result<Checked, Box<CallFailure>> {
        let answer: SessionRunResponse =
            decode(body).map_err(|error| malformed(error.to_string()))?;
        let ended = answer.ended.to_i32();
        if ended != 0 {
            // Believed whatever the checks say: it only takes rights away.
            self.remember_end(End {
                reason: session_end_name(ended),
                detail: answer.end_detail,
            });
        }
        checks::one_result(scan::session_results(body))?;
        let response = answer.run.into_option().unwrap_or_default();
        checks::session_call(request, response, &turn.chain)
    }

    fn failed(&self, turn: &mut Turn, request: RunRequest, fault: Fault) -> Box<CallFailure> {
        let Fault { mut failure, claim } = fault;
        if let Some(end) = &failure.ended {
            self.remember_end(end.clone());
        }
        if failure.not_dispatched().is_some() {
            return failure;
        }
        let Some(record) = claim else {
            self.stop();
            return failure;
        };
        match self.check_unanswered(turn, &request, &record) {
            Ok(()) => {
                if let Some(recorder) = &self.client.0.recorder {
                    failure.recorder_error = recorder.unanswered(&request, &record).err();
                }
                failure.unanswered = Some(Box::new((request, *record)));
                failure
            }
            Err(mut refused) => {
                self.stop();
                refused.ended = failure.ended;
                refused
            }
        }
    }

    fn check_unanswered(
        &self,
        turn: &mut Turn,
        request: &RunRequest,
        record: &RunRecord,
    ) -> Result<(), Box<CallFailure>> {
        let stated = Stated {
            provider: self.opened.provider.clone(),
            isolation: self.opened.isolation.clone(),
            // Not stated at open, so not compared.
            environment: String::new(),
            software_identity: self.opened.software_identity.clone(),
        };
        check::live_unanswered(request, Some(record), &turn.chain, &stated)
            .and_then(|record| turn.chain.advance(record))
            .map_err(|error| Box::new(CallFailure::record(error, None)))
    }

    fn may_call(&self, turn: &Turn) -> Result<(), Box<CallFailure>> {
        let (class, message) = if turn.closed.is_some() {
            (Class::SessionEnded, "the session is closed")
        } else if self.is_stopped() {
            (
                Class::SessionStopped,
                "the session was stopped: what an earlier call did is not known; close it",
            )
        } else {
            return Ok(());
        };
        let mut failure = CallFailure::local(class, Code::FailedPrecondition, message);
        failure.ended = self.ended();
        Err(Box::new(failure))
    }

    pub(crate) async fn take_turn(
        &self,
        cancel: Option<&CancelToken>,
        deadline: Instant,
    ) -> Result<tokio::sync::MutexGuard<'_, Turn>, Box<CallFailure>> {
        let given_up = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = given_up => Err(canceled(false).into()),
            turn = timeout_at(deadline, self.turn.lock()) =>
                turn.map_err(|_| timed_out(false).into()),
        }
    }

    pub(crate) fn stop(&self) {
        self.state().stopped = true;
    }

    pub(crate) fn remember_end(&self, end: End) {
        self.state().ended = Some(end);
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        // The state is whole after every statement that changes it.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Session {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Session")
            .field("opened", &self.opened)
            .finish_non_exhaustive()
    }
}

/// Stops the session when a call's future is dropped after a byte left: the
/// daemon may have run and counted it, and this side will never know.
struct StopUnlessSettled<'a> {
    session: &'a Session,
    progress: &'a Progress,
    settled: bool,
}

impl StopUnlessSettled<'_> {
    fn settle(mut self) {
        self.settled = true;
    }
}

impl Drop for StopUnlessSettled<'_> {
    fn drop(&mut self) {
        if !self.settled && self.progress.is_sent() {
            self.session.stop();
        }
    }
}
