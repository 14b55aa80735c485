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
mod tests {
    use super::{
        super::places::{Places, tests::taken},
        *,
    };

    /// What a client that says nothing more begins with.
    const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

    fn settings() -> Settings {
        Settings::new(1)
    }

    async fn after(pulse: &Pulse, told: Option<Instant>) -> (Expiry, u64) {
        let alone = taken(&Places::new(None), 1).await;
        after_in(pulse, told, alone[0].crowd()).await
    }

    async fn after_in(pulse: &Pulse, told: Option<Instant>, mut crowd: Crowd) -> (Expiry, u64) {
        let start = Instant::now();
        let expiry = pulse.expired(told, &mut crowd).await;
        (expiry, start.elapsed().as_secs())
    }

    #[tokio::test(start_paused = true)]
    async fn a_first_head_has_the_time_of_a_head() {
        let pulse = Pulse::new(&settings(), false, Instant::now());
        assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
        let pulse = Pulse::new(&settings(), true, Instant::now());
        assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
        let pulse = Pulse::new(&settings(), true, Instant::now());
        pulse.read(PREFACE);
        assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
    }

    #[tokio::test(start_paused = true)]
    async fn a_head_behind_another_request_has_the_time_of_a_head() {
        let pulse = Pulse::new(&settings(), false, Instant::now());
        pulse.read(b"GET / HTTP/1.1\r\n\r\nGET /");
        drop(pulse.begin());
        assert_eq!(after(&pulse, None).await, (Expiry::Head, 5));
        // It may also come while the request before it is answered.
        for (more, expiry) in [
            (&b""[..], (Expiry::Idle, 120)),
            (b"GET /", (Expiry::Head, 5)),
        ] {
            let pulse = Pulse::new(&settings(), false, Instant::now());
            pulse.read(b"POST / HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}");
            let exchange = pulse.begin();
            exchange.request_read();
            if !more.is_empty() {
                pulse.read(more);
            }
            drop(exchange);
            assert_eq!(after(&pulse, None).await, expiry);
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_frame_that_is_cut_short_has_the_time_of_a_head() {
        let whole = b"\0\0\x02\x01\x04\0\0\0\x01ab";
        let unfinished = b"\0\0\x02\x01\0\0\0\0\x01ab";
        for (frame, expiry) in [
            (&whole[..], (Expiry::Idle, 60)),
            (&whole[..10], (Expiry::Head, 5)),
            (&whole[..3], (Expiry::Head, 5)),
            (unfinished, (Expiry::Head, 5)),
        ] {
            let pulse = Pulse::new(&settings(), true, Instant::now());
            pulse.read(PREFACE);
            tokio::time::sleep(Duration::from_secs(60)).await;
            pulse.read(frame);
            assert_eq!(after(&pulse, None).await, expiry, "{frame:?}");
            // A call in flight has its time, and its answer some to leave.
            let pulse = Pulse::new(&settings(), true, Instant::now());
            pulse.read(PREFACE);
            let call = pulse.begin();
            call.request_read();
            pulse.read(frame);
            assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 360));
            drop(call);
            let left = if expiry.0 == Expiry::Idle { 120 } else { 5 };
            assert_eq!(after(&pulse, None).await, (expiry.0, left));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn idle_then_a_head_that_stops() {
        let pulse = Pulse::new(&settings(), false, Instant::now());
        drop(pulse.begin());
        let watch = {
            let pulse = Arc::clone(&pulse);
            tokio::spawn(async move { after(&pulse, None).await })
        };
        tokio::time::sleep(Duration::from_secs(60)).await;
        pulse.read(b"G");
        pulse.read(b"E");
        pulse.wrote();
        assert_eq!(watch.await.unwrap(), (Expiry::Head, 65));
        pulse.read(b"T / HTTP/1.1\r\n\r\n");
        drop(pulse.begin());
        assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
        let told = Instant::now();
        assert_eq!(after(&pulse, Some(told)).await, (Expiry::Idle, 5));
        drop(pulse.begin());
        assert_eq!(after(&pulse, Some(told)).await, (Expiry::Idle, 5));
    }

    #[tokio::test(start_paused = true)]
    async fn an_idle_connection_gives_way_in_a_crowd() {
        for http2 in [false, true] {
            let places = Places::new(Some(4));
            let mut others = taken(&places, 3).await;
            let crowd = || others[0].crowd();
            let pulse = Pulse::new(&settings(), http2, Instant::now());
            if http2 {
                pulse.read(PREFACE);
            }
            drop(pulse.begin());
            let watch = {
                let (pulse, crowd) = (Arc::clone(&pulse), crowd());
                tokio::spawn(async move { after_in(&pulse, None, crowd).await })
            };
            tokio::time::sleep(Duration::from_secs(60)).await;
            let last = taken(&places, 1).await;
            assert_eq!(watch.await.unwrap(), (Expiry::Idle, 60));
            // One that has just answered gets a moment, one in a call all its time.
            drop(pulse.begin());
            assert_eq!(after_in(&pulse, None, crowd()).await, (Expiry::Idle, 1));
            let told = Some(Instant::now());
            assert_eq!(after_in(&pulse, told, crowd()).await, (Expiry::Idle, 1));
            let call = pulse.begin();
            call.request_read();
            assert_eq!(
                after_in(&pulse, None, crowd()).await,
                (Expiry::Exchange, 360)
            );
            drop((call, last));
            assert_eq!(after_in(&pulse, None, crowd()).await, (Expiry::Idle, 1));
            others.pop();
            drop(pulse.begin());
            let alone = others[0].crowd();
            assert_eq!(after_in(&pulse, None, alone).await, (Expiry::Idle, 120));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_oldest_exchange_counts() {
        let pulse = Pulse::new(&settings(), true, Instant::now());
        pulse.read(PREFACE);
        let first = pulse.begin();
        let second = pulse.begin();
        first.request_read();
        assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 360));
        drop(first);
        assert_eq!(after(&pulse, None).await, (Expiry::Exchange, 30));
        drop(second);
        assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_still_going_out_is_not_idle() {
        let pulse = Pulse::new(&settings(), false, Instant::now());
        drop(pulse.begin());
        tokio::time::sleep(Duration::from_secs(100)).await;
        pulse.wrote();
        assert_eq!(after(&pulse, None).await, (Expiry::Idle, 120));
    }
}
