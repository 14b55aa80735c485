//! The two output streams of a run, each bounded.

use crate::outcome::OUTPUT_CAP;

/// One stream: the first [`OUTPUT_CAP`] bytes, and whether there were more.
#[derive(Debug, Default)]
pub(crate) struct Capped {
    pub(crate) bytes: Vec<u8>,
    pub(crate) truncated: bool,
}

impl Capped {
    /// Keeps what fits. Never fails: a guest that prints without end is stopped by its deadline, not by its output.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let room = OUTPUT_CAP - self.bytes.len();
        self.truncated |= bytes.len() > room;
        self.bytes
            .extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_cap_to_the_byte_and_flags_only_what_is_lost() {
        let mut stream = Capped::default();
        stream.push(&vec![b'a'; OUTPUT_CAP - 1]);
        stream.push(b"b");
        assert_eq!((stream.bytes.len(), stream.truncated), (OUTPUT_CAP, false));
        stream.push(b"");
        assert!(!stream.truncated);
        stream.push(b"c");
        assert_eq!(
            (stream.bytes.len(), stream.bytes.last(), stream.truncated),
            (OUTPUT_CAP, Some(&b'b'), true)
        );
    }
}
