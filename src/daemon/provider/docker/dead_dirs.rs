//! Private directories that processes left when they died.

use std::{
    fs, io,
    os::unix::{fs::FileTypeExt, net::UnixStream},
    path::Path,
    time::{Duration, SystemTime},
};

use super::host_dir::{ALIVE, PREFIX};

/// How names of such directories begin.
const PREFIXES: [&str; 4] = [
    "crsbx-broker",
    "crsbx-session-broker",
    "crsbx-smoke-sock",
    PREFIX,
];
/// Younger than this a directory may not have its socket yet.
const LEAST_AGE: Duration = Duration::from_secs(60);
/// More entries than any of these directories has.
const MOST_ENTRIES: usize = 64;

/// What a connection says of whoever made a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// It answers.
    Alive,
    /// Nobody listens, or the socket is gone.
    Dead,
    /// It cannot be told, so it is left alone.
    Unknown,
}

/// Asks a socket for its owner. Blocks for at most as long as a full queue of
/// connections takes, which is not at all: a connection is refused or queued.
pub(super) fn owner(socket: &Path) -> Owner {
    let connect = || -> io::Result<()> {
        // Not blocking: a listener whose queue is full lives.
        let address = rustix::net::SocketAddrUnix::new(socket)?;
        let own = rustix::net::socket_with(
            rustix::net::AddressFamily::UNIX,
            rustix::net::SocketType::STREAM,
            rustix::net::SocketFlags::NONBLOCK | rustix::net::SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::net::connect(&own, &address)?;
        drop(UnixStream::from(own));
        Ok(())
    };
    match connect() {
        Ok(()) => Owner::Alive,
        Err(error) => match error.kind() {
            io::ErrorKind::ConnectionRefused | io::ErrorKind::NotFound => Owner::Dead,
            io::ErrorKind::WouldBlock => Owner::Alive,
            _ => Owner::Unknown,
        },
    }
}

/// Removes what dead processes left directly under `parent`. Returns how many
/// directories went. A directory that cannot be judged stays.
pub(super) fn remove(parent: &Path, now: SystemTime) -> usize {
    let Ok(entries) = fs::read_dir(parent) else {
        return 0;
    };
    let mut removed = 0;
    for entry in entries.flatten() {
        let name = entry.file_name();
        let ours = name
            .to_str()
            .is_some_and(|name| PREFIXES.iter().any(|prefix| name.starts_with(prefix)));
        if ours && is_dead(&entry.path(), now).unwrap_or(false) {
            removed += usize::from(fs::remove_dir_all(entry.path()).is_ok());
        }
    }
    removed
}

fn is_dead(path: &Path, now: SystemTime) -> io::Result<bool> {
    let metadata = fs::symlink_metadata(path)?;
    if !metadata.is_dir() {
        return Ok(false);
    }
    let old = now
        .duration_since(metadata.modified()?)
        .is_ok_and(|age| age >= LEAST_AGE);
    let mut silent = false;
    for (count, entry) in fs::read_dir(path)?.enumerate() {
        let entry = entry?;
        if count >= MOST_ENTRIES {
            return Ok(false);
        }
        if !entry.file_type()?.is_socket() {
            continue;
        }
        if owner(&entry.path()) != Owner::Dead {
            return Ok(false);
        }
        // It got this name when it listened, so its silence needs no age.
        silent |= entry.file_name() == ALIVE;
    }
    Ok(old || silent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    fn later() -> SystemTime {
        SystemTime::now() + Duration::from_secs(61)
    }

    #[test]
    fn only_what_is_surely_dead_goes() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str, socket: Option<&str>| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            socket.map(|socket| UnixListener::bind(path.join(socket)).unwrap())
        };
        let alive = make("plimsoll-docker-config-alive", Some(ALIVE));
        drop(make("plimsoll-docker-config-dead", Some(ALIVE)));
        make("crsbx-broker-empty", None);
        drop(make("crsbx-smoke-sock1", Some("host-api.sock")));
        make("unrelated", None);
        fs::write(parent.path().join("crsbx-broker-file"), "").unwrap();
        std::os::unix::fs::symlink("unrelated", parent.path().join("crsbx-broker-link")).unwrap();

        assert_eq!(
            remove(parent.path(), SystemTime::now()),
            1,
            "the young stay"
        );
        assert!(!parent.path().join("plimsoll-docker-config-dead").exists());
        assert_eq!(remove(parent.path(), later()), 2);
        let mut left: Vec<_> = fs::read_dir(parent.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(
            left,
            [
                "crsbx-broker-file",
                "crsbx-broker-link",
                "plimsoll-docker-config-alive",
                "unrelated"
            ]
        );
        drop(alive);
        assert_eq!(remove(parent.path(), SystemTime::now()), 1);
    }

    #[test]
    fn an_owner_is_asked() {
        let parent = tempfile::tempdir().unwrap();
        let path = parent.path().join("s");
        assert_eq!(owner(&path), Owner::Dead, "gone");
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(owner(&path), Owner::Alive);
        drop(listener);
        assert_eq!(owner(&path), Owner::Dead, "refused");
        let long = parent.path().join("x".repeat(200));
        assert_eq!(owner(&long), Owner::Unknown);
    }
}
