//! Gzip under a hard limit.

use std::io::Read;

use bytes::Bytes;
use flate2::read::MultiGzDecoder;

/// Why compressed bytes were refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum InflateError {
    /// More than the limit comes out.
    #[error("the message is over the limit after decompression")]
    TooLarge,
    /// Not gzip to the last byte.
    #[error("the message is not gzip")]
    Malformed,
}

/// Inflates one or more gzip members. Anything after them is refused: bytes
/// one reader skips and another reads are a way to show two requests at once.
/// Stops as soon as the limit is passed, so a bomb costs one limit of memory.
/// No bytes at all are an empty message, as some clients send.
pub(crate) fn inflate(data: &[u8], limit: usize) -> Result<Bytes, InflateError> {
    if data.is_empty() {
        return Ok(Bytes::new());
    }
    let mut out = Vec::new();
    let read_limit = u64::try_from(limit).unwrap_or(u64::MAX).saturating_add(1);
    MultiGzDecoder::new(data)
        .take(read_limit)
        .read_to_end(&mut out)
        .map_err(|_| InflateError::Malformed)?;
    if out.len() > limit {
        return Err(InflateError::TooLarge);
    }
    Ok(Bytes::from(out))
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use proptest::prelude::*;
    use std::io::Write;

    fn gzip(data: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(data).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn members_are_joined_and_junk_is_refused() {
        let two = [gzip(b"ab"), gzip(b"cd")].concat();
        assert_eq!(inflate(&two, 4).unwrap(), "abcd");
        assert_eq!(inflate(&two, 3), Err(InflateError::TooLarge));
        assert_eq!(inflate(b"", 0).unwrap(), "");
        assert_eq!(inflate(&gzip(b""), 0).unwrap(), "");
        for junk in [&b"x"[..], b"\0", b"\x1f\x8b"] {
            let text = [&gzip(b"ab"), junk].concat();
            assert_eq!(inflate(&text, 9), Err(InflateError::Malformed), "{junk:?}");
        }
        assert_eq!(inflate(b"{}", 9), Err(InflateError::Malformed));
        let whole = gzip(b"abcdefgh");
        for end in 1..whole.len() {
            assert!(inflate(&whole[..end], 9).is_err(), "{end}");
        }
    }

    #[test]
    fn a_bomb_stops_at_the_limit() {
        let bomb = gzip(&vec![0; 9 << 20]);
        assert!(bomb.len() < 16 << 10);
        assert_eq!(inflate(&bomb, 8 << 20), Err(InflateError::TooLarge));
    }

    proptest! {
        #[test]
        fn a_flipped_bit_never_yields_other_text(data: Vec<u8>, bit in 0_usize..4096) {
            let whole = gzip(&data);
            prop_assert_eq!(inflate(&whole, data.len()).unwrap(), &data);
            let mut broken = whole.clone();
            let bit = bit % (whole.len() * 8);
            broken[bit / 8] ^= 1 << (bit % 8);
            if let Ok(out) = inflate(&broken, data.len()) {
                prop_assert_eq!(out, &data);
            }
        }
    }
}
