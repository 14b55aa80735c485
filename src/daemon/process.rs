//! What this process denies the system around it.

use std::sync::Arc;

use rustix::process::{DumpableBehavior, Resource, Rlimit, set_dumpable_behavior, setrlimit};

/// Keeps secrets in this process, and this process alive.
///
/// Tokens and guests' code are in its memory: it leaves no core file, and no
/// other process of its user may read its memory or its environment. A log
/// that is a file at its size limit fails like one on a full disk, instead of
/// ending the process with runs in flight.
pub(crate) fn guard() {
    // What the system refuses here was not there to take: none of it is needed
    // to run code safely, so none is an error.
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    let _ = setrlimit(Resource::Core, none);
    let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}
