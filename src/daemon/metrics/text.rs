//! The writer of the text format, version 0.0.4.

use std::fmt::{Display, Write as _};

use super::Family;

/// An exposition being written.
#[derive(Debug, Default)]
pub(super) struct Exposition {
    text: String,
}

/// The open family of an exposition.
pub(super) struct Open<'a> {
    text: &'a mut String,
    family: &'static Family,
}

impl Exposition {
    /// Opens a family; its samples follow. Names and help are words of this
    /// program and need no escape.
    pub(super) fn family(&mut self, family: &'static Family) -> Open<'_> {
        let Family {
            name, kind, help, ..
        } = family;
        let _ = write!(self.text, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
        Open {
            text: &mut self.text,
            family,
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Open<'_> {
    /// Writes one sample of a series, its labels in the family's order.
    pub(super) fn sample(&mut self, suffix: &str, labels: &[&str], value: impl Display) {
        let pairs = self
            .family
            .labels
            .iter()
            .copied()
            .zip(labels.iter().copied());
        self.line(suffix, pairs, value);
    }

    /// The same with the upper bound of a histogram's bucket behind the labels.
    pub(super) fn bucket(&mut self, labels: &[&str], bound: &str, count: u64) {
        let pairs = self
            .family
            .labels
            .iter()
            .copied()
            .zip(labels.iter().copied());
        self.line("_bucket", pairs.chain([("le", bound)]), count);
    }

    fn line<'l>(
        &mut self,
        suffix: &str,
        labels: impl Iterator<Item = (&'l str, &'l str)>,
        value: impl Display,
    ) {
        let _ = write!(self.text, "{}{suffix}", self.family.name);
        let mut before = '{';
        for (name, value) in labels {
            let _ = write!(self.text, "{before}{name}=\"");
            escape(self.text, value);
            self.text.push('"');
            before = ',';
        }
        if before == ',' {
            self.text.push('}');
        }
        let _ = writeln!(self.text, " {value}");
    }
}

/// A label's value: a quote or a line's end in it must not end it.
fn escape(out: &mut String, value: &str) {
    for c in value.chars() {
        match c {
            '\\' => out.push_str("\\\\"),
            '"' => out.push_str("\\\""),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
}
