//! What a command of the group ends with, and the words for what went wrong.

use std::path::Path;

use plimsoll_callers::{
    BeginError, CallerId, ChangeError, FaultKind, Faults, ReadError, SaveError, TokenFault,
    lock_path,
};
use plimsoll_console::{
    Class, Console, Errors, ExitCode, Failure, JsonObject, escape, files::plain_words,
    output::Closed,
};

/// Members of the object, or why there are none.
pub type Outcome = Result<JsonObject, Refusal>;

/// Why a command ended early.
pub enum Refusal {
    /// Its reader went away.
    Closed,
    /// One reason.
    One(Failure),
    /// The faults of a registry, one block each.
    Many(Vec<Failure>),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Refusal::One(failure)
    }
}

impl From<Closed> for Refusal {
    fn from(_: Closed) -> Self {
        Refusal::Closed
    }
}

/// Ends a command.
pub fn conclude(console: &Console, outcome: Outcome) -> ExitCode {
    let none = JsonObject::new;
    match outcome {
        Ok(members) => console.finish(ExitCode::Ok, Errors::None, members),
        Err(Refusal::Closed) => console.finish(ExitCode::Ok, Errors::None, none()),
        Err(Refusal::One(failure)) => {
            console.finish(failure.exit_code(), Errors::One(&failure), none())
        }
        Err(Refusal::Many(failures)) => {
            console.finish(ExitCode::Refused, Errors::Many(&failures), none())
        }
    }
}

/// An edit that did not begin.
pub fn not_begun(path: &Path, error: BeginError) -> Refusal {
    match error {
        BeginError::Read(error) => unreadable(path, &error).into(),
        BeginError::Invalid(faults) => invalid(path, &faults),
        BeginError::Locked => {
            let lock = escape::path(&lock_path(path));
            refused(
                "locked",
                "another edit holds the lock; nothing was changed",
                format!(
                    "Wait until it ends. When none is running, one was killed: remove its lock with \
                     rmdir {lock} and try again."
                ),
            )
            .file(path)
            .into()
        }
        BeginError::Lock(error) => Failure::new(
            Class::Io,
            format!(
                "cannot be changed: its lock cannot be made: {}",
                plain_words(&error)
            ),
            "Check the directory and who may write in it. Nothing was changed.",
        )
        .file(path)
        .into(),
    }
}

/// A file that could not be read.
pub fn unreadable(path: &Path, error: &ReadError) -> Failure {
    let failure = match error {
        ReadError::Io(error) => Failure::new(
            Class::Io,
            format!("cannot be read: {}", plain_words(error)),
            "Check the path and who may read it. create makes a registry that is not there.",
        ),
        ReadError::Link => refused(
            "symlink",
            "is a symbolic link; nothing was changed",
            "Name the file it points to. A link would be replaced by a file, and its target would \
             stay as it is.",
        ),
        ReadError::NotRegular => Failure::new(
            Class::Io,
            "cannot be read: it is not a regular file",
            "Name a regular file.",
        ),
        ReadError::TooLarge => {
            Failure::new(Class::Io, error.to_string(), "Name a registry of callers.")
        }
    };
    failure.file(path)
}

/// The faults of a registry.
pub fn invalid(path: &Path, faults: &Faults) -> Refusal {
    const ADVICE: &str = "Correct the file by hand. Nothing was changed.";
    const EMPTY: &str = "Add a caller with create.";
    let mut failures: Vec<Failure> = faults
        .kept()
        .iter()
        .map(|fault| {
            let (reason, advice) = match fault.kind {
                FaultKind::Empty => ("empty", EMPTY),
                _ => ("invalid", ADVICE),
            };
            let failure = refused(reason, fault.kind.to_string(), advice).file(path);
            match fault.offset {
                Some(offset) => failure.offset(offset as u64),
                None if fault.pointer.is_empty() => failure,
                None => failure.pointer(&fault.pointer),
            }
        })
        .collect();
    if faults.more() > 0 {
        let fact = format!("{} more faults are not shown", faults.more());
        failures.push(refused("invalid", fact, ADVICE).file(path));
    }
    Refusal::Many(failures)
}

/// A change that the registry refuses.
pub fn unchanged(path: &Path, id: &CallerId, error: ChangeError) -> Failure {
    let (reason, advice) = match error {
        ChangeError::Exists => (
            "exists",
            "rotate gives this caller a new token; another caller needs another ID.",
        ),
        ChangeError::NotThere => ("not_there", "list shows the callers there are."),
        ChangeError::TokenInUse => (
            "token_in_use",
            "Give every caller a token of its own: calls could not be told apart.",
        ),
        ChangeError::TokenUnchanged => (
            "token_unchanged",
            "Give a new token, or let --token-stdout make one.",
        ),
    };
    refused(
        reason,
        format!("caller {:?}: {error}; nothing was changed", id.as_str()),
        advice,
    )
    .file(path)
}

/// An edit that was not saved as it should.
pub fn not_saved(path: &Path, error: &SaveError) -> Failure {
    let failure = match error {
        SaveError::TooLarge => refused(
            "too_large",
            "the registry would be larger than a daemon reads; nothing was changed",
            "Revoke callers that are no longer needed, or use a second daemon.",
        ),
        SaveError::Changed => refused(
            "changed",
            "the file was changed by another program meanwhile; nothing was changed here",
            "See what changed it, then try again.",
        ),
        SaveError::Before(error) => Failure::new(
            Class::Io,
            format!(
                "cannot be written: {}; nothing was changed",
                plain_words(error)
            ),
            "Check the directory, who may write in it and own its files, and the space on its disk.",
        ),
        SaveError::After(error) => Failure::new(
            Class::Io,
            format!(
                "the registry was replaced, but completion failed: {}",
                plain_words(error)
            ),
            "See with list that the change is there. A token that was made was not shown: rotate \
             its caller. A lock that stayed is removed with rmdir.",
        ),
    };
    failure.file(path).exit(ExitCode::Refused)
}

/// A token on standard input that is none.
pub fn bad_token(fault: TokenFault) -> Failure {
    refused(
        "token",
        format!("standard input: {fault}; nothing was changed"),
        "Give one token of 32 to 4096 visible ASCII characters and at most one line ending.",
    )
}

fn refused(reason: &str, fact: impl Into<String>, advice: impl Into<String>) -> Failure {
    Failure::new(Class::Registry, fact, advice).reason(reason)
}
