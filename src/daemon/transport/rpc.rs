//! The seam to the RPC library: five routes, errors, encoding. The only file
//! that names it, so that replacing it stays a small task.
//!
//! The library is shown requests whose bodies are complete, uncompressed and
//! strictly scanned, with a header map of our making; its own limits stand
//! only as a second line.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use connectrpc::{
    ConnectError, ConnectRpcBody, ConnectRpcService, ErrorCode, ErrorDetail, Handler, Interceptor,
    Limits, Next, RequestContext, Router, handler_fn,
    interceptor::{UnaryRequest, UnaryResponse},
};
use http::{HeaderMap, HeaderName, Request, Response, header};
use http_body_util::{BodyExt, Full};
use plimsoll_wire::{
    Code, Reason, Refusal, SERVICE, detail,
    proto::{Message, MessageField, UnansweredCall},
};
use tower::ServiceExt;

use super::{
    body::BoxBody,
    content::{Content, Protocol},
    frame::FRAME_HEAD,
    reached::Reached,
};
use crate::call::{Answer, Call, CallError, Service};

pub(crate) const GRPC_ACCEPT_ENCODING: HeaderName = HeaderName::from_static("grpc-accept-encoding");
const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// What the gate knows of an admitted request; travels beside it.
#[derive(Clone)]
pub(crate) struct Admitted {
    pub(crate) reached: Reached,
    pub(crate) call: Call,
}

/// A request that passed every check of the gate.
pub(crate) struct Clean {
    pub(crate) admitted: Admitted,
    pub(crate) content: Content,
    pub(crate) procedure: &'static str,
    /// The bare message, or for a framed protocol one plain frame.
    pub(crate) body: Bytes,
    /// The request's headers; only what answers' compression needs is used.
    pub(crate) headers: HeaderMap,
}

/// The five procedures behind the library.
#[derive(Clone)]
pub(crate) struct Rpc(ConnectRpcService<Router>);

impl Rpc {
    pub(crate) fn new<S: Service>(service: &Arc<S>, max_message: usize) -> Self {
        let router = Router::new()
            .route(
                SERVICE,
                "Run",
                route(service, |s, c, m| async move { s.run(c, m).await }),
            )
            .route(
                SERVICE,
                "Describe",
                route(service, |s, c, m| async move { s.describe(c, m).await }),
            )
            .route(
                SERVICE,
                "OpenSession",
                route(service, |s, c, m| async move { s.open_session(c, m).await }),
            )
            .route(
                SERVICE,
                "SessionRun",
                route(service, |s, c, m| async move { s.session_run(c, m).await }),
            )
            .route(
                SERVICE,
                "CloseSession",
                route(
                    service,
                    |s, c, m| async move { s.close_session(c, m).await },
                ),
            );
        let limits = Limits::default()
            .with_max_request_body_size(max_message + FRAME_HEAD)
            .with_max_message_size(max_message);
        Rpc(ConnectRpcService::new(router)
            .with_limits(limits)
            .with_interceptor(MarkDecode))
    }

    /// Decodes, calls and encodes.
    pub(crate) async fn call(self, clean: Clean) -> Response<BoxBody> {
        let content = clean.content;
        let uri = format!("/{SERVICE}/{}", clean.procedure);
        let mut request = match Request::post(uri).body(Full::new(clean.body)) {
            Ok(request) => request,
            Err(_) => return error(&refused_decoding(), Some(content)),
        };
        let headers = request.headers_mut();
        headers.insert(header::CONTENT_TYPE, content.header());
        let accept = match content.protocol {
            Protocol::Connect => header::ACCEPT_ENCODING,
            Protocol::Grpc | Protocol::GrpcWeb => GRPC_ACCEPT_ENCODING,
        };
        if let Some(value) = clean.headers.get(&accept) {
            headers.insert(accept, value.clone());
        }
        request.extensions_mut().insert(clean.admitted);
        match self.0.oneshot(request).await {
            Ok(answer) => boxed(answer),
            Err(never) => match never {},
        }
    }
}

/// Writes an error in the protocol of the request. Without a content type of
/// the service it takes Connect's shape, an HTTP status and JSON, which every
/// HTTP client can read.
pub(crate) fn error(error: &CallError, content: Option<Content>) -> Response<BoxBody> {
    let mut headers = HeaderMap::new();
    if let Some(content) = content {
        headers.insert(header::CONTENT_TYPE, content.header());
    }
    boxed(to_connect(error).into_http_response(&headers))
}

