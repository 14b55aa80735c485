//! Appending: faults at every step, concurrent writers, permissions.
//!
//! Writers here are threads with file descriptors of their own, which the lock
//! keeps apart as it does processes. Eight processes on one file are a matter
//! for the command's own tests.
#![cfg(unix)]
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod faulty;
mod scene;

use std::{
    fs::{self, File},
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

use common::{check, lines, single_run, stranger, vector};
use faulty::FaultyDisk;
use plimsoll_attestation::{
    Class,
    bundle::{
        AppendFault, BundleWriter, Cut, Guard, Options, Report, SignedEntry, Visitor, append,
        check as check_file, disk::OsDisk, expect_count,
    },
};
use scene::{Scene, mode};

/// Each append signs and verifies, which is slow without optimisation: a debug
/// build takes every 61st offset, and the first and last ones.
const OFFSET_STEP: usize = if cfg!(debug_assertions) { 61 } else { 1 };

#[test]
fn a_new_bundle_and_the_next_run() {
    let scene = Scene::new(0);
    let first = scene.append(&OsDisk).unwrap();
    assert_eq!(
        (first.lines.as_slice(), first.checkpoint, first.created),
        ([1].as_slice(), 2, true)
    );
    let second = scene.append(&OsDisk).unwrap();
    assert_eq!(
        (second.lines.as_slice(), second.checkpoint, second.created),
        ([3].as_slice(), 4, false)
    );
    let report = scene.report();
    assert_eq!(
        (report.records, report.checkpoints.as_slice()),
        (2, [2, 4].as_slice())
    );
    assert_eq!(report.first_line, Some(first.first_line));
    assert_eq!(report.first_line, Some(second.first_line));
    assert_eq!(report.last_line, Some(second.checkpoint_digest));
    assert_eq!(mode(&scene.path), 0o600);
    assert!(scene.side_files().is_empty());
    // An empty file is a new bundle too.
    fs::write(&scene.path, b"").unwrap();
    assert!(!scene.append(&OsDisk).unwrap().created);
    assert_eq!(scene.report().records, 1);
}

fn offsets(length: usize) -> impl Iterator<Item = usize> {
    (0..length).filter(move |n| n % OFFSET_STEP == 0 || *n == length - 1 || *n == 100)
}

#[test]
fn a_full_disk_at_every_offset_leaves_the_bundle_as_it_was() {
    for calls in [0, 1] {
        let scene = Scene::new(calls);
        let before = scene.bytes();
        scene.append(&OsDisk).unwrap();
        let length = scene.bytes().len() - before.len();
        assert!(length > 1000);
        // From the middle offset on, the entry is written and the checkpoint is not.
        for budget in offsets(length) {
            fs::write(&scene.path, &before).unwrap();
            let disk = FaultyDisk::new();
            disk.0.budget.set(Some(budget));
            let error = scene.append(&disk).unwrap_err();
            assert!(matches!(error.cut, Cut::Done), "{budget}");
            assert_eq!(error.fault.class(), Class::Io);
            assert!(scene.bytes() == before, "{budget}");
            scene.kept(&error);
        }
        scene.append(&OsDisk).unwrap();
        assert_eq!(scene.report().records, u64::from(calls) + 1);
    }
}

#[test]
fn a_kill_at_every_offset_leaves_a_file_that_is_whole_or_refused() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    scene.append(&OsDisk).unwrap();
    let after = scene.bytes();
    for budget in offsets(after.len() - before.len()) {
        fs::write(&scene.path, &before).unwrap();
        let disk = FaultyDisk::new();
        disk.0.dies.set(true);
        disk.0.budget.set(Some(budget));
        let error = scene.append(&disk).unwrap_err();
        assert!(matches!(error.cut, Cut::Failed(_)));
        assert!(error.kept.is_err());
        assert!(
            error
                .to_string()
                .contains("must be verified before the next run")
        );
        let left = scene.bytes();
        assert!(after.starts_with(&left) && left.len() == before.len() + budget);
        match check(&left, scene.key.public()) {
            Ok(report) => assert!(report.records == 1 && left == before),
            Err(fault) => {
                assert_eq!(fault.last_checkpoint(), Some(2));
                let again = scene.append(&OsDisk).unwrap_err();
                assert_eq!(again.fault.class(), Class::Bundle);
                assert!(scene.bytes() == left);
                scene.kept(&again);
            }
        }
    }
}

#[test]
fn failed_syncs_are_failed_appends() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    let disk = FaultyDisk::new();
    // The sync of the append fails, and so does the sync of the cut.
    disk.0.syncs.set(Some(0));
    let error = scene.append(&disk).unwrap_err();
    assert!(matches!(error.fault, AppendFault::Sync(_)));
    assert!(matches!(error.cut, Cut::Failed(_)));
    assert!(scene.bytes() == before);
    scene.kept(&error);

    let new = Scene::new(0);
    let disk = FaultyDisk::new();
    disk.0.no_directory_sync.set(true);
    let error = new.append(&disk).unwrap_err();
    assert!(matches!(
        (&error.fault, &error.cut),
        (AppendFault::Sync(_), Cut::Done)
    ));
    assert!(new.bytes().is_empty());
    new.kept(&error);
    new.append(&OsDisk).unwrap();
}

