//! Every form that is read, and every form that is not.

use super::*;
use proptest::prelude::*;

#[test]
fn durations_are_those_of_go() {
    let good = [
        ("0", 0),
        ("90s", 90_000_000_000),
        ("1h30m", 5_400_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("1h1m1s1ms1us1ns", 3_661_001_001_001),
        ("1\u{b5}s", 1_000),
        ("1\u{3bc}s", 1_000),
        (".5s", 500_000_000),
        ("1.s", 1_000_000_000),
        ("+1s", 1_000_000_000),
        ("0.9ns", 0),
        ("0s", 0),
        ("000000000000000000000000000001s", 1_000_000_000),
        ("9223372036854775807ns", i64::MAX as u64),
    ];
    for (text, nanos) in good {
        assert_eq!(duration(text), Ok(Duration::from_nanos(nanos)), "{text}");
    }
    let bad = [
        ("", ValueFault::Duration),
        ("+", ValueFault::Duration),
        (".s", ValueFault::Duration),
        ("1.2.3s", ValueFault::Duration),
        ("1d", ValueFault::Duration),
        ("1 s", ValueFault::Duration),
        ("1S", ValueFault::Duration),
        ("s", ValueFault::Duration),
        ("90", ValueFault::DurationUnit),
        ("1s90", ValueFault::DurationUnit),
        ("00", ValueFault::DurationUnit),
        ("-1s", ValueFault::DurationNegative),
        ("-0", ValueFault::DurationNegative),
        ("9223372036854775808ns", ValueFault::DurationLong),
        ("2562048h", ValueFault::DurationLong),
        ("99999999999999999999999s", ValueFault::DurationLong),
    ];
    for (text, fault) in bad {
        assert_eq!(duration(text), Err(fault), "{text}");
    }
}

#[test]
fn times_are_rfc_3339_or_milliseconds() {
    let good = [
        ("0", 0),
        ("1792314000000", 1_792_314_000_000),
        ("999999999999999", 999_999_999_999_999),
        ("1970-01-01T00:00:00Z", 0),
        ("2026-10-18T09:00:00Z", 1_792_314_000_000),
        ("2026-10-18t11:00:00.250+02:00", 1_792_314_000_250),
        ("2026-10-18T09:00:00.100000000z", 1_792_314_000_100),
        ("2000-02-29T23:59:59-00:01", 951_868_859_000),
        ("1969-12-31T23:59:59.999Z", -1),
        ("0000-01-01T00:00:00Z", -62_167_219_200_000),
        ("9999-12-31T23:59:59Z", 253_402_300_799_000),
    ];
    for (text, millis) in good {
        assert_eq!(time(text), Ok(millis), "{text}");
    }
    for text in [
        "",
        "-1",
        "1000000000000000",
        "2026-10-18",
        "2026-10-18T09:00:00",
        "2026-10-18 09:00:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-10-00T00:00:00Z",
        "2026-10-18T24:00:00Z",
        "2026-10-18T09:60:00Z",
        "2026-10-18T09:00:61Z",
        "2026-10-18T09:00:00.Z",
        "2026-10-18T09:00:00,5Z",
        "2026-10-18T09:00:00+0200",
        "2026-10-18T09:00:00+24:00",
        "2026-10-18T09:00:00+02:60",
        "+026-10-18T09:00:00Z",
        "2026-10-18T09:00:0\u{660}Z",
        "2026-10-18T09:00:00Zx",
    ] {
        assert_eq!(time(text), Err(ValueFault::Time), "{text}");
    }
    assert_eq!(time("2016-12-31T23:59:60Z"), Err(ValueFault::TimeLeap));
    assert_eq!(time("2026-10-18T09:00:00.0005Z"), Err(ValueFault::TimeFine));
}

#[test]
fn digests_are_lowercase_and_whole() {
    assert_eq!(hex64(&"0f".repeat(32)), Ok([0x0f; 32]));
    for text in [
        String::new(),
        "0F".repeat(32),
        "0f".repeat(31),
        "0g".repeat(32),
        "é".repeat(32),
    ] {
        assert_eq!(hex64(&text), Err(ValueFault::Hex64), "{text}");
    }
}

#[test]
fn sizes_and_numbers_have_one_form_and_bounds() {
    assert_eq!(size("0"), Ok(0));
    assert_eq!(size("64KiB"), Ok(65_536));
    assert_eq!(size("2GiB"), Ok(2 << 30));
    for text in ["", "KiB", "-1", "01", "1kib", "1 KiB", "1.5MiB", "1KB"] {
        assert_eq!(size(text), Err(ValueFault::Size), "{text}");
    }
    assert_eq!(size("99999999999999999999"), Err(ValueFault::SizeLarge));
    assert_eq!(size("8589934592GiB"), Err(ValueFault::SizeLarge));

    let count = number(-1..=100);
    assert_eq!(count("-1"), Ok(-1));
    assert_eq!(count("100"), Ok(100));
    for text in ["", "-", "+1", "01", "0x1", "-0", "1_0", "1.0", " 1", "--1"] {
        assert_eq!(count(text), Err(ValueFault::Number), "{text}");
    }
    let bounds = ValueFault::Bounds { min: -1, max: 100 };
    for text in ["-2", "101", "99999999999999999999999999"] {
        assert_eq!(count(text), Err(bounds), "{text}");
    }
    assert_eq!(number(0..=9)("-1"), Err(ValueFault::Number));
}

#[test]
fn offered_words_are_no_limit() {
    let parser = offered(&["wasm"]);
    let words: Vec<_> = parser.possible_values().unwrap().collect();
    assert_eq!(words[0].get_name(), "wasm");
    let arg = clap::Arg::new("p").value_parser(parser);
    let matches = clap::Command::new("c")
        .arg(arg)
        .try_get_matches_from(["c", "docker"])
        .unwrap();
    assert_eq!(matches.get_one::<String>("p").unwrap(), "docker");
}

proptest! {
    #[test]
    fn whole_durations_come_back(h in 0_u64..2_000_000, m in 0_u64..1000, s in 0_u64..1000, ns in 0_u64..1000) {
        let expected = Duration::from_nanos(((h * 60 + m) * 60 + s) * 1_000_000_000 + ns);
        prop_assert_eq!(duration(&format!("{h}h{m}m{s}s{ns}ns")), Ok(expected));
    }

    #[test]
    fn nothing_panics(text in "[0-9.+:TZnµmush-]{0,40}|\\PC{0,40}") {
        let _ = (duration(&text), time(&text), hex64(&text), size(&text), number(-5..=5)(&text));
    }

    #[test]
    fn every_day_has_its_number(days in -719_528_i64..2_932_896) {
        // Counting months one by one is slow and certain.
        let (mut year, mut month, mut left) = (days.div_euclid(366) + 1960, 1, days);
        left -= days_since_epoch(year, 1, 1);
        prop_assert!(left >= 0);
        while left >= days_in_month(year, month) {
            left -= days_in_month(year, month);
            (year, month) = if month == 12 { (year + 1, 1) } else { (year, month + 1) };
        }
        prop_assert_eq!(days_since_epoch(year, month, left + 1), days);
    }
}
