//! Merges made again.

use std::{
    io::Read as _,
    process::Stdio,
    time::{Duration, Instant},
};

use super::{GitError, Oid, Store};

/// Longest a merge may take.
const MOST_TIME: Duration = Duration::from_secs(120);

/// The tree that merging two commits gives, as git merges them without any
/// driver or configuration of the clone. What it writes stays in a repository
/// of our own.
///
/// # Errors
/// [`GitError::Merge`]: they conflict, or git is older than 2.38.
pub fn tree(store: &Store, base: &Oid, head: &Oid) -> Result<Oid, GitError> {
    let mut child = store
        .command()
        .args(["merge-tree", "--write-tree", base.as_str(), head.as_str()])
        .stdout(Stdio::piped())
        .spawn()
        .map_err(|error| GitError::Io("git could not be started", error))?;
    let answers = child.stdout.take().ok_or(GitError::Answer)?;
    // The tree's name comes first and fits a pipe; what follows is not read,
    // so a child that writes more ends by its broken pipe.
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = answers.take(128).read_to_end(&mut text);
        text
    });
    let begun = Instant::now();
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if begun.elapsed() < MOST_TIME => {
                std::thread::sleep(Duration::from_millis(5));
            }
            _ => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(GitError::Merge("git took too long"));
            }
        }
    };
    let text = reader.join().unwrap_or_default();
    match status.code() {
        Some(0) => {
            let text = std::str::from_utf8(&text).map_err(|_| GitError::Answer)?;
            Oid::parse(text.trim_end()).ok_or(GitError::Answer)
        }
        Some(1) => Err(GitError::Merge("the commits conflict")),
        _ => Err(GitError::Merge(
            "git cannot merge them; it needs version 2.38 and both commits' history",
        )),
    }
}

/// Whether one commit is an ancestor of another, or the same.
///
/// # Errors
/// [`GitError`].
pub fn is_ancestor(store: &Store, older: &Oid, newer: &Oid) -> Result<bool, GitError> {
    let status = store
        .command()
        .args([
            "merge-base",
            "--is-ancestor",
            older.as_str(),
            newer.as_str(),
        ])
        .stdout(Stdio::null())
        .status()
        .map_err(|error| GitError::Io("git could not be started", error))?;
    Ok(status.success())
}
