//! One connection to the engine's socket for each request.
//!
//! The engine is pinned to a local Unix socket. A connection of its own for
//! each request costs a tenth of a millisecond and buys three things: no stale
//! connection after the engine restarts, a failure to connect that is told
//! apart from a failure later, and a bound on what is read of each answer.

use std::{
    error::Error as StdError,
    fmt, io,
    path::PathBuf,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    task::{Context, Poll},
};

use bollard::{BollardRequest, errors::Error};
use http::{
    HeaderValue, Response, Uri,
    header::{HOST, UPGRADE},
    uri::PathAndQuery,
};
use hyper::body::Incoming;
use hyper_util::rt::TokioIo;
use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    net::UnixStream,
};

use super::limits::ANSWER_CAP;

/// Where requests go and in which version of the API.
#[derive(Debug)]
pub(super) struct Transport {
    socket: PathBuf,
    /// The minor version negotiated; 0 before that.
    minor: AtomicU32,
}

impl Transport {
    pub(super) fn new(socket: PathBuf) -> Arc<Transport> {
        Arc::new(Transport {
            socket,
            minor: AtomicU32::new(0),
        })
    }

    /// From now on requests name version `1.minor` of the API.
    pub(super) fn speak(&self, minor: u32) {
        self.minor.store(minor, Ordering::Relaxed);
    }

    pub(super) fn minor(&self) -> u32 {
        self.minor.load(Ordering::Relaxed)
    }

    /// Sends one request over a connection of its own.
    pub(super) async fn send(
        self: Arc<Self>,
        request: BollardRequest,
    ) -> Result<Response<Incoming>, Error> {
        let stream = UnixStream::connect(&self.socket).await?;
        let (mut head, body) = request.into_parts();
        head.uri = self.target(&head.uri)?;
        head.headers
            .insert(HOST, HeaderValue::from_static("docker"));
        // A hijacked stream carries a guest's output for as long as it runs;
        // whoever reads that bounds it.
        let left = if head.headers.contains_key(UPGRADE) {
            u64::MAX
        } else {
            ANSWER_CAP
        };
        let bounded = TokioIo::new(Bounded { stream, left });
        let (mut sender, connection) = hyper::client::conn::http1::handshake(bounded).await?;
        tokio::spawn(async move {
            // Its failure is seen by whoever reads the answer.
            let _ = connection.with_upgrades().await;
        });
        Ok(sender
            .send_request(http::Request::from_parts(head, body))
            .await?)
    }

    /// The origin form of a request's target, in the version negotiated.
    fn target(&self, uri: &Uri) -> Result<Uri, Error> {
        let path = uri.path_and_query().map_or("/", PathAndQuery::as_str);
        let target = match self.minor() {
            0 => path.to_owned(),
            _ if path.starts_with("/v1.") => path.to_owned(),
            minor => format!("/v1.{minor}{path}"),
        };
        Ok(target.parse()?)
    }
}

/// An answer went past its bound.
#[derive(Debug)]
pub(super) struct TooLarge;

impl fmt::Display for TooLarge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("answer above its bound")
    }
}

impl StdError for TooLarge {}

impl TooLarge {
    /// Whether this is at the bottom of an error.
    pub(super) fn caused(error: &(dyn StdError + 'static)) -> bool {
        let mut next = Some(error);
        while let Some(error) = next {
            if let Some(io) = error.downcast_ref::<io::Error>()
                && io
                    .get_ref()
                    .is_some_and(<dyn StdError + Send + Sync>::is::<TooLarge>)
            {
                return true;
            }
            next = error.source();
        }
        false
    }
}

/// A stream that reads only so much.
struct Bounded {
    stream: UnixStream,
    left: u64,
}

impl AsyncRead for Bounded {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let count = buffer.filled().len().saturating_sub(before) as u64;
        match self.left.checked_sub(count) {
            Some(left) => self.left = left,
            None => return Poll::Ready(Err(io::Error::other(TooLarge))),
        }
        read
    }
}

impl AsyncWrite for Bounded {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_name_the_version_that_was_negotiated() {
        let transport = Transport::new("/x".into());
        let target = |uri: &str| transport.target(&uri.parse().unwrap()).unwrap().to_string();
        assert_eq!(target("http://docker/version"), "/version");
        transport.speak(41);
        assert_eq!(
            target("http://docker/containers/json?all=true"),
            "/v1.41/containers/json?all=true"
        );
        assert_eq!(
            target("http://docker/v1.49/images/x/json"),
            "/v1.49/images/x/json"
        );
    }

    #[test]
    fn a_bound_that_was_passed_is_found_under_other_errors() {
        let inner = io::Error::other(TooLarge);
        assert!(TooLarge::caused(&inner));
        assert!(!TooLarge::caused(&io::Error::other("else")));
    }
}
