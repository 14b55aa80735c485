//! Processes that are killed while they append, at every step and at any
//! moment: nothing they said was done is lost, and no file is left that
//! verifies and says something else than what they ran.
//!
//! This test is its own child, so it has its own `main`: without arguments of
//! a child it runs the scenes and names each.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used
)]

#[path = "../common/mod.rs"]
mod common;

mod child;

use std::{
    collections::BTreeSet,
    env, fs,
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
};

use common::{check, check_with, signing, single_run};
use plimsoll_attestation::{
    anchor::Anchor,
    bundle::{Call, Options, Visitor, append, disk::OsDisk},
};

/// A step that no child reaches.
const NEVER: u64 = u64::MAX;

fn main() {
    let arguments: Vec<String> = env::args().collect();
    if let [_, word, directory, first, count, kill_at] = arguments.as_slice()
        && word == "child"
    {
        let number = |text: &String| text.parse::<u64>().unwrap();
        return child::run(
            Path::new(directory),
            number(first) as u32,
            number(count) as u32,
            number(kill_at),
        );
    }
    if !cfg!(unix) {
        return;
    }
    let scenes: [(&str, fn()); 5] = [
        ("killed at every step", killed_at_every_step),
        ("killed at any moment", killed_at_any_moment),
        ("two harnesses on one file", two_harnesses),
        ("a file that may not grow", a_file_that_may_not_grow),
        ("a reader during appends", a_reader_during_appends),
    ];
    for (name, scene) in scenes {
        scene();
        println!("crash: {name} ... ok");
    }
}

struct Scene {
    directory: tempfile::TempDir,
}

impl Scene {
    /// A directory with a bundle of the runs before `first`, or none.
    fn new(first: u32) -> Self {
        let scene = Scene {
            directory: tempfile::tempdir().unwrap(),
        };
        child_in_process(&scene, first);
        scene
    }

    fn bundle(&self) -> PathBuf {
        self.directory.path().join("runs.jsonl")
    }

    fn command(&self, first: u32, count: u32, kill_at: u64) -> Command {
        let mut command = Command::new(env::current_exe().unwrap());
        command
            .arg("child")
            .arg(self.directory.path())
            .args([first.to_string(), count.to_string(), kill_at.to_string()])
            .stdout(Stdio::piped());
        command
    }

    /// The trace IDs in the side files.
    fn kept(&self) -> BTreeSet<u32> {
        let names = fs::read_dir(self.directory.path()).unwrap();
        names
            .map(|name| name.unwrap().path())
            .filter(|path| path.to_str().unwrap().contains(".unsealed-"))
            .map(|path| {
                let line = fs::read_to_string(path).unwrap();
                (0..1000)
                    .find(|n| line == single_run(*n).sign(&signing()).to_unlinked_line())
                    .expect("a whole entry")
            })
            .collect()
    }
}

fn child_in_process(scene: &Scene, first: u32) {
    let key = signing();
    for n in 0..first {
        let entry = [single_run(n).sign(&key)];
        append(
            &OsDisk,
            &scene.bundle(),
            &key,
            &entry,
            Options::default(),
            &mut (),
        )
        .unwrap();
    }
}

/// What a child said before it ended.
fn said(child: Child) -> (Vec<String>, bool) {
    let done = child.wait_with_output().unwrap();
    let text = String::from_utf8(done.stdout).unwrap();
    (
        text.lines().map(str::to_owned).collect(),
        done.status.success(),
    )
}

fn numbers(lines: &[String], word: &str) -> Vec<u32> {
    let of = |line: &String| line.strip_prefix(word)?.trim().parse().ok();
    lines.iter().filter_map(of).collect()
}

#[derive(Default)]
struct Runs(Vec<u32>);

impl Visitor for Runs {
    fn call(&mut self, call: &Call<'_>) {
        let number = call.request.trace_id.strip_prefix("t-").unwrap();
        self.0.push(number.parse().unwrap());
    }
}

/// The runs of a bundle that verifies.
fn runs(bytes: &[u8]) -> Vec<u32> {
    let mut runs = Runs::default();
    check_with(bytes, signing().public(), &mut runs).unwrap();
    runs.0
}

