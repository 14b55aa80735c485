//! A state saves work and never changes a verdict.
#![allow(clippy::unwrap_used)]

mod common;
mod faulty;

use std::{
    fs,
    io::{Cursor, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
};

use common::{Trace, long_bundle, public, signing, single_run, stranger, vector};
use faulty::FaultyDisk;
use plimsoll_attestation::{
    PublicKey,
    bundle::{
        BundleWriter, Position, Report, VerifyOptions,
        disk::OsDisk,
        state::{Resumption, State, StateKey, StateKeyFault, StateNote, verify_from},
        verify,
    },
};

struct Scene {
    directory: tempfile::TempDir,
    state: PathBuf,
    key: StateKey,
}

impl Scene {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Scene {
            state: directory.path().join("s.json"),
            key: StateKey::load_or_create(&OsDisk, &directory.path().join("state.key")).unwrap(),
            directory,
        }
    }

    /// Verifies a bundle and saves its state.
    fn save(&self, bundle: &[u8], keys: &[PublicKey]) -> Report {
        let done = run(bundle, keys, None, &mut Trace::default());
        let (report, state) = done.verdict.unwrap();
        state.save(&OsDisk, &self.state, &self.key).unwrap();
        report
    }

    fn load(&self) -> Result<State, StateNote> {
        State::load(&OsDisk, &self.state, &self.key)
    }
}

fn run(bundle: &[u8], keys: &[PublicKey], state: Option<State>, trace: &mut Trace) -> Resumption {
    let options = VerifyOptions::default();
    verify_from(Cursor::new(bundle), keys, state, None, options, trace)
}

/// A bundle that verifies under the test key, and the same with more calls.
fn grown() -> (Vec<u8>, Vec<u8>) {
    let bundle = vector("own-mixed.jsonl");
    let key = signing();
    let report = verify(&bundle[..], &[key.public().clone()], &mut ()).unwrap();
    let mut more = bundle.clone();
    let mut writer = BundleWriter::resume(&mut more, &key, Position::after(&report));
    for n in 0..9 {
        writer.entry(&single_run(n).sign(&key)).unwrap();
    }
    writer.checkpoint().unwrap();
    (bundle, more)
}

#[test]
fn only_new_lines_are_checked() {
    let scene = Scene::new();
    let (bundle, more) = grown();
    let keys = [public("own-mixed.pub")];
    scene.save(&bundle, &keys);
    assert_eq!(mode(&scene.state), 0o600);
    let mut full = Trace::default();
    let whole = verify(&more[..], &keys, &mut full).unwrap();
    let state = scene.load().unwrap();
    assert_eq!((state.lines(), state.bytes()), (11, bundle.len() as u64));
    let mut trace = Trace::default();
    let done = run(&more, &keys, Some(state), &mut trace);
    assert_eq!((done.earlier, done.note), (11, None));
    let (report, next) = done.verdict.unwrap();
    assert_eq!(report, whole);
    // Nine calls and ten lines: what follows line 11.
    assert_eq!(trace.0.len(), 19);
    assert!(full.0.ends_with(&trace.0));
    next.save(&OsDisk, &scene.state, &scene.key).unwrap();
    assert_eq!(scene.load().unwrap(), next);
    // Nothing new: nothing is checked.
    let mut trace = Trace::default();
    let done = run(&more, &keys, Some(next.clone()), &mut trace);
    assert_eq!((done.earlier, trace.0.len()), (21, 0));
    assert_eq!(done.verdict.unwrap(), (whole, next));
}

#[test]
fn a_resumed_verdict_is_that_of_a_full_one() {
    let scene = Scene::new();
    let (bundle, more) = grown();
    let keys = [public("own-mixed.pub")];
    scene.save(&bundle, &keys);
    let state = scene.load().unwrap();
    let mut cases = Vec::new();
    for at in (0..more.len()).step_by(97) {
        let mut changed = more.clone();
        changed[at] ^= 1;
        cases.push(changed);
    }
    for end in (0..more.len()).step_by(501) {
        cases.push(more[..end].to_vec());
    }
    // The last line verified earlier, edited where nothing later would show it.
    let mut last = bundle.clone();
    let at = last.len() - 20;
    last[at] = if last[at] == b'A' { b'B' } else { b'A' };
    cases.push(last);
    for changed in cases {
        let done = run(&changed, &keys, Some(state.clone()), &mut Trace::default());
        let full = verify(&changed[..], &keys, &mut ());
        let verdict = done.verdict.map(|(report, _)| report);
        assert_eq!(verdict, full);
        let untouched = changed.starts_with(&bundle);
        assert_eq!(done.earlier, if untouched { 11 } else { 0 });
        assert_eq!(done.note.is_none(), untouched);
        if changed.len() < bundle.len() {
            assert_eq!(done.note, Some(StateNote::Shorter));
        } else if !untouched {
            assert_eq!(done.note, Some(StateNote::Changed));
        }
    }
}

