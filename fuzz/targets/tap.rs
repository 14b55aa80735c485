//! A TAP stream of a stranger: read within its bounds, or refused whole; one
//! without a plan is never whole.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_receipt::report::{self, Format, MAX_CASES};

fuzz_target!(|data: &[u8]| {
    if let Ok(parsed) = report::read(Format::Tap, data) {
        assert!(parsed.cases.len() <= MAX_CASES + 1);
        assert!(parsed.cases.iter().all(|case| case.name.len() <= 2048));
        let planned = data.windows(3).any(|three| three == b"1..");
        assert!(planned || parsed.broken.is_some());
    }
});
