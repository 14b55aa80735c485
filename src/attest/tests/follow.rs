//! A file that grows, shrinks or is exchanged while it is followed.
#![cfg(unix)]
#![allow(clippy::unwrap_used)]

mod common;

use std::{
    fs::{self, OpenOptions},
    io::Write as _,
    path::PathBuf,
};

use common::{Trace, check_with, lines, public, signing, single_run, vector};
use plimsoll_attestation::{
    PublicKey,
    bundle::{FollowFault, Followed, Follower, Options, VerifyOptions, append, disk::OsDisk},
};

struct Scene {
    _directory: tempfile::TempDir,
    path: PathBuf,
    keys: [PublicKey; 1],
}

impl Scene {
    fn new(bytes: &[u8]) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("runs.jsonl");
        fs::write(&path, bytes).unwrap();
        Scene {
            path,
            _directory: directory,
            keys: [public("own-mixed.pub")],
        }
    }

    fn follower(&self) -> Follower<'_, 'static, OsDisk> {
        Follower::open(&OsDisk, &self.path, &self.keys).unwrap()
    }

    fn grow(&self, bytes: &[u8]) {
        let mut file = OpenOptions::new().append(true).open(&self.path).unwrap();
        file.write_all(bytes).unwrap();
    }
}

const UP_TO_DATE: Followed = Followed::UpToDate { unfinished: 0 };

#[test]
fn each_line_is_seen_once_however_it_arrives() {
    let bundle = vector("own-mixed.jsonl");
    let mut whole = Trace::default();
    check_with(&bundle, &public("own-mixed.pub"), &mut whole).unwrap();
    for piece in [1000, 3001, bundle.len()] {
        let scene = Scene::new(b"");
        let mut follower = scene.follower();
        let mut trace = Trace::default();
        let mut checkpoints = Vec::new();
        assert_eq!(follower.step(&mut trace).unwrap(), UP_TO_DATE);
        for bytes in bundle.chunks(piece) {
            scene.grow(bytes);
            loop {
                match follower.step(&mut trace).unwrap() {
                    Followed::Checkpoint => {
                        checkpoints.push(follower.report().lines);
                        follower.whole().unwrap();
                    }
                    Followed::UpToDate { unfinished } => {
                        let length = fs::metadata(&scene.path).unwrap().len();
                        assert_eq!(follower.report().bytes + unfinished, length);
                        break;
                    }
                }
            }
        }
        assert_eq!(checkpoints, [4, 11]);
        assert_eq!(trace, whole);
        assert_eq!(follower.finish(&mut trace).unwrap().lines, 11);
    }
}

#[test]
fn what_is_there_is_taken_at_once_and_the_rest_as_it_comes() {
    let bundle = vector("own-mixed.jsonl");
    let all = lines(&bundle);
    let cut: usize = all[..6].iter().map(|line| line.len() + 1).sum();
    let scene = Scene::new(&bundle[..cut + 100]);
    let mut follower = scene.follower();
    let mut trace = Trace::default();
    let options = VerifyOptions {
        threads: Some(2),
        batch_bytes: Some(1),
    };
    let step = follower.catch_up(options, &mut trace).unwrap();
    assert_eq!(step, Followed::UpToDate { unfinished: 100 });
    assert_eq!(follower.report().lines, 6);
    let open = follower.whole().unwrap_err();
    assert_eq!(
        (open.class().word(), open.last_checkpoint()),
        ("incomplete", Some(4))
    );
    scene.grow(&bundle[cut + 100..]);
    assert_eq!(follower.step(&mut trace).unwrap(), Followed::Checkpoint);
    assert_eq!(follower.step(&mut trace).unwrap(), UP_TO_DATE);
    let report = follower.finish(&mut trace).unwrap();
    assert_eq!((report.lines, report.records), (11, 7));
}

#[test]
fn the_end_says_what_is_not_whole() {
    let bundle = vector("own-mixed.jsonl");
    let all = lines(&bundle);
    let at = |line: usize| all[..line].iter().map(|l| l.len() + 1).sum::<usize>();
    for (length, line) in [(0, 0), (at(5), 5), (at(4) + 10, 5), (at(11) - 1, 11)] {
        let scene = Scene::new(&bundle[..length]);
        let fault = scene.follower().finish(&mut ()).unwrap_err();
        assert_eq!(
            (fault.class().word(), fault.line()),
            ("incomplete", Some(line))
        );
    }
}

