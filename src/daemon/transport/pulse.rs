//! What a connection is doing, and when that has gone on for too long.
//!
//! The HTTP library has one timer for heads, which also runs on an idle
//! connection, and none for a connection without a stream. So the connection
//! is watched from outside: reads, exchanges and their ends move one small
//! state, and a watchdog sleeps until the earliest limit of that state.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{sync::Notify, time::Instant};

use super::{
    heads::{Frames, Lines},
    places::Crowd,
    settings::Settings,
};

/// The limit a connection has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expiry {
    /// A head was not complete in time: cut.
    Head,
    /// No exchange for too long: end in good order.
    Idle,
    /// An exchange took too long, most likely its caller does not read: cut.
    Exchange,
}

/// The state of one connection.
#[derive(Debug)]
pub(crate) struct Pulse {
    state: Mutex<State>,
    changed: Notify,
    http2: bool,
    head: Duration,
    idle: Duration,
    crowded_idle: Duration,
    exchange: Duration,
    request: Duration,
}

#[derive(Debug)]
struct State {
    /// Open exchanges and the moment each must be over.
    open: HashMap<u64, Instant>,
    next: u64,
    /// Counts only while nothing is open.
    rest: Rest,
    came: Came,
}

/// What came in, so far as it tells whether a head has begun.
#[derive(Debug)]
enum Came {
    Http1 {
        lines: Lines,
        /// Nothing came behind the last request, so far as is known.
        ends: bool,
    },
    Http2 {
        frames: Frames,
        /// Since when a frame or a block of headers is not complete.
        within: Option<Instant>,
    },
}

#[derive(Clone, Copy, Debug)]
enum Rest {
    Idle(Instant),
    Head(Instant),
}

/// One open exchange; dropping it ends it.
#[derive(Debug)]
pub(crate) struct Exchange {
    pulse: Arc<Pulse>,
    number: u64,
}

impl Pulse {
    /// A connection whose first request has yet to come. Its head, on HTTP/2 the
    /// preface, counts from `since`, also when nothing of it is there.
    pub(crate) fn new(settings: &Settings, http2: bool, since: Instant) -> Arc<Self> {
        Arc::new(Pulse {
            state: Mutex::new(State {
                open: HashMap::new(),
                next: 0,
                rest: if http2 {
                    Rest::Idle(since)
                } else {
                    Rest::Head(since)
                },
                came: if http2 {
                    Came::Http2 {
                        frames: Frames::new(),
                        within: Some(since),
                    }
                } else {
                    Came::Http1 {
                        lines: Lines::default(),
                        ends: true,
                    }
                },
            }),
            changed: Notify::new(),
            http2,
            head: settings.head,
            idle: settings.idle,
            crowded_idle: settings.crowded_idle,
            exchange: settings.exchange,
            request: settings.request,
        })
    }

    /// A request's head is complete.
    pub(crate) fn begin(self: &Arc<Self>) -> Exchange {
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        state
            .open
            .insert(number, Instant::now() + self.request + self.exchange);
        Exchange {
            pulse: Arc::clone(self),
            number,
        }
    }

    /// Bytes came in. On HTTP/2 that may be a ping or a stalled stream's frame,
    /// which must not keep a connection; only exchanges do.
    pub(crate) fn read(&self, bytes: &[u8]) {
        let now = Instant::now();
        let mut state = self.lock();
        let State {
            open, rest, came, ..
        } = &mut *state;
        match came {
            Came::Http1 { lines, ends } => {
                lines.read(bytes);
                *ends = lines.end_empty();
                if !open.is_empty() || !matches!(rest, Rest::Idle(_)) {
                    return;
                }
                *rest = Rest::Head(now);
            }
            Came::Http2 { frames, within } => {
                let ended = frames.read(bytes);
                let before = *within;
                *within = match (frames.within(), ended) {
                    (false, _) => None,
                    (true, true) => Some(now),
                    (true, false) => before.or(Some(now)),
                };
                if *within == before {
                    return;
                }
            }
        }
        drop(state);
        self.changed.notify_one();
    }

    /// Bytes went out: the tail of an answer whose exchange is over.
    pub(crate) fn wrote(&self) {
        if self.http2 {
            return;
        }
        let mut state = self.lock();
        if let Rest::Idle(since) = &mut state.rest {
            *since = Instant::now();
        }
    }

    /// Waits until a limit is passed. `told` is when the connection was told to
    /// end; from then on it gets only the time of a head without an exchange.
    /// In a crowd an idle connection has less time, from the moment it is one.
    pub(crate) async fn expired(&self, told: Option<Instant>, crowd: &mut Crowd) -> Expiry {
        loop {
            let (at, expiry) = self.limit(told, crowd.is());
            if at <= Instant::now() {
                return expiry;
            }
            tokio::select! {
                () = tokio::time::sleep_until(at) => {}
                () = self.changed.notified() => {}
                () = crowd.changed() => {}
            }
        }
    }

    fn limit(&self, told: Option<Instant>, crowded: bool) -> (Instant, Expiry) {
        let idle = |most: Duration| match crowded {
            true => most.min(self.crowded_idle),
            false => most,
        };
        let state = self.lock();
        let rest = match (state.open.values().min(), state.rest, told) {
            (Some(at), _, _) => return (*at, Expiry::Exchange),
            (None, Rest::Head(since), _) => (since + self.head, Expiry::Head),
            (None, Rest::Idle(since), Some(told)) => {
                (since.max(told) + idle(self.head), Expiry::Idle)
            }
            (None, Rest::Idle(since), None) => (since + idle(self.idle), Expiry::Idle),
        };
        match state.came {
            Came::Http2 {
                within: Some(since),
                ..
            } if since + self.head < rest.0 => (since + self.head, Expiry::Head),
            _ => rest,
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Exchange {
    /// The request was read to its end; the exchange's own time starts.
    pub(crate) fn request_read(&self) {
        let at = Instant::now() + self.pulse.exchange;
        let mut state = self.pulse.lock();
        state.open.insert(self.number, at);
        if let Came::Http1 { ends, .. } = &mut state.came {
            *ends = true;
        }
        drop(state);
        self.pulse.changed.notify_one();
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut state = self.pulse.lock();
        state.open.remove(&self.number);
        if state.open.is_empty() {
            let now = Instant::now();
            state.rest = match &mut state.came {
                Came::Http1 { ends: false, .. } => Rest::Head(now),
                Came::Http1 { .. } => Rest::Idle(now),
                Came::Http2 { within, .. } => {
                    // The answer that just ended may still be on its way.
                    *within = within.and(Some(now));
                    Rest::Idle(now)
                }
            };
        }
        drop(state);
        self.pulse.changed.notify_one();
    }
}

#[cfg(test)]
#[path = "pulse_tests.rs"]
mod tests;
