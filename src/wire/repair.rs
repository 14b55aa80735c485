//! Repair of text before it becomes part of a message and of a record.

use crate::proto::{ModuleResult, RunResponse, run_response};

/// Valid UTF-8 from any bytes: each maximal run of invalid bytes becomes one
/// U+FFFD. `String::from_utf8_lossy` differs (one per ill-formed subsequence),
/// and the difference would be a different digest at a peer.
#[must_use]
pub fn utf8(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    let mut in_invalid = false;
    for chunk in bytes.utf8_chunks() {
        if !chunk.valid().is_empty() {
            out.push_str(chunk.valid());
            in_invalid = false;
        }
        if !chunk.invalid().is_empty() && !in_invalid {
            out.push('\u{FFFD}');
            in_invalid = true;
        }
    }
    out
}

/// Makes every NaN of a module result the quiet NaN without sign or payload,
/// the only one JSON can carry. Must happen before the record is computed.
pub fn canonical_nans(response: &mut RunResponse) {
    if let Some(run_response::Result::Module(module)) = response.result.as_mut() {
        let ModuleResult { runs, .. } = module.as_mut();
        for value in runs.iter_mut().flat_map(|r| r.outputs.iter_mut()) {
            if value.is_nan() {
                *value = f64::from_bits(0x7ff8_0000_0000_0000);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::utf8;

    #[test]
    fn one_replacement_for_each_run() {
        assert_eq!(utf8(b"a\xff\xfe\xffb"), "a\u{FFFD}b");
        assert_eq!(utf8(b"\xe2\x82"), "\u{FFFD}");
        assert_eq!(utf8(b"\xe2\x82\xe2\x82x\xff"), "\u{FFFD}x\u{FFFD}");
        assert_eq!(utf8("é".as_bytes()), "é");
        assert_eq!(utf8(b""), "");
    }
}
