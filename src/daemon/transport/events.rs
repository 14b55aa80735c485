//! What the transport tells its daemon's log.

use std::{io, time::Duration};

/// Receiver of the few things the transport has to say. It says nothing of a
/// request's content: no token, no prefix of one, no request ID.
pub trait Events: Send + Sync + 'static {
    /// Credentials were refused `count` times within `window`. Called at most
    /// once per window, however many there were.
    fn credentials_refused(&self, count: u64, window: Duration);

    /// The listener failed for good; calls in flight are being drained.
    fn listener_failed(&self, error: &io::Error);
}

/// Says nothing.
impl Events for () {
    fn credentials_refused(&self, _count: u64, _window: Duration) {}
    fn listener_failed(&self, _error: &io::Error) {}
}
