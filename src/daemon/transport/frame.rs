//! The one message frame of a gRPC or gRPC-Web request.

use bytes::{BufMut, Bytes, BytesMut};

use super::inflate::{InflateError, inflate};

/// Bytes before a frame's message: a flag byte and a big-endian length.
pub(crate) const FRAME_HEAD: usize = 5;

/// Why a framed body was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FrameError {
    /// The frame states a message over the limit, or inflates to one.
    #[error("the message is over the limit")]
    TooLarge,
    /// Not one whole frame.
    #[error("the body is not exactly one message frame")]
    NotOneFrame,
    /// The flag byte is neither plain nor compressed.
    #[error("the message frame has an unknown flag")]
    UnknownFlag,
    /// The frame says it is compressed and no header says how.
    #[error("the message frame is compressed without a stated encoding")]
    EncodingMissing,
    /// The message is not gzip.
    #[error("the message is not gzip")]
    NotGzip,
}

/// Whether `head`, the first bytes of a body, already states a message over
/// the limit, so that nothing more need be read.
pub(crate) fn states_too_much(head: &[u8], limit: usize) -> bool {
    stated_length(head).is_some_and(|length| length > limit)
}

/// Takes the message out of a body that is exactly one frame. `gzip` says
/// whether the request names gzip as its message encoding.
pub(crate) fn unwrap(body: &Bytes, gzip: bool, limit: usize) -> Result<Bytes, FrameError> {
    let length = stated_length(body).ok_or(FrameError::NotOneFrame)?;
    if length > limit {
        return Err(FrameError::TooLarge);
    }
    if body.len() != FRAME_HEAD + length {
        return Err(FrameError::NotOneFrame);
    }
    let message = body.slice(FRAME_HEAD..);
    match (body[0], gzip) {
        (0, _) => Ok(message),
        (1, false) => Err(FrameError::EncodingMissing),
        (1, true) => inflate(&message, limit).map_err(|fault| match fault {
            InflateError::TooLarge => FrameError::TooLarge,
            InflateError::Malformed => FrameError::NotGzip,
        }),
        _ => Err(FrameError::UnknownFlag),
    }
}

/// The message as one plain frame.
pub(crate) fn wrap(message: &[u8]) -> Bytes {
    let mut out = BytesMut::with_capacity(FRAME_HEAD + message.len());
    out.put_u8(0);
    // A message is bounded far below 4 GiB before it comes here.
    out.put_u32(u32::try_from(message.len()).unwrap_or(u32::MAX));
    out.put_slice(message);
    out.freeze()
}

fn stated_length(body: &[u8]) -> Option<usize> {
    let length: [u8; 4] = body.get(1..FRAME_HEAD)?.try_into().ok()?;
    usize::try_from(u32::from_be_bytes(length)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &[u8], gzip: bool) -> Result<Bytes, FrameError> {
        unwrap(&Bytes::copy_from_slice(body), gzip, 8)
    }

    #[test]
    fn one_frame() {
        assert_eq!(read(b"\0\0\0\0\0", false).unwrap(), "");
        assert_eq!(read(b"\0\0\0\0\x02ab", true).unwrap(), "ab");
        assert_eq!(read(b"\x01\0\0\0\0", true).unwrap(), "");
    }

    #[test]
    fn faults() {
        for (body, gzip, fault) in [
            (&b""[..], false, FrameError::NotOneFrame),
            (b"\0\0\0\0", false, FrameError::NotOneFrame),
            (b"\0\0\0\0\x02a", false, FrameError::NotOneFrame),
            (b"\0\0\0\0\x01ab", false, FrameError::NotOneFrame),
            (b"\0\0\0\0\0\0\0\0\0\0", false, FrameError::NotOneFrame),
            (b"\0\xff\xff\xff\xff", false, FrameError::TooLarge),
            (b"\0\0\0\0\x09aaaaaaaaa", false, FrameError::TooLarge),
            (b"\x02\0\0\0\x01a", true, FrameError::UnknownFlag),
            (b"\x80\0\0\0\x01a", true, FrameError::UnknownFlag),
            (b"\x01\0\0\0\x01a", false, FrameError::EncodingMissing),
            (b"\x01\0\0\0\x01a", true, FrameError::NotGzip),
        ] {
            assert_eq!(read(body, gzip), Err(fault), "{body:?}");
        }
        assert!(states_too_much(b"\0\xff\xff\xff\xff", 8));
        assert!(!states_too_much(b"\0\xff\xff\xff", 8));
        assert!(!states_too_much(b"\0\0\0\0\x08", 8));
    }

    proptest! {
        #[test]
        fn round_trip(message in proptest::collection::vec(any::<u8>(), 0..9)) {
            prop_assert_eq!(unwrap(&wrap(&message), false, 8).unwrap(), message);
        }

        #[test]
        fn any_bytes_give_at_most_the_limit(body in proptest::collection::vec(any::<u8>(), 0..32), gzip: bool) {
            if let Ok(message) = read(&body, gzip) {
                prop_assert!(message.len() <= 8);
                prop_assert!(body[0] <= 1);
            }
        }

        /// Cutting or growing a good frame is always noticed.
        #[test]
        fn other_lengths_are_refused(message in proptest::collection::vec(any::<u8>(), 0..8), cut in 1_usize..13, extra in 1_usize..9) {
            let whole = wrap(&message);
            let shorter = whole.slice(..whole.len().saturating_sub(cut));
            prop_assert!(unwrap(&shorter, false, 8).is_err());
            let mut longer = whole.to_vec();
            longer.extend(vec![0; extra]);
            prop_assert!(unwrap(&Bytes::from(longer), false, 8).is_err());
        }
    }
}
