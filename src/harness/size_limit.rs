//! The process's file size limit.

use std::sync::{Arc, Once};

use signal_hook::{consts::SIGXFSZ, flag};

static ONCE: Once = Once::new();

/// Makes a write past the limit (`ulimit -f`) fail like one on a full disk. By
/// default the system ends the process there: code would have run, its bundle
/// would end in half a line, and nothing would be kept or told.
///
/// A handler, not an ignored signal: a handler is gone in the programs this
/// process starts, so an embedded daemon lives by the system's own rule.
pub(crate) fn survive() {
    ONCE.call_once(|| {
        // Where none can be set the default stays; there is nothing better.
        let _ = flag::register(SIGXFSZ, Arc::default());
    });
}
