//! Putting a new file in place of the old one, so that one of the two is there
//! at every moment and after every crash.

use std::{
    fs::{self, File, Metadata, OpenOptions},
    io::{self, Write as _},
    path::{Path, PathBuf},
};

/// How far a replacement got when it failed.
#[derive(Debug)]
pub(crate) enum Failed {
    /// The old file is there, byte for byte.
    Before(io::Error),
    /// Something else stands at the path than was read.
    Changed,
    /// The new file is there; that it stays after a power cut is not sure.
    After(io::Error),
}

/// Replaces the file that was read, or makes a new one where there was none. A
/// new file is readable by its owner alone; an old one's mode and owner stay,
/// or a daemon under its own user could no longer read it.
pub(crate) fn replace(path: &Path, text: &[u8], old: Option<&Metadata>) -> Result<(), Failed> {
    let temporary = Temporary::create(path).map_err(Failed::Before)?;
    temporary.fill(text, old).map_err(Failed::Before)?;
    match old {
        Some(old) => {
            let now = fs::symlink_metadata(path).map_err(Failed::Before)?;
            if !same(old, &now) {
                return Err(Failed::Changed);
            }
            fs::rename(&temporary.path, path).map_err(Failed::Before)?;
        }
        // A link never takes the place of a file that came meanwhile.
        None => match fs::hard_link(&temporary.path, path) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                return Err(Failed::Changed);
            }
            Err(error) => return Err(Failed::Before(error)),
        },
    }
    drop(temporary);
    sync_directory_of(path).map_err(Failed::After)
}

/// The file while it is made; removed when dropped, unless it was moved away.
struct Temporary {
    file: File,
    path: PathBuf,
}

impl Temporary {
    /// In the same directory, so that no file system is crossed.
    fn create(beside: &Path) -> io::Result<Temporary> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).map_err(|_| io::Error::other("no random bytes"))?;
        let mut path = beside.as_os_str().to_owned();
        path.push(format!(".new-{}", hex::encode(random)));
        let path = PathBuf::from(path);
        let mut options = OpenOptions::new();
        // Exclusive: a link that was planted at the name is not followed.
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path)?;
        Ok(Temporary { file, path })
    }

    fn fill(&self, text: &[u8], old: Option<&Metadata>) -> io::Result<()> {
        (&self.file).write_all(text)?;
        if let Some(old) = old {
            take_after(&self.file, old)?;
        }
        self.file.sync_all()
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // Gone already after a rename.
        let _ = fs::remove_file(&self.path);
    }
}

/// Gives the new file owner, group and mode of the old one. Owner first: the
/// system takes set-ID bits away when it changes.
#[cfg(unix)]
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, fchown};

    let made = file.metadata()?;
    let owner = (made.uid() != old.uid()).then_some(old.uid());
    let group = (made.gid() != old.gid()).then_some(old.gid());
    if owner.is_some() || group.is_some() {
        fchown(file, owner, group)?;
    }
    file.set_permissions(fs::Permissions::from_mode(old.mode() & 0o7777))
}

#[cfg(not(unix))]
fn take_after(file: &File, old: &Metadata) -> io::Result<()> {
    file.set_permissions(old.permissions())
}

/// Whether this is still the file that was read, unchanged.
#[cfg(unix)]
fn same(old: &Metadata, now: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    let facts = |m: &Metadata| (m.dev(), m.ino(), m.size(), m.ctime(), m.ctime_nsec());
    now.is_file() && facts(old) == facts(now)
}

#[cfg(not(unix))]
fn same(old: &Metadata, now: &Metadata) -> bool {
    now.is_file() && old.len() == now.len() && old.modified().ok() == now.modified().ok()
}

fn sync_directory_of(path: &Path) -> io::Result<()> {
    #[cfg(unix)]
    {
        let directory = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        File::open(directory)?.sync_all()?;
    }
    #[cfg(not(unix))]
    let _ = path;
    Ok(())
}
