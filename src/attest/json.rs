//! A strict pull reader for JSON text that was signed or that frames a line.
//!
//! It keeps what other readers smooth over: repeated members are refused under
//! their unescaped names, names are compared as exact text, numbers keep their
//! digits, nothing may follow the value. Nesting is bounded, so recursion is.

use std::{borrow::Cow, collections::HashSet, ops::Range};

use crate::scan;

/// Deepest nesting of objects and arrays.
pub const MAX_DEPTH: usize = 64;

/// A rule that a text broke.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    /// A control character stands raw in a string.
    ControlCharacter,
    /// A number is no plain integer of the type asked for.
    NotInteger,
    /// An object names a member twice.
    Repeated,
    /// The text breaks JSON's grammar or ends early.
    Syntax,
    /// Values nest deeper than [`MAX_DEPTH`].
    TooDeep,
    /// Something follows the value.
    Trailing,
    /// A member is not known.
    Unknown,
    /// A value has another type.
    WrongType,
}

/// A broken rule, the byte it was found at and the member it is about.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct JsonFault {
    /// The rule.
    pub kind: Kind,
    /// The byte of the text.
    pub at: usize,
    /// The member it is about; foreign text.
    pub member: Option<String>,
}

/// What can be read when a member's value is an object or array.
pub struct Json<'a> {
    text: &'a str,
    pos: usize,
    depth: usize,
}

type Read<T> = Result<T, JsonFault>;

impl<'a> Json<'a> {
    /// Begins before a text's first value.
    #[must_use]
    pub fn new(text: &'a str) -> Self {
        Json {
            text,
            pos: 0,
            depth: 0,
        }
    }

    /// The byte the next value or sign begins at.
    #[must_use]
    pub fn at(&self) -> usize {
        self.pos
    }

    pub(crate) fn fault(&self, kind: Kind, at: usize) -> JsonFault {
        debug_assert!(at <= self.text.len());
        JsonFault {
            kind,
            at,
            member: None,
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.pos).copied()
    }

