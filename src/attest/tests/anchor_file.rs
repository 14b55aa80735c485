//! Anchors as files: read, guarding runs, moved and never backwards.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;
mod faulty;

use std::{
    fs,
    io::Cursor,
    ops::ControlFlow,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    time::Duration,
};

use common::{
    anchors::{anchor_of, cut, forged, own, own_key, text_of},
    check, check_with, long_bundle, signing, single_run, stranger,
};
use faulty::FaultyDisk;
use plimsoll_attestation::{
    Class, PublicKey, SigningKey,
    anchor::{Anchor, AnchorCheck, AnchorFault, AnchorFile, AnchorGuard, Kept, Reach, lock_path},
    bundle::{
        AppendFault, Options, VerifyOptions, append, check as check_file,
        disk::{Disk, OsDisk},
        state::verify_from,
    },
};

struct Scene {
    directory: tempfile::TempDir,
    bundle: PathBuf,
    anchor: PathBuf,
    key: SigningKey,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Scene {
            bundle: directory.path().join("runs.jsonl"),
            anchor: directory.path().join("anchor"),
            key: signing(),
            directory,
        }
    }

    fn file<'d, D: Disk>(&self, disk: &'d D) -> AnchorFile<'d, D> {
        AnchorFile::new(disk, &self.anchor, vec![own_key()])
    }

    fn guard(&self) -> AnchorGuard<'static, OsDisk> {
        AnchorGuard::new(self.file(&OsDisk))
    }

    /// A run with an anchor: check, append, move.
    fn run(&self, n: u32) -> Result<Kept, AppendFault> {
        let mut guard = self.guard();
        check_file(
            &OsDisk,
            &self.bundle,
            &self.key,
            Options::default(),
            &mut guard,
        )?;
        let entry = [single_run(n).sign(&self.key)];
        let appended = append(
            &OsDisk,
            &self.bundle,
            &self.key,
            &entry,
            Options::default(),
            &mut guard,
        )
        .map_err(|error| error.fault)?;
        Ok(guard.appended(&appended, &self.key).unwrap())
    }

    fn bytes(&self) -> Vec<u8> {
        fs::read(&self.anchor).unwrap()
    }

    /// What `verify --write-anchor` does.
    fn write(&self, signer: &SigningKey, accepted: Vec<PublicKey>) -> Result<Kept, AnchorFault> {
        let file = AnchorFile::new(&OsDisk, &self.anchor, accepted);
        let mut seen = AnchorCheck::new(file.read()?);
        let bundle = fs::read(&self.bundle).unwrap();
        let report = check_with(&bundle, &own_key(), &mut seen).unwrap();
        seen.met(Some(&report))?;
        file.keep(&seen, &Reach::of(&report).unwrap(), signer)
    }
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn runs_move_the_anchor_and_a_cut_bundle_is_not_run_on() {
    let scene = Scene::new();
    assert_eq!(scene.run(1).unwrap(), Kept::Created);
    let first = fs::read(&scene.bundle).unwrap();
    assert_eq!(scene.run(2).unwrap(), Kept::Moved);
    let anchor = scene.bytes();
    assert_eq!(
        Anchor::open(&anchor, &[own_key()]).unwrap().reach().lines(),
        4
    );
    assert_eq!(mode(&scene.anchor), 0o644);
    let lock = scene.directory.path().join("anchor.lock");
    assert_eq!(fs::metadata(&lock).unwrap().len(), 0);
    let names = fs::read_dir(scene.directory.path()).unwrap().count();
    assert_eq!(names, 3, "bundle, anchor, lock");

    for older in [first, Vec::new()] {
        fs::write(&scene.bundle, &older).unwrap();
        let fault = scene.run(3).unwrap_err();
        assert_eq!((fault.class().word(), fault.reason()), ("anchor", "behind"));
        assert_eq!(fs::read(&scene.bundle).unwrap(), older);
        assert_eq!(scene.bytes(), anchor);
    }
    // A new bundle in the old one's place.
    let other = long_bundle(&scene.key, 30, 0);
    fs::write(&scene.bundle, &other).unwrap();
    let fault = scene.run(3).unwrap_err();
    assert_eq!((fault.class().word(), fault.reason()), ("anchor", "origin"));
    // Refused under the bundle's lock too: the entry goes to a side file.
    let entry = [single_run(3).sign(&scene.key)];
    let error = append(
        &OsDisk,
        &scene.bundle,
        &scene.key,
        &entry,
        Options::default(),
        &mut scene.guard(),
    )
    .unwrap_err();
    assert_eq!(error.fault.reason(), "origin");
    error.kept.unwrap();
    assert_eq!(fs::read(&scene.bundle).unwrap(), other);
    fs::write(&scene.anchor, b"x").unwrap();
    let fault = scene.run(3).unwrap_err();
    assert_eq!((fault.class().word(), fault.reason()), ("anchor", "format"));
    fs::remove_file(&scene.anchor).unwrap();
    fs::create_dir(&scene.anchor).unwrap();
    assert_eq!(scene.run(3).unwrap_err().class().word(), "io");
}

