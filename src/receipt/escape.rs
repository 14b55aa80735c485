//! Foreign text in Markdown: only ever inside a code span.

use crate::report::name::cut;

/// A code span that holds a text: its fence is longer than any inside, line
/// breaks are spaces, a table's bar is escaped, what is not seen is shown. So
/// no link, image, mention, tag or heading comes of it.
#[must_use]
pub fn code(text: &str) -> String {
    const MOST: usize = 300;
    let kept = cut(text, MOST);
    let mut inside = String::with_capacity(kept.len() + 8);
    for c in kept.chars() {
        match c {
            '\n' | '\r' | '\t' => inside.push(' '),
            // GitHub splits a table's row at a bar even inside a code span.
            '|' => inside.push_str("\\|"),
            c if is_hidden(c) => inside.push_str(&format!("\\u{{{:x}}}", u32::from(c))),
            c => inside.push(c),
        }
    }
    if kept.len() < text.len() {
        inside.push('…');
    }
    if inside.trim().is_empty() {
        // An empty code span is none.
        return "(empty)".to_owned();
    }
    let fence = "`".repeat(longest_run(&inside) + 1);
    let edge = |c: Option<char>| c.is_none_or(|c| c == '`' || c == ' ');
    let space = if edge(inside.chars().next()) || edge(inside.chars().next_back()) {
        " "
    } else {
        ""
    };
    format!("{fence}{space}{inside}{space}{fence}")
}

/// The longest run of backticks.
#[must_use]
pub fn longest_run(text: &str) -> usize {
    let (mut longest, mut run) = (0, 0);
    for c in text.chars() {
        run = if c == '`' { run + 1 } else { 0 };
        longest = longest.max(run);
    }
    longest
}

/// Characters that hide or reorder what is shown.
#[must_use]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{feff}' | '\u{2028}' | '\u{2029}'
        )
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}')
        || matches!(c, '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts() {
        assert_eq!(code("a"), "`a`");
        assert_eq!(code("`x`"), "`` `x` ``");
        assert_eq!(code("a``b"), "```a``b```");
        assert_eq!(code("a|b"), "`a\\|b`");
        assert_eq!(code("a\n# b"), "`a # b`");
        assert_eq!(code("a\u{202e}b"), "`a\\u{202e}b`");
        assert_eq!(code(" "), "(empty)");
        assert_eq!(code(""), "(empty)");
        assert_eq!(code("<img src=x onerror=1>"), "`<img src=x onerror=1>`");
        assert_eq!(code("\\"), "`\\`");
        assert!(code(&"x".repeat(5000)).len() < 320);
    }
}
