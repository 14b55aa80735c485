//! Failures of a run: class, whether anything ran, and what to do.

use std::path::Path;

use plimsoll_attestation::{
    Fault, Reason,
    anchor::{AnchorFault, AnchorFile},
    bundle::{AppendError, AppendFault, Cut},
    fault::SignatureReason,
};
use plimsoll_client::{CallFailure, Ran as ClientRan};
use plimsoll_console::{Class, ExitCode, Failure, failure::Ran, files::plain_words};
use plimsoll_harness::{
    RunFailure,
    artifacts::SaveError,
    failure::{self as harness, NotKept, class_of_call},
};
use plimsoll_record::check::RecordError;
use plimsoll_wire::{Kind, Reason as NotDispatched};

use super::Facts;
use crate::{anchors, refusal};

/// A text without the numbers of system errors, which say nothing to a reader.
pub fn plain(text: &str) -> String {
    const BEGIN: &str = " (os error ";
    let (mut plain, mut rest) = (String::with_capacity(text.len()), text);
    while let Some((before, after)) = rest.split_once(BEGIN) {
        plain.push_str(before);
        rest = match after.split_once(')') {
            Some((number, rest)) if number.bytes().all(|b| b.is_ascii_digit()) => rest,
            // Not a system error: someone else's words stay.
            _ => {
                plain.push_str(BEGIN);
                after
            }
        };
    }
    plain + rest
}

/// The machine does not allow the run.
pub fn environment(fact: &str) -> Failure {
    Failure::new(
        Class::Environment,
        format!("{fact}; nothing was run"),
        "Run it again once the machine allows it.",
    )
    .ran(Ran::No)
}

/// A run that did not end in a kept record.
pub fn of_run(failed: &RunFailure, facts: &Facts, anchored: Option<u64>) -> Failure {
    if let (RunFailure::Bundle(AppendFault::Guard(error)), Some(anchor)) = (failed, &facts.anchor)
        && let Some(failure) = of_anchor(error.as_ref(), anchor, facts)
    {
        return failure.adding("; nothing was run").ran(Ran::No);
    }
    let class = class(failed.class());
    let fact = match failed {
        RunFailure::Bundle(AppendFault::Open(error)) => format!(
            "the bundle cannot be opened: {}; nothing was run",
            plain_words(error)
        ),
        other => plain(&other.to_string()),
    };
    let mut failure =
        Failure::new(class, fact, advice(failed, facts, anchored)).ran(ran(failed.ran()));
    if let Some(reason) = failed.reason() {
        failure = failure.reason(reason);
    }
    match failed {
        RunFailure::Bundle(fault) => bundle(failure, fault, facts),
        RunFailure::Call(call) => of_answer(failure, call),
        RunFailure::NotKept { why, .. } => {
            let failure = failure.file(&facts.bundle);
            match why {
                NotKept::Append(error) => not_appended(failure, &error.fault),
                _ => failure,
            }
        }
        RunFailure::Artifacts(error) => of_artifacts(failure, error).exit(ExitCode::Usage),
        RunFailure::Client(_) | RunFailure::Environment(_) => failure,
    }
}

/// Adds the folder or file that artifacts could not be written to, or the path
/// that leads elsewhere.
pub fn of_artifacts(failure: Failure, error: &SaveError) -> Failure {
    match error {
        SaveError::NotAsked { path } | SaveError::UnsafePath { path } => {
            failure.found(path.display())
        }
        _ => failure.file(error.path()),
    }
}

/// The reason of a failed append, and what the system said of it.
fn not_appended(failure: Failure, fault: &AppendFault) -> Failure {
    let failure = failure.reason(fault.reason());
    let (AppendFault::Seal(fault) | AppendFault::Evidence(fault)) = fault else {
        return failure;
    };
    match fault.found_value() {
        Some(found) => failure.found(plain(found)),
        None => failure,
    }
}

/// A call that failed, of a single run or of a session.
pub fn of_call(call: &CallFailure, embedded: bool) -> Failure {
    let class = class_of_call(call);
    let text = match class {
        harness::Class::NotDispatched => format!(
            "refused before anything ran, reason {}: {call}",
            call.not_dispatched().map_or("unknown", NotDispatched::name)
        ),
        harness::Class::Unreachable => format!("{call}; nothing was sent, nothing was run"),
        harness::Class::Request => format!("{call}; nothing was run"),
        harness::Class::Unchecked => {
            format!("it may have run; its record was refused and not signed: {call}")
        }
        harness::Class::NotKept => format!("it ran and was not kept: {call}"),
        _ => format!("it may have run; do not send it again blindly: {call}"),
    };
    let mut failure = Failure::new(
        self::class(class),
        plain(&text),
        call_advice(call, embedded),
    )
    .ran(ran(call.ran));
    if let Some(reason) = call.not_dispatched() {
        failure = failure.reason(reason.name());
    }
    of_answer(failure, call)
}