#[test]
fn a_verifier_keeps_an_anchor_under_its_own_key() {
    let scene = Scene::new();
    fs::write(&scene.bundle, cut(4)).unwrap();
    let mine = stranger();
    let accepted = vec![own_key(), mine.public().clone()];
    let write =
        |signer: &SigningKey, accepted: &[PublicKey]| scene.write(signer, accepted.to_vec());
    assert_eq!(write(&mine, &accepted).unwrap(), Kept::Created);
    let first = scene.bytes();
    // Unchanged: not even signed anew by the other key.
    assert_eq!(write(&signing(), &accepted).unwrap(), Kept::Unchanged);
    assert_eq!(scene.bytes(), first);
    // Not accepted: refused and left.
    let fault = write(&mine, &[own_key()]).unwrap_err();
    assert_eq!(
        (fault.class().word(), fault.reason()),
        ("anchor", "signature")
    );
    fs::write(&scene.bundle, own()).unwrap();
    assert_eq!(write(&signing(), &accepted).unwrap(), Kept::Moved);
    assert_eq!(scene.bytes(), anchor_of(&own()).as_bytes());
    // Never backwards.
    fs::write(&scene.bundle, cut(4)).unwrap();
    let fault = write(&mine, &accepted).unwrap_err();
    assert_eq!(fault.reason(), "behind");
    assert_eq!(scene.bytes(), anchor_of(&own()).as_bytes());
    // Never through a link.
    let target = scene.directory.path().join("elsewhere");
    fs::write(&target, &first).unwrap();
    fs::remove_file(&scene.anchor).unwrap();
    std::os::unix::fs::symlink(&target, &scene.anchor).unwrap();
    fs::write(&scene.bundle, own()).unwrap();
    assert!(matches!(write(&mine, &accepted), Err(AnchorFault::Link)));
    assert_eq!(fs::read(&target).unwrap(), first);
    // Nor is its lock, and what is wrong with the lock is told of the lock.
    let lock = lock_path(&scene.anchor);
    fs::remove_file(&scene.anchor).unwrap();
    fs::remove_file(&lock).unwrap();
    std::os::unix::fs::symlink(&target, &lock).unwrap();
    match write(&mine, &accepted) {
        Err(AnchorFault::LockLink(path)) => assert_eq!(path, lock),
        other => panic!("{other:?}"),
    }
    fs::remove_file(&lock).unwrap();
    fs::create_dir(&lock).unwrap();
    match write(&mine, &accepted) {
        Err(AnchorFault::Lock { path, .. }) => assert_eq!(path, lock),
        other => panic!("{other:?}"),
    }
    assert!(!scene.anchor.exists());
}

#[test]
fn an_anchor_moved_meanwhile_is_checked_or_left() {
    let scene = Scene::new();
    let bundle = own();
    fs::write(&scene.bundle, &bundle).unwrap();
    let file = scene.file(&OsDisk);
    let report = check(&bundle, &own_key()).unwrap();
    let here = Reach::of(&report).unwrap();
    let seen = |anchor| {
        let mut seen = AnchorCheck::new(anchor);
        check_with(&bundle, &own_key(), &mut seen).unwrap();
        seen
    };
    // Another writer moved it to a checkpoint this pass saw.
    fs::write(&scene.anchor, anchor_of(&cut(4)).as_bytes()).unwrap();
    assert_eq!(
        file.keep(&seen(None), &here, &scene.key).unwrap(),
        Kept::Moved
    );
    // Or beyond: it knows more, and is left alone.
    let older = check(&cut(4), &own_key()).unwrap();
    let mut before = AnchorCheck::new(None);
    check_with(&cut(4), &own_key(), &mut before).unwrap();
    let older = Reach::of(&older).unwrap();
    assert_eq!(file.keep(&before, &older, &scene.key).unwrap(), Kept::Ahead);
    assert_eq!(scene.bytes(), anchor_of(&bundle).as_bytes());
    // The same anchor as before the pass is no news: the bundle is behind.
    let anchor = file.read().unwrap();
    let fault = file.keep(&seen(anchor), &older, &scene.key).unwrap_err();
    assert_eq!(fault.reason(), "behind");
    // To a line that is no checkpoint, or another digest of one.
    let text = text_of(&anchor_of(&cut(4)));
    let other = forged(&text.replace("\n4\n", "\n3\n"), &scene.key);
    fs::write(&scene.anchor, &other).unwrap();
    let fault = file.keep(&seen(None), &here, &scene.key).unwrap_err();
    assert_eq!(fault.reason(), "differs");
    assert_eq!(scene.bytes(), other);
}

