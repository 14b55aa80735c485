//! The SHA-256 of the whole lines that are read.

use std::io::{self, BufRead, Read};

use plimsoll_record::Digest;
use sha2::{Digest as _, Sha256};

/// A hash that goes on with each line.
#[derive(Clone, Default)]
pub(in crate::bundle) struct LineHash {
    running: Sha256,
    /// What `running` was after the last newline.
    whole: Sha256,
}

impl LineHash {
    /// Goes on after whole lines that were hashed already.
    pub(in crate::bundle) fn after(whole: Sha256) -> Self {
        LineHash {
            running: whole.clone(),
            whole,
        }
    }

    /// Takes the next bytes.
    pub(in crate::bundle) fn update(&mut self, bytes: &[u8]) {
        let lines = bytes
            .iter()
            .rposition(|byte| *byte == b'\n')
            .map_or(0, |last| last + 1);
        let (lines, rest) = bytes.split_at(lines);
        if !lines.is_empty() {
            self.running.update(lines);
            self.whole = self.running.clone();
        }
        self.running.update(rest);
    }

    /// The hash without the bytes of a line that has not ended.
    pub(in crate::bundle) fn of_lines(&self) -> Self {
        Self::after(self.whole.clone())
    }

    /// SHA-256 of every line that ended, newlines included.
    pub(in crate::bundle) fn digest(&self) -> Digest {
        Digest::from(<[u8; 32]>::from(self.whole.clone().finalize()))
    }
}

/// A source that hashes what is read through it.
pub(in crate::bundle) struct Hashing<R> {
    inner: R,
    hash: LineHash,
}

impl<R> Hashing<R> {
    /// Goes on with a hash of the bytes before the source.
    pub(in crate::bundle) fn new(inner: R, hash: LineHash) -> Self {
        Hashing { inner, hash }
    }

    /// The hash of what was read.
    pub(in crate::bundle) fn hash(&self) -> &LineHash {
        &self.hash
    }
}

impl<R: Read> Read for Hashing<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(out)?;
        self.hash.update(out.get(..length).unwrap_or_default());
        Ok(length)
    }
}

impl<R: BufRead> BufRead for Hashing<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.inner.fill_buf()
    }

    fn consume(&mut self, length: usize) {
        // What is consumed is in the buffer: nothing is read for it.
        if length > 0
            && let Ok(buffer) = self.inner.fill_buf()
        {
            self.hash.update(buffer.get(..length).unwrap_or_default());
        }
        self.inner.consume(length);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_ended_count_however_they_are_read() {
        let bytes = b"one\n\ntwo\nthree";
        let ended = Digest::of(b"one\n\ntwo\n");
        for piece in 1..=bytes.len() {
            let source = io::BufReader::with_capacity(piece, &bytes[..]);
            let mut by_line = Hashing::new(source, LineHash::default());
            let mut line = Vec::new();
            while by_line.read_until(b'\n', &mut line).is_ok_and(|n| n > 0) {}
            assert_eq!(by_line.hash().digest(), ended);
            let source = io::BufReader::with_capacity(piece, &bytes[..]);
            let mut at_once = Hashing::new(source, LineHash::default());
            assert!(io::copy(&mut at_once, &mut io::sink()).is_ok());
            let mut next = at_once.hash().of_lines();
            assert_eq!(next.digest(), ended);
            next.update(b"four\n");
            assert_eq!(next.digest(), Digest::of(b"one\n\ntwo\nfour\n"));
        }
    }
}
