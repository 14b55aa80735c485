//! Wrapping at spaces for people's terminals.

/// Widest line of human output, in characters.
pub(crate) const WIDTH: usize = 100;

/// Breaks `text` at spaces into lines of at most `width` characters. A word that is longer stands
/// whole on its own line: a digest or a path that is broken cannot be copied. Runs of spaces stay,
/// since two values may differ in nothing else.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = Vec::new();
    let (mut line, mut used, mut words) = (String::new(), 0, 0);
    for word in text.split(' ') {
        let long = word.chars().count();
        if words > 0 && used + 1 + long > width {
            lines.push(std::mem::take(&mut line));
            (used, words) = (0, 0);
        }
        if words > 0 {
            line.push(' ');
            used += 1;
        }
        line.push_str(word);
        used += long;
        words += 1;
    }
    lines.push(line);
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_keep_to_the_width_and_words_stay_whole() {
        assert_eq!(wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(wrap("a 0123456789 b", 4), ["a", "0123456789", "b"]);
        assert_eq!(wrap("", 4), [""]);
        assert_eq!(wrap("a  b ", 9), ["a  b "], "runs of spaces stay");
        assert_eq!(wrap("ééé ééé", 7), ["ééé ééé"]);
    }
}
