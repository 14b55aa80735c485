//! The classes of refusals, and the reasons of them all together.

use std::{fmt, io};

use super::reason::{
    AnchorReason, ChainReason, ExpectedReason, IncompleteReason, LineReason, LinkReason,
    NotACallReason, ReservedReason, SealReason, SignatureReason, StatementReason, StoredReason,
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
    /// The bundle does not meet the anchor kept outside it.
    Anchor,
    /// A part of this program failed: no verdict, and a bug.
    Internal,
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
            Class::Anchor => "anchor",
            Class::Internal => "internal",
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
    /// See [`AnchorReason`].
    Anchor(AnchorReason),
    /// A thread of the verification ended without a result.
    Internal,
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
            Reason::Anchor(_) => Class::Anchor,
            Reason::Internal => Class::Internal,
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
            Reason::Anchor(r) => r.word(),
            Reason::Internal => "thread",
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
            Reason::Anchor(r) => r.text(),
            Reason::Internal => "a thread of the verification ended without a result",
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
    AnchorReason Anchor;
}
