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

use crate::limits::{MAX_ELEMENT_MEMORY, MAX_MESSAGE_DEPTH};

pub use buffa::{EnumValue, Message, MessageField};
pub use generated::*;

/// Decodes a message strictly: a truncated message, a known field with another
/// wire type or text that is not UTF-8 is an error; unknown fields are dropped.
/// Nesting and the memory of repeated elements are bounded by
/// [`MAX_MESSAGE_DEPTH`] and [`MAX_ELEMENT_MEMORY`], whatever the library's own
/// bounds are.
///
/// # Errors
/// [`buffa::DecodeError`] names what broke.
pub fn decode<M: Message>(bytes: &[u8]) -> Result<M, buffa::DecodeError> {
    buffa::DecodeOptions::new()
        .with_recursion_limit(MAX_MESSAGE_DEPTH)
        .with_element_memory_limit(MAX_ELEMENT_MEMORY)
        .decode_from_slice(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A project's request with so many empty steps: two bytes each.
    fn steps(count: usize) -> Vec<u8> {
        let length = count * 2;
        let mut bytes = vec![0x5a]; // field 11, a length
        let mut rest = length;
        while rest > 0x7f {
            bytes.push(rest as u8 | 0x80);
            rest >>= 7;
        }
        bytes.push(rest as u8);
        bytes.extend([0x12, 0x00].repeat(count));
        bytes
    }

    #[test]
    fn repeated_elements_are_bounded_by_the_memory_they_take() {
        let element = size_of::<String>();
        let most = MAX_ELEMENT_MEMORY / element;
        assert!(decode::<RunRequest>(&steps(1000)).is_ok());
        assert!(decode::<RunRequest>(&steps(most / 2)).is_ok());
        assert!(decode::<RunRequest>(&steps(most + 1)).is_err());
    }
}
