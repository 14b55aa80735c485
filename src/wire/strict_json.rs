//! A strict scan of JSON text, made before any decoder sees it.
//!
//! The decoder behind it is lenient where two readers could disagree: it keeps
//! the last of two equal keys, reads `"inf"` as a number and skips unknown
//! values of any depth. Each such difference is a way to show one request to a
//! checker and another to the daemon, so the scan refuses them all.

use std::{collections::HashSet, fmt};

use crate::limits::MAX_JSON_DEPTH;

/// What the scan found wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{fault} at byte {offset}")]
pub struct StrictJsonError {
    /// Byte offset from the start of the text.
    pub offset: usize,
    /// What is wrong.
    pub fault: Fault,
}

/// A rule of the scan that a text broke.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text is empty or white space.
    Empty,
    /// The text starts with a byte-order mark.
    ByteOrderMark,
    /// The text is not UTF-8.
    NotUtf8,
    /// The value is not an object.
    NotAnObject,
    /// The text breaks JSON's grammar or ends early.
    Syntax,
    /// Something follows the object.
    TrailingData,
    /// A `\u` escape leaves half of a surrogate pair.
    LoneSurrogate,
    /// A control character stands raw in a string.
    ControlCharacter,
    /// An object names one member twice, in one spelling or in both.
    DuplicateKey,
    /// Objects and arrays nest deeper than [`MAX_JSON_DEPTH`].
    TooDeep,
    /// A string stands for a number and is not the text of one.
    NotANumber,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Empty => "the text is empty",
            Fault::ByteOrderMark => "the text starts with a byte-order mark",
            Fault::NotUtf8 => "the text is not UTF-8",
            Fault::NotAnObject => "the text is not one JSON object",
            Fault::Syntax => "the text is not JSON",
            Fault::TrailingData => "text follows the object",
            Fault::LoneSurrogate => "an escape leaves half of a surrogate pair",
            Fault::ControlCharacter => "a control character stands in a string",
            Fault::DuplicateKey => "duplicate field",
            Fault::TooDeep => "objects nest too deep",
            Fault::NotANumber => "a string stands for a number and is none",
        })
    }
}

/// Numeric fields of the schema by folded name. No string field has one of
/// these names, so the scan needs no schema.
const NUMERIC: [&str; 29] = [
    "addedLatencyMs",
    "bytesMoved",
    "calls",
    "cpus",
    "diskMb",
    "durationMs",
    "endTime",
    "endedUnixMs",
    "exitCode",
    "expiresUnixMs",
    "extraCalls",
    "idleTimeoutMs",
    "lifetimeMs",
    "maxSessionsPerCaller",
    "maxSessionsPerOwner",
    "maxTimeoutMs",
    "memoryMb",
    "outputs",
    "pids",
    "protocol",
    "sequence",
    "sessionIdleTimeoutMs",
    "sessionLifetimeMs",
    "startedUnixMs",
    "status",
    "step",
    "timeoutMs",
    "values",
    "width",
];

/// Scans `text`: one JSON object, UTF-8, no byte-order mark, unique keys (also
/// across camelCase and snake_case), paired surrogates, nesting of at most
/// [`MAX_JSON_DEPTH`]. Time and memory grow linearly with the text; the call
/// stack does not grow.
///
/// # Errors
/// The first fault and its byte offset.
pub fn check(text: &[u8]) -> Result<(), StrictJsonError> {
    let at = |offset, fault| StrictJsonError { offset, fault };
    if text.starts_with(b"\xef\xbb\xbf") {
        return Err(at(0, Fault::ByteOrderMark));
    }
    let text = std::str::from_utf8(text).map_err(|e| at(e.valid_up_to(), Fault::NotUtf8))?;
    let mut scan = Scan {
        text: text.as_bytes(),
        pos: 0,
        stack: Vec::new(),
    };
    scan.run().map_err(|fault| at(scan.pos, fault))
}

/// Folds a member name to one spelling: in a name of letters, digits and `_`,
/// each `_x` becomes `X`.
fn fold(key: &str) -> String {
    if !key.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_') {
        return key.to_owned();
    }
    let mut out = String::with_capacity(key.len());
    let mut upper = false;
    for c in key.chars() {
        if c == '_' {
            upper = true;
        } else if upper {
            out.push(c.to_ascii_uppercase());
            upper = false;
        } else {
            out.push(c);
        }
    }
    out
}

