//! Whether a call's handler was reached.
//!
//! An answer written before that says "nothing ran", and a caller may then
//! send the call again. So the statement must not become false later: saying
//! it *seals* the call, and a sealed call can no longer enter its handler.

use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicU8, Ordering},
};

use super::slots::Slot;

const OPEN: u8 = 0;
const ENTERED: u8 = 1;
const SEALED: u8 = 2;

/// Shared by the gate and the handler of one call; holds the call's decode
/// slot until the handler is entered or the value is dropped everywhere.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reached(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    state: AtomicU8,
    slot: Mutex<Option<Slot>>,
}

impl Reached {
    /// Puts the decode slot beside the flag.
    pub(crate) fn hold(&self, slot: Slot) {
        *self.slot() = Some(slot);
    }

    /// The handler's first statement: gives the slot back. False when the call
    /// was answered as "nothing ran"; the handler must then do nothing.
    #[must_use]
    pub(crate) fn enter(&self) -> bool {
        self.slot().take();
        self.0
            .state
            .compare_exchange(OPEN, ENTERED, Ordering::SeqCst, Ordering::SeqCst)
            .is_ok()
    }

    /// Whether the handler was entered.
    pub(crate) fn entered(&self) -> bool {
        self.0.state.load(Ordering::SeqCst) == ENTERED
    }

    /// Makes sure the handler is never entered; true when that holds, so that
    /// the answer may say so.
    #[must_use]
    pub(crate) fn seal(&self) -> bool {
        match self
            .0
            .state
            .compare_exchange(OPEN, SEALED, Ordering::SeqCst, Ordering::SeqCst)
        {
            Ok(_) => true,
            Err(state) => state == SEALED,
        }
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Slot>> {
        self.0.slot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::slots::DecodeSlots;

    #[test]
    fn entered_once_and_never_after_a_seal() {
        let reached = Reached::default();
        assert!(reached.clone().enter());
        assert!(reached.entered());
        assert!(!reached.enter());
        assert!(!reached.seal());

        let sealed = Reached::default();
        assert!(sealed.seal());
        assert!(sealed.seal());
        assert!(!sealed.enter());
        assert!(!sealed.entered());
    }

    #[test]
    fn entering_gives_the_slot_back() {
        let slots = DecodeSlots::new(1);
        let reached = Reached::default();
        reached.hold(slots.take("a").unwrap());
        assert!(slots.take("a").is_none());
        let other = reached.clone();
        assert!(other.enter());
        let again = Reached::default();
        again.hold(slots.take("a").unwrap());
        drop(again);
        assert!(slots.take("a").is_some());
    }
}
