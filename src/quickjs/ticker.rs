//! The clock of the deadlines: a thread that advances the engine's epoch while a run is in flight.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use wasmtime::Engine;

/// How often a running guest looks at its deadline and its cancel token.
pub(crate) const TICK: Duration = Duration::from_millis(10);

/// Ticks while anything runs, sleeps without a timer when nothing does, ends when dropped.
pub(crate) struct Ticker {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    wake: Condvar,
}

#[derive(Default)]
struct State {
    running: usize,
    /// The thread waits without a timer. A run that finds it ticking need not wake it, which spares a chain of short
    /// runs one switch of threads each.
    parked: bool,
    stop: bool,
}

impl Ticker {
    pub(crate) fn start(engine: Engine) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            wake: Condvar::new(),
        });
        let thread = std::thread::Builder::new()
            .name("quickjs-ticker".into())
            .spawn({
                let shared = Arc::clone(&shared);
                move || shared.tick(&engine)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Keeps the epoch advancing until the result is dropped.
    pub(crate) fn run(&self) -> Running<'_> {
        let mut state = self.shared.lock();
        state.running += 1;
        if state.parked {
            self.shared.wake.notify_one();
        }
        Running(&self.shared)
    }
}

impl Drop for Ticker {
    fn drop(&mut self) {
        self.shared.lock().stop = true;
        self.shared.wake.notify_one();
        if let Some(thread) = self.thread.take() {
            // It cannot panic, and there is nobody to tell if it did.
            let _ = thread.join();
        }
    }
}

/// One run in flight.
pub(crate) struct Running<'a>(&'a Shared);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.lock().running -= 1;
    }
}

impl Shared {
    /// No code panics while it holds the lock, so a poisoned one is as good as any.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tick(&self, engine: &Engine) {
        let mut state = self.lock();
        while !state.stop {
            if state.running == 0 {
                state.parked = true;
                state = self
                    .wake
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
                state.parked = false;
            } else {
                state = self
                    .wake
                    .wait_timeout(state, TICK)
                    .unwrap_or_else(PoisonError::into_inner)
                    .0;
                engine.increment_epoch();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropping_ends_the_thread_parked_or_ticking() {
        let engine = Engine::default();
        let parked = Ticker::start(engine.clone()).unwrap();
        let shared = Arc::downgrade(&parked.shared);
        drop(parked);
        assert!(
            shared.upgrade().is_none(),
            "the thread still holds the state"
        );

        let ticking = Ticker::start(engine).unwrap();
        let shared = Arc::downgrade(&ticking.shared);
        std::mem::forget(ticking.run());
        drop(ticking);
        assert!(
            shared.upgrade().is_none(),
            "the thread still holds the state"
        );
    }
}
