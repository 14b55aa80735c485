//! JSON in the form of RFC 8785: members sorted by UTF-16 code units, no white
//! space, strings and numbers as ECMAScript writes them.
//!
//! That form carries numbers as doubles. A number whose value would change on
//! the way is refused instead: what is signed must say what was reviewed.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

/// Why a text has no canonical form.
#[derive(Debug, thiserror::Error)]
pub enum CanonicalError {
    /// A number that a double does not carry.
    #[error("the number cannot be carried: its canonical form would have another value")]
    Number {
        /// As it stands in the text.
        found: String,
        /// What the canonical form would be; `None` when it is out of range.
        canonical: Option<String>,
    },
    /// The text is no JSON.
    #[error("the text is not JSON: {0}")]
    Json(#[from] serde_json::Error),
}

/// The canonical form of a JSON text that was checked strictly before: no
/// repeated members, bounded nesting.
///
/// # Errors
/// [`CanonicalError`].
pub fn canonical(text: &str) -> Result<String, CanonicalError> {
    let mut out = String::with_capacity(text.len());
    write(serde_json::from_str(text)?, &mut out)?;
    Ok(out)
}

fn write(value: &RawValue, out: &mut String) -> Result<(), CanonicalError> {
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Members(mut members) = serde_json::from_str(text)?;
            members.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            out.push('{');
            for (n, (name, value)) in members.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&name)?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        Some(b'[') => {
            let elements: Vec<&RawValue> = serde_json::from_str(text)?;
            out.push('[');
            for (n, value) in elements.into_iter().enumerate() {
                if n > 0 {
                    out.push(',');
                }
                write(value, out)?;
            }
            out.push(']');
        }
        Some(b'"') => {
            let content: String = serde_json::from_str(text)?;
            out.push_str(&serde_json::to_string(&content)?);
        }
        Some(b'-' | b'0'..=b'9') => out.push_str(&number(text)?),
        _ => out.push_str(text),
    }
    Ok(())
}

/// The members of one object, as they stand in the text.
struct Members<'a>(Vec<(String, &'a RawValue)>);

impl<'de> Deserialize<'de> for Members<'de> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Reader;

        impl<'de> Visitor<'de> for Reader {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Reader)
    }
}

fn number(text: &str) -> Result<String, CanonicalError> {
    let canonical = text
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .map(ecmascript);
    match canonical {
        Some(canonical) if decimal(&canonical) == decimal(text) => Ok(canonical),
        canonical => Err(CanonicalError::Number {
            found: text.to_owned(),
            canonical,
        }),
    }
}

/// A finite double as ECMAScript's `Number::toString` writes it: the shortest
/// digits that read back as the same double, the closest of them.
fn ecmascript(value: f64) -> String {
    if value == 0.0 {
        return "0".to_owned();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let (digits, exponent) = shortest(value.abs());
    let count = digits.len() as i32;
    // Where the decimal point stands, counted from the first digit.
    let point = exponent + 1;
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    if (count..=21).contains(&point) {
        return format!("{sign}{digits}{}", zeros(point - count));
    }
    if (1..=21).contains(&point) {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or_default());
        return format!("{sign}{whole}.{fraction}");
    }
    if (-5..=0).contains(&point) {
        return format!("{sign}0.{}{digits}", zeros(-point));
    }
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    format!("{sign}{first}{dot}{rest}e{exponent:+}")
}

/// The shortest digits of a positive double and the exponent of the first. Of
/// two that are equally close the one that ends in an even digit.
fn shortest(value: f64) -> (String, i32) {
    let split = |scientific: &str| {
        let (mantissa, exponent) = scientific.split_once('e').unwrap_or((scientific, "0"));
        let digits: String = mantissa.chars().filter(char::is_ascii_digit).collect();
        (digits, exponent.parse().unwrap_or_default())
    };
    let (digits, exponent) = split(&format!("{value:e}"));
    // The library rounds such a tie up. There is one only when the double has
    // exactly one digit more, which takes more digits than 15.
    if digits.len() < 15 || digits.ends_with(['0', '2', '4', '6', '8']) {
        return (digits, exponent);
    }
    let (exact, at) = split(&format!("{value:.MOST_DIGITS$e}"));
    let (down, rest) = exact.split_at_checked(digits.len()).unwrap_or((&exact, ""));
    let tie = at == exponent && rest.trim_end_matches('0') == "5";
    let other = format!("{down}e{}", i64::from(at) - down.len() as i64 + 1);
    if tie && down != digits && other.parse() == Ok(value) {
        return (down.to_owned(), exponent);
    }
    (digits, exponent)
}

