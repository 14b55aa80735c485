//! A bundle against an anchor, in the pass that verifies the bundle.

use std::collections::VecDeque;

use plimsoll_record::Digest;

use super::{Anchor, Reach};
use crate::{
    bundle::{Report, SeenLine, Visitor},
    fault::{AnchorReason, Fault},
};

/// Checkpoints remembered beside the anchor's own, in case the anchor is moved
/// while the bundle is read. More appends than this in that time do not happen.
const REMEMBERED: usize = 4096;

/// Compares a bundle with an anchor. Give it to the verification as a visitor,
/// then ask [`AnchorCheck::met`].
#[derive(Clone, Debug, Default)]
pub struct AnchorCheck {
    anchor: Option<Anchor>,
    /// LineDigest of the line the anchor names, if that is a checkpoint.
    seen: Option<Digest>,
    /// The last checkpoints, by line.
    checkpoints: VecDeque<(u64, Digest)>,
    /// Checkpoints before this line may have been there and not be among them.
    from: u64,
    /// The last line seen.
    last: u64,
}

impl AnchorCheck {
    /// Against an anchor, or none when none was kept yet.
    #[must_use]
    pub fn new(anchor: Option<Anchor>) -> Self {
        AnchorCheck {
            anchor,
            ..AnchorCheck::default()
        }
    }

    /// The anchor compared with.
    #[must_use]
    pub fn anchor(&self) -> Option<&Anchor> {
        self.anchor.as_ref()
    }

    /// The line the anchor names: a verification that does not show every line
    /// must show this one.
    #[must_use]
    pub fn line_wanted(&self) -> Option<u64> {
        self.anchor.as_ref().map(|anchor| anchor.reach().lines)
    }

    /// Whether the bundle that was seen, and verified as `report` says, meets
    /// the anchor. `None` stands for a bundle that is not there or empty.
    ///
    /// # Errors
    /// Class `anchor`: `origin`, then `behind`, then `differs`.
    pub fn met(&self, report: Option<&Report>) -> Result<(), Fault> {
        let Some(anchor) = &self.anchor else {
            return Ok(());
        };
        let reach = anchor.reach();
        let Some(report) = report else {
            return Err(behind(reach.lines, 0));
        };
        let first = report.first_line.map_or_else(String::new, |d| d.to_hex());
        same_origin(reach, &report.key_id, &first)?;
        if report.lines < reach.lines {
            return Err(behind(reach.lines, report.lines));
        }
        same_line(reach, self.seen)
    }

    /// The LineDigest of a checkpoint that was seen; the error says whether the
    /// line is certainly none.
    pub(super) fn checkpoint(&self, line: u64) -> Result<Digest, NoCheckpoint> {
        let place = self.checkpoints.binary_search_by_key(&line, |(n, _)| *n);
        if let Ok(place) = place
            && let Some((_, digest)) = self.checkpoints.get(place)
        {
            return Ok(*digest);
        }
        match self.seen {
            Some(digest) if self.line_wanted() == Some(line) => Ok(digest),
            _ if line < self.from => Err(NoCheckpoint::Forgotten),
            _ => Err(NoCheckpoint::None),
        }
    }
}

/// Why no digest of a checkpoint is at hand.
pub(super) enum NoCheckpoint {
    /// It may have been seen.
    Forgotten,
    /// The line is none.
    None,
}

impl Visitor for AnchorCheck {
    fn line(&mut self, line: &SeenLine) {
        if line.number != self.last + 1 {
            // A pass that does not show what was verified earlier.
            self.from = line.number;
        }
        self.last = line.number;
        if self.line_wanted() == Some(line.number) && line.checkpoint {
            self.seen = Some(line.digest);
        }
        if line.checkpoint {
            if self.checkpoints.len() == REMEMBERED
                && let Some((oldest, _)) = self.checkpoints.pop_front()
            {
                self.from = self.from.max(oldest + 1);
            }
            self.checkpoints.push_back((line.number, line.digest));
        }
    }
}

/// Whether an anchor names the bundle with this key and first line.
pub(super) fn same_origin(anchor: &Reach, key_id: &str, first_line: &str) -> Result<(), Fault> {
    let refuse = |member: &str, expected: &str, found: &str| {
        Err(Fault::new(AnchorReason::Origin)
            .in_member(member)
            .expected(expected)
            .found(found))
    };
    if anchor.key_id != key_id {
        return refuse("origin.key_id", &anchor.key_id, key_id);
    }
    if anchor.first_line != first_line {
        return refuse("origin.first_line", &anchor.first_line, first_line);
    }
    Ok(())
}

/// Whether a checkpoint of the bundle is the one the anchor saw.
pub(super) fn same_line(anchor: &Reach, found: Option<Digest>) -> Result<(), Fault> {
    if found == Some(anchor.last) {
        return Ok(());
    }
    let fault = Fault::new(AnchorReason::Differs)
        .at_line(anchor.lines)
        .expected(anchor.last);
    Err(match found {
        Some(digest) => fault.found(digest),
        None => fault,
    })
}

/// The bundle ends before the line the anchor saw.
pub(super) fn behind(anchor: u64, bundle: u64) -> Fault {
    Fault::new(AnchorReason::Behind)
        .at_line(bundle)
        .expected(anchor)
        .found(bundle)
}
