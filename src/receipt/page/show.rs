//! How foreign text and numbers are written into the page.
//!
//! `script/11_view.js` writes the same characters: the page is compared with
//! what the script makes from the evidence, so each rule here has its twin
//! there and the tests hold them together.

use std::fmt::Write as _;

/// Code points that act on a text or cannot be seen: controls, bidirectional
/// and zero-width characters, spaces other than U+0020, fillers, variation
/// selectors, tags. They are named instead of shown. Sorted, inclusive.
const HIDDEN: [(u32, u32); 21] = [
    (0x00, 0x1f),
    (0x7f, 0xa0),
    (0xad, 0xad),
    (0x34f, 0x34f),
    (0x61c, 0x61c),
    (0x115f, 0x1160),
    (0x1680, 0x1680),
    (0x17b4, 0x17b5),
    (0x180b, 0x180f),
    (0x2000, 0x200f),
    (0x2028, 0x202f),
    (0x205f, 0x206f),
    (0x2800, 0x2800),
    (0x3164, 0x3164),
    (0xfe00, 0xfe0f),
    (0xfeff, 0xfeff),
    (0xffa0, 0xffa0),
    (0xfff0, 0xfffb),
    (0x1bca0, 0x1bca3),
    (0x1d173, 0x1d17a),
    (0xe0000, 0xe0fff),
];

/// Last moment of the year 9999, in Unix milliseconds.
const LAST_MS: i64 = 253_402_300_799_999;

fn hidden(c: char) -> bool {
    let code = u32::from(c);
    HIDDEN
        .iter()
        .any(|(from, to)| (*from..=*to).contains(&code))
}

fn entity(c: char) -> Option<&'static str> {
    Some(match c {
        '&' => "&amp;",
        '<' => "&lt;",
        '>' => "&gt;",
        '"' => "&quot;",
        '\'' => "&#39;",
        _ => return None,
    })
}

fn push(out: &mut String, c: char, block: bool) {
    if let Some(entity) = entity(c) {
        out.push_str(entity);
    } else if !hidden(c) || (block && matches!(c, '\n' | '\t')) {
        out.push(c);
    } else {
        let _ = write!(out, "<b class=\"x\">U+{:04X}</b>", u32::from(c));
    }
}

/// A one-line field as HTML.
pub fn line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        push(&mut out, c, false);
    }
    out
}

/// A one-line field where no mark-up can stand, as in the title.
pub fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match entity(c) {
            Some(entity) => out.push_str(entity),
            None if hidden(c) => {
                let _ = write!(out, "\\u{{{:x}}}", u32::from(c));
            }
            None => out.push(c),
        }
    }
    out
}

/// Guest output as HTML: its characters, with newlines and tabs, and each byte
/// that belongs to none by its number.
fn bytes(out: &mut String, data: &[u8]) {
    for chunk in data.utf8_chunks() {
        for c in chunk.valid().chars() {
            push(out, c, true);
        }
        for byte in chunk.invalid() {
            let _ = write!(out, "<b class=\"x\">0x{byte:02X}</b>");
        }
    }
}

/// Guest output as HTML, at most `head` bytes of its beginning and `tail` of
/// its end; and how many bytes between them are left out, grouped, or nothing.
pub fn excerpt(data: &[u8], head: usize, tail: usize) -> (String, String) {
    let mut out = String::new();
    let omitted = data.len().saturating_sub(head + tail);
    if omitted == 0 {
        bytes(&mut out, data);
        return (out, String::new());
    }
    let (first, rest) = data.split_at(head);
    let omitted_text = grouped(omitted);
    bytes(&mut out, first);
    let _ = write!(out, "\n<b class=\"x\">… {omitted_text} bytes …</b>\n");
    bytes(&mut out, rest.get(omitted..).unwrap_or_default());
    (out, omitted_text)
}

