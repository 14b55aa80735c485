//! Showing foreign text without letting it act.
//!
//! Text from a bundle, a daemon, a guest, a repository or a file name may hold escape sequences,
//! bidirectional overrides, zero-width characters, newlines or workflow commands of a build
//! service. Shown raw it could repaint a verdict, hide a path or start a command. Here it becomes
//! plain characters, reversibly: [`unescape`] gives the bytes back, so nothing is hidden either.

use std::path::Path;
use std::sync::OnceLock;

/// Longest escaped form of one character (`\u{e007f}`), used to size buffers.
const LONGEST: usize = 9;

/// What follows cut text, with the count of bytes that were left out.
fn more(bytes: usize) -> String {
    format!("… ({bytes} more bytes)")
}

/// Escapes with the rules of the environment the program runs in.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Escaper {
    /// Also defuse workflow commands (`::` at a line's start, `##[` anywhere), which the runner of
    /// the build service would obey when it reads our output.
    pub github: bool,
}

impl Escaper {
    /// The escaper of this process: workflow commands are defused where `GITHUB_ACTIONS` is `true`.
    /// The variable is read once.
    #[must_use]
    pub fn from_env() -> Self {
        static FOUND: OnceLock<Escaper> = OnceLock::new();
        *FOUND.get_or_init(|| Self {
            github: std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true"),
        })
    }

    /// A one-line field in full: newline and tab become `\n` and `\t`.
    #[must_use]
    pub fn line(self, data: impl AsRef<[u8]>) -> String {
        self.run(data.as_ref(), Form::Line, usize::MAX).0
    }

    /// A one-line field of at most `max_chars` shown characters, cut at a character boundary and
    /// never inside an escape, followed by the count of bytes left out.
    #[must_use]
    pub fn line_cut(self, data: impl AsRef<[u8]>, max_chars: usize) -> String {
        let data = data.as_ref();
        let (mut text, used) = self.run(data, Form::Line, max_chars);
        if used < data.len() {
            text.push_str(&more(data.len() - used));
        }
        text
    }

    /// A block field: every line begins `| `, newline and tab stay, and a last line without its
    /// newline ends in `∎`. At most `max_bytes` of the data are shown, then the count left out.
    /// The result ends in a newline unless the data is empty, when it is empty.
    #[must_use]
    pub fn block(self, data: impl AsRef<[u8]>, max_bytes: usize) -> String {
        let data = data.as_ref();
        let shown = cut_at_char(data, max_bytes);
        let (escaped, _) = self.run(shown, Form::Block, usize::MAX);
        let mut out = String::with_capacity(escaped.len() + 8);
        for line in escaped.split_inclusive('\n') {
            out.push_str("| ");
            out.push_str(line);
        }
        let left_out = data.len() - shown.len();
        if left_out > 0 {
            if shown.is_empty() || shown.ends_with(b"\n") {
                out.push_str("| ");
            }
            out.push_str(&more(left_out));
            out.push('\n');
        } else if !shown.is_empty() && !shown.ends_with(b"\n") {
            out.push_str("∎\n");
        }
        out
    }

    /// Escapes until the data ends or the next piece would pass `max_chars`; gives the text and
    /// how many bytes of the data it stands for.
    fn run(self, data: &[u8], form: Form, max_chars: usize) -> (String, usize) {
        let mut out = String::with_capacity(data.len().min(1 << 16) + LONGEST);
        let (mut used, mut chars) = (0, 0);
        // Only white space since the line's start: the runner trims it before it looks for `::`.
        let mut at_start = true;
        for chunk in data.utf8_chunks() {
            for c in chunk.valid().chars() {
                let mut buffer = [0; 4];
                let rest = &data[used..];
                let command = self.github
                    && ((at_start && rest.starts_with(b"::")) || rest.starts_with(b"##["));
                let before = out.len();
                if command {
                    out.push('\\');
                }
                push_char(&mut out, c, form);
                let piece = out[before..].chars().count();
                if chars + piece > max_chars {
                    out.truncate(before);
                    return (out, used);
                }
                chars += piece;
                used += c.encode_utf8(&mut buffer).len();
                at_start = match form {
                    // A wrapped field may begin an output line at any of its spaces.
                    Form::Line => c.is_whitespace() || (at_start && c.is_control()),
                    Form::Block => c == '\n' || (at_start && c.is_whitespace()),
                };
            }
            for byte in chunk.invalid() {
                if chars + 4 > max_chars {
                    return (out, used);
                }
                out.push_str(&format!("\\x{byte:02x}"));
                chars += 4;
                used += 1;
                at_start = false;
            }
        }
        (out, used)
    }
}

