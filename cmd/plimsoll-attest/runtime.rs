//! The asynchronous runtime of commands that speak to a daemon.

use std::{fs::File, io};

use tokio::runtime::{Builder, Runtime};

/// Descriptors that the runtime, a connection and an embedded daemon's pipes
/// take. The runtime cannot report their lack by itself: it panics.
const DESCRIPTORS: usize = 16;

/// Starts the runtime, on this thread alone.
///
/// # Errors
/// The system's reason when it gives too few descriptors or threads.
pub fn start() -> io::Result<Runtime> {
    let mut open: Vec<File> = Vec::with_capacity(DESCRIPTORS);
    for _ in 0..DESCRIPTORS {
        open.push(match open.last() {
            None => File::open("/dev/null")?,
            Some(last) => last.try_clone()?,
        });
    }
    drop(open);
    Builder::new_current_thread().enable_all().build()
}