#[test]
fn two_writers_at_once_leave_the_furthest() {
    let scene = Scene::new();
    let start = std::sync::Barrier::new(6);
    std::thread::scope(|threads| {
        for n in 0..6 {
            let (scene, start) = (&scene, &start);
            threads.spawn(move || {
                start.wait();
                for round in 0..3 {
                    scene.run(n * 10 + round).unwrap();
                }
            });
        }
    });
    let report = check(&fs::read(&scene.bundle).unwrap(), &own_key()).unwrap();
    assert_eq!(report.records, 18);
    let anchor = Anchor::open(&scene.bytes(), &[own_key()]).unwrap();
    assert_eq!(anchor.reach(), &Reach::of(&report).unwrap());
}

#[test]
fn a_failed_write_leaves_the_old_anchor() {
    let scene = Scene::new();
    scene.run(1).unwrap();
    let old = scene.bytes();
    let entry = [single_run(2).sign(&scene.key)];
    append(
        &OsDisk,
        &scene.bundle,
        &scene.key,
        &entry,
        Options::default(),
        &mut (),
    )
    .unwrap();
    let bundle = fs::read(&scene.bundle).unwrap();
    type Break = fn(&FaultyDisk);
    let breaks: [Break; 2] = [
        |disk| disk.0.no_side_file.set(true),
        |disk| disk.0.no_rename.set(true),
    ];
    for fail in breaks {
        let disk = FaultyDisk::new();
        fail(&disk);
        let file = scene.file(&disk);
        let mut seen = AnchorCheck::new(file.read().unwrap());
        let report = check_with(&bundle, &own_key(), &mut seen).unwrap();
        let fault = file
            .keep(&seen, &Reach::of(&report).unwrap(), &scene.key)
            .unwrap_err();
        assert!(matches!(fault, AnchorFault::Write(_)));
        assert_eq!(scene.bytes(), old);
        assert_eq!(fs::read_dir(scene.directory.path()).unwrap().count(), 3);
    }
    // A lock that is held is waited for, and given up.
    let lock = fs::File::open(scene.directory.path().join("anchor.lock")).unwrap();
    lock.lock().unwrap();
    let disk = FaultyDisk::new();
    let file = scene.file(&disk);
    let report = check(&bundle, &own_key()).unwrap();
    let fault = file
        .keep(
            &AnchorCheck::new(None),
            &Reach::of(&report).unwrap(),
            &scene.key,
        )
        .unwrap_err();
    assert!(matches!(fault, AnchorFault::Locked));
    assert_eq!(disk.0.waits.get(), 6000);
    // Who is asked to end ends the wait; the waiter hears how long it is.
    let disk = FaultyDisk::new();
    let heard = std::cell::RefCell::new(Vec::new());
    let ask = |waited: Duration| {
        heard.borrow_mut().push(waited);
        if waited >= Duration::from_millis(60) {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let fault = scene
        .file(&disk)
        .while_locked(&ask)
        .keep(
            &AnchorCheck::new(None),
            &Reach::of(&report).unwrap(),
            &scene.key,
        )
        .unwrap_err();
    assert!(matches!(fault, AnchorFault::GivenUp));
    assert_eq!((fault.class(), fault.reason()), (Class::Io, "given_up"));
    assert_eq!(*heard.borrow(), [0, 20, 40, 60].map(Duration::from_millis));
    assert_eq!(scene.bytes(), old);
}

#[test]
fn an_anchor_is_met_by_lines_that_a_state_stands_for() {
    let scene = Scene::new();
    let keys = [own_key()];
    let (bundle, options) = (own(), VerifyOptions::default());
    let first = verify_from(Cursor::new(&bundle), &keys, None, None, options, &mut ());
    let (report, state) = first.verdict.unwrap();
    let resumed = |anchor: Anchor| {
        let mut seen = AnchorCheck::new(Some(anchor));
        let (state, show) = (Some(state.clone()), seen.line_wanted());
        let done = verify_from(Cursor::new(&bundle), &keys, state, show, options, &mut seen);
        assert_eq!(done.earlier, 11);
        (seen.met(Some(&done.verdict.unwrap().0)), seen)
    };
    resumed(anchor_of(&bundle)).0.unwrap();
    let (met, seen) = resumed(anchor_of(&cut(4)));
    met.unwrap();
    let text = text_of(&anchor_of(&cut(4)));
    let call = Anchor::open(&forged(&text.replace("\n4\n", "\n3\n"), &scene.key), &keys).unwrap();
    assert_eq!(resumed(call).0.unwrap_err().reason().word(), "differs");
    // It moves on from a line that was shown; one that was moved meanwhile to
    // a line that was not cannot be judged by this pass.
    let here = Reach::of(&report).unwrap();
    let file = scene.file(&OsDisk);
    fs::write(&scene.anchor, anchor_of(&cut(4)).as_bytes()).unwrap();
    let mut last = AnchorCheck::new(None);
    verify_from(
        Cursor::new(&bundle),
        &keys,
        Some(state.clone()),
        Some(11),
        options,
        &mut last,
    );
    let fault = file.keep(&last, &here, &scene.key).unwrap_err();
    assert!(matches!(fault, AnchorFault::Moved));
    assert_eq!(file.keep(&seen, &here, &scene.key).unwrap(), Kept::Moved);
}