#[test]
fn a_cut_that_fails_and_an_entry_that_cannot_be_kept_are_both_said() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    let disk = FaultyDisk::new();
    disk.0.budget.set(Some(100));
    disk.0.no_truncate.set(true);
    disk.0.no_side_file.set(true);
    let error = scene.append(&disk).unwrap_err();
    assert!(matches!(error.cut, Cut::Failed(_)) && error.kept.is_err());
    assert_eq!(scene.bytes().len(), before.len() + 100);
    let text = error.to_string();
    assert!(text.contains("must be verified") && text.contains("could not be kept either"));
}

#[test]
fn permissions_are_checked_before_and_at_the_append() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    for bits in [0o640, 0o604, 0o610, 0o601, 0o666] {
        fs::set_permissions(&scene.path, fs::Permissions::from_mode(bits)).unwrap();
        let refused = |fault: &AppendFault| {
            assert!(matches!(fault, AppendFault::Permissions { mode } if *mode == bits));
            assert_eq!(
                (fault.class(), fault.reason()),
                (Class::Bundle, "permissions")
            );
        };
        refused(
            &check_file(
                &OsDisk,
                &scene.path,
                &scene.key,
                Options::default(),
                &mut (),
            )
            .unwrap_err(),
        );
        let error = scene.append(&OsDisk).unwrap_err();
        refused(&error.fault);
        assert!(matches!(error.cut, Cut::NotNeeded));
        scene.kept(&error);
        assert!(scene.bytes() == before);
    }
    fs::set_permissions(&scene.path, fs::Permissions::from_mode(0o640)).unwrap();
    let shared = Options {
        shared: true,
        ..Options::default()
    };
    check_file(&OsDisk, &scene.path, &scene.key, shared, &mut ())
        .unwrap()
        .unwrap();
    scene.append_with(&OsDisk, &scene.entry, shared).unwrap();
    assert_eq!(mode(&scene.path), 0o640);
    assert_eq!(scene.report().records, 2);
}

#[test]
fn what_cannot_be_continued_is_refused_and_left_alone() {
    let own = vector("own-mixed.jsonl");
    let open_session = {
        let cases = common::json("bundle-cases.json");
        let all = cases["cases"].as_array().unwrap();
        let case = all
            .iter()
            .find(|case| case["name"] == "a session without its close")
            .unwrap();
        case["bundle"].as_str().unwrap().as_bytes().to_vec()
    };
    let foreign = {
        let key = stranger();
        let mut writer = BundleWriter::new(Vec::new(), &key);
        writer.entry(&single_run(1).sign(&key)).unwrap();
        writer.checkpoint().unwrap();
        writer.into_inner()
    };
    let without_checkpoint: usize = lines(&own)[..10].iter().map(|line| line.len() + 1).sum();
    for (bundle, reason) in [
        (foreign, "signature"),
        (vector("sessions-linked.jsonl"), "signature"),
        (vector("sessions-v1.jsonl"), "link"),
        (own[..own.len() - 1].to_vec(), "line"),
        (own[..without_checkpoint].to_vec(), "incomplete"),
        (open_session, "chain"),
        (b"\n".to_vec(), "line"),
    ] {
        let scene = Scene::new(0);
        fs::write(&scene.path, &bundle).unwrap();
        fs::set_permissions(&scene.path, fs::Permissions::from_mode(0o600)).unwrap();
        let fault = check_file(
            &OsDisk,
            &scene.path,
            &scene.key,
            Options::default(),
            &mut (),
        )
        .unwrap_err();
        assert_eq!((fault.class(), fault.reason()), (Class::Bundle, reason));
        assert!(scene.side_files().is_empty());
        let error = scene.append(&OsDisk).unwrap_err();
        assert_eq!(error.fault.reason(), reason);
        assert!(scene.bytes() == bundle, "{reason}");
        scene.kept(&error);
    }
    let scene = Scene::new(0);
    fs::write(&scene.path, &own).unwrap();
    fs::set_permissions(&scene.path, fs::Permissions::from_mode(0o600)).unwrap();
    assert_eq!(scene.append(&OsDisk).unwrap().lines, [12]);
}

