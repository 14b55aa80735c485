//! JUnit XML as runners write it. There is no one schema.
//!
//! A case's class comes from its child elements alone. No document type, no
//! entity of a document's own: what is expanded is the five predefined
//! references and numbers.

use quick_xml::{
    Reader,
    events::{BytesStart, Event},
};

use super::{Case, MAX_CASES, MAX_DEPTH, ParseError, Parsed, name};
use crate::facts::TestClass;

/// Elements inside one another, those of suites included.
const MAX_ELEMENTS: usize = 128;

/// Attributes of one element. Each is compared with those before it.
const MAX_ATTRIBUTES: usize = 64;

/// Bytes of the XML declaration, whose attributes are compared likewise.
const MAX_DECLARATION: usize = 1024;

/// Reads a report.
///
/// # Errors
/// [`ParseError`].
pub fn read(text: &str) -> Result<Parsed, ParseError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut reader = Reader::from_str(text);
    let mut document = Document {
        text,
        open: Vec::new(),
        ended: false,
        parsed: Parsed::default(),
    };
    loop {
        let at = usize::try_from(reader.buffer_position()).unwrap_or(usize::MAX);
        let refuse = |what| Err(ParseError::at(text.as_bytes(), at, what));
        match reader.read_event() {
            Err(_) => return refuse("not well-formed XML"),
            Ok(Event::Eof) => break,
            Ok(Event::Start(start)) => document.start(&start, at)?,
            Ok(Event::Empty(start)) => {
                document.start(&start, at)?;
                document.end(at)?;
            }
            Ok(Event::End(_)) => document.end(at)?,
            Ok(Event::DocType(_)) => return refuse("a document type is not read"),
            Ok(Event::Decl(decl)) => {
                if decl.len() > MAX_DECLARATION {
                    return refuse("the XML declaration is too long");
                }
                let other = decl.encoding().is_some_and(|encoding| {
                    !encoding.is_ok_and(|name| {
                        name.eq_ignore_ascii_case(b"utf-8")
                            || name.eq_ignore_ascii_case(b"us-ascii")
                    })
                });
                if other {
                    return refuse("an encoding other than UTF-8");
                }
            }
            Ok(Event::GeneralRef(reference)) => {
                let known = std::str::from_utf8(&reference).is_ok_and(|n| character(n).is_some());
                if !known {
                    return refuse("a reference that is not predefined");
                }
                document.text_outside(true, at)?;
            }
            Ok(Event::Text(text)) => {
                document.text_outside(!text.iter().all(u8::is_ascii_whitespace), at)?;
            }
            Ok(Event::CData(_)) => document.text_outside(true, at)?,
            Ok(Event::Comment(_) | Event::PI(_)) => {}
        }
    }
    if !document.ended {
        return Err(ParseError::at(
            text.as_bytes(),
            text.len(),
            "the document ends before its root does",
        ));
    }
    Ok(document.parsed)
}

struct Document<'t> {
    text: &'t str,
    open: Vec<Element>,
    ended: bool,
    parsed: Parsed,
}

enum Element {
    Suite(Suite),
    Case(OpenCase),
    /// Anything else: its content is passed over.
    Other,
}

#[derive(Default)]
struct Suite {
    /// Names of this and the suites around it, joined; empty when none has one.
    path: String,
    depth: usize,
    stated_tests: Option<u64>,
    stated_failures: Option<u64>,
    /// Tests below, and those directly below or in one suite each.
    tests: u64,
    direct: u64,
    /// Cases with a `failure`, with `failure` or `error`, and direct children so.
    failures: u64,
    failed: u64,
    direct_failures: u64,
}

#[derive(Default)]
struct OpenCase {
    name: String,
    duration_us: Option<u64>,
    failure: bool,
    error: bool,
    /// Failed when it was run again.
    rerun: bool,
    skipped: bool,
    todo: bool,
    flaky: bool,
}

impl OpenCase {
    fn class(&self) -> TestClass {
        match self {
            OpenCase { todo: true, .. } => TestClass::Warned,
            _ if self.failure || self.error || self.rerun => TestClass::Failed,
            OpenCase { skipped: true, .. } => TestClass::Skipped,
            OpenCase { flaky: true, .. } => TestClass::Warned,
            _ => TestClass::Passed,
        }
    }
}

