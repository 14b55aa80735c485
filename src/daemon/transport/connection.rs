//! One connection: which HTTP version it speaks, its timers, its end.

use std::{
    convert::Infallible,
    io,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll},
};

use bytes::{Buf, Bytes, BytesMut};
use hyper::service::service_fn;
use hyper_util::{
    rt::{TokioExecutor, TokioIo, TokioTimer},
    server::conn::auto,
};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf},
    time::{Instant, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    places::Place,
    pulse::{Expiry, Pulse},
    respond::Respond,
    settings::Settings,
};

/// What an HTTP/2 client without TLS sends first.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Streams one HTTP/2 connection may have open.
const MAX_STREAMS: u32 = 128;

/// Tells connections to end.
#[derive(Clone, Default)]
pub(crate) struct Ending {
    /// Finish what is open, start nothing.
    pub(crate) soon: CancellationToken,
    /// End now.
    pub(crate) now: CancellationToken,
}

/// The version a connection speaks, and the bytes read to find out.
pub(crate) struct Opening {
    pub(crate) http2: bool,
    pub(crate) bytes: Bytes,
    /// When the first head began to count.
    pub(crate) since: Instant,
}

/// Reads until the bytes are, or are not, the HTTP/2 preface. The HTTP
/// library's own sniffing waits without a limit, so a silent connection would
/// hold its place for ever.
pub(crate) async fn sniff<I>(io: &mut I, settings: &Settings) -> io::Result<Opening>
where
    I: AsyncRead + Unpin,
{
    let since = Instant::now();
    let mut bytes = BytesMut::new();
    timeout_at(since + settings.head, async {
        while bytes.len() < PREFACE.len() && PREFACE.starts_with(&bytes) {
            if io.read_buf(&mut bytes).await? == 0 {
                return Err(io::Error::from(io::ErrorKind::UnexpectedEof));
            }
        }
        Ok::<_, io::Error>(())
    })
    .await??;
    Ok(Opening {
        http2: bytes.starts_with(PREFACE),
        bytes: bytes.freeze(),
        since,
    })
}

/// Serves a connection to its end, in its place among the listener's.
pub(crate) async fn serve<I, R>(
    io: I,
    opening: Opening,
    responder: Arc<R>,
    settings: &Settings,
    ending: &Ending,
    place: &Place,
) where
    I: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    R: Respond,
{
    let pulse = Pulse::new(settings, opening.http2, opening.since);
    pulse.read(&opening.bytes);
    let watched = Watched {
        inner: io,
        first: opening.bytes,
        pulse: Arc::clone(&pulse),
    };
    let service = {
        let pulse = Arc::clone(&pulse);
        service_fn(move |request| {
            let exchange = pulse.begin();
            let answer = Box::pin(Arc::clone(&responder).respond(request, exchange));
            async move { Ok::<_, Infallible>(answer.await) }
        })
    };
    let builder = builder(settings, opening.http2);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(watched), service));
    let mut crowd = place.crowd();
    let mut told = None;
    loop {
        tokio::select! {
            _ = connection.as_mut() => return,
            () = ending.now.cancelled() => return,
            () = ending.soon.cancelled(), if told.is_none() => {}
            expiry = pulse.expired(told, &mut crowd) => {
                if told.is_some() || expiry != Expiry::Idle {
                    return;
                }
            }
        }
        connection.as_mut().graceful_shutdown();
        told = Some(Instant::now());
    }
}

fn builder(settings: &Settings, http2: bool) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        // A backstop: heads and idle connections have limits of their own.
        .header_read_timeout(settings.idle + settings.head)
        .max_buf_size(settings.max_head);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(u32::try_from(settings.max_head).unwrap_or(u32::MAX))
        .max_concurrent_streams(MAX_STREAMS)
        .keep_alive_interval(settings.ping);
    if http2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    }
}

/// A stream that gives the sniffed bytes back first and tells the pulse.
struct Watched<I> {
    inner: I,
    first: Bytes,
    pulse: Arc<Pulse>,
}

impl<I: AsyncRead + Unpin> AsyncRead for Watched<I> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.first.has_remaining() {
            let length = self.first.len().min(buf.remaining());
            buf.put_slice(&self.first.split_to(length));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        if let Some(bytes) = buf.filled().get(before..).filter(|b| !b.is_empty()) {
            self.pulse.read(bytes);
        }
        read
    }
}

impl<I: AsyncWrite + Unpin> Watched<I> {
    fn noted(&self, wrote: Poll<io::Result<usize>>) -> Poll<io::Result<usize>> {
        if matches!(wrote, Poll::Ready(Ok(1..))) {
            self.pulse.wrote();
        }
        wrote
    }
}

impl<I: AsyncWrite + Unpin> AsyncWrite for Watched<I> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.noted(wrote)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let wrote = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.noted(wrote)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
