//! The report frame: any stream, and any authenticated body.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_runner::{Asked, Ending, Report, ReportKey, Verdict, find};

fuzz_target!(|data: &[u8]| {
    let key = ReportKey::from_bytes([7; 32]);
    // Nobody made a frame under this key: whatever the stream holds, it is no report.
    assert!(find(data, &key).is_err());
    let _ = Verdict::of(data, &key, Ending::Deadline, &Asked::default());
    if let Some(Report::Ran { steps, artifacts, .. }) = Report::decode(data) {
        assert!(steps.len() <= 20 && artifacts.len() <= 100);
        assert!(artifacts.iter().map(|a| a.content.len()).sum::<usize>() <= 8 << 20);
    }
});