/// [`Escaper::line`] with the rules of this process.
#[must_use]
pub fn line(data: impl AsRef<[u8]>) -> String {
    Escaper::from_env().line(data)
}

/// [`Escaper::line_cut`] with the rules of this process.
#[must_use]
pub fn line_cut(data: impl AsRef<[u8]>, max_chars: usize) -> String {
    Escaper::from_env().line_cut(data, max_chars)
}

/// [`Escaper::block`] with the rules of this process.
#[must_use]
pub fn block(data: impl AsRef<[u8]>, max_bytes: usize) -> String {
    Escaper::from_env().block(data, max_bytes)
}

/// A path as a one-line field, in full: people copy paths.
#[must_use]
pub fn path(path: &Path) -> String {
    line(path.as_os_str().as_encoded_bytes())
}

/// Whether a character is shown as `\u{…}`: controls, and characters that reorder, hide or join
/// text without being seen.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    matches!(c,
        '\u{0}'..='\u{1f}'
        | '\u{7f}'..='\u{9f}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}')
}

/// Gives back the bytes of an escaped one-line field; `None` when the text is not one (an unknown
/// or unfinished escape). Cut fields do not come back, since part of them is not there.
#[must_use]
pub fn unescape(text: &str) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let mut buffer = [0; 4];
        if c != '\\' {
            out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            continue;
        }
        match chars.next()? {
            '\\' => out.push(b'\\'),
            'n' => out.push(b'\n'),
            't' => out.push(b'\t'),
            ':' => out.push(b':'),
            '#' => out.push(b'#'),
            'x' => {
                let digits: String = chars.by_ref().take(2).collect();
                if digits.len() != 2 || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                out.push(u8::from_str_radix(&digits, 16).ok()?);
            }
            'u' => {
                if chars.next()? != '{' {
                    return None;
                }
                let digits: String = chars.by_ref().take_while(|&c| c != '}').collect();
                if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_hexdigit()) {
                    return None;
                }
                let c = char::from_u32(u32::from_str_radix(&digits, 16).ok()?)?;
                out.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes());
            }
            _ => return None,
        }
    }
    Some(out)
}

/// Where the text will stand.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Form {
    Line,
    Block,
}

fn push_char(out: &mut String, c: char, form: Form) {
    match c {
        '\\' => out.push_str("\\\\"),
        '\n' | '\t' if form == Form::Block => out.push(c),
        '\n' => out.push_str("\\n"),
        '\t' => out.push_str("\\t"),
        c if is_hidden(c) => out.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
        c => out.push(c),
    }
}

