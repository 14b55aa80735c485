//! TAP 13 and 14, and the dialect of Node's reporter.
//!
//! A subtest stands before its parent's own line, four spaces deeper. A stream
//! that stops early is never a pass: what a crash cut off would be missing
//! without a trace.

use std::collections::HashSet;

use super::{Case, MAX_CASES, MAX_DEPTH, ParseError, Parsed, name};
use crate::facts::TestClass;

const INDENT: usize = 4;

/// Reads a report.
///
/// # Errors
/// [`ParseError`].
pub fn read(text: &str) -> Result<Parsed, ParseError> {
    let mut stream = Stream {
        levels: vec![Level::default()],
        ..Stream::default()
    };
    let mut at = 0;
    for raw in text.split_inclusive('\n') {
        let line = raw.strip_suffix('\n').unwrap_or(raw);
        let line = line.strip_suffix('\r').unwrap_or(line);
        stream
            .line(line)
            .map_err(|what| ParseError::at(text.as_bytes(), at, what))?;
        at += raw.len();
    }
    if !stream.begun {
        return Err(ParseError::at(
            text.as_bytes(),
            at,
            "neither a version line nor a plan: this is no TAP",
        ));
    }
    Ok(stream.finish())
}

#[derive(Default)]
struct Level {
    plan: Option<u64>,
    /// Result lines of this level, parents included.
    results: u64,
    /// Numbers stated, and the highest of them.
    numbers: HashSet<u64>,
    highest: u64,
    cases: Vec<Case>,
}

impl Level {
    /// Counts a result line and tells what is wrong with the number it states;
    /// see [`TestLine::number`].
    fn count(&mut self, number: Option<Option<u64>>) -> Option<&'static str> {
        self.results += 1;
        let Some(number) = number? else {
            return Some("a test's number is out of range");
        };
        self.highest = self.highest.max(number);
        (!self.numbers.insert(number)).then_some("two tests have one number")
    }

    /// What is wrong with its numbers or its count, once it has ended.
    fn fault(&self) -> Option<&'static str> {
        match self.plan {
            Some(plan) if plan != self.results => Some("the plan does not match the tests"),
            Some(plan) if self.highest > plan => Some("a test's number is beyond the plan"),
            _ => None,
        }
    }
}

#[derive(Default)]
struct Stream {
    begun: bool,
    levels: Vec<Level>,
    count: usize,
    /// Indentation of the YAML block being passed over.
    yaml: Option<usize>,
    /// Indentation of the last line, when it was a result.
    after_result: Option<usize>,
    bailed: bool,
    broken: Option<&'static str>,
}

impl Stream {
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        let content = line.trim_start_matches(' ');
        let indent = line.len() - content.len();
        if let Some(block) = self.yaml {
            // Only its end mark at its own indentation ends a block: what
            // stands inside may look like a result.
            if indent == block && content.trim_end() == "..." {
                self.yaml = None;
            }
            return Ok(());
        }
        if self.after_result.take() == Some(indent.wrapping_sub(2)) && content.trim_end() == "---" {
            self.yaml = Some(indent);
            return Ok(());
        }
        if content.starts_with("Bail out!") {
            self.bailed = true;
            self.begun = true;
            return Ok(());
        }
        if !indent.is_multiple_of(INDENT) {
            return Ok(());
        }
        let depth = indent / INDENT;
        if let Some(version) = content.strip_prefix("TAP version ") {
            if depth == 0 && !matches!(version.trim_end(), "13" | "14") {
                return Err("a TAP version other than 13 and 14");
            }
            self.begun = true;
        } else if let Some(count) = plan(content) {
            self.begun = true;
            let level = self.level(depth)?;
            if level.plan.replace(count).is_some() {
                self.broken.get_or_insert("a level has two plans");
            }
        } else if let Some(result) = TestLine::read(content) {
            self.result(depth, result)?;
            self.after_result = Some(indent);
        }
        Ok(())
    }

    fn level(&mut self, depth: usize) -> Result<&mut Level, &'static str> {
        if depth >= MAX_DEPTH {
            return Err("subtests nest deeper than 32");
        }
        if self.levels.len() <= depth {
            self.levels.resize_with(depth + 1, Level::default);
        }
        self.levels.get_mut(depth).ok_or("subtests nest too deep")
    }

    fn result(&mut self, depth: usize, line: TestLine) -> Result<(), &'static str> {
        self.count += 1;
        if self.count > MAX_CASES {
            return Err("more than 50,000 tests");
        }
        self.level(depth)?;
        let mut children: Vec<Case> = Vec::new();
        for level in self.levels.split_off(depth + 1) {
            if let Some(fault) = level.fault() {
                self.broken.get_or_insert(fault);
            }
            children.extend(level.cases);
        }
        let class = line.class();
        if let Some(fault) = self.level(depth)?.count(line.number) {
            self.broken.get_or_insert(fault);
        }
        let level = self.level(depth)?;
        if children.is_empty() {
            level.cases.push(Case {
                name: name::cut(&line.description, 2048).to_owned(),
                class,
                duration_us: None,
            });
            return Ok(());
        }
        let explained = children.iter().any(|case| case.class == TestClass::Failed);
        level.cases.extend(children.into_iter().map(|case| Case {
            name: name::join(&line.description, &case.name),
            ..case
        }));
        if class == TestClass::Failed && !explained {
            self.broken
                .get_or_insert("a suite is not ok although none of its tests failed");
        }
        Ok(())
    }

    fn finish(mut self) -> Parsed {
        let mut cases = Vec::new();
        let mut levels = self.levels.drain(..);
        if let Some(top) = levels.next() {
            let fault = match top.plan {
                None => Some("the stream ends without its plan"),
                Some(_) => top.fault(),
            };
            if let Some(fault) = fault {
                self.broken.get_or_insert(fault);
            }
            cases.extend(top.cases);
        }
        // Subtests whose parent never came.
        for level in levels {
            if level.results > 0 || level.plan.is_some_and(|plan| plan > 0) {
                self.broken.get_or_insert("a subtest's parent never came");
            }
            cases.extend(level.cases);
        }
        if self.yaml.is_some() {
            self.broken.get_or_insert("the stream ends inside a block");
        }
        if self.bailed {
            self.broken.get_or_insert("the tests bailed out");
            cases.push(Case {
                name: "bail out".to_owned(),
                class: TestClass::Failed,
                duration_us: None,
            });
        }
        Parsed {
            cases,
            counts_differ: false,
            broken: self.broken,
        }
    }
}

