//! One HTTP/1.1 exchange over an open stream.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll},
};

use bytes::Bytes;
use http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body, Incoming},
    client::conn::http1,
};
use hyper_util::rt::TokioIo;
use plimsoll_wire::limits::MAX_ANSWER_BYTES;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::connect::Stream;

/// Interim answers (1xx, RFC 9110 section 15.2) that are read past. No daemon
/// sends any; something between may send a few.
const MAX_INTERIM: usize = 16;

/// A connection that is ready to carry one request; nothing was written yet.
pub(crate) struct Ready {
    interim: Arc<AtomicUsize>,
    sender: http1::SendRequest<Full<Bytes>>,
    connection: http1::Connection<TokioIo<AnswerFirst>, Full<Bytes>>,
}

/// An answer's status and headers, and its body where it was asked for.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why no whole answer came.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DriveError {
    #[error("the connection broke before a whole answer came: {0}")]
    Broken(#[from] hyper::Error),
    #[error("more than {MAX_INTERIM} interim answers came, and no answer")]
    Interim,
    #[error("the answer is over {MAX_ANSWER_BYTES} bytes")]
    TooLarge,
}

pub(crate) async fn ready(stream: Box<dyn Stream>) -> Result<Ready, hyper::Error> {
    let interim = Arc::default();
    let io = TokioIo::new(AnswerFirst {
        stream,
        write_failed: false,
        interim: Arc::clone(&interim),
    });
    let (sender, connection) = http1::handshake(io).await?;
    Ok(Ready {
        interim,
        sender,
        connection,
    })
}

impl Ready {
    /// Sends the request and reads the answer. `wanted` sees status and
    /// headers first and says whether the body is read at all.
    pub(crate) async fn exchange(
        mut self,
        mut request: Request<Full<Bytes>>,
        wanted: impl FnOnce(StatusCode, &HeaderMap) -> bool,
    ) -> Result<Answer, DriveError> {
        let interim = Arc::clone(&self.interim);
        hyper::ext::on_informational(&mut request, move |_| {
            interim.fetch_add(1, Ordering::Relaxed);
        });
        let mut answer = pin!(async {
            let response = self.sender.send_request(request).await?;
            read(response, wanted).await
        });
        let mut connection = pin!(self.connection);
        let mut over = false;
        // The connection does the work; when it ends, with an error or
        // without, an answer that already came still counts.
        poll_fn(|context| {
            over = over || connection.as_mut().poll(context).is_ready();
            answer.as_mut().poll(context)
        })
        .await
        .map_err(|error| match error {
            DriveError::Broken(_) if self.interim.load(Ordering::Relaxed) > MAX_INTERIM => {
                DriveError::Interim
            }
            other => other,
        })
    }
}

async fn read(
    response: Response<Incoming>,
    wanted: impl FnOnce(StatusCode, &HeaderMap) -> bool,
) -> Result<Answer, DriveError> {
    let (head, mut body) = response.into_parts();
    let mut bytes = Vec::new();
    if wanted(head.status, &head.headers) {
        if body.size_hint().lower() > MAX_ANSWER_BYTES as u64 {
            return Err(DriveError::TooLarge);
        }
        while let Some(frame) = body.frame().await {
            let Ok(data) = frame?.into_data() else {
                continue;
            };
            if data.len() > MAX_ANSWER_BYTES - bytes.len() {
                return Err(DriveError::TooLarge);
            }
            bytes.extend_from_slice(&data);
        }
    }
    Ok(Answer {
        status: head.status,
        headers: head.headers,
        body: bytes.into(),
    })
}

/// A stream whose write side may fail without hiding the answer.
///
/// A daemon may refuse before it has read the body and close: the rest of the
/// body then cannot be written, while the refusal waits to be read. Bytes
/// after the first failed write are dropped here; the read side says what
/// happened.
///
/// And a stream that ends after too many interim answers. They come before the
/// answer and without end if the peer wants; as long as some are there to read,
/// the connection goes on with them in one go, past the call's budget.
struct AnswerFirst {
    stream: Box<dyn Stream>,
    write_failed: bool,
    interim: Arc<AtomicUsize>,
}

impl AsyncRead for AnswerFirst {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.interim.load(Ordering::Relaxed) > MAX_INTERIM {
            return Poll::Ready(Err(io::Error::other("too many interim answers")));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for AnswerFirst {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &[u8],
    ) -> Poll<io::Result<usize>> {
        if !self.write_failed {
            match Pin::new(&mut self.stream).poll_write(context, buffer) {
                Poll::Ready(Err(_)) => self.write_failed = true,
                other => return other,
            }
        }
        Poll::Ready(Ok(buffer.len()))
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if !self.write_failed {
            match Pin::new(&mut self.stream).poll_flush(context) {
                Poll::Ready(Err(_)) => self.write_failed = true,
                other => return other,
            }
        }
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use super::*;

    /// Takes a few bytes, then refuses to take more, and only then lets its
    /// answer be read.
    #[derive(Default)]
    struct ClosedForWriting {
        taken: usize,
        refused: bool,
        reader: Option<Waker>,
        answer: Vec<u8>,
    }

    impl AsyncRead for ClosedForWriting {
        fn poll_read(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
            buffer: &mut ReadBuf<'_>,
        ) -> Poll<io::Result<()>> {
            if !self.refused {
                self.reader = Some(context.waker().clone());
                return Poll::Pending;
            }
            buffer.put_slice(&std::mem::take(&mut self.answer));
            Poll::Ready(Ok(()))
        }
    }

    impl AsyncWrite for ClosedForWriting {
        fn poll_write(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
            buffer: &[u8],
        ) -> Poll<io::Result<usize>> {
            if self.taken < 4096 {
                let taken = buffer.len().min(1024);
                self.taken += taken;
                return Poll::Ready(Ok(taken));
            }
            self.refused = true;
            if let Some(reader) = self.reader.take() {
                reader.wake();
            }
            Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()))
        }

        fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }
    }

    #[tokio::test]
    async fn a_refusal_is_read_although_the_body_cannot_be_written() {
        let peer = ClosedForWriting {
            answer: b"HTTP/1.1 401 X\r\ncontent-length: 2\r\n\r\nno".to_vec(),
            ..Default::default()
        };
        let request = Request::post("/")
            .body(Full::new(Bytes::from(vec![b'x'; 4 << 20])))
            .unwrap();
        let ready = ready(Box::new(peer)).await.unwrap();
        let answer = ready.exchange(request, |_, _| true).await.unwrap();
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
        assert_eq!(&answer.body[..], b"no");
    }
}
