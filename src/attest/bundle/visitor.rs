//! What a verification hands out while it goes through a bundle.

use plimsoll_record::Digest;
use plimsoll_wire::proto::{RunRecord, RunRequest, RunResponse};

use crate::{line::LineDigests, statement::SessionClose};

/// A call whose record, envelope and stored messages were checked.
#[derive(Debug)]
pub struct Call<'a> {
    /// Its line, counted from 1.
    pub line: u64,
    /// Where the line begins in the file.
    pub offset: u64,
    /// The line's bytes without the newline.
    pub bytes: &'a [u8],
    /// The line's digests.
    pub digests: LineDigests,
    /// The signed record. Its request and result digests were recomputed from
    /// the stored messages.
    pub record: RunRecord,
    /// The stored request; fields this version does not know are gone.
    pub request: RunRequest,
    /// The stored response; `None` for an unanswered call.
    pub response: Option<RunResponse>,
}

impl Call<'_> {
    /// Whether the call belongs to no session.
    #[must_use]
    pub fn is_single_run(&self) -> bool {
        self.record.session.is_empty()
    }
}

/// A line in its place.
#[derive(Clone, Copy, Debug)]
pub struct SeenLine {
    /// Its number, counted from 1.
    pub number: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its length without the newline.
    pub length: u64,
    /// Its LineDigest.
    pub digest: Digest,
    /// Whether it is a checkpoint.
    pub checkpoint: bool,
}

/// Sees the parts of a bundle in order, in the same pass that verifies them.
///
/// What it sees holds up to the line seen: a later line may still refuse the
/// bundle, so its own verdict counts only when the verification succeeds.
pub trait Visitor {
    /// A call that was checked.
    fn call(&mut self, call: &Call<'_>) {
        let _ = call;
    }

    /// A session's close that was checked.
    fn close(&mut self, line: u64, close: &SessionClose) {
        let _ = (line, close);
    }

    /// Any line, after its call or close.
    fn line(&mut self, line: &SeenLine) {
        let _ = line;
    }
}

impl Visitor for () {}

impl<V: Visitor + ?Sized> Visitor for &mut V {
    fn call(&mut self, call: &Call<'_>) {
        (**self).call(call);
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        (**self).close(line, close);
    }

    fn line(&mut self, line: &SeenLine) {
        (**self).line(line);
    }
}

impl<A: Visitor, B: Visitor> Visitor for (A, B) {
    fn call(&mut self, call: &Call<'_>) {
        self.0.call(call);
        self.1.call(call);
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        self.0.close(line, close);
        self.1.close(line, close);
    }

    fn line(&mut self, line: &SeenLine) {
        self.0.line(line);
        self.1.line(line);
    }
}
