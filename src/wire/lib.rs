//! The wire protocol of plimsoll, protocol number 3.
//!
//! Messages generated from `proto/plimsoll/v1/sandbox.proto`, strict proto3
//! JSON, limits, validation, tiers, software rules, codes and error details.
//! Client, daemon and verifier use this one crate, so that a rule exists once.
//! It does no I/O.
//!
//! What a reader accepts is decided here: JSON passes [`strict_json`] before
//! it is decoded, binary drops unknown fields, and a broken error detail
//! states nothing.
#![forbid(unsafe_code)]

pub mod code;
pub mod detail;
pub mod elements;
pub mod ids;
pub mod json;
pub mod limits;
pub mod proto;
pub mod refusal;
pub mod repair;
pub mod software;
pub mod strict_json;
pub mod tier;
pub mod validate;

mod objects;
mod payload;

pub use code::Code;
pub use payload::Kind;
pub use refusal::{Reason, Refusal};
pub use software::Rule;
pub use tier::Tier;

/// The protocol number this program serves and states in its requests.
pub const PROTOCOL: u32 = 3;

/// The full name of the RPC service.
pub const SERVICE: &str = "plimsoll.v1.SandboxService";

/// Request header that binds an answer to its request; echoed by the daemon.
pub const REQUEST_ID_HEADER: &str = "plimsoll-request-id";

/// Answer header that says nothing of the call ran; see [`Reason`].
pub const NOT_DISPATCHED_HEADER: &str = "plimsoll-not-dispatched";
