//! A commit's whole tree, flat.

use super::{GitError, Kind, Oid, Store};

/// Entries looked at; a tree made to explode is refused.
pub const MAX_ENTRIES: usize = 100_000;
/// Directories inside one another.
pub const MAX_DEPTH: usize = 128;
/// Bytes of all paths together.
const MAX_PATH_BYTES: usize = 64 << 20;

/// What an entry of a tree is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mode {
    /// A file.
    File,
    /// A file with its executable bit set.
    Executable,
    /// A symbolic link.
    Symlink,
    /// A commit of another repository.
    Submodule,
}

/// An entry that is no directory.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// Its path, bytes as they stand.
    pub path: Vec<u8>,
    /// What it is.
    pub mode: Mode,
    /// Its object.
    pub oid: Oid,
}

/// Reads a tree with everything below it, sorted by path bytes.
///
/// # Errors
/// [`GitError`]; also for two entries of one path.
pub fn flat(store: &mut Store, root: &Oid) -> Result<Vec<Entry>, GitError> {
    let mut walk = Walk {
        entries: Vec::new(),
        looked_at: 0,
        path_bytes: 0,
    };
    walk.directory(store, root, &[], 0)?;
    let mut entries = walk.entries;
    entries.sort_by(|a, b| a.path.cmp(&b.path));
    let twice = entries.windows(2).any(|pair| match pair {
        [a, b] => {
            a.path == b.path
                || b.path
                    .strip_prefix(a.path.as_slice())
                    .is_some_and(|rest| rest.first() == Some(&b'/'))
        }
        _ => false,
    });
    if twice {
        return Err(GitError::Form {
            oid: root.clone(),
            what: "two entries have one path",
        });
    }
    Ok(entries)
}

struct Walk {
    entries: Vec<Entry>,
    looked_at: usize,
    path_bytes: usize,
}

impl Walk {
    fn directory(
        &mut self,
        store: &mut Store,
        oid: &Oid,
        path: &[u8],
        depth: usize,
    ) -> Result<(), GitError> {
        if depth > MAX_DEPTH {
            return Err(GitError::Limit("directories nest deeper than 128"));
        }
        let bytes = store.meta(Kind::Tree, oid)?;
        for (mode, name, inner) in parse(oid, &bytes)? {
            self.looked_at += 1;
            if self.looked_at > MAX_ENTRIES {
                return Err(GitError::Limit("the tree has more than 100,000 entries"));
            }
            let mut below = path.to_vec();
            if !below.is_empty() {
                below.push(b'/');
            }
            below.extend_from_slice(name);
            self.path_bytes += below.len();
            if self.path_bytes > MAX_PATH_BYTES {
                return Err(GitError::Limit("the tree's paths have more than 64 MiB"));
            }
            let mode = match mode {
                None => {
                    self.directory(store, &inner, &below, depth + 1)?;
                    continue;
                }
                Some(mode) => mode,
            };
            self.entries.push(Entry {
                path: below,
                mode,
                oid: inner,
            });
        }
        Ok(())
    }
}

/// Mode, name and object; no mode for a directory.
type Raw<'b> = (Option<Mode>, &'b [u8], Oid);

/// The entries of one tree.
fn parse<'b>(oid: &Oid, bytes: &'b [u8]) -> Result<Vec<Raw<'b>>, GitError> {
    let bad = |what| GitError::Form {
        oid: oid.clone(),
        what,
    };
    let width = oid.algorithm().bytes();
    let mut rest = bytes;
    let mut entries = Vec::new();
    while !rest.is_empty() {
        let space = rest.iter().position(|b| *b == b' ');
        let (mode, after) = space
            .and_then(|at| rest.split_at_checked(at))
            .ok_or_else(|| bad("an entry without a mode"))?;
        let mode = match mode {
            b"40000" | b"040000" => None,
            b"100644" | b"100664" => Some(Mode::File),
            b"100755" => Some(Mode::Executable),
            b"120000" => Some(Mode::Symlink),
            b"160000" => Some(Mode::Submodule),
            _ => return Err(bad("an entry of an unknown mode")),
        };
        let after = after.get(1..).unwrap_or_default();
        let nul = after.iter().position(|b| *b == 0);
        let (name, after) = nul
            .and_then(|at| after.split_at_checked(at))
            .ok_or_else(|| bad("an entry without an end"))?;
        if name.is_empty() || name.contains(&b'/') {
            return Err(bad("an entry without a plain name"));
        }
        let (inner, after) = after
            .get(1..)
            .and_then(|after| after.split_at_checked(width))
            .ok_or_else(|| bad("an entry without an object"))?;
        let inner = Oid::from_bytes(inner).ok_or_else(|| bad("an entry without an object"))?;
        entries.push((mode, name, inner));
        rest = after;
    }
    Ok(entries)
}

/// The blob at a path; `None` when there is no regular file there.
///
/// # Errors
/// [`GitError`].
pub fn find(store: &mut Store, root: &Oid, path: &str) -> Result<Option<Oid>, GitError> {
    let mut directory = root.clone();
    let mut parts = path.split('/').peekable();
    let mut depth = 0;
    while let Some(part) = parts.next() {
        depth += 1;
        if depth > MAX_DEPTH {
            return Ok(None);
        }
        let bytes = store.meta(Kind::Tree, &directory)?;
        let found = parse(&directory, &bytes)?
            .into_iter()
            .find(|(_, name, _)| *name == part.as_bytes());
        match (found, parts.peek()) {
            (Some((None, _, inner)), Some(_)) => directory = inner,
            (Some((Some(Mode::File | Mode::Executable), _, blob)), None) => return Ok(Some(blob)),
            _ => return Ok(None),
        }
    }
    Ok(None)
}
