//! The error of every command: fact, place and what to do.
//!
//! A [`Failure`] is built from raw values. It becomes a block on standard error for people, whose
//! first line alone is complete and can be searched for, or the member `error` of the JSON object
//! for scripts. Foreign text in it is escaped when the block is made, never before.

use std::fmt::{self, Write as _};
use std::path::Path;

use serde::Serialize;

use crate::PROGRAM;
use crate::class::Class;
use crate::escape::Escaper;
use crate::exit::ExitCode;
use crate::json::{self, Count};
use crate::layout;

/// Longest shown form of an expected or found value.
const VALUE_CHARS: usize = 120;

/// Longest shown form of a message, advice, path or member: a bound, not a layout rule.
const TEXT_CHARS: usize = 4000;

/// Where the values of the rows begin.
const INDENT: usize = 12;

/// Whether the code of a request ran.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Ran {
    /// It did not.
    No,
    /// It may have; nothing shows that it did not.
    Maybe,
    /// It did.
    Yes,
}

/// A refusal or fault, ready to be shown to a person or a script.
///
/// `message` states the fact without naming the place; [`Failure::file`], [`Failure::line`] and
/// the others do that, and the first line of the block puts them in front. Key material, tokens
/// and session IDs never go into any part.
#[derive(Clone, Debug)]
pub struct Failure(Box<Parts>);

#[derive(Clone, Debug)]
struct Parts {
    class: Class,
    exit: ExitCode,
    reason: Option<String>,
    message: String,
    file: Option<Vec<u8>>,
    line: Option<u64>,
    member: Option<String>,
    offset: Option<(u64, Option<u64>)>,
    pointer: Option<String>,
    expected: Option<String>,
    found: Option<String>,
    advice: String,
    ran: Option<Ran>,
    synopsis: Option<String>,
}

impl Failure {
    /// A failure of `class` with its fact and one or two sentences of what to do.
    pub fn new(class: Class, message: impl Into<String>, advice: impl Into<String>) -> Self {
        Self(Box::new(Parts {
            class,
            exit: class.exit(),
            reason: None,
            message: message.into(),
            file: None,
            line: None,
            member: None,
            offset: None,
            pointer: None,
            expected: None,
            found: None,
            advice: advice.into(),
            ran: None,
            synopsis: None,
        }))
    }

    /// Adds to the fact, such as what it means for the command. Raw text.
    #[must_use]
    pub fn adding(mut self, text: &str) -> Self {
        self.0.message.push_str(text);
        self
    }

    /// A narrower stable word within the class.
    #[must_use]
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.0.reason = Some(reason.into());
        self
    }

    /// The file it is about; `-` is shown as `standard input`.
    #[must_use]
    pub fn file(mut self, file: impl AsRef<Path>) -> Self {
        self.0.file = Some(file.as_ref().as_os_str().as_encoded_bytes().to_vec());
        self
    }

    /// The line, counted from 1.
    #[must_use]
    pub fn line(mut self, line: u64) -> Self {
        self.0.line = Some(line);
        self
    }

    /// The member, as a dotted path.
    #[must_use]
    pub fn member(mut self, member: impl Into<String>) -> Self {
        self.0.member = Some(member.into());
        self
    }

    /// The byte of the file, counted from 0.
    #[must_use]
    pub fn offset(mut self, byte: u64) -> Self {
        self.0.offset = Some((byte, None));
        self
    }

    /// The first and last byte of the file, counted from 0, both included.
    #[must_use]
    pub fn bytes(mut self, first: u64, last: u64) -> Self {
        self.0.offset = Some((first, Some(last)));
        self
    }

    /// The place inside a JSON document, as a JSON pointer (RFC 6901).
    #[must_use]
    pub fn pointer(mut self, pointer: impl Into<String>) -> Self {
        self.0.pointer = Some(pointer.into());
        self
    }

    /// The value that was expected; shown cut to 120 characters.
    #[must_use]
    pub fn expected(mut self, value: impl fmt::Display) -> Self {
        self.0.expected = Some(cut(value.to_string()));
        self
    }

    /// The value that was found; shown cut to 120 characters.
    #[must_use]
    pub fn found(mut self, value: impl fmt::Display) -> Self {
        self.0.found = Some(cut(value.to_string()));
        self
    }

    /// Whether the code ran, on commands that send code.
    #[must_use]
    pub fn ran(mut self, ran: Ran) -> Self {
        self.0.ran = Some(ran);
        self
    }

    /// Another exit code than the class gives: `io` ends with 1 once work was done.
    #[must_use]
    pub fn exit(mut self, exit: ExitCode) -> Self {
        self.0.exit = exit;
        self
    }

    /// The synopsis shown after a usage error.
    #[must_use]
    pub fn synopsis(mut self, synopsis: impl Into<String>) -> Self {
        self.0.synopsis = Some(synopsis.into());
        self
    }

    /// The class.
    #[must_use]
    pub fn class(&self) -> Class {
        self.0.class
    }

    /// The exit code this failure alone gives.
    #[must_use]
    pub fn exit_code(&self) -> ExitCode {
        self.0.exit
    }

    /// The fact, raw.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// What to do, raw.
    #[must_use]
    pub fn advice(&self) -> &str {
        &self.0.advice
    }

    /// The narrower word, when there is one.
    #[must_use]
    pub fn reason_word(&self) -> Option<&str> {
        self.0.reason.as_deref()
    }

    /// The block for people with the escaping rules of this process, ending in a newline. Every
    /// line but the first keeps to `width` columns where words allow it; the first is never
    /// broken, so that a search finds the whole of it.
    #[must_use]
    pub fn to_block(&self, width: usize) -> String {
        self.to_block_with(width, Escaper::from_env())
    }

    /// [`Failure::to_block`] with stated escaping rules.
    #[must_use]
    pub fn to_block_with(&self, width: usize, escaper: Escaper) -> String {
        let parts = &*self.0;
        let esc = |text: &str| escaper.line_cut(text, TEXT_CHARS);
        let mut out = format!("{PROGRAM}: error[{}]: ", parts.class);
        if let Some(place) = self.short_place(escaper) {
            out.push_str(&place);
            out.push_str(": ");
        }
        out.push_str(&esc(&parts.message));
        out.push('\n');
        if let Some(place) = self.full_place(escaper) {
            push_row(&mut out, "place", &place, width);
        }
        for (name, value) in [("expected", &parts.expected), ("found", &parts.found)] {
            match value.as_deref() {
                Some("") => push_row(&mut out, name, "(empty)", width),
                Some(value) => {
                    push_row(&mut out, name, &escaper.line_cut(value, TEXT_CHARS), width);
                }
                None => {}
            }
        }
        push_row(&mut out, "do", &esc(&parts.advice), width);
        if let Some(synopsis) = &parts.synopsis {
            // The program's own text, with its own line breaks.
            for line in synopsis.trim_end().lines() {
                out.push_str(line);
                out.push('\n');
            }
        }
        out
    }

    /// `runs.jsonl line 9`, in front of the message.
    fn short_place(&self, escaper: Escaper) -> Option<String> {
        let line = self.0.line.map(|line| format!("line {line}"));
        match (self.file_name(escaper), line) {
            (Some(file), Some(line)) => Some(format!("{file} {line}")),
            (file, line) => file.or(line),
        }
    }

    /// `runs.jsonl, line 9, member (bytes a to b of the file)`; absent when it would only repeat
    /// the file's name.
    fn full_place(&self, escaper: Escaper) -> Option<String> {
        let parts = &*self.0;
        let mut place: Vec<String> = self.file_name(escaper).into_iter().collect();
        place.extend(parts.line.map(|line| format!("line {line}")));
        place.extend(
            parts
                .member
                .iter()
                .map(|member| escaper.line_cut(member, TEXT_CHARS)),
        );
        place.extend(
            parts
                .pointer
                .iter()
                .map(|at| escaper.line_cut(at, TEXT_CHARS)),
        );
        let mut text = place.join(", ");
        match parts.offset {
            Some((first, Some(last))) => {
                let _ = write!(text, " (bytes {first} to {last} of the file)");
            }
            Some((byte, None)) => {
                let _ = write!(text, " (byte {byte} of the file)");
            }
            None if text.is_empty() => return None,
            None => {}
        }
        Some(text.trim_start().to_owned())
    }

    fn file_name(&self, escaper: Escaper) -> Option<String> {
        self.0.file.as_ref().map(|file| match file.as_slice() {
            b"-" => "standard input".to_owned(),
            file => escaper.line_cut(file, TEXT_CHARS),
        })
    }
}

