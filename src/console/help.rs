//! Help: the sections every command has, and its synopsis.

use std::fmt::Write as _;

use clap::Command;

use crate::exit::ExitCode;
use crate::layout;

/// Heading of the exit codes, also read by the manual pages.
pub(crate) const EXIT_CODES: &str = "Exit codes";
/// Heading of the environment variables.
pub(crate) const ENVIRONMENT: &str = "Environment";
/// Heading of the examples.
pub(crate) const EXAMPLES: &str = "Examples";

/// What stands below the flags in a command's help and in its manual page.
#[derive(Clone, Copy, Debug, Default)]
pub struct Sections {
    /// The codes that apply, each with what it means for this command; an empty text stands for
    /// the code's general meaning.
    pub exit_codes: &'static [(ExitCode, &'static str)],
    /// Variables the command reads, with their meaning.
    pub environment: &'static [(&'static str, &'static str)],
    /// Command lines without the program's name, each with what it does. At least two.
    pub examples: &'static [(&'static str, &'static str)],
}

/// Adds the sections to a command.
#[must_use]
pub fn with_sections(command: Command, sections: &Sections) -> Command {
    let mut text = String::new();
    let codes: Vec<(String, &str)> = sections
        .exit_codes
        .iter()
        .map(|&(code, meaning)| {
            (
                code.to_string(),
                if meaning.is_empty() {
                    code.meaning()
                } else {
                    meaning
                },
            )
        })
        .collect();
    push_table(&mut text, EXIT_CODES, &codes);
    let variables: Vec<(String, &str)> = sections
        .environment
        .iter()
        .map(|&(name, meaning)| (name.to_owned(), meaning))
        .collect();
    push_table(&mut text, ENVIRONMENT, &variables);
    if !sections.examples.is_empty() {
        push_heading(&mut text, EXAMPLES);
        for (line, meaning) in sections.examples {
            push_example(&mut text, &format!("plimsoll-attest {line}"));
            for line in layout::wrap(meaning, layout::WIDTH - 6) {
                let _ = writeln!(text, "      {line}");
            }
        }
    }
    command.after_help(text.trim_end().to_owned())
}

/// The synopsis shown after a usage error: `usage: …`, and for a group its commands.
#[must_use]
pub fn synopsis(command: &Command) -> String {
    let mut command = command.clone();
    let usage = command.render_usage().to_string();
    let mut out = usage.replacen("Usage:", "usage:", 1).trim_end().to_owned();
    out.push('\n');
    let shown: Vec<&Command> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .collect();
    if !shown.is_empty() {
        out.push_str("commands:\n");
    }
    let width = shown
        .iter()
        .map(|sub| sub.get_name().len())
        .max()
        .unwrap_or(0);
    for sub in shown {
        let about = sub.get_about().map(ToString::to_string).unwrap_or_default();
        let _ = writeln!(out, "  {:<width$}  {about}", sub.get_name());
    }
    out
}

/// The whole help, with styles.
pub(crate) fn render(command: &Command) -> String {
    command
        .clone()
        .term_width(layout::WIDTH)
        .render_help()
        .ansi()
        .to_string()
}

/// An example that is too long goes on in the next line as a shell reads it, so that it can be
/// copied.
fn push_example(text: &mut String, line: &str) {
    const ON: &str = " \\";
    let lines = layout::wrap(line, layout::WIDTH - 4 - ON.len());
    for (index, line) in lines.iter().enumerate() {
        let indent = if index == 0 { 2 } else { 4 };
        let on = if index + 1 < lines.len() { ON } else { "" };
        let _ = writeln!(text, "{:indent$}{line}{on}", "");
    }
}

fn push_heading(text: &mut String, heading: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(heading);
    text.push_str(":\n");
}

fn push_table(text: &mut String, heading: &str, rows: &[(String, &str)]) {
    if rows.is_empty() {
        return;
    }
    push_heading(text, heading);
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, meaning) in rows {
        for (index, line) in layout::wrap(meaning, layout::WIDTH - width - 4)
            .iter()
            .enumerate()
        {
            let name = if index == 0 { name.as_str() } else { "" };
            let _ = writeln!(text, "  {name:<width$}  {line}");
        }
    }
}
