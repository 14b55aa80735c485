//! Refusals of evidence, as people and scripts see them: each with its cure.

use std::path::Path;

use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    fault::{
        ChainReason, Class as FaultClass, IncompleteReason, LineReason, LinkReason, NotACallReason,
        SignatureReason,
    },
};
use plimsoll_console::{Class, ExitCode, Failure};

/// The failure for a fault in `file`. `keys` are those asked for.
pub fn failure(file: &Path, fault: &Fault, keys: &[PublicKey]) -> Failure {
    with_cure(fault, cure(fault, keys)).file(file)
}

/// [`failure`] of a command that takes no bundle without calls: `empty` says what
/// to do about one.
pub fn of_calls(file: &Path, fault: &Fault, keys: &[PublicKey], empty: &str) -> Failure {
    match fault.reason() {
        Reason::Empty => with_cure(fault, empty).file(file),
        _ => failure(file, fault, keys),
    }
}

/// The failure for a fault, with another cure than that of evidence.
pub fn with_cure(fault: &Fault, advice: impl Into<String>) -> Failure {
    let mut failure = Failure::new(class(fault.class()), fault.reason().text(), advice)
        .reason(fault.reason().word());
    // A file without lines has no place to name.
    if let Some(line) = fault.line().filter(|&line| line > 0) {
        failure = failure.line(line);
    }
    if let Some(member) = fault.member() {
        failure = failure.member(member);
    }
    if let Some(bytes) = fault.bytes().filter(|bytes| !bytes.is_empty()) {
        failure = failure.bytes(bytes.start, bytes.end - 1);
    }
    if let Some(expected) = fault.expected_value() {
        failure = failure.expected(expected);
    }
    if let Some(found) = fault.found_value() {
        failure = failure.found(found);
    }
    match fault.class() {
        FaultClass::Io => failure.exit(ExitCode::Usage),
        _ => failure,
    }
}

fn class(class: FaultClass) -> Class {
    let word = class.word();
    Class::ALL
        .iter()
        .copied()
        .find(|known| known.word() == word)
        .unwrap_or(Class::Internal)
}

/// What to do about a fault. `keys` are those asked for.
pub fn cure(fault: &Fault, keys: &[PublicKey]) -> String {
    let torn = || match fault.last_checkpoint() {
        Some(line) => format!(
            "The file was cut or is still being written. If a crash wrote it, cut it back to line \
             {line}, its last checkpoint, and it is whole again. verify-entry checks single lines \
             of a file that is still being written."
        ),
        None => {
            "The file was cut or is still being written, and it holds no checkpoint to go back \
                 to. verify-entry checks single lines of a file that is still being written."
                .to_owned()
        }
    };
    match fault.reason() {
        Reason::Line(LineReason::CarriageReturn) => {
            "The file went through line-end conversion. Get it again byte for byte; in git, put \
             the line `*.jsonl -text` into .gitattributes."
                .to_owned()
        }
        Reason::Line(LineReason::NoNewline) => torn(),
        Reason::Incomplete(IncompleteReason::NoCheckpoint) => torn(),
        Reason::Incomplete(IncompleteReason::Empty) => {
            "An empty file is no evidence. Name the bundle that run wrote.".to_owned()
        }
        Reason::Line(LineReason::Blank) => {
            "Remove nothing: a bundle has no blank lines, so this file is not as it was written. \
             Get it again from whoever wrote it."
                .to_owned()
        }
        Reason::Line(LineReason::UrlSafe) => {
            "The value uses the URL-safe alphabet (- and _). A bundle's lines use the standard one \
             alone; the file was rewritten by another program. Get it again as it was written."
                .to_owned()
        }
        Reason::Line(LineReason::TooLong) => {
            "A line of a bundle has at most 64 MiB. This is not a bundle, or not one written by \
             this format."
                .to_owned()
        }
        Reason::Line(_) => {
            "A line must be byte for byte what the writer wrote. Get the file again \
                            from whoever wrote it; it cannot be repaired here."
                .to_owned()
        }
        Reason::Link(LinkReason::Missing) => {
            "An old or foreign bundle: nothing shows that its lines are all there and in order. \
             Its envelopes can be checked one by one with a release that wrote such bundles."
                .to_owned()
        }
        Reason::Link(_) => {
            "A line was removed, added, moved or changed at or before this one. Get \
                            the file again from whoever wrote it."
                .to_owned()
        }
        Reason::Signature(SignatureReason::OtherKey) => {
            let asked: Vec<&str> = keys.iter().map(PublicKey::id).collect();
            format!(
                "The line names the key it was signed by; asked for was {}. Give that key's file \
                 with --pub if you trust it.",
                asked.join(", ")
            )
        }
        Reason::Signature(SignatureReason::EncodedTwice) => {
            "The signature is base64 text of base64 text: the program that wrote it encoded it \
             twice."
                .to_owned()
        }
        Reason::Signature(_) => "The line was changed after it was signed, or the key is not the \
                                 signer's."
            .to_owned(),
        Reason::Chain(ChainReason::Calls | ChainReason::Sequence | ChainReason::Previous) => {
            "A call of this session is missing before this line, or was moved. Get the file again \
             from whoever wrote it; it cannot be repaired here."
                .to_owned()
        }
        Reason::Chain(ChainReason::NotClosed) => {
            "A session without its close looks like one that was cut. The harness that wrote the \
             bundle must close it; a bundle cut by a crash can be cut back to the checkpoint \
             before the session."
                .to_owned()
        }
        Reason::Chain(_) => "The session's calls are not all there in their order. Get the file \
                             again from whoever wrote it."
            .to_owned(),
        Reason::Statement(_) | Reason::Stored(_) => {
            "The key holder signed something that no honest harness signs, or the line was \
             changed. Ask whoever holds the key."
                .to_owned()
        }
        Reason::Expected(_) => expected_cure(fault),
        Reason::Empty => {
            "Nothing was verified that ran. Name the bundle that holds the calls, or give \
             --allow-empty if none is right."
                .to_owned()
        }
        Reason::Reserved(_) => "Run records are verified with verify or verify-entry. A statement \
                                of your own needs a type of your own."
            .to_owned(),
        Reason::NoLine => "Name a line the file has.".to_owned(),
        Reason::NotACall(NotACallReason::Checkpoint) => {
            "A checkpoint states how many lines come before it, no call. verify checks the whole \
             file."
                .to_owned()
        }
        Reason::NotACall(_) => {
            "A session's close is no call. verify checks whole sessions.".to_owned()
        }
        Reason::Anchor(_) => {
            "Take the anchor that was kept for this bundle, and the bundle as it was written."
                .to_owned()
        }
        Reason::Seal(_) => {
            "Nothing was written. This is not a record that can be signed.".to_owned()
        }
        Reason::Io(_) => {
            "Check the file and its permissions, then run the command again.".to_owned()
        }
        _ => "Get the file again from whoever wrote it.".to_owned(),
    }
}

fn expected_cure(fault: &Fault) -> String {
    let list = |label: &str, lines: &[String]| match lines {
        [] => String::new(),
        lines if lines.len() <= 10 => format!("{label}: {}. ", lines.join(", ")),
        lines => format!(
            "{label}: {} and {} more. ",
            lines[..10].join(", "),
            lines.len() - 10
        ),
    };
    format!(
        "{}{}The bundle does not hold exactly the calls you expected.",
        list("missing", fault.missing()),
        list("unexpected", fault.unexpected())
    )
}
