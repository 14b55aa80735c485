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
            let reason = if length == MAX_LINE_BYTES {
                LineReason::TooLong
            } else {
                LineReason::NoNewline
            };
            return Err(Fault::new(reason)
                .at_line(number)
                .over_bytes(0..length)
                .shifted(self.offset));
        };
        Ok(Some(RawLine {
            number,
            offset: self.offset,
            bytes,
        }))
    }

    /// Lines read so far.
    #[must_use]
    pub fn lines(&self) -> u64 {
        self.number
    }
}
