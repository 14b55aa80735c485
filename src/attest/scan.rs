//! Finding the first byte of a kind in long text.
//!
//! Most of a line is base64, which holds nothing to look at: whole pieces are
//! passed over with a test that compiles to vector instructions.

/// Bytes tested together.
const PIECE: usize = 32;

/// Where the first byte stands for which `wanted` holds; the length if none.
#[inline]
pub(crate) fn first(bytes: &[u8], wanted: impl Fn(u8) -> bool) -> usize {
    let (pieces, rest) = bytes.as_chunks::<PIECE>();
    let mut start = 0;
    for piece in pieces {
        // No early end inside a piece: that keeps the loop free of branches.
        if piece.iter().fold(false, |any, &byte| any | wanted(byte)) {
            break;
        }
        start += PIECE;
    }
    let rest = if start / PIECE < pieces.len() {
        pieces[start / PIECE].as_slice()
    } else {
        rest
    };
    start
        + rest
            .iter()
            .position(|&byte| wanted(byte))
            .unwrap_or(rest.len())
}

#[cfg(test)]
mod tests {
    use super::first;

    #[test]
    fn finds_the_first_wherever_it_stands() {
        for length in 0..100 {
            let mut bytes = vec![b'a'; length];
            assert_eq!(first(&bytes, |byte| byte == b'x'), length);
            for at in (0..length).rev() {
                bytes[at] = b'x';
                assert_eq!(first(&bytes, |byte| byte == b'x'), at);
            }
        }
    }
}
