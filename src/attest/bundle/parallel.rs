//! One pass over a bundle with the lines' own checks on all cores.
//!
//! The caller's thread reads lines into batches and settles them in order;
//! other threads examine batches in any order. Results are taken in the order
//! of the lines, so verdict, refused line and what a visitor sees are those of
//! one thread. The source and the visitor never leave the caller's thread.
//!
//! A hostile file can make neither memory nor time grow: reading stops while
//! [`IN_FLIGHT_BYTES`] wait to be settled, so that many bytes and one line more
//! are held at most, and after a refusal no queued batch is begun.

use std::{
    collections::VecDeque,
    io::BufRead,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, Sender, SyncSender, TryRecvError, channel, sync_channel},
    },
    thread::{self, Scope, ScopedJoinHandle},
};

use super::{
    examine::{Examined, Linked},
    reader::{Batch, LineReader},
    verify::{Verification, VerifyOptions},
    visitor::Visitor,
};
use crate::fault::{Fault, Reason};

/// Bytes of lines that may be read and not yet settled.
const IN_FLIGHT_BYTES: usize = 4 << 20;
/// Bytes of lines handed to a thread together.
const BATCH_BYTES: usize = 128 << 10;
/// More threads than this wait for the one that reads.
const MAX_THREADS: usize = 256;

/// Takes every line of a source, which begins after the lines taken.
pub(super) fn read(
    verification: &mut Verification<'_>,
    source: impl BufRead,
    options: VerifyOptions,
    visitor: &mut impl Visitor,
) -> Result<(), Fault> {
    let report = verification.report();
    let mut lines = LineReader::at(source, report.lines, report.bytes);
    let threads = options
        .threads
        .unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from))
        .min(MAX_THREADS);
    let bytes = options.batch_bytes.unwrap_or(BATCH_BYTES).max(1);
    if threads > 1 {
        // Line 1 says which key the others are checked under.
        if verification.report().lines == 0 && !one(verification, &mut lines, visitor)? {
            return Ok(());
        }
        let mut first = Batch::default();
        let more = lines.fill(&mut first, bytes);
        if matches!(more, Ok(true))
            && let Some(key) = verification.prepare().cloned()
        {
            let examine = |line: &[u8]| Linked::decode(line)?.examine(&key);
            return Pass {
                verification,
                visitor,
                lines,
                bytes,
            }
            .run(threads, first, &examine);
        }
        // Few lines are not worth a thread.
        for line in first.lines() {
            verification.push(line, visitor)?;
        }
        if !more.map_err(|fault| after(verification, fault))? {
            return Ok(());
        }
    }
    while one(verification, &mut lines, visitor)? {}
    Ok(())
}

/// Reads and takes one line; `false` at the end.
fn one(
    verification: &mut Verification<'_>,
    lines: &mut LineReader<impl BufRead>,
    visitor: &mut impl Visitor,
) -> Result<bool, Fault> {
    match lines.next_line() {
        Ok(Some(line)) => verification.push(line.bytes, visitor).map(|()| true),
        Ok(None) => Ok(false),
        Err(fault) => Err(after(verification, fault)),
    }
}

/// A fault of reading, after the lines taken.
fn after(verification: &Verification<'_>, fault: Fault) -> Fault {
    fault.after_checkpoint(verification.report().last_checkpoint())
}

/// A batch to examine and where its result goes.
struct Job {
    batch: Batch,
    done: SyncSender<Done>,
}

/// An examined batch: a result for each line up to the first refused one.
struct Done {
    batch: Batch,
    examined: Vec<Result<Examined, Fault>>,
}

/// The caller's side of a pass.
struct Pass<'p, 'k, S, V> {
    verification: &'p mut Verification<'k>,
    visitor: &'p mut V,
    lines: LineReader<S>,
    /// Bytes of a batch.
    bytes: usize,
}

impl<S: BufRead, V: Visitor> Pass<'_, '_, S, V> {
    fn run<E>(mut self, threads: usize, first: Batch, examine: &E) -> Result<(), Fault>
    where
        E: Fn(&[u8]) -> Result<Examined, Fault> + Sync,
    {
        let (jobs, queue) = channel();
        let queue = Mutex::new(queue);
        let stop = AtomicBool::new(false);
        thread::scope(|scope| {
            let workers = start(scope, threads, &queue, &stop, examine);
            // Ends the workers however this thread leaves, a panic of the
            // visitor included: the sender goes and nothing queued is begun.
            let ending = (Stop(&stop), jobs);
            let verdict = if workers.is_empty() {
                self.alone(&first)
            } else {
                self.settle_all(first, &ending.1)
            };
            drop(ending);
            // A worker's panic has become a fault where its batch was due. One
            // in a batch after a refused line is not part of the verdict.
            for worker in workers {
                let _ = worker.join();
            }
            verdict
        })
    }

