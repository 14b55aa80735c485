//! Completion scripts and manual pages, made from the same definitions as the help.

use std::fmt::Write as _;

use clap::Command;
use clap_complete::Shell;
use clap_mangen::roff::{Inline, Roff, bold, roman};

use crate::PROGRAM;
use crate::help::{ENVIRONMENT, EXAMPLES, EXIT_CODES};

/// Shells with a completion script, as `completions` names them.
pub const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// The completion script of a shell of [`SHELLS`]; `None` for another word.
#[must_use]
pub fn completions(root: &Command, shell: &str) -> Option<Vec<u8>> {
    let shell = match shell {
        "bash" => Shell::Bash,
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        "powershell" => Shell::PowerShell,
        "elvish" => Shell::Elvish,
        _ => return None,
    };
    let mut out = Vec::new();
    let mut root = root.clone().disable_help_subcommand(true);
    clap_complete::generate(shell, &mut root, PROGRAM, &mut out);
    if shell == Shell::Bash {
        out = same_labels(&out);
    }
    Some(out)
}

/// The generator writes a hyphen of the program's name in two ways, where it notes a command and
/// where it looks for it, so that no command's words would ever be offered. Here both are one.
fn same_labels(script: &[u8]) -> Vec<u8> {
    let looked_for = PROGRAM.replace('-', "__subcmd__");
    let noted = PROGRAM.replace('-', "__");
    String::from_utf8_lossy(script)
        .replace(&looked_for, &noted)
        .into_bytes()
}

/// A manual page.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Page {
    /// Its file name, such as `plimsoll-attest-run.1`.
    pub file: String,
    /// Its text in roff.
    pub text: Vec<u8>,
}

/// What stands in the header and footer of every page.
#[derive(Clone, Copy, Debug)]
pub struct PageInfo<'a> {
    /// The release's date, fixed so that builds are reproducible: `2026-10-18`.
    pub date: &'a str,
    /// The release's version.
    pub version: &'a str,
}

/// All pages: the program's, then one for each command in the order of their definition. Hidden
/// commands have none.
#[must_use]
pub fn manual(root: &Command, info: PageInfo<'_>) -> Vec<Page> {
    let mut root = root.clone().disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    push_pages(&root, PROGRAM, info, &mut pages);
    pages
}

/// The page of one command, named by its words (none for the program); `None` for an unknown one.
#[must_use]
pub fn manual_page(root: &Command, words: &[&str], info: PageInfo<'_>) -> Option<Page> {
    let file = std::iter::once(PROGRAM)
        .chain(words.iter().copied())
        .collect::<Vec<_>>()
        .join("-");
    manual(root, info)
        .into_iter()
        .find(|page| page.file == format!("{file}.1"))
}

fn push_pages(command: &Command, name: &str, info: PageInfo<'_>, pages: &mut Vec<Page>) {
    if let Ok(text) = page(command, name, info) {
        pages.push(Page {
            file: format!("{name}.1"),
            text,
        });
    }
    for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        push_pages(sub, &format!("{name}-{}", sub.get_name()), info, pages);
    }
}

fn page(command: &Command, name: &str, info: PageInfo<'_>) -> std::io::Result<Vec<u8>> {
    let extra = command
        .get_after_help()
        .map(ToString::to_string)
        .unwrap_or_default();
    // `Name` must be one word for the tools that index pages.
    let shown = command.clone().display_name(name.to_owned());
    let man = clap_mangen::Man::new(shown)
        .title(name)
        .section("1")
        .date(info.date)
        .source(format!("{PROGRAM} {}", info.version))
        .manual("User Commands");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    if command.get_arguments().any(|arg| !arg.is_hide_set()) {
        man.render_options_section(&mut out)?;
    }
    let mut roff = Roff::new();
    push_commands(&mut roff, command, name);
    push_sections(&mut roff, &extra);
    roff.to_writer(&mut out)?;
    Ok(out)
}

/// The commands of a group, each pointing to its own page.
fn push_commands(roff: &mut Roff, command: &Command, name: &str) {
    let subs: Vec<&Command> = command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set())
        .collect();
    if subs.is_empty() {
        return;
    }
    roff.control("SH", ["COMMANDS"]);
    for sub in subs {
        roff.control("TP", []);
        roff.text([bold(format!("{name}-{}", sub.get_name())), roman("(1)")]);
        roff.text([roman(
            sub.get_about().map(ToString::to_string).unwrap_or_default(),
        )]);
    }
}

/// The sections below the flags, from the text that the help shows. Their layout is fixed, so it
/// is kept as it is.
fn push_sections(roff: &mut Roff, extra: &str) {
    let mut open = false;
    let mut body = String::new();
    let flush = |roff: &mut Roff, body: &mut String| {
        let lines: Vec<Inline> = body
            .trim_end()
            .lines()
            .map(|line| roman(format!("{line}\n")))
            .collect();
        if !lines.is_empty() {
            roff.control("nf", []);
            roff.text(lines);
            roff.control("fi", []);
        }
        body.clear();
    };
    for line in extra.lines() {
        let heading = line.strip_suffix(':').and_then(|name| match name {
            EXIT_CODES => Some("EXIT STATUS"),
            ENVIRONMENT => Some("ENVIRONMENT"),
            EXAMPLES => Some("EXAMPLES"),
            _ => None,
        });
        match heading {
            Some(heading) => {
                flush(roff, &mut body);
                roff.control("SH", [heading]);
                open = true;
            }
            None if open => {
                let _ = writeln!(body, "{line}");
            }
            None if line.is_empty() => {}
            None => {
                roff.control("SH", ["NOTES"]);
                let _ = writeln!(body, "{line}");
                open = true;
            }
        }
    }
    flush(roff, &mut body);
}
