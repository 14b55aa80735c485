//! Canonical base64: what decodes is exactly what encoding gives again.
//!
//! RFC 4648 with padding, unused bits zero, no white space. The engine is
//! already strict; the decoded bytes are encoded again and compared all the
//! same, so that no later version of it can let a second spelling through.

use base64::{
    Engine as _, alphabet,
    engine::{GeneralPurpose, general_purpose::PAD},
};

const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, PAD);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, PAD);

/// A base64 alphabet.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Alphabet {
    /// `A-Za-z0-9+/`, the only one in bundle lines.
    Standard,
    /// `A-Za-z0-9-_`, read in a caller's own statements only.
    UrlSafe,
}

impl Alphabet {
    /// The stable word in output.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Alphabet::Standard => "standard",
            Alphabet::UrlSafe => "url",
        }
    }
}

/// Why text is not canonical base64.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum Base64Fault {
    /// It is canonical in the URL-safe alphabet.
    #[error("the URL-safe alphabet is used")]
    UrlSafe,
    /// It is canonical in neither alphabet.
    #[error("not canonical base64")]
    Invalid,
}

/// Encodes in the standard alphabet.
#[must_use]
pub fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// Decodes canonical text of the standard alphabet.
///
/// # Errors
/// [`Base64Fault`].
pub fn decode(text: &str) -> Result<Vec<u8>, Base64Fault> {
    if let Some(bytes) = decode_in(&STANDARD, text) {
        return Ok(bytes);
    }
    match decode_in(&URL_SAFE, text) {
        Some(_) => Err(Base64Fault::UrlSafe),
        None => Err(Base64Fault::Invalid),
    }
}

/// Decodes canonical text of one alphabet or the other and says which. Text
/// that is the same in both counts as standard.
///
/// # Errors
/// [`Base64Fault::Invalid`].
pub fn decode_either(text: &str) -> Result<(Vec<u8>, Alphabet), Base64Fault> {
    if let Some(bytes) = decode_in(&STANDARD, text) {
        return Ok((bytes, Alphabet::Standard));
    }
    match decode_in(&URL_SAFE, text) {
        Some(bytes) => Ok((bytes, Alphabet::UrlSafe)),
        None => Err(Base64Fault::Invalid),
    }
}

fn decode_in(engine: &GeneralPurpose, text: &str) -> Option<Vec<u8>> {
    let bytes = engine.decode(text).ok()?;
    is_encoding_of(engine, text.as_bytes(), &bytes).then_some(bytes)
}

/// Compares in pieces, so that a large value is not held a third time.
fn is_encoding_of(engine: &GeneralPurpose, text: &[u8], bytes: &[u8]) -> bool {
    const PIECE: usize = 3 * 1024;
    let mut encoded = [0u8; PIECE / 3 * 4];
    let mut rest = text;
    for piece in bytes.chunks(PIECE) {
        let Ok(length) = engine.encode_slice(piece, &mut encoded) else {
            return false;
        };
        let Some((head, tail)) = rest.split_at_checked(length) else {
            return false;
        };
        if head != &encoded[..length] {
            return false;
        }
        rest = tail;
    }
    rest.is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn canonical_only() {
        assert_eq!(decode("").unwrap(), b"");
        assert_eq!(decode("+/+/").unwrap(), [0xfb, 0xff, 0xbf]);
        assert_eq!(decode("-_-_"), Err(Base64Fault::UrlSafe));
        assert_eq!(
            decode_either("-_-_").unwrap(),
            (vec![0xfb, 0xff, 0xbf], Alphabet::UrlSafe)
        );
        for text in [
            "YQ", "YQ=", "YR==", "YQ==\n", " YQ==", "YQ ==", "YQ===", "Y", "Y===", "=", "YQ==YQ==",
            "YWI", "YWJ=", "+/-_", "é===",
        ] {
            assert_eq!(decode(text), Err(Base64Fault::Invalid), "{text:?}");
            assert_eq!(decode_either(text), Err(Base64Fault::Invalid), "{text:?}");
        }
    }

    proptest::proptest! {
        #[test]
        fn round_trip_over_piece_bounds(bytes in proptest::collection::vec(0u8.., 3000..7000)) {
            proptest::prop_assert_eq!(decode(&encode(&bytes)).unwrap(), bytes);
        }

        #[test]
        fn what_decodes_is_its_own_encoding(text in "[A-Za-z0-9+/=\n_-]{0,12}") {
            if let Ok(bytes) = decode(&text) {
                proptest::prop_assert_eq!(encode(&bytes), text);
            }
        }
    }
}
