//! The file on disk: links, modes, locks, other writers, a full disk.
#![allow(clippy::unwrap_used)]
#![cfg(unix)]

use std::{
    fs,
    os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
};

use plimsoll_callers::{
    BeginError, Caller, CallerId, Edit, Fingerprint, Links, LoadError, ReadError, Registry,
    SaveError, Scope, lock_path, read,
};
use tempfile::TempDir;

const GOOD: &str = include_str!("../../../testdata/clients/good.json");

struct Place {
    folder: TempDir,
}

impl Place {
    fn new() -> Place {
        Place {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn good(&self) -> PathBuf {
        let path = self.path("clients.json");
        fs::write(&path, GOOD).unwrap();
        path
    }

    /// Everything in the folder, so that nothing is left behind unseen.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

fn id(text: &str) -> CallerId {
    CallerId::parse(text).unwrap()
}

fn caller(name: &str) -> Caller {
    Caller {
        id: id(name),
        fingerprint: Fingerprint::of(name.as_bytes()),
        scopes: vec![Scope::run()],
        paid_seconds_per_day: 0,
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn a_new_registry_is_its_owners_alone() {
    let place = Place::new();
    let path = place.path("clients.json");
    let mut edit = Edit::begin(&path, true).unwrap();
    assert_eq!(mode(&lock_path(&path)), 0o700);
    edit.registry.add(caller("a")).unwrap();
    edit.save().unwrap();
    assert_eq!(mode(&path), 0o600);
    assert_eq!(place.names(), ["clients.json"]);
    let loaded = Registry::load_for_daemon(&path).unwrap();
    assert_eq!(loaded.callers().len(), 1);
}

#[test]
fn an_edit_keeps_mode_and_owner() {
    let place = Place::new();
    let path = place.good();
    for bits in [0o640, 0o600, 0o444, 0o4755] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let owner = fs::metadata(&path).unwrap().uid();
        let mut edit = Edit::begin(&path, false).unwrap();
        edit.registry.limit(&id("gateway"), bits.into()).unwrap();
        edit.save().unwrap();
        let now = fs::metadata(&path).unwrap().uid();
        assert_eq!((mode(&path), now), (bits, owner));
    }
    assert_eq!(place.names(), ["clients.json"]);
}

#[test]
fn dropping_an_edit_changes_nothing() {
    let place = Place::new();
    let path = place.good();
    let mut edit = Edit::begin(&path, false).unwrap();
    edit.registry.revoke(&id("gateway")).unwrap();
    drop(edit);
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
    let error = Edit::begin(&place.path("absent.json"), false).unwrap_err();
    let absent = matches!(error, BeginError::Read(ReadError::Io(_)));
    assert!(absent, "{error:?}");
    assert_eq!(place.names(), ["clients.json"]);
}

#[test]
fn links_are_the_daemons_to_follow() {
    let place = Place::new();
    let path = place.good();
    let link = place.path("link.json");
    symlink(&path, &link).unwrap();
    let error = Edit::begin(&link, true).unwrap_err();
    let refused = matches!(error, BeginError::Read(ReadError::Link));
    assert!(refused, "{error:?}");
    assert!(Registry::load_for_daemon(&link).is_ok());
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
    // A link into nowhere is not a place for a new registry either.
    let dangling = place.path("dangling.json");
    symlink(place.path("nowhere"), &dangling).unwrap();
    assert!(Edit::begin(&dangling, true).is_err());
    assert_eq!(
        place.names(),
        ["clients.json", "dangling.json", "link.json"]
    );
}

#[test]
fn what_is_no_file_is_never_waited_for() {
    let place = Place::new();
    let fifo = place.path("fifo");
    let made = Command::new("mkfifo").arg(&fifo).status().unwrap();
    assert!(made.success());
    let socket = place.path("socket");
    let _listening = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    for path in [
        &*fifo,
        &*socket,
        place.folder.path(),
        Path::new("/dev/zero"),
    ] {
        for links in [Links::Follow, Links::Refuse] {
            let error = read(path, links).unwrap_err();
            let refused = matches!(error, ReadError::NotRegular);
            assert!(refused, "{path:?}: {error:?}");
        }
    }
    let loaded = Registry::load_for_daemon(&fifo);
    assert!(matches!(
        loaded,
        Err(LoadError::Read(ReadError::NotRegular))
    ));
}

#[test]
fn a_file_larger_than_any_registry_is_not_read() {
    let place = Place::new();
    let path = place.path("sparse.json");
    fs::File::create(&path).unwrap().set_len(5 << 30).unwrap();
    assert!(matches!(
        read(&path, Links::Follow),
        Err(ReadError::TooLarge)
    ));
}

#[test]
fn a_registry_that_grows_too_large_is_not_written() {
    let place = Place::new();
    let path = place.good();
    let mut edit = Edit::begin(&path, false).unwrap();
    let long = "x".repeat(9 << 20);
    edit.registry.add(caller(&long)).unwrap();
    assert!(matches!(edit.save(), Err(SaveError::TooLarge)));
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
    assert_eq!(place.names(), ["clients.json"]);
}

#[test]
fn one_edit_at_a_time() {
    let place = Place::new();
    let path = place.good();
    let first = Edit::begin(&path, false).unwrap();
    let second = Edit::begin(&path, false);
    assert!(matches!(second, Err(BeginError::Locked)));
    // A refused edit leaves the lock of the other.
    assert!(lock_path(&path).is_dir());
    drop(first);
    assert!(Edit::begin(&path, false).is_ok());
    // Whatever has the lock's name is a lock.
    fs::write(lock_path(&path), "").unwrap();
    let blocked = Edit::begin(&path, false);
    assert!(matches!(blocked, Err(BeginError::Locked)));
}

/// Begins an edit, changes the file behind its back and says whether the edit
/// was refused with nothing of its own left.
fn is_refused_after(path: &Path, change: impl Fn()) -> bool {
    fs::write(path, GOOD).unwrap();
    let mut edit = Edit::begin(path, false).unwrap();
    edit.registry.revoke(&id("gateway")).unwrap();
    change();
    let refused = matches!(edit.save(), Err(SaveError::Changed | SaveError::Before(_)));
    refused && !lock_path(path).exists()
}

#[test]
fn a_file_changed_by_another_program_is_not_replaced() {
    const OTHER: &str = "{\"clients\":[]}";
    let place = Place::new();
    let path = place.good();
    let (target, other) = (place.path("target"), place.path("other"));
    assert!(is_refused_after(&path, || fs::write(&path, OTHER).unwrap()));
    assert_eq!(fs::read_to_string(&path).unwrap(), OTHER);
    assert!(is_refused_after(&path, || {
        fs::write(&other, GOOD).unwrap();
        fs::rename(&other, &path).unwrap();
    }));
    assert!(is_refused_after(&path, || {
        fs::rename(&path, &target).unwrap();
        symlink(&target, &path).unwrap();
    }));
    assert!(fs::symlink_metadata(&path).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&target).unwrap(), GOOD);
    fs::remove_file(&path).unwrap();
    assert!(is_refused_after(&path, || fs::remove_file(&path).unwrap()));
    assert!(!path.exists());
    // A file that appears where there was none is kept.
    let mut edit = Edit::begin(&path, true).unwrap();
    edit.registry.add(caller("a")).unwrap();
    fs::write(&path, GOOD).unwrap();
    assert!(matches!(edit.save(), Err(SaveError::Changed)));
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
    assert_eq!(place.names(), ["clients.json", "target"]);
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    // A write past the size limit fails as on a full disk. The child is this
    // test again, below the limit.
    if let Some(path) = std::env::var_os("CALLERS_FULL_DISK") {
        let mut edit = Edit::begin(Path::new(&path), false).unwrap();
        edit.registry.add(caller(&"x".repeat(100_000))).unwrap();
        assert!(matches!(edit.save(), Err(SaveError::Before(_))));
        return;
    }
    let place = Place::new();
    let path = place.good();
    let child = Command::new("bash")
        .args(["-c", "ulimit -f 8; trap '' XFSZ; exec \"$@\"", "bash"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_full_disk_leaves_the_old_file"])
        .env("CALLERS_FULL_DISK", &path)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout).into_owned();
    assert!(
        child.status.success() && text.contains("1 passed"),
        "{text}"
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), GOOD);
    assert_eq!(place.names(), ["clients.json"]);
}

#[test]
fn who_else_can_write() {
    let place = Place::new();
    let path = place.good();
    for (bits, others) in [(0o600, false), (0o644, false), (0o660, true), (0o602, true)] {
        fs::set_permissions(&path, fs::Permissions::from_mode(bits)).unwrap();
        let source = read(&path, Links::Follow).unwrap();
        assert_eq!(source.others_can_write(), others, "{bits:o}");
    }
}
