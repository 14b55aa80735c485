//! The queue between the daemon and whoever reads its log.
//!
//! A write to a pipe that nobody empties never returns. So one thread writes,
//! and everything else only queues: health, signals and the drain never wait
//! for the log's reader. A run waits for room before it begins, so that its
//! audit line always has a place.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Instant,
};

use tokio::sync::Notify;

/// Lines that may wait before no further run begins.
pub(crate) const LINES: usize = 1024;
/// Bytes that may.
pub(crate) const BYTES: usize = 4 << 20;
/// Lines at which one that tells of no run is lost: only runs that had begun
/// may still add to a queue that long.
const MOST_LINES: usize = LINES * 2;

/// What is known of the writes to a log.
#[derive(Debug, Default)]
pub(crate) struct Written {
    /// Lines that could not be written or had no room.
    lost: AtomicU64,
    /// Whether the last write failed.
    failing: AtomicBool,
}

impl Written {
    /// Writes one line whole, or counts it as lost.
    pub(crate) fn line(&self, sink: &mut dyn Write, line: &[u8]) {
        let written = sink.write_all(line).and_then(|()| sink.flush());
        if written.is_err() {
            self.lose(1);
        }
        self.failing.store(written.is_err(), Ordering::Relaxed);
    }

    fn lose(&self, lines: u64) {
        self.lost.fetch_add(lines, Ordering::Relaxed);
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost.load(Ordering::Relaxed)
    }

    pub(crate) fn is_failing(&self) -> bool {
        self.failing.load(Ordering::Relaxed)
    }
}

/// Lines on their way to the thread that writes them.
#[derive(Default)]
pub(crate) struct Queue {
    state: Mutex<State>,
    /// A line came.
    came: Condvar,
    /// A line was written.
    went: Condvar,
    /// There is room again, or there never will be.
    room: Notify,
}

#[derive(Default)]
struct State {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether a line is being written.
    writing: bool,
    stopping: bool,
}

impl State {
    fn has_room(&self) -> bool {
        self.lines.len() < LINES && self.bytes < BYTES
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty() && !self.writing
    }
}

impl Queue {
    /// Starts the thread that writes to `sink`; it ends with the process.
    ///
    /// # Errors
    /// The system's, when there is no thread to be had.
    pub(crate) fn start(
        sink: Arc<Mutex<dyn Write + Send>>,
        written: Arc<Written>,
    ) -> io::Result<Arc<Queue>> {
        let queue = Arc::new(Queue::default());
        let own = Arc::clone(&queue);
        thread::Builder::new()
            .name("log".to_owned())
            .spawn(move || {
                loop {
                    let line = own.next();
                    let mut sink = sink.lock().unwrap_or_else(PoisonError::into_inner);
                    written.line(&mut *sink, &line);
                    drop(sink);
                    own.wrote();
                }
            })?;
        Ok(queue)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn next(&self) -> Vec<u8> {
        let mut state = self.state();
        loop {
            if let Some(line) = state.lines.pop_front() {
                state.bytes = state.bytes.saturating_sub(line.len());
                state.writing = true;
                return line;
            }
            state = self
                .came
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn wrote(&self) {
        let mut state = self.state();
        state.writing = false;
        let room = state.has_room();
        drop(state);
        self.went.notify_all();
        if room {
            self.room.notify_waiters();
        }
    }

    /// Queues a line, without ever waiting. One that is not `kept` is lost when
    /// the queue is at its longest.
    pub(crate) fn push(&self, line: Vec<u8>, kept: bool, written: &Written) {
        let mut state = self.state();
        if !kept && (state.lines.len() >= MOST_LINES || state.bytes >= 2 * BYTES) {
            drop(state);
            written.lose(1);
            return;
        }
        state.bytes = state.bytes.saturating_add(line.len());
        state.lines.push_back(line);
        drop(state);
        self.came.notify_one();
    }

    pub(crate) fn has_room(&self) -> bool {
        self.state().has_room()
    }

    /// Waits for room; false when the daemon stops before there is any.
    pub(crate) async fn room(&self) -> bool {
        loop {
            let notified = self.room.notified();
            let mut notified = std::pin::pin!(notified);
            notified.as_mut().enable();
            {
                let state = self.state();
                if state.has_room() {
                    return true;
                }
                if state.stopping {
                    return false;
                }
            }
            notified.await;
        }
    }

    /// Ends every wait for room, this one and later ones.
    pub(crate) fn stop_waits(&self) {
        self.state().stopping = true;
        self.room.notify_waiters();
    }

    /// Blocks until everything is written, or until `until`. What is left then
    /// is counted as lost.
    pub(crate) fn close(&self, until: Instant, written: &Written) {
        self.stop_waits();
        let mut state = self.state();
        while !state.is_empty() {
            let now = Instant::now();
            if now >= until {
                let left = state.lines.len() + usize::from(state.writing);
                written.lose(u64::try_from(left).unwrap_or(u64::MAX));
                return;
            }
            (state, _) = self
                .went
                .wait_timeout(state, until - now)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(test)]
#[path = "log_queue_tests.rs"]
mod tests;