#[test]
fn a_state_is_believed_only_as_it_was_written() {
    let scene = Scene::new();
    let (bundle, _) = grown();
    let keys = [public("own-mixed.pub")];
    assert_eq!(scene.load(), Err(StateNote::Missing));
    scene.save(&bundle, &keys);
    let good = fs::read(&scene.state).unwrap();
    for at in 0..good.len() {
        let mut changed = good.clone();
        changed[at] ^= 1;
        fs::write(&scene.state, &changed).unwrap();
        let note = scene.load().unwrap_err();
        let known = [
            StateNote::Altered,
            StateNote::Foreign,
            StateNote::Malformed,
            StateNote::Version,
        ];
        assert!(known.contains(&note), "{at}: {note:?}");
    }
    for end in 0..good.len() {
        fs::write(&scene.state, &good[..end]).unwrap();
        assert!(scene.load().is_err(), "{end}");
    }
    let text = String::from_utf8(good.clone()).unwrap();
    let with = |text: &str| {
        fs::write(&scene.state, text).unwrap();
        scene.load().unwrap_err()
    };
    assert_eq!(
        with(&text.replace("state/v1", "state/v0")),
        StateNote::Version
    );
    assert_eq!(
        with(&text.replace("\"lines\":11", "\"lines\":12")),
        StateNote::Altered
    );
    assert_eq!(
        with(&text.replace("\"lines\"", " \"lines\"")),
        StateNote::Altered
    );
    assert_eq!(with("{}\n"), StateNote::Malformed);
    assert_eq!(with(""), StateNote::Malformed);
    assert_eq!(with(&format!("{text}\n")), StateNote::Malformed);
    // An upper-case code is another spelling.
    let (head, code) = text.rsplit_once(":\"").unwrap();
    assert_eq!(
        with(&format!("{head}:\"{}", code.to_uppercase())),
        StateNote::Altered
    );
    // Another user's.
    let other = Scene::new();
    other.save(&bundle, &keys);
    fs::copy(&other.state, &scene.state).unwrap();
    assert_eq!(scene.load(), Err(StateNote::Foreign));
    fs::remove_file(&scene.state).unwrap();
    fs::create_dir(&scene.state).unwrap();
    assert!(matches!(
        scene.load(),
        Err(StateNote::Malformed | StateNote::Unreadable(_))
    ));
}

#[test]
fn a_state_under_a_key_not_asked_for_is_not_used() {
    let scene = Scene::new();
    let (bundle, _) = grown();
    scene.save(&bundle, &[public("own-mixed.pub")]);
    let state = scene.load().unwrap();
    let keys = [stranger().public().clone()];
    let done = run(&bundle, &keys, Some(state), &mut Trace::default());
    assert_eq!((done.earlier, done.note), (0, Some(StateNote::OtherKey)));
    assert_eq!(done.verdict.unwrap_err().class().word(), "signature");
}

#[test]
fn a_failed_verification_leaves_no_state_and_a_failed_save_the_old_one() {
    let scene = Scene::new();
    let (bundle, more) = grown();
    let keys = [public("own-mixed.pub")];
    let cut = &bundle[..bundle.len() - 700];
    assert!(
        run(cut, &keys, None, &mut Trace::default())
            .verdict
            .is_err()
    );
    scene.save(&bundle, &keys);
    let old = fs::read(&scene.state).unwrap();
    let (_, next) = run(&more, &keys, None, &mut Trace::default())
        .verdict
        .unwrap();
    let disk = FaultyDisk::new();
    disk.0.no_side_file.set(true);
    next.save(&disk, &scene.state, &scene.key).unwrap_err();
    assert_eq!(fs::read(&scene.state).unwrap(), old);
    let link = scene.directory.path().join("link");
    std::os::unix::fs::symlink(&scene.state, &link).unwrap();
    next.save(&OsDisk, &link, &scene.key).unwrap_err();
    assert_eq!(fs::read(&scene.state).unwrap(), old);
    let names = fs::read_dir(scene.directory.path()).unwrap().count();
    assert_eq!(names, 3, "the key, the state, the link");
}

