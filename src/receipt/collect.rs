//! Which files of a commit are sent, and why the others are not.

use globset::GlobSet;
pub use plimsoll_bom::manifest;
use plimsoll_record::Digest;
use plimsoll_wire::{
    limits::{MAX_FILES, MAX_FILES_BYTES},
    proto::ProjectFile,
    validate,
};
use serde::{Deserialize, Serialize};

use crate::git::{
    Entry, GitError, Kind, Oid, Store,
    store::Content,
    tree::{self, Mode},
};

/// Why a file of the commit was not sent.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reason {
    /// Its bytes are not UTF-8: the wire's content is text.
    NotUtf8,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
    /// An exclude pattern matches it.
    Configured,
    /// Its path cannot be sent.
    Path,
    /// It alone is over the limit of all files together.
    TooLarge,
}

impl Reason {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Reason::NotUtf8 => "not-utf8",
            Reason::Symlink => "symlink",
            Reason::Submodule => "submodule",
            Reason::Configured => "configured",
            Reason::Path => "path",
            Reason::TooLarge => "too-large",
        }
    }
}

/// A file of the commit that is not sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct LeftOut {
    /// Its path; bytes that are no text are replaced.
    pub path: String,
    /// Its object.
    pub oid: Oid,
    /// Why.
    pub reason: Reason,
}

/// A file of the commit that is sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Sent {
    /// Its path.
    pub path: String,
    /// Its blob.
    pub oid: Oid,
    /// Its content.
    pub content: String,
}

/// A commit's files.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Collected {
    /// Sent, sorted by path bytes.
    pub files: Vec<Sent>,
    /// Not sent, sorted by path bytes.
    pub left_out: Vec<LeftOut>,
    /// How many of those sent are executable in the commit.
    pub executable: u64,
}

/// More than a request holds.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error(
    "{files} files of {bytes} bytes would be sent; at most {MAX_FILES} files of {MAX_FILES_BYTES} bytes are"
)]
pub struct TooMuch {
    /// Files.
    pub files: usize,
    /// Their bytes together.
    pub bytes: u64,
    /// The ten largest, largest first: path and bytes.
    pub largest: Vec<(String, u64)>,
}