impl Document<'_> {
    fn fault(&self, at: usize, what: &'static str) -> ParseError {
        ParseError::at(self.text.as_bytes(), at, what)
    }

    fn text_outside(&self, any: bool, at: usize) -> Result<(), ParseError> {
        if any && self.open.is_empty() {
            return Err(self.fault(at, "text outside the root element"));
        }
        Ok(())
    }

    fn start(&mut self, start: &BytesStart<'_>, at: usize) -> Result<(), ParseError> {
        if self.ended {
            return Err(self.fault(at, "a second root element"));
        }
        if self.open.len() >= MAX_ELEMENTS {
            return Err(self.fault(at, "elements nest too deep"));
        }
        let tag = start.name();
        let suite = matches!(tag.as_ref(), b"testsuites" | b"testsuite");
        let attributes = self.attributes(start, at)?;
        let element = match self.open.last_mut() {
            None if suite => self.suite(tag.as_ref(), &attributes, at)?,
            None => return Err(self.fault(at, "the root is neither testsuites nor testsuite")),
            Some(Element::Suite(_)) if suite => self.suite(tag.as_ref(), &attributes, at)?,
            Some(Element::Suite(inside)) if tag.as_ref() == b"testcase" => {
                Element::Case(case(inside, &attributes))
            }
            Some(Element::Case(case)) if !suite && tag.as_ref() != b"testcase" => {
                match tag.as_ref() {
                    b"failure" => case.failure = true,
                    b"error" => case.error = true,
                    b"rerunFailure" | b"rerunError" => case.rerun = true,
                    b"flakyFailure" | b"flakyError" => case.flaky = true,
                    b"skipped" => {
                        case.skipped = true;
                        case.todo |= attributes.kind == "todo";
                    }
                    _ => {}
                }
                Element::Other
            }
            // A test where no reader looks for one would be lost without a word.
            Some(_) if suite || tag.as_ref() == b"testcase" => {
                return Err(self.fault(at, "a suite or test inside something else"));
            }
            // A failure of no test, such as of what runs before the tests.
            Some(Element::Suite(_))
                if matches!(
                    tag.as_ref(),
                    b"failure" | b"error" | b"rerunFailure" | b"rerunError"
                ) =>
            {
                self.parsed
                    .broken
                    .get_or_insert("a suite failed outside its tests");
                Element::Other
            }
            Some(_) => Element::Other,
        };
        self.open.push(element);
        Ok(())
    }

    fn suite(&self, tag: &[u8], found: &Attributes, at: usize) -> Result<Element, ParseError> {
        let outer = match self.open.last() {
            Some(Element::Suite(outer)) => Some(outer),
            _ => None,
        };
        let depth = outer.map_or(0, |outer| outer.depth) + 1;
        if depth > MAX_DEPTH {
            return Err(self.fault(at, "suites nest deeper than 32"));
        }
        let around = outer.map_or("", |outer| outer.path.as_str());
        let own = if tag == b"testsuite" {
            found.name.as_str()
        } else {
            ""
        };
        let path = match (around, own) {
            (around, "") => around.to_owned(),
            ("", own) => name::cut(own, 2048).to_owned(),
            (around, own) => name::join(around, own),
        };
        Ok(Element::Suite(Suite {
            path,
            depth,
            stated_tests: found.tests,
            stated_failures: found.failures,
            ..Suite::default()
        }))
    }

    fn end(&mut self, at: usize) -> Result<(), ParseError> {
        let Some(element) = self.open.pop() else {
            return Err(self.fault(at, "an end without a start"));
        };
        self.ended = self.open.is_empty();
        match element {
            Element::Other => {}
            Element::Case(case) => {
                if self.parsed.cases.len() >= MAX_CASES {
                    return Err(self.fault(at, "more than 50,000 tests"));
                }
                if let Some(Element::Suite(suite)) = self.open.last_mut() {
                    suite.tests += 1;
                    suite.direct += 1;
                    suite.failures += u64::from(case.failure);
                    suite.failed += u64::from(case.failure || case.error);
                    suite.direct_failures += u64::from(case.failure);
                }
                self.parsed.cases.push(Case {
                    class: case.class(),
                    name: case.name,
                    duration_us: case.duration_us,
                });
            }
            Element::Suite(suite) => self.suite_ended(&suite),
        }
        Ok(())
    }

    fn suite_ended(&mut self, suite: &Suite) {
        // Some runners count a suite's leaves, others its direct children.
        let tests = |n: u64| n == suite.tests || n == suite.direct;
        let failures =
            |n: u64| n == suite.failures || n == suite.failed || n == suite.direct_failures;
        self.parsed.counts_differ |= suite.stated_tests.is_some_and(|n| !tests(n))
            || suite.stated_failures.is_some_and(|n| !failures(n));
        if let Some(Element::Suite(outer)) = self.open.last_mut() {
            outer.tests += suite.tests;
            outer.direct += 1;
            outer.failures += suite.failures;
            outer.failed += suite.failed;
            outer.direct_failures += u64::from(suite.failed > 0);
        }
    }

    fn attributes(&self, start: &BytesStart<'_>, at: usize) -> Result<Attributes, ParseError> {
        let mut found = Attributes::default();
        for (n, attribute) in start.attributes().enumerate() {
            if n >= MAX_ATTRIBUTES {
                return Err(self.fault(at, "an element has more than 64 attributes"));
            }
            // A repeated attribute is an error here too.
            let attribute = attribute.map_err(|_| self.fault(at, "an attribute is not valid"))?;
            let raw = std::str::from_utf8(&attribute.value)
                .map_err(|_| self.fault(at, "an attribute is not UTF-8"))?;
            if raw.contains('<') {
                return Err(self.fault(at, "an attribute is not valid"));
            }
            let value = expanded(raw)
                .ok_or_else(|| self.fault(at, "a reference that is not predefined"))?;
            match attribute.key.as_ref() {
                b"name" => found.name = value,
                b"classname" => found.class_name = value,
                b"type" => found.kind = value,
                b"time" => found.duration_us = microseconds(&value),
                b"tests" => found.tests = value.parse().ok(),
                b"failures" => found.failures = value.parse().ok(),
                _ => {}
            }
        }
        Ok(found)
    }
}

