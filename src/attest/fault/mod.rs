//! A refusal: class, reason, place and the two values that differ.

mod reason;

use std::{fmt, io, ops::Range};

pub use reason::{
    ChainReason, ExpectedReason, IncompleteReason, LineReason, LinkReason, NotACallReason,
    ReservedReason, SealReason, SignatureReason, StatementReason, StoredReason,
};

/// The stable class of a refusal. A class may be added; none changes its meaning.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Class {
    /// A line is not in its exact form.
    Line,
    /// A line's link is missing or wrong.
    Link,
    /// No signature counts.
    Signature,
    /// A signed statement is not of its form.
    Statement,
    /// A stored message does not belong to its record.
    Stored,
    /// A session's chain is broken.
    Chain,
    /// The bundle does not end in a checkpoint.
    Incomplete,
    /// An expectation about the calls is not met.
    Expected,
    /// The bundle verifies and holds no call.
    Empty,
    /// A statement type that belongs to this system.
    Reserved,
    /// The line named is not there.
    NoLine,
    /// The line named holds no call.
    NotACall,
    /// A checked exchange cannot be signed or written.
    Bundle,
    /// Reading failed.
    Io,
}

impl Class {
    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Class::Line => "line",
            Class::Link => "link",
            Class::Signature => "signature",
            Class::Statement => "statement",
            Class::Stored => "stored",
            Class::Chain => "chain",
            Class::Incomplete => "incomplete",
            Class::Expected => "expected",
            Class::Empty => "empty",
            Class::Reserved => "reserved",
            Class::NoLine => "no_line",
            Class::NotACall => "not_a_call",
            Class::Bundle => "bundle",
            Class::Io => "io",
        }
    }
}

impl fmt::Display for Class {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// The reason of a refusal within its class.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Reason {
    /// See [`LineReason`].
    Line(LineReason),
    /// See [`LinkReason`].
    Link(LinkReason),
    /// See [`SignatureReason`].
    Signature(SignatureReason),
    /// See [`StatementReason`].
    Statement(StatementReason),
    /// See [`StoredReason`].
    Stored(StoredReason),
    /// See [`ChainReason`].
    Chain(ChainReason),
    /// See [`IncompleteReason`].
    Incomplete(IncompleteReason),
    /// See [`ExpectedReason`].
    Expected(ExpectedReason),
    /// The bundle verifies and holds no call.
    Empty,
    /// See [`ReservedReason`].
    Reserved(ReservedReason),
    /// The file has fewer lines than the number named.
    NoLine,
    /// See [`NotACallReason`].
    NotACall(NotACallReason),
    /// See [`SealReason`].
    Seal(SealReason),
    /// Reading failed with this kind of error.
    Io(io::ErrorKind),
}

impl Reason {
    /// The class this reason belongs to.
    #[must_use]
    pub const fn class(self) -> Class {
        match self {
            Reason::Line(_) => Class::Line,
            Reason::Link(_) => Class::Link,
            Reason::Signature(_) => Class::Signature,
            Reason::Statement(_) => Class::Statement,
            Reason::Stored(_) => Class::Stored,
            Reason::Chain(_) => Class::Chain,
            Reason::Incomplete(_) => Class::Incomplete,
            Reason::Expected(_) => Class::Expected,
            Reason::Empty => Class::Empty,
            Reason::Reserved(_) => Class::Reserved,
            Reason::NoLine => Class::NoLine,
            Reason::NotACall(_) => Class::NotACall,
            Reason::Seal(_) => Class::Bundle,
            Reason::Io(_) => Class::Io,
        }
    }

    /// The stable word within the class.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Reason::Line(r) => r.word(),
            Reason::Link(r) => r.word(),
            Reason::Signature(r) => r.word(),
            Reason::Statement(r) => r.word(),
            Reason::Stored(r) => r.word(),
            Reason::Chain(r) => r.word(),
            Reason::Incomplete(r) => r.word(),
            Reason::Expected(r) => r.word(),
            Reason::Empty => "empty",
            Reason::Reserved(r) => r.word(),
            Reason::NoLine => "no_line",
            Reason::NotACall(r) => r.word(),
            Reason::Seal(r) => r.word(),
            Reason::Io(_) => "read",
        }
    }

    /// The fact, without its place or its data.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Reason::Line(r) => r.text(),
            Reason::Link(r) => r.text(),
            Reason::Signature(r) => r.text(),
            Reason::Statement(r) => r.text(),
            Reason::Stored(r) => r.text(),
            Reason::Chain(r) => r.text(),
            Reason::Incomplete(r) => r.text(),
            Reason::Expected(r) => r.text(),
            Reason::Empty => "the bundle verifies and holds no call",
            Reason::Reserved(r) => r.text(),
            Reason::NoLine => "the file has fewer lines",
            Reason::NotACall(r) => r.text(),
            Reason::Seal(r) => r.text(),
            Reason::Io(_) => "reading failed",
        }
    }
}

macro_rules! into_reason {
    ($($name:ident $variant:ident;)+) => {
        $(impl From<$name> for Reason {
            fn from(reason: $name) -> Self {
                Reason::$variant(reason)
            }
        })+
    };
}

into_reason! {
    LineReason Line;
    LinkReason Link;
    SignatureReason Signature;
    StatementReason Statement;
    StoredReason Stored;
    ChainReason Chain;
    IncompleteReason Incomplete;
    ExpectedReason Expected;
    ReservedReason Reserved;
    NotACallReason NotACall;
    SealReason Seal;
}

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

    pub(crate) fn at_line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    pub(crate) fn in_member(mut self, member: impl Into<String>) -> Self {
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

    pub(crate) fn expected(mut self, value: impl ToString) -> Self {
        self.0.expected = Some(cut(value.to_string()));
        self
    }

    pub(crate) fn found(mut self, value: impl ToString) -> Self {
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
