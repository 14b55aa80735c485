//! Test reports: which tests there were and how each ended.
//!
//! A report was written by the code under test. It is read strictly and within
//! bounds, and nothing in it is interpreted but names and classes; counters are
//! compared, never believed.

pub mod junit;
pub mod name;
pub mod tap;

use std::fmt;

use serde::Serialize;

use crate::facts::TestClass;

/// Largest report that is read.
pub const MAX_BYTES: usize = 8 << 20;
/// Most tests of a report.
pub const MAX_CASES: usize = 50_000;
/// Suites inside one another.
pub const MAX_DEPTH: usize = 32;

/// The form of a report.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// JUnit XML in any of its dialects.
    Junit,
    /// TAP 13 or 14.
    Tap,
}

impl Format {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Format::Junit => "junit",
            Format::Tap => "tap",
        }
    }
}

/// Where a report is found in the signed answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Source {
    /// An artifact, by its path.
    Artifact(String),
    /// A step's standard output; the step counts from 1.
    Stdout(usize),
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Artifact(path) => write!(f, "artifact:{path}"),
            Source::Stdout(step) => write!(f, "stdout:{step}"),
        }
    }
}

/// A report that was asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Spec {
    /// Its form.
    pub format: Format,
    /// Where it is.
    pub source: Source,
}

/// A report's words cannot be understood.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{0:?} is no report: give junit:artifact:PATH, junit:stdout:STEP, tap:… or none")]
pub struct SpecError(pub String);

impl Spec {
    /// Reads `<format>:<source>`; `Ok(None)` for `none`, which says that the
    /// steps' exit codes alone decide.
    ///
    /// # Errors
    /// [`SpecError`].
    pub fn parse(text: &str) -> Result<Option<Spec>, SpecError> {
        let refused = || SpecError(text.to_owned());
        if text == "none" {
            return Ok(None);
        }
        let (format, source) = text.split_once(':').ok_or_else(refused)?;
        let format = match format {
            "junit" => Format::Junit,
            "tap" => Format::Tap,
            _ => return Err(refused()),
        };
        Ok(Some(Spec {
            format,
            source: Source::parse(source).ok_or_else(refused)?,
        }))
    }
}

impl Source {
    /// Reads `artifact:<path>` or `stdout:<step>`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Source> {
        match text.split_once(':')? {
            ("artifact", path) => plimsoll_wire::validate::path(path)
                .is_ok()
                .then(|| Source::Artifact(path.to_owned())),
            ("stdout", step) => {
                let plain = step.bytes().all(|b| b.is_ascii_digit()) && !step.starts_with('0');
                let step: usize = step.parse().ok().filter(|_| plain)?;
                (1..=plimsoll_wire::limits::MAX_STEPS)
                    .contains(&step)
                    .then_some(Source::Stdout(step))
            }
            _ => None,
        }
    }
}

/// One test as a report lists it. The name is not cut or cleaned yet.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Case {
    /// Suites and name, joined.
    pub name: String,
    /// How it ended.
    pub class: TestClass,
    /// Microseconds, as stated.
    pub duration_us: Option<u64>,
}

/// What a report holds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Parsed {
    /// The tests, in report order.
    pub cases: Vec<Case>,
    /// A counter contradicts the tests listed: to be told, decides nothing.
    pub counts_differ: bool,
    /// The report is not complete or contradicts its own plan: never a pass.
    pub broken: Option<&'static str>,
}

/// Why a report cannot be read. Names a place, never the text there.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
#[error("{what} (line {line}, byte {byte})")]
pub struct ParseError {
    /// The fact, in our own words.
    pub what: &'static str,
    /// The line, from 1.
    pub line: u64,
    /// The byte, from 0.
    pub byte: u64,
}

impl ParseError {
    pub(crate) fn at(text: &[u8], byte: usize, what: &'static str) -> Self {
        let before = text.get(..byte.min(text.len())).unwrap_or_default();
        let lines = before.iter().filter(|b| **b == b'\n').count();
        ParseError {
            what,
            line: lines as u64 + 1,
            byte: byte as u64,
        }
    }
}

/// Reads a report.
///
/// # Errors
/// [`ParseError`]; never a part of the tests.
pub fn read(format: Format, bytes: &[u8]) -> Result<Parsed, ParseError> {
    if bytes.len() > MAX_BYTES {
        return Err(ParseError::at(
            bytes,
            MAX_BYTES,
            "a report has at most 8 MiB",
        ));
    }
    let text = std::str::from_utf8(bytes)
        .map_err(|error| ParseError::at(bytes, error.valid_up_to(), "not UTF-8"))?;
    if let Some(at) = text.find('\0') {
        return Err(ParseError::at(bytes, at, "a NUL character"));
    }
    match format {
        Format::Junit => junit::read(text),
        Format::Tap => tap::read(text),
    }
}
