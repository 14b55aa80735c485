//! An anchor that is asked before each append and moved after it.

use std::{error::Error, path::Path};

use super::{AnchorCheck, AnchorFault, AnchorFile, Kept, Reach};
use crate::{
    bundle::{Appended, Guard, Report, SeenLine, Visitor, disk::Disk},
    key::SigningKey,
};

/// Refuses a bundle that an anchor says was cut back or exchanged: before
/// anything runs, and once more under the bundle's lock. The anchor is read at
/// the start of each pass, since another run may have moved it.
///
/// A refusal it gives is a boxed [`crate::Fault`] of class `anchor`, any other
/// failure a boxed [`AnchorFault`].
#[derive(Debug)]
pub struct AnchorGuard<'d, D> {
    file: AnchorFile<'d, D>,
    check: AnchorCheck,
    /// Why the anchor could not be read in this pass.
    unread: Option<AnchorFault>,
    kept: Option<Kept>,
}

impl<'d, D: Disk> AnchorGuard<'d, D> {
    /// Guards with the anchor of this file, which need not be there yet.
    #[must_use]
    pub fn new(file: AnchorFile<'d, D>) -> Self {
        AnchorGuard {
            file,
            check: AnchorCheck::default(),
            unread: None,
            kept: None,
        }
    }

    /// Where the anchor lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// What became of the anchor after the last append; `None` before it and
    /// when it could not be kept.
    #[must_use]
    pub fn kept(&self) -> Option<Kept> {
        self.kept
    }

    /// The line that the anchor named when the bundle was last read; `None`
    /// when there was none.
    #[must_use]
    pub fn line(&self) -> Option<u64> {
        self.check.line_wanted()
    }

    /// Whether the last pass found an anchor; when not, [`AnchorGuard::appended`]
    /// makes one.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.check.anchor().is_some()
    }

    /// Moves the anchor after an append.
    ///
    /// # Errors
    /// [`AnchorFault`]; the append is done all the same.
    pub fn appended(&mut self, appended: &Appended, key: &SigningKey) -> Result<Kept, AnchorFault> {
        self.kept = None;
        let kept = self
            .file
            .keep(&self.check, &Reach::after(appended, key), key)?;
        self.kept = Some(kept);
        Ok(kept)
    }

    fn begin(&mut self) {
        let read = self.file.read();
        (self.check, self.unread) = match read {
            Ok(anchor) => (AnchorCheck::new(anchor), None),
            Err(fault) => (AnchorCheck::default(), Some(fault)),
        };
    }
}

impl<D: Disk> Visitor for AnchorGuard<'_, D> {
    fn line(&mut self, line: &SeenLine) {
        if line.number == 1 {
            self.begin();
        }
        self.check.line(line);
    }
}

impl<D: Disk> Guard for AnchorGuard<'_, D> {
    fn allow(&mut self, whole: Option<&Report>) -> Result<(), Box<dyn Error + Send + Sync>> {
        if whole.is_none() {
            self.begin();
        }
        match self.unread.take() {
            Some(AnchorFault::Refused(fault)) => return Err(fault.into()),
            Some(fault) => return Err(fault.into()),
            None => {}
        }
        self.check.met(whole).map_err(Into::into)
    }
}
