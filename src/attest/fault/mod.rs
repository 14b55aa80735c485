//! A refusal: class, reason, place and the two values that differ.

mod class;
mod reason;

use std::{fmt, io, ops::Range};

pub use class::{Class, Reason};
pub use reason::{
    AnchorReason, ChainReason, ExpectedReason, IncompleteReason, LineReason, LinkReason,
    NotACallReason, ReservedReason, SealReason, SignatureReason, StatementReason, StoredReason,
};

/// Most bytes of a foreign value a refusal keeps.
const MAX_VALUE_BYTES: usize = 1024;

/// A refusal. `expected`, `found` and `member` may hold foreign text: they are
/// data, to be escaped before they reach a terminal.
#[derive(Clone, Eq, PartialEq)]
pub struct Fault(Box<Parts>);

#[derive(Clone, Debug, Eq, PartialEq)]
struct Parts {
    reason: Reason,
    line: Option<u64>,
    member: Option<String>,
    bytes: Option<Range<u64>>,
    expected: Option<String>,
    found: Option<String>,
    last_checkpoint: Option<u64>,
    missing: Vec<String>,
    unexpected: Vec<String>,
}

impl Fault {
    /// A refusal for `reason`, with no place yet.
    #[must_use]
    pub fn new(reason: impl Into<Reason>) -> Self {
        Fault(Box::new(Parts {
            reason: reason.into(),
            line: None,
            member: None,
            bytes: None,
            expected: None,
            found: None,
            last_checkpoint: None,
            missing: Vec::new(),
            unexpected: Vec::new(),
        }))
    }

    pub(crate) fn with_reason(mut self, reason: impl Into<Reason>) -> Self {
        self.0.reason = reason.into();
        self
    }

    pub(crate) fn io(error: &io::Error) -> Self {
        Fault::new(Reason::Io(error.kind())).found(error)
    }

    /// Names the line, counted from 1.
    #[must_use]
    pub fn at_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// Names the member, as a dotted path.
    #[must_use]
    pub fn in_member(mut self, member: impl Into<String>) -> Self {
        self.0.member = Some(cut(member.into()));
        self
    }

    /// Puts an outer member in front of the path.
    pub(crate) fn under(mut self, outer: &str) -> Self {
        self.0.member = Some(match self.0.member.take() {
            Some(inner) => format!("{outer}.{inner}"),
            None => outer.to_owned(),
        });
        self
    }

    pub(crate) fn over_bytes(mut self, bytes: Range<usize>) -> Self {
        self.0.bytes = Some(bytes.start as u64..bytes.end as u64);
        self
    }

    /// Names the whole line where nothing narrower is known.
    pub(crate) fn over_line(self, length: usize) -> Self {
        if self.0.bytes.is_some() {
            return self;
        }
        self.over_bytes(0..length)
    }

    /// Makes a byte range of a line one of the file.
    pub(crate) fn shifted(mut self, by: u64) -> Self {
        if let Some(bytes) = &mut self.0.bytes {
            *bytes = bytes.start.saturating_add(by)..bytes.end.saturating_add(by);
        }
        self
    }

    /// States what was expected there; at most 1 KiB is kept.
    #[must_use]
    pub fn expected(mut self, value: impl ToString) -> Self {
        self.0.expected = Some(cut(value.to_string()));
        self
    }

    /// States what was found there; at most 1 KiB is kept.
    #[must_use]
    pub fn found(mut self, value: impl ToString) -> Self {
        self.0.found = Some(cut(value.to_string()));
        self
    }

    pub(crate) fn after_checkpoint(mut self, line: Option<u64>) -> Self {
        self.0.last_checkpoint = line;
        self
    }

    pub(crate) fn lists(mut self, missing: Vec<String>, unexpected: Vec<String>) -> Self {
        self.0.missing = missing;
        self.0.unexpected = unexpected;
        self
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.reason.class()
    }

    /// The reason within the class.
    #[must_use]
    pub fn reason(&self) -> Reason {
        self.0.reason
    }

    /// The line, counted from 1; 0 where a file has none.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.0.line
    }

    /// The member, as a dotted path from the top of the line or envelope.
    #[must_use]
    pub fn member(&self) -> Option<&str> {
        self.0.member.as_deref()
    }

    /// The bytes it is about, from the start of what was read, end excluded.
    #[must_use]
    pub fn bytes(&self) -> Option<Range<u64>> {
        self.0.bytes.clone()
    }

    /// What was expected there.
    #[must_use]
    pub fn expected_value(&self) -> Option<&str> {
        self.0.expected.as_deref()
    }

    /// What was found there.
    #[must_use]
    pub fn found_value(&self) -> Option<&str> {
        self.0.found.as_deref()
    }

    /// The number of the last checkpoint line before the fault, for a bundle
    /// that was cut or is being written: cut back to it, the file is whole.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<u64> {
        self.0.last_checkpoint
    }

    /// Requests expected and not in the bundle, as lines to show.
    #[must_use]
    pub fn missing(&self) -> &[String] {
        &self.0.missing
    }

    /// Requests in the bundle and not expected, as lines to show.
    #[must_use]
    pub fn unexpected(&self) -> &[String] {
        &self.0.unexpected
    }
}

/// A value in a line may be megabytes long; a refusal keeps its beginning.
fn cut(mut text: String) -> String {
    if text.len() > MAX_VALUE_BYTES {
        text.truncate(text.floor_char_boundary(MAX_VALUE_BYTES));
        text.push('…');
    }
    text
}

impl fmt::Display for Fault {
    /// Line and fact only: nothing foreign.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.0.line {
            write!(f, "line {line}: ")?;
        }
        f.write_str(self.0.reason.text())
    }
}

impl fmt::Debug for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl std::error::Error for Fault {}
