//! What a daemon needs of the system before its runtime is made.
//!
//! Where the system gives too little, the runtime panics or waits for ever for
//! the threads it did get. So what it will take is taken and given back first,
//! by calls that report an error.

use std::{
    io,
    sync::{PoisonError, RwLock},
    thread,
};

use crate::descriptors;

/// Pipes, of two descriptors each: eight descriptors for the runtime, the
/// signals and the listeners, and two for a connection of each.
const PIPES: usize = 5;
/// Threads beside the workers: of a run, of its deadline, of a blocking call,
/// the log's, and the one that watches standard input.
const MORE_THREADS: usize = 5;

/// Something the system gives too little of.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Shortage {
    /// File descriptors.
    #[error("too few file descriptors, {} must be free: {error}", PIPES * 2)]
    Descriptors {
        /// The system's words.
        #[source]
        error: io::Error,
    },
    /// Threads, or the memory of their stacks.
    #[error("too few threads, {needed} must be allowed: {error}")]
    Threads {
        /// How many are needed.
        needed: usize,
        /// The system's words.
        #[source]
        error: io::Error,
    },
}

/// Takes what a daemon with this many workers needs and gives it back. The
/// descriptor limit is raised first, as far as it goes.
///
/// # Errors
/// [`Shortage`] says what there is too little of.
pub(crate) fn check(workers: usize) -> Result<(), Shortage> {
    descriptors::raise_limit();
    pipes(PIPES).map_err(|error| Shortage::Descriptors { error })?;
    let needed = workers.saturating_add(MORE_THREADS);
    threads(needed).map_err(|error| Shortage::Threads { needed, error })
}

fn pipes(count: usize) -> io::Result<()> {
    let held: Result<Vec<_>, _> = (0..count).map(|_| io::pipe()).collect();
    held.map(drop)
}

/// All threads at once, each with the usual stack.
fn threads(count: usize) -> io::Result<()> {
    let hold = RwLock::new(());
    thread::scope(|scope| {
        let held = hold.write().unwrap_or_else(PoisonError::into_inner);
        let started = (0..count).try_for_each(|_| {
            let wait = || drop(hold.read());
            thread::Builder::new().spawn_scoped(scope, wait).map(drop)
        });
        drop(held);
        started
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_says_what_is_needed() {
        let error = || io::Error::from_raw_os_error(24);
        let descriptors = Shortage::Descriptors { error: error() }.to_string();
        assert!(descriptors.contains("10 must be free"), "{descriptors}");
        let threads = Shortage::Threads {
            needed: 6,
            error: error(),
        };
        assert!(threads.to_string().contains("6 must be allowed"));
    }
}