fn of_answer(mut failure: Failure, call: &CallFailure) -> Failure {
    if let Some(fault) = call.tls {
        failure = failure.reason(fault.word());
    }
    if !call.member.is_empty() {
        failure = failure.member(&call.member);
    }
    match &call.record_error {
        Some(
            RecordError::Mismatch {
                field,
                expected,
                found,
            }
            | RecordError::Chain {
                field,
                expected,
                found,
            },
        ) => failure
            .member(format!("record.{field}"))
            .expected(expected)
            .found(found),
        Some(RecordError::IsolationEvidence { floor, tier }) => failure
            .member("record.isolation")
            .expected(format!("{floor} or stronger"))
            .found(tier),
        Some(RecordError::Version { found }) => failure.member("record.version").found(found),
        Some(RecordError::NoRecord) => failure.member("record"),
        None => failure,
    }
}

fn bundle(failure: Failure, fault: &AppendFault, facts: &Facts) -> Failure {
    let failure = failure.file(&facts.bundle);
    match fault {
        AppendFault::Evidence(evidence) => {
            let failure = match evidence.line().filter(|&line| line > 0) {
                Some(line) => failure.line(line),
                None => failure,
            };
            let failure = match evidence.expected_value() {
                Some(expected) => failure.expected(expected),
                None => failure,
            };
            match evidence.found_value() {
                Some(found) => failure.found(found),
                None => failure,
            }
        }
        AppendFault::Open(_) | AppendFault::Sync(_) => failure.exit(ExitCode::Usage),
        _ => failure,
    }
}

fn class(class: harness::Class) -> Class {
    Class::ALL
        .iter()
        .copied()
        .find(|known| known.word() == class.word())
        .unwrap_or(Class::Internal)
}

fn ran(ran: ClientRan) -> Ran {
    match ran {
        ClientRan::No { .. } => Ran::No,
        ClientRan::Maybe => Ran::Maybe,
        ClientRan::Yes => Ran::Yes,
    }
}

fn advice(failed: &RunFailure, facts: &Facts, anchored: Option<u64>) -> String {
    match failed {
        RunFailure::Bundle(AppendFault::Permissions { .. }) => format!(
            "Take them away with chmod 600 {}, or give --shared-bundle if others may read it.",
            facts.bundle
        ),
        RunFailure::Bundle(AppendFault::Evidence(fault)) => not_continued(fault),
        RunFailure::Bundle(AppendFault::Locked) => {
            "Another run holds the bundle's lock. Wait for it, or use another bundle.".to_owned()
        }
        RunFailure::Bundle(_) => {
            "Name a regular file in a writable directory with --bundle.".to_owned()
        }
        RunFailure::Artifacts(_) => {
            "Name a directory that does not exist or is empty with --save-artifacts.".to_owned()
        }
        RunFailure::Client(_) => "Check --daemon, --ca-file, --timeout and --wait.".to_owned(),
        RunFailure::Environment(error) => match error.last_line() {
            Some(line) => format!("The embedded daemon's last line: {line}"),
            None => "Run plimsoll-attest daemon by itself to see why.".to_owned(),
        },
        RunFailure::Call(call) => call_advice(call, facts.embedded),
        RunFailure::NotKept { why, .. } => match why {
            NotKept::Append(error) => kept(error),
            NotKept::Anchor { .. } => write_anchor(facts, anchored),
            NotKept::Sign(_) => "The exchange could not be signed, so nothing proves this run. \
                                 Please report it."
                .to_owned(),
        },
    }
}

fn not_continued(fault: &Fault) -> String {
    match (fault.reason(), fault.last_checkpoint()) {
        (_, Some(line)) => format!(
            "Such a bundle cannot be continued. If a crash damaged it after line {line}, its last \
             checkpoint, cut it back to that line; otherwise start a new one with --bundle FILE."
        ),
        (Reason::Signature(SignatureReason::OtherKey), None) => {
            "A bundle is continued with the key that wrote it: name that with --key, or start a \
             new one with --bundle FILE."
                .to_owned()
        }
        _ => format!(
            "Such a bundle cannot be continued; start a new one with --bundle FILE. {}",
            refusal::cure(fault, &[])
        ),
    }
}