#[test]
fn a_cut_or_exchanged_file_is_told_as_that() {
    let bundle = vector("own-mixed.jsonl");
    let first = {
        let all = lines(&bundle);
        all[..4].iter().map(|l| l.len() + 1).sum::<usize>()
    };
    type Act = fn(&Scene, &[u8], usize);
    let acts: [(&str, Act); 6] = [
        ("cut", |scene, _, first| {
            OpenOptions::new()
                .write(true)
                .open(&scene.path)
                .unwrap()
                .set_len(first as u64)
                .unwrap();
        }),
        ("emptied", |scene, _, _| {
            fs::write(&scene.path, b"").unwrap();
        }),
        ("exchanged", |scene, bundle, _| {
            let other = scene.path.with_extension("new");
            fs::write(&other, bundle).unwrap();
            fs::rename(other, &scene.path).unwrap();
        }),
        ("removed", |scene, _, _| {
            fs::remove_file(&scene.path).unwrap();
        }),
        ("another of that length", |scene, bundle, _| {
            fs::write(&scene.path, vec![b'x'; bundle.len()]).unwrap();
        }),
        ("cut and grown again", |scene, bundle, first| {
            OpenOptions::new()
                .write(true)
                .open(&scene.path)
                .unwrap()
                .set_len(first as u64)
                .unwrap();
            while fs::metadata(&scene.path).unwrap().len() <= bundle.len() as u64 {
                let key = signing();
                let entry = single_run(77).sign(&key);
                let shared = Options {
                    shared: true,
                    ..Options::default()
                };
                append(&OsDisk, &scene.path, &key, &[entry], shared, &mut ()).unwrap();
            }
        }),
    ];
    for (name, act) in acts {
        let scene = Scene::new(&bundle);
        let mut follower = scene.follower();
        follower
            .catch_up(VerifyOptions::default(), &mut ())
            .unwrap();
        assert_eq!(follower.step(&mut ()).unwrap(), UP_TO_DATE);
        act(&scene, &bundle, first);
        let fault = follower.step(&mut ()).unwrap_err();
        let words = (fault.class().word(), fault.reason().word());
        assert_eq!(words, ("line", "replaced"), "{name}");
        assert_eq!(fault.last_checkpoint(), Some(11));
    }
}

#[test]
fn a_changed_line_before_the_last_is_told_at_the_end() {
    use std::os::unix::fs::FileExt as _;
    let bundle = vector("own-mixed.jsonl");
    let first: usize = lines(&bundle)[..4].iter().map(|l| l.len() + 1).sum();
    type Act = fn(&Scene, &[u8]);
    let acts: [(&str, Act); 3] = [
        ("written over", |scene, _| {
            let file = OpenOptions::new().write(true).open(&scene.path).unwrap();
            file.write_all_at(b"ZZZZ", 100).unwrap();
        }),
        ("a newline written over", |scene, bundle| {
            let file = OpenOptions::new().write(true).open(&scene.path).unwrap();
            let newline = lines(bundle)[0].len() as u64;
            file.write_all_at(b" ", newline).unwrap();
        }),
        ("emptied and grown again", |scene, bundle| {
            let length = fs::metadata(&scene.path).unwrap().len() as usize;
            let mut other = bundle[..length].to_vec();
            other[50] ^= 1;
            fs::write(&scene.path, other).unwrap();
        }),
    ];
    // Changed while part of it was taken, and after all of it was.
    for (name, act) in acts {
        for there in [first, first + 10, bundle.len()] {
            for stepwise in [false, true] {
                let scene = Scene::new(&bundle[..there]);
                let mut follower = scene.follower();
                if stepwise {
                    while follower.step(&mut ()).unwrap() == Followed::Checkpoint {}
                } else {
                    let options = VerifyOptions {
                        threads: Some(2),
                        batch_bytes: Some(1),
                    };
                    follower.catch_up(options, &mut ()).unwrap();
                }
                act(&scene, &bundle);
                scene.grow(&bundle[there..]);
                let fault = follower.finish(&mut ()).unwrap_err();
                let words = (fault.class().word(), fault.reason().word());
                assert_eq!(words, ("line", "replaced"), "{name} at {there}");
                assert_eq!(fault.last_checkpoint(), Some(11));
            }
        }
    }
}

#[test]
fn a_fault_ends_it_with_its_own_class() {
    let bundle = vector("own-mixed.jsonl");
    let scene = Scene::new(&bundle);
    let mut follower = scene.follower();
    let mut steps = 0;
    while follower.step(&mut ()).unwrap() != UP_TO_DATE {
        steps += 1;
    }
    assert_eq!(steps, 2);
    scene.grow(lines(&bundle)[0]);
    scene.grow(b"\n");
    let fault = follower.step(&mut ()).unwrap_err();
    assert_eq!((fault.class().word(), fault.line()), ("link", Some(12)));
    assert_eq!(fault.last_checkpoint(), Some(11));
}

#[test]
fn only_a_regular_file_is_followed() {
    let scene = Scene::new(b"");
    let missing = scene.path.with_extension("none");
    let open = |path| Follower::open(&OsDisk, path, &scene.keys).err();
    assert!(matches!(open(&missing), Some(FollowFault::Missing)));
    let directory = scene.path.parent().unwrap();
    assert!(matches!(open(directory), Some(FollowFault::NotRegular)));
}

#[test]
fn a_writer_at_work_is_followed_to_its_end() {
    let scene = Scene::new(b"");
    let key = signing();
    let (done, ended) = std::sync::mpsc::channel();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for n in 0..20 {
                let entry = single_run(n).sign(&key);
                let shared = Options {
                    shared: true,
                    ..Options::default()
                };
                append(&OsDisk, &scene.path, &key, &[entry], shared, &mut ()).unwrap();
            }
            done.send(()).unwrap();
        });
        let mut follower = scene.follower();
        let mut trace = Trace::default();
        let mut over = false;
        let mut last = false;
        while !last {
            last = over;
            over = over || ended.try_recv().is_ok();
            while follower.step(&mut trace).unwrap() == Followed::Checkpoint {
                follower.whole().unwrap();
            }
        }
        let report = follower.finish(&mut trace).unwrap();
        assert_eq!((report.lines, report.records), (40, 20));
        assert_eq!(trace.0.len(), 60);
    });
}
