//! One page of text on a listener of its own, and nothing else there.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{HeaderValue, Method, Request, Response, Version, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::Incoming;

use super::{
    answer::Plain,
    body::{AnswerBody, BoxBody, RequestBody},
    gate::check_transfer_coding,
    pulse::Exchange,
    respond::Respond,
};

/// A page: its path, its content type, and its text of the moment.
pub struct Page {
    path: &'static str,
    content_type: &'static str,
    text: Box<dyn Fn() -> String + Send + Sync>,
    linger: Duration,
}

impl Page {
    /// The page at `path`. `text` is called for each answer; it must be cheap
    /// and must not block.
    pub fn new(
        path: &'static str,
        content_type: &'static str,
        text: impl Fn() -> String + Send + Sync + 'static,
    ) -> Self {
        Page {
            path,
            content_type,
            text: Box::new(text),
            linger: super::Settings::page().linger,
        }
    }

    fn answer(&self, method: &Method, path: &str) -> Result<Response<BoxBody>, Plain> {
        if path != self.path {
            return Err(Plain::not_found());
        }
        let body = match *method {
            Method::GET => Full::new(Bytes::from((self.text)())).boxed_unsync(),
            Method::HEAD => Empty::new().boxed_unsync(),
            _ => return Err(Plain::method_not_allowed("GET, HEAD")),
        };
        let mut answer = Response::new(body);
        let content_type = HeaderValue::from_static(self.content_type);
        answer.headers_mut().insert(CONTENT_TYPE, content_type);
        Ok(answer)
    }
}

impl Respond for Page {
    async fn respond(
        self: Arc<Self>,
        request: Request<Incoming>,
        exchange: Exchange,
    ) -> Response<AnswerBody> {
        let http1 = request.version() < Version::HTTP_2;
        let (parts, incoming) = request.into_parts();
        let body = RequestBody::new(incoming);
        let unframed = check_transfer_coding(&parts.headers).is_err();
        // A body is never read here: nothing on this listener takes one.
        let mut answer = match unframed {
            true => Plain::bad_request().into_response(),
            false => self
                .answer(&parts.method, parts.uri.path())
                .unwrap_or_else(Plain::into_response),
        };
        if http1 && (unframed || !body.ended()) {
            body.abandon(&mut answer, self.linger);
        }
        answer.map(|inner| AnswerBody::new(inner, exchange))
    }
}