#[test]
fn only_regular_files_are_bundles() {
    let scene = Scene::new(0);
    let fifo = scene.directory.path().join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    // Neither call waits for a peer of the FIFO.
    let check_at = |path: &Path| check_file(&OsDisk, path, &scene.key, Options::default(), &mut ());
    assert!(matches!(check_at(&fifo), Err(AppendFault::NotRegular)));
    let entries = std::slice::from_ref(&scene.entry);
    let error = append(
        &OsDisk,
        &fifo,
        &scene.key,
        entries,
        Options::default(),
        &mut (),
    )
    .unwrap_err();
    assert!(matches!(error.fault, AppendFault::NotRegular));
    assert!(matches!(
        check_at(scene.directory.path()),
        Err(AppendFault::NotRegular)
    ));
    assert!(check_at(&scene.path).unwrap().is_none());
    assert!(!scene.path.exists(), "a check makes no file");
    let nowhere = scene.directory.path().join("none/runs.jsonl");
    let error = append(
        &OsDisk,
        &nowhere,
        &scene.key,
        entries,
        Options::default(),
        &mut (),
    )
    .unwrap_err();
    assert!(matches!(error.fault, AppendFault::Open(_)) && error.kept.is_err());
}

#[test]
fn eight_writers_at_once_all_succeed() {
    let scene = Scene::new(0);
    let entries: Vec<SignedEntry> = (0..8).map(|n| single_run(n).sign(&scene.key)).collect();
    let start = std::sync::Barrier::new(entries.len());
    std::thread::scope(|threads| {
        for entry in &entries {
            let (path, key, start) = (&scene.path, &scene.key, &start);
            threads.spawn(move || {
                start.wait();
                let entries = std::slice::from_ref(entry);
                append(&OsDisk, path, key, entries, Options::default(), &mut ()).unwrap()
            });
        }
    });
    let report = scene.report();
    expect_count(&report, 8).unwrap();
    assert_eq!(report.lines, 16);
    assert_eq!(mode(&scene.path), 0o600);
    assert!(scene.side_files().is_empty());
}

#[test]
fn a_lock_held_too_long_is_given_up() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    let holder = File::open(&scene.path).unwrap();
    holder.lock().unwrap();
    let disk = FaultyDisk::new();
    let error = scene.append(&disk).unwrap_err();
    assert!(matches!(error.fault, AppendFault::Locked));
    // Every 20 milliseconds for two minutes.
    assert_eq!(disk.0.waits.get(), 6000);
    assert!(scene.bytes() == before);
    scene.kept(&error);
    drop(holder);
    scene.append(&disk).unwrap();
}

#[test]
fn a_bundle_replaced_while_its_lock_is_waited_for_is_opened_again() {
    let scene = Scene::new(1);
    let next = Scene::new(2);
    let holder = File::open(&scene.path).unwrap();
    holder.lock().unwrap();
    let disk = FaultyDisk::new();
    let (from, to) = (next.path.clone(), scene.path.clone());
    *disk.0.at_first_wait.borrow_mut() = Some(Box::new(move || {
        fs::rename(from, to).unwrap();
        drop(holder);
    }));
    let appended = scene.append(&disk).unwrap();
    assert_eq!(appended.lines, [5]);
    assert_eq!(scene.report().records, 3);
}

#[test]
fn a_writer_that_ignores_the_lock_is_noticed() {
    struct Meddling(PathBuf);
    impl Visitor for Meddling {}
    impl Guard for Meddling {
        fn allow(
            &mut self,
            _: Option<&Report>,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            use std::io::Write as _;
            let mut file = fs::OpenOptions::new().append(true).open(&self.0)?;
            Ok(file.write_all(b"x")?)
        }
    }
    let scene = Scene::new(1);
    let entries = std::slice::from_ref(&scene.entry);
    let mut guard = Meddling(scene.path.clone());
    let error = append(
        &OsDisk,
        &scene.path,
        &scene.key,
        entries,
        Options::default(),
        &mut guard,
    )
    .unwrap_err();
    assert!(matches!(
        (&error.fault, &error.cut),
        (AppendFault::Replaced, Cut::NotNeeded)
    ));
    scene.kept(&error);
}

#[test]
fn a_guard_refuses_before_anything_is_written() {
    struct NeverAgain(u64);
    impl Visitor for NeverAgain {
        fn call(&mut self, _: &plimsoll_attestation::bundle::Call<'_>) {
            self.0 += 1;
        }
    }
    impl Guard for NeverAgain {
        fn allow(
            &mut self,
            whole: Option<&Report>,
        ) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
            assert_eq!(whole.map_or(0, |report| report.records), self.0);
            Err("behind".into())
        }
    }
    for calls in [0, 2] {
        let scene = Scene::new(calls);
        let before = scene.bytes();
        let fault = check_file(
            &OsDisk,
            &scene.path,
            &scene.key,
            Options::default(),
            &mut NeverAgain(0),
        )
        .unwrap_err();
        assert_eq!((fault.class(), fault.reason()), (Class::Bundle, "guard"));
        let entries = std::slice::from_ref(&scene.entry);
        let error = append(
            &OsDisk,
            &scene.path,
            &scene.key,
            entries,
            Options::default(),
            &mut NeverAgain(0),
        )
        .unwrap_err();
        assert!(matches!(error.cut, Cut::NotNeeded));
        assert!(scene.bytes() == before);
        scene.kept(&error);
    }
}
