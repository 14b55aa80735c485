//! Projects inside a sandbox: the runner's text and the host's side of it.
//!
//! The runner ([`RUNNER`]) is a Node.js program that an image carries as
//! `/runner.mjs`, with a guard library built from [`GUARD`]. A provider writes
//! it a [`Plan`] on standard input and reads one authenticated frame from its
//! standard output; [`Verdict::of`] says what that amounts to.
//!
//! Everything on that output is hostile: a step may find a way to write there.
//! What makes a report the runner's is its HMAC under a [`ReportKey`] that is
//! fresh for each run and never reaches a step.

#![forbid(unsafe_code)]

mod frame;
mod key;
mod plan;
mod report;
mod verdict;

pub use frame::{Frame, FrameFault, MARKER, MAX_BODY_BYTES, MAX_HEADER_BYTES, find};
pub use key::ReportKey;
pub use plan::{File, Plan};
pub use report::{Artifact, Asked, Report, Step};
pub use verdict::{Ending, Verdict};

/// The runner: Node.js 18 or later, at [`RUNNER_PATH`] in an image.
pub const RUNNER: &str = include_str!("runner.mjs");

/// Source of the guard library, C; its shared object is at [`GUARD_PATH`].
pub const GUARD: &str = include_str!("guard.c");

/// Where an image has the runner.
pub const RUNNER_PATH: &str = "/runner.mjs";

/// Where an image has the guard library, preloaded into the runner alone.
pub const GUARD_PATH: &str = "/usr/local/lib/plimsoll-runner-guard.so";

/// The runner's argument for kernels that do not hide the descriptors of a
/// non-dumpable process: only its memory must then be refused to a step.
pub const OPEN_DESCRIPTORS: &str = "--open-descriptors";

/// The runner's standard output that is worth keeping, in bytes.
pub const MAX_OUTPUT_BYTES: usize = 16 << 20;