/// An answer of the library. It writes a gRPC error's status into the headers
/// and again, with the details, into the trailers. A client that finds a status
/// in the headers may stop there and miss the details, so the headers lose
/// theirs. They stay a block of their own: they carry the request-ID echo,
/// which a client looks for among the headers and not among the trailers.
fn boxed(mut answer: Response<ConnectRpcBody>) -> Response<BoxBody> {
    for name in [GRPC_STATUS, GRPC_MESSAGE] {
        answer.headers_mut().remove(name);
    }
    answer.map(|body| match body {
        // A body of one piece states its length, the others do not.
        ConnectRpcBody::Full(full) => full.boxed_unsync(),
        other => other.boxed_unsync(),
    })
}

/// A route's handler. Entering the call is its first statement: an answer that
/// says "nothing ran" must be impossible from there on.
fn route<S, Q, A, F, Fut>(service: &Arc<S>, call: F) -> impl Handler<Q, A>
where
    S: Service,
    Q: Message + Send + 'static,
    A: Message + serde::Serialize + Send + 'static,
    F: Fn(Arc<S>, Call, Q) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Answer<A>> + Send + 'static,
{
    let service = Arc::clone(service);
    handler_fn(move |context: RequestContext, message: Q| {
        let call = context
            .extensions()
            .get::<Admitted>()
            .filter(|admitted| admitted.reached.enter())
            .map(|admitted| call(Arc::clone(&service), admitted.call.clone(), message));
        async move {
            match call {
                Some(call) => call
                    .await
                    .map(connectrpc::Response::new)
                    .map_err(|e| to_connect(&e)),
                // The caller was answered already; nobody reads this.
                None => Err(to_connect(&refused_decoding())),
            }
        }
    })
}

/// Marks decoding failures. The only place that sees one in every protocol:
/// an error while the handler was not entered.
struct MarkDecode;

#[connectrpc::async_trait]
impl Interceptor for MarkDecode {
    async fn intercept_unary(
        &self,
        request: UnaryRequest,
        next: Next<'_>,
    ) -> Result<UnaryResponse, ConnectError> {
        let reached = request
            .ctx
            .extensions()
            .get::<Admitted>()
            .map(|admitted| admitted.reached.clone());
        next.run(request).await.map_err(|error| match reached {
            Some(reached) if !reached.entered() => to_connect(&refused_decoding()),
            _ => error,
        })
    }
}

/// The decoder's own words quote the request, so they are not passed on.
fn refused_decoding() -> CallError {
    CallError::refused(&Refusal::new(
        Code::InvalidArgument,
        Reason::Request,
        "cannot decode the message: it does not fit the schema",
    ))
}

/// The one place that turns an error of a procedure into one of the library.
fn to_connect(error: &CallError) -> ConnectError {
    let code = ErrorCode::from_grpc_code(error.code().grpc_number()).unwrap_or(ErrorCode::Unknown);
    let mut out = ConnectError::new(code, error.message());
    if error.message().is_empty() {
        out.message = None;
    }
    if let Some(reason) = error.not_dispatched() {
        out = out.with_detail(ErrorDetail::from_message(
            detail::NOT_DISPATCHED,
            &reason.detail(),
        ));
    }
    if let Some(ended) = error.session_ended() {
        out = out.with_detail(ErrorDetail::from_message(detail::SESSION_ENDED, ended));
    }
    if let Some(record) = error.unanswered() {
        let unanswered = UnansweredCall {
            record: MessageField::some(record.clone()),
        };
        out = out.with_detail(ErrorDetail::from_message(
            detail::UNANSWERED_CALL,
            &unanswered,
        ));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_agree_with_the_library() {
        for code in Code::ALL {
            let error = CallError::failed(code, "x".into(), None);
            let out = to_connect(&error);
            assert_eq!(out.code.as_str(), code.name());
            assert_eq!(out.http_status().as_u16(), code.http_status());
            assert_eq!(out.code.grpc_code(), code.grpc_number());
        }
        let empty = CallError::failed(Code::Internal, String::new(), None);
        assert_eq!(to_connect(&empty).to_json(), r#"{"code":"internal"}"#);
    }
}
