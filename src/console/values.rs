//! The value types flags take, each with one exact form and a sentence for everything else.
//!
//! They are plain functions from text, made for `clap`'s `value_parser`.

use std::ffi::OsStr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, StringValueParser, TypedValueParser};

/// The isolation tiers, weakest first.
pub const TIERS: [&str; 4] = ["process", "container", "kernel", "vm"];

/// [`TIERS`] and `none`, where a flag can remove a floor.
pub const TIERS_OR_NONE: [&str; 5] = ["none", "process", "container", "kernel", "vm"];

/// Why a value was refused. The text is a fact that follows the flag's name, such as `is negative`.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum ValueFault {
    /// A duration of an unknown form.
    #[error("is not a duration such as 90s, 1h30m or 1.5h (units ns us ms s m h)")]
    Duration,
    /// A duration without a unit.
    #[error("has no unit; write a duration such as 90s, 1h30m or 1.5h")]
    DurationUnit,
    /// A negative duration.
    #[error("is negative; a duration here is never negative")]
    DurationNegative,
    /// A duration longer than 2^63 - 1 nanoseconds.
    #[error("is longer than 292 years")]
    DurationLong,
    /// A time of an unknown form or an impossible date.
    #[error(
        "is not a time such as 2026-10-18T09:00:00Z (RFC 3339, with an offset or Z) or Unix milliseconds of at most 15 digits"
    )]
    Time,
    /// A leap second.
    #[error("names a leap second, which has no Unix time")]
    TimeLeap,
    /// A time finer than a millisecond.
    #[error("is finer than a millisecond; times here are whole milliseconds")]
    TimeFine,
    /// Not 64 lowercase hexadecimal digits.
    #[error("is not 64 characters 0-9a-f")]
    Hex64,
    /// Not a decimal integer.
    #[error("is not a decimal integer without sign or leading zeros")]
    Number,
    /// A number out of its bounds.
    #[error("is not between {min} and {max}")]
    Bounds {
        /// Smallest accepted value.
        min: i64,
        /// Largest accepted value.
        max: i64,
    },
    /// Not a size.
    #[error("is not a number of bytes, or one with the suffix KiB, MiB or GiB")]
    Size,
    /// A size beyond 2^63 - 1 bytes.
    #[error("is larger than any file")]
    SizeLarge,
}

/// A Go-style duration: one or more decimal numbers, each with a unit of `ns us µs ms s m h`, or a
/// bare `0`. Never negative, at most 2^63 - 1 nanoseconds; digits below a nanosecond are cut off.
///
/// # Errors
/// A [`ValueFault`] that says which rule the text breaks.
pub fn duration(text: &str) -> Result<Duration, ValueFault> {
    if text.starts_with('-') {
        return Err(ValueFault::DurationNegative);
    }
    let mut rest = text.strip_prefix('+').unwrap_or(text);
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(ValueFault::Duration);
    }
    let mut total: u128 = 0;
    while !rest.is_empty() {
        let (number, tail) = split_while(rest, |c| c.is_ascii_digit() || c == '.');
        let (unit, tail) = split_while(tail, |c| !c.is_ascii_digit() && c != '.');
        rest = tail;
        total = total.saturating_add(nanoseconds(number, unit)?);
        if total > i64::MAX as u128 {
            return Err(ValueFault::DurationLong);
        }
    }
    let nanos = u64::try_from(total).map_err(|_| ValueFault::DurationLong)?;
    Ok(Duration::from_nanos(nanos))
}

/// A time: RFC 3339 with offset or `Z`, or 1 to 15 digits of Unix milliseconds. The result is Unix
/// milliseconds.
///
/// # Errors
/// A [`ValueFault`]; a time finer than a millisecond is refused instead of rounded, since rounding
/// either way would move a policy's bound.
pub fn time(text: &str) -> Result<i64, ValueFault> {
    if !text.is_empty() && text.len() <= 15 && text.bytes().all(|b| b.is_ascii_digit()) {
        return text.parse().map_err(|_| ValueFault::Time);
    }
    rfc3339(text)
}

/// A SHA-256 digest as 64 characters `0-9a-f`.
///
/// # Errors
/// [`ValueFault::Hex64`] for anything else, uppercase included.
pub fn hex64(text: &str) -> Result<[u8; 32], ValueFault> {
    let digits = text.as_bytes();
    let mut out = [0; 32];
    if digits.len() != 64 {
        return Err(ValueFault::Hex64);
    }
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let (Some(high), Some(low)) = (nibble(pair[0]), nibble(pair[1])) else {
            return Err(ValueFault::Hex64);
        };
        *byte = high << 4 | low;
    }
    Ok(out)
}

/// A number of bytes, with an optional suffix `KiB`, `MiB` or `GiB`; at most 2^63 - 1.
///
/// # Errors
/// A [`ValueFault`].
pub fn size(text: &str) -> Result<u64, ValueFault> {
    let (digits, unit) = split_while(text, |c| c.is_ascii_digit());
    let unit: u64 = match unit {
        "" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(ValueFault::Size),
    };
    if !is_decimal(digits) {
        return Err(ValueFault::Size);
    }
    digits
        .parse::<u64>()
        .ok()
        .and_then(|n| n.checked_mul(unit))
        .filter(|&n| i64::try_from(n).is_ok())
        .ok_or(ValueFault::SizeLarge)
}

