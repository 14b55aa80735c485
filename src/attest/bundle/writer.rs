//! Writing lines in order, each linked to the one before.

use std::io::Write;

use plimsoll_record::Digest;

use super::{report::Report, seal::SignedEntry};
use crate::{
    dsse::Envelope,
    fault::{Fault, SealReason},
    key::SigningKey,
    line::{MAX_LINE_BYTES, encode_with_link},
    statement::{Link, link},
};

/// Where a bundle's next line goes.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Position {
    lines: u64,
    last: Option<Digest>,
}

impl Position {
    /// After the last line of a bundle that verified.
    #[must_use]
    pub fn after(report: &Report) -> Self {
        Position {
            lines: report.lines,
            last: report.last_line,
        }
    }

    /// Lines written.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// LineDigest of the last line; `None` before the first.
    #[must_use]
    pub fn last_line(&self) -> Option<Digest> {
        self.last
    }
}

/// Writes a bundle's lines, each with one write. Hold it under one lock: lines
/// stand in the order they reach it.
///
/// After a failed write it refuses everything: the file may end in part of a
/// line and must be cut back to its last good length first.
#[derive(Debug)]
pub struct BundleWriter<'k, W> {
    out: W,
    key: &'k SigningKey,
    position: Position,
    first: Option<Digest>,
    poisoned: bool,
}

impl<'k, W: Write> BundleWriter<'k, W> {
    /// Begins a new bundle.
    pub fn new(out: W, key: &'k SigningKey) -> Self {
        Self::resume(out, key, Position::default())
    }

    /// Goes on after the lines of a bundle that verified under this key.
    pub fn resume(out: W, key: &'k SigningKey, position: Position) -> Self {
        BundleWriter {
            out,
            key,
            position,
            first: None,
            poisoned: false,
        }
    }

    /// Writes an entry and gives its line number.
    ///
    /// # Errors
    /// Class `bundle`: poisoned, over the line cap, or the write failed.
    pub fn entry(&mut self, entry: &SignedEntry) -> Result<u64, Fault> {
        let link = Link {
            index: self.position.lines.saturating_add(1),
            previous_sha256: self.previous(),
            entry_sha256: entry.content_digest().to_hex(),
            ..Link::default()
        };
        let signed = Envelope::sign(self.key, &link::encode(&link));
        self.line(encode_with_link(entry.content().to_owned(), &signed))
    }

    /// Writes a checkpoint and gives its line number. Writing may go on after
    /// it; a later checkpoint covers everything.
    ///
    /// # Errors
    /// As [`BundleWriter::entry`].
    pub fn checkpoint(&mut self) -> Result<u64, Fault> {
        let link = Link {
            index: self.position.lines.saturating_add(1),
            previous_sha256: self.previous(),
            checkpoint: true,
            lines: self.position.lines,
            ..Link::default()
        };
        let signed = Envelope::sign(self.key, &link::encode(&link));
        self.line(encode_with_link(String::new(), &signed))
    }

    fn previous(&self) -> String {
        self.position
            .last
            .map_or_else(String::new, |last| last.to_hex())
    }

    fn line(&mut self, mut line: String) -> Result<u64, Fault> {
        if self.poisoned {
            return Err(Fault::new(SealReason::Poisoned));
        }
        if line.len() >= MAX_LINE_BYTES {
            return Err(Fault::new(SealReason::TooLong)
                .expected(MAX_LINE_BYTES)
                .found(line.len() + 1));
        }
        let digest = Digest::of(line.as_bytes());
        line.push('\n');
        // Set before the write: a panic inside it must not leave the state good.
        self.poisoned = true;
        self.out
            .write_all(line.as_bytes())
            .and_then(|()| self.out.flush())
            .map_err(|error| Fault::new(SealReason::Write).found(error))?;
        self.poisoned = false;
        self.first.get_or_insert(digest);
        self.position = Position {
            lines: self.position.lines.saturating_add(1),
            last: Some(digest),
        };
        Ok(self.position.lines)
    }

    /// Where the next line goes.
    #[must_use]
    pub fn position(&self) -> Position {
        self.position
    }

    /// LineDigest of the first line this writer wrote.
    #[must_use]
    pub fn first_written(&self) -> Option<Digest> {
        self.first
    }

    /// The sink.
    pub fn get_ref(&self) -> &W {
        &self.out
    }

    /// Gives the sink back.
    pub fn into_inner(self) -> W {
        self.out
    }
}
