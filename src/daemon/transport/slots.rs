//! Decode slots: how many requests may be read and decoded at once.
//!
//! A body is up to 8 MiB and its caller decides how slowly it comes. Without a
//! bound, slow bodies fill the memory; with one bound for all, one caller takes
//! it whole. So there are two, and nothing queues.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
};

/// The slots of one listener.
#[derive(Debug)]
pub(crate) struct DecodeSlots {
    total: usize,
    per_caller: usize,
    taken: Mutex<Taken>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    /// Never holds a zero, so it holds at most as many names as slots.
    by_caller: HashMap<Arc<str>, usize>,
}

/// A slot; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Slot {
    slots: Arc<DecodeSlots>,
    caller: Arc<str>,
}

impl DecodeSlots {
    pub(crate) fn new(total: usize) -> Arc<Self> {
        let total = total.max(1);
        Arc::new(DecodeSlots {
            total,
            per_caller: (total / 2).max(1),
            taken: Mutex::default(),
        })
    }

    /// A slot for this caller, or `None` when the decoder or the caller's half
    /// of it is full.
    pub(crate) fn take(self: &Arc<Self>, caller: &str) -> Option<Slot> {
        let mut taken = self.taken.lock().unwrap_or_else(PoisonError::into_inner);
        let own = taken.by_caller.get(caller).copied().unwrap_or(0);
        if taken.all >= self.total || own >= self.per_caller {
            return None;
        }
        let caller: Arc<str> = caller.into();
        taken.all += 1;
        taken.by_caller.insert(Arc::clone(&caller), own + 1);
        Some(Slot {
            slots: Arc::clone(self),
            caller,
        })
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut taken = self
            .slots
            .taken
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        taken.all -= 1;
        if let Some(own) = taken.by_caller.get_mut(&self.caller) {
            *own -= 1;
            if *own == 0 {
                taken.by_caller.remove(&self.caller);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_caller_gets_half() {
        let slots = DecodeSlots::new(5);
        let a = slots.take("a").unwrap();
        let _a2 = slots.take("a").unwrap();
        assert!(slots.take("a").is_none());
        let _b = slots.take("b").unwrap();
        let _b2 = slots.take("b").unwrap();
        let c = slots.take("c").unwrap();
        assert!(slots.take("d").is_none());
        drop(c);
        drop(a);
        assert!(slots.take("a").is_some());
        assert_eq!(slots.taken.lock().unwrap().by_caller.len(), 2);
    }

    #[test]
    fn one_slot_serves_one_caller() {
        let slots = DecodeSlots::new(0);
        let only = slots.take("a").unwrap();
        assert!(slots.take("b").is_none());
        drop(only);
        assert!(slots.take("b").is_some());
    }
}
