//! A bundle against the caller's own list of requests.
//!
//! The list binds what was sent, not what came back. Counting is exact: two
//! calls with one digest sent the same request.

use std::collections::HashMap;

use plimsoll_wire::ids::is_hex_digest;

use super::{report::Report, visitor::Call, visitor::Visitor};
use crate::fault::{ExpectedReason, Fault};

/// Most unexpected requests that are listed one by one.
const MAX_LISTED: usize = 1000;

/// The multiset of request digests a bundle should hold. Give it to the
/// verification as a visitor, then ask [`Expectation::met`].
#[derive(Clone, Debug)]
pub struct Expectation {
    counts: HashMap<[u8; 64], Count>,
    /// Kinds of unexpected requests beyond those listed.
    further: u64,
}

#[derive(Clone, Debug, Default)]
struct Count {
    expected: u64,
    found: u64,
    trace: String,
}

impl Expectation {
    /// Takes the digests expected, each as often as it is expected.
    ///
    /// # Errors
    /// Class `expected` for an element that is no hex digest; the fault's line
    /// is its place in the list, counted from 1.
    pub fn new<S: AsRef<str>>(digests: impl IntoIterator<Item = S>) -> Result<Self, Fault> {
        let mut counts: HashMap<[u8; 64], Count> = HashMap::new();
        for (place, digest) in digests.into_iter().enumerate() {
            let digest = digest.as_ref();
            let key = hex_bytes(digest).ok_or_else(|| {
                Fault::new(ExpectedReason::NotADigest)
                    .at_line(place as u64 + 1)
                    .expected("64 lowercase hex digits")
                    .found(digest)
            })?;
            counts.entry(key).or_default().expected += 1;
        }
        Ok(Expectation { counts, further: 0 })
    }

    /// Whether the calls seen are exactly those expected.
    ///
    /// # Errors
    /// Class `expected`, with both lists: a digest's first 16 characters, the
    /// trace ID where the bundle has one and a count when more than one.
    pub fn met(&self) -> Result<(), Fault> {
        let mut missing = Vec::new();
        let mut unexpected = Vec::new();
        for (digest, count) in &self.counts {
            let (list, times) = if count.expected > count.found {
                (&mut missing, count.expected - count.found)
            } else if count.found > count.expected {
                (&mut unexpected, count.found - count.expected)
            } else {
                continue;
            };
            list.push(shown(digest, &count.trace, times));
        }
        if missing.is_empty() && unexpected.is_empty() && self.further == 0 {
            return Ok(());
        }
        missing.sort_unstable();
        unexpected.sort_unstable();
        if self.further > 0 {
            unexpected.push(format!("and {} more calls", self.further));
        }
        let total = |of: fn(&Count) -> u64| self.counts.values().map(of).sum::<u64>();
        Err(Fault::new(ExpectedReason::Requests)
            .expected(total(|count| count.expected))
            .found(total(|count| count.found) + self.further)
            .lists(missing, unexpected))
    }
}

impl Visitor for Expectation {
    fn call(&mut self, call: &Call<'_>) {
        // Recomputed from the stored request before the call was handed out.
        let Some(digest) = hex_bytes(&call.record.request_sha256) else {
            return;
        };
        if self.counts.len() >= MAX_LISTED && !self.counts.contains_key(&digest) {
            let listed = self
                .counts
                .values()
                .filter(|count| count.expected == 0)
                .count();
            if listed >= MAX_LISTED {
                self.further += 1;
                return;
            }
        }
        let count = self.counts.entry(digest).or_default();
        count.found += 1;
        if count.trace.is_empty() {
            count.trace.clone_from(&call.request.trace_id);
        }
    }
}

/// Whether the bundle holds exactly `calls` calls.
///
/// # Errors
/// Class `expected`.
pub fn expect_count(report: &Report, calls: u64) -> Result<(), Fault> {
    if report.records == calls {
        return Ok(());
    }
    Err(Fault::new(ExpectedReason::Count)
        .expected(calls)
        .found(report.records))
}

fn hex_bytes(digest: &str) -> Option<[u8; 64]> {
    is_hex_digest(digest).then(|| digest.as_bytes().try_into().ok())?
}

fn shown(digest: &[u8; 64], trace: &str, times: u64) -> String {
    let mut text: String = digest[..16].iter().map(|byte| char::from(*byte)).collect();
    if !trace.is_empty() {
        text.push(' ');
        text.push_str(trace);
    }
    if times > 1 {
        text.push_str(&format!(" ({times} times)"));
    }
    text
}
