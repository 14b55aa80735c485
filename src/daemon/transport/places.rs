//! The places of a listener's connections, and when they run short.
//!
//! A connection that nobody uses may stay for minutes, and costs its peer
//! nothing. So that idle ones cannot keep others out, the time they have shrinks
//! while most places are taken.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The places under one cap; without a cap there is always another.
#[derive(Debug)]
pub(crate) struct Places {
    cap: Option<usize>,
    free: Arc<Semaphore>,
    load: watch::Sender<Load>,
}

/// How many places are taken, and whether those are too many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Load {
    open: usize,
    crowded: bool,
}

impl Load {
    /// Whether the answer changes. It is crowded from over three quarters of the
    /// cap, or from the cap itself, down to half of it, so that one connection
    /// that comes and goes does not wake all others each time.
    fn moved(&mut self, open: usize, cap: usize) -> bool {
        self.open = open;
        let crowded = match self.crowded {
            true => open > cap / 2,
            false => open >= cap || open > cap - cap / 4,
        };
        std::mem::replace(&mut self.crowded, crowded) != crowded
    }
}

/// A place that may be given to a connection.
#[derive(Debug)]
pub(crate) struct Free(Option<OwnedSemaphorePermit>);

/// The place of one connection; dropping it gives it back.
#[derive(Debug)]
pub(crate) struct Place {
    places: Arc<Places>,
    permit: Option<OwnedSemaphorePermit>,
}

/// Tells a connection whether its listener is crowded.
#[derive(Clone, Debug)]
pub(crate) struct Crowd(watch::Receiver<Load>);

impl Places {
    pub(crate) fn new(cap: Option<usize>) -> Arc<Self> {
        let cap = cap.map(|cap| cap.clamp(1, Semaphore::MAX_PERMITS));
        Arc::new(Places {
            cap,
            free: Arc::new(Semaphore::new(cap.unwrap_or_default())),
            load: watch::Sender::new(Load::default()),
        })
    }

    /// Waits until there is a place for one more connection.
    pub(crate) async fn free(&self) -> Free {
        match self.cap {
            // The semaphore is never closed.
            Some(_) => Free(Arc::clone(&self.free).acquire_owned().await.ok()),
            None => Free(None),
        }
    }

    /// Gives the place to a connection that came.
    pub(crate) fn take(self: &Arc<Self>, free: Free) -> Place {
        self.count(|open| open.saturating_add(1));
        Place {
            places: Arc::clone(self),
            permit: free.0,
        }
    }

    fn count(&self, change: impl FnOnce(usize) -> usize) {
        if let Some(cap) = self.cap {
            self.load
                .send_if_modified(|load| load.moved(change(load.open), cap));
        }
    }
}

impl Place {
    pub(crate) fn crowd(&self) -> Crowd {
        Crowd(self.places.load.subscribe())
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.permit.take();
        self.places.count(|open| open.saturating_sub(1));
    }
}

impl Crowd {
    /// Whether most places are taken now.
    pub(crate) fn is(&mut self) -> bool {
        self.0.borrow_and_update().crowded
    }

    /// Waits until the answer of [`Crowd::is`] changed since it was last asked.
    pub(crate) async fn changed(&mut self) {
        if self.0.changed().await.is_err() {
            // The listener is gone, and with it every reason to hurry.
            std::future::pending::<()>().await;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Takes so many places at once.
    pub(crate) async fn taken(places: &Arc<Places>, count: usize) -> Vec<Place> {
        let mut taken = Vec::new();
        for _ in 0..count {
            let free = places.free().await;
            taken.push(places.take(free));
        }
        taken
    }

    #[tokio::test]
    async fn crowded_from_over_three_quarters_down_to_half() {
        for (cap, from, until) in [(100, 76, 50), (8, 7, 4), (4, 4, 2), (2, 2, 1), (1, 1, 0)] {
            let places = Places::new(Some(cap));
            let free = places.free().await;
            let first = places.take(free);
            let mut crowd = first.crowd();
            let mut all = vec![first];
            for open in 1..=cap {
                assert_eq!(crowd.is(), open >= from, "{open} of {cap}");
                if open < cap {
                    all.extend(taken(&places, 1).await);
                }
            }
            while let Some(place) = all.pop() {
                drop(place);
                assert_eq!(crowd.is(), all.len() > until, "{} of {cap}", all.len());
            }
            assert_eq!(taken(&places, cap).await.len(), cap);
        }
    }
}