    /// No thread could be made.
    fn alone(&mut self, first: &Batch) -> Result<(), Fault> {
        for line in first.lines() {
            self.verification.push(line, self.visitor)?;
        }
        while one(self.verification, &mut self.lines, self.visitor)? {}
        Ok(())
    }

    fn settle_all(&mut self, first: Batch, jobs: &Sender<Job>) -> Result<(), Fault> {
        let mut waiting = VecDeque::new();
        let mut in_flight = 0;
        let mut spare = Vec::new();
        let mut next = Some(first);
        // What ended the reading; due after the lines before it.
        let mut end = None;
        loop {
            if let Some(batch) = next.take().filter(|batch| !batch.is_empty()) {
                let length = batch.length();
                in_flight += length;
                let (done, result) = sync_channel(1);
                // A queue without workers drops the job; its result says so.
                let _ = jobs.send(Job { batch, done });
                waiting.push_back((result, length));
            }
            let full = in_flight >= IN_FLIGHT_BYTES || end.is_some();
            if let Some(length) = self.settle_front(&mut waiting, full, &mut spare)? {
                in_flight -= length;
                continue;
            }
            if full {
                // Nothing waits: everything read is settled.
                break;
            }
            let mut batch: Batch = spare.pop().unwrap_or_default();
            match self.lines.fill(&mut batch, self.bytes) {
                Ok(true) => {}
                Ok(false) => end = Some(Ok(())),
                Err(fault) => end = Some(Err(fault)),
            }
            next = Some(batch);
        }
        end.unwrap_or(Ok(()))
            .map_err(|fault| after(self.verification, fault))
    }

    /// Settles the oldest batch if it is examined, or when told to wait for it;
    /// gives its length.
    fn settle_front(
        &mut self,
        waiting: &mut VecDeque<(Receiver<Done>, usize)>,
        wait: bool,
        spare: &mut Vec<Batch>,
    ) -> Result<Option<usize>, Fault> {
        let Some((result, length)) = waiting.front() else {
            return Ok(None);
        };
        let length = *length;
        let done = if wait {
            result.recv().ok()
        } else {
            match result.try_recv() {
                Ok(done) => Some(done),
                Err(TryRecvError::Empty) => return Ok(None),
                Err(TryRecvError::Disconnected) => None,
            }
        };
        let lost = || Fault::new(Reason::Internal);
        let Done { batch, examined } = done.ok_or_else(|| {
            let number = self.verification.report().lines.saturating_add(1);
            lost().at_line(number)
        })?;
        waiting.pop_front();
        let mut examined = examined.into_iter();
        for line in batch.lines() {
            // A line without a result must never pass for one that was checked.
            let result = examined.next().unwrap_or_else(|| Err(lost()));
            self.verification.settle(line, result, self.visitor)?;
        }
        spare.extend(batch.emptied(self.bytes));
        Ok(Some(length))
    }
}

fn start<'scope, 'env, E>(
    scope: &'scope Scope<'scope, 'env>,
    threads: usize,
    queue: &'env Mutex<Receiver<Job>>,
    stop: &'env AtomicBool,
    examine: &'env E,
) -> Vec<ScopedJoinHandle<'scope, ()>>
where
    E: Fn(&[u8]) -> Result<Examined, Fault> + Sync,
{
    (0..threads)
        .map_while(|n| {
            thread::Builder::new()
                .name(format!("verify-{n}"))
                .spawn_scoped(scope, move || work(queue, stop, examine))
                .ok()
        })
        .collect()
}

fn work<E>(queue: &Mutex<Receiver<Job>>, stop: &AtomicBool, examine: &E)
where
    E: Fn(&[u8]) -> Result<Examined, Fault>,
{
    loop {
        let job = queue.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(Job { batch, done }) = job else {
            return;
        };
        let mut examined = Vec::new();
        for line in batch.lines() {
            if stop.load(Ordering::Relaxed) {
                return;
            }
            let result = examine(line);
            let refused = !matches!(&result, Ok(examined) if examined.content.is_ok());
            examined.push(result);
            if refused {
                // The pass ends at this line or before it.
                break;
            }
        }
        // The other side may have ended the pass.
        let _ = done.send(Done { batch, examined });
    }
}

/// Tells the workers to end when it is dropped.
struct Stop<'s>(&'s AtomicBool);

impl Drop for Stop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "parallel_tests.rs"]
mod tests;
