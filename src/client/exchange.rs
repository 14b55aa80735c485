//! One call over the network: phases, budget, cancellation, binding.

use std::future::pending;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use http_body_util::Full;
use plimsoll_wire::{
    Code, REQUEST_ID_HEADER, Reason, SERVICE,
    limits::{MAX_ANSWER_BYTES, MAX_REQUEST_BYTES},
};
use tokio::{
    sync::watch,
    time::{Instant, timeout_at},
};
use zeroize::Zeroizing;

use crate::{
    CancelToken,
    client::Shared,
    connect,
    drive::{self, DriveError},
    error_body::{self, Fault},
    failure::{CallFailure, Class, Ran, Stage},
};

const CONTENT_TYPE: &str = "application/proto";
const USER_AGENT: &str = concat!("plimsoll-attest/", env!("CARGO_PKG_VERSION"));

/// The procedures of the service.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Procedure {
    CloseSession,
    Describe,
    OpenSession,
    /// Not a procedure: the daemon's readiness, `GET /readyz`.
    Ready,
    Run,
    SessionRun,
}

impl Procedure {
    const fn name(self) -> &'static str {
        match self {
            Procedure::CloseSession => "CloseSession",
            Procedure::Describe => "Describe",
            Procedure::OpenSession => "OpenSession",
            Procedure::Ready => "readyz",
            Procedure::Run => "Run",
            Procedure::SessionRun => "SessionRun",
        }
    }
}

/// Whether a byte of the request may have left this machine. Set before the
/// first one can, never taken back.
#[derive(Debug)]
pub(crate) struct Progress(watch::Sender<bool>);

impl Default for Progress {
    fn default() -> Self {
        Progress(watch::Sender::new(false))
    }
}

impl Progress {
    pub(crate) fn is_sent(&self) -> bool {
        *self.0.borrow()
    }

    fn set_sent(&self) {
        self.0.send_replace(true);
    }

    /// Waits for the first byte; for ever when none leaves.
    pub(crate) async fn sent(&self) {
        if self.0.subscribe().wait_for(|sent| *sent).await.is_err() {
            pending::<()>().await;
        }
    }
}

/// One call as it is to be made.
pub(crate) struct Plan<'a> {
    pub(crate) procedure: Procedure,
    /// The encoded message.
    pub(crate) body: Bytes,
    pub(crate) deadline: Instant,
    pub(crate) cancel: Option<&'a CancelToken>,
    /// Whether cancelling has no effect once a byte may have left.
    pub(crate) keep_after_send: bool,
    pub(crate) progress: &'a Progress,
    /// A session's ID, kept out of messages; may be empty.
    pub(crate) session_id: &'a str,
}

/// Makes one exchange. Gives the body of a success that is bound to the
/// request and of the right content type; nothing else of it was checked.
pub(crate) async fn exchange(shared: &Shared, plan: Plan<'_>) -> Result<Bytes, Fault> {
    let plan = &plan;
    if plan.body.len() > MAX_REQUEST_BYTES {
        let message = format!(
            "the request has {} bytes; the daemon reads at most {MAX_REQUEST_BYTES}",
            plan.body.len()
        );
        return Err(
            CallFailure::local(Class::InvalidRequest, Code::ResourceExhausted, message).into(),
        );
    }
    if plan.cancel.is_some_and(CancelToken::is_cancelled) {
        return Err(canceled(false).into());
    }
    let given_up = async {
        match plan.cancel {
            Some(cancel) => cancel.cancelled().await,
            None => pending().await,
        }
        if plan.keep_after_send && plan.progress.is_sent() {
            pending::<()>().await;
        }
    };
    let work = Box::pin(timeout_at(plan.deadline, attempt(shared, plan)));
    let result = tokio::select! {
        biased;
        result = work => result.unwrap_or_else(|_| Err(timed_out(plan.progress.is_sent()).into())),
        () = given_up => Err(canceled(plan.progress.is_sent()).into()),
    };
    result.map_err(|fault| redact(fault, shared, plan.session_id))
}

async fn attempt(shared: &Shared, plan: &Plan<'_>) -> Result<Bytes, Fault> {
    let id = request_id()?;
    let request = request(shared, plan, &id)?;
    let stream = connect::open(&shared.base, &shared.security)
        .await
        .map_err(|error| {
            let mut failure = unreachable(error.to_string());
            failure.tls = error.tls();
            failure
        })?;
    let ready = drive::ready(stream)
        .await
        .map_err(|error| unreachable(error.to_string()))?;
    if plan.cancel.is_some_and(CancelToken::is_cancelled) {
        return Err(canceled(false).into());
    }
    plan.progress.set_sent();
    // A success that is not bound is believed in nothing, so nothing of its
    // body is read.
    let wanted = |status: StatusCode, headers: &HeaderMap| {
        status != StatusCode::OK || is_bound(headers, &id)
    };
    let answer = ready.exchange(request, wanted).await.map_err(no_answer)?;
    let bound = is_bound(&answer.headers, &id);
    if answer.status != StatusCode::OK {
        return Err(error_body::read(
            answer.status,
            &answer.headers,
            &answer.body,
            bound,
        ));
    }
    if !bound {
        return Err(CallFailure::unchecked(
            Class::AnswerNotBound,
            Code::DataLoss,
            "the answer is not bound to the request; it may be another request's",
        )
        .into());
    }
    if !matches!(plan.procedure, Procedure::Ready) && !is_proto(&answer.headers) {
        return Err(malformed("the answer has another content type than the request").into());
    }
    Ok(answer.body)
}

