//! Closing a session.

use std::time::Duration;

use plimsoll_wire::{
    PROTOCOL,
    detail::{End, session_end_name},
    proto::{CloseSessionRequest, CloseSessionResponse, Message, decode},
};
use tokio::time::Instant;

use crate::{
    client::CallOptions,
    error_body::Fault,
    exchange::{Plan, Procedure, Progress, exchange, malformed},
    failure::CallFailure,
    session::{Closed, Session, Turn},
};

/// Budget of a close nobody waits for.
const ABANDON_BUDGET: Duration = Duration::from_secs(10);

impl Session {
    /// Closes the session after the call in progress and compares what the
    /// daemon states with what this client saw. Only a close that is equal
    /// reaches the recorder. Once the daemon has answered, closing again gives
    /// the first outcome without another request.
    ///
    /// # Errors
    /// [`CallFailure`]; with [`CallFailure::closed`] when the daemon answered.
    pub async fn close(&self, options: &CallOptions) -> Result<Closed, Box<CallFailure>> {
        let deadline = self.client.deadline(options);
        let mut turn = self.take_turn(options.cancel.as_ref(), deadline).await?;
        if let Some(outcome) = &turn.closed {
            return outcome.clone();
        }
        let progress = Progress::default();
        let plan = Plan {
            cancel: options.cancel.as_ref(),
            ..self.close_plan(deadline, &progress)
        };
        match exchange(&self.client.0, plan).await {
            Ok(body) => {
                let answer: CloseSessionResponse =
                    decode(&body).map_err(|error| malformed(error.to_string()))?;
                let outcome = self.closed(&turn, answer);
                turn.closed = Some(outcome.clone());
                outcome
            }
            Err(Fault { failure, .. }) => {
                if let Some(end) = &failure.ended {
                    self.remember_end(end.clone());
                    // The daemon knows the session no more; asking again
                    // cannot find it.
                    if end.reason == "not_found" {
                        turn.closed = Some(Err(failure.clone()));
                    }
                }
                Err(failure)
            }
        }
    }

    fn closed(
        &self,
        turn: &Turn,
        answer: CloseSessionResponse,
    ) -> Result<Closed, Box<CallFailure>> {
        let closed = Closed {
            ended: session_end_name(answer.ended.to_i32()),
            session: answer.session,
            calls: answer.calls,
            last_record_sha256: answer.last_record_sha256,
        };
        self.remember_end(End {
            reason: closed.ended,
            detail: String::new(),
        });
        let same = turn
            .chain
            .closes(&closed.session, closed.calls, &closed.last_record_sha256);
        let failure = match (same, &self.client.0.recorder) {
            (Err(error), _) => CallFailure::record(error, None),
            (Ok(()), None) => return Ok(closed),
            (Ok(()), Some(recorder)) => match recorder.closed(&closed) {
                Ok(()) => return Ok(closed),
                Err(error) => CallFailure::not_recorded(error),
            },
        };
        Err(Box::new(CallFailure {
            closed: Some(Box::new(closed)),
            ..failure
        }))
    }

    /// Closes a session that was refused at open or that nobody took. Never
    /// recorded; a daemon that does not answer ends it by itself.
    pub(crate) async fn abandon(&self) {
        let deadline = Instant::now() + ABANDON_BUDGET;
        let progress = Progress::default();
        let plan = self.close_plan(deadline, &progress);
        let _ = exchange(&self.client.0, plan).await;
    }

    fn close_plan<'a>(&'a self, deadline: Instant, progress: &'a Progress) -> Plan<'a> {
        let message = CloseSessionRequest {
            protocol: PROTOCOL,
            session_id: self.id.to_string(),
        };
        Plan {
            procedure: Procedure::CloseSession,
            body: message.encode_to_vec().into(),
            deadline,
            cancel: None,
            keep_after_send: false,
            progress,
            session_id: &self.id,
        }
    }
}
