//! Bodies: the request's, read under limits or thrown away, and the answer's,
//! which keeps its exchange open until it has been handed out.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Bytes, BytesMut};
use http::{HeaderValue, Response, header::CONNECTION};
use http_body::{Body, Frame, SizeHint};
use http_body_util::{BodyExt, combinators::UnsyncBoxBody};
use hyper::body::Incoming;
use tokio::time::Instant;

use super::{frame, pulse::Exchange};

/// An answer's body before the shell has dressed it.
pub(crate) type BoxBody = UnsyncBoxBody<Bytes, Infallible>;

/// The largest piece of an answer handed to the HTTP library at once. With
/// HTTP/2 the library takes a piece whole whatever the peer's window says, so
/// the piece bounds what can pile up behind a peer that does not read.
const PIECE: usize = 16 << 10;

/// Why a body could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ReadError {
    /// More bytes than the limit, or a frame that states more.
    #[error("the body is over the limit")]
    TooLarge,
    /// The connection broke or the body's framing is wrong.
    #[error("the body broke off")]
    Broken,
}

/// A request's body, and whether it was read to its end.
pub(crate) struct RequestBody {
    incoming: Incoming,
    ended: bool,
}

impl RequestBody {
    pub(crate) fn new(incoming: Incoming) -> Self {
        // Only a body that cannot have bytes is at its end before it is read.
        let ended = incoming.is_end_stream();
        RequestBody { incoming, ended }
    }

    /// The length the request declares.
    pub(crate) fn declared(&self) -> Option<u64> {
        self.incoming.size_hint().exact()
    }

    /// Reads the body to its end. `framed` bodies state their message's length
    /// up front; one over `frame_limit` is refused without reading on.
    pub(crate) async fn read(
        &mut self,
        limit: usize,
        frame_limit: Option<usize>,
    ) -> Result<Bytes, ReadError> {
        let mut out = BytesMut::new();
        while let Some(next) = self.incoming.frame().await {
            let next = next.map_err(|_| ReadError::Broken)?;
            let Ok(data) = next.into_data() else { continue };
            if data.len() > limit - out.len() {
                return Err(ReadError::TooLarge);
            }
            out.extend_from_slice(&data);
            if frame_limit.is_some_and(|limit| frame::states_too_much(&out, limit)) {
                return Err(ReadError::TooLarge);
            }
        }
        self.ended = true;
        Ok(out.freeze())
    }

    /// Whether nothing of the body is left on the connection.
    pub(crate) fn ended(&self) -> bool {
        self.ended
    }

    /// Gives up an HTTP/1 body that was not read to its end: the answer says
    /// that its connection closes, and what is left is read and thrown away for
    /// at most `time`, so that the caller is not reset while it reads.
    pub(crate) fn abandon(mut self, answer: &mut Response<BoxBody>, time: Duration) {
        answer
            .headers_mut()
            .insert(CONNECTION, HeaderValue::from_static("close"));
        let until = Instant::now() + time;
        tokio::spawn(async move {
            let incoming = &mut self.incoming;
            while let Ok(Some(Ok(_))) = tokio::time::timeout_at(until, incoming.frame()).await {}
        });
    }
}

/// An answer's body: handed out in pieces, its exchange open until the end.
pub(crate) struct AnswerBody {
    inner: BoxBody,
    rest: Bytes,
    /// Ends with the body, which the HTTP library drops once it is handed out.
    _exchange: Exchange,
}

impl AnswerBody {
    pub(crate) fn new(inner: BoxBody, exchange: Exchange) -> Self {
        AnswerBody {
            inner,
            rest: Bytes::new(),
            _exchange: exchange,
        }
    }

    fn piece(&mut self) -> Frame<Bytes> {
        let length = self.rest.len().min(PIECE);
        Frame::data(self.rest.split_to(length))
    }
}

impl Body for AnswerBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Some(Ok(self.piece())));
        }
        let next = match std::task::ready!(Pin::new(&mut self.inner).poll_frame(cx)) {
            Some(Ok(next)) => next,
            Some(Err(never)) => match never {},
            None => return Poll::Ready(None),
        };
        match next.into_data() {
            Ok(data) => {
                self.rest = data;
                Poll::Ready(Some(Ok(self.piece())))
            }
            Err(other) => Poll::Ready(Some(Ok(other))),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let inner = self.inner.size_hint();
        let mut hint = SizeHint::new();
        if let Some(upper) = inner.upper() {
            hint.set_upper(upper + rest);
        }
        hint.set_lower(inner.lower() + rest);
        hint
    }
}