/// The refusal of an anchor, or why it could not be read.
fn of_anchor(
    error: &(dyn std::error::Error + 'static),
    anchor: &Path,
    facts: &Facts,
) -> Option<Failure> {
    let bundle = Path::new(&facts.bundle);
    match error.downcast_ref::<Fault>() {
        Some(fault) => Some(anchors::refused(anchor, bundle, fault)),
        None => error
            .downcast_ref::<AnchorFault>()
            .map(|fault| anchors::failure(anchor, bundle, fault).exit(ExitCode::Usage)),
    }
}

/// Whether an anchor can be kept at a place, before anything runs.
///
/// # Errors
/// Class `io`, exit 2.
pub fn anchor_place(anchor: &Path, bundle: &Path) -> Result<(), Failure> {
    let refused = |what: String, advice: &str| {
        Err(Failure::new(Class::Io, what, advice)
            .file(anchor)
            .ran(Ran::No))
    };
    if anchor.is_symlink() {
        return refused(
            "the anchor's path is a symbolic link".to_owned(),
            "Name the file itself, or remove the link.",
        );
    }
    if let Err(error) = plimsoll_harness::can_be_made(anchor) {
        return refused(
            format!(
                "the anchor could not be written here: {}",
                plain_words(&error)
            ),
            "Name a file in a directory that is there and can be written.",
        );
    }
    // After the run it would be too late to find that it cannot be locked.
    let file = AnchorFile::new(&anchors::DISK, anchor, Vec::new());
    file.lockable()
        .map_err(|fault| anchors::failure(anchor, bundle, &fault).ran(Ran::No))
}

/// How to write an anchor that a run could not write; `anchored` is the line it
/// names.
pub fn write_anchor(facts: &Facts, anchored: Option<u64>) -> String {
    let Some(anchor) = &facts.anchor else {
        return "The bundle is complete.".to_owned();
    };
    let still = match anchored {
        Some(line) => format!("The anchor still names line {line}"),
        None => "No anchor was kept yet".to_owned(),
    };
    format!(
        "The bundle is complete. {still}; write it with: plimsoll-attest verify --pub FILE \
         --write-anchor {} {}",
        anchor.display(),
        facts.bundle
    )
}

/// What became of a signed entry whose append failed.
pub fn kept(error: &AppendError) -> String {
    let mut text = match &error.kept {
        Ok(file) => format!(
            "The signed entry, without a link, was kept in {}. Keep that file: it proves the run.",
            file.display()
        ),
        Err(failed) => format!(
            "The signed entry could not be kept either ({}), so nothing proves this run. Give the \
             bundle's directory room and permission before the next one.",
            plain_words(failed)
        ),
    };
    if let Cut::Failed(_) = error.cut {
        text += " The bundle may hold part of a line: verify it before the next run.";
    }
    text
}

fn call_advice(call: &CallFailure, embedded: bool) -> String {
    if let Some(fault) = call.tls {
        return fault.cure().to_owned();
    }
    let text = match (class_of_call(call), call.not_dispatched()) {
        (harness::Class::Unreachable, _) => {
            "Check the daemon's address and that it runs; then run it again."
        }
        (harness::Class::Request, _) => "Correct the request and run it again.",
        (_, Some(NotDispatched::Request)) => "Correct the request; another daemon refuses it too.",
        (_, Some(NotDispatched::Permission)) => {
            "Set PLIMSOLL_CALLER_TOKEN to a token this daemon knows, with the scope code:run, and \
             ask its operator about the grant profile."
        }
        (_, Some(NotDispatched::Protocol)) => {
            "This program speaks protocol 3. Use a daemon that serves it."
        }
        (_, Some(NotDispatched::Unsupported)) if embedded => {
            "The wasm provider runs JavaScript snippets only. Use --provider docker where this \
             build has it, or a daemon with --daemon URL."
        }
        (_, Some(NotDispatched::Unsupported)) => {
            "Another daemon, with another provider, may take it."
        }
        (_, Some(NotDispatched::Isolation)) => {
            "A daemon with a stronger provider may take it: name one with --daemon, or lower --floor."
        }
        (_, Some(NotDispatched::Capacity)) => {
            "Nothing ran, so it may be sent again: later, or to another daemon."
        }
        (_, Some(NotDispatched::Environment)) => {
            "A daemon with approved software may take it. wasm states no software identity."
        }
        (_, Some(NotDispatched::Unknown)) => "Nothing ran. Ask the daemon's operator why.",
        (harness::Class::Unchecked, None) => {
            "The daemon, or something between, answered wrongly. Do not trust it before its \
             operator has explained why; the code may have run."
        }
        (_, None) => {
            "The code may have run without a record. Find out from what it would have changed \
             before you send it again."
        }
    };
    text.to_owned()
}

/// `--require-success` is not met.
pub fn not_success(kind: Option<Kind>, summary: &str) -> Failure {
    Failure::new(
        Class::NotSuccess,
        format!(
            "the {} ran and is recorded, and was no success: {summary}",
            kind.map_or("call", Kind::name)
        ),
        "Its record is in the bundle. Look at its output above, or with --print escaped.",
    )
    .ran(Ran::Yes)
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn numbers_of_system_errors_go_and_nothing_else() {
        assert_eq!(plain("a (os error 2); b (os error 111)"), "a; b");
        for kept in ["", "a", "a (os error x) b", "a (os error ", "(os error 2)"] {
            assert_eq!(plain(kept), kept);
        }
    }
}
