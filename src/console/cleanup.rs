//! Temporary files that must not outlive the process, however it ends.
//!
//! A file is registered while it is unfinished. A panic, a signal or an early end removes what is
//! still registered; a finished file is let go first. Only paths this process created go in here,
//! so nothing that a person made is ever removed.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

static PENDING: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn pending() -> MutexGuard<'static, Vec<PathBuf>> {
    // The list is valid after any panic: each change is one push or one removal.
    PENDING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps a file registered until it is dropped; the file itself is left alone then.
#[derive(Debug)]
#[must_use = "the file is forgotten when this is dropped"]
pub struct Registered(PathBuf);

/// Registers a file this process has just created.
pub fn register(path: impl Into<PathBuf>) -> Registered {
    let path = path.into();
    pending().push(path.clone());
    Registered(path)
}

/// Creates a file and registers it at once: a signal comes before both or after both.
///
/// # Errors
/// Of the creation.
pub fn create<T>(
    make: impl FnOnce() -> io::Result<T>,
    path: impl FnOnce(&T) -> &Path,
) -> io::Result<(T, Registered)> {
    let mut pending = pending();
    let made = make()?;
    let path = path(&made).to_owned();
    pending.push(path.clone());
    Ok((made, Registered(path)))
}

impl Registered {
    /// The file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        let mut pending = pending();
        if let Some(at) = pending.iter().position(|path| *path == self.0) {
            pending.swap_remove(at);
        }
    }
}

/// Removes every file still registered. Failures are not reported: there is nobody left to act on
/// them, and the process is ending for a worse reason.
pub fn remove_all() {
    for path in pending().drain(..) {
        let _ = std::fs::remove_file(path);
    }
}

/// [`remove_all`] for a process that ends right after: another thread that is about to create or
/// finish a file waits for the end.
pub fn remove_all_and_hold() {
    let mut pending = pending();
    for path in pending.drain(..) {
        let _ = std::fs::remove_file(path);
    }
    std::mem::forget(pending);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_registered_files_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (kept, lost) = (dir.path().join("kept"), dir.path().join("lost"));
        std::fs::write(&kept, "k").unwrap();
        std::fs::write(&lost, "l").unwrap();
        drop(register(&kept));
        let registered = register(&lost);
        assert_eq!(registered.path(), lost);
        remove_all();
        assert!(kept.exists() && !lost.exists());
        drop(registered);
    }
}
