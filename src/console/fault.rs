//! Faults of this program: one line, exit 70, nothing left behind.
//!
//! A panic must not end the process with 101 or 134, which a script could take for something
//! else, and must not print a message made of foreign text: only the place in our own source.

use std::io::Write as _;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::sync::atomic::{AtomicBool, Ordering};

use crate::PROGRAM;
use crate::class::Class;
use crate::cleanup;
use crate::exit::ExitCode;
use crate::failure::Failure;

/// Whether a fault line was printed; one is enough.
static TOLD: AtomicBool = AtomicBool::new(false);

/// What a person should do about a fault of this program.
const ADVICE: &str = "This is a bug. Please report it with the command line and this line.";

/// Runs the program so that a panic becomes one line with the text `internal fault` and exit 70.
/// Installs the process's panic hook; temporary files still registered at the end are removed. A
/// write past the process's file size limit is an error, not the process's end.
///
/// Needs panics that unwind: with `panic = "abort"` the line is printed and the process aborts.
pub fn run(program: impl FnOnce() -> ExitCode) -> ExitCode {
    panic::set_hook(Box::new(report));
    crate::signals::survive_size_limit();
    // The closure is consumed and nothing it touched is used again but the file registry, which
    // stays valid at every step.
    let code = panic::catch_unwind(AssertUnwindSafe(program)).unwrap_or_else(|_| {
        crate::output::settle_debt();
        ExitCode::Internal
    });
    cleanup::remove_all();
    code
}

/// The failure to return where the program finds its own state impossible. `place` is a fixed word
/// that names the spot for a bug report, never data.
#[must_use]
pub fn internal(place: &'static str) -> Failure {
    Failure::new(Class::Internal, format!("internal fault: {place}"), ADVICE)
}

fn report(info: &PanicHookInfo<'_>) {
    if TOLD.swap(true, Ordering::SeqCst) {
        return;
    }
    // A dependency's place is a path of the machine that built this program.
    let place = match info.location() {
        Some(at) if !at.file().starts_with('/') => {
            format!("{}:{}:{}", at.file(), at.line(), at.column())
        }
        Some(_) => "a place in a dependency".to_owned(),
        None => "an unknown place".to_owned(),
    };
    let line = format!("{PROGRAM}: error[internal]: internal fault at {place}. {ADVICE}\n");
    // A closed standard error must not turn into a second panic.
    let _ = std::io::stderr().write_all(line.as_bytes());
}
