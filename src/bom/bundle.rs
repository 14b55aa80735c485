//! A verified bundle and the selection of what a BOM describes.

use std::io::BufRead;

use plimsoll_attestation::{
    Class, Fault, Line, PublicKey, Reason,
    bundle::{self, Call, SeenLine, Visitor},
    fault::StatementReason,
    statement::{self, SessionClose, Unverified},
};
use plimsoll_record::Digest;
use plimsoll_wire::{
    ids::is_hex_digest,
    proto::{self, RunRecord, RunRequest, RunResponse},
};

use sha2::{Digest as _, Sha256};

use crate::{
    facts::CallFacts,
    fault::{BomError, Code, Refusal},
    lines::{LineRef, Store, verified},
    profile::Scope,
    subject::{Session, Subject},
};

/// Most line numbers a refusal lists.
const LISTED: usize = 20;

/// What of a bundle one BOM is made of.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Selection {
    /// The only call of the bundle.
    Only,
    /// The call on this line.
    Line(u64),
    /// The closed session with this fingerprint.
    Session(String),
}

/// A bundle that was verified, and where its lines stand. It holds some 60
/// bytes a line; the lines are read again when they are needed.
pub struct Bundle<'s> {
    pub(crate) store: &'s dyn Store,
    pub(crate) scope: Scope,
    lines: Vec<Seen>,
    sessions: Vec<String>,
    /// Line number of the first of `lines`, less 1.
    before: u64,
}

#[derive(Clone, Copy)]
struct Seen {
    at: LineRef,
    what: What,
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum What {
    Run,
    Call(usize),
    Close(usize),
    Checkpoint,
}

impl<'s> Bundle<'s> {
    /// Verifies a whole bundle: links, checkpoint, signatures, stored exchanges
    /// and session chains. `source` reads the same bytes as `store`, from the
    /// start; `progress` is told the bytes of each line.
    ///
    /// # Errors
    /// The evidence's own class.
    pub fn verify(
        store: &'s dyn Store,
        source: impl BufRead,
        key: &PublicKey,
        progress: &mut dyn FnMut(u64),
    ) -> Result<Self, BomError> {
        let mut index = Index {
            lines: Vec::new(),
            sessions: Vec::new(),
            places: std::collections::HashMap::new(),
            next: What::Checkpoint,
            progress,
        };
        bundle::verify(source, std::slice::from_ref(key), &mut index)?;
        Ok(Bundle {
            store,
            scope: Scope::Bundle,
            lines: index.lines,
            sessions: index.sessions,
            before: 0,
        })
    }

    /// Verifies one line alone, for a file that is still being written: nothing
    /// is established of the rest. Only that line can be selected.
    ///
    /// # Errors
    /// The evidence's own class, or `no_runs` when there is no such line.
    pub fn verify_line(
        store: &'s dyn Store,
        source: impl BufRead,
        key: &PublicKey,
        number: u64,
    ) -> Result<Self, BomError> {
        let entry =
            bundle::verify_entry(source, std::slice::from_ref(key), number).map_err(|fault| {
                match fault.class() {
                    Class::NoLine => no_such_line(number).into(),
                    _ => BomError::Evidence(fault),
                }
            })?;
        let call = entry.call();
        Ok(Bundle {
            store,
            scope: Scope::Line,
            lines: vec![Seen {
                at: LineRef {
                    number,
                    offset: call.offset,
                    length: entry.bytes.len() as u64,
                    digest: call.digests.line,
                },
                what: What::Run,
            }],
            sessions: Vec::new(),
            before: number.saturating_sub(1),
        })
    }

    /// The numbers of the call lines, ascending.
    pub fn call_lines(&self) -> impl Iterator<Item = u64> + '_ {
        self.lines
            .iter()
            .filter(|seen| matches!(seen.what, What::Run | What::Call(_)))
            .map(|seen| seen.at.number)
    }

    /// The fingerprints of its sessions, in order of first appearance.
    #[must_use]
    pub fn sessions(&self) -> &[String] {
        &self.sessions
    }

    /// Takes what one BOM is made of.
    ///
    /// # Errors
    /// `many_runs`, `no_runs`, `not_a_call`, `session_open`, or that the bundle
    /// could not be read again.
    pub fn select(&self, selection: &Selection) -> Result<Subject, BomError> {
        match selection {
            Selection::Only => {
                let listed: Vec<u64> = self.call_lines().take(LISTED + 1).collect();
                match listed.as_slice() {
                    [] => Err(Refusal::new(Code::NoRuns, "the bundle holds no call").into()),
                    [one] => self.run(*one),
                    many => Err(many_runs(many).into()),
                }
            }
            Selection::Line(number) => self.run(*number),
            Selection::Session(fingerprint) => self.session(fingerprint),
        }
    }

    fn run(&self, number: u64) -> Result<Subject, BomError> {
        Ok(Subject::Run(Box::new(self.call(number, false)?)))
    }

    /// The facts of the call on a line.
    pub(crate) fn call(&self, number: u64, git_blobs: bool) -> Result<CallFacts, BomError> {
        let seen = self.seen(number).ok_or_else(|| no_such_line(number))?;
        let what = match seen.what {
            What::Run | What::Call(_) => return self.facts(&seen.at, git_blobs),
            What::Close(_) => "the line is a session's close",
            What::Checkpoint => "the line is a checkpoint",
        };
        Err(Refusal::new(Code::NotACall, what).line(number).into())
    }

