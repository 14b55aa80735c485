//! The place for an anchor: something outside the bundle that remembers how
//! far it reached.

use std::error::Error;

use plimsoll_attestation::bundle::{Appended, Guard};

/// Sees the bundle before each run and again under its lock, may refuse it as
/// a whole, and is told of each append. `()` does neither.
pub trait Witness: Guard {
    /// Called after an append is done and synced.
    ///
    /// # Errors
    /// Why it could not be kept; the run is recorded all the same, and its
    /// failure says so.
    fn appended(&mut self, appended: &Appended) -> Result<(), Box<dyn Error + Send + Sync>> {
        let _ = appended;
        Ok(())
    }
}

impl Witness for () {}