struct Object {
    keys: HashSet<String>,
    numeric: bool,
}

enum Level {
    Object(Object),
    /// An array, and whether its strings stand for numbers.
    Array(bool),
}

struct Scan<'a> {
    text: &'a [u8],
    pos: usize,
    stack: Vec<Level>,
}

impl Scan<'_> {
    fn run(&mut self) -> Result<(), Fault> {
        self.space();
        match self.peek() {
            None => return Err(Fault::Empty),
            Some(b'{') => {}
            Some(_) => return Err(Fault::NotAnObject),
        }
        self.value()?;
        while !self.stack.is_empty() {
            self.advance()?;
        }
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(Fault::TrailingData),
        }
    }

    /// Reads up to and including the next value of the innermost container, or
    /// its end.
    fn advance(&mut self) -> Result<(), Fault> {
        self.space();
        let first = self.follows_opening();
        match self.stack.last_mut() {
            Some(Level::Object(_)) => {
                match (self.peek(), first) {
                    (Some(b'}'), _) => return self.close(),
                    (Some(b','), false) => {
                        self.pos += 1;
                        self.space();
                    }
                    (Some(b'"'), true) => {}
                    _ => return Err(Fault::Syntax),
                }
                let start = self.pos;
                let key = fold(&self.string()?);
                let numeric = NUMERIC.binary_search(&key.as_str()).is_ok();
                if let Some(Level::Object(object)) = self.stack.last_mut() {
                    object.numeric = numeric;
                    if !object.keys.insert(key) {
                        self.pos = start;
                        return Err(Fault::DuplicateKey);
                    }
                }
                self.space();
                if self.peek() != Some(b':') {
                    return Err(Fault::Syntax);
                }
                self.pos += 1;
                self.space();
                self.value()
            }
            Some(Level::Array(_)) => {
                match (self.peek(), first) {
                    (Some(b']'), _) => return self.close(),
                    (Some(b','), false) => {
                        self.pos += 1;
                        self.space();
                    }
                    (Some(_), true) => {}
                    _ => return Err(Fault::Syntax),
                }
                self.value()
            }
            None => Ok(()),
        }
    }

    /// Whether the last byte that is not white space opened this container.
    fn follows_opening(&self) -> bool {
        self.text[..self.pos]
            .iter()
            .rev()
            .find(|b| !matches!(b, b' ' | b'\t' | b'\n' | b'\r'))
            .is_some_and(|b| matches!(b, b'{' | b'['))
    }

    fn close(&mut self) -> Result<(), Fault> {
        self.pos += 1;
        self.stack.pop();
        Ok(())
    }

    fn value(&mut self) -> Result<(), Fault> {
        match self.peek() {
            Some(b'{') => self.open(Level::Object(Object {
                keys: HashSet::new(),
                numeric: false,
            })),
            Some(b'[') => {
                let numeric = self.numeric();
                self.open(Level::Array(numeric))
            }
            Some(b'"') => {
                let start = self.pos;
                let numeric = self.numeric();
                let text = self.string()?;
                if numeric && misread_as_number(&text) {
                    self.pos = start;
                    return Err(Fault::NotANumber);
                }
                Ok(())
            }
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word(b"true"),
            Some(b'f') => self.word(b"false"),
            Some(b'n') => self.word(b"null"),
            _ => Err(Fault::Syntax),
        }
    }

    fn open(&mut self, level: Level) -> Result<(), Fault> {
        if self.stack.len() >= MAX_JSON_DEPTH {
            return Err(Fault::TooDeep);
        }
        self.stack.push(level);
        self.pos += 1;
        Ok(())
    }

    fn numeric(&self) -> bool {
        match self.stack.last() {
            Some(Level::Object(object)) => object.numeric,
            Some(Level::Array(numeric)) => *numeric,
            None => false,
        }
    }

    fn word(&mut self, word: &[u8]) -> Result<(), Fault> {
        if self.text[self.pos..].starts_with(word) {
            self.pos += word.len();
            Ok(())
        } else {
            Err(Fault::Syntax)
        }
    }

    fn number(&mut self) -> Result<(), Fault> {
        let len = number_length(&self.text[self.pos..]).ok_or(Fault::Syntax)?;
        self.pos += len;
        Ok(())
    }

    /// Reads a string and gives its unescaped text.
    fn string(&mut self) -> Result<String, Fault> {
        if self.peek() != Some(b'"') {
            return Err(Fault::Syntax);
        }
        self.pos += 1;
        let mut out = String::new();
        loop {
            let rest = &self.text[self.pos..];
            let plain = rest
                .iter()
                .position(|&b| b == b'"' || b == b'\\' || b < 0x20)
                .ok_or(Fault::Syntax)?;
            // The whole text is UTF-8 and the cut is at an ASCII byte.
            out.push_str(std::str::from_utf8(&rest[..plain]).map_err(|_| Fault::NotUtf8)?);
            self.pos += plain;
            match rest[plain] {
                b'"' => {
                    self.pos += 1;
                    return Ok(out);
                }
                b'\\' => out.push(self.escape()?),
                _ => return Err(Fault::ControlCharacter),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Fault> {
        let kind = *self.text.get(self.pos + 1).ok_or(Fault::Syntax)?;
        let plain = match kind {
            b'"' => '"',
            b'\\' => '\\',
            b'/' => '/',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.hex4(self.pos + 2)?;
                if !(0xd800..0xe000).contains(&first) {
                    self.pos += 6;
                    return char::from_u32(first).ok_or(Fault::LoneSurrogate);
                }
                if first >= 0xdc00 || !self.text[self.pos + 6..].starts_with(b"\\u") {
                    return Err(Fault::LoneSurrogate);
                }
                let second = self.hex4(self.pos + 8)?;
                if !(0xdc00..0xe000).contains(&second) {
                    return Err(Fault::LoneSurrogate);
                }
                self.pos += 12;
                let scalar = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(scalar).ok_or(Fault::LoneSurrogate);
            }
            _ => return Err(Fault::Syntax),
        };
        self.pos += 2;
        Ok(plain)
    }

    fn hex4(&self, at: usize) -> Result<u32, Fault> {
        let digits = self.text.get(at..at + 4).ok_or(Fault::Syntax)?;
        digits.iter().try_fold(0, |value, b| {
            let digit = (*b as char).to_digit(16).ok_or(Fault::Syntax)?;
            Ok(value * 16 + digit)
        })
    }

    fn peek(&self) -> Option<u8> {
        self.text.get(self.pos).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }
}

/// The length of the JSON number at the start of `text`.
fn number_length(text: &[u8]) -> Option<usize> {
    let digits = |at: usize| {
        let rest = text.get(at..).unwrap_or_default();
        rest.iter().take_while(|b| b.is_ascii_digit()).count()
    };
    let mut at = usize::from(text.first() == Some(&b'-'));
    match text.get(at)? {
        b'0' => at += 1,
        b'1'..=b'9' => at += digits(at),
        _ => return None,
    }
    if text.get(at) == Some(&b'.') {
        match digits(at + 1) {
            0 => return None,
            n => at += 1 + n,
        }
    }
    if matches!(text.get(at), Some(b'e' | b'E')) {
        at += 1;
        if matches!(text.get(at), Some(b'+' | b'-')) {
            at += 1;
        }
        match digits(at) {
            0 => return None,
            n => at += n,
        }
    }
    Some(at)
}

/// Whether the decoder would take this string for a number although it is
/// neither JSON's text of a finite one nor one of the three names.
fn misread_as_number(text: &str) -> bool {
    if matches!(text, "NaN" | "Infinity" | "-Infinity") {
        return false;
    }
    match text.parse::<f64>() {
        Ok(value) => !value.is_finite() || number_length(text.as_bytes()) != Some(text.len()),
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fault(text: &str) -> Option<Fault> {
        check(text.as_bytes()).err().map(|e| e.fault)
    }

    #[test]
    fn accepts() {
        for text in [
            "{}",
            " {\"a\" : [1, -0, 1.5e3, \"\\ud83d\\ude00\", null, true, {}] , \"b\":{\"a\":1}}\n",
            "{\"values\":[\"NaN\",\"-Infinity\",\"1e3\",3]}",
            "{\"x\":\"inf\"}",
            "{\"timeoutMs\":\"abc\"}",
            "{\"a\":[],\"b\":[[],[{}]]}",
        ] {
            assert_eq!(fault(text), None, "{text}");
        }
        assert!(NUMERIC.is_sorted());
    }

    #[test]
    fn refuses() {
        for (text, expected) in [
            ("", Fault::Empty),
            (" \n", Fault::Empty),
            ("\u{feff}{}", Fault::ByteOrderMark),
            ("[]", Fault::NotAnObject),
            ("null", Fault::NotAnObject),
            ("\"a\"", Fault::NotAnObject),
            ("{} {}", Fault::TrailingData),
            ("{}x", Fault::TrailingData),
            ("{\"a\":1,}", Fault::Syntax),
            ("{,\"a\":1}", Fault::Syntax),
            ("{\"a\":[1,]}", Fault::Syntax),
            ("{\"a\":[,1]}", Fault::Syntax),
            ("{\"a\":[1 2]}", Fault::Syntax),
            ("{\"a\":1 \"b\":2}", Fault::Syntax),
            ("{\"a\"}", Fault::Syntax),
            ("{\"a\":NaN}", Fault::Syntax),
            ("{\"a\":+1}", Fault::Syntax),
            ("{\"a\":01}", Fault::Syntax),
            ("{\"a\":1.}", Fault::Syntax),
            ("{\"a\":.5}", Fault::Syntax),
            ("{\"a\":1e}", Fault::Syntax),
            ("{\"a\":tru}", Fault::Syntax),
            ("{\"a\":1]", Fault::Syntax),
            ("{\"a", Fault::Syntax),
            ("{", Fault::Syntax),
            ("{\"a\":\"\\ud800\"}", Fault::LoneSurrogate),
            ("{\"a\":\"\\udc00\"}", Fault::LoneSurrogate),
            ("{\"a\":\"\\ud800\\u0041\"}", Fault::LoneSurrogate),
            ("{\"a\":\"\\x\"}", Fault::Syntax),
            ("{\"a\":\"\n\"}", Fault::ControlCharacter),
            ("{\"a\":1,\"a\":1}", Fault::DuplicateKey),
            ("{\"a\":1,\"\\u0061\":null}", Fault::DuplicateKey),
            ("{\"timeoutMs\":1,\"timeout_ms\":2}", Fault::DuplicateKey),
            ("{\"x\":{\"q\":1,\"q\":1}}", Fault::DuplicateKey),
            ("{\"values\":[\"inf\"]}", Fault::NotANumber),
            ("{\"end_time\":\"1e400\"}", Fault::NotANumber),
            ("{\"protocol\":\"+3\"}", Fault::NotANumber),
            ("{\"step\":\"nan\"}", Fault::NotANumber),
        ] {
            assert_eq!(fault(text), Some(expected), "{text}");
        }
        assert_eq!(
            check(b"{\"a\":\"\xff\"}"),
            Err(StrictJsonError {
                offset: 6,
                fault: Fault::NotUtf8
            })
        );
    }

    #[test]
    fn depth_is_counted_not_recursed() {
        let nested = |n: usize| format!("{{\"a\":{}{}}}", "[".repeat(n - 1), "]".repeat(n - 1));
        assert_eq!(fault(&nested(MAX_JSON_DEPTH)), None);
        assert_eq!(fault(&nested(MAX_JSON_DEPTH + 1)), Some(Fault::TooDeep));
        assert_eq!(
            fault(&format!("{{\"a\":{}", "[".repeat(1 << 20))),
            Some(Fault::TooDeep)
        );
    }

    fn value() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<f64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(6, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Into::into),
                prop::collection::btree_map("k[a-z]{0,6}", inner, 0..8)
                    .prop_map(|m| m.into_iter().collect::<serde_json::Map<_, _>>().into()),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_a_second_parser_on_documents(value in value()) {
            let text = serde_json::json!({ "v": value });
            for text in [text.to_string(), serde_json::to_string_pretty(&text).unwrap()] {
                prop_assert_eq!(check(text.as_bytes()), Ok(()));
            }
        }

        #[test]
        fn accepts_nothing_a_second_parser_refuses(
            value in value(), at in any::<prop::sample::Index>(), byte in any::<u8>(), cut in any::<bool>()
        ) {
            let mut text = serde_json::json!({ "v": value }).to_string().into_bytes();
            let at = at.index(text.len());
            if cut { text.truncate(at) } else { text[at] = byte }
            if check(&text).is_ok() {
                prop_assert!(serde_json::from_slice::<serde_json::Value>(&text).is_ok()
                    // A number too large for a double is grammar, not value.
                    || text.windows(1).any(|w| matches!(w[0], b'e' | b'E')));
            }
        }
    }
}
