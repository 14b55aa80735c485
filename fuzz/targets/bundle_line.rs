//! One line: decoding refuses or is exact, and digests never panic.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::Line;

fuzz_target!(|data: &[u8]| {
    if let Ok(line) = Line::decode(data) {
        assert_eq!(line.as_bytes(), data);
        let _ = line.digests();
    }
});
