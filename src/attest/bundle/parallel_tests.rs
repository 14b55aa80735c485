//! Failures of the machinery itself, which no file can cause.
#![allow(clippy::panic, clippy::unwrap_used)]

use std::{
    cell::Cell,
    io::{self, BufReader, Read},
    panic::{AssertUnwindSafe, catch_unwind},
    path::Path,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
};

use super::*;
use crate::{bundle::SeenLine, key::PublicKey};

fn vector(name: &str) -> Vec<u8> {
    let vectors = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors");
    std::fs::read(vectors.join(name)).unwrap()
}

fn keys() -> [PublicKey; 1] {
    [PublicKey::from_pem(&vector("own-mixed.pub"))
        .unwrap()
        .prepared()]
}

/// Runs a pass over the vector with one line a batch.
fn pass(
    threads: usize,
    source: impl Read,
    visitor: &mut impl Visitor,
    examine: &(impl Fn(&[u8]) -> Result<Examined, Fault> + Sync),
) -> (u64, Result<(), Fault>) {
    let keys = keys();
    let mut verification = Verification::new(&keys);
    let mut lines = LineReader::at(BufReader::new(source), 0, 0);
    assert!(one(&mut verification, &mut lines, visitor).unwrap());
    let verdict = Pass {
        verification: &mut verification,
        visitor,
        lines,
        bytes: 1,
    }
    .run(threads, Batch::default(), examine);
    (verification.report().lines, verdict)
}

fn examined(line: &[u8]) -> Result<Examined, Fault> {
    Linked::decode(line)?.examine(&keys()[0])
}

#[test]
fn a_thread_that_panics_is_a_fault_at_its_line() {
    let bundle = vector("own-mixed.jsonl");
    for threads in [1, 2, 8] {
        for place in [1, 5, 9] {
            let count = AtomicUsize::new(0);
            let (lines, verdict) = pass(threads, &bundle[..], &mut (), &|line| {
                let link = examined(line)?;
                count.fetch_add(1, Ordering::Relaxed);
                assert_ne!(link.link.index, place + 1, "meant to fail");
                Ok(link)
            });
            let fault = verdict.unwrap_err();
            assert_eq!(fault.class().word(), "internal");
            assert_eq!((lines, fault.line()), (place, Some(place + 1)));
            assert!(count.into_inner() >= place as usize);
        }
    }
}

#[test]
fn a_visitor_that_panics_ends_the_pass() {
    struct Fails;
    impl Visitor for Fails {
        fn line(&mut self, line: &SeenLine) {
            assert_ne!(line.number, 4, "meant to fail");
        }
    }
    let bundle = vector("own-mixed.jsonl");
    let run = AssertUnwindSafe(|| pass(2, &bundle[..], &mut Fails, &examined));
    assert!(catch_unwind(run).is_err());
}

#[test]
fn without_a_thread_the_caller_does_the_work() {
    let bundle = vector("own-mixed.jsonl");
    let (lines, verdict) = pass(0, &bundle[..], &mut (), &|_| panic!("no thread"));
    verdict.unwrap();
    assert_eq!(lines, 11);
}

#[test]
fn nothing_is_examined_after_a_refusal_is_settled() {
    // Line 2 is refused; each later line is good. The queue holds them all.
    let bundle = vector("own-mixed.jsonl");
    let refused = AtomicUsize::new(0);
    let (lines, verdict) = pass(1, &bundle[..], &mut (), &|line| {
        refused.fetch_add(1, Ordering::Relaxed);
        Err(examined(line).err().unwrap_or(Fault::new(Reason::Empty)))
    });
    assert_eq!(verdict.unwrap_err().line(), Some(2));
    assert_eq!(lines, 1);
    assert!(refused.into_inner() <= 10);
}

/// Repeats good lines' bytes without end and counts what was read.
struct Endless<'c>(&'c AtomicU64, Cell<usize>, Vec<u8>);

impl Read for Endless<'_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let at = self.1.get();
        let rest = &self.2[at..];
        let length = rest.len().min(out.len());
        out[..length].copy_from_slice(&rest[..length]);
        self.1.set((at + length) % self.2.len());
        self.0.fetch_add(length as u64, Ordering::SeqCst);
        Ok(length)
    }
}

#[test]
fn reading_runs_ahead_by_a_bounded_number_of_bytes() {
    // Nothing is settled before the queue is full: the first examination waits
    // for the reader to stop, which it does by asking for that result.
    let read = AtomicU64::new(0);
    let first = vector("own-mixed.jsonl");
    let first_line = first.iter().position(|b| *b == b'\n').unwrap() + 1;
    let long = [vec![b' '; 100_000], vec![b'\n']].concat();
    let source = (&first[..first_line]).chain(Endless(&read, Cell::new(0), long));
    let most = AtomicU64::new(0);
    let (lines, verdict) = pass(2, source, &mut (), &|_| {
        // Examined while the other thread reads on as far as it may.
        let (mut last, mut same) = (0, 0);
        while same < 1000 || last <= IN_FLIGHT_BYTES as u64 {
            let now = read.load(Ordering::SeqCst);
            same = if now == last { same + 1 } else { 0 };
            last = now;
            thread::yield_now();
        }
        most.fetch_max(last, Ordering::SeqCst);
        Err(Fault::new(Reason::Empty))
    });
    assert_eq!((lines, verdict.is_err()), (1, true));
    let most = most.into_inner();
    let bound = IN_FLIGHT_BYTES as u64 + 100_001 + (64 << 10);
    assert!(most > IN_FLIGHT_BYTES as u64 && most <= bound, "{most}");
}
