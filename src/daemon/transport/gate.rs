//! The gate of the RPC listener: echo and mark outermost, then the paths, then
//! the checks of a procedure, then the call in a task of its own.

use std::sync::Arc;

use http::{
    HeaderMap, HeaderValue, Method, Request, Response, StatusCode, Version,
    header::{ACCEPT_ENCODING, TRANSFER_ENCODING},
    request::Parts,
};
use http_body_util::{BodyExt, Empty};
use hyper::body::Incoming;
use plimsoll_wire::{
    Code, NOT_DISPATCHED_HEADER, REQUEST_ID_HEADER, Reason, SERVICE, ids::is_request_id,
};
use tokio::time::Instant;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    admit::{Admission, Applicant},
    answer::{Plain, Stop},
    body::{AnswerBody, BoxBody, RequestBody},
    content::{Content, Protocol},
    pulse::Exchange,
    reached::Reached,
    respond::Respond,
    rpc::{self, Clean, Rpc},
};
use crate::{
    call::{CallError, Service},
    surface,
};

/// The gate of one listener.
pub(crate) struct Gate<S> {
    service: Arc<S>,
    rpc: Rpc,
    admission: Admission,
    /// Calls, which outlive their callers.
    calls: TaskTracker,
}

impl<S: Service> Gate<S> {
    pub(crate) fn new(service: Arc<S>, admission: Admission, calls: TaskTracker) -> Arc<Self> {
        Arc::new(Gate {
            rpc: Rpc::new(&service, admission.settings.max_body),
            service,
            admission,
            calls,
        })
    }

    async fn answer(
        &self,
        parts: &Parts,
        body: &mut RequestBody,
        reached: &Reached,
        exchange: &Exchange,
    ) -> Response<BoxBody> {
        let http1 = parts.version < Version::HTTP_2;
        // gRPC over HTTP/1 cannot be read by its caller; plain HTTP can.
        let content = Content::of(&parts.headers);
        let shape = content.filter(|c| !(http1 && c.protocol == Protocol::Grpc));
        // Exact match, nothing is normalised: a doubled slash is another path.
        let path = parts.uri.path();
        let outcome = match path {
            _ if is_indirect(path) => Err(Stop::not_found()),
            "/healthz" => probe(&parts.method, true, "ok\n", ""),
            "/readyz" => {
                let ready = self.ready().await;
                probe(&parts.method, ready, "ready\n", "not ready\n")
            }
            _ => match path.strip_prefix('/').and_then(|p| p.split_once('/')) {
                Some((SERVICE, procedure)) => {
                    let caller_gone = CancellationToken::new();
                    let _gone = caller_gone.clone().drop_guard();
                    let applicant = Applicant {
                        parts,
                        body,
                        exchange,
                        reached,
                        procedure,
                        content,
                        http1,
                        arrived: Instant::now(),
                        caller_gone,
                    };
                    match self.admission.admit(applicant).await {
                        Ok(clean) => self.call(clean, reached).await,
                        Err(stop) => Err(stop),
                    }
                }
                _ => Err(Stop::not_found()),
            },
        };
        outcome.unwrap_or_else(|stop| self.stopped(stop, shape))
    }

    /// Runs a call in a task of its own. A caller that leaves, or a limit that
    /// passes, must not drop a run half-way: its record would be lost.
    async fn call(&self, clean: Clean, reached: &Reached) -> Result<Response<BoxBody>, Stop> {
        let task = self.calls.spawn(self.rpc.clone().call(clean));
        match tokio::time::timeout(self.admission.settings.answer, task).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(lost)) => Err(Stop::Fault(surface::lost_text(lost))),
            Err(_) => {
                let mark = reached.seal().then_some(Reason::Capacity);
                Err(Stop::Error(Box::new(CallError::failed(
                    Code::DeadlineExceeded,
                    surface::deadline(mark).to_owned(),
                    mark,
                ))))
            }
        }
    }

    /// Readiness, detached from its poller: one that hangs up must not stop a
    /// check half-way and so lower what the daemon believes of its provider.
    async fn ready(&self) -> bool {
        let service = Arc::clone(&self.service);
        let task = self.calls.spawn(async move { service.ready().await });
        let ready = tokio::time::timeout(self.admission.settings.answer, task).await;
        matches!(ready, Ok(Ok(true)))
    }

    fn stopped(&self, stop: Stop, shape: Option<Content>) -> Response<BoxBody> {
        match stop {
            Stop::Plain(plain) => plain.into_response(),
            Stop::Error(error) => rpc::error(&error, shape),
            Stop::Fault(detail) => rpc::error(&self.service.internal_error(&detail), shape),
            Stop::Compression(error) => {
                let mut answer = rpc::error(&error, shape);
                let name = match shape.map(|c| c.protocol) {
                    Some(Protocol::Grpc | Protocol::GrpcWeb) => rpc::GRPC_ACCEPT_ENCODING,
                    Some(Protocol::Connect) | None => ACCEPT_ENCODING,
                };
                answer
                    .headers_mut()
                    .insert(name, HeaderValue::from_static("gzip"));
                answer
            }
        }
    }
}

