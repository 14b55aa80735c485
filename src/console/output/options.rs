//! What a command is told about its output, and the flags that tell it.

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches};

use crate::PROGRAM;

/// What standard output is for, which decides what a reader that goes away means.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Stream {
    /// A verdict: the work is finished and the exit code is the verdict's.
    Verdict,
    /// Text for a person: the command stops quietly, exit 0.
    Text,
    /// The product itself: not delivered is a failure, exit 1.
    Product,
    /// Something that cannot be given again, such as a new token: the command is told and says
    /// itself what was changed.
    Delivery,
}

/// The wish of `--color`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Color {
    /// On a terminal, unless the environment asks for none.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// How a command prints.
#[derive(Clone, Debug)]
pub struct Options {
    /// The command's words without the program's name, such as `pr-receipt verify`; empty when
    /// unknown.
    pub command: String,
    /// What its standard output is for.
    pub stream: Stream,
    /// One object instead of text.
    pub json: bool,
    /// No notes, no progress, no success lines.
    pub quiet: bool,
    /// No progress.
    pub no_progress: bool,
    /// Colour.
    pub color: Color,
}

impl Options {
    /// The defaults for a command.
    #[must_use]
    pub fn new(command: impl Into<String>, stream: Stream) -> Self {
        Self {
            command: command.into(),
            stream,
            json: false,
            quiet: false,
            no_progress: false,
            color: Color::Auto,
        }
    }

    /// What [`shared_flags`] were given; a flag the command does not have counts as absent.
    #[must_use]
    pub fn from_matches(command: impl Into<String>, stream: Stream, matches: &ArgMatches) -> Self {
        let given = |id| {
            matches
                .try_get_one::<bool>(id)
                .ok()
                .flatten()
                .copied()
                .unwrap_or(false)
        };
        let color = matches
            .try_get_one::<String>("color")
            .ok()
            .flatten()
            .map(String::as_str);
        Self {
            json: given("json"),
            quiet: given("quiet"),
            no_progress: given("no-progress"),
            color: match color {
                Some("always") => Color::Always,
                Some("never") => Color::Never,
                _ => Color::Auto,
            },
            ..Self::new(command, stream)
        }
    }

    /// The member `format` of the command's objects; a command that is not known is `usage`.
    #[must_use]
    pub fn format(&self) -> String {
        let name = if self.command.is_empty() {
            "usage"
        } else {
            &self.command
        };
        format!("{PROGRAM}/{}/v1", name.replace(' ', "-"))
    }

    pub(super) fn colors(&self, terminal: bool) -> bool {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
        self.colors_in(
            terminal,
            set("NO_COLOR").is_some(),
            set("TERM").is_some_and(|t| t == "dumb"),
        )
    }

    /// `--color` beats the environment; an object has no colour.
    pub(super) fn colors_in(&self, terminal: bool, no_color: bool, dumb: bool) -> bool {
        match self.color {
            _ if self.json => false,
            Color::Always => true,
            Color::Never => false,
            Color::Auto => terminal && !no_color && !dumb,
        }
    }

    pub(super) fn shows_progress(&self, terminal: bool) -> bool {
        terminal && !self.json && !self.quiet && !self.no_progress
    }
}

/// The flags all commands share. Commands without `--json` leave out the one with that ID.
#[must_use]
pub fn shared_flags() -> [Arg; 4] {
    [
        Arg::new("json")
            .long("json")
            .action(ArgAction::SetTrue)
            .help("Print one JSON object on standard output instead of text"),
        Arg::new("color")
            .long("color")
            .value_name("WHEN")
            .value_parser(PossibleValuesParser::new(["auto", "always", "never"]))
            .default_value("auto")
            .help("Colour; auto is on a terminal without NO_COLOR"),
        Arg::new("quiet")
            .short('q')
            .long("quiet")
            .action(ArgAction::SetTrue)
            .help("No notes, progress or success lines; errors and warnings stay"),
        Arg::new("no-progress")
            .long("no-progress")
            .action(ArgAction::SetTrue)
            .help("No progress line"),
    ]
}
