//! The registry of callers: a JSON file that says who may send runs to a daemon.
//!
//! ```json
//! {"clients":[{"id":"gateway","token_sha256":"<64 hex>","scopes":["code:run"],"paid_seconds_per_day":3600}]}
//! ```
//!
//! Only the SHA-256 of a token is kept, so that who reads the file cannot call.
//! The daemon reads it once, at start; the offline tool changes it with
//! [`Edit`], under a lock and so that the old file or the new one is there at
//! every moment. Both believe the same [`Registry::parse`].
#![forbid(unsafe_code)]

mod caller;
mod document;
mod edit;
mod fault;
mod lock;
mod read;
mod registry;
mod replace;
mod token;

pub use caller::{Caller, CallerId, Scope};
pub use document::MAX_BYTES;
pub use edit::{BeginError, Edit, SaveError};
pub use fault::{Fault, FaultKind, Faults};
pub use lock::lock_path;
pub use read::{Links, ReadError, Source, read};
pub use registry::{ChangeError, LoadError, Registry};
pub use token::{Fingerprint, MAX_TOKEN, MIN_TOKEN, READ_AT_MOST, Token, TokenFault};
