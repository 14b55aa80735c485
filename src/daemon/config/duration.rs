//! Durations in the syntax of Go: `30m`, `1h30m`, `1.5s`, `500ms`, `0`.

use std::time::Duration;

/// Reads a duration: one or more of a decimal number, which may have a
/// fraction, and a unit of `ns us µs ms s m h`, after an optional sign. `0`
/// needs no unit. `None` for anything else, for less than zero and for more
/// than 2⁶³ − 1 nanoseconds.
#[must_use]
pub fn parse_duration(text: &str) -> Option<Duration> {
    let (negative, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest == "0" {
        return Some(Duration::ZERO);
    }
    if rest.is_empty() {
        return None;
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (nanos, after) = one(rest)?;
        total = total.checked_add(nanos)?;
        if total > i64::MAX as u128 {
            return None;
        }
        rest = after;
    }
    if negative && total > 0 {
        return None;
    }
    u64::try_from(total).ok().map(Duration::from_nanos)
}

/// One number with its unit, in nanoseconds rounded down, and what follows.
fn one(text: &str) -> Option<(u128, &str)> {
    let (whole, rest) = digits(text);
    let (fraction, rest) = match rest.strip_prefix('.') {
        Some(rest) => digits(rest),
        None => ("", rest),
    };
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    let end = rest
        .find(|c: char| c == '.' || c.is_ascii_digit())
        .unwrap_or(rest.len());
    let (unit, rest) = rest.split_at(end);
    let unit: u128 = match unit {
        "ns" => 1,
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    // Longer numbers are over the bound anyway; a u128 holds these products.
    if whole.trim_start_matches('0').len() > 19 {
        return None;
    }
    let number: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    // Digits past the fifteenth are below a nanosecond of any unit's part.
    let kept = &fraction[..fraction.len().min(15)];
    let part = match kept {
        "" => 0,
        kept => kept.parse::<u128>().ok()? * unit / 10u128.pow(kept.len() as u32),
    };
    Some((number.checked_mul(unit)?.checked_add(part)?, rest))
}

fn digits(text: &str) -> (&str, &str) {
    let end = text
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(text.len());
    text.split_at(end)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn accepted() {
        for (text, nanos) in [
            ("0", 0),
            ("+0", 0),
            ("-0", 0),
            ("-0s", 0),
            ("0s", 0),
            ("30m", 1_800_000_000_000),
            ("90s", 90_000_000_000),
            ("1h30m", 5_400_000_000_000),
            ("500ms", 500_000_000),
            ("1.5h", 5_400_000_000_000),
            (".5s", 500_000_000),
            ("1.s", 1_000_000_000),
            ("+5s", 5_000_000_000),
            ("1s1s", 2_000_000_000),
            ("1us1µs1μs1ns", 3_001),
            ("0.000000001s", 1),
            ("0.9999999999999999999999s", 999_999_999),
            ("9223372036854775807ns", i64::MAX as u64),
        ] {
            assert_eq!(
                parse_duration(text),
                Some(Duration::from_nanos(nanos)),
                "{text}"
            );
        }
    }

    #[test]
    fn refused() {
        for text in [
            "",
            "5",
            "30",
            "+",
            "-",
            "-1s",
            "s",
            ".s",
            ".",
            "1",
            "1 s",
            " 1s",
            "1s ",
            "1x",
            "1S",
            "1d",
            "1h30",
            "1e3s",
            "0x1s",
            "1_0s",
            "--1s",
            "1s-1s",
            "9223372036854775808ns",
            "2562048h",
            "99999999999999999999999h",
            "∞",
        ] {
            assert_eq!(parse_duration(text), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn a_written_duration_reads_back(h in 0u64..2000, m in 0u64..100_000, s in 0u64..100_000,
            ms in 0u64..100_000, us in 0u64..100_000, ns in 0u64..100_000) {
            let text = format!("{h}h{m}m{s}s{ms}ms{us}us{ns}ns");
            let nanos = ns + 1000 * (us + 1000 * (ms + 1000 * (s + 60 * (m + 60 * h))));
            prop_assert_eq!(parse_duration(&text), Some(Duration::from_nanos(nanos)));
        }

        #[test]
        fn fractions_are_exact_to_the_nanosecond(nanos in 0u64..1_000_000_000) {
            let text = format!("0.{nanos:09}s");
            prop_assert_eq!(parse_duration(&text), Some(Duration::from_nanos(nanos)));
        }

        #[test]
        fn no_text_makes_it_fail_otherwise(text in any::<String>()) {
            let _ = parse_duration(&text);
        }

        #[test]
        fn near_misses_do_not_make_it_fail(text in "[-+0-9.]{0,25}(ns|us|µs|ms|s|m|h){0,3}[0-9.hms]{0,9}") {
            if let Some(read) = parse_duration(&text) {
                prop_assert!(read <= Duration::from_nanos(i64::MAX as u64));
            }
        }
    }
}