/// A decimal integer within bounds. A sign is read only where the bounds hold negative numbers.
///
/// Leading zeros are refused: the reference reads them as octal, and one line must not mean two
/// numbers.
pub fn number(
    bounds: RangeInclusive<i64>,
) -> impl Fn(&str) -> Result<i64, ValueFault> + Clone + Send + Sync + 'static {
    move |text| {
        let digits = match text.strip_prefix('-') {
            Some(digits) if *bounds.start() < 0 && digits != "0" => digits,
            Some(_) => return Err(ValueFault::Number),
            None => text,
        };
        if !is_decimal(digits) {
            return Err(ValueFault::Number);
        }
        let fault = ValueFault::Bounds {
            min: *bounds.start(),
            max: *bounds.end(),
        };
        text.parse()
            .ok()
            .filter(|n| bounds.contains(n))
            .ok_or(fault)
    }
}

/// One of the given words, exactly. Completions offer them and a near miss is named.
#[must_use]
pub fn words(words: &'static [&'static str]) -> PossibleValuesParser {
    PossibleValuesParser::new(words)
}

/// Words that help lists and completions offer, for a flag whose own check refuses another one with
/// more to say than that it is unknown.
#[must_use]
pub fn offered(words: &'static [&'static str]) -> Offered {
    Offered(words)
}

/// The value parser of [`offered`]: takes any text.
#[derive(Clone, Debug)]
pub struct Offered(&'static [&'static str]);

impl TypedValueParser for Offered {
    type Value = String;

    fn parse_ref(
        &self,
        command: &clap::Command,
        arg: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<String, clap::Error> {
        StringValueParser::new().parse_ref(command, arg, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(
            self.0.iter().map(|word| PossibleValue::new(*word)),
        ))
    }
}

/// Digits without a leading zero, or `0`.
fn is_decimal(text: &str) -> bool {
    !text.is_empty()
        && text.bytes().all(|b| b.is_ascii_digit())
        && (text.len() == 1 || !text.starts_with('0'))
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

fn split_while(text: &str, accept: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text.find(|c| !accept(c)).unwrap_or(text.len()))
}

/// One number with its unit, in nanoseconds. Numbers too long to hold are far beyond the bound and
/// come back as such; no work depends on their length but reading it once.
fn nanoseconds(number: &str, unit: &str) -> Result<u128, ValueFault> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.contains('.') {
        return Err(ValueFault::Duration);
    }
    let unit: u128 = match unit {
        "ns" => 1,
        // Both the micro sign and the Greek letter are in use.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60 * 1_000_000_000,
        "h" => 3600 * 1_000_000_000,
        "" => return Err(ValueFault::DurationUnit),
        _ => return Err(ValueFault::Duration),
    };
    let whole = whole.trim_start_matches('0');
    if whole.len() > 19 {
        return Err(ValueFault::DurationLong);
    }
    let whole: u128 = if whole.is_empty() {
        0
    } else {
        whole.parse().unwrap_or(u128::MAX >> 64)
    };
    // Digits beyond the 18th are below a nanosecond for every unit.
    let (mut part, mut scale) = (0_u128, 1_u128);
    for digit in fraction.bytes().take(18) {
        part = part * 10 + u128::from(digit - b'0');
        scale *= 10;
    }
    Ok(whole * unit + part * unit / scale)
}

fn rfc3339(text: &str) -> Result<i64, ValueFault> {
    let bytes = text.as_bytes();
    // The shortest form is 2026-10-18T09:00:00Z; the longest one here has nine fraction digits.
    if !(20..=35).contains(&bytes.len()) || !text.is_ascii() {
        return Err(ValueFault::Time);
    }
    let digits = |from: usize, to: usize| -> Result<i64, ValueFault> {
        let part = &text[from..to];
        let all = part.bytes().all(|b| b.is_ascii_digit());
        part.parse().ok().filter(|_| all).ok_or(ValueFault::Time)
    };
    let separators = [
        (4, b"-".as_slice()),
        (7, b"-"),
        (10, b"Tt"),
        (13, b":"),
        (16, b":"),
    ];
    if !separators
        .iter()
        .all(|(at, allowed)| allowed.contains(&bytes[*at]))
    {
        return Err(ValueFault::Time);
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let mut at = 19;
    let mut millis = 0;
    if bytes[at] == b'.' {
        let (fraction, _) = split_while(&text[at + 1..], |c| c.is_ascii_digit());
        if fraction.is_empty() || fraction.len() > 9 {
            return Err(ValueFault::Time);
        }
        let nanos: i64 = format!("{fraction:0<9}")
            .parse()
            .map_err(|_| ValueFault::Time)?;
        if nanos % 1_000_000 != 0 {
            return Err(ValueFault::TimeFine);
        }
        millis = nanos / 1_000_000;
        at += 1 + fraction.len();
    }
    let offset_minutes = match &bytes[at..] {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), _, _, b':', _, _] => {
            let (hours, minutes) = (digits(at + 1, at + 3)?, digits(at + 4, at + 6)?);
            if hours > 23 || minutes > 59 {
                return Err(ValueFault::Time);
            }
            (hours * 60 + minutes) * if *sign == b'-' { -1 } else { 1 }
        }
        _ => return Err(ValueFault::Time),
    };
    if second == 60 {
        return Err(ValueFault::TimeLeap);
    }
    if !(1..=12).contains(&month)
        || !(1..=days_in_month(year, month)).contains(&day)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return Err(ValueFault::Time);
    }
    let minutes = days_since_epoch(year, month, day) * 1440 + hour * 60 + minute - offset_minutes;
    Ok((minutes * 60 + second) * 1000 + millis)
}

fn days_in_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from 1970-01-01 in the proleptic Gregorian calendar, for years 0 to 9999.
fn days_since_epoch(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that the leap day is the last day of a year.
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leaps = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    year * 365 + leaps + (month * 153 + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests;