/// Looks at what a killed process left, given the runs that were done, and at
/// what the next run makes of it.
fn judge(scene: &Scene, done: &[u32], next: u32, what: &str) {
    let key = signing();
    let bytes = fs::read(scene.bundle()).unwrap_or_default();
    let whole = match check(&bytes, key.public()) {
        Ok(_) => bytes.clone(),
        Err(fault) => {
            let word = (fault.class().word(), fault.reason().word());
            let torn = [
                ("line", "no_newline"),
                ("incomplete", "no_checkpoint"),
                ("incomplete", "empty"),
            ];
            assert!(torn.contains(&word), "{what}: {fault:?}");
            // As the refusal says: cut back to its last checkpoint it is whole.
            let lines = fault.last_checkpoint().unwrap_or(0) as usize;
            assert_eq!(lines, done.len() * 2, "{what}");
            bytes
                .split_inclusive(|b| *b == b'\n')
                .take(lines)
                .flatten()
                .copied()
                .collect()
        }
    };
    if !done.is_empty() || !whole.is_empty() {
        let there = runs(&whole);
        // The run that was at work may be there whole, and nothing else.
        let more = there.strip_prefix(done).expect(what);
        assert!(
            more.len() <= 1 && more.iter().all(|n| *n < next),
            "{what}: {there:?}"
        );
    }
    if let Ok(anchor) = fs::read(scene.directory.path().join("anchor")) {
        // Never half written, and never ahead of what is synced.
        let anchor = Anchor::open(&anchor, &[key.public().clone()]).expect(what);
        let lines: Vec<&[u8]> = whole.split_inclusive(|b| *b == b'\n').collect();
        let line = lines[anchor.reach().lines() as usize - 1];
        let digest = plimsoll_record::Digest::of(&line[..line.len() - 1]);
        assert_eq!(digest, anchor.reach().last_line(), "{what}");
    }
    let (lines, ended) = said(scene.command(next, 1, NEVER).spawn().unwrap());
    assert!(ended, "{what}");
    if whole == bytes {
        assert_eq!(numbers(&lines, "done"), [next], "{what}");
        assert_eq!(runs(&fs::read(scene.bundle()).unwrap()).last(), Some(&next));
    } else {
        assert_eq!(numbers(&lines, "kept"), [next], "{what}");
        assert_eq!(fs::read(scene.bundle()).unwrap(), bytes);
        assert!(scene.kept().contains(&next));
    }
}

fn killed_at_every_step() {
    for base in [0, 1] {
        let mut step = 0;
        loop {
            let scene = Scene::new(base);
            let child = scene.command(base, 2, step).spawn().unwrap();
            let (lines, ended) = said(child);
            let mut done: Vec<u32> = (0..base).collect();
            done.extend(numbers(&lines, "done"));
            judge(&scene, &done, 500, &format!("{base} runs, step {step}"));
            if ended {
                assert_eq!(done.len() as u32, base + 2);
                break;
            }
            step += 1;
        }
        // Two appends, each moving the anchor, have many steps.
        assert!(step >= 38, "{step}");
    }
}

fn killed_at_any_moment() {
    for round in 0..12 {
        let scene = Scene::new(0);
        let mut child = scene.command(0, 400, NEVER).spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = Vec::new();
        let mut line = String::new();
        // The moment differs with each round, within an append or between two.
        while lines.len() < 1 + round && output.read_line(&mut line).unwrap() > 0 {
            lines.push(std::mem::take(&mut line));
        }
        for _ in 0..round * 997 {
            std::hint::spin_loop();
        }
        child.kill().unwrap();
        child.wait().unwrap();
        // What it said before its end may still lie in the pipe.
        for line in output.lines() {
            lines.push(line.unwrap());
        }
        let mut done = numbers(&lines, "done");
        assert!(done.len() > round);
        // An append may be done and unsaid; its run is then there whole.
        let bytes = fs::read(scene.bundle()).unwrap();
        if let Ok(report) = check(&bytes, signing().public())
            && report.records as usize == done.len() + 1
        {
            done.push(done.len() as u32);
        }
        judge(&scene, &done, 500, &format!("round {round}"));
    }
}

