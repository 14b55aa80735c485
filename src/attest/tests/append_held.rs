//! Appending to a bundle that is not what it was before the run, whose lock is
//! held, or that cannot be written at all.
#![cfg(unix)]
#![allow(clippy::panic, clippy::unwrap_used)]

mod common;
mod faulty;
mod scene;

use std::{
    cell::Cell,
    fs::{self, File},
    ops::ControlFlow,
    os::unix::fs::symlink,
    time::Duration,
};

use common::{answered, lines, single_run};
use faulty::FaultyDisk;
use plimsoll_attestation::{
    Class, SigningKey,
    bundle::{
        AppendFault, Cut, Entry, Options, Position, SignedEntry, append, check as check_file,
        disk::{Disk, OsDisk},
    },
};
use plimsoll_record::Chain;
use plimsoll_wire::proto::{CellRun, RunRequest, run_request};
use scene::Scene;

/// Where the bundle stands now, as a check before a run finds it.
fn reached(scene: &Scene) -> Options<'static> {
    let report = check_file(
        &OsDisk,
        &scene.path,
        &scene.key,
        Options::default(),
        &mut (),
    );
    Options {
        continues: Some(
            report
                .unwrap()
                .as_ref()
                .map_or_else(Position::default, Position::after),
        ),
        ..Options::default()
    }
}

#[test]
fn lines_that_were_there_must_be_there_still() {
    let scene = Scene::new(2);
    let seen = reached(&scene);
    let whole = scene.bytes();
    let first: usize = lines(&whole)[..2].iter().map(|line| line.len() + 1).sum();

    // Cut back to an earlier checkpoint: whole, and short.
    fs::write(&scene.path, &whole[..first]).unwrap();
    let error = scene.append_with(&OsDisk, &scene.entry, seen).unwrap_err();
    assert!(matches!(
        error.fault,
        AppendFault::Shrunk { had: 4, has: 2 }
    ));
    assert_eq!(
        (error.fault.class(), error.fault.reason()),
        (Class::Bundle, "shrunk")
    );
    assert!(matches!(error.cut, Cut::NotNeeded));
    assert!(scene.bytes() == whole[..first]);
    scene.kept(&error);

    // Cut to nothing, and removed: no new bundle is begun in its place.
    fs::write(&scene.path, b"").unwrap();
    let error = scene.append_with(&OsDisk, &scene.entry, seen).unwrap_err();
    assert!(matches!(
        error.fault,
        AppendFault::Shrunk { had: 4, has: 0 }
    ));
    assert!(scene.bytes().is_empty());
    scene.kept(&error);
    fs::remove_file(&scene.path).unwrap();
    let error = scene.append_with(&OsDisk, &scene.entry, seen).unwrap_err();
    assert!(matches!(
        error.fault,
        AppendFault::Shrunk { had: 4, has: 0 }
    ));
    assert!(!scene.path.exists());
    scene.kept(&error);

    // Another bundle of the same key, as long and longer.
    for calls in [2, 3] {
        let other = Scene::new(0);
        for n in 0..calls {
            let entry = single_run(100 + n).sign(&other.key);
            other
                .append_with(&OsDisk, &entry, Options::default())
                .unwrap();
        }
        fs::copy(&other.path, &scene.path).unwrap();
        let error = scene.append_with(&OsDisk, &scene.entry, seen).unwrap_err();
        assert!(matches!(error.fault, AppendFault::Rewritten { line: 4 }));
        assert_eq!(
            (error.fault.class(), error.fault.reason()),
            (Class::Bundle, "replaced")
        );
        assert!(scene.bytes() == other.bytes());
        scene.kept(&error);
    }

    // Others may have appended meanwhile.
    fs::write(&scene.path, &whole).unwrap();
    scene.append(&OsDisk).unwrap();
    assert_eq!(
        scene
            .append_with(&OsDisk, &scene.entry, seen)
            .unwrap()
            .lines,
        [7]
    );
    let new = Scene::new(0);
    let seen = reached(&new);
    new.append(&OsDisk).unwrap();
    assert_eq!(
        new.append_with(&OsDisk, &new.entry, seen).unwrap().lines,
        [3]
    );
}

