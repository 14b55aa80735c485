//! A bundle that is still being written: only what is new is checked.

use std::{
    io::{self, Read as _},
    path::{Path, PathBuf},
};

use plimsoll_record::Digest;

use super::{
    disk::{BundleFile, Disk, Facts},
    entry::is_torn,
    hashing::{Hashing, LineHash},
    reader::LineReader,
    report::Report,
    verify::{Verification, VerifyOptions},
    visitor::{SeenLine, Visitor},
};
use crate::{
    fault::{Fault, LineReason},
    key::PublicKey,
};

/// Why a file cannot be followed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FollowFault {
    /// The path names nothing.
    #[error("there is no such file")]
    Missing,
    /// Only a regular file can be followed.
    #[error("the bundle is not a regular file")]
    NotRegular,
    /// Opening failed.
    #[error("the bundle cannot be opened: {0}")]
    Open(#[source] io::Error),
}

/// Where following stands after a step.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Followed {
    /// The last line taken is a checkpoint, and more may be there to take.
    /// [`Follower::whole`] says whether everything up to it is whole.
    Checkpoint,
    /// Every complete line was taken. So many bytes of a line that is not
    /// finished follow it; its writer may be at work.
    UpToDate {
        /// Bytes of the unfinished line.
        unfinished: u64,
    },
}

/// Verifies a growing file through one descriptor. It never waits: ask again
/// when time has passed.
///
/// A step looks at the last line taken; [`Follower::finish`] hashes every byte
/// taken once more, so that its verdict is about the file as it is then.
pub struct Follower<'k, 'd, D: Disk> {
    disk: &'d D,
    path: PathBuf,
    file: D::File,
    identity: Option<(u64, u64)>,
    verification: Verification<'k>,
    last: Option<LastLine>,
    /// Of the lines taken.
    hash: LineHash,
}

/// The last line taken: while it stands where it stood, the file was not cut
/// back past it, and since each link holds the line before, nor exchanged.
#[derive(Clone, Copy)]
struct LastLine {
    offset: u64,
    length: u64,
    digest: Digest,
}

impl<'k, 'd, D: Disk> Follower<'k, 'd, D> {
    /// Begins before line 1 of a regular file.
    ///
    /// # Errors
    /// [`FollowFault`].
    pub fn open(disk: &'d D, path: &Path, keys: &'k [PublicKey]) -> Result<Self, FollowFault> {
        let opened = disk.open_to_read(path).map_err(FollowFault::Open)?;
        let file = opened.ok_or(FollowFault::Missing)?;
        let facts = file.facts().map_err(FollowFault::Open)?;
        if !facts.regular {
            return Err(FollowFault::NotRegular);
        }
        Ok(Follower {
            disk,
            path: path.to_owned(),
            file,
            identity: facts.identity,
            verification: Verification::new(keys),
            last: None,
            hash: LineHash::default(),
        })
    }

    /// Takes every complete line there is, on all cores: for what is there
    /// before following begins. It does not stop at checkpoints.
    ///
    /// # Errors
    /// As [`Follower::step`].
    pub fn catch_up(
        &mut self,
        options: VerifyOptions,
        visitor: &mut impl Visitor,
    ) -> Result<Followed, Fault> {
        self.guarded(|follower, length| {
            let offset = follower.verification.report().bytes;
            let source = follower.file.read_from(offset).map_err(io_fault)?;
            let mut source = Hashing::new(source, follower.hash.clone());
            let mut last = follower.last;
            let mut seen = (visitor, Last(&mut last));
            let read = follower
                .verification
                .read_with(&mut source, options, &mut seen);
            follower.last = last;
            follower.hash = source.hash().of_lines();
            drop(source);
            match read {
                Err(fault) if !is_torn(&fault) => Err(fault),
                _ => Ok(follower.up_to_date(length)),
            }
        })
    }

    /// Takes complete lines up to the next checkpoint.
    ///
    /// # Errors
    /// As [`super::verify()`], but `incomplete`; class `line`, reason `replaced`,
    /// when the file was cut back or the path names another one. No step must
    /// follow an error.
    pub fn step(&mut self, visitor: &mut impl Visitor) -> Result<Followed, Fault> {
        self.guarded(|follower, length| {
            let report = follower.verification.report();
            let (number, offset) = (report.lines, report.bytes);
            let source = follower.file.read_from(offset).map_err(io_fault)?;
            let mut lines = LineReader::at(source, number, offset);
            let mut last = follower.last;
            let mut hash = follower.hash.clone();
            let result = loop {
                match lines.next_line() {
                    Ok(Some(line)) => {
                        let mut seen = (&mut *visitor, Last(&mut last));
                        if let Err(fault) = follower.verification.push(line.bytes, &mut seen) {
                            break Err(fault);
                        }
                        hash.update(line.bytes);
                        hash.update(b"\n");
                        if follower.verification.report().ends_in_checkpoint() {
                            break Ok(Some(Followed::Checkpoint));
                        }
                    }
                    Ok(None) => break Ok(None),
                    Err(fault) if is_torn(&fault) => break Ok(None),
                    Err(fault) => break Err(fault),
                }
            };
            drop(lines);
            follower.last = last;
            follower.hash = hash;
            Ok(result?.unwrap_or_else(|| follower.up_to_date(length)))
        })
    }

