//! Whether what came in on a connection ends inside a request's head.
//!
//! The HTTP library reads as much as there is and does not tell what it keeps
//! of it, so that a head which began behind another request, or a frame that
//! was cut short, would look like a connection at rest.

/// HTTP/1: the last bytes that came.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    last: [u8; 3],
}

impl Lines {
    pub(crate) fn read(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().skip(bytes.len().saturating_sub(3)) {
            self.last = [self.last[1], self.last[2], *byte];
        }
    }

    /// Whether the last line is empty, as behind every head.
    pub(crate) fn end_empty(&self) -> bool {
        matches!(self.last, [_, b'\n', b'\n'] | [b'\n', b'\r', b'\n'])
    }
}

/// Bytes of the preface that HTTP/2 begins with.
const PREFACE: usize = 24;
/// Bytes of a frame before its payload.
const FRAME_HEAD: usize = 9;
const HEADERS: u8 = 1;
const CONTINUATION: u8 = 9;
const END_HEADERS: u8 = 4;

/// HTTP/2: the frame, and the block of headers, that what came ends in.
#[derive(Debug)]
pub(crate) struct Frames {
    /// What the preface or the payload still needs.
    left: usize,
    /// The part of a frame's head that came.
    head: Vec<u8>,
    /// A block of headers goes on in the next frame.
    block: bool,
}

impl Frames {
    pub(crate) fn new() -> Self {
        Frames {
            left: PREFACE,
            head: Vec::with_capacity(FRAME_HEAD),
            block: false,
        }
    }

    /// Follows more bytes; true when something ended in them that had begun.
    pub(crate) fn read(&mut self, mut bytes: &[u8]) -> bool {
        let mut ended = false;
        while !bytes.is_empty() {
            let wanted = match self.left {
                0 => FRAME_HEAD - self.head.len(),
                left => left,
            };
            let (now, rest) = bytes.split_at(wanted.min(bytes.len()));
            bytes = rest;
            if self.left > 0 {
                self.left -= now.len();
            } else {
                self.head.extend_from_slice(now);
                if let [a, b, c, kind, flags, ..] = self.head[..]
                    && self.head.len() == FRAME_HEAD
                {
                    self.left = u32::from_be_bytes([0, a, b, c]) as usize;
                    if matches!(kind, HEADERS | CONTINUATION) {
                        self.block = flags & END_HEADERS == 0;
                    }
                    self.head.clear();
                }
            }
            ended |= !self.within();
        }
        ended
    }

    /// Whether a frame or a block of headers is not complete.
    pub(crate) fn within(&self) -> bool {
        self.left > 0 || self.block || !self.head.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_of_http1_ends_in_an_empty_line() {
        for (text, ends) in [
            ("", false),
            ("GET / HTTP/1.1\r\n", false),
            ("GET / HTTP/1.1\r\n\r\n", true),
            ("GET / HTTP/1.1\n\n", true),
            ("GET / HTTP/1.1\nA: b\n\r\n", true),
            ("GET / HTTP/1.1\r\n\r\nG", false),
            ("GET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n", false),
        ] {
            let mut at_once = Lines::default();
            at_once.read(text.as_bytes());
            let mut one_by_one = Lines::default();
            text.bytes().for_each(|byte| one_by_one.read(&[byte]));
            assert_eq!(at_once.end_empty(), ends, "{text:?}");
            assert_eq!(one_by_one.end_empty(), ends, "{text:?}");
        }
    }

    fn frame(kind: u8, flags: u8, length: u8) -> Vec<u8> {
        let head = [0, 0, length, kind, flags, 0, 0, 0, 1];
        [&head[..], &vec![7; length.into()]].concat()
    }

    #[test]
    fn frames_and_blocks_of_http2_end() {
        let whole = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 0, 0),
            frame(HEADERS, 0, 12),
            frame(CONTINUATION, 0, 0),
            frame(CONTINUATION, END_HEADERS, 40),
            frame(0, 0, 200),
            frame(6, END_HEADERS, 8),
        ];
        // After the preface and each frame, whether something is open.
        let open = [false, false, true, true, false, false, false];
        let mut frames = Frames::new();
        assert!(frames.within());
        for (part, open) in whole.iter().zip(open) {
            for (at, byte) in part.iter().enumerate() {
                let last = at + 1 == part.len();
                assert_eq!(frames.read(&[*byte]), last && !open);
                assert_eq!(frames.within(), !last || open);
            }
        }
        // Together it is the same, and where it is cut does not matter.
        let all = whole.concat();
        for cut in 1..all.len() {
            let mut frames = Frames::new();
            frames.read(&all[..cut]);
            assert!(frames.read(&all[cut..]));
            assert!(!frames.within(), "{cut}");
        }
    }
}