/// Digits that show any double exactly, after its first one.
const MOST_DIGITS: usize = 770;

/// A number's value: sign, digits without outer zeros, and the exponent of the
/// last digit. Equal values are equal here however they are written.
fn decimal(text: &str) -> (bool, String, i64) {
    let (negative, text) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, "0"));
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let digits = format!("{whole}{fraction}");
    let kept = digits.trim_end_matches('0');
    if kept.is_empty() {
        return (false, String::new(), 0);
    }
    // An exponent beyond these bounds is no double's: then the digits differ.
    let stated = exponent
        .parse::<i64>()
        .unwrap_or(if exponent.starts_with('-') {
            i64::MIN / 2
        } else {
            i64::MAX / 2
        });
    let exponent = stated
        .saturating_sub(fraction.len() as i64)
        .saturating_add((digits.len() - kept.len()) as i64);
    (negative, kept.trim_start_matches('0').to_owned(), exponent)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_standard() {
        // RFC 8785, appendix B.
        for (bits, text) in [
            (0x0000_0000_0000_0000_u64, "0"),
            (0x8000_0000_0000_0000, "0"),
            (0x0000_0000_0000_0001, "5e-324"),
            (0x8000_0000_0000_0001, "-5e-324"),
            (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
            (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
            (0x4340_0000_0000_0000, "9007199254740992"),
            (0xc340_0000_0000_0000, "-9007199254740992"),
            (0x4430_0000_0000_0000, "295147905179352830000"),
            (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
            (0x44b5_2d02_c7e1_4af6, "1e+23"),
            (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
            (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
            (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
            (0x444b_1ae4_d6e2_ef50, "1e+21"),
            (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
            (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
            (0x41b3_de43_5555_5553, "333333333.3333332"),
            (0x41b3_de43_5555_5554, "333333333.33333325"),
            (0x41b3_de43_5555_5555, "333333333.3333333"),
            (0x41b3_de43_5555_5556, "333333333.3333334"),
            (0x41b3_de43_5555_5557, "333333333.33333343"),
            (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
            (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
        ] {
            assert_eq!(ecmascript(f64::from_bits(bits)), text, "{bits:x}");
        }
    }

    #[test]
    fn a_number_keeps_its_value_or_is_refused() {
        for (text, canonical) in [
            ("1.50", "1.5"),
            ("2e3", "2000"),
            ("1E-7", "1e-7"),
            ("-0.0e5", "0"),
            ("100000000000000000000000", "1e+23"),
            ("0.1", "0.1"),
            ("9007199254740992", "9007199254740992"),
            ("0.30000000000000004", "0.30000000000000004"),
        ] {
            assert_eq!(number(text).unwrap(), canonical, "{text}");
        }
        for text in [
            "9007199254740993",
            "-9007199254740993",
            "12345678901234567890",
            "0.1000000000000000055511151231257827",
            "1e400",
            "-1e400",
            "1e-400",
            "1e99999999999999999999",
            "1e-99999999999999999999",
        ] {
            assert!(number(text).is_err(), "{text}");
        }
    }

    #[test]
    fn texts() {
        for (text, form) in [
            (" { } ", "{}"),
            ("[ ]", "[]"),
            (
                r#"{"b":[ ],"a":{ },"c":[{},[]]}"#,
                r#"{"a":{},"b":[],"c":[{},[]]}"#,
            ),
            (
                "{\"\u{fb33}\":1,\"\u{1f600}\":2,\"\\u20ac\":3,\"1\":4,\"\\r\":5,\"\\u0080\":6,\"ö\":7}",
                "{\"\\r\":5,\"1\":4,\"\u{80}\":6,\"ö\":7,\"€\":3,\"\u{1f600}\":2,\"\u{fb33}\":1}",
            ),
            (
                r#"{"s":"\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/<>&\u2028\u007f"}"#,
                "{\"s\":\"€$\\u000f\\nA'B\\\"\\\\\\\\\\\"/<>&\u{2028}\u{7f}\"}",
            ),
            (
                "[null,true,false,\"[\",\"{\"]",
                "[null,true,false,\"[\",\"{\"]",
            ),
            (
                "{\"a\":[\"x{\"],\"\":[\",\"]}",
                "{\"\":[\",\"],\"a\":[\"x{\"]}",
            ),
        ] {
            assert_eq!(canonical(text).unwrap(), form, "{text}");
            assert_eq!(canonical(form).unwrap(), form);
        }
        assert!(canonical("{").is_err());
    }
}
