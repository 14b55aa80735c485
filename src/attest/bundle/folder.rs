//! The files of one directory, reached through its descriptor.

use std::{
    fs::File,
    io::{self, Read as _},
    os::unix::fs::MetadataExt as _,
    path::{Component, Path, PathBuf},
    sync::Arc,
};

use rustix::{
    fs::{AtFlags, Dir, Mode, OFlags, fsync, linkat, open, openat, renameat, statat, unlinkat},
    io::Errno,
};

use super::disk::{BundleFile as _, Disk, Facts, OsFile};
use crate::replace::{self, Readers};

/// A directory that was opened once. Whatever its path names later, a link to
/// another place for example, its files are those of the directory that was
/// opened. Paths are given as they are seen, below the directory's own.
#[derive(Clone, Debug)]
pub struct FolderDisk {
    folder: Arc<File>,
    path: PathBuf,
}

impl FolderDisk {
    /// Opens a directory, and no link to one.
    ///
    /// # Errors
    /// As the system says.
    pub fn open(path: &Path) -> io::Result<Self> {
        // With a slash at its end a link would be followed.
        let path: PathBuf = path.components().collect();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let folder = File::from(open(&path, flags, Mode::empty())?);
        Ok(FolderDisk {
            folder: Arc::new(folder),
            path,
        })
    }

    /// The path it was opened by.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether nothing is in it.
    ///
    /// # Errors
    /// As the system says.
    pub fn is_empty(&self) -> io::Result<bool> {
        for entry in Dir::read_from(&*self.folder)? {
            let entry = entry?;
            if ![c".", c".."].contains(&entry.file_name()) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether its path still names it, and not by a link.
    ///
    /// # Errors
    /// As the system says of the open directory.
    pub fn stands(&self) -> io::Result<bool> {
        let (open, named) = (self.folder.metadata()?, self.path.symlink_metadata());
        Ok(named.is_ok_and(|named| (named.dev(), named.ino()) == (open.dev(), open.ino())))
    }

    /// The bytes of a file, at most `limit`.
    ///
    /// # Errors
    /// As the system says; `FileTooLarge` for more bytes.
    pub fn read(&self, name: &str, limit: u64) -> io::Result<Vec<u8>> {
        let OsFile(file) = self.opened(&self.path.join(name), OFlags::RDONLY, 0)?;
        let mut bytes = Vec::new();
        file.take(limit.saturating_add(1)).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > limit {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes)
    }

    /// Makes a file that appears under its name whole and synced, and only if
    /// the name is free: for its owner alone, or for everyone under the
    /// process's mask.
    ///
    /// # Errors
    /// As the system says; nothing is left then.
    pub fn create(&self, name: &str, bytes: &[u8], for_everyone: bool) -> io::Result<()> {
        let readers = if for_everyone {
            Readers::Everyone
        } else {
            Readers::Owner
        };
        replace::create(self, &self.path.join(name), bytes, readers)
    }

    /// The name of a file in it.
    fn name<'p>(&self, path: &'p Path) -> io::Result<&'p Path> {
        let name = path.strip_prefix(&self.path).ok();
        name.filter(|name| {
            let mut parts = name.components();
            matches!(parts.next(), Some(Component::Normal(_))) && parts.next().is_none()
        })
        .ok_or_else(|| io::ErrorKind::InvalidInput.into())
    }

    fn opened(&self, path: &Path, flags: OFlags, mode: u32) -> io::Result<OsFile> {
        let flags = flags | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mode = Mode::from_raw_mode(mode);
        let file = openat(&*self.folder, self.name(path)?, flags, mode)?;
        Ok(OsFile(file.into()))
    }