/// The count of a plan line, `1..N`.
fn plan(line: &str) -> Option<u64> {
    let rest = line.strip_prefix("1..")?;
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, after) = rest.split_at(digits);
    let after = after.trim_start();
    (after.is_empty() || after.starts_with('#')).then(|| number.parse().ok())?
}

struct TestLine {
    ok: bool,
    /// The number stated; within, `None` for 0 and what is no 64-bit number.
    number: Option<Option<u64>>,
    description: String,
    skip: bool,
    todo: bool,
}

impl TestLine {
    fn read(line: &str) -> Option<TestLine> {
        let (ok, rest) = match line.strip_prefix("not ok") {
            Some(rest) => (false, rest),
            None => (true, line.strip_prefix("ok")?),
        };
        // `okay` is no result.
        if !(rest.is_empty() || rest.starts_with(char::is_whitespace)) {
            return None;
        }
        let rest = rest.trim_start();
        let after = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        let digits = rest.strip_suffix(after).unwrap_or_default();
        // `ok 2nd` has a description that begins with a digit.
        let apart = after.is_empty() || after.starts_with([' ', '\t', '-', '#']);
        let number =
            (apart && !digits.is_empty()).then(|| digits.parse().ok().filter(|number| *number > 0));
        let rest = after.trim_start();
        let rest = rest
            .strip_prefix("- ")
            .or(rest.strip_prefix('-'))
            .unwrap_or(rest);
        let (description, directive) = split(rest);
        let word = named(directive);
        Some(TestLine {
            ok,
            number,
            skip: word == Some(Directive::Skip),
            todo: word == Some(Directive::Todo),
            description,
        })
    }

    fn class(&self) -> TestClass {
        match self {
            TestLine { todo: true, .. } => TestClass::Warned,
            TestLine { ok: false, .. } => TestClass::Failed,
            TestLine { skip: true, .. } => TestClass::Skipped,
            _ => TestClass::Passed,
        }
    }
}

#[derive(Clone, Copy, Eq, PartialEq)]
enum Directive {
    Skip,
    Todo,
}

/// The directive a comment begins with. A failed test is excused by a `TODO`,
/// so that word stands alone; runners write `SKIP` and `skipped`.
fn named(comment: &str) -> Option<Directive> {
    let (word, after) = comment.split_at_checked(4)?;
    if word.eq_ignore_ascii_case("skip") {
        return Some(Directive::Skip);
    }
    let alone = after.is_empty() || after.starts_with([' ', '\t', ':']);
    (alone && word.eq_ignore_ascii_case("todo")).then_some(Directive::Todo)
}

/// Splits a description from its directive, which begins at the last `#` that
/// no backslash escapes and that names one; takes escapes away.
fn split(text: &str) -> (String, &str) {
    let mut description = String::with_capacity(text.len());
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => match chars.clone().next() {
                Some((_, next @ ('\\' | '#'))) => {
                    description.push(next);
                    chars.next();
                }
                _ => description.push(c),
            },
            '#' => {
                let directive = text.get(at + 1..).unwrap_or_default().trim_start();
                if named(directive).is_some() {
                    return (description.trim_end().to_owned(), directive);
                }
                description.push(c);
            }
            _ => description.push(c),
        }
    }
    (description.trim_end().to_owned(), "")
}