#[derive(Default)]
struct Attributes {
    name: String,
    class_name: String,
    kind: String,
    duration_us: Option<u64>,
    tests: Option<u64>,
    failures: Option<u64>,
}

fn case(suite: &Suite, found: &Attributes) -> OpenCase {
    // Node writes the constant `test` where others name a class.
    let class = match found.class_name.as_str() {
        "test" => "",
        other => other,
    };
    let name = match (suite.path.as_str(), class) {
        ("", "") => name::cut(&found.name, 2048).to_owned(),
        ("", class) => name::join(class, &found.name),
        (path, _) => name::join(path, &found.name),
    };
    OpenCase {
        name,
        duration_us: found.duration_us,
        ..OpenCase::default()
    }
}

/// An attribute's value: white space as spaces, references expanded.
fn expanded(raw: &str) -> Option<String> {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find(['&', '\n', '\r', '\t']) {
        let (plain, special) = rest.split_at(at);
        out.push_str(plain);
        match special.strip_prefix('&') {
            None => {
                out.push(' ');
                rest = special.get(1..).unwrap_or_default();
            }
            Some(reference) => {
                let (word, after) = reference.split_once(';')?;
                out.push(character(word)?);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    Some(out)
}

/// The character a reference stands for, between `&` and `;`. Control
/// characters are taken although XML 1.0 has none: runners write them for a
/// terminal's colours, and names are cleaned later.
fn character(word: &str) -> Option<char> {
    match word {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = word.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) if hex.bytes().all(|b| b.is_ascii_hexdigit()) => {
                    u32::from_str_radix(hex, 16).ok()?
                }
                None if number.bytes().all(|b| b.is_ascii_digit()) => number.parse().ok()?,
                _ => return None,
            };
            char::from_u32(code).filter(|c| !matches!(c, '\0' | '\u{fffe}' | '\u{ffff}'))
        }
    }
}

/// Seconds as a decimal number, with commas between thousands in some runners.
fn microseconds(text: &str) -> Option<u64> {
    let plain: String = text.chars().filter(|c| *c != ',').collect();
    if plain.is_empty() || !plain.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    let digits: String = fraction.chars().chain("000000".chars()).take(6).collect();
    whole
        .checked_mul(1_000_000)?
        .checked_add(digits.parse().ok()?)
}
