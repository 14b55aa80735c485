//! A file read from its start to its end beside reads at other places.

use std::io::{self, BufRead, Read, Seek};

use crate::lines::Seekable;

/// Bytes read together.
const BUFFER: usize = 1 << 16;

/// Reads an open file in order. It keeps its own place, so that the same file
/// can be read elsewhere between two chunks.
pub(crate) struct Chunks<'f, R> {
    file: &'f Seekable<R>,
    /// Where the next chunk begins.
    next: u64,
    buffer: Box<[u8]>,
    /// What of the buffer is read and not yet consumed.
    ready: std::ops::Range<usize>,
}

impl<'f, R: Read + Seek> Chunks<'f, R> {
    pub(crate) fn of(file: &'f Seekable<R>) -> Self {
        Chunks {
            file,
            next: 0,
            buffer: vec![0; BUFFER].into_boxed_slice(),
            ready: 0..0,
        }
    }

    /// Reads past the next newline and keeps the line's first `most` bytes in
    /// place of what `kept` holds. Gives the line's length, its newline
    /// included; 0 at the end of the file.
    pub(crate) fn line(&mut self, kept: &mut Vec<u8>, most: usize) -> io::Result<u64> {
        kept.clear();
        let mut length: u64 = 0;
        loop {
            let chunk = self.fill_buf()?;
            let newline = chunk.iter().position(|byte| *byte == b'\n');
            let taken = newline.map_or(chunk.len(), |at| at.saturating_add(1));
            let room = most.saturating_sub(kept.len());
            kept.extend(chunk.iter().take(taken.min(room)));
            length = length.saturating_add(taken as u64);
            self.consume(taken);
            if newline.is_some() || taken == 0 {
                return Ok(length);
            }
        }
    }
}

impl<R: Read + Seek> Read for Chunks<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(out)?;
        self.consume(read);
        Ok(read)
    }
}

impl<R: Read + Seek> BufRead for Chunks<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.ready.is_empty() {
            let read = self.file.read_at(self.next, &mut self.buffer)?;
            self.next = self.next.saturating_add(read as u64);
            self.ready = 0..read;
        }
        Ok(self.buffer.get(self.ready.clone()).unwrap_or_default())
    }

    fn consume(&mut self, amount: usize) {
        let start = self.ready.start.saturating_add(amount);
        self.ready.start = start.min(self.ready.end);
    }
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    #[test]
    fn lines_longer_than_a_chunk_and_than_what_is_kept() {
        let long = "x".repeat(3 * BUFFER);
        let file = Seekable::new(Cursor::new(format!("a\n{long}\n\nend")));
        let mut chunks = Chunks::of(&file);
        let mut kept = vec![7];
        for (length, first) in [
            (2, "a\n"),
            (3 * BUFFER as u64 + 1, "xxxx"),
            (1, "\n"),
            (3, "end"),
            (0, ""),
        ] {
            assert_eq!(chunks.line(&mut kept, 4).unwrap(), length);
            assert_eq!(kept, first.as_bytes());
            // Reads at other places do not move it.
            file.read_at(1, &mut [0; 5]).unwrap();
        }
    }
}