fn cut(value: String) -> String {
    match value.char_indices().nth(VALUE_CHARS) {
        Some((at, _)) => format!("{}… ({} more bytes)", &value[..at], value.len() - at),
        None => value,
    }
}

fn push_row(out: &mut String, name: &str, value: &str, width: usize) {
    let room = width.saturating_sub(INDENT).max(20);
    for (index, line) in layout::wrap(value, room).iter().enumerate() {
        let name = if index == 0 { name } else { "" };
        let _ = writeln!(out, "  {name:<10}{line}");
    }
}

impl fmt::Display for Failure {
    /// The first line of the block without the program's name.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let escaper = Escaper::from_env();
        write!(f, "error[{}]: ", self.0.class)?;
        if let Some(place) = self.short_place(escaper) {
            write!(f, "{place}: ")?;
        }
        f.write_str(&escaper.line_cut(&self.0.message, TEXT_CHARS))
    }
}

impl std::error::Error for Failure {}

impl miette::Diagnostic for Failure {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(self.0.class))
    }

    fn severity(&self) -> Option<miette::Severity> {
        Some(miette::Severity::Error)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(&self.0.advice))
    }
}

impl Serialize for Failure {
    /// The error object: `class`, `message` and `do` always, the others when they apply.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Object<'a> {
            class: &'static str,
            #[serde(skip_serializing_if = "Option::is_none")]
            reason: Option<&'a str>,
            message: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            file: Option<String>,
            #[serde(skip_serializing_if = "Option::is_none")]
            line: Option<Count>,
            #[serde(skip_serializing_if = "Option::is_none")]
            member: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            offset: Option<Count>,
            #[serde(skip_serializing_if = "Option::is_none")]
            pointer: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            expected: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            found: Option<&'a str>,
            r#do: &'a str,
            #[serde(skip_serializing_if = "Option::is_none")]
            ran: Option<Ran>,
        }
        let parts = &*self.0;
        Object {
            class: parts.class.word(),
            reason: parts.reason.as_deref(),
            message: &parts.message,
            file: parts.file.as_deref().map(json::text),
            line: parts.line.map(Count),
            member: parts.member.as_deref(),
            offset: parts.offset.map(|(first, _)| Count(first)),
            pointer: parts.pointer.as_deref(),
            // An empty value is an absent member, as everywhere in JSON.
            expected: parts.expected.as_deref().filter(|value| !value.is_empty()),
            found: parts.found.as_deref().filter(|value| !value.is_empty()),
            r#do: &parts.advice,
            ran: parts.ran,
        }
        .serialize(serializer)
    }
}

#[cfg(test)]
mod tests;
