//! What every change has in common: the lock, the file, and what is said after.

use std::path::Path;

use plimsoll_callers::{CallerId, ChangeError, Edit, Registry};
use plimsoll_console::{Console, ExitCode, Failure, JsonObject, signals::Interrupts};

use super::refusal::{self, Refusal};

/// What a provider may bill past a run, which every run reserves.
const TEARDOWN_SECONDS: u64 = 33;
/// Below this an allowance may admit no run at all.
const SMALL_ALLOWANCE: u64 = 60;

/// Changes the registry. Signals wait meanwhile: an edit is short, and one that
/// is cut leaves its lock behind.
pub fn change(
    console: &Console,
    path: &Path,
    id: &CallerId,
    make: bool,
    work: impl FnOnce(&mut Registry) -> Result<(), ChangeError>,
) -> Result<Held, Refusal> {
    let held = Held::begin()?;
    let mut edit = Edit::begin(path, make).map_err(|error| refusal::not_begun(path, error))?;
    work(&mut edit.registry).map_err(|error| refusal::unchanged(path, id, error))?;
    let empty = edit.registry.callers().is_empty();
    edit.save()
        .map_err(|error| refusal::not_saved(path, &error))?;
    console.note(
        "saved; not active until every daemon that uses the file is restarted; work that was \
         admitted is not cancelled",
    );
    if empty {
        console.warning(
            "the registry is empty now: a daemon refuses to start with it, and running daemons \
             must be stopped to lock the revoked callers out",
        );
    }
    Ok(held)
}

/// Signals that came during the edit; they end the process when this is dropped.
pub struct Held(Interrupts);

impl Held {
    fn begin() -> Result<Held, Failure> {
        let interrupts = Interrupts::install()
            .map_err(|_| plimsoll_console::fault::internal("signal handlers of an edit"))?;
        interrupts.on_first(|_| {});
        Ok(Held(interrupts))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let _ = self.0.end(ExitCode::Ok);
    }
}

/// A warning for an allowance that looks like one and admits hardly a run.
pub fn warn_of_allowance(console: &Console, seconds: u64) {
    if (1..SMALL_ALLOWANCE).contains(&seconds) {
        console.warning(&format!(
            "an allowance of {seconds} s may admit no run: each reserves its timeout and up to \
             {TEARDOWN_SECONDS} s for the removal of its machine"
        ));
    }
}

/// The object of a change.
pub fn members(id: &CallerId, change: &str) -> JsonObject {
    JsonObject::new()
        .with("id", id.as_str())
        .with("change", change)
        .with("restart_needed", &true)
}
