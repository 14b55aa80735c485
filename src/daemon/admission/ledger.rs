//! Paid time a day, for providers billed by the second.
//!
//! A run reserves the most it can cost before it is admitted and is charged what
//! it did cost. Days are UTC calendar days; nothing outlives the process. Time
//! is a parameter, so that tests own both clocks: the wall clock says which day
//! it is, the monotonic one how long a run took.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use super::shed::Shed;

const DAY: u64 = 24 * 60 * 60;

/// One moment on both clocks.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The wall clock.
    pub wall: SystemTime,
    /// The monotonic clock.
    pub clock: Instant,
}

impl Moment {
    /// This moment.
    #[must_use]
    pub fn now() -> Moment {
        Moment {
            wall: SystemTime::now(),
            clock: Instant::now(),
        }
    }

    /// The UTC day, and how much of it has passed.
    fn day(self) -> (u64, Duration) {
        // A clock before 1970 reads as the first day.
        let since = self.wall.duration_since(UNIX_EPOCH).unwrap_or_default();
        let whole = Duration::from_secs(since.as_secs() / DAY * DAY);
        (since.as_secs() / DAY, since - whole)
    }
}

/// Why a reservation is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Overdrawn {
    /// The caller's own allowance is too small now.
    Caller {
        /// Whole seconds left of today.
        left: u64,
        /// Seconds a day.
        allowance: u64,
        /// Seconds the run reserves, rounded up.
        needed: u64,
    },
    /// The daemon's allowance is too small now.
    Daemon,
}

impl Overdrawn {
    /// The cause as it is counted.
    #[must_use]
    pub const fn cause(self) -> Shed {
        match self {
            Overdrawn::Caller { .. } => Shed::PaidCaller,
            Overdrawn::Daemon => Shed::PaidDaemon,
        }
    }

    /// What the caller is told: numbers of its own allowance, and none of the
    /// daemon's, which would tell of other callers' use.
    #[must_use]
    pub fn message(self) -> String {
        match self {
            Overdrawn::Caller {
                left,
                allowance,
                needed,
            } => format!(
                "{}: {left} s are left of {allowance} s a day and the run reserves {needed} s",
                Shed::PaidCaller.message()
            ),
            Overdrawn::Daemon => Shed::PaidDaemon.message().to_owned(),
        }
    }
}

/// What a run is charged at its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charge {
    /// The time since the reservation, at most the reservation, and what the
    /// provider says it will still bill.
    Elapsed {
        /// Time still to be billed.
        owed: Duration,
    },
    /// The whole reservation, since the machine could not be deleted, and what
    /// the provider says it will still bill.
    Whole {
        /// Time still to be billed.
        owed: Duration,
    },
}

/// The ledger of one daemon.
#[derive(Debug)]
pub struct Ledger {
    daemon: u64,
    callers: HashMap<Arc<str>, u64>,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// Never goes back: a clock that is set back must not give a day twice.
    day: u64,
    spent: Duration,
    by_caller: HashMap<Arc<str>, Duration>,
    open: HashMap<u64, Open>,
    next: u64,
}

/// A reservation in force.
#[derive(Debug)]
struct Open {
    caller: Arc<str>,
    begun: Instant,
    reserved: Duration,
    /// The part of it that fell into days before today.
    past: Duration,
}

impl Open {
    /// What it holds of today.
    fn held(&self) -> Duration {
        self.reserved.saturating_sub(self.past)
    }
}

impl Ledger {
    /// A ledger with these allowances in seconds a day; 0, and a caller that is
    /// not there, have none.
    #[must_use]
    pub fn new(daemon: u64, callers: HashMap<Arc<str>, u64>) -> Arc<Ledger> {
        Arc::new(Ledger {
            daemon,
            callers,
            state: Mutex::default(),
        })
    }

