//! JavaScript snippets, run inside this process.
//!
//! The engine is QuickJS-ng compiled to WebAssembly (`artifact/`). Every run is a fresh instance with a fresh memory,
//! started from a snapshot of a ready context; it ends with its result and leaves nothing behind. What a guest can
//! reach is the closed list of imports in [`IMPORTS`]: two output streams, a coarse clock, random bytes and, when it
//! is granted one, the host's call interface. There is no file, no network, no other process and no timer.
//!
//! Bounds: linear memory by [`Settings::memory_mb`], time by the deadline of the run, output by [`OUTPUT_CAP`],
//! native stack by the runtime. What is not bounded is trust in the runtime itself: code that breaks out of it is in
//! this process.

#![deny(unsafe_code)]

mod cancel;
mod grant;
mod host;
mod interpreter;
mod outcome;
mod precompiled;
mod run;
mod streams;
mod ticker;

pub use cancel::CancelToken;
pub use grant::{Grant, HostCalls, HostRequest, HostResponse, MAX_ENVELOPE};
pub use host::IMPORTS;
pub use interpreter::{Interpreter, Settings, StartError};
pub use outcome::{Cause, EXIT_TIMED_OUT, EXIT_TRAPPED, HostError, OUTPUT_CAP, Outcome, RunError};
pub use run::{DEFAULT_TIMEOUT, MAX_TIMEOUT};