/// Why a commit's files cannot be collected.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// The objects.
    #[error("{0}")]
    Git(#[from] GitError),
    /// The limits, judged over all files before any is sent.
    #[error("{0}")]
    TooMuch(#[from] TooMuch),
}

/// The path as text; bytes that are no text are replaced.
#[must_use]
pub fn shown(path: &[u8]) -> String {
    String::from_utf8_lossy(path).into_owned()
}

/// The path when it can be sent.
#[must_use]
pub fn sendable(path: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(path).ok()?;
    validate::path(text).is_ok().then_some(text)
}

/// Collects the files of a tree.
///
/// # Errors
/// [`CollectError`].
pub fn collect(
    store: &mut Store,
    root: &Oid,
    exclude: &GlobSet,
) -> Result<Collected, CollectError> {
    let mut collected = Collected::default();
    let mut sizes: Vec<(String, u64)> = Vec::new();
    let mut total: u64 = 0;
    for entry in tree::flat(store, root)? {
        let judged = without_content(&entry, exclude);
        let path = match (judged, sendable(&entry.path)) {
            (None, Some(path)) => path.to_owned(),
            (reason, _) => {
                collected.leave_out(&entry, reason.unwrap_or(Reason::Path));
                continue;
            }
        };
        let bytes = match store.read(Kind::Blob, &entry.oid, MAX_FILES_BYTES as u64)? {
            Content::Whole(bytes) => bytes,
            Content::Large(_) => {
                collected.leave_out(&entry, Reason::TooLarge);
                continue;
            }
        };
        let size = bytes.len() as u64;
        let Ok(content) = String::from_utf8(bytes) else {
            collected.leave_out(&entry, Reason::NotUtf8);
            continue;
        };
        total = total.saturating_add(size);
        sizes.push((path.clone(), size));
        // Over a limit nothing is sent, so no content is kept either.
        if sizes.len() <= MAX_FILES && total <= MAX_FILES_BYTES as u64 {
            collected.executable += u64::from(entry.mode == Mode::Executable);
            collected.files.push(Sent {
                path,
                oid: entry.oid,
                content,
            });
        }
    }
    within(sizes)?;
    Ok(collected)
}

/// Whether files fit one request.
///
/// # Errors
/// [`TooMuch`].
pub fn within(mut sizes: Vec<(String, u64)>) -> Result<(), TooMuch> {
    let bytes: u64 = sizes.iter().map(|(_, size)| size).sum();
    let files = sizes.len();
    if files <= MAX_FILES && bytes <= MAX_FILES_BYTES as u64 {
        return Ok(());
    }
    sizes.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    sizes.truncate(10);
    Err(TooMuch {
        files,
        bytes,
        largest: sizes,
    })
}

/// The reason that needs no content, if there is one.
fn without_content(entry: &Entry, exclude: &GlobSet) -> Option<Reason> {
    match entry.mode {
        Mode::Symlink => Some(Reason::Symlink),
        Mode::Submodule => Some(Reason::Submodule),
        Mode::File | Mode::Executable => {
            let path = sendable(&entry.path);
            match path {
                None => Some(Reason::Path),
                Some(path) => exclude.is_match(path).then_some(Reason::Configured),
            }
        }
    }
}

/// Whether a stated reason holds for an entry, looked at again. `exclude` is
/// `None` when the patterns are not known here: then `configured` is taken.
///
/// # Errors
/// [`GitError`].
pub fn holds(
    store: &mut Store,
    entry: &Entry,
    reason: Reason,
    exclude: Option<&GlobSet>,
) -> Result<bool, GitError> {
    let regular = matches!(entry.mode, Mode::File | Mode::Executable);
    Ok(match reason {
        Reason::Symlink => entry.mode == Mode::Symlink,
        Reason::Submodule => entry.mode == Mode::Submodule,
        Reason::Path => sendable(&entry.path).is_none(),
        Reason::Configured => {
            let matches = |set: &GlobSet| sendable(&entry.path).is_some_and(|p| set.is_match(p));
            regular && exclude.is_none_or(matches)
        }
        Reason::NotUtf8 | Reason::TooLarge if !regular => false,
        Reason::NotUtf8 => match store.read(Kind::Blob, &entry.oid, MAX_FILES_BYTES as u64)? {
            Content::Whole(bytes) => std::str::from_utf8(&bytes).is_err(),
            Content::Large(_) => false,
        },
        Reason::TooLarge => matches!(
            store.read(Kind::Blob, &entry.oid, MAX_FILES_BYTES as u64)?,
            Content::Large(_)
        ),
    })
}

impl Collected {
    fn leave_out(&mut self, entry: &Entry, reason: Reason) {
        self.left_out.push(LeftOut {
            path: shown(&entry.path),
            oid: entry.oid.clone(),
            reason,
        });
    }

    /// The digest over the files sent from the commit.
    #[must_use]
    pub fn manifest(&self) -> Digest {
        manifest(self.files.iter().map(|file| {
            (
                file.path.as_str(),
                file.oid.as_str(),
                Digest::of(file.content.as_bytes()),
            )
        }))
    }
}

/// Files as the wire takes them, sorted by path bytes.
#[must_use]
pub fn wire_files(files: Vec<(String, String)>) -> Vec<ProjectFile> {
    let mut files: Vec<ProjectFile> = files
        .into_iter()
        .map(|(path, content)| ProjectFile { path, content })
        .collect();
    files.sort_by(|a, b| a.path.cmp(&b.path));
    files
}

/// Most paths of [`tests_changed`] before the rest is counted.
pub const MAX_TESTS_CHANGED: usize = 200;

/// Paths that match the test patterns and differ between two trees: added,
/// changed or deleted. Sorted; a long list ends in a count.
///
/// # Errors
/// [`GitError`].
pub fn tests_changed(
    store: &mut Store,
    base: &Oid,
    tested: &Oid,
    patterns: &GlobSet,
) -> Result<Vec<String>, GitError> {
    let before = tree::flat(store, base)?;
    let after = tree::flat(store, tested)?;
    let old: std::collections::BTreeMap<&[u8], &Entry> =
        before.iter().map(|e| (e.path.as_slice(), e)).collect();
    let new: std::collections::BTreeMap<&[u8], &Entry> =
        after.iter().map(|e| (e.path.as_slice(), e)).collect();
    let mut changed: Vec<String> = Vec::new();
    let same = |a: &Entry, b: &Entry| a.oid == b.oid;
    for (path, entry) in &new {
        if !old.get(path).is_some_and(|before| same(before, entry)) {
            changed.push(shown(path));
        }
    }
    changed.extend(
        old.keys()
            .filter(|p| !new.contains_key(*p))
            .map(|p| shown(p)),
    );
    changed.retain(|path| patterns.is_match(path));
    changed.sort();
    if let Some(more) = changed
        .len()
        .checked_sub(MAX_TESTS_CHANGED)
        .filter(|n| *n > 0)
    {
        changed.truncate(MAX_TESTS_CHANGED);
        changed.push(format!("…and {more} more"));
    }
    Ok(changed)
}
