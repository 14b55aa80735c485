//! Lines of a file that need not be a bundle: one that is too long or cut does
//! not hide those after it.

use std::io::{self, BufRead, Read as _};

use plimsoll_attestation::line::MAX_LINE_BYTES;

/// Reads lines one at a time. Memory is that of the longest, 64 MiB at most.
pub struct Lines<R> {
    source: R,
    number: u64,
    buffer: Vec<u8>,
}

/// A line as it was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found<'a> {
    /// A whole line, without its newline.
    Whole(&'a [u8]),
    /// The last bytes of a file that does not end in a newline.
    Torn(&'a [u8]),
    /// The beginning of a line that is over the limit; the rest was skipped.
    TooLong(&'a [u8]),
}

impl<R: BufRead> Lines<R> {
    pub fn new(source: R) -> Self {
        Lines {
            source,
            number: 0,
            buffer: Vec::new(),
        }
    }

    /// The next line and its number, counted from 1; `None` at the end.
    ///
    /// # Errors
    /// When the source cannot be read.
    pub fn next(&mut self) -> io::Result<Option<(u64, Found<'_>)>> {
        self.buffer.clear();
        let length = (&mut self.source)
            .take(MAX_LINE_BYTES as u64)
            .read_until(b'\n', &mut self.buffer)?;
        if length == 0 {
            return Ok(None);
        }
        self.number += 1;
        if self.buffer.last() != Some(&b'\n') && length == MAX_LINE_BYTES {
            self.skip()?;
            return Ok(Some((self.number, Found::TooLong(&self.buffer))));
        }
        let found = match self.buffer.split_last() {
            Some((b'\n', bytes)) => Found::Whole(bytes),
            _ => Found::Torn(&self.buffer),
        };
        Ok(Some((self.number, found)))
    }

    /// Reads to the end of the line and keeps nothing of it.
    fn skip(&mut self) -> io::Result<()> {
        loop {
            let ready = match self.source.fill_buf() {
                Ok(ready) => ready,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            let end = ready.iter().position(|&byte| byte == b'\n');
            let (used, over) = match end {
                Some(end) => (end + 1, true),
                None => (ready.len(), ready.is_empty()),
            };
            self.source.consume(used);
            if over {
                return Ok(());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::BufReader;

    use super::*;

    #[test]
    fn a_line_over_the_limit_does_not_hide_the_next() {
        let source = io::Cursor::new(b"a\n")
            .chain(io::repeat(b'x').take(MAX_LINE_BYTES as u64 + 5))
            .chain(io::Cursor::new(b"\n\nb"));
        let mut lines = Lines::new(BufReader::new(source));
        assert_eq!(lines.next().unwrap(), Some((1, Found::Whole(b"a"))));
        assert!(matches!(
            lines.next().unwrap(),
            Some((2, Found::TooLong(_)))
        ));
        assert_eq!(lines.next().unwrap(), Some((3, Found::Whole(b""))));
        assert_eq!(lines.next().unwrap(), Some((4, Found::Torn(b"b"))));
        assert_eq!(lines.next().unwrap(), None);
        let exact = io::repeat(b'x')
            .take(MAX_LINE_BYTES as u64 - 1)
            .chain(io::Cursor::new(b"\n"));
        let mut lines = Lines::new(BufReader::new(exact));
        assert!(matches!(lines.next().unwrap(), Some((1, Found::Whole(_)))));
    }
}
