//! Failures of a run: class, whether anything ran, and what to do.

use plimsoll_attestation::bundle::{AppendError, AppendFault, Cut};
use plimsoll_client::{CallFailure, Ran as ClientRan};
use plimsoll_console::{Class, ExitCode, Failure, failure::Ran};
use plimsoll_harness::{
    KeyError, RunFailure,
    failure::{self as harness, NotKept, class_of_call},
};
use plimsoll_record::check::RecordError;
use plimsoll_wire::{Kind, Reason};

use super::Facts;

/// The machine does not allow the run.
pub fn environment(fact: &str) -> Failure {
    Failure::new(
        Class::Environment,
        format!("{fact}; nothing was run"),
        "Run it again once the machine allows it.",
    )
    .ran(Ran::No)
}

/// A key that cannot sign.
pub fn of_key(error: &KeyError) -> Failure {
    let (class, path, advice) = match error {
        KeyError::Absent { path } => (
            Class::Key,
            Some(path),
            "Run plimsoll-attest run once to make it, or name a key with --key.",
        ),
        KeyError::Fault { path, fault } => (Class::Key, path.as_ref(), fault.cure()),
        KeyError::Make { path, .. } => (
            Class::Io,
            Some(path),
            "Name a key with --key, or make the directory writable.",
        ),
        KeyError::NoPlace => (
            Class::Key,
            None,
            "Name a key with --key; plimsoll-attest keygen makes one.",
        ),
        KeyError::Permissions { path, .. } => (
            Class::Key,
            Some(path),
            "Take them away with chmod 600, and make a new key if someone may have read it.",
        ),
        KeyError::PublicExists { path } => (
            Class::Exists,
            Some(path),
            "Move it away: it may be the only copy of a key that signed earlier bundles.",
        ),
        KeyError::Read { path, .. } => (
            Class::Io,
            Some(path),
            "Name a key file that can be read with --key.",
        ),
        KeyError::VariableNotText => (
            Class::Key,
            None,
            "Set it to the key's PEM text, or leave it out and use --key.",
        ),
    };
    let failure = Failure::new(class, format!("{error}; nothing was run"), advice)
        .exit(ExitCode::Usage)
        .ran(Ran::No);
    let failure = match error {
        KeyError::Fault { fault, .. } => failure.reason(fault.word()),
        _ => failure,
    };
    match path {
        Some(path) => failure.file(path),
        None => failure,
    }
}

/// A run that did not end in a kept record.
pub fn of_run(failed: &RunFailure, facts: &Facts) -> Failure {
    let class = class(failed.class());
    let mut failure =
        Failure::new(class, failed.to_string(), advice(failed, facts)).ran(ran(failed.ran()));
    if let Some(reason) = failed.reason() {
        failure = failure.reason(reason);
    }
    match failed {
        RunFailure::Bundle(fault) => bundle(failure, fault, facts),
        RunFailure::Call(call) => of_answer(failure, call),
        RunFailure::NotKept { why, .. } => {
            let failure = failure.file(&facts.bundle);
            match why {
                NotKept::Append(error) => failure.reason(error.fault.reason()),
                _ => failure,
            }
        }
        RunFailure::Artifacts(_) => failure.exit(ExitCode::Usage),
        RunFailure::Client(_) | RunFailure::Environment(_) => failure,
    }
}

/// A call that failed, of a single run or of a session.
pub fn of_call(call: &CallFailure, embedded: bool) -> Failure {
    let class = class_of_call(call);
    let text = match class {
        harness::Class::NotDispatched => format!(
            "refused before anything ran, reason {}: {call}",
            call.not_dispatched().map_or("unknown", Reason::name)
        ),
        harness::Class::Unreachable => format!("{call}; nothing was sent, nothing was run"),
        harness::Class::Request => format!("{call}; nothing was run"),
        harness::Class::Unchecked => {
            format!("it may have run; its record was refused and not signed: {call}")
        }
        harness::Class::NotKept => format!("it ran and was not kept: {call}"),
        _ => format!("it may have run; do not send it again blindly: {call}"),
    };
    let mut failure =
        Failure::new(self::class(class), text, call_advice(call, embedded)).ran(ran(call.ran));
    if let Some(reason) = call.not_dispatched() {
        failure = failure.reason(reason.name());
    }
    of_answer(failure, call)
}

fn of_answer(mut failure: Failure, call: &CallFailure) -> Failure {
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

fn advice(failed: &RunFailure, facts: &Facts) -> String {
    match failed {
        RunFailure::Bundle(AppendFault::Permissions { .. }) => format!(
            "Take them away with chmod 600 {}, or give --shared-bundle if others may read it.",
            facts.bundle
        ),
        RunFailure::Bundle(AppendFault::Evidence(fault)) => match fault.last_checkpoint() {
            Some(line) => format!(
                "Such a bundle cannot be continued. If a crash damaged it after line {line}, its \
                 last checkpoint, cut it back to that line; otherwise start a new one with \
                 --bundle FILE."
            ),
            None => "Such a bundle cannot be continued with this key. Start a new one with \
                     --bundle FILE, or name the key that wrote it with --key."
                .to_owned(),
        },
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
            NotKept::Anchor { .. } => "The bundle is complete. Write the anchor again once its \
                                       file can be written."
                .to_owned(),
            NotKept::Sign(_) => "The exchange could not be signed, so nothing proves this run. \
                                 Please report it."
                .to_owned(),
        },
    }
}

/// What became of a signed entry whose append failed.
pub fn kept(error: &AppendError) -> String {
    let mut text = match &error.kept {
        Ok(file) => format!(
            "The signed entry, without a link, was kept in {}. Keep that file: it proves the run.",
            file.display()
        ),
        Err(failed) => format!("The signed entry could not be kept either: {failed}."),
    };
    if let Cut::Failed(_) = error.cut {
        text += " The bundle may hold part of a line: verify it before the next run.";
    }
    text
}

fn call_advice(call: &CallFailure, embedded: bool) -> String {
    let text = match (class_of_call(call), call.not_dispatched()) {
        (harness::Class::Unreachable, _) => {
            "Check the daemon's address and that it runs; then run it again."
        }
        (harness::Class::Request, _) => "Correct the request and run it again.",
        (_, Some(Reason::Request)) => "Correct the request; another daemon refuses it too.",
        (_, Some(Reason::Permission)) => {
            "Set PLIMSOLL_CALLER_TOKEN to a token this daemon knows, with the scope code:run, and \
             ask its operator about the grant profile."
        }
        (_, Some(Reason::Protocol)) => {
            "This program speaks protocol 3. Use a daemon that serves it."
        }
        (_, Some(Reason::Unsupported)) if embedded => {
            "The wasm provider runs JavaScript snippets only. Use --provider docker where this \
             build has it, or a daemon with --daemon URL."
        }
        (_, Some(Reason::Unsupported)) => "Another daemon, with another provider, may take it.",
        (_, Some(Reason::Isolation)) => {
            "A daemon with a stronger provider may take it: name one with --daemon, or lower --floor."
        }
        (_, Some(Reason::Capacity)) => {
            "Nothing ran, so it may be sent again: later, or to another daemon."
        }
        (_, Some(Reason::Environment)) => {
            "A daemon with approved software may take it. wasm states no software identity."
        }
        (_, Some(Reason::Unknown)) => "Nothing ran. Ask the daemon's operator why.",
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
