//! Refusals of BOMs, as people and scripts see them.

use std::path::Path;

use plimsoll_attestation::PublicKey;
use plimsoll_bom::{BomError, Code, Refusal};
use plimsoll_console::{Class, Failure, fault, files::plain_words};

use crate::refusal;

/// The failure for an error. `evidence` is the file the evidence is in, `bom`
/// the one a refusal of the BOM is about.
pub fn of(error: &BomError, evidence: &Path, bom: &Path, key: &PublicKey) -> Failure {
    match error {
        BomError::Evidence(fault) => refusal::failure(evidence, fault, std::slice::from_ref(key)),
        BomError::Statement(fault) => refusal::failure(bom, fault, std::slice::from_ref(key)),
        BomError::Refused(refusal) => refused(refusal, evidence, bom),
        BomError::Read(error) => Failure::new(
            Class::Io,
            format!("could not be read again: {}", plain_words(error)),
            "The bundle must stay as it is while the command runs. No BOM was written.",
        )
        .file(evidence),
        BomError::Write(error) => Failure::new(
            Class::Io,
            format!("could not be written: {}", plain_words(error)),
            "Check the space on the disk; no part of the BOM is left.",
        )
        .file(bom),
        _ => fault::internal("a built BOM is not valid"),
    }
}

fn refused(refusal: &Refusal, evidence: &Path, bom: &Path) -> Failure {
    let class = class(refusal.code);
    let mut failure = Failure::new(class, refusal.fact.as_str(), cure(refusal.code));
    failure = match refusal.line {
        Some(line) if refusal.pointer.is_none() => failure.line(line),
        _ => failure,
    };
    // The empty pointer is the whole BOM: there is no narrower place to name.
    if let Some(pointer) = refusal.pointer.as_ref().filter(|p| !p.is_empty()) {
        failure = failure.pointer(pointer);
    }
    if let Some(offset) = refusal.offset {
        failure = failure.offset(offset);
    }
    if let Some(expected) = &refusal.expected {
        failure = failure.expected(expected);
    }
    if let Some(found) = &refusal.found {
        failure = failure.found(found);
    }
    failure.file(if is_of_bundle(refusal.code) {
        evidence
    } else {
        bom
    })
}

/// Whether a refusal is about the bundle and not about a BOM.
fn is_of_bundle(code: Code) -> bool {
    matches!(
        code,
        Code::ManyRuns
            | Code::NoRuns
            | Code::NotACall
            | Code::SessionOpen
            | Code::TooLarge
            | Code::TimeRange
    )
}

fn class(code: Code) -> Class {
    Class::ALL
        .iter()
        .copied()
        .find(|class| class.word() == code.word())
        .unwrap_or(Class::Internal)
}

fn cure(code: Code) -> &'static str {
    match code {
        Code::ManyRuns => "Choose one with --line N or --session FINGERPRINT, or give --all.",
        Code::NoRuns => "inspect shows which lines are calls and which sessions they belong to.",
        Code::NotACall => {
            "Name a call's line; inspect shows them. --session takes a whole session."
        }
        Code::SessionOpen => {
            "A session without its close looks like one that was cut. Name one of its calls with \
             --line."
        }
        Code::TooLarge => {
            "Give --attach envelope to leave out requests and answers, or raise --max-attach."
        }
        Code::TimeRange => "Such a record has no time that a BOM can state. Ask whoever signed it.",
        Code::BomParse => "Get the BOM again as it was written.",
        Code::BomNotCanonical => {
            "The BOM went through another program. Get it again byte for byte; to compare what it \
             says, use the values of the JSON report."
        }
        Code::BomSchema => {
            "The place and the schema's keyword are above. This BOM was not written by this \
             program."
        }
        Code::BomProfile => {
            "This BOM follows other rules than this program knows. A newer release may check it."
        }
        Code::BomSerial => "The BOM was changed after it was written. Get it again.",
        Code::KeyMismatch => {
            "Give the key you trust with --pub. If it is this one, the BOM is not of runs it \
             signed."
        }
        Code::AttachmentMissing => "Check it against the bundle with --bundle.",
        Code::AttachmentHash => {
            "The attachment was changed after the BOM was written. Get it again."
        }
        Code::AttachmentEvidenceMismatch => {
            "The BOM is of another bundle, or was changed. Name the bundle it was made from."
        }
        Code::BindingMismatch => {
            "The statements are not of this call. Get all files of the receipt again."
        }
        _ => {
            "The evidence is good and gives another BOM: this one was changed, or made with other \
             rules. Build it again with sbom."
        }
    }
}
