//! Which calls of a bundle are replayed, and where they stand.

use std::{
    collections::{BTreeMap, HashMap},
    io::BufRead,
};

use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    bundle::{Call, Report, SeenLine, Visitor, verify},
    fault::NotACallReason,
    statement::SessionClose,
};
use plimsoll_record::Digest;

/// The calls of a verified bundle that are to be replayed.
#[derive(Debug)]
pub struct Selection {
    report: Report,
    units: Vec<Unit>,
}

/// Calls that are sent together.
#[derive(Debug)]
pub(super) enum Unit {
    /// A single run.
    Single(Place),
    /// The calls of one recorded session, the first one first.
    Session {
        /// The recorded session's fingerprint.
        fingerprint: String,
        /// Its calls.
        calls: Vec<Place>,
    },
}

/// A line that was verified.
#[derive(Debug)]
pub(super) struct Place {
    /// Its number, counted from 1.
    pub(super) line: u64,
    /// Where it begins in the file.
    pub(super) offset: u64,
    /// Its bytes without the newline.
    pub(super) length: usize,
    /// Its LineDigest.
    pub(super) digest: Digest,
}

/// Why nothing is replayed. Nothing was sent.
#[derive(Debug, thiserror::Error)]
pub enum SelectError {
    /// The bundle does not verify, or holds no call.
    #[error("{0}")]
    Evidence(Fault),
    /// A line asked for is not there.
    #[error("the file has fewer lines")]
    NoLine {
        /// Its number.
        line: u64,
        /// The lines there are.
        lines: u64,
    },
    /// A line asked for is no call.
    #[error("{}", reason.text())]
    NotACall {
        /// Its number.
        line: u64,
        /// What it is.
        reason: NotACallReason,
    },
}

impl Selection {
    /// What the verification found.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The number of calls.
    #[must_use]
    pub fn calls(&self) -> usize {
        self.units
            .iter()
            .map(|unit| match unit {
                Unit::Single(_) => 1,
                Unit::Session { calls, .. } => calls.len(),
            })
            .sum()
    }

    pub(super) fn units(&self) -> &[Unit] {
        &self.units
    }
}

/// Verifies a bundle under one of `keys` and picks what is replayed: every call,
/// or those of `lines`, each session's with the calls before it. Nothing is
/// contacted. `watcher` sees the pass.
///
/// Kept are place and digest of a call, some 60 bytes each.
///
/// # Errors
/// [`SelectError`]; evidence comes before lines.
pub fn select(
    source: impl BufRead,
    keys: &[PublicKey],
    lines: &[u64],
    watcher: &mut impl Visitor,
) -> Result<Selection, SelectError> {
    let mut picker = Picker {
        wanted: lines.iter().map(|&line| (line, None)).collect(),
        units: Vec::new(),
        sessions: HashMap::new(),
    };
    let report =
        verify(source, keys, &mut (&mut picker, watcher)).map_err(SelectError::Evidence)?;
    if report.records == 0 {
        return Err(SelectError::Evidence(Fault::new(Reason::Empty)));
    }
    for (&line, kind) in &picker.wanted {
        match kind {
            Some(Kind::Call) => {}
            Some(Kind::Other(reason)) => {
                let reason = *reason;
                return Err(SelectError::NotACall { line, reason });
            }
            None => {
                let lines = report.lines;
                return Err(SelectError::NoLine { line, lines });
            }
        }
    }
    Ok(Selection {
        report,
        units: picker.picked(),
    })
}

#[derive(Clone, Copy)]
enum Kind {
    Call,
    Other(NotACallReason),
}

struct Picker {
    /// The lines asked for, and what each turned out to be; empty for all.
    wanted: BTreeMap<u64, Option<Kind>>,
    units: Vec<Unit>,
    /// Places in `units`, by fingerprint.
    sessions: HashMap<String, usize>,
}

impl Picker {
    fn found(&mut self, line: u64, kind: Kind) {
        if let Some(found) = self.wanted.get_mut(&line) {
            found.get_or_insert(kind);
        }
    }

    fn is_wanted(&self, line: u64) -> bool {
        self.wanted.is_empty() || self.wanted.contains_key(&line)
    }

    /// Cuts each session after its last call asked for: what comes before it is
    /// needed, since later calls read what earlier ones wrote.
    fn picked(mut self) -> Vec<Unit> {
        for unit in &mut self.units {
            if let Unit::Session { calls, .. } = unit {
                let wanted =
                    |place: &Place| self.wanted.is_empty() || self.wanted.contains_key(&place.line);
                let end = calls.iter().rposition(wanted).map_or(0, |last| last + 1);
                calls.truncate(end);
            }
        }
        self.units
            .retain(|unit| !matches!(unit, Unit::Session { calls, .. } if calls.is_empty()));
        self.units
    }
}

impl Visitor for Picker {
    fn call(&mut self, call: &Call<'_>) {
        self.found(call.line, Kind::Call);
        let place = Place {
            line: call.line,
            offset: call.offset,
            length: call.bytes.len(),
            digest: call.digests.line,
        };
        if call.is_single_run() {
            if self.is_wanted(call.line) {
                self.units.push(Unit::Single(place));
            }
            return;
        }
        let fingerprint = &call.record.session;
        let next = self.units.len();
        let at = *self.sessions.entry(fingerprint.clone()).or_insert(next);
        if at == next {
            self.units.push(Unit::Session {
                fingerprint: fingerprint.clone(),
                calls: Vec::new(),
            });
        }
        if let Some(Unit::Session { calls, .. }) = self.units.get_mut(at) {
            calls.push(place);
        }
    }

    fn close(&mut self, line: u64, _: &SessionClose) {
        self.found(line, Kind::Other(NotACallReason::Close));
    }

    fn line(&mut self, line: &SeenLine) {
        if line.checkpoint {
            self.found(line.number, Kind::Other(NotACallReason::Checkpoint));
        }
    }
}
