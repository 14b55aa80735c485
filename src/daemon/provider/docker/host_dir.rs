//! The process's private directory on its host: the resolver file every
//! container gets, and a socket whose silence tells that the process died.

use std::{
    fs,
    io::{self, Read, Write},
    os::{
        fd::OwnedFd,
        unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt},
    },
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
};

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use tempfile::TempDir;
use tokio::{net::UnixListener, task::JoinHandle};

/// How the directory's name begins.
pub(super) const PREFIX: &str = "plimsoll-docker-config-";
/// The socket that answers for as long as its owner lives.
pub(super) const ALIVE: &str = "alive.sock";
/// The resolver file: one loopback nameserver, no search domain, no comment.
/// Without it the engine copies the host's own into every container, even into
/// one that has no network.
pub(super) const RESOLVER: &[u8] = b"nameserver 127.0.0.1\n";
/// What a preflight says once the file is not what was written.
pub(super) const TAMPERED: &str =
    "the docker provider's resolv.conf was changed or removed; restart the daemon";

/// The directory, its lock and its socket, for the process's life.
#[derive(Debug)]
pub(super) struct HostDir {
    directory: TempDir,
    _lock: OwnedFd,
    alive: JoinHandle<()>,
    tampered: AtomicBool,
}

impl HostDir {
    /// Makes a fresh directory under `parent`. A fixed name is forbidden:
    /// another user could have made it first.
    pub(super) fn make(parent: &Path) -> io::Result<HostDir> {
        let directory = tempfile::Builder::new()
            .prefix(PREFIX)
            .rand_bytes(16)
            .permissions(fs::Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        // systemd-tmpfiles leaves a locked directory alone.
        let lock = open(
            directory.path(),
            OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive)?;
        let mut resolver = fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o444)
            .open(directory.path().join("resolv.conf"))?;
        resolver.write_all(RESOLVER)?;
        // The mode above is cut by the process's mask.
        resolver.set_permissions(fs::Permissions::from_mode(0o444))?;
        resolver.sync_all()?;
        // Under its own name only once it listens: a socket of that name that
        // refuses is then always a dead owner's.
        let unready = directory.path().join("alive.new");
        let listener = UnixListener::bind(&unready)?;
        fs::rename(&unready, directory.path().join(ALIVE))?;
        let alive = tokio::spawn(async move {
            loop {
                if listener.accept().await.is_err() {
                    // Out of descriptors: answering is the kernel's for now.
                    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                }
            }
        });
        Ok(HostDir {
            directory,
            _lock: lock,
            alive,
            tampered: AtomicBool::new(false),
        })
    }

    pub(super) fn path(&self) -> &Path {
        self.directory.path()
    }

    pub(super) fn resolver(&self) -> PathBuf {
        self.path().join("resolv.conf")
    }

    /// The socket containers name as their owner.
    pub(super) fn alive(&self) -> PathBuf {
        self.path().join(ALIVE)
    }

    /// Whether the resolver file is as it was written. Once it was not, never
    /// again: a silent repair would hide that somebody writes here.
    pub(super) fn is_intact(&self) -> bool {
        if !self.tampered.load(Ordering::Relaxed) && !self.reads_back().unwrap_or(false) {
            self.tampered.store(true, Ordering::Relaxed);
        }
        !self.tampered.load(Ordering::Relaxed)
    }

    fn reads_back(&self) -> io::Result<bool> {
        let file = open(
            self.resolver(),
            OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC,
            Mode::empty(),
        )?;
        let file = fs::File::from(file);
        let metadata = file.metadata()?;
        if !metadata.is_file() || metadata.uid() != rustix::process::geteuid().as_raw() {
            return Ok(false);
        }
        let mut bytes = Vec::new();
        file.take(RESOLVER.len() as u64 + 1)
            .read_to_end(&mut bytes)?;
        Ok(bytes == RESOLVER)
    }
}

impl Drop for HostDir {
    fn drop(&mut self) {
        self.alive.abort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn made() -> (TempDir, HostDir) {
        let parent = tempfile::tempdir().unwrap();
        let host = HostDir::make(parent.path()).unwrap();
        (parent, host)
    }

    #[tokio::test]
    async fn a_private_locked_directory_with_a_living_socket() {
        let (_parent, host) = made();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(host.path()), 0o700);
        assert_eq!(mode(&host.resolver()), 0o444);
        assert!(host.is_intact());
        let again = open(host.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        assert!(flock(&again, FlockOperation::NonBlockingLockShared).is_err());
        tokio::net::UnixStream::connect(host.alive()).await.unwrap();
        let path = host.path().to_owned();
        drop(host);
        assert!(!path.exists());
    }

    #[tokio::test]
    async fn a_resolver_file_that_was_touched_is_never_trusted_again() {
        type Tamper = fn(&Path);
        let tampers: [Tamper; 4] = [
            |path| fs::remove_file(path).unwrap(),
            |path| {
                fs::remove_file(path).unwrap();
                fs::write(path, b"nameserver 127.0.0.1\nsearch corp\n").unwrap();
            },
            |path| {
                fs::remove_file(path).unwrap();
                symlink("/etc/hostname", path).unwrap();
            },
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
        ];
        for tamper in tampers {
            let (_parent, host) = made();
            tamper(&host.resolver());
            assert!(!host.is_intact());
            let _ = fs::remove_file(host.resolver());
            let _ = fs::remove_dir(host.resolver());
            fs::write(host.resolver(), RESOLVER).unwrap();
            assert!(!host.is_intact(), "repaired");
        }
    }
}