/// An answer that is not a well-formed message of its type.
pub(crate) fn malformed(message: impl Into<String>) -> CallFailure {
    CallFailure::unchecked(Class::AnswerMalformed, Code::Internal, message)
}

fn request_id() -> Result<String, Fault> {
    let mut bytes = [0; 16];
    getrandom::fill(&mut bytes).map_err(|error| {
        CallFailure::local(
            Class::Generic,
            Code::Internal,
            format!("no random bytes for a request ID: {error}"),
        )
    })?;
    Ok(hex::encode(bytes))
}

fn request(shared: &Shared, plan: &Plan<'_>, id: &str) -> Result<Request<Full<Bytes>>, Fault> {
    let (prefix, name) = (shared.base.prefix(), plan.procedure.name());
    let builder = match plan.procedure {
        Procedure::Ready => Request::get(format!("{prefix}/{name}")),
        _ => Request::post(format!("{prefix}/{SERVICE}/{name}")),
    };
    let mut builder = builder
        .header(header::HOST, shared.base.authority())
        .header(header::USER_AGENT, USER_AGENT)
        .header(header::CONTENT_TYPE, CONTENT_TYPE)
        .header(header::ACCEPT_ENCODING, "identity")
        .header("connect-protocol-version", "1")
        .header(REQUEST_ID_HEADER, id);
    if let Some(token) = &shared.token {
        let value = Zeroizing::new(format!("Bearer {}", token.expose()));
        if let Ok(mut value) = HeaderValue::from_str(&value) {
            value.set_sensitive(true);
            builder = builder.header(header::AUTHORIZATION, value);
        }
    }
    builder.body(Full::new(plan.body.clone())).map_err(|_| {
        // Base URL and token were checked when they were made.
        CallFailure::local(
            Class::Generic,
            Code::Internal,
            "the request cannot be built",
        )
        .into()
    })
}

/// Exactly one request ID, and the one sent.
fn is_bound(headers: &HeaderMap, id: &str) -> bool {
    let mut values = headers.get_all(REQUEST_ID_HEADER).iter();
    values
        .next()
        .is_some_and(|value| value.as_bytes() == id.as_bytes())
        && values.next().is_none()
}

fn is_proto(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter();
    let proto = types.next().is_some_and(|value| {
        value
            .as_bytes()
            .eq_ignore_ascii_case(CONTENT_TYPE.as_bytes())
    });
    let plain = headers
        .get_all(header::CONTENT_ENCODING)
        .iter()
        .all(|value| value.as_bytes().eq_ignore_ascii_case(b"identity"));
    proto && types.next().is_none() && plain
}

fn unreachable(message: String) -> CallFailure {
    let ran = Ran::No {
        reason: Reason::Environment,
    };
    CallFailure::new(
        Stage::Unreachable,
        Class::Unreachable,
        Code::Unavailable,
        ran,
        message,
    )
}

fn no_answer(error: DriveError) -> Fault {
    match error {
        DriveError::Broken(_) | DriveError::Interim => CallFailure::new(
            Stage::NoAnswer,
            Class::NoAnswer,
            Code::Unavailable,
            Ran::Maybe,
            error.to_string(),
        ),
        DriveError::TooLarge => CallFailure::unchecked(
            Class::AnswerTooLarge,
            Code::ResourceExhausted,
            format!("the answer is over {MAX_ANSWER_BYTES} bytes"),
        ),
    }
    .into()
}

/// The failure of a call whose budget passed.
pub(crate) fn timed_out(sent: bool) -> CallFailure {
    let (stage, ran, message) = if sent {
        (
            Stage::NoAnswer,
            Ran::Maybe,
            "the time ran out before a whole answer came",
        )
    } else {
        let reason = Reason::Environment;
        (
            Stage::Unreachable,
            Ran::No { reason },
            "the time ran out before anything was sent",
        )
    };
    CallFailure::new(stage, Class::TimedOut, Code::DeadlineExceeded, ran, message)
}

/// The failure of a call its caller gave up.
pub(crate) fn canceled(sent: bool) -> CallFailure {
    if sent {
        return CallFailure::new(
            Stage::NoAnswer,
            Class::Canceled,
            Code::Canceled,
            Ran::Maybe,
            "the call was canceled after it was sent",
        );
    }
    CallFailure::local(
        Class::Canceled,
        Code::Canceled,
        "the call was canceled before anything was sent",
    )
}

/// Takes the caller's own secrets out of a text a daemon sent: a daemon that
/// repeats them must not carry them into a log here.
fn redact(mut fault: Fault, shared: &Shared, session_id: &str) -> Fault {
    let token = shared.token.as_ref().map_or("", |token| token.expose());
    for secret in [token, session_id] {
        if secret.is_empty() {
            continue;
        }
        let detail = fault.failure.ended.as_mut().map(|end| &mut end.detail);
        for text in [Some(&mut fault.failure.message), detail]
            .into_iter()
            .flatten()
        {
            if text.contains(secret) {
                *text = text.replace(secret, "[redacted]");
            }
        }
    }
    fault
}