/// The longest prefix of at most `max` bytes that does not split a character.
fn cut_at_char(data: &[u8], max: usize) -> &[u8] {
    if data.len() <= max {
        return data;
    }
    let mut end = max;
    // A character has at most three continuation bytes; more of them are not text anyway.
    while end > 0 && max - end < 3 && data[end] & 0xc0 == 0x80 {
        end -= 1;
    }
    if data[end] & 0xc0 == 0x80 {
        end = max;
    }
    &data[..end]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const PLAIN: Escaper = Escaper { github: false };
    const GITHUB: Escaper = Escaper { github: true };

    #[test]
    fn what_could_act_is_shown_as_characters() {
        let hostile = "a\u{1b}]8;;http://x\u{7}\u{9b}1m\u{202e}\u{200b}\u{feff}\u{e0041}\r\n\tb\\";
        assert_eq!(
            PLAIN.line(hostile),
            "a\\u{1b}]8;;http://x\\u{7}\\u{9b}1m\\u{202e}\\u{200b}\\u{feff}\\u{e0041}\\u{d}\\n\\tb\\\\"
        );
        assert_eq!(PLAIN.line(b"\xff\xc3("), "\\xff\\xc3(");
        assert_eq!(
            PLAIN.line("é\u{e000}\u{378}"),
            "é\u{e000}\u{378}",
            "others are shown"
        );
    }

    #[test]
    fn every_listed_range_is_hidden_and_its_neighbours_are_not() {
        for (first, last) in [
            (0x0, 0x1f),
            (0x7f, 0x9f),
            (0x61c, 0x61c),
            (0x200b, 0x200f),
            (0x2028, 0x202e),
            (0x2060, 0x2069),
            (0xfeff, 0xfeff),
            (0xfff9, 0xfffb),
            (0xe0000, 0xe007f),
        ] {
            assert!((first..=last).all(|c| is_hidden(char::from_u32(c).unwrap())));
            assert!(
                first == 0 || !is_hidden(char::from_u32(first - 1).unwrap()),
                "{first:x}"
            );
            assert!(!is_hidden(char::from_u32(last + 1).unwrap()), "{last:x}");
        }
    }

    #[test]
    fn blocks_are_prefixed_and_show_a_missing_newline() {
        assert_eq!(PLAIN.block("42\n", 100), "| 42\n");
        assert_eq!(PLAIN.block("a\tb\n\nc", 100), "| a\tb\n| \n| c∎\n");
        assert_eq!(PLAIN.block("", 100), "");
        assert_eq!(PLAIN.block("::error::x\n", 100), "| ::error::x\n");
    }

    #[test]
    fn cuts_fall_between_characters_and_count_bytes() {
        assert_eq!(PLAIN.line_cut("aé\u{1b}b", 3), "aé… (2 more bytes)");
        assert_eq!(PLAIN.line_cut("abc", 3), "abc");
        assert_eq!(
            PLAIN.line_cut("x".repeat(10_000), 5),
            "xxxxx… (9995 more bytes)"
        );
        assert_eq!(PLAIN.block("éé", 3), "| é… (2 more bytes)\n");
        assert_eq!(PLAIN.block("a\nb\n", 2), "| a\n| … (2 more bytes)\n");
        assert_eq!(PLAIN.block("abc", 0), "| … (3 more bytes)\n");
        assert_eq!(
            PLAIN.block([0x80; 6], 4),
            "| \\x80\\x80\\x80\\x80… (2 more bytes)\n"
        );
    }

    #[test]
    fn workflow_commands_are_defused_where_a_runner_reads() {
        assert_eq!(GITHUB.line("::error::x"), "\\::error::x");
        assert_eq!(
            GITHUB.line("a ::error::x"),
            "a \\::error::x",
            "a wrap could begin there"
        );
        assert_eq!(GITHUB.line("a::b"), "a::b");
        assert_eq!(
            GITHUB.block("  ::set x\na ##[group]\n", 99),
            "|   \\::set x\n| a \\##[group]\n"
        );
        assert_eq!(PLAIN.line("::error::x ##[y]"), "::error::x ##[y]");
    }

    #[test]
    fn text_that_is_no_escaped_field_does_not_come_back() {
        for text in [
            "\\",
            "\\q",
            "\\x",
            "\\xg0",
            "\\x+1",
            "\\u",
            "\\u{",
            "\\u{}",
            "\\u{d800}",
            "\\u{+1}",
        ] {
            assert_eq!(unescape(text), None, "{text}");
        }
    }

    /// Bytes rich in what matters here.
    fn data() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            any::<char>().prop_map(|c| c.to_string().into_bytes()),
            any::<u8>().prop_map(|b| vec![b]),
            prop::sample::select(vec![
                "::", "##[", "\\", "\n", "\t", " ", "\u{202e}", "\\u{1b}"
            ])
            .prop_map(|s| s.as_bytes().to_vec()),
        ];
        prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
    }

    proptest! {
        #[test]
        fn lines_are_reversible_and_harmless(data in data(), github: bool) {
            let text = Escaper { github }.line(&data);
            prop_assert!(!text.contains(is_hidden));
            prop_assert!(!github || !(text.starts_with("::") || text.replace("\\##[", "").contains("##[")));
            prop_assert_eq!(unescape(&text), Some(data));
        }

        #[test]
        fn blocks_are_reversible_and_harmless(data in data(), github: bool) {
            let text = Escaper { github }.block(&data, usize::MAX);
            prop_assert!(text.lines().all(|line| line.starts_with("| ")));
            prop_assert!(!text.replace(['\n', '\t'], "").contains(is_hidden));
            let mut inner: String = text.split_inclusive('\n').map(|line| &line[2..]).collect();
            if !data.is_empty() && !data.ends_with(b"\n") {
                prop_assert!(inner.ends_with("∎\n"));
                inner.truncate(inner.len() - "∎\n".len());
            }
            prop_assert_eq!(unescape(&inner), Some(data));
        }

        #[test]
        fn cut_lines_keep_to_their_length_and_account_for_every_byte(data in data(), max in 0_usize..30) {
            let text = PLAIN.line_cut(&data, max);
            let whole = PLAIN.line(&data);
            if text != whole {
                let (head, tail) = text.rsplit_once("… (").unwrap();
                prop_assert!(head.chars().count() <= max && whole.starts_with(head));
                let left: usize = tail.trim_end_matches(" more bytes)").parse().unwrap();
                prop_assert_eq!(unescape(head).unwrap().len() + left, data.len());
            }
        }
    }
}
