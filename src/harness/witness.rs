//! Something outside the bundle that remembers how far it reached.

use std::error::Error;

use plimsoll_attestation::{
    SigningKey,
    anchor::AnchorGuard,
    bundle::{Appended, Guard, Report, SeenLine, Visitor, disk::Disk},
};

/// Sees the bundle before each run and again under its lock, may refuse it as
/// a whole, and is told of each append. `()` does neither.
pub trait Witness: Guard {
    /// Called after an append is done and synced, with the key that signed it.
    ///
    /// # Errors
    /// Why it could not be kept; the run is recorded all the same, and its
    /// failure says so.
    fn appended(
        &mut self,
        appended: &Appended,
        key: &SigningKey,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = (appended, key);
        Ok(())
    }
}

impl Witness for () {}

impl<D: Disk> Witness for AnchorGuard<'_, D> {
    fn appended(
        &mut self,
        appended: &Appended,
        key: &SigningKey,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        AnchorGuard::appended(self, appended, key)?;
        Ok(())
    }
}

/// A witness that there may be.
#[derive(Debug)]
pub struct Perhaps<W>(pub Option<W>);

impl<W: Witness> Visitor for Perhaps<W> {
    fn line(&mut self, line: &SeenLine) {
        if let Some(witness) = &mut self.0 {
            witness.line(line);
        }
    }
}

impl<W: Witness> Guard for Perhaps<W> {
    fn allow(&mut self, whole: Option<&Report>) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0
            .as_mut()
            .map_or(Ok(()), |witness| witness.allow(whole))
    }
}

impl<W: Witness> Witness for Perhaps<W> {
    fn appended(
        &mut self,
        appended: &Appended,
        key: &SigningKey,
    ) -> Result<(), Box<dyn Error + Send + Sync>> {
        self.0
            .as_mut()
            .map_or(Ok(()), |witness| witness.appended(appended, key))
    }
}
