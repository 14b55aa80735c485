//! The one way strings are written in statements and lines.
//!
//! Two signers of one record must agree byte for byte, and a line must be
//! exactly what its encoder writes. `<`, `>`, `&`, U+2028 and U+2029 are
//! escaped, which JSON writers usually leave as they are.

use crate::scan;

/// Takes written text.
pub(crate) trait Out {
    fn put(&mut self, text: &str);
}

impl Out for String {
    fn put(&mut self, text: &str) {
        self.push_str(text);
    }
}

/// Compares what is written with what is there, without keeping either.
pub(crate) struct Compare<'a> {
    rest: &'a [u8],
    at: usize,
    differs: bool,
}

impl<'a> Compare<'a> {
    pub(crate) fn with(bytes: &'a [u8]) -> Self {
        Compare {
            rest: bytes,
            at: 0,
            differs: false,
        }
    }

    /// The first byte that differs from what was written; `None` when all was
    /// written and nothing is left.
    pub(crate) fn first_difference(&self) -> Option<usize> {
        (self.differs || !self.rest.is_empty()).then_some(self.at)
    }
}

impl Out for Compare<'_> {
    fn put(&mut self, text: &str) {
        if self.differs {
            return;
        }
        let text = text.as_bytes();
        if let Some(rest) = self.rest.strip_prefix(text) {
            self.rest = rest;
            self.at += text.len();
            return;
        }
        self.differs = true;
        self.at += self
            .rest
            .iter()
            .zip(text)
            .take_while(|(found, written)| found == written)
            .count();
    }
}

/// Writes a string with its quotes.
pub(crate) fn string(out: &mut impl Out, text: &str) {
    out.put("\"");
    contents(out, text);
    out.put("\"");
}

/// Whether a byte may begin something that is escaped.
fn is_special(byte: u8) -> bool {
    (byte < 0x20)
        | (byte == b'"')
        | (byte == b'\\')
        | (byte == b'<')
        | (byte == b'>')
        | (byte == b'&')
        | (byte == 0xe2)
}

fn contents(out: &mut impl Out, text: &str) {
    let mut plain = 0;
    let bytes = text.as_bytes();
    let mut at = 0;
    loop {
        at += scan::first(&bytes[at..], is_special);
        let Some(&byte) = bytes.get(at) else {
            break;
        };
        // U+2028 and U+2029 are e2 80 a8 and e2 80 a9.
        let (escape, length) = match byte {
            b'"' => ("\\\"", 1),
            b'\\' => ("\\\\", 1),
            0x08 => ("\\b", 1),
            b'\t' => ("\\t", 1),
            b'\n' => ("\\n", 1),
            0x0c => ("\\f", 1),
            b'\r' => ("\\r", 1),
            b'<' => ("\\u003c", 1),
            b'>' => ("\\u003e", 1),
            b'&' => ("\\u0026", 1),
            0xe2 if bytes[at..].starts_with(b"\xe2\x80\xa8") => ("\\u2028", 3),
            0xe2 if bytes[at..].starts_with(b"\xe2\x80\xa9") => ("\\u2029", 3),
            0..=0x1f => (CONTROL[usize::from(byte)], 1),
            _ => {
                at += 1;
                continue;
            }
        };
        out.put(&text[plain..at]);
        out.put(escape);
        at += length;
        plain = at;
    }
    out.put(&text[plain..]);
}

/// The remaining control characters; those with short escapes are unused here.
const CONTROL: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003", "\\u0004", "\\u0005", "\\u0006", "\\u0007", "\\b",
    "\\t", "\\n", "\\u000b", "\\f", "\\r", "\\u000e", "\\u000f", "\\u0010", "\\u0011", "\\u0012",
    "\\u0013", "\\u0014", "\\u0015", "\\u0016", "\\u0017", "\\u0018", "\\u0019", "\\u001a",
    "\\u001b", "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn written(text: &str) -> String {
        let mut out = String::new();
        string(&mut out, text);
        out
    }

    #[test]
    fn every_row_of_the_table() {
        assert_eq!(written("\"\\/"), r#""\"\\/""#);
        assert_eq!(written("\u{8}\t\n\u{c}\r"), r#""\b\t\n\f\r""#);
        assert_eq!(
            written("\0\u{b}\u{1f}\u{7f}"),
            "\"\\u0000\\u000b\\u001f\u{7f}\""
        );
        assert_eq!(written("<>&"), r#""\u003c\u003e\u0026""#);
        assert_eq!(
            written("a\u{2028}\u{2029}\u{2027}\u{202a}é😀"),
            "\"a\\u2028\\u2029\u{2027}\u{202a}é😀\""
        );
        for control in 0u8..0x20 {
            let text = written(&char::from(control).to_string());
            assert_eq!(
                serde_json::from_str::<String>(&text).unwrap(),
                char::from(control).to_string()
            );
        }
    }

    #[test]
    fn comparing_finds_the_first_difference() {
        let at = |bytes: &[u8]| {
            let mut compare = Compare::with(bytes);
            string(&mut compare, "a<b");
            compare.first_difference()
        };
        assert_eq!(at(br#""a\u003cb""#), None);
        assert_eq!(at(br#""a\u003Cb""#), Some(7));
        assert_eq!(at(br#""a\u003cb"x"#), Some(10));
        assert_eq!(at(br#""a\u003c"#), Some(8));
        assert_eq!(at(b""), Some(0));
    }

    proptest::proptest! {
        #[test]
        fn any_json_reader_gives_the_text_back(text in proptest::string::string_regex("(?s).{0,40}").unwrap()) {
            let json = written(&text);
            proptest::prop_assert_eq!(&serde_json::from_str::<String>(&json).unwrap(), &text);
            for raw in ['<', '>', '&', '\u{2028}', '\u{2029}'] {
                proptest::prop_assert!(!json.contains(raw));
            }
            let mut compare = Compare::with(json.as_bytes());
            string(&mut compare, &text);
            proptest::prop_assert_eq!(compare.first_difference(), None);
        }
    }
}
