//! The frame in which a report arrives.
//!
//! ```text
//! LF <<<PLIMSOLL_REPORT_V3>>> SP length SP mac LF body
//! ```
//!
//! `length` is the body's in canonical decimal, `mac` the hex HMAC-SHA256 of
//! the body. The stream around it may hold anything, other frames included:
//! they are passed over unless they verify.

use std::ops::Range;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use crate::ReportKey;

/// What begins a frame's header line.
pub const MARKER: &[u8] = b"<<<PLIMSOLL_REPORT_V3>>>";

/// Longest header line after the marker, without its LF.
pub const MAX_HEADER_BYTES: usize = 96;

/// Longest body.
pub const MAX_BODY_BYTES: usize = 16 << 20;

/// Most bytes that are authenticated in one stream. Headers are cheap to forge
/// and each may claim the whole stream as its body; without this bound one
/// stream of them would be hashed a hundred thousand times over. A genuine
/// frame needs its own body's length of it once.
const MAX_HASHED_BYTES: usize = 4 * MAX_BODY_BYTES;

/// A frame that verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The authenticated body.
    pub body: &'a [u8],
}

/// Why there is no report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FrameFault {
    /// Not one marker.
    #[error("the stream holds no report")]
    None,
    /// Markers, and nothing behind them that verifies.
    #[error("the stream holds no authenticated report")]
    Unauthenticated,
}

/// The first frame in `stream` that verifies under `key`. Time is linear in
/// the stream's length, whatever it holds.
///
/// # Errors
/// [`FrameFault`].
pub fn find<'a>(stream: &'a [u8], key: &ReportKey) -> Result<Frame<'a>, FrameFault> {
    let mut hashed = 0_usize;
    let mut seen = false;
    let mut from = 0;
    while let Some(after) = next_marker(stream, from) {
        seen = true;
        from = after;
        let Some((body, mac)) = candidate(stream, after) else {
            continue;
        };
        hashed = hashed.saturating_add(body.len());
        if hashed > MAX_HASHED_BYTES {
            break;
        }
        if verifies(body, &mac, key) {
            return Ok(Frame { body });
        }
    }
    Err(if seen {
        FrameFault::Unauthenticated
    } else {
        FrameFault::None
    })
}

/// Where the next marker ends.
fn next_marker(stream: &[u8], from: usize) -> Option<usize> {
    let rest = stream.get(from..)?;
    // The first byte is looked for on its own: it is rare in ordinary output.
    let mut at = 0;
    while let Some(found) = rest.get(at..)?.iter().position(|b| *b == MARKER[0]) {
        at += found;
        if rest.get(at..)?.starts_with(MARKER) {
            return Some(from + at + MARKER.len());
        }
        at += 1;
    }
    None
}

/// The body and MAC that the header at `at` claims, when it is well formed and
/// the whole body is there.
fn candidate(stream: &[u8], at: usize) -> Option<(&[u8], [u8; 32])> {
    let rest = stream.get(at..)?;
    let line = rest.get(..rest.len().min(MAX_HEADER_BYTES + 1))?;
    let end = line.iter().position(|b| *b == b'\n')?;
    let header = std::str::from_utf8(line.get(..end)?).ok()?;
    let mut fields = header.strip_prefix(' ')?.split(' ');
    let length = canonical_length(fields.next()?)?;
    let mut mac = [0; 32];
    hex::decode_to_slice(fields.next()?, &mut mac).ok()?;
    if fields.next().is_some() {
        return None;
    }
    let body: Range<usize> = end + 1..end.checked_add(1)?.checked_add(length)?;
    Some((rest.get(body)?, mac))
}

/// A decimal number without sign, blank or leading zero, within the bound.
fn canonical_length(text: &str) -> Option<usize> {
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    let canonical = text == "0" || !text.starts_with('0');
    if !digits || !canonical {
        return None;
    }
    text.parse().ok().filter(|n| *n <= MAX_BODY_BYTES)
}

/// Compares in constant time.
fn verifies(body: &[u8], mac: &[u8; 32], key: &ReportKey) -> bool {
    let Ok(mut own) = Hmac::<Sha256>::new_from_slice(key.bytes()) else {
        return false;
    };
    own.update(body);
    own.verify_slice(mac).is_ok()
}
