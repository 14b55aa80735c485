//! What is wrong with a registry, and where.

use std::fmt;

use plimsoll_wire::strict_json;

/// At most this many faults are kept: more help nobody, and a hostile file must
/// not cost more than it is long.
const KEPT: usize = 100;
/// Longest part of a foreign name that is shown.
const SHOWN: usize = 64;

/// One fault, with the place in the document it is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// JSON pointer (RFC 6901); empty for the whole document.
    pub pointer: String,
    /// Byte of the file, when the text itself is not readable there.
    pub offset: Option<usize>,
    /// What is wrong.
    pub kind: FaultKind,
}

/// What is wrong. No kind holds a token or a fingerprint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FaultKind {
    /// Not the one JSON object a registry is.
    #[error("{0}")]
    NotJson(strict_json::Fault),
    /// A number no reader can hold.
    #[error("a number is out of range")]
    Number,
    /// More text than a registry may have.
    #[error("the registry is larger than {} bytes", crate::MAX_BYTES)]
    TooLarge,
    /// A member that a registry does not have.
    #[error("unknown field {0:?}")]
    Unknown(String),
    /// A member that must be there.
    #[error("the field {0} is missing")]
    Missing(&'static str),
    /// A value of another type.
    #[error("must be {0}")]
    Type(&'static str),
    /// No identity.
    #[error("the ID is empty")]
    EmptyId,
    /// The identity that would mean everyone.
    #[error("the ID * stands for every caller and can be none")]
    StarId,
    /// An identity that could forge a log line.
    #[error("the ID holds a control character")]
    ControlInId,
    /// Two callers of one identity.
    #[error("another caller has this ID")]
    RepeatedId,
    /// Not a SHA-256.
    #[error("must be 64 hex digits, the SHA-256 of the token")]
    NotAFingerprint,
    /// Two callers of one token.
    #[error("another caller has the same token")]
    RepeatedToken,
    /// A scope that is empty or no single word.
    #[error("a scope is not empty and has no white space or control characters")]
    BadScope,
    /// A scope twice.
    #[error("the caller has this scope already")]
    RepeatedScope,
    /// Nobody to serve.
    #[error("the registry is empty: no caller could be served")]
    Empty,
}

impl FaultKind {
    /// An unknown member's name, cut so that a message stays one.
    pub(crate) fn unknown(name: &str) -> FaultKind {
        FaultKind::Unknown(name.chars().take(SHOWN).collect())
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.offset, self.pointer.as_str()) {
            (Some(offset), _) => write!(f, "byte {offset}: {}", self.kind),
            (None, "") => write!(f, "{}", self.kind),
            (None, pointer) => write!(f, "{pointer}: {}", self.kind),
        }
    }
}

/// Every fault of a registry, in the order of its text; at least one. Past a
/// hundred the rest is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    kept: Vec<Fault>,
    more: usize,
}

impl Faults {
    pub(crate) fn none() -> Faults {
        Faults {
            kept: Vec::new(),
            more: 0,
        }
    }

    pub(crate) fn one(fault: Fault) -> Faults {
        Faults {
            kept: vec![fault],
            more: 0,
        }
    }

    /// The faults that are kept.
    #[must_use]
    pub fn kept(&self) -> &[Fault] {
        &self.kept
    }

    /// How many more there are.
    #[must_use]
    pub fn more(&self) -> usize {
        self.more
    }

    pub(crate) fn is_none(&self) -> bool {
        self.kept.is_empty()
    }

    pub(crate) fn add(&mut self, pointer: &str, kind: FaultKind) {
        if self.kept.len() < KEPT {
            self.kept.push(Fault {
                pointer: pointer.to_owned(),
                offset: None,
                kind,
            });
        } else {
            self.more += 1;
        }
    }
}

impl fmt::Display for Faults {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.kept.iter().enumerate() {
            let between = if index == 0 { "" } else { "; " };
            write!(f, "{between}{fault}")?;
        }
        match self.more {
            0 => Ok(()),
            more => write!(f, "; and {more} more"),
        }
    }
}

impl std::error::Error for Faults {}
