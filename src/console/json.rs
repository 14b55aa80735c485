//! The one JSON object a command prints with `--json`.
//!
//! Members keep the order in which they were given, so a value is turned into text at once instead
//! of passing through a sorted map. Characters that could act on a terminal are written as `\u`
//! escapes: the value is the same, and a person who looks at the line is as safe as with the
//! human form.

use std::io;

use serde::{Serialize, Serializer};
use serde_json::ser::Formatter;

use crate::escape;

/// Counts up to here are JSON numbers; a bigger one would lose digits in readers that use doubles.
const EXACT: u64 = 1 << 53;

/// Members of a result object, in the order in which they are added.
#[derive(Clone, Debug, Default)]
pub struct JsonObject {
    members: Vec<(String, String)>,
    broken: bool,
}

impl JsonObject {
    /// An object without members.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a member. Structs serialise in the order of their fields.
    #[must_use]
    pub fn with(mut self, name: &str, value: &(impl Serialize + ?Sized)) -> Self {
        self.push(name, value);
        self
    }

    /// Adds a member when there is a value; an absent fact is an absent member.
    #[must_use]
    pub fn with_some(mut self, name: &str, value: Option<&(impl Serialize + ?Sized)>) -> Self {
        if let Some(value) = value {
            self.push(name, value);
        }
        self
    }

    /// [`JsonObject::with`] for building in a loop.
    pub fn push(&mut self, name: &str, value: &(impl Serialize + ?Sized)) {
        match encode(value) {
            Ok(text) => self.members.push((name.to_owned(), text)),
            // Only a bug gets here (a map whose keys are no strings); the object must not be
            // printed as if it were complete.
            Err(_) => self.broken = true,
        }
    }

    /// Adds all members of another object.
    pub fn extend(&mut self, other: Self) {
        self.members.extend(other.members);
        self.broken |= other.broken;
    }

    /// Whether a member could not be written; then the object says too little and is not printed.
    #[must_use]
    pub(crate) fn is_broken(&self) -> bool {
        self.broken
    }

    /// The object as one line, without a newline.
    #[must_use]
    pub fn to_line(&self) -> String {
        let mut out = String::from("{");
        for (index, (name, value)) in self.members.iter().enumerate() {
            if index > 0 {
                out.push(',');
            }
            out.push_str(&encode(name).unwrap_or_default());
            out.push(':');
            out.push_str(value);
        }
        out.push('}');
        out
    }
}

impl Serialize for JsonObject {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::{Error as _, SerializeMap as _};
        let mut map = serializer.serialize_map(Some(self.members.len()))?;
        for (name, value) in &self.members {
            let raw: &serde_json::value::RawValue =
                serde_json::from_str(value).map_err(S::Error::custom)?;
            map.serialize_entry(name, raw)?;
        }
        map.end()
    }
}

/// A 64-bit count: a JSON number below 2^53, a string of its digits from there on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Count(pub u64);

impl Serialize for Count {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0 < EXACT {
            serializer.serialize_u64(self.0)
        } else {
            serializer.collect_str(&self.0)
        }
    }
}

/// Bytes that are text as they are, others in the reversible escaped form: for paths and names
/// that need not be UTF-8.
#[must_use]
pub fn text(bytes: &[u8]) -> String {
    std::str::from_utf8(bytes).map_or_else(|_| escape::line(bytes), str::to_owned)
}

/// One value as compact JSON text that cannot steer a terminal.
fn encode(value: &(impl Serialize + ?Sized)) -> serde_json::Result<String> {
    let mut out = Vec::new();
    value.serialize(&mut serde_json::Serializer::with_formatter(&mut out, Plain))?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

/// Compact form with hidden characters as `\u` escapes.
struct Plain;

impl Formatter for Plain {
    fn write_string_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        let mut rest = fragment;
        while let Some(at) = rest.find(escape::is_hidden) {
            writer.write_all(&rest.as_bytes()[..at])?;
            let mut chars = rest[at..].chars();
            if let Some(c) = chars.next() {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    write!(writer, "\\u{unit:04x}")?;
                }
            }
            rest = chars.as_str();
        }
        writer.write_all(rest.as_bytes())
    }

    fn write_raw_fragment<W: ?Sized + io::Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        // Raw values come from this module or from a caller's own JSON text. Outside of strings a
        // hidden character is white space only, so a line break there becomes a space.
        let mut in_string = false;
        let mut escaped = false;
        for c in fragment.chars() {
            match c {
                '\n' | '\r' | '\t' if !in_string => writer.write_all(b" ")?,
                c if escape::is_hidden(c) => {
                    self.write_string_fragment(writer, c.encode_utf8(&mut [0; 4]))?;
                }
                c => writer.write_all(c.encode_utf8(&mut [0; 4]).as_bytes())?,
            }
            if in_string {
                (in_string, escaped) = (escaped || c != '"', !escaped && c == '\\');
            } else {
                in_string = c == '"';
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Serialize)]
    struct Unsorted {
        zeta: u8,
        alpha: &'static str,
    }

    #[test]
    fn members_keep_their_order() {
        let object = JsonObject::new()
            .with(
                "z",
                &Unsorted {
                    zeta: 1,
                    alpha: "x",
                },
            )
            .with_some("absent", None::<&str>)
            .with_some("b", Some(&Count(1 << 53)))
            .with("a", &Count((1 << 53) - 1));
        let expected =
            r#"{"z":{"zeta":1,"alpha":"x"},"b":"9007199254740992","a":9007199254740991}"#;
        assert_eq!(object.to_line(), expected);
        let nested = JsonObject::new().with("outer", &object).to_line();
        assert_eq!(nested, format!("{{\"outer\":{expected}}}"));
    }

    #[test]
    fn hidden_characters_are_escaped_and_the_value_is_the_same() {
        let hostile = "\u{1b}]8;;\u{7f}\u{9b}\u{202e}\u{e0041}\"\\é\n";
        let line = JsonObject::new().with("t", hostile).to_line();
        assert!(!line.contains(escape::is_hidden), "{line}");
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["t"], hostile);
    }

    #[test]
    fn raw_values_cannot_add_lines() {
        let raw = "{\n \"k\\\"\":\t\"\u{202e}\" }";
        let raw: Box<serde_json::value::RawValue> = serde_json::from_str(raw).unwrap();
        let line = JsonObject::new().with("r", &raw).to_line();
        assert!(!line.contains('\n') && !line.contains('\u{202e}'), "{line}");
        let back: serde_json::Value = serde_json::from_str(&line).unwrap();
        assert_eq!(back["r"]["k\""], "\u{202e}");
    }

    #[test]
    fn a_member_that_cannot_be_written_is_noticed() {
        let keys = std::collections::BTreeMap::from([(vec![1_u8], 1)]);
        assert!(JsonObject::new().with("m", &keys).is_broken());
    }
}