    /// The verified line of this number.
    pub(crate) fn line(&self, number: u64) -> Option<LineRef> {
        self.seen(number).map(|seen| seen.at)
    }

    /// Whether the bundle, or a beginning of it that holds a line, is the file
    /// of this SHA-256: a bundle only grows by whole lines.
    pub(crate) fn began_as(&self, sha256: &str, line: u64) -> Result<bool, BomError> {
        let mut hasher = Sha256::new();
        for seen in &self.lines {
            hasher.update(verified(self.store, &seen.at)?);
            hasher.update(b"\n");
            let beginning = Digest::from(<[u8; 32]>::from(hasher.clone().finalize()));
            if seen.at.number >= line && beginning.is(sha256) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The session whose call stands on a line.
    pub(crate) fn session_of(&self, number: u64) -> Option<&str> {
        match self.seen(number)?.what {
            What::Call(place) => self.sessions.get(place).map(String::as_str),
            _ => None,
        }
    }

    fn seen(&self, number: u64) -> Option<&Seen> {
        let place = number.checked_sub(self.before)?.checked_sub(1)?;
        self.lines.get(usize::try_from(place).ok()?)
    }

    fn session(&self, fingerprint: &str) -> Result<Subject, BomError> {
        let none = || {
            let fact = if is_hex_digest(fingerprint) {
                "the bundle holds no call of this session"
            } else {
                "a session's fingerprint is 64 lowercase hex digits"
            };
            Refusal::new(Code::NoRuns, fact).found(fingerprint)
        };
        let place = self
            .sessions
            .iter()
            .position(|known| known == fingerprint)
            .ok_or_else(none)?;
        let mut calls = Vec::new();
        let mut close = None;
        for seen in &self.lines {
            match seen.what {
                What::Call(of) if of == place => calls.push(self.facts(&seen.at, false)?),
                What::Close(of) if of == place => close = Some(seen.at),
                _ => {}
            }
        }
        let close = close.ok_or_else(|| {
            Refusal::new(Code::SessionOpen, "the session has no close").found(fingerprint)
        })?;
        Session::new(fingerprint, calls, close)
            .map(Subject::Session)
            .ok_or_else(|| none().into())
    }

    fn facts(&self, at: &LineRef, git_blobs: bool) -> Result<CallFacts, BomError> {
        let bytes = verified(self.store, at)?;
        reread(&bytes, at, git_blobs)
    }
}

/// The facts of a call line that was verified before, byte for byte.
pub(crate) fn reread(bytes: &[u8], at: &LineRef, git_blobs: bool) -> Result<CallFacts, BomError> {
    let line = Line::decode(bytes)?;
    let lost = || BomError::Evidence(Fault::new(StatementReason::Json));
    let envelope = line.envelope.as_ref().ok_or_else(lost)?;
    let record: RunRecord = match statement::read_unverified(&envelope.payload_bytes()?)? {
        Unverified::Record(record) => *record,
        _ => return Err(lost()),
    };
    let request: RunRequest =
        proto::decode(line.request.as_deref().unwrap_or_default()).map_err(|_| lost())?;
    let response: Option<RunResponse> = line
        .response
        .as_deref()
        .map(proto::decode)
        .transpose()
        .map_err(|_| lost())?;
    Ok(CallFacts::of(
        *at,
        record,
        &request,
        response.as_ref(),
        git_blobs,
    ))
}

fn no_such_line(number: u64) -> Refusal {
    Refusal::new(Code::NoRuns, Reason::NoLine.text()).line(number)
}

fn many_runs(lines: &[u64]) -> Refusal {
    let shown: Vec<String> = lines.iter().take(LISTED).map(u64::to_string).collect();
    let more = if lines.len() > LISTED {
        " and more"
    } else {
        ""
    };
    Refusal::new(
        Code::ManyRuns,
        format!(
            "the bundle holds more than one call: lines {}{more}",
            shown.join(", ")
        ),
    )
}

struct Index<'p> {
    lines: Vec<Seen>,
    sessions: Vec<String>,
    places: std::collections::HashMap<String, usize>,
    next: What,
    progress: &'p mut dyn FnMut(u64),
}

impl Index<'_> {
    fn place(&mut self, fingerprint: &str) -> usize {
        if let Some(place) = self.places.get(fingerprint) {
            return *place;
        }
        let place = self.sessions.len();
        self.sessions.push(fingerprint.to_owned());
        self.places.insert(fingerprint.to_owned(), place);
        place
    }
}

impl Visitor for Index<'_> {
    fn call(&mut self, call: &Call<'_>) {
        self.next = if call.is_single_run() {
            What::Run
        } else {
            What::Call(self.place(&call.record.session))
        };
    }

    fn close(&mut self, _: u64, close: &SessionClose) {
        self.next = What::Close(self.place(&close.session));
    }

    fn line(&mut self, line: &SeenLine) {
        self.lines.push(Seen {
            at: LineRef {
                number: line.number,
                offset: line.offset,
                length: line.length,
                digest: line.digest,
            },
            what: std::mem::replace(&mut self.next, What::Checkpoint),
        });
        (self.progress)(line.length.saturating_add(1));
    }
}