impl<S: Service> Respond for Gate<S> {
    /// Answers one request. Everything this listener says goes through here,
    /// but for what the HTTP library answers to bytes that are not HTTP.
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        exchange: Exchange,
    ) -> Response<AnswerBody> {
        let http1 = request.version() < Version::HTTP_2;
        let id = request_id(request.headers());
        let (parts, incoming) = request.into_parts();
        let mut body = RequestBody::new(incoming);
        let reached = Reached::default();

        let framed = check_transfer_coding(&parts.headers);
        let unframed = framed.is_err();
        let mut answer = match framed {
            Ok(()) => self.answer(&parts, &mut body, &reached, &exchange).await,
            Err(stop) => self.stopped(stop, None),
        };

        // Sealing comes first: once said, "nothing ran" must stay true.
        if answer.status().as_u16() >= 300 && reached.seal() {
            let mark = if answer.status() == StatusCode::NOT_FOUND {
                Reason::Unsupported
            } else {
                Reason::Request
            };
            answer
                .headers_mut()
                .insert(NOT_DISPATCHED_HEADER, HeaderValue::from_static(mark.name()));
        }
        if let Some(id) = id {
            answer.headers_mut().insert(REQUEST_ID_HEADER, id);
        }
        if http1 && (unframed || !body.ended()) {
            body.abandon(&mut answer, self.admission.settings.linger);
        }
        answer.map(|inner| AnswerBody::new(inner, exchange))
    }
}

/// Whether a path would be another one to a reader that normalises. Here it is
/// nobody's, before anything else is asked of its request.
fn is_indirect(path: &str) -> bool {
    path.contains("//") || path.split('/').any(|part| matches!(part, "." | ".."))
}

/// The value to echo: exactly one, well formed. Otherwise none is, and nothing
/// is refused.
fn request_id(headers: &HeaderMap) -> Option<HeaderValue> {
    let mut values = headers.get_all(REQUEST_ID_HEADER).iter();
    match (values.next(), values.next()) {
        (Some(value), None) if is_request_id(value.as_bytes()) => Some(value.clone()),
        _ => None,
    }
}

/// A body's transfer coding is chunked, once, or there is none. The HTTP library
/// only looks whether chunked comes last and hands on what is inside: a body
/// that is still compressed, or one whose end a proxy may see elsewhere.
pub(crate) fn check_transfer_coding(headers: &HeaderMap) -> Result<(), Stop> {
    let mut values = headers.get_all(TRANSFER_ENCODING).iter().peekable();
    if values.peek().is_none() {
        return Ok(());
    }
    let codings: Vec<&[u8]> = values
        .flat_map(|value| value.as_bytes().split(|byte| *byte == b','))
        .map(<[u8]>::trim_ascii)
        .collect();
    let is_chunked = |coding: &&[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if codings.iter().all(is_chunked) {
        match codings.len() {
            1 => Ok(()),
            _ => Err(Stop::bad_transfer_coding(StatusCode::BAD_REQUEST)),
        }
    } else {
        Err(Stop::bad_transfer_coding(StatusCode::NOT_IMPLEMENTED))
    }
}

/// An operational endpoint. Its text never says why.
fn probe(
    method: &Method,
    good: bool,
    yes: &'static str,
    no: &'static str,
) -> Result<Response<BoxBody>, Stop> {
    let answer = if good {
        Plain::text(StatusCode::OK, yes)
    } else {
        Plain::text(StatusCode::SERVICE_UNAVAILABLE, no)
    };
    let answer = answer.into_response();
    match *method {
        Method::GET => Ok(answer),
        Method::HEAD => Ok(answer.map(|_| Empty::new().boxed_unsync())),
        _ => Err(Stop::method_not_allowed("GET, HEAD")),
    }
}
