//! Bearer tokens and what is kept of them.

use std::fmt;

use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

/// Bytes of the shortest token that is taken in.
pub const MIN_TOKEN: usize = 32;
/// Bytes of the longest token that is taken in.
pub const MAX_TOKEN: usize = 4096;
/// How much of an input holds the longest token, its line ending and one byte
/// that shows there is more.
pub const READ_AT_MOST: u64 = MAX_TOKEN as u64 + 3;

/// Bytes of randomness in a token made here.
const RANDOM: usize = 32;

/// A bearer token. It is wiped when dropped and shown only by [`Token::reveal`].
pub struct Token(Zeroizing<Vec<u8>>);

/// Why text is no token. No byte of it is repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TokenFault {
    /// Too short to be unguessable.
    #[error("the token is shorter than {MIN_TOKEN} bytes")]
    Short,
    /// Longer than a header should be.
    #[error("the token is longer than {MAX_TOKEN} bytes")]
    Long,
    /// No header could carry it as one word.
    #[error("the token holds white space or a byte that is not visible ASCII")]
    NotVisible,
}

impl Token {
    /// A new token: 32 random bytes as 64 hex digits.
    ///
    /// # Errors
    /// When the system gives no random bytes.
    pub fn generate() -> Result<Token, getrandom::Error> {
        let mut random = Zeroizing::new([0; RANDOM]);
        getrandom::fill(&mut *random)?;
        let mut text = Zeroizing::new(vec![0; 2 * RANDOM]);
        // The lengths fit, so this cannot fail.
        let _ = hex::encode_to_slice(*random, &mut text);
        Ok(Token(text))
    }

    /// Takes in a token as it was typed or piped: at most one line ending behind
    /// it does not count.
    ///
    /// # Errors
    /// [`TokenFault`].
    pub fn import(mut text: Zeroizing<Vec<u8>>) -> Result<Token, TokenFault> {
        let end = match text.as_slice() {
            [head @ .., b'\r', b'\n'] | [head @ .., b'\n'] => head.len(),
            all => all.len(),
        };
        if end > MAX_TOKEN {
            return Err(TokenFault::Long);
        }
        // Wiped before it is cut off: a vector forgets its tail, memory does not.
        text.iter_mut().skip(end).for_each(|byte| *byte = 0);
        text.truncate(end);
        if !text.iter().all(u8::is_ascii_graphic) {
            return Err(TokenFault::NotVisible);
        }
        if end < MIN_TOKEN {
            return Err(TokenFault::Short);
        }
        Ok(Token(text))
    }

    /// What a registry keeps of it.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.0)
    }

    /// The token itself, for the one place it is handed over at.
    #[must_use]
    pub fn reveal(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token")
    }
}

/// The SHA-256 of a token's exact bytes. Not a secret that lets anyone call, but
/// one that lets a guess be tried, so it is written to the registry and nowhere
/// else: it has no `Display`, and its `Debug` says nothing.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    /// The fingerprint of a token as it came in a header.
    #[must_use]
    pub fn of(token: &[u8]) -> Fingerprint {
        Fingerprint(Sha256::digest(token).into())
    }

    /// Reads 64 hex digits of either case, white space around them not counted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Fingerprint> {
        let mut bytes = [0; 32];
        hex::decode_to_slice(text.trim(), &mut bytes).ok()?;
        Some(Fingerprint(bytes))
    }

    /// As the registry holds it.
    pub(crate) fn to_hex(self) -> String {
        hex::encode(self.0)
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Fingerprint")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn import(text: &[u8]) -> Result<Vec<u8>, TokenFault> {
        Token::import(Zeroizing::new(text.to_vec())).map(|token| token.reveal().to_vec())
    }

    #[test]
    fn made_tokens_are_hex_and_differ() {
        let (one, two) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.reveal().len(), 64);
        assert!(one.reveal().iter().all(|b| b"0123456789abcdef".contains(b)));
        assert_ne!(one.reveal(), two.reveal());
        assert!(import(one.reveal()).is_ok());
        assert_eq!(
            format!("{one:?}{:?}", one.fingerprint()),
            "TokenFingerprint"
        );
    }

    #[test]
    fn one_line_ending_is_taken_off() {
        let token = [b'x'; 32];
        for ending in [&b""[..], b"\n", b"\r\n"] {
            assert_eq!(import(&[&token, ending].concat()), Ok(token.to_vec()));
        }
        for ending in [&b"\n\n"[..], b"\r", b"\n\r", b" ", b" \n", b"\r\r\n"] {
            let text = [&token, ending].concat();
            assert_eq!(import(&text), Err(TokenFault::NotVisible), "{ending:?}");
        }
    }

    #[test]
    fn bounds() {
        assert_eq!(import(&[b'x'; MIN_TOKEN - 1]), Err(TokenFault::Short));
        assert_eq!(import(b""), Err(TokenFault::Short));
        assert_eq!(import(b"\n"), Err(TokenFault::Short));
        assert!(import(&[b'x'; MAX_TOKEN]).is_ok());
        assert!(import(&[&[b'x'; MAX_TOKEN][..], b"\r\n"].concat()).is_ok());
        for over in [&b"x"[..], b"x\n", b"x\r\n"] {
            let text = [&[b'x'; MAX_TOKEN][..], over].concat();
            assert!(text.len() as u64 <= READ_AT_MOST);
            assert_eq!(import(&text), Err(TokenFault::Long));
        }
    }

    #[test]
    fn visible_ascii_alone() {
        for byte in 0..=255u8 {
            let text = [&[b'x'; MIN_TOKEN][..], &[byte], b"x"].concat();
            assert_eq!(
                import(&text).is_ok(),
                (0x21..=0x7e).contains(&byte),
                "{byte}"
            );
        }
    }

    #[test]
    fn fingerprints() {
        let made = Fingerprint::of(b"abc");
        let text = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(made.to_hex(), text);
        assert_eq!(Fingerprint::parse(text), Some(made));
        assert_eq!(
            Fingerprint::parse(&format!(" {}\t", text.to_uppercase())),
            Some(made)
        );
        for bad in ["", &text[1..], &format!("{text}0"), &text.replace('b', "g")] {
            assert_eq!(Fingerprint::parse(bad), None, "{bad}");
        }
    }
}
