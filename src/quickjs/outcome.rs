//! How a run ends, and what it printed.

use std::time::Duration;

use thiserror::Error;

/// Exit code of a run whose deadline passed.
pub const EXIT_TIMED_OUT: i32 = 124;
/// Exit code of a run the guest's own trap ended: exhausted stack, access out of bounds, unreachable code.
pub const EXIT_TRAPPED: i32 = 134;
/// Bytes kept of each output stream; what follows is dropped and flagged.
pub const OUTPUT_CAP: usize = 64 * 1024;

/// The end of a run that took place, however badly the guest fared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// 0, 1 for an uncaught exception or rejection, [`EXIT_TIMED_OUT`] or [`EXIT_TRAPPED`].
    pub exit_code: i32,
    /// The deadline passed. It wins over every other ending.
    pub timed_out: bool,
    /// At most [`OUTPUT_CAP`] bytes. Untrusted: escape before showing it.
    pub stdout: Vec<u8>,
    /// At most [`OUTPUT_CAP`] bytes. Untrusted: escape before showing it.
    pub stderr: Vec<u8>,
    /// More than the cap was printed to standard output.
    pub stdout_truncated: bool,
    /// More than the cap was printed to standard error.
    pub stderr_truncated: bool,
    /// From before the instance was made until the guest had ended.
    pub duration: Duration,
}

/// Why there is no outcome.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum RunError {
    /// The caller's token was raised before the run had ended, and before its deadline.
    #[error("the run was cancelled")]
    Cancelled,
    /// The host could not run it. The guest's code is not at fault.
    #[error("the interpreter could not run the snippet: {0}")]
    Host(#[from] HostError),
}

/// Faults of the host while it runs a snippet.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HostError {
    /// Every instance of the pool is in use: more runs at once than [`Settings::max_instances`](crate::Settings).
    #[error("every interpreter instance is in use")]
    NoInstance,
    /// No fresh instance could be made.
    #[error("no instance could be made: {0}")]
    Instantiate(#[source] Cause),
    /// The operating system refused a thread for the run.
    #[error("no thread could be started: {0}")]
    Thread(#[source] std::io::Error),
    /// The guest could not be given its source, or the module lacks an export.
    #[error("the module does not keep its contract: {0}")]
    Module(#[source] Cause),
    /// The granted calls' side panicked. The run's state is gone with its thread.
    #[error("the host side of the run panicked")]
    Panicked,
}

/// A fault of the WebAssembly runtime, for a log and not for decisions.
pub type Cause = Box<dyn std::error::Error + Send + Sync>;
