//! What a BOM describes.

use crate::{
    facts::CallFacts,
    lines::LineRef,
    profile::Kind,
    receipt::{Receipt, Statement},
};

/// What a BOM describes, built from verified evidence alone.
#[derive(Clone, Debug)]
pub enum Subject {
    /// One call.
    Run(Box<CallFacts>),
    /// A closed session.
    Session(Session),
    /// A pull request as tested in one call.
    Receipt(Box<Tested>),
}

/// A closed session of at least one call.
#[derive(Clone, Debug)]
pub struct Session {
    fingerprint: String,
    calls: Vec<CallFacts>,
    close: LineRef,
}

/// The call of a receipt and its two signed statements.
#[derive(Clone, Debug)]
pub struct Tested {
    pub(crate) call: CallFacts,
    pub(crate) receipt: Receipt,
    pub(crate) statements: [Statement; 2],
}

impl Session {
    /// `None` without a call.
    pub(crate) fn new(fingerprint: &str, calls: Vec<CallFacts>, close: LineRef) -> Option<Self> {
        (!calls.is_empty()).then(|| Session {
            fingerprint: fingerprint.to_owned(),
            calls,
            close,
        })
    }

    /// The session's fingerprint, 64 hex digits.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }
}

impl Subject {
    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Subject::Run(_) => Kind::Run,
            Subject::Session(_) => Kind::Session,
            Subject::Receipt(_) => Kind::Receipt,
        }
    }

    /// Its calls in order; at least one.
    #[must_use]
    pub fn calls(&self) -> &[CallFacts] {
        match self {
            Subject::Run(call) => std::slice::from_ref(call),
            Subject::Session(session) => &session.calls,
            Subject::Receipt(tested) => std::slice::from_ref(&tested.call),
        }
    }

    /// The signed lines it rests on, a session's close last.
    pub fn lines(&self) -> impl Iterator<Item = &LineRef> {
        let close = match self {
            Subject::Session(session) => Some(&session.close),
            _ => None,
        };
        self.calls().iter().map(|call| &call.line).chain(close)
    }

    /// The weakest tier that its records state. A word that is no tier is
    /// weaker than all.
    #[must_use]
    pub fn isolation(&self) -> &str {
        let rank = |word: &str| plimsoll_wire::Tier::parse(word);
        let words = self.calls().iter().map(|call| &call.record.isolation);
        words
            .min_by_key(|word| rank(word))
            .map_or("", String::as_str)
    }

    /// The reference of the component that stands for it.
    pub(crate) fn reference(&self) -> String {
        match self {
            Subject::Run(call) => format!("run:{}", call.record.record_sha256),
            Subject::Session(session) => format!("session:{}", session.fingerprint),
            Subject::Receipt(tested) => {
                format!("receipt:{}", tested.receipt.pull_request.head_sha)
            }
        }
    }

    /// The number a call has in references: 1, or its place in the session.
    pub(crate) fn number(&self, call: &CallFacts) -> u64 {
        match self {
            Subject::Session(_) => call.record.sequence,
            _ => 1,
        }
    }

    /// The time the BOM is of, in Unix milliseconds.
    pub(crate) fn unix_ms(&self) -> i64 {
        match self {
            Subject::Receipt(tested) => tested.receipt.created_unix_ms,
            _ => self
                .calls()
                .last()
                .map_or(0, |call| call.record.ended_unix_ms),
        }
    }
}
