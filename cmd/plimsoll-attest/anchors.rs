//! Anchors as people and scripts see them: refusals, notes, the wait for a lock.

use std::{
    cell::Cell,
    ops::ControlFlow,
    path::{Path, PathBuf},
    time::Duration,
};

use plimsoll_attestation::{
    Fault, Reason,
    anchor::{AnchorFault, Kept},
    fault::AnchorReason,
};
use plimsoll_console::{Class, Console, ExitCode, Failure, escape, files::plain_words};

use crate::{refusal, tidy::TidyDisk};

/// The disk of anchors: what is unfinished goes with the process.
pub static DISK: TidyDisk = TidyDisk::new();

/// After so long a wait for an anchor's lock it is told.
const TELL_AFTER: Duration = Duration::from_millis(500);

/// Says once that another process holds an anchor's lock, and asks whether to
/// go on waiting.
pub struct Patience<'c, G> {
    console: &'c Console,
    anchor: PathBuf,
    told: Cell<bool>,
    given_up: G,
}

impl<'c, G: Fn() -> bool> Patience<'c, G> {
    /// `given_up` says whether the command was asked to end.
    pub fn new(console: &'c Console, anchor: &Path, given_up: G) -> Self {
        Patience {
            console,
            anchor: anchor.to_owned(),
            told: Cell::new(false),
            given_up,
        }
    }

    /// For [`plimsoll_attestation::anchor::AnchorFile::while_locked`].
    pub fn ask(&self, waited: Duration) -> ControlFlow<()> {
        if (self.given_up)() {
            return ControlFlow::Break(());
        }
        if waited >= TELL_AFTER && !self.told.replace(true) {
            self.console.note(&format!(
                "waiting for the anchor's lock: another process holds {}.lock",
                self.anchor.display()
            ));
        }
        ControlFlow::Continue(())
    }
}

/// The failure for an anchor at `anchor` that refuses the bundle at `bundle`.
pub fn refused(anchor: &Path, bundle: &Path, fault: &Fault) -> Failure {
    let name = anchor.display();
    let (file, advice) = match fault.reason() {
        Reason::Anchor(AnchorReason::Format) => (
            anchor,
            "It is no anchor, or was changed. Take the one that was kept; a new one knows nothing \
             of what was there before."
                .to_owned(),
        ),
        Reason::Anchor(AnchorReason::Signature) => (
            anchor,
            "It was changed, or another key signed it. If a verifier signed it that you trust, \
             give that key's public half with --anchor-pub."
                .to_owned(),
        ),
        Reason::Anchor(AnchorReason::Origin) => (
            anchor,
            format!(
                "It remembers another bundle than {}: one anchor goes with one bundle. Name the \
                 anchor that was kept for this one.",
                bundle.display()
            ),
        ),
        Reason::Anchor(AnchorReason::Behind) => (
            bundle,
            format!(
                "Lines that the anchor {name} saw are gone: the file was cut back, or an old copy \
                 was put in its place. Get the whole file again from whoever wrote it."
            ),
        ),
        _ => (
            bundle,
            format!(
                "The file is not a continuation of what the anchor {name} saw: it was cut back and \
                 written anew. Get the file again from whoever wrote it."
            ),
        ),
    };
    refusal::with_cure(fault, advice).file(file)
}

/// The failure for an anchor that could not be read or kept.
pub fn failure(anchor: &Path, bundle: &Path, fault: &AnchorFault) -> Failure {
    let (fact, advice) = match fault {
        AnchorFault::Refused(fault) => return refused(anchor, bundle, fault),
        AnchorFault::Open(error) => (
            format!("the anchor cannot be read: {}", plain_words(error)),
            "Check the file, its directory and their permissions.",
        ),
        AnchorFault::Lock { error, .. } => (
            format!("the anchor's lock cannot be taken: {}", plain_words(error)),
            "The lock is an empty file beside the anchor that this user may write. Remove what is \
             there in its place, and check the directory and its permissions.",
        ),
        AnchorFault::LockLink(_) => (fault.to_string(), "Remove the link."),
        AnchorFault::Write(error) => (
            format!("the anchor could not be written: {}", plain_words(error)),
            "The anchor is as it was. Check its directory, permissions and the space on its disk.",
        ),
        AnchorFault::Link => (
            fault.to_string(),
            "Name the file itself, or remove the link.",
        ),
        AnchorFault::NotRegular => (fault.to_string(), "Name a regular file."),
        AnchorFault::Locked => (
            fault.to_string(),
            "Wait for the process that holds the lock, then verify again.",
        ),
        AnchorFault::Moved => (
            fault.to_string(),
            "Verify again; nothing is wrong with the bundle.",
        ),
        _ => (fault.to_string(), "Run the command again."),
    };
    let exit = match fault {
        // The work was done and its product was not finished.
        AnchorFault::Write(_) | AnchorFault::Locked | AnchorFault::Moved => ExitCode::Refused,
        _ => ExitCode::Usage,
    };
    let file = match fault {
        AnchorFault::Lock { path, .. } | AnchorFault::LockLink(path) => path,
        _ => anchor,
    };
    Failure::new(Class::Io, fact, advice)
        .reason(fault.reason())
        .file(file)
        .exit(exit)
}

/// An anchor that is not there and has to be.
pub fn missing(anchor: &Path) -> Failure {
    Failure::new(
        Class::Io,
        "cannot be read: it does not exist",
        "Name the anchor that was kept. verify --write-anchor FILE makes the first one.",
    )
    .file(anchor)
}

/// What became of an anchor, as the end of a line.
pub fn kept_words(kept: Kept, line: u64) -> String {
    match kept {
        Kept::Created => format!("made at line {line}"),
        Kept::Moved => format!("moved forward to line {line}"),
        Kept::Unchanged => format!("names line {line} already, unchanged"),
        Kept::Ahead => "was moved further by another process meanwhile, unchanged".to_owned(),
    }
}

/// A path as the lines of a verdict name it.
pub fn name(anchor: &Path) -> String {
    escape::path(anchor)
}
