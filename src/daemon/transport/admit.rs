//! The checks of a procedure's request, in order, up to its decoded body.
//!
//! Credential, scope and declared length are checked before a body byte is
//! read. Nothing here spends a caller's rate or takes a run's slot.

use std::{
    sync::Arc,
    time::{Instant as StdInstant, SystemTime},
};

use bytes::Bytes;
use http::{HeaderMap, HeaderName, Method, header, request::Parts};
use plimsoll_wire::{
    Code, Reason,
    elements::{self, TooManyElements},
    json::{self, JsonError},
    limits::MAX_LIST_ELEMENTS,
    proto::{
        CloseSessionRequest, DescribeRequest, OpenSessionRequest, RunRequest, SessionRunRequest,
    },
    strict_json::StrictJsonError,
};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    answer::Stop,
    auth::{Auth, AuthFailure, Verified, bearer},
    body::{ReadError, RequestBody},
    content::{Content, Protocol},
    frame::{self, FRAME_HEAD, FrameError},
    inflate::{InflateError, inflate},
    pulse::Exchange,
    reached::Reached,
    refused::RefusedCredentials,
    rpc::{Admitted, Clean},
    settings::Settings,
    slots::DecodeSlots,
    timeout,
};
use crate::{
    call::{Call, Principal},
    surface,
};

/// The procedures, by the last part of their path.
const PROCEDURES: [&str; 5] = [
    "Run",
    "Describe",
    "OpenSession",
    "SessionRun",
    "CloseSession",
];

const CONNECT_VERSION: HeaderName = HeaderName::from_static("connect-protocol-version");
const GRPC_ENCODING: HeaderName = HeaderName::from_static("grpc-encoding");

/// Bodies above this are unpacked on a thread that may block.
const UNPACK_INLINE: usize = 64 << 10;

/// What every request of one listener is checked against.
pub(crate) struct Admission {
    pub(crate) auth: Auth,
    pub(crate) slots: Arc<DecodeSlots>,
    pub(crate) settings: Settings,
    pub(crate) refused: Arc<RefusedCredentials>,
}

/// One request on its way through the checks.
pub(crate) struct Applicant<'a> {
    pub(crate) parts: &'a Parts,
    pub(crate) body: &'a mut RequestBody,
    pub(crate) exchange: &'a Exchange,
    pub(crate) reached: &'a Reached,
    /// The last part of the path, not yet known to be a procedure.
    pub(crate) procedure: &'a str,
    pub(crate) content: Option<Content>,
    pub(crate) http1: bool,
    /// When the head was complete.
    pub(crate) arrived: Instant,
    /// Cancelled when the caller has gone.
    pub(crate) caller_gone: CancellationToken,
}

impl Admission {
    /// Runs every check; what comes back is ready to be decoded.
    pub(crate) async fn admit(&self, applicant: Applicant<'_>) -> Result<Clean, Stop> {
        let headers = &applicant.parts.headers;
        let read_by = applicant.arrived + self.settings.request;
        let caller = self.authenticate(headers, read_by).await?;
        let procedure = permitted(applicant.procedure, caller.as_ref())?;

        let framed = matches!(
            applicant.content.map(|c| c.protocol),
            Some(Protocol::Grpc | Protocol::GrpcWeb)
        );
        let raw_limit = self.settings.max_body + if framed { FRAME_HEAD } else { 0 };
        if applicant
            .body
            .declared()
            .is_some_and(|length| length > raw_limit as u64)
        {
            return Err(Stop::refuse(
                Code::ResourceExhausted,
                Reason::Request,
                "the declared body is over the limit",
            ));
        }

        let principal = Principal {
            id: caller.map(|c| c.id),
        };
        let slot = self.slots.take(principal.key()).ok_or_else(|| {
            Stop::refuse(
                Code::ResourceExhausted,
                Reason::Capacity,
                "too many requests are being read",
            )
        })?;
        applicant.reached.hold(slot);

        if applicant.parts.method != Method::POST {
            return Err(Stop::method_not_allowed("POST"));
        }
        let content = applicant.content.ok_or_else(Stop::unsupported_type)?;
        if content.protocol == Protocol::Grpc && applicant.http1 {
            return Err(Stop::needs_http2());
        }
        let gzip = is_gzip(headers, content.protocol)?;
        check_version(headers, content.protocol)?;
        let deadline = deadline(headers, content.protocol, applicant.arrived)?;

        let raw = self
            .read(applicant.body, raw_limit, framed, read_by, deadline)
            .await?;
        applicant.exchange.request_read();
        let (received, received_at) = (SystemTime::now(), StdInstant::now());
        let body = unpack(raw, procedure, content, gzip, self.settings.max_body).await?;
        Ok(Clean {
            admitted: Admitted {
                reached: applicant.reached.clone(),
                call: Call {
                    principal,
                    received,
                    received_at,
                    deadline: deadline.map(Instant::into_std),
                    caller_gone: applicant.caller_gone,
                },
            },
            content,
            procedure,
            body,
            headers: headers.clone(),
        })
    }

