//! A JUnit report of a stranger: read within its bounds, or refused whole.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_receipt::report::{self, Format, MAX_CASES};

fuzz_target!(|data: &[u8]| {
    if let Ok(parsed) = report::read(Format::Junit, data) {
        assert!(parsed.cases.len() <= MAX_CASES);
        assert!(parsed.cases.iter().all(|case| case.name.len() <= 2048));
    }
});
