//! How many runs at once and how often, for the daemon and for each caller.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use super::shed::Shed;

/// A bucket is forgotten only after this long without use, and only when full.
const FORGET_AFTER: Duration = Duration::from_secs(120);
/// How often buckets are looked through for ones to forget.
const SWEEP_EVERY: Duration = Duration::from_secs(60);

/// The limits in force.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Runs in flight, whole daemon; at least 1.
    pub max_concurrent: u32,
    /// Runs in flight per caller; 0 is no cap.
    pub per_key: u32,
    /// Starts per minute per caller, sustained; 0 is no limit.
    pub rate_per_min: u64,
    /// Starts a caller may make at once; at least 1 when there is a rate.
    pub burst: u64,
}

#[derive(Debug)]
struct Bucket {
    tokens: f64,
    last: Instant,
}

#[derive(Debug, Default)]
struct State {
    inflight: u32,
    per_key: HashMap<Arc<str>, u32>,
    buckets: HashMap<Arc<str>, Bucket>,
    swept: Option<Instant>,
}

/// The limiter. Time is a parameter, so that tests own the clock.
#[derive(Debug)]
pub struct Limiter {
    limits: Limits,
    state: Mutex<State>,
    shed: [AtomicU64; Shed::ALL.len()],
}

impl Limiter {
    /// A limiter with nothing in flight.
    #[must_use]
    pub fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Limiter {
            limits,
            state: Mutex::default(),
            shed: Default::default(),
        })
    }

    /// The limits in force.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Admits one start of the caller `key`: daemon slots, then the caller's
    /// slots, then the caller's rate, all or nothing. A refusal by slots spends
    /// no token, and a refusal by rate takes no slot.
    ///
    /// # Errors
    /// The first limit that refuses.
    pub fn admit(self: &Arc<Self>, key: &Arc<str>, now: Instant) -> Result<Capacity, Shed> {
        let mut state = self.lock();
        let held = state.per_key.get(key).copied().unwrap_or(0);
        let decision = if state.inflight >= self.limits.max_concurrent {
            Err(Shed::AtCapacity)
        } else if self.limits.per_key > 0 && held >= self.limits.per_key {
            Err(Shed::PerKey)
        } else if self.spend(&mut state, key, now) {
            Ok(())
        } else {
            Err(Shed::Rate)
        };
        if let Err(shed) = decision {
            drop(state);
            self.count(shed);
            return Err(shed);
        }
        state.inflight += 1;
        *state.per_key.entry(Arc::clone(key)).or_default() += 1;
        drop(state);
        Ok(Capacity {
            _slot: Arc::new(Slot {
                limiter: Arc::clone(self),
                key: Arc::clone(key),
            }),
        })
    }

    /// Slots taken now.
    #[must_use]
    pub fn inflight(&self) -> u32 {
        self.lock().inflight
    }

    /// Starts shed so far for this cause.
    #[must_use]
    pub fn shed(&self, cause: Shed) -> u64 {
        self.shed[cause as usize].load(Ordering::Relaxed)
    }

    /// Counts a start that was shed, by this limiter or by the ledger of paid
    /// time before it.
    pub(crate) fn count(&self, cause: Shed) {
        self.shed[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    fn spend(&self, state: &mut State, key: &Arc<str>, now: Instant) -> bool {
        if self.limits.rate_per_min == 0 {
            return true;
        }
        self.forget(state, now);
        let full = self.limits.burst as f64;
        let bucket = state.buckets.entry(Arc::clone(key)).or_insert(Bucket {
            tokens: full,
            last: now,
        });
        bucket.tokens = self.refilled(bucket, now);
        bucket.last = bucket.last.max(now);
        if bucket.tokens < 1.0 {
            return false;
        }
        bucket.tokens -= 1.0;
        true
    }

    fn refilled(&self, bucket: &Bucket, now: Instant) -> f64 {
        let idle = now.saturating_duration_since(bucket.last).as_secs_f64();
        let per_second = self.limits.rate_per_min as f64 / 60.0;
        (bucket.tokens + idle * per_second).min(self.limits.burst as f64)
    }

    /// Forgets buckets that are idle and would be full: a fresh one starts
    /// full, so forgetting any other would mint tokens.
    fn forget(&self, state: &mut State, now: Instant) {
        let due = state
            .swept
            .is_none_or(|swept| now.saturating_duration_since(swept) >= SWEEP_EVERY);
        if !due {
            return;
        }
        state.swept = Some(now);
        let full = self.limits.burst as f64;
        state.buckets.retain(|_, bucket| {
            now.saturating_duration_since(bucket.last) <= FORGET_AFTER
                || self.refilled(bucket, now) < full
        });
    }

    fn release(&self, key: &Arc<str>) {
        let mut state = self.lock();
        state.inflight = state.inflight.saturating_sub(1);
        if let Some(held) = state.per_key.get_mut(key) {
            *held -= 1;
            if *held == 0 {
                state.per_key.remove(key);
            }
        }
    }

    /// Counters cannot be left half changed, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
struct Slot {
    limiter: Arc<Limiter>,
    key: Arc<str>,
}

impl Drop for Slot {
    fn drop(&mut self) {
        self.limiter.release(&self.key);
    }
}

/// A slot of a run. It goes back, once, when the last clone is gone: the call's
/// own and every one a provider keeps while it still removes the sandbox.
#[derive(Clone, Debug)]
pub struct Capacity {
    _slot: Arc<Slot>,
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