    fn space(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.pos += 1;
        }
    }

    /// Nothing but white space is left.
    ///
    /// # Errors
    /// [`Kind::Trailing`].
    pub fn end(&mut self) -> Read<()> {
        self.space();
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.fault(Kind::Trailing, self.pos)),
        }
    }

    /// Steps past `open`; any other value is a wrong type.
    fn open(&mut self, open: u8) -> Read<()> {
        self.space();
        match self.peek() {
            Some(byte) if byte == open => {}
            Some(b'{' | b'[' | b'"' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(self.fault(Kind::WrongType, self.pos));
            }
            _ => return Err(self.fault(Kind::Syntax, self.pos)),
        }
        if self.depth == MAX_DEPTH {
            return Err(self.fault(Kind::TooDeep, self.pos));
        }
        self.depth += 1;
        self.pos += 1;
        Ok(())
    }

    /// Whether another element follows; steps past the comma or the end.
    fn more(&mut self, close: u8, first: bool) -> Read<bool> {
        self.space();
        match self.peek() {
            Some(byte) if byte == close => {
                self.pos += 1;
                self.depth -= 1;
                Ok(false)
            }
            Some(b',') if !first => {
                self.pos += 1;
                self.space();
                match self.peek() {
                    Some(byte) if byte == close => Err(self.fault(Kind::Syntax, self.pos)),
                    _ => Ok(true),
                }
            }
            Some(_) if first => Ok(true),
            _ => Err(self.fault(Kind::Syntax, self.pos)),
        }
    }

    /// Reads an object; `member` is called with each name and the byte the name
    /// begins at, and must read the value.
    ///
    /// # Errors
    /// What was broken, or the callback's own.
    pub fn object<E: From<JsonFault>>(
        &mut self,
        mut member: impl FnMut(&mut Self, &str, usize) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'{')?;
        let mut names = Names::default();
        let mut first = true;
        while self.more(b'}', first)? {
            first = false;
            let start = self.pos;
            if self.peek() != Some(b'"') {
                return Err(self.fault(Kind::Syntax, start).into());
            }
            let name = self.string()?;
            self.space();
            if self.peek() != Some(b':') {
                return Err(self.fault(Kind::Syntax, self.pos).into());
            }
            self.pos += 1;
            if !names.insert(&name) {
                return Err(JsonFault {
                    kind: Kind::Repeated,
                    at: start,
                    member: Some(name.into_owned()),
                }
                .into());
            }
            member(self, &name, start)?;
            names.keep(name);
        }
        Ok(())
    }

    /// Reads an array; `element` must read one value.
    ///
    /// # Errors
    /// What was broken, or the callback's own.
    pub fn array<E: From<JsonFault>>(
        &mut self,
        mut element: impl FnMut(&mut Self) -> Result<(), E>,
    ) -> Result<(), E> {
        self.open(b'[')?;
        let mut first = true;
        while self.more(b']', first)? {
            first = false;
            element(self)?;
        }
        Ok(())
    }

    /// Steps past `null` if it is next.
    pub fn null(&mut self) -> bool {
        self.space();
        let there = self.text[self.pos..].starts_with("null");
        if there {
            self.pos += 4;
        }
        there
    }

    /// Reads a string; borrowed when it holds no escape.
    ///
    /// # Errors
    /// What was broken.
    pub fn string(&mut self) -> Read<Cow<'a, str>> {
        self.space();
        match self.peek() {
            Some(b'"') => {}
            Some(b'{' | b'[' | b'-' | b'0'..=b'9' | b't' | b'f' | b'n') => {
                return Err(self.fault(Kind::WrongType, self.pos));
            }
            _ => return Err(self.fault(Kind::Syntax, self.pos)),
        }
        self.pos += 1;
        let mut owned: Option<String> = None;
        loop {
            let text = self.text;
            let rest = &text.as_bytes()[self.pos..];
            let plain = scan::first(rest, |b| (b == b'"') | (b == b'\\') | (b < 0x20));
            if plain == rest.len() {
                return Err(self.fault(Kind::Syntax, text.len()));
            }
            // The cut is at an ASCII byte, so between characters.
            let part = &text[self.pos..self.pos + plain];
            self.pos += plain;
            match rest[plain] {
                b'"' => {
                    self.pos += 1;
                    return Ok(match owned {
                        None => Cow::Borrowed(part),
                        Some(mut owned) => {
                            owned.push_str(part);
                            Cow::Owned(owned)
                        }
                    });
                }
                b'\\' => {
                    let owned = owned.get_or_insert_default();
                    owned.push_str(part);
                    owned.push(self.escape()?);
                }
                _ => return Err(self.fault(Kind::ControlCharacter, self.pos)),
            }
        }
    }

    fn escape(&mut self) -> Read<char> {
        let fault = self.fault(Kind::Syntax, self.pos);
        let bytes = self.text.as_bytes();
        let plain = match bytes.get(self.pos + 1) {
            Some(b'"') => '"',
            Some(b'\\') => '\\',
            Some(b'/') => '/',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            Some(b'n') => '\n',
            Some(b'r') => '\r',
            Some(b't') => '\t',
            Some(b'u') => {
                let first = hex4(bytes, self.pos + 2).ok_or_else(|| fault.clone())?;
                if !(0xd800..0xe000).contains(&first) {
                    self.pos += 6;
                    return char::from_u32(first).ok_or(fault);
                }
                let paired = first < 0xdc00 && bytes[self.pos + 6..].starts_with(b"\\u");
                let second = hex4(bytes, self.pos + 8)
                    .filter(|second| paired && (0xdc00..0xe000).contains(second))
                    .ok_or_else(|| fault.clone())?;
                self.pos += 12;
                let scalar = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return char::from_u32(scalar).ok_or(fault);
            }
            _ => return Err(fault),
        };
        self.pos += 2;
        Ok(plain)
    }

    /// Reads `true` or `false`.
    ///
    /// # Errors
    /// What was broken.
    pub fn boolean(&mut self) -> Read<bool> {
        self.space();
        for (word, value) in [("true", true), ("false", false)] {
            if self.text[self.pos..].starts_with(word) {
                self.pos += word.len();
                return Ok(value);
            }
        }
        Err(self.fault(Kind::WrongType, self.pos))
    }

    /// Reads a plain decimal integer that fits `N`: no fraction, exponent or `-0`.
    pub(crate) fn integer<N: std::str::FromStr>(&mut self) -> Read<N> {
        self.space();
        let start = self.pos;
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => {}
            Some(b'{' | b'[' | b'"' | b't' | b'f' | b'n') => {
                return Err(self.fault(Kind::WrongType, start));
            }
            _ => return Err(self.fault(Kind::Syntax, start)),
        }
        let text = self.number()?;
        let plain = text != "-0" && !text.bytes().any(|b| matches!(b, b'.' | b'e' | b'E'));
        match text.parse() {
            Ok(value) if plain => Ok(value),
            _ => Err(self.fault(Kind::NotInteger, start)),
        }
    }

    /// The first byte of the next value; `None` at the end of the text.
    pub fn next_byte(&mut self) -> Option<u8> {
        self.space();
        self.peek()
    }

    /// Reads a number of any form as its text.
    ///
    /// # Errors
    /// What was broken.
    pub fn number(&mut self) -> Read<&'a str> {
        self.space();
        let start = self.pos;
        let fault = self.fault(Kind::Syntax, start);
        if self.peek() == Some(b'-') {
            self.pos += 1;
        }
        match self.peek() {
            Some(b'0') => self.pos += 1,
            Some(b'1'..=b'9') => self.digits(),
            _ => return Err(fault),
        }
        if self.peek() == Some(b'.') {
            self.pos += 1;
            self.some_digits(&fault)?;
        }
        if let Some(b'e' | b'E') = self.peek() {
            self.pos += 1;
            if let Some(b'+' | b'-') = self.peek() {
                self.pos += 1;
            }
            self.some_digits(&fault)?;
        }
        Ok(&self.text[start..self.pos])
    }

    fn some_digits(&mut self, fault: &JsonFault) -> Read<()> {
        match self.peek() {
            Some(b'0'..=b'9') => {
                self.digits();
                Ok(())
            }
            _ => Err(fault.clone()),
        }
    }

    fn digits(&mut self) {
        while let Some(b'0'..=b'9') = self.peek() {
            self.pos += 1;
        }
    }

    /// Checks any value and gives its bytes in the text.
    ///
    /// # Errors
    /// What was broken.
    pub fn skip(&mut self) -> Read<Range<usize>> {
        self.space();
        let start = self.pos;
        match self.peek() {
            Some(b'{') => self.object(|json, _, _| json.skip().map(drop))?,
            Some(b'[') => self.array(|json| json.skip().map(drop))?,
            Some(b'"') => drop(self.string()?),
            Some(b'-' | b'0'..=b'9') => drop(self.number()?),
            Some(b't' | b'f') => drop(self.boolean().map_err(|mut fault| {
                fault.kind = Kind::Syntax;
                fault
            })?),
            _ if self.null() => {}
            _ => return Err(self.fault(Kind::Syntax, start)),
        }
        Ok(start..self.pos)
    }

    /// An unknown member of an object.
    pub(crate) fn unknown(&self, name: &str, at: usize) -> JsonFault {
        JsonFault {
            member: Some(name.to_owned()),
            ..self.fault(Kind::Unknown, at)
        }
    }
}

fn hex4(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.iter().try_fold(0, |value, byte| {
        Some(value * 16 + char::from(*byte).to_digit(16)?)
    })
}

/// The names of one object so far. Few names are compared one by one; many go
/// into a set, so that a large object costs no quadratic time.
#[derive(Default)]
struct Names<'a> {
    few: Vec<Cow<'a, str>>,
    many: HashSet<Cow<'a, str>>,
}

impl<'a> Names<'a> {
    const FEW: usize = 20;

    /// Whether the name is new; [`Names::keep`] adds it.
    fn insert(&self, name: &str) -> bool {
        !self.few.iter().any(|n| n == name) && !self.many.contains(name)
    }

    fn keep(&mut self, name: Cow<'a, str>) {
        if self.few.len() < Self::FEW {
            self.few.push(name);
        } else {
            self.many.insert(name);
        }
    }
}

#[cfg(test)]
#[path = "json_tests.rs"]
mod tests;
