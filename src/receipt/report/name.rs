//! Names of tests: joined, cleaned, cut and made unique.

use std::collections::{HashMap, HashSet};

/// Longest name, in bytes, before the mark that it was cut.
pub const MAX_NAME_BYTES: usize = 512;
/// Kept of a name while it is put together: enough that the cut is the same.
const MAX_RAW_BYTES: usize = 2048;
/// Between suites and name.
const SEPARATOR: &str = " > ";

/// Joins an outer and an inner name. What can no longer be seen is not kept,
/// so that a long suite name costs no memory for each of its tests.
#[must_use]
pub fn join(outer: &str, inner: &str) -> String {
    let mut name = String::with_capacity(outer.len().min(MAX_RAW_BYTES) + 64);
    name.push_str(cut(outer, MAX_RAW_BYTES));
    name.push_str(SEPARATOR);
    name.push_str(cut(inner, MAX_RAW_BYTES));
    let end = cut(&name, MAX_RAW_BYTES).len();
    name.truncate(end);
    name
}

/// The part of a text that fits, at a character boundary.
#[must_use]
pub fn cut(text: &str, most: usize) -> &str {
    if text.len() <= most {
        return text;
    }
    let end = (0..=most).rev().find(|at| text.is_char_boundary(*at));
    text.get(..end.unwrap_or(0)).unwrap_or_default()
}

/// A name fit for a statement: control and bidirectional-control characters
/// are replaced, and what is over [`MAX_NAME_BYTES`] is cut and marked.
#[must_use]
pub fn clean(name: &str) -> String {
    let plain: String = name
        .chars()
        .map(|c| if is_unsafe(c) { '\u{fffd}' } else { c })
        .collect();
    let kept = cut(&plain, MAX_NAME_BYTES);
    if kept.len() == plain.len() {
        plain
    } else {
        format!("{kept}…")
    }
}

fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}' | '\u{2029}'
        )
        || matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Gives a repeated name a number.
#[derive(Debug, Default)]
pub struct Unique {
    seen: HashSet<String>,
    next: HashMap<String, u64>,
}

impl Unique {
    /// The name, or the name with ` #2`, ` #3` and so on.
    pub fn name(&mut self, name: String) -> String {
        if self.seen.insert(name.clone()) {
            return name;
        }
        let number = self.next.entry(name.clone()).or_insert(2);
        loop {
            let numbered = format!("{name} #{number}");
            *number += 1;
            if self.seen.insert(numbered.clone()) {
                return numbered;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cleaned_and_cut() {
        assert_eq!(clean("a\u{202e}b\u{7}c"), "a\u{fffd}b\u{fffd}c");
        assert_eq!(clean(&"x".repeat(512)), "x".repeat(512));
        assert_eq!(clean(&"x".repeat(513)), "x".repeat(512) + "…");
        // Never inside a character.
        assert_eq!(clean(&"é".repeat(300)).len(), 512 + "…".len());
        assert_eq!(
            clean(&("x".to_owned() + &"é".repeat(300))).chars().last(),
            Some('…')
        );
    }

    #[test]
    fn long_parts_do_not_grow() {
        let mut name = "y".repeat(1 << 20);
        for _ in 0..32 {
            name = join(&"x".repeat(1 << 20), &name);
        }
        assert_eq!(name.len(), MAX_RAW_BYTES);
        assert_eq!(clean(&name), "x".repeat(512) + "…");
    }

    #[test]
    fn repeated_names_are_numbered_and_never_collide() {
        let mut unique = Unique::default();
        let mut name = |text: &str| unique.name(text.to_owned());
        assert_eq!(name("a"), "a");
        assert_eq!(name("a"), "a #2");
        assert_eq!(name("a #2"), "a #2 #2");
        assert_eq!(name("a"), "a #3");
    }
}