    /// The caller; `None` when there is no verifier.
    async fn authenticate(
        &self,
        headers: &HeaderMap,
        until: Instant,
    ) -> Result<Option<Verified>, Stop> {
        if !self.auth.verifies() {
            return Ok(None);
        }
        let refuse = |message| {
            self.refused.add();
            Stop::refuse(Code::Unauthenticated, Reason::Permission, message)
        };
        let Some(token) = bearer(headers) else {
            return Err(refuse("missing bearer token"));
        };
        // The verifier's failures carry no mark: they are not about the request.
        let verified = timeout_at(until, self.auth.verify(token)).await;
        match verified.unwrap_or(Err(AuthFailure::DeadlineExceeded)) {
            Ok(caller) if caller.is_stable() => Ok(Some(caller)),
            Ok(_) => Err(refuse("the token has no stable identity")),
            Err(AuthFailure::Unknown) => Err(refuse("invalid or expired token")),
            Err(AuthFailure::Unavailable) => Err(Stop::unmarked(
                Code::Unavailable,
                "the credential cannot be checked now",
            )),
            Err(AuthFailure::Canceled) => Err(Stop::unmarked(
                Code::Canceled,
                "the check of the credential was canceled",
            )),
            Err(AuthFailure::DeadlineExceeded) => Err(Stop::unmarked(
                Code::DeadlineExceeded,
                "the check of the credential took too long",
            )),
        }
    }

    async fn read(
        &self,
        body: &mut RequestBody,
        limit: usize,
        framed: bool,
        read_by: Instant,
        deadline: Option<Instant>,
    ) -> Result<Bytes, Stop> {
        let frame_limit = framed.then_some(self.settings.max_body);
        let until = deadline.map_or(read_by, |deadline| deadline.min(read_by));
        let read = timeout_at(until, body.read(limit, frame_limit)).await;
        if deadline.is_some_and(|deadline| deadline <= Instant::now()) {
            return Err(deadline_passed());
        }
        match read {
            Ok(Ok(raw)) => Ok(raw),
            Ok(Err(ReadError::TooLarge)) => Err(too_large()),
            Ok(Err(ReadError::Broken)) => Err(Stop::malformed("the body broke off")),
            Err(_) => Err(Stop::refuse(
                Code::DeadlineExceeded,
                Reason::Request,
                "the request took too long to arrive",
            )),
        }
    }
}

/// The procedure, when there is one and the caller may call it. With a
/// verifier an unknown path is one no scope is mapped to, so it is denied.
fn permitted(procedure: &str, caller: Option<&Verified>) -> Result<&'static str, Stop> {
    let deny = |message| Stop::refuse(Code::PermissionDenied, Reason::Permission, message);
    let known = PROCEDURES.into_iter().find(|p| *p == procedure);
    match (known, caller) {
        (Some(known), None) => Ok(known),
        (Some(known), Some(caller)) if caller.may_run() => Ok(known),
        (Some(_), Some(_)) => Err(deny("the token lacks scope code:run")),
        (None, None) => Err(Stop::not_found()),
        (None, Some(_)) => Err(deny("no scope allows this procedure")),
    }
}

/// Whether the message is compressed with gzip, the only compression there is.
/// A body encoding on a framed request is refused: its frames state their own.
fn is_gzip(headers: &HeaderMap, protocol: Protocol) -> Result<bool, Stop> {
    let encoding = |name: HeaderName| {
        let mut values = headers.get_all(name).iter();
        match (values.next(), values.next()) {
            (None, _) => Some(false),
            (Some(v), None) if v.as_bytes().eq_ignore_ascii_case(b"identity") => Some(false),
            (Some(v), None) if v.as_bytes().eq_ignore_ascii_case(b"gzip") => Some(true),
            _ => None,
        }
    };
    let gzip = match protocol {
        Protocol::Connect => encoding(header::CONTENT_ENCODING),
        Protocol::Grpc | Protocol::GrpcWeb => {
            encoding(GRPC_ENCODING).filter(|_| encoding(header::CONTENT_ENCODING) == Some(false))
        }
    };
    gzip.ok_or_else(Stop::unknown_compression)
}