    fn is_free(&self, name: &Path) -> io::Result<bool> {
        match statat(&*self.folder, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(_) => Ok(false),
            Err(Errno::NOENT) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

impl Disk for FolderDisk {
    type File = OsFile;

    fn open_to_read(&self, path: &Path) -> io::Result<Option<OsFile>> {
        match self.opened(path, OFlags::RDONLY, 0) {
            Ok(file) => Ok(Some(file)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn open_to_append(&self, path: &Path) -> io::Result<(OsFile, bool)> {
        match self.create_new(path) {
            Ok(file) => Ok((file, true)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                Ok((self.opened(path, OFlags::RDWR, 0)?, false))
            }
            Err(error) => Err(error),
        }
    }

    fn create_new(&self, path: &Path) -> io::Result<OsFile> {
        self.opened(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o600)
    }

    fn create_new_public(&self, path: &Path) -> io::Result<OsFile> {
        self.opened(path, OFlags::RDWR | OFlags::CREATE | OFlags::EXCL, 0o644)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.name(from)?, self.name(to)?);
        Ok(renameat(&*self.folder, from, &*self.folder, to)?)
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        let (from, to) = (self.name(from)?, self.name(to)?);
        match linkat(&*self.folder, from, &*self.folder, to, AtFlags::empty()) {
            // A file system without second names.
            Err(Errno::PERM | Errno::OPNOTSUPP | Errno::NOSYS) if self.is_free(to)? => {
                Ok(renameat(&*self.folder, from, &*self.folder, to)?)
            }
            linked => Ok(linked?),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        let name = self.name(path)?;
        Ok(unlinkat(&*self.folder, name, AtFlags::empty())?)
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        match statat(&*self.folder, self.name(path)?, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(found) => Ok(rustix::fs::FileType::from_raw_mode(found.st_mode).is_symlink()),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn can_write(&self, path: &Path) -> io::Result<()> {
        self.opened(path, OFlags::RDWR, 0).map(drop)
    }

    fn facts(&self, path: &Path) -> io::Result<Option<Facts>> {
        self.open_to_read(path)?
            .map(|file| file.facts())
            .transpose()
    }

    fn sync_directory_of(&self, path: &Path) -> io::Result<()> {
        self.name(path)?;
        Ok(fsync(&*self.folder)?)
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, os::unix::fs::symlink};

    use super::*;

    #[test]
    fn a_path_that_leads_elsewhere_later_changes_nothing() {
        let around = tempfile::tempdir().unwrap();
        let path = |name: &str| around.path().join(name);
        fs::create_dir(path("out")).unwrap();
        fs::create_dir(path("trap")).unwrap();
        let out = path("out");
        let disk = FolderDisk::open(&out).unwrap();
        assert!(disk.is_empty().unwrap() && disk.stands().unwrap());
        fs::rename(&out, path("moved")).unwrap();
        symlink(path("trap"), &out).unwrap();
        assert!(!disk.stands().unwrap());

        let (mut file, made) = disk.open_to_append(&out.join("bundle")).unwrap();
        file.append(0, b"1").unwrap();
        assert!(made);
        assert!(!disk.open_to_append(&out.join("bundle")).unwrap().1);
        disk.create("receipt", b"2", false).unwrap();
        let taken = disk.create("receipt", b"3", false).unwrap_err();
        assert_eq!(taken.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(disk.read("receipt", 1).unwrap(), b"2");
        let large = disk.read("receipt", 0).unwrap_err();
        assert_eq!(large.kind(), io::ErrorKind::FileTooLarge);
        assert_eq!(fs::read(path("moved/bundle")).unwrap(), b"1");
        assert_eq!(fs::read_dir(path("moved")).unwrap().count(), 2);
        assert_eq!(fs::read_dir(path("trap")).unwrap().count(), 0);
        disk.remove(&out.join("receipt")).unwrap();
        assert!(!disk.is_empty().unwrap());
        assert!(disk.facts(&out.join("receipt")).unwrap().is_none());
    }

    #[test]
    fn a_link_is_neither_opened_nor_written_through() {
        let around = tempfile::tempdir().unwrap();
        let path = |name: &str| around.path().join(name);
        fs::create_dir(path("out")).unwrap();
        symlink(path("out"), path("link")).unwrap();
        for link in ["link", "link/", "link/."] {
            assert!(FolderDisk::open(&path(link)).is_err(), "{link}");
        }
        let disk = FolderDisk::open(&path("out")).unwrap();
        fs::write(path("other"), b"other").unwrap();
        symlink(path("other"), path("out/a")).unwrap();
        let link = path("out/a");
        assert!(disk.is_link(&link).unwrap());
        assert!(disk.open_to_append(&link).is_err() && disk.read("a", 9).is_err());
        assert!(disk.create("a", b"", true).is_err());
        assert_eq!(fs::read(path("other")).unwrap(), b"other");
        for outside in ["out", "other", "out/a/b", "out/../other"] {
            let opened = disk.open_to_read(&path(outside));
            assert!(opened.is_err(), "{outside}");
        }
    }
}
