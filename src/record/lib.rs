//! Digests, run records and their checks.
//!
//! A digest is SHA-256 over a length-prefixed encoding, never over protobuf or
//! JSON bytes: see [`encoding`]. A record is the daemon's statement about one
//! call; [`make`] builds one, [`check`] refuses one that differs in anything
//! that can be recomputed. No I/O.
#![forbid(unsafe_code)]

pub mod chain;
pub mod check;
pub mod encoding;
pub mod make;
pub mod outcome;
pub mod time;

mod fields;

pub use chain::Chain;
pub use encoding::Digest;
pub use fields::{
    record_digest, record_fields, request_digest, request_fields, result_digest, result_fields,
};

/// Record version of an answered call without software fields; read, never made.
pub const VERSION_OLD: u32 = 1;
/// Record version of an answered call.
pub const VERSION_ANSWERED: u32 = 2;
/// Record version of a session call that may have run and gave no answer.
pub const VERSION_UNANSWERED: u32 = 3;