fn check_version(headers: &HeaderMap, protocol: Protocol) -> Result<(), Stop> {
    let mut values = headers.get_all(CONNECT_VERSION).iter();
    match (values.next(), values.next()) {
        _ if protocol != Protocol::Connect => Ok(()),
        (None, _) => Ok(()),
        (Some(v), None) if v == "1" => Ok(()),
        _ => Err(Stop::malformed("unknown Connect protocol version")),
    }
}

/// The caller's deadline; one that has passed already is answered at once.
fn deadline(
    headers: &HeaderMap,
    protocol: Protocol,
    arrived: Instant,
) -> Result<Option<Instant>, Stop> {
    let time =
        timeout::of(headers, protocol).map_err(|fault| Stop::malformed(&fault.to_string()))?;
    // One too far for the clock is none.
    match time.and_then(|time| arrived.checked_add(time)) {
        Some(at) if at <= Instant::now() => Err(deadline_passed()),
        at => Ok(at),
    }
}

fn deadline_passed() -> Stop {
    Stop::refuse(
        Code::DeadlineExceeded,
        Reason::Capacity,
        surface::DEADLINE_FIRST,
    )
}

fn too_large() -> Stop {
    Stop::refuse(
        Code::ResourceExhausted,
        Reason::Request,
        "the message is over the limit",
    )
}

/// Why a body that was read whole is refused.
#[derive(Debug, thiserror::Error)]
enum UnpackError {
    #[error("{0}")]
    Frame(#[from] FrameError),
    #[error("{0}")]
    Inflate(#[from] InflateError),
    #[error("{0}")]
    Elements(#[from] TooManyElements),
    #[error("{0}")]
    Json(#[from] StrictJsonError),
    /// Strict JSON that is another message. The decoder's own words are left
    /// out: they quote what they choke on.
    #[error("it is not the procedure's message, at line {line}, column {column}")]
    Message { line: usize, column: usize },
}

impl From<JsonError> for UnpackError {
    fn from(error: JsonError) -> Self {
        match error {
            JsonError::Text(error) => UnpackError::Json(error),
            JsonError::Message { line, column, .. } => UnpackError::Message { line, column },
            JsonError::Unknown { .. } => UnpackError::Message { line: 1, column: 0 },
        }
    }
}

async fn unpack(
    raw: Bytes,
    procedure: &'static str,
    content: Content,
    gzip: bool,
    limit: usize,
) -> Result<Bytes, Stop> {
    let unpacked = if raw.len() <= UNPACK_INLINE && !gzip {
        unpack_now(raw, procedure, content, gzip, limit)
    } else {
        tokio::task::spawn_blocking(move || unpack_now(raw, procedure, content, gzip, limit))
            .await
            .map_err(|lost| Stop::Fault(surface::lost_text(lost)))?
    };
    unpacked.map_err(|fault| match fault {
        UnpackError::Frame(FrameError::TooLarge) | UnpackError::Inflate(InflateError::TooLarge) => {
            too_large()
        }
        fault => Stop::malformed(&format!("cannot decode the message: {fault}")),
    })
}

/// Whether a text is the message of a procedure. It is decoded again behind
/// this, by a decoder that would also take a list for a message.
fn read_json(procedure: &str, text: &[u8]) -> Result<(), JsonError> {
    match procedure {
        "CloseSession" => json::read::<CloseSessionRequest>(text).map(drop),
        "OpenSession" => json::read::<OpenSessionRequest>(text).map(drop),
        "Run" => json::read::<RunRequest>(text).map(drop),
        "SessionRun" => json::read::<SessionRunRequest>(text).map(drop),
        _ => json::read::<DescribeRequest>(text).map(drop),
    }
}

/// Undoes framing and compression, stops at a list that is too long for any
/// request, and reads JSON strictly: the decoder behind this is lenient where
/// two readers could disagree.
fn unpack_now(
    raw: Bytes,
    procedure: &str,
    content: Content,
    gzip: bool,
    limit: usize,
) -> Result<Bytes, UnpackError> {
    let message = match content.protocol {
        Protocol::Connect if gzip => inflate(&raw, limit)?,
        Protocol::Connect => raw.clone(),
        Protocol::Grpc | Protocol::GrpcWeb => frame::unwrap(&raw, gzip, limit)?,
    };
    if content.json {
        elements::check_json(procedure, &message, MAX_LIST_ELEMENTS)?;
        read_json(procedure, &message)?;
    } else {
        elements::check_binary(procedure, &message, MAX_LIST_ELEMENTS)?;
    }
    Ok(match content.protocol {
        Protocol::Connect => message,
        Protocol::Grpc | Protocol::GrpcWeb if raw.first() == Some(&0) => raw,
        Protocol::Grpc | Protocol::GrpcWeb => frame::wrap(&message),
    })
}
