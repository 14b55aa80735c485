//! Why a BOM is not built or not accepted.

use std::{fmt, io};

use plimsoll_attestation::Fault;

/// Longest kept form of a value, in characters.
const VALUE_CHARS: usize = 120;

/// The stable code of a refusal that is not the evidence's own.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
#[non_exhaustive]
pub enum Code {
    /// The selection holds more than one run.
    ManyRuns,
    /// The selection holds no run.
    NoRuns,
    /// The line named holds no call.
    NotACall,
    /// The session has no close.
    SessionOpen,
    /// A line or the BOM is larger than allowed.
    TooLarge,
    /// A time is outside of the years 1970 to 9999.
    TimeRange,
    /// The BOM is no strict JSON.
    BomParse,
    /// The BOM is not in its file form.
    BomNotCanonical,
    /// The BOM does not meet the CycloneDX schema of its version.
    BomSchema,
    /// The BOM does not state these rules, or not as they say.
    BomProfile,
    /// The serial number is not the one the content gives.
    BomSerial,
    /// The BOM names another key.
    KeyMismatch,
    /// Evidence that must be attached is not.
    AttachmentMissing,
    /// An attachment does not decode or has another digest or size.
    AttachmentHash,
    /// An attachment is not the evidence's.
    AttachmentEvidenceMismatch,
    /// A digest in a receipt's statement names something else.
    BindingMismatch,
    /// The BOM rebuilt from good evidence differs.
    BomMismatch,
}

impl Code {
    /// The stable word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Code::ManyRuns => "many_runs",
            Code::NoRuns => "no_runs",
            Code::NotACall => "not_a_call",
            Code::SessionOpen => "session_open",
            Code::TooLarge => "too_large",
            Code::TimeRange => "time_range",
            Code::BomParse => "bom_parse",
            Code::BomNotCanonical => "bom_not_canonical",
            Code::BomSchema => "bom_schema",
            Code::BomProfile => "bom_profile",
            Code::BomSerial => "bom_serial",
            Code::KeyMismatch => "key_mismatch",
            Code::AttachmentMissing => "attachment_missing",
            Code::AttachmentHash => "attachment_hash",
            Code::AttachmentEvidenceMismatch => "attachment_evidence_mismatch",
            Code::BindingMismatch => "binding_mismatch",
            Code::BomMismatch => "bom_mismatch",
        }
    }
}

/// A refusal: its code, the fact, the place and the values that differ. Values
/// are foreign text, cut to 120 characters, to be escaped before they are shown.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refusal {
    /// The code.
    pub code: Code,
    /// The fact as a sentence without a full stop; nothing foreign in it.
    pub fact: String,
    /// The member of the BOM, as a JSON pointer.
    pub pointer: Option<String>,
    /// The byte of the BOM, counted from 0.
    pub offset: Option<u64>,
    /// The line of the bundle.
    pub line: Option<u64>,
    /// What was expected.
    pub expected: Option<String>,
    /// What was found.
    pub found: Option<String>,
}

impl Refusal {
    pub(crate) fn new(code: Code, fact: impl Into<String>) -> Self {
        Refusal {
            code,
            fact: fact.into(),
            pointer: None,
            offset: None,
            line: None,
            expected: None,
            found: None,
        }
    }

    pub(crate) fn at(mut self, pointer: impl Into<String>) -> Self {
        self.pointer = Some(pointer.into());
        self
    }

    pub(crate) fn byte(mut self, offset: u64) -> Self {
        self.offset = Some(offset);
        self
    }

    pub(crate) fn line(mut self, line: u64) -> Self {
        self.line = Some(line);
        self
    }

    pub(crate) fn expected(mut self, value: impl fmt::Display) -> Self {
        self.expected = Some(cut(&value.to_string()));
        self
    }

    pub(crate) fn found(mut self, value: impl fmt::Display) -> Self {
        self.found = Some(cut(&value.to_string()));
        self
    }
}

fn cut(text: &str) -> String {
    match text.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    }
}

/// Why a BOM is not built or not accepted.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BomError {
    /// The evidence does not verify; its class is the code.
    #[error("{0}")]
    Evidence(Fault),
    /// A receipt's statement does not open; its class is the code. The fault is
    /// in the statement and not in the bundle.
    #[error("{0}")]
    Statement(Fault),
    /// The selection or the BOM is refused.
    #[error("{}", .0.fact)]
    Refused(Box<Refusal>),
    /// The bundle could not be read again, or changed after it was verified.
    #[error("the bundle could not be read again: {0}")]
    Read(io::Error),
    /// The output could not be written.
    #[error("the BOM could not be written: {0}")]
    Write(io::Error),
    /// A BOM of this crate's own making does not meet the schema: a bug.
    #[error("a built BOM does not meet the schema: {0}")]
    Internal(String),
}

impl BomError {
    /// The stable word of the refusal; `io` and `internal` for the others.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            BomError::Evidence(fault) | BomError::Statement(fault) => fault.class().word(),
            BomError::Refused(refusal) => refusal.code.word(),
            BomError::Read(_) | BomError::Write(_) => "io",
            BomError::Internal(_) => "internal",
        }
    }
}

impl From<Fault> for BomError {
    fn from(fault: Fault) -> Self {
        BomError::Evidence(fault)
    }
}

impl From<Refusal> for BomError {
    fn from(refusal: Refusal) -> Self {
        BomError::Refused(Box::new(refusal))
    }
}
