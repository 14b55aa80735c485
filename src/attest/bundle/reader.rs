//! Lines from any buffered source, one at a time, under the size cap.

use std::io::{BufRead, Read as _};

use crate::{
    fault::{Fault, LineReason},
    line::MAX_LINE_BYTES,
};

/// Reads a bundle's lines. Memory is bounded by the longest line.
#[derive(Debug)]
pub struct LineReader<R> {
    source: R,
    number: u64,
    offset: u64,
    buffer: Vec<u8>,
}

/// A line as it stands in the file.
#[derive(Clone, Copy, Debug)]
pub struct RawLine<'a> {
    /// Its number, counted from 1.
    pub number: u64,
    /// Where it begins in the file.
    pub offset: u64,
    /// Its bytes without the newline.
    pub bytes: &'a [u8],
}

/// Most lines of a batch.
pub(super) const MAX_BATCH_LINES: usize = 64;

/// Lines that are read and worked on together.
#[derive(Debug, Default)]
pub(super) struct Batch {
    bytes: Vec<u8>,
    /// Where each line ends, its newline included.
    ends: Vec<usize>,
}

impl Batch {
    /// The lines without their newlines.
    pub(super) fn lines(&self) -> impl Iterator<Item = &[u8]> {
        let mut start = 0;
        self.ends.iter().map(move |end| {
            let line = self.bytes.get(start..end - 1).unwrap_or_default();
            start = *end;
            line
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Bytes of its lines.
    pub(super) fn length(&self) -> usize {
        self.bytes.len()
    }

    /// The batch without its lines, for reuse; `None` when it takes more memory
    /// than an ordinary one.
    pub(super) fn emptied(mut self, ordinary: usize) -> Option<Self> {
        self.bytes.clear();
        self.ends.clear();
        (self.bytes.capacity() <= ordinary.saturating_mul(4)).then_some(self)
    }
}

impl<R: BufRead> LineReader<R> {
    /// Reads from the start of a bundle.
    pub fn new(source: R) -> Self {
        Self::at(source, 0, 0)
    }

    /// Reads on after `lines` lines of together `offset` bytes.
    pub fn at(source: R, lines: u64, offset: u64) -> Self {
        LineReader {
            source,
            number: lines,
            offset,
            buffer: Vec::new(),
        }
    }

    /// The next line; `None` at the end of the file.
    ///
    /// # Errors
    /// Class `line` for a line over [`MAX_LINE_BYTES`] or a last line without
    /// its newline, `io` when the source fails.
    pub fn next_line(&mut self) -> Result<Option<RawLine<'_>>, Fault> {
        self.offset = self.offset.saturating_add(self.buffer.len() as u64);
        self.buffer.clear();
        let number = self.number.saturating_add(1);
        let length = (&mut self.source)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut self.buffer)
            .map_err(|error| Fault::io(&error).at_line(number))?;
        if length == 0 {
            return Ok(None);
        }
        self.number = number;
        let Some((b'\n', bytes)) = self.buffer.split_last() else {
            return Err(self.unended(length));
        };
        Ok(Some(RawLine {
            number,
            offset: self.offset,
            bytes,
        }))
    }

    /// Reads whole lines into an empty batch, until it holds `bytes` bytes or
    /// [`MAX_BATCH_LINES`] lines. `false` at the end of the file.
    ///
    /// # Errors
    /// As [`LineReader::next_line`], for a line after those in the batch.
    pub(super) fn fill(&mut self, batch: &mut Batch, bytes: usize) -> Result<bool, Fault> {
        self.offset = self.offset.saturating_add(self.buffer.len() as u64);
        // A first line may be 64 MiB; its memory is not kept beside the batches.
        self.buffer = Vec::new();
        loop {
            let start = batch.bytes.len();
            let number = self.number.saturating_add(1);
            let length = (&mut self.source)
                .take(MAX_LINE_BYTES as u64)
                .read_until(b'\n', &mut batch.bytes)
                .map_err(|error| {
                    batch.bytes.truncate(start);
                    Fault::io(&error).at_line(number)
                })?;
            if length == 0 {
                return Ok(false);
            }
            self.number = number;
            if !batch.bytes.ends_with(b"\n") {
                batch.bytes.truncate(start);
                return Err(self.unended(length));
            }
            self.offset = self.offset.saturating_add(length as u64);
            batch.ends.push(batch.bytes.len());
            if batch.bytes.len() >= bytes || batch.ends.len() == MAX_BATCH_LINES {
                return Ok(true);
            }
        }
    }

    /// The refusal of the line just read, which has no newline.
    fn unended(&self, length: usize) -> Fault {
        let reason = if length == MAX_LINE_BYTES {
            LineReason::TooLong
        } else {
            LineReason::NoNewline
        };
        Fault::new(reason)
            .at_line(self.number)
            .over_bytes(0..length)
            .shifted(self.offset)
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }
}
