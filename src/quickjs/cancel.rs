//! A flag one thread raises to end a run on another.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Ends the runs it is given to. Clones share one flag; once raised it stays raised.
#[derive(Clone, Debug, Default)]
pub struct CancelToken(Arc<AtomicBool>);

impl CancelToken {
    /// A token nobody has cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the runs to end. Guest code is stopped within about 20 ms; a granted call in flight is not interrupted
    /// by this, its own side has to end it.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    /// Whether somebody has asked.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}