    /// Reserves time for one run of this caller: its own allowance first, then
    /// the daemon's, both or none.
    ///
    /// # Errors
    /// The first allowance that does not cover it.
    pub fn reserve(
        self: &Arc<Self>,
        caller: &Arc<str>,
        time: Duration,
        now: Moment,
    ) -> Result<Reservation, Overdrawn> {
        let mut state = self.lock();
        state.roll(now);
        if let Some(allowance) = self.callers.get(caller).copied().filter(|&a| a > 0) {
            let left = Duration::from_secs(allowance).saturating_sub(state.used_by(caller));
            if left < time {
                return Err(Overdrawn::Caller {
                    left: left.as_secs(),
                    allowance,
                    needed: time.as_secs() + u64::from(time.subsec_nanos() > 0),
                });
            }
        }
        if self.daemon > 0 && Duration::from_secs(self.daemon).saturating_sub(state.used()) < time {
            return Err(Overdrawn::Daemon);
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        state.open.insert(
            id,
            Open {
                caller: Arc::clone(caller),
                begun: now.clock,
                reserved: time,
                past: Duration::ZERO,
            },
        );
        drop(state);
        Ok(Reservation {
            ledger: Arc::clone(self),
            id,
            receipt: Receipt {
                reserved: time,
                charged: Arc::default(),
            },
        })
    }

    /// Time used of today by this caller, reservations included.
    #[must_use]
    pub fn used_by(&self, caller: &str, now: Moment) -> Duration {
        let mut state = self.lock();
        state.roll(now);
        state.used_by(caller)
    }

    /// Ends a reservation and gives what was charged for it in all.
    fn close(&self, id: u64, charge: Option<Charge>, now: Moment) -> Duration {
        let mut state = self.lock();
        state.roll(now);
        let (Some(open), Some(charge)) = (state.open.remove(&id), charge) else {
            return Duration::ZERO;
        };
        let charged = match charge {
            Charge::Elapsed { owed } => {
                let elapsed = now.clock.saturating_duration_since(open.begun);
                elapsed.min(open.reserved).saturating_add(owed)
            }
            Charge::Whole { owed } => open.reserved.saturating_add(owed),
        };
        let today = charged.saturating_sub(open.past);
        state.spent = state.spent.saturating_add(today);
        let own = state.by_caller.entry(open.caller).or_default();
        *own = own.saturating_add(today);
        charged
    }

    /// Sums cannot be left half changed, so a poisoned lock is still good.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Begins a new day when there is one. What was spent is forgotten; of a run
    /// across midnight the part before it belongs to the day that ended.
    fn roll(&mut self, now: Moment) {
        let (day, passed) = now.day();
        if day <= self.day {
            return;
        }
        self.day = day;
        self.spent = Duration::ZERO;
        self.by_caller.clear();
        for open in self.open.values_mut() {
            let elapsed = now.clock.saturating_duration_since(open.begun);
            let before = elapsed.saturating_sub(passed);
            open.past = open.past.max(before).min(open.reserved);
        }
    }

    fn used(&self) -> Duration {
        let held: Duration = self.open.values().map(Open::held).sum();
        self.spent.saturating_add(held)
    }

    fn used_by(&self, caller: &str) -> Duration {
        let own = self.open.values().filter(|open| &*open.caller == caller);
        let held: Duration = own.map(Open::held).sum();
        let spent = self.by_caller.get(caller).copied().unwrap_or_default();
        spent.saturating_add(held)
    }
}

/// Time held for one run. Dropped without an end, as in a panic, it is charged
/// the time since it was made.
#[derive(Debug)]
pub struct Reservation {
    ledger: Arc<Ledger>,
    id: u64,
    receipt: Receipt,
}

impl Reservation {
    /// Charges the run at its end.
    pub fn settle(self, charge: Charge, now: Moment) {
        self.end(Some(charge), now);
    }

    /// Gives the reservation back: nothing ran.
    pub fn cancel(self, now: Moment) {
        self.end(None, now);
    }

    /// What will say how much was charged.
    #[must_use]
    pub fn receipt(&self) -> Receipt {
        self.receipt.clone()
    }

    fn end(&self, charge: Option<Charge>, now: Moment) {
        // Once: the drop that follows a settlement finds it done.
        self.receipt
            .charged
            .get_or_init(|| self.ledger.close(self.id, charge, now));
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        let owed = Duration::ZERO;
        self.end(Some(Charge::Elapsed { owed }), Moment::now());
    }
}

/// What a run was charged, for its audit line.
#[derive(Clone, Debug)]
pub struct Receipt {
    reserved: Duration,
    charged: Arc<OnceLock<Duration>>,
}

impl Receipt {
    /// What was charged; of a run that has not ended, all that it may be.
    #[must_use]
    pub fn charged(&self) -> Duration {
        self.charged.get().copied().unwrap_or(self.reserved)
    }
}

#[cfg(test)]
#[path = "ledger_tests.rs"]
mod tests;
