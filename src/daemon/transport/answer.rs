//! Answers the gate writes itself.

use bytes::Bytes;
use http::{HeaderValue, Response, StatusCode, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use plimsoll_wire::{Code, Reason, Refusal};

use super::{body::BoxBody, content::ACCEPT_POST};
use crate::call::CallError;

/// An answer before its call's handler.
pub(crate) enum Stop {
    /// An RPC error, written in the protocol of the request.
    Error(Box<CallError>),
    /// The same, and it names the one compression the service reads.
    Compression(Box<CallError>),
    /// An HTTP answer without an RPC body.
    Plain(Plain),
    /// A fault of this program, in words for the log only.
    Fault(String),
}

/// A short HTTP answer.
pub(crate) struct Plain {
    status: StatusCode,
    text: &'static str,
    header: Option<(&'static str, &'static str)>,
}

impl Stop {
    /// A refusal with a reason.
    pub(crate) fn refuse(code: Code, reason: Reason, message: &str) -> Stop {
        Stop::Error(refusal(code, reason, message))
    }

    /// A refusal of a malformed request.
    pub(crate) fn malformed(message: &str) -> Stop {
        Stop::refuse(Code::InvalidArgument, Reason::Request, message)
    }

    /// An error that says nothing of whether anything ran.
    pub(crate) fn unmarked(code: Code, message: &str) -> Stop {
        Stop::Error(Box::new(CallError::failed(code, message.to_owned(), None)))
    }

    /// A message compression other than gzip.
    pub(crate) fn unknown_compression() -> Stop {
        Stop::Compression(refusal(
            Code::Unimplemented,
            Reason::Request,
            "unknown compression",
        ))
    }

    /// 404: no such path on this listener.
    pub(crate) fn not_found() -> Stop {
        Stop::Plain(Plain::not_found())
    }

    /// 501: a transfer coding other than chunked; 400: chunked more than once.
    pub(crate) fn bad_transfer_coding(status: StatusCode) -> Stop {
        Stop::Plain(Plain::text(
            status,
            "the only transfer coding is chunked, once\n",
        ))
    }

    /// 405: another HTTP method. `allow` lists the ones there are.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Stop {
        Stop::Plain(Plain::method_not_allowed(allow))
    }

    /// 415: another content type.
    pub(crate) fn unsupported_type() -> Stop {
        Stop::Plain(Plain {
            header: Some(("accept-post", ACCEPT_POST)),
            ..Plain::empty(StatusCode::UNSUPPORTED_MEDIA_TYPE)
        })
    }

    /// 505: gRPC needs trailers, which HTTP/1 callers do not read.
    pub(crate) fn needs_http2() -> Stop {
        Stop::Plain(Plain::empty(StatusCode::HTTP_VERSION_NOT_SUPPORTED))
    }
}

impl Plain {
    /// A status with a short text.
    pub(crate) fn text(status: StatusCode, text: &'static str) -> Plain {
        Plain {
            status,
            text,
            header: None,
        }
    }

    /// 404: no such path.
    pub(crate) fn not_found() -> Plain {
        Plain::text(StatusCode::NOT_FOUND, "not found\n")
    }

    /// 400: a request no listener of ours takes.
    pub(crate) fn bad_request() -> Plain {
        Plain::text(StatusCode::BAD_REQUEST, "bad request\n")
    }

    /// 405: another HTTP method. `allow` lists the ones there are.
    pub(crate) fn method_not_allowed(allow: &'static str) -> Plain {
        Plain {
            header: Some(("allow", allow)),
            ..Plain::empty(StatusCode::METHOD_NOT_ALLOWED)
        }
    }

    fn empty(status: StatusCode) -> Plain {
        Plain::text(status, "")
    }

    pub(crate) fn into_response(self) -> Response<BoxBody> {
        let body = Full::new(Bytes::from_static(self.text.as_bytes()));
        let mut answer = Response::new(body.boxed_unsync());
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        if !self.text.is_empty() {
            let plain = HeaderValue::from_static("text/plain; charset=utf-8");
            headers.insert(CONTENT_TYPE, plain);
        }
        if let Some((name, value)) = self.header {
            headers.insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

fn refusal(code: Code, reason: Reason, message: &str) -> Box<CallError> {
    Box::new(CallError::refused(&Refusal::new(code, reason, message)))
}
