//! Writing a small file so that it is the old one or the new one, at every
//! moment and after every crash.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::bundle::disk::{BundleFile as _, Disk};

/// Who may read the new file.
#[derive(Clone, Copy, Eq, PartialEq)]
pub(crate) enum Readers {
    /// Its owner: mode 0600.
    Owner,
    /// Everyone, under the process's mask: mode 0644.
    Everyone,
}

/// Puts a file with these bytes in place of what `path` names. The content is
/// synced before the name, and the name before this returns. After a failure
/// the old file is there unchanged.
pub(crate) fn replace<D: Disk>(
    disk: &D,
    path: &Path,
    bytes: &[u8],
    readers: Readers,
) -> io::Result<()> {
    let temporary = written(disk, path, bytes, readers)?;
    if let Err(error) = disk.rename(&temporary, path) {
        // The first error is the one to tell.
        let _ = disk.remove(&temporary);
        return Err(error);
    }
    disk.sync_directory_of(path)
}

/// Makes a file with these bytes that appears under its name whole and synced,
/// and only if the name is free.
pub(crate) fn create<D: Disk>(
    disk: &D,
    path: &Path,
    bytes: &[u8],
    readers: Readers,
) -> io::Result<()> {
    let temporary = written(disk, path, bytes, readers)?;
    // Unlike a rename, a link never takes the place of a file.
    let linked = disk.link(&temporary, path);
    let _ = disk.remove(&temporary);
    linked?;
    disk.sync_directory_of(path)
}

/// Writes and syncs a file beside `path` and gives its name.
fn written<D: Disk>(disk: &D, path: &Path, bytes: &[u8], readers: Readers) -> io::Result<PathBuf> {
    let temporary = beside(path)?;
    let mut file = match readers {
        Readers::Owner => disk.create_new(&temporary),
        Readers::Everyone => disk.create_new_public(&temporary),
    }?;
    match file.append(0, bytes).and_then(|()| file.sync()) {
        Ok(()) => Ok(temporary),
        Err(error) => {
            let _ = disk.remove(&temporary);
            Err(error)
        }
    }
}

/// A new name in the same directory, so that the rename crosses no file system.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".new-{}", hex::encode(random)));
    Ok(PathBuf::from(name))
}
