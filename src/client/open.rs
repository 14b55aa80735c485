//! Opening a session, and giving back one that nobody takes.

use std::sync::{Arc, Mutex};

use plimsoll_record::{Chain, check::RecordError};
use plimsoll_wire::{
    Code, PROTOCOL, Refusal, ids,
    proto::{Message, OpenSessionRequest, OpenSessionResponse, decode},
    tier, validate,
};
use tokio::{runtime::Handle, sync::oneshot, time::Instant};
use zeroize::Zeroizing;

use crate::{
    CancelToken,
    client::{CallOptions, Client},
    exchange::{Plan, Procedure, Progress, canceled, exchange, malformed},
    failure::{CallFailure, Class},
    session::{OpenSession, Opened, Session, State, Turn},
};

type Outcome = Result<Session, Box<CallFailure>>;

impl Client {
    /// Opens a session and checks what the daemon states of it. A session that
    /// does not check, or whose caller has gone, is closed again on the daemon.
    ///
    /// Must be called on a tokio runtime: the open goes on in a task of its own
    /// once a byte left, also when this future is dropped.
    ///
    /// # Errors
    /// [`CallFailure`].
    pub async fn open_session(&self, open: &OpenSession, options: &CallOptions) -> Outcome {
        if let Some(recorder) = &self.0.recorder
            && !recorder.keeps_sessions()
        {
            return Err(Box::new(CallFailure::local(
                Class::InvalidRequest,
                Code::FailedPrecondition,
                "the recorder cannot keep a session's unanswered calls and its close",
            )));
        }
        let message = self.open_message(open)?;
        let cancel = options.cancel.as_ref();
        let task_cancel = cancel.map_or_else(CancelToken::new, CancelToken::child_token);
        // Dropping this future cuts the open as long as nothing was sent.
        let _cut = task_cancel.clone().drop_guard();
        let progress = Arc::new(Progress::default());
        let (sender, receiver) = oneshot::channel();
        tokio::spawn({
            let client = self.clone();
            let open = open.clone();
            let deadline = self.deadline(options);
            let progress = Arc::clone(&progress);
            async move {
                let outcome = client
                    .open_now(open, message, deadline, &task_cancel, &progress)
                    .await;
                if let Err(parcel) = sender.send(Parcel(Some(outcome)))
                    && let Some(Ok(session)) = parcel.take()
                {
                    session.abandon().await;
                }
            }
        });
        let given_up = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
            // Before a byte left the task answers by itself, marked.
            progress.sent().await;
        };
        tokio::select! {
            biased;
            parcel = receiver => match parcel.ok().and_then(Parcel::take) {
                Some(outcome) => outcome,
                None => Err(Box::new(CallFailure::unchecked(
                    Class::NoAnswer,
                    Code::Internal,
                    "the task that opens the session ended without an answer",
                ))),
            },
            () = given_up => Err(canceled(true).into()),
        }
    }

    fn open_message(&self, open: &OpenSession) -> Result<OpenSessionRequest, Refusal> {
        if !open.trace_id.is_empty() && !validate::is_trace_id(&open.trace_id) {
            return Err(Refusal::invalid(
                "traceId",
                "a trace ID is 1 to 64 of A-Z a-z 0-9 . _ : -",
            ));
        }
        if let Some(other) = (open.languages.iter())
            .find(|language| !matches!(language.as_str(), "javascript" | "python"))
        {
            return Err(Refusal::invalid(
                "languages",
                format!("no interpreter for {other:?}; known are javascript and python"),
            ));
        }
        let token = self.0.token.as_ref().map_or("", |token| token.expose());
        let owner = match open.owner.as_deref() {
            // Sent as no owner it would escape the cap on the owner's sessions.
            Some("") => return Err(Refusal::invalid("owner", "an owner is not empty")),
            Some(owner) => ids::owner_digest(token, owner),
            None => String::new(),
        };
        Ok(OpenSessionRequest {
            protocol: PROTOCOL,
            minimum_isolation: open.floor.map_or("", |tier| tier.name()).to_owned(),
            trace_id: open.trace_id.clone(),
            lifetime_ms: milliseconds(open.lifetime),
            idle_timeout_ms: milliseconds(open.idle),
            software_rule: open.rule.to_message().into(),
            languages: open.languages.clone(),
            owner,
        })
    }

    async fn open_now(
        &self,
        open: OpenSession,
        message: OpenSessionRequest,
        deadline: Instant,
        cancel: &CancelToken,
        progress: &Progress,
    ) -> Outcome {
        let plan = Plan {
            procedure: Procedure::OpenSession,
            body: message.encode_to_vec().into(),
            deadline,
            cancel: Some(cancel),
            keep_after_send: true,
            progress,
            session_id: "",
        };
        let body = exchange(&self.0, plan).await?;
        let answer: OpenSessionResponse =
            decode(&body).map_err(|error| malformed(error.to_string()))?;
        if answer.session_id.is_empty() {
            return Err(malformed("the answer names no session").into());
        }
        let id = Zeroizing::new(answer.session_id);
        let opened = Opened {
            session: answer.session,
            provider: answer.sandbox,
            isolation: answer.isolation,
            software_identity: answer.software_identity,
            expires_unix_ms: answer.expires_unix_ms,
            idle_timeout_ms: answer.idle_timeout_ms,
        };
        let chain = Chain::of_session_id(&id);
        let verdict = check(&open, &opened, &chain);
        let session = Session {
            client: self.clone(),
            id,
            opened,
            floor: open.floor,
            rule: open.rule,
            turn: tokio::sync::Mutex::new(Turn {
                chain,
                closed: None,
            }),
            state: Mutex::new(State::default()),
        };
        match verdict {
            Ok(()) => Ok(session),
            Err(error) => {
                session.abandon().await;
                Err(CallFailure::record(error, None).into())
            }
        }
    }
}

fn check(open: &OpenSession, opened: &Opened, chain: &Chain) -> Result<(), RecordError> {
    if opened.session != chain.fingerprint() {
        return Err(RecordError::Chain {
            field: "session",
            expected: chain.fingerprint().to_owned(),
            found: opened.session.clone(),
        });
    }
    let floor = open.floor.map_or("", |tier| tier.name());
    if !tier::meets(&opened.isolation, floor) {
        return Err(RecordError::IsolationEvidence {
            floor: floor.to_owned(),
            tier: opened.isolation.clone(),
        });
    }
    if !open.rule.allows(&opened.software_identity) {
        return Err(RecordError::Mismatch {
            field: "software_identity",
            expected: open.rule.id(),
            found: opened.software_identity.clone(),
        });
    }
    Ok(())
}

/// Milliseconds of the wire: absent for zero, at least 1, never wrapped.
fn milliseconds(duration: Option<std::time::Duration>) -> u32 {
    match duration {
        Some(duration) if !duration.is_zero() => {
            u32::try_from(duration.as_millis().max(1)).unwrap_or(u32::MAX)
        }
        _ => 0,
    }
}

/// Carries an outcome to the caller, and closes a session nobody took.
struct Parcel(Option<Outcome>);

impl Parcel {
    fn take(mut self) -> Option<Outcome> {
        self.0.take()
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if let Some(Ok(session)) = self.0.take()
            && let Ok(runtime) = Handle::try_current()
        {
            runtime.spawn(async move { session.abandon().await });
        }
    }
}
