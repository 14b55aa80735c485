//! What a caller expects of a bundle: `--expect`, `--expect-count`,
//! `--expect-request`.

use std::{
    collections::HashSet,
    path::{Path, PathBuf},
};

use clap::ArgMatches;
use plimsoll_attestation::{
    Fault,
    bundle::{self, Call, Expectation, Report, Visitor},
    fault::ExpectedReason,
};
use plimsoll_console::{
    Class, Failure,
    files::{Dash, Inputs},
};
use plimsoll_record::request_digest;
use plimsoll_wire::proto::RunRequest;

use crate::{message, refusal};

/// Largest list of expected digests.
const MOST_LIST_BYTES: u64 = 64 << 20;

/// The expectations of one command line.
#[derive(Clone)]
pub struct Expectations {
    list: Option<Expectation>,
    count: Option<u64>,
    /// Digests of requests that some call must have, not yet seen.
    wanted: HashSet<String>,
    asked_for_requests: bool,
    allow_empty: bool,
}

impl Expectations {
    /// Reads the flags and the files they name.
    ///
    /// # Errors
    /// Class `io` for a file that cannot be read, `expected` for a list that
    /// is none, `request` for a request that is none.
    pub fn read(inputs: &Inputs<'_>, matches: &ArgMatches) -> Result<Self, Failure> {
        let list = match matches.get_one::<PathBuf>("expect") {
            Some(file) => Some(list(inputs, file)?),
            None => None,
        };
        let mut wanted = HashSet::new();
        for file in matches
            .get_many::<PathBuf>("expect-request")
            .unwrap_or_default()
        {
            wanted.insert(request_digest_of(inputs, file)?);
        }
        let count = matches
            .get_one::<i64>("expect-count")
            .and_then(|&count| u64::try_from(count).ok());
        Ok(Expectations {
            list,
            count,
            asked_for_requests: !wanted.is_empty(),
            wanted,
            allow_empty: matches.get_flag("allow-empty"),
        })
    }

    /// Whether any expectation was stated; they speak of one bundle.
    pub fn speak_of_one(&self) -> bool {
        self.list.is_some() || self.count.is_some() || self.asked_for_requests
    }

    /// Whether the calls must be exactly those of a list.
    pub fn has_list(&self) -> bool {
        self.list.is_some()
    }

    /// Whether the number of calls was stated.
    pub fn has_count(&self) -> bool {
        self.count.is_some()
    }

    /// Whether requests were named that some call must have.
    pub fn has_requests(&self) -> bool {
        self.asked_for_requests
    }

    /// Whether a bundle without calls is accepted: asked for, or expected.
    pub fn allow_empty(&self) -> bool {
        self.allow_empty || self.count == Some(0)
    }

    /// Whether the bundle just seen meets them.
    ///
    /// # Errors
    /// The first expectation that is not met.
    pub fn met(&self, report: &Report) -> Result<(), Unmet> {
        if let Some(list) = &self.list {
            list.met().map_err(Unmet::Stated)?;
        }
        if let Some(count) = self.count {
            bundle::expect_count(report, count).map_err(Unmet::Stated)?;
        }
        if self.wanted.is_empty() {
            return Ok(());
        }
        let mut missing: Vec<String> = self.wanted.iter().cloned().collect();
        missing.sort_unstable();
        Err(Unmet::Requests(missing))
    }
}

/// How often the flags of expectations name standard input.
pub fn dashes(matches: &ArgMatches) -> usize {
    let named = |id: &str| {
        matches
            .get_many::<PathBuf>(id)
            .unwrap_or_default()
            .filter(|path| path.as_os_str() == "-")
            .count()
    };
    named("expect") + named("expect-request")
}

/// The digest of a request in a file.
///
/// # Errors
/// Class `io` or `request`.
pub fn request_digest_of(inputs: &Inputs<'_>, file: &Path) -> Result<String, Failure> {
    let request: RunRequest = message::read(inputs, file, message::MOST_REQUEST_BYTES)?;
    Ok(request_digest(&request).to_hex())
}

/// The failure for a call with another request than the one expected.
pub fn other_request(file: &Path, wanted: &str, found: &str) -> Failure {
    Failure::new(
        Class::Expected,
        "no call has a request that was expected",
        "Compare the request file with what was sent: every member counts, the trace ID excepted.",
    )
    .reason("requests")
    .file(file)
    .expected(wanted)
    .found(found)
}

/// An expectation that a bundle does not meet.
pub enum Unmet {
    /// The list or the count.
    Stated(Fault),
    /// Requests that no call has, by digest.
    Requests(Vec<String>),
}

impl Unmet {
    /// Requests expected and not in the bundle.
    pub fn missing(&self) -> &[String] {
        match self {
            Unmet::Stated(fault) => fault.missing(),
            Unmet::Requests(missing) => missing,
        }
    }

    /// Requests in the bundle and not expected.
    pub fn unexpected(&self) -> &[String] {
        match self {
            Unmet::Stated(fault) => fault.unexpected(),
            Unmet::Requests(_) => &[],
        }
    }

    /// The failure for a bundle in `file`.
    pub fn failure(&self, file: &Path) -> Failure {
        match self {
            Unmet::Stated(fault) => refusal::failure(file, fault, &[]),
            Unmet::Requests(missing) => other_request(file, &missing.join(", "), "no such call"),
        }
    }
}

impl Visitor for Expectations {
    fn call(&mut self, call: &Call<'_>) {
        if let Some(list) = &mut self.list {
            list.call(call);
        }
        if !self.wanted.is_empty() {
            // The record's request digest was recomputed from the stored request.
            self.wanted.remove(&call.record.request_sha256);
        }
    }
}

fn list(inputs: &Inputs<'_>, file: &Path) -> Result<Expectation, Failure> {
    let bytes = inputs.read(file, Dash::Allowed, MOST_LIST_BYTES)?;
    let mut digests = Vec::new();
    let mut lines = Vec::new();
    for (number, line) in bytes.split(|&byte| byte == b'\n').enumerate() {
        let text = String::from_utf8_lossy(line);
        let Some(digest) = text.split_whitespace().next() else {
            continue;
        };
        digests.push(digest.to_owned());
        lines.push(number as u64 + 1);
    }
    Expectation::new(digests).map_err(|fault| {
        let place = fault.line().unwrap_or(1).saturating_sub(1);
        let line = usize::try_from(place)
            .ok()
            .and_then(|at| lines.get(at).copied());
        let failure = Failure::new(
            Class::Expected,
            ExpectedReason::NotADigest.text(),
            "Each line begins with a request digest, as run and digest request print it; the rest \
             of the line is a label.",
        )
        .reason(ExpectedReason::NotADigest.word())
        .file(file)
        .line(line.unwrap_or(1))
        .expected("64 lowercase hex digits");
        match fault.found_value() {
            Some(found) => failure.found(found),
            None => failure,
        }
    })
}