#[test]
fn the_wait_for_the_lock_can_be_given_up() {
    let scene = Scene::new(1);
    let before = scene.bytes();
    let holder = File::open(&scene.path).unwrap();
    holder.lock().unwrap();
    let disk = FaultyDisk::new();
    let asked = Cell::new(0);
    let while_locked = |waited: Duration| {
        assert_eq!(waited, Duration::from_millis(20) * asked.get());
        asked.set(asked.get() + 1);
        if asked.get() == 5 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    let options = Options {
        while_locked: Some(&while_locked),
        ..Options::default()
    };
    let error = scene.append_with(&disk, &scene.entry, options).unwrap_err();
    assert!(matches!(error.fault, AppendFault::GivenUp));
    assert_eq!(
        (error.fault.class(), error.fault.reason()),
        (Class::Io, "given_up")
    );
    assert_eq!((asked.get(), disk.0.waits.get()), (5, 4));
    assert!(scene.bytes() == before);
    scene.kept(&error);
    // A lock that is free is taken whatever the callback would say.
    drop(holder);
    let give_up = |_: Duration| ControlFlow::Break(());
    let options = Options {
        while_locked: Some(&give_up),
        ..Options::default()
    };
    scene.append_with(&disk, &scene.entry, options).unwrap();
}

#[test]
fn links_that_lead_nowhere_are_refused_and_others_followed() {
    let scene = Scene::new(1);
    let at = |name: &str| scene.directory.path().join(name);
    symlink("nothing", at("dangling")).unwrap();
    symlink(&scene.path, at("link")).unwrap();
    let check_at =
        |name: &str| check_file(&OsDisk, &at(name), &scene.key, Options::default(), &mut ());
    let fault = check_at("dangling").unwrap_err();
    assert!(matches!(fault, AppendFault::Link));
    assert_eq!((fault.class(), fault.reason()), (Class::Bundle, "link"));
    let entries = std::slice::from_ref(&scene.entry);
    let append_at = |name: &str| {
        append(
            &OsDisk,
            &at(name),
            &scene.key,
            entries,
            Options::default(),
            &mut (),
        )
    };
    let error = append_at("dangling").unwrap_err();
    assert!(matches!(error.fault, AppendFault::Link) && error.kept.is_ok());
    assert!(!at("nothing").exists());
    assert_eq!(check_at("link").unwrap().unwrap().lines, 2);
    assert_eq!(append_at("link").unwrap().lines, [3]);
    assert!(at("link").is_symlink());
    assert_eq!(scene.report().records, 2);
}

/// Not a matter of permission bits alone: a program that runs cannot be
/// written, whoever asks, and its bits say otherwise.
#[test]
fn a_file_that_cannot_be_written_is_found_before_the_run() {
    let running = std::env::current_exe().unwrap();
    let shared = Options {
        shared: true,
        ..Options::default()
    };
    let scene = Scene::new(0);
    let fault = check_file(&OsDisk, &running, &scene.key, shared, &mut ()).unwrap_err();
    let AppendFault::Open(error) = &fault else {
        panic!("{fault:?}")
    };
    assert_eq!(error.kind(), std::io::ErrorKind::ExecutableFileBusy);
    assert_eq!(fault.class(), Class::Io);
}

#[test]
fn a_side_file_is_whole_or_not_there() {
    type Fail = fn(&FaultyDisk);
    let cases: [(&str, Fail); 3] = [
        ("not a byte", |disk| disk.0.side_budget.set(Some(0))),
        ("a part", |disk| disk.0.side_budget.set(Some(100))),
        ("not synced", |disk| disk.0.no_side_sync.set(true)),
    ];
    for (what, fail) in cases {
        let scene = Scene::new(1);
        let before = scene.bytes();
        let disk = FaultyDisk::new();
        disk.0.budget.set(Some(100));
        fail(&disk);
        let error = scene.append(&disk).unwrap_err();
        assert!(error.kept.is_err(), "{what}");
        assert!(scene.side_files().is_empty(), "{what}");
        assert!(scene.bytes() == before, "{what}");
        // Both reasons, in the system's words.
        let text = error.to_string();
        let full = std::io::Error::from(std::io::ErrorKind::StorageFull).to_string();
        assert_eq!(text.matches(&full).count(), 2, "{text}");
        assert!(
            text.starts_with(&format!("the bundle could not be written: {full}")),
            "{text}"
        );
    }
}

/// A name that cannot be synced is no reason to lose what is written.
#[test]
fn a_side_file_is_kept_where_only_its_name_is_not_synced() {
    let scene = Scene::new(1);
    let disk = FaultyDisk::new();
    disk.0.budget.set(Some(100));
    disk.0.no_directory_sync.set(true);
    scene.kept(&scene.append(&disk).unwrap_err());
}

/// The trait's own ways, which other disks may leave as they are.
#[test]
fn what_a_disk_says_of_a_path() {
    let scene = Scene::new(1);
    assert!(OsDisk.can_write(&scene.path).is_ok());
    assert!(!OsDisk.is_link(&scene.path).unwrap());
    let nowhere = scene.directory.path().join("none");
    assert!(!OsDisk.is_link(&nowhere).unwrap());
    assert!(OsDisk.can_write(&nowhere).is_err());
    assert!(!nowhere.exists());
}

/// A request for a session's cell.
fn request(code: &str) -> RunRequest {
    RunRequest {
        protocol: 3,
        payload: Some(run_request::Payload::from(CellRun {
            language: "python".to_owned(),
            code: code.to_owned(),
            ..Default::default()
        })),
        ..Default::default()
    }
}

/// A session of one call with its close.
fn session(key: &SigningKey, code: &str) -> Vec<SignedEntry> {
    let mut chain = Chain::of_session_id("00112233445566778899aabbccddeeff");
    let request = request(code);
    let response = answered(&request, Some(&chain), "x");
    chain.advance(response.record.as_option().unwrap()).unwrap();
    [
        Entry::answered(&request, &response).unwrap(),
        Entry::close(&chain, chain.calls(), chain.last()).unwrap(),
    ]
    .map(|entry| entry.sign(key))
    .to_vec()
}

#[test]
fn a_session_that_another_process_appended_meanwhile_is_refused_under_the_lock() {
    let scene = Scene::new(1);
    // Two processes whose daemon gave both the same session ID: each checked the
    // bundle before its run and found no such session.
    let seen = reached(&scene);
    let put =
        |entries: &[SignedEntry]| append(&OsDisk, &scene.path, &scene.key, entries, seen, &mut ());
    put(&session(&scene.key, "1")).unwrap();
    let before = scene.bytes();
    for entries in [
        session(&scene.key, "1"),
        session(&scene.key, "2"),
        // A call after the close, and a second close alone.
        session(&scene.key, "2")[..1].to_vec(),
        session(&scene.key, "1")[1..].to_vec(),
    ] {
        let error = put(&entries).unwrap_err();
        assert_eq!(
            (error.fault.class(), error.fault.reason()),
            (Class::Bundle, "session_held")
        );
        assert!(matches!(error.cut, Cut::NotNeeded));
        assert_eq!(scene.bytes(), before, "no line was written");
        let kept = fs::read_to_string(error.kept.unwrap()).unwrap();
        assert_eq!(kept.lines().count(), entries.len(), "the evidence stays");
    }
    assert_eq!(scene.report().records, 2);
    // Everything else goes on.
    put(&[single_run(5).sign(&scene.key)]).unwrap();
}
