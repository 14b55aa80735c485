//! Removing containers, and knowing which still exist.

use std::{
    collections::HashSet,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio_util::task::TaskTracker;

use super::{
    engine::Engine,
    fault::EngineFault,
    limits::{REMOVAL_AGAIN, REMOVAL_PAUSES},
};
use crate::{log::Log, surface};

/// The containers this process made and has not removed, and the tasks that
/// remove them.
#[derive(Clone)]
pub(super) struct Living {
    names: Arc<Mutex<HashSet<String>>>,
    removals: TaskTracker,
    log: Log,
}

impl Living {
    pub(super) fn new(log: Log) -> Living {
        Living {
            names: Arc::default(),
            removals: TaskTracker::new(),
            log,
        }
    }

    /// Takes note of a container before it is asked for, so that no sweep can
    /// take it for somebody else's.
    pub(super) fn add(&self, name: &str) {
        self.lock().insert(name.to_owned());
    }

    /// Every name noted now.
    pub(super) fn names(&self) -> HashSet<String> {
        self.lock().clone()
    }

    pub(super) fn contains(&self, name: &str) -> bool {
        self.lock().contains(name)
    }

    /// Removes a container in a task of its own, which a drain waits for. With
    /// `made`, first waits for the creation in flight to end: an engine goes on
    /// with it when nobody waits for the answer, and a removal that came before
    /// it would find nothing. `kept` is let go when the container is gone.
    pub(super) fn remove<T: Send + 'static>(
        &self,
        engine: Engine,
        name: String,
        made: impl Future<Output = ()> + Send + 'static,
        kept: T,
    ) -> tokio::task::JoinHandle<bool> {
        let living = self.clone();
        self.removals.spawn(async move {
            made.await;
            let gone = match force_remove(&engine, &name).await {
                Ok(()) => true,
                Err(fault) => {
                    let text = surface::cut(&fault.to_string());
                    let line = living.log.error("a sandbox could not be removed");
                    line.text("sandbox", &name).text("error", &text).end();
                    false
                }
            };
            // Given up or gone, it is no longer in use: the next sweep looks at it.
            living.lock().remove(&name);
            drop(kept);
            if !gone {
                // Not for a drain to wait for: the next start finds what is left.
                tokio::spawn(remove_later(engine, name));
            }
            gone
        })
    }

    /// Does other work that a drain waits for.
    pub(super) fn in_background(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.removals.spawn(work);
    }

    /// Waits until every removal begun so far has ended.
    pub(super) async fn settled(&self) {
        self.removals.close();
        self.removals.wait().await;
        self.removals.reopen();
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<String>> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Tries on after a removal was given up. An engine that comes back is not
/// always able to remove at once what it was running when it went.
async fn remove_later(engine: Engine, name: String) {
    for pause in REMOVAL_AGAIN {
        tokio::time::sleep(pause).await;
        if force_remove(&engine, &name).await.is_ok() {
            return;
        }
    }
}

/// Kills and deletes a container, in three attempts of ten seconds. Returns only
/// when an empty list has proved that it is gone.
///
/// # Errors
/// The last attempt's.
pub(super) async fn force_remove(engine: &Engine, name: &str) -> Result<(), EngineFault> {
    let mut pauses = REMOVAL_PAUSES.into_iter();
    loop {
        let removed = engine.remove(name).await;
        let gone = engine.is_gone(name).await;
        if matches!(gone, Ok(true)) {
            return Ok(());
        }
        // Somebody else removes it: its end is near.
        if matches!(removed, Err(EngineFault::Status { status: 409, .. })) {
            tokio::time::sleep(Duration::from_millis(100)).await;
            if matches!(engine.is_gone(name).await, Ok(true)) {
                return Ok(());
            }
        }
        match pauses.next() {
            Some(pause) => tokio::time::sleep(pause).await,
            None => {
                return Err(removed.err().or(gone.err()).unwrap_or_else(|| {
                    EngineFault::Broken("the container is still listed".to_owned())
                }));
            }
        }
    }
}