fn two_harnesses() {
    let scene = Scene::new(0);
    let children = [scene.command(100, 12, NEVER), scene.command(200, 12, NEVER)]
        .map(|mut command| command.spawn().unwrap());
    for child in children {
        let (lines, ended) = said(child);
        assert!(ended && numbers(&lines, "done").len() == 12, "{lines:?}");
    }
    let there = runs(&fs::read(scene.bundle()).unwrap());
    let of = |first: u32| -> Vec<u32> {
        let mine = there.iter().copied();
        mine.filter(|n| (first..first + 100).contains(n)).collect()
    };
    assert_eq!(of(100), (100..112).collect::<Vec<_>>());
    assert_eq!(of(200), (200..212).collect::<Vec<_>>());
    assert_eq!(there.len(), 24);

    // One dies in the middle of a write: the other keeps what it cannot append.
    let scene = Scene::new(1);
    let (lines, ended) = said(scene.command(100, 4, 30).spawn().unwrap());
    assert!(!ended);
    let first = numbers(&lines, "done");
    let (lines, ended) = said(scene.command(200, 3, NEVER).spawn().unwrap());
    assert!(ended);
    let kept = scene.kept();
    let done = numbers(&lines, "done");
    for n in 200..203 {
        assert!(kept.contains(&n) != done.contains(&n));
    }
    let bytes = fs::read(scene.bundle()).unwrap();
    if kept.is_empty() {
        let there = runs(&bytes);
        assert!(first.iter().chain(&done).all(|n| there.contains(n)));
    } else {
        assert!(check(&bytes, signing().public()).is_err());
    }
}

/// A real limit of the system: a write is cut short, the next one fails.
fn a_file_that_may_not_grow() {
    let scene = Scene::new(1);
    let before = fs::metadata(scene.bundle()).unwrap().len();
    let each = before;
    let mut failed = 0;
    for blocks in (before / 512)..=((before + 2 * each) / 512 + 1) {
        let scene = Scene::new(1);
        let mut command = Command::new("sh");
        // Ignored, the signal of that limit becomes an error of the write; both
        // the limit and that pass on to the child. A block is 512 bytes, or
        // 1024 where the shell counts so.
        command
            .arg("-c")
            .arg(format!("ulimit -f {blocks} && trap '' XFSZ && exec \"$@\""))
            .arg("sh")
            .arg(env::current_exe().unwrap())
            .arg("child")
            .arg(scene.directory.path())
            .args(["1", "2", &NEVER.to_string()])
            .stdout(Stdio::piped());
        let (lines, ended) = said(command.spawn().unwrap());
        assert!(ended, "{blocks}: {lines:?}");
        let done = numbers(&lines, "done");
        let kept = numbers(&lines, "kept");
        assert_eq!(done.len() + kept.len(), 2, "{lines:?}");
        failed += kept.len();
        // Whole, without a byte of what did not fit.
        let there = runs(&fs::read(scene.bundle()).unwrap());
        assert_eq!(there, [&[0], done.as_slice()].concat());
        assert_eq!(scene.kept(), kept.into_iter().collect());
    }
    assert!(failed >= 2, "{failed}");
}

fn a_reader_during_appends() {
    const APPENDS: u64 = 60;
    let scene = Scene::new(1);
    let key = signing();
    let mut child = scene.command(1, APPENDS as u32, NEVER).spawn().unwrap();
    let output = BufReader::new(child.stdout.take().unwrap());
    let done = AtomicU64::new(0);
    let over = AtomicU64::new(0);
    let mut kinds = BTreeSet::new();
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for line in output.lines() {
                assert!(line.unwrap().starts_with("done"));
                done.fetch_add(1, Ordering::SeqCst);
            }
            over.store(1, Ordering::SeqCst);
        });
        while over.load(Ordering::SeqCst) == 0 {
            let before = done.load(Ordering::SeqCst) + 1;
            let bytes = fs::read(scene.bundle()).unwrap();
            match check(&bytes, key.public()) {
                Ok(report) => {
                    assert!(report.records >= before && report.records <= APPENDS + 1);
                    kinds.insert("ok");
                }
                Err(fault) => {
                    // Said as what it is, and what was done before is there.
                    let word = fault.class().word();
                    assert!(["line", "incomplete"].contains(&word), "{fault:?}");
                    assert!(fault.last_checkpoint().unwrap() >= before * 2);
                    kinds.insert("unfinished");
                }
            }
        }
    });
    assert!(child.wait().unwrap().success());
    assert!(kinds.contains("ok"));
    assert_eq!(done.into_inner(), APPENDS);
    let report = check(&fs::read(scene.bundle()).unwrap(), key.public()).unwrap();
    assert_eq!(report.records, APPENDS + 1);
}