    /// Runs a step between two looks at the file: a refusal of what was read
    /// while the file was being exchanged is told as that.
    fn guarded(
        &mut self,
        step: impl FnOnce(&mut Self, u64) -> Result<Followed, Fault>,
    ) -> Result<Followed, Fault> {
        let length = self.unreplaced()?;
        let checkpoint = self.verification.report().last_checkpoint();
        step(self, length).map_err(|fault| match self.unreplaced() {
            Err(replaced) => replaced,
            Ok(_) => fault.after_checkpoint(checkpoint.max(self.report().last_checkpoint())),
        })
    }

    fn up_to_date(&self, length: u64) -> Followed {
        Followed::UpToDate {
            unfinished: length.saturating_sub(self.report().bytes),
        }
    }

    /// Checks that the path still names the file and that the file still holds
    /// what was taken; gives its length.
    fn unreplaced(&mut self) -> Result<u64, Fault> {
        let taken = self.report().bytes;
        let refuse = |found: u64| {
            Fault::new(LineReason::Replaced)
                .at_line(self.verification.report().lines)
                .expected(taken)
                .found(found)
                .after_checkpoint(self.verification.report().last_checkpoint())
        };
        let named = self.disk.facts(&self.path).map_err(io_fault)?;
        let same = |facts: &Facts| facts.identity == self.identity;
        if !named.as_ref().is_some_and(same) {
            return Err(refuse(named.map_or(0, |facts| facts.length)));
        }
        let length = self.file.facts().map_err(io_fault)?.length;
        if length < taken {
            return Err(refuse(length));
        }
        let Some(last) = self.last else {
            return Ok(length);
        };
        let mut lines = LineReader::new(self.file.read_from(last.offset).map_err(io_fault)?);
        let there = match lines.next_line() {
            Ok(Some(line)) => {
                line.bytes.len() as u64 == last.length && Digest::of(line.bytes) == last.digest
            }
            Ok(None) => false,
            Err(fault) if is_torn(&fault) => false,
            Err(fault) => return Err(fault),
        };
        if there {
            Ok(length)
        } else {
            Err(refuse(length))
        }
    }

    /// Checks that every byte taken is still there as it was.
    fn unchanged(&mut self) -> Result<(), Fault> {
        let taken = self.report().bytes;
        let source = self.file.read().map_err(io_fault)?.take(taken);
        let mut source = Hashing::new(source, LineHash::default());
        io::copy(&mut source, &mut io::sink()).map_err(io_fault)?;
        let (there, was) = (source.hash().digest(), self.hash.digest());
        drop(source);
        if there == was {
            return Ok(());
        }
        let report = self.report();
        Err(Fault::new(LineReason::Replaced)
            .at_line(report.lines)
            .expected(was.to_hex())
            .found(there.to_hex())
            .after_checkpoint(report.last_checkpoint()))
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        self.verification.report()
    }

    /// Whether the lines taken so far are a whole bundle.
    ///
    /// # Errors
    /// Class `incomplete`, or `chain` for a session that is open.
    pub fn whole(&self) -> Result<(), Fault> {
        self.verification.whole(None)
    }

    /// Ends the following. Bytes of an unfinished line make the file incomplete.
    /// The lines taken are read and hashed again first.
    ///
    /// # Errors
    /// As [`Follower::step`], also when a line taken earlier was changed; and
    /// class `incomplete` or `chain`.
    pub fn finish(mut self, visitor: &mut impl Visitor) -> Result<Report, Fault> {
        loop {
            match self.step(visitor)? {
                Followed::Checkpoint => {}
                Followed::UpToDate { unfinished } => {
                    self.unchanged()?;
                    if unfinished == 0 {
                        return self.verification.finish();
                    }
                    let report = self.verification.report();
                    return Err(Fault::new(crate::fault::IncompleteReason::NoCheckpoint)
                        .at_line(report.lines.saturating_add(1))
                        .after_checkpoint(report.last_checkpoint()));
                }
            }
        }
    }
}

fn io_fault(error: io::Error) -> Fault {
    Fault::io(&error)
}

/// Remembers the last line.
struct Last<'l>(&'l mut Option<LastLine>);

impl Visitor for Last<'_> {
    fn line(&mut self, line: &SeenLine) {
        *self.0 = Some(LastLine {
            offset: line.offset,
            length: line.length,
            digest: line.digest,
        });
    }
}
