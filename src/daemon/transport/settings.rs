//! Limits and timers of the listener.

use std::time::Duration;

use plimsoll_wire::limits::MAX_REQUEST_BYTES;

/// Limits and timers of one RPC listener. [`Settings::new`] gives the values of
/// production; tests shorten the timers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Bytes of a request's body on the wire, and separately of its message
    /// after decompression.
    pub max_body: usize,
    /// Bytes of a request's head. Below 8 KiB the HTTP library refuses to start.
    pub max_head: usize,
    /// Requests that may be read and decoded at once. One caller gets half of
    /// them, rounded down, at least one.
    pub decode_slots: usize,
    /// Connections open at once; `None` is no bound. At the bound a new
    /// connection waits in the kernel's queue and is not answered. From over
    /// three quarters of it until half of it the listener is crowded.
    pub connection_cap: Option<usize>,
    /// Time for the first byte and the preface, for a TLS handshake, and for
    /// the rest of a head after its first byte.
    pub head: Duration,
    /// Time for a whole request, its body included.
    pub request: Duration,
    /// Time for a call to produce its answer after the request was read. More
    /// than the longest run a service allows; past it the caller is answered
    /// without the call, which goes on.
    pub answer: Duration,
    /// Time for the whole exchange after the request was read, the writing of
    /// the answer included. Past it the connection is cut. Longer than
    /// `answer`, so that an answer given up can still be written.
    pub exchange: Duration,
    /// Time a connection may stay open without an exchange.
    pub idle: Duration,
    /// The same while the listener is crowded.
    pub crowded_idle: Duration,
    /// Time the rest of an unread body is read and thrown away, so that the
    /// caller is not reset while it reads the answer.
    pub linger: Duration,
    /// Interval of HTTP/2 pings, to find dead peers.
    pub ping: Duration,
    /// Time for calls in flight after the stop; then connections are cut.
    pub drain: Duration,
    /// Refused credentials are counted over this window and reported once.
    pub refusal_window: Duration,
}

impl Settings {
    /// The values of production for a daemon that runs at most
    /// `max_concurrent` calls at once.
    #[must_use]
    pub fn new(max_concurrent: usize) -> Self {
        Settings {
            max_body: MAX_REQUEST_BYTES,
            max_head: 32 << 10,
            decode_slots: max_concurrent.saturating_mul(2).max(1),
            connection_cap: None,
            head: Duration::from_secs(5),
            request: Duration::from_secs(30),
            answer: Duration::from_secs(345),
            exchange: Duration::from_secs(360),
            idle: Duration::from_secs(120),
            crowded_idle: Duration::from_secs(1),
            linger: Duration::from_millis(500),
            ping: Duration::from_secs(60),
            drain: Duration::from_secs(360),
            refusal_window: Duration::from_secs(30),
        }
    }

    /// The values of production for a listener that serves one short page to
    /// scrapers.
    #[must_use]
    pub fn page() -> Self {
        Settings {
            connection_cap: Some(64),
            request: Duration::from_secs(10),
            answer: Duration::from_secs(10),
            exchange: Duration::from_secs(10),
            drain: Duration::from_secs(10),
            ..Settings::new(1)
        }
    }
}