#[test]
fn only_a_state_is_ever_replaced() {
    let scene = Scene::new();
    let (bundle, _) = grown();
    let keys = [public("own-mixed.pub")];
    let (_, next) = run(&bundle, &keys, None, &mut Trace::default())
        .verdict
        .unwrap();
    let may = |path: &Path| State::may_lie_at(&OsDisk, path).unwrap();
    let others: [&[u8]; 5] = [
        &bundle,
        &vector("own-mixed.key"),
        b"{",
        b"{\"format\":\"plimsoll-attest/verify/v1\"}\n",
        b"{\"format\":\"plimsoll-attest/verify-stat",
    ];
    for other in others {
        fs::write(&scene.state, other).unwrap();
        assert!(!may(&scene.state));
        let refused = next.save(&OsDisk, &scene.state, &scene.key).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&scene.state).unwrap(), other);
    }
    assert!(!may(scene.directory.path()), "a directory");
    for replaced in [
        &b""[..],
        b"{\"format\":\"plimsoll-attest/verify-state/v0\"}",
    ] {
        fs::write(&scene.state, replaced).unwrap();
        assert!(may(&scene.state));
        next.save(&OsDisk, &scene.state, &scene.key).unwrap();
        assert_eq!(scene.load().as_ref(), Ok(&next));
    }
    fs::remove_file(&scene.state).unwrap();
    assert!(may(&scene.state));
    next.save(&OsDisk, &scene.state, &scene.key).unwrap();
}

#[test]
fn a_line_verified_earlier_is_shown_when_asked_for() {
    let scene = Scene::new();
    let (bundle, more) = grown();
    let keys = [public("own-mixed.pub")];
    scene.save(&bundle, &keys);
    let mut full = Trace::default();
    verify(&more[..], &keys, &mut full).unwrap();
    let lines: Vec<&String> = full
        .0
        .iter()
        .filter(|l| l.starts_with("SeenLine"))
        .collect();
    for number in [1, 4, 7, 11] {
        let mut trace = Trace::default();
        let state = Some(scene.load().unwrap());
        let options = VerifyOptions::default();
        let file = Cursor::new(&more);
        verify_from(file, &keys, state, Some(number), options, &mut trace)
            .verdict
            .unwrap();
        assert_eq!(&trace.0[0], lines[number as usize - 1]);
        assert_eq!(trace.0.len(), 20);
    }
}

/// Counts what is read.
struct Counted<R>(R, u64);

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        let length = self.0.read(out)?;
        self.1 += length as u64;
        Ok(length)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.0.seek(to)
    }
}

#[test]
fn the_file_is_read_once_and_on_all_cores() {
    let key = signing();
    let bundle = long_bundle(&key, 200, 1000);
    let keys = [key.public().clone()];
    let mut file = Counted(Cursor::new(&bundle), 0);
    let options = VerifyOptions {
        threads: Some(3),
        batch_bytes: Some(4096),
    };
    let done = verify_from(&mut file, &keys, None, None, options, &mut ());
    let (report, state) = done.verdict.unwrap();
    assert_eq!((report.records, file.1), (200, bundle.len() as u64));
    let mut file = Counted(Cursor::new(&bundle), 0);
    let done = verify_from(
        &mut file,
        &keys,
        Some(state.clone()),
        None,
        options,
        &mut (),
    );
    assert_eq!((done.earlier, file.1), (220, bundle.len() as u64));
    assert_eq!(done.verdict.unwrap().1, state);
}

fn mode(path: &std::path::Path) -> u32 {
    use std::os::unix::fs::PermissionsExt as _;
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_key_is_made_once_and_private() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("state.key");
    std::thread::scope(|threads| {
        for _ in 0..8 {
            threads.spawn(|| StateKey::load_or_create(&OsDisk, &path).unwrap());
        }
    });
    assert_eq!((mode(&path), fs::read(&path).unwrap().len()), (0o600, 32));
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
    let key = StateKey::load_or_create(&OsDisk, &path).unwrap();
    assert_eq!(format!("{key:?}"), "StateKey");

    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
    let fault = StateKey::load_or_create(&OsDisk, &path).unwrap_err();
    assert!(matches!(fault, StateKeyFault::Permissions { mode: 0o640 }));
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    fs::write(&path, b"short").unwrap();
    let fault = StateKey::load_or_create(&OsDisk, &path).unwrap_err();
    assert!(matches!(fault, StateKeyFault::Malformed));
    let fault = StateKey::load_or_create(&OsDisk, directory.path()).unwrap_err();
    assert!(matches!(
        fault,
        StateKeyFault::NotRegular | StateKeyFault::Io(_)
    ));
    let nowhere = directory.path().join("none/state.key");
    let fault = StateKey::load_or_create(&OsDisk, &nowhere).unwrap_err();
    assert!(matches!(fault, StateKeyFault::Io(_)));
}
