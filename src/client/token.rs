//! The bearer token: a secret that is wiped and never shown.

use std::fmt;

use zeroize::Zeroizing;

/// Most bytes of a token.
pub const MAX_TOKEN_BYTES: usize = 4096;

/// A bearer token: 1 to [`MAX_TOKEN_BYTES`] visible ASCII characters.
#[derive(Clone)]
pub struct Token(Zeroizing<String>);

/// The text is no token. It says nothing of the text itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "a token is 1 to {MAX_TOKEN_BYTES} visible ASCII characters, without spaces or line breaks"
)]
pub struct TokenError;

impl Token {
    /// Takes a token. The caller should wipe its own copy.
    ///
    /// # Errors
    /// [`TokenError`] for an empty or too long text, or another character than
    /// U+0021 to U+007E: a line break would let it add headers.
    pub fn new(text: &str) -> Result<Token, TokenError> {
        let visible = text.bytes().all(|b| (0x21..=0x7e).contains(&b));
        if !visible || !(1..=MAX_TOKEN_BYTES).contains(&text.len()) {
            return Err(TokenError);
        }
        Ok(Token(Zeroizing::new(text.to_owned())))
    }

    /// The text, for a header or a digest only.
    pub(crate) fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_ascii() {
        for bad in ["", " ", "a b", "a\n", "a\r\nX: y", "é", "a\u{7f}", "\0"] {
            assert_eq!(Token::new(bad).err(), Some(TokenError), "{bad:?}");
        }
        assert!(Token::new(&"~".repeat(MAX_TOKEN_BYTES)).is_ok());
        assert!(Token::new(&"~".repeat(MAX_TOKEN_BYTES + 1)).is_err());
        let token = Token::new("!canary-token~").unwrap();
        assert_eq!(token.expose(), "!canary-token~");
        assert!(!format!("{token:?} {TokenError}").contains("canary"));
    }
}
