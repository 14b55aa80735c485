//! The generated messages of `plimsoll.v1`.
//!
//! Binary encoding is deterministic: ascending field numbers, packed doubles,
//! zero values left out. Unknown fields are dropped when decoding, so what is
//! encoded again never holds bytes that no digest covers.

#[allow(
    missing_docs,
    clippy::all,
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic
)]
mod generated {
    include!(concat!(env!("OUT_DIR"), "/plimsoll.v1.rs"));
}

pub use buffa::{EnumValue, Message, MessageField};
pub use generated::*;

/// Decodes a message strictly: a truncated message, a known field with another
/// wire type or text that is not UTF-8 is an error; unknown fields are dropped.
///
/// # Errors
/// [`buffa::DecodeError`] names what broke.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, buffa::DecodeError> {
    buffa::DecodeOptions::new().decode_from_slice(bytes)
}