/// A number with its thousands set apart.
pub fn grouped(value: impl ToString) -> String {
    let digits = value.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A number with its thousands set apart; nothing for zero.
pub fn or_nothing(value: u64) -> String {
    if value == 0 {
        String::new()
    } else {
        grouped(value)
    }
}

/// Milliseconds as seconds.
pub fn millis(value: i64) -> String {
    if value < 0 {
        return format!("{value} ms");
    }
    format!("{}.{:03} s", grouped(value / 1000), value % 1000)
}

/// Microseconds as milliseconds, or as seconds from one second on.
pub fn micros(value: u64) -> String {
    if value < 1_000_000 {
        return format!("{}.{:03} ms", value / 1000, value % 1000);
    }
    millis(i64::try_from(value / 1000).unwrap_or(i64::MAX))
}

/// Unix milliseconds as a time in UTC, for years 1970 to 9999.
pub fn moment(unix_ms: i64) -> String {
    if !(0..=LAST_MS).contains(&unix_ms) {
        return format!("{unix_ms} ms after 1970");
    }
    let (seconds, ms) = (unix_ms / 1000, unix_ms % 1000);
    let (year, month, day) = date(seconds / 86_400);
    let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02} {hour:02}:{minute:02}:{second:02}.{ms:03} UTC")
}

/// The Gregorian date of a day counted from 1970-01-01. Years begin in March
/// here, so that a leap day is a year's last.
fn date(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day_of_month = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (
        year + era * 400 + i64::from(month <= 2),
        month,
        day_of_month,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_acts_or_hides_is_named() {
        assert_eq!(line("a\u{202e}cod.js"), "a<b class=\"x\">U+202E</b>cod.js");
        assert_eq!(line("<img src=x>&'\""), "&lt;img src=x&gt;&amp;&#39;&quot;");
        assert_eq!(plain("\u{200b}\n<"), "\\u{200b}\\u{a}&lt;");
        assert_eq!(line("\u{e0041}é漢"), "<b class=\"x\">U+E0041</b>é漢");
        for (from, to) in HIDDEN {
            for code in [from, to] {
                let c = char::from_u32(code).unwrap_or('\0');
                assert!(line(&c.to_string()).contains("U+"), "U+{code:04X}");
            }
        }
        assert!(HIDDEN.is_sorted());
    }

    #[test]
    fn output_keeps_its_lines_and_names_bytes_that_are_no_text() {
        let (text, omitted) = excerpt(b"ok\n\tx\r\xff\xc3(\xed\xa0\x80", 64, 64);
        let named = |byte: &str| format!("<b class=\"x\">0x{byte}</b>");
        let wanted = format!(
            "ok\n\tx<b class=\"x\">U+000D</b>{}{}({}{}{}",
            named("FF"),
            named("C3"),
            named("ED"),
            named("A0"),
            named("80")
        );
        assert_eq!((text.as_str(), omitted.as_str()), (wanted.as_str(), ""));
        let (cut, omitted) = excerpt(&[b'a'; 2000], 3, 2);
        assert_eq!(cut, "aaa\n<b class=\"x\">… 1,995 bytes …</b>\naa");
        assert_eq!(omitted, "1,995");
    }

    #[test]
    fn times_and_numbers() {
        assert_eq!(moment(1_792_314_010_900), "2026-10-18 09:00:10.900 UTC");
        assert_eq!(moment(951_782_400_000), "2000-02-29 00:00:00.000 UTC");
        assert_eq!(moment(LAST_MS), "9999-12-31 23:59:59.999 UTC");
        assert_eq!(moment(-1), "-1 ms after 1970");
        assert_eq!(grouped(1_234_567), "1,234,567");
        assert_eq!(grouped(123), "123");
        assert_eq!(millis(1_234_007), "1,234.007 s");
        assert_eq!(micros(812), "0.812 ms");
        assert_eq!(micros(2_345_678), "2.345 s");
    }
}
