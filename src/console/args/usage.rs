//! What is wrong with a command line, as values; and the sentences for it.

use std::error::Error as _;
use std::ffi::OsStr;
use std::fmt;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::class::Class;
use crate::failure::Failure;

/// Longest part of an argument kept for a message; an argument may be a megabyte.
const SHOWN_CHARS: usize = 120;

/// A command line that is not valid.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct UsageError {
    /// What is wrong.
    pub kind: UsageKind,
    /// The command it was given to, as words without the program's name; empty when unknown.
    pub command: Vec<String>,
    /// Whether `--json` is among the arguments, so that the answer is an object.
    pub json: bool,
    /// The synopsis of that command.
    pub synopsis: String,
}

/// The fault of a command line. Flags are named without dashes; given text is cut.
#[derive(Clone, Debug, Eq, PartialEq)]
#[non_exhaustive]
pub enum UsageKind {
    /// No command, or a group without subcommand.
    NoCommand,
    /// A command that does not exist.
    UnknownCommand {
        /// The word given.
        given: String,
        /// The nearest command, when one is near.
        near: Option<String>,
    },
    /// A flag the command does not have.
    UnknownFlag {
        /// The name given.
        given: String,
        /// The nearest flag, when one is near.
        near: Option<String>,
    },
    /// A flag whose value is missing.
    MissingValue {
        /// The flag.
        flag: String,
        /// The flag that stands where the value should.
        next: Option<String>,
    },
    /// A flag with an empty value.
    EmptyValue {
        /// The flag.
        flag: String,
    },
    /// A boolean flag with a value other than `true`, `false`, `1`, `0`.
    NotBoolean {
        /// The flag.
        flag: String,
        /// The value given.
        given: String,
    },
    /// A flag given twice that may be given once.
    Repeated {
        /// The flag.
        flag: String,
    },
    /// An argument where none is taken.
    ExtraArgument {
        /// The argument.
        given: String,
    },
    /// Required flags or arguments that are absent, as they stand in the synopsis.
    Missing {
        /// Their names.
        names: Vec<String>,
    },
    /// A value that is not text.
    NotText {
        /// The flag or argument, when known.
        name: Option<String>,
    },
    /// A value outside a fixed list of words.
    NotAWord {
        /// The flag or argument.
        name: String,
        /// The value given.
        given: String,
        /// The words it takes.
        words: Vec<String>,
    },
    /// A value of another form than the flag takes.
    InvalidValue {
        /// The flag or argument.
        name: String,
        /// The value given.
        given: String,
        /// Why, as a clause that follows the value.
        fault: String,
    },
    /// Two flags that exclude each other.
    Conflict {
        /// One.
        name: String,
        /// The other.
        with: String,
    },
    /// A rule of one command about its own flags.
    Rule {
        /// The fact.
        fact: String,
        /// What to do.
        advice: String,
    },
}

impl UsageError {
    /// The failure it is shown as: class `usage`, exit 2, with the synopsis.
    #[must_use]
    pub fn failure(&self) -> Failure {
        Failure::new(
            Class::Usage,
            self.kind.to_string(),
            self.kind.advice(&self.command),
        )
        .synopsis(self.synopsis.clone())
    }
}

impl fmt::Display for UsageError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.kind.fmt(f)
    }
}

impl std::error::Error for UsageError {}

impl fmt::Display for UsageKind {
    /// The fact.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoCommand => f.write_str("no command was given"),
            Self::UnknownCommand { given, .. } => write!(f, "unknown command {given}"),
            Self::UnknownFlag { given, .. } => write!(f, "unknown flag {given}"),
            Self::MissingValue { flag, next: None } => write!(f, "--{flag} has no value"),
            Self::MissingValue {
                flag,
                next: Some(next),
            } => {
                write!(f, "--{flag} has no value: {next} is a flag of this command")
            }
            Self::EmptyValue { flag } => write!(f, "--{flag} has an empty value"),
            Self::NotBoolean { flag, given } => {
                write!(
                    f,
                    "--{flag} takes no value but true, false, 1 or 0; {given} was given"
                )
            }
            Self::Repeated { flag } => write!(f, "--{flag} is given more than once"),
            Self::ExtraArgument { given } => write!(f, "unexpected argument {given}"),
            Self::Missing { names } => write!(f, "{} must be given", names.join(" and ")),
            Self::NotText { name: Some(name) } => {
                write!(f, "the value of {name} is not UTF-8 text")
            }
            Self::NotText { name: None } => f.write_str("a value is not UTF-8 text"),
            Self::NotAWord { name, given, .. } => write!(f, "{name} does not take {given}"),
            Self::InvalidValue { name, given, fault } => {
                write!(f, "the value {given} of {name} {fault}")
            }
            Self::Conflict { name, with } => write!(f, "{name} cannot be given with {with}"),
            Self::Rule { fact, .. } => f.write_str(fact),
        }
    }
}

impl UsageKind {
    /// What to do, for a command named by its words.
    #[must_use]
    pub fn advice(&self, command: &[String]) -> String {
        let see = std::iter::once("plimsoll-attest help")
            .chain(command.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ");
        match self {
            Self::NoCommand => format!("Name one of the commands below; {see} says more."),
            Self::UnknownCommand {
                near: Some(near), ..
            } => format!("Did you mean {near}?"),
            Self::UnknownFlag {
                near: Some(near), ..
            } => format!("Did you mean --{near}?"),
            Self::UnknownCommand { .. } => format!("{see} lists the commands."),
            Self::UnknownFlag { given, .. } if given.chars().count() == 1 => format!(
                "One-letter flags are -h, -V, -q and -o, each alone and with its value as the next \
                 argument; {see} lists the flags."
            ),
            Self::UnknownFlag { .. } => format!("{see} lists the flags."),
            Self::MissingValue { flag, next } => {
                let value = next.as_deref().unwrap_or("VALUE");
                format!(
                    "Write the value behind the flag; one that looks like a flag is written --{flag}={value}."
                )
            }
            Self::EmptyValue { flag } => {
                format!(
                    "Give --{flag} a value or leave it out; an unset shell variable gives an empty one."
                )
            }
            Self::NotBoolean { flag, .. } => format!("Write --{flag} alone, or leave it out."),
            Self::Repeated { flag } => {
                format!("Give --{flag} once; the last one does not win here.")
            }
            Self::ExtraArgument { .. } => format!("Leave it out; {see} shows the arguments."),
            Self::Missing { .. } => format!("Add what is missing; {see} explains each flag."),
            Self::NotText { .. } => "Give text in UTF-8; only paths may be other bytes.".to_owned(),
            Self::NotAWord { given, words, .. } => {
                let near = words
                    .iter()
                    .find(|word| strsim::damerau_levenshtein(given, word) <= 2);
                match near {
                    Some(near) => {
                        format!("Did you mean {near}? The words are {}.", words.join(", "))
                    }
                    None => format!("The words are {}.", words.join(", ")),
                }
            }
            Self::InvalidValue { .. } => {
                format!("Correct the value; {see} shows its form and bounds.")
            }
            Self::Conflict { .. } => "Give one of the two.".to_owned(),
            Self::Rule { advice, .. } => advice.clone(),
        }
    }
}

/// An argument as it is kept for messages: cut, and with `\u{fffd}` for what is no text.
pub(super) fn shown(arg: &OsStr) -> String {
    // Lossy conversion of the whole of a long argument would only be thrown away.
    let bytes = arg.as_encoded_bytes();
    let head = &bytes[..bytes.len().min(SHOWN_CHARS * 4)];
    let text = String::from_utf8_lossy(head);
    let cut: String = text.chars().take(SHOWN_CHARS).collect();
    if cut.len() < bytes.len() && (head.len() < bytes.len() || cut.len() < text.len()) {
        let left = bytes.len().saturating_sub(cut.len());
        return format!("{cut}… ({left} more bytes)");
    }
    cut
}

/// What `clap` found wrong with the normal form.
pub(super) fn from_clap(error: &clap::Error) -> UsageKind {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        Some(ContextValue::Strings(texts)) => texts.first().cloned(),
        _ => None,
    };
    let texts = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text.clone()],
        Some(ContextValue::Strings(texts)) => texts.clone(),
        _ => Vec::new(),
    };
    // `--max-age <D>` names the flag and its value; the flag is enough.
    let name = || text(ContextKind::InvalidArg).map(|arg| first_word(&arg));
    let given = || {
        shown(OsStr::new(
            &text(ContextKind::InvalidValue).unwrap_or_default(),
        ))
    };
    match error.kind() {
        ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::DisplayHelp => UsageKind::NoCommand,
        ErrorKind::MissingRequiredArgument => UsageKind::Missing {
            names: texts(ContextKind::InvalidArg),
        },
        ErrorKind::InvalidUtf8 => UsageKind::NotText { name: name() },
        ErrorKind::InvalidValue => UsageKind::NotAWord {
            name: name().unwrap_or_default(),
            given: given(),
            words: texts(ContextKind::ValidValue),
        },
        ErrorKind::ValueValidation => UsageKind::InvalidValue {
            name: name().unwrap_or_default(),
            given: given(),
            fault: error.source().map_or_else(
                || "is not valid".to_owned(),
                |source| shown(OsStr::new(&source.to_string())),
            ),
        },
        ErrorKind::ArgumentConflict => UsageKind::Conflict {
            name: name().unwrap_or_default(),
            with: texts(ContextKind::PriorArg)
                .iter()
                .map(|arg| first_word(arg))
                .collect::<Vec<_>>()
                .join(" or "),
        },
        ErrorKind::UnknownArgument | ErrorKind::TooManyValues => UsageKind::ExtraArgument {
            given: shown(OsStr::new(
                &text(ContextKind::InvalidArg).unwrap_or_default(),
            )),
        },
        kind => UsageKind::Rule {
            fact: kind
                .as_str()
                .unwrap_or("the command line is not valid")
                .to_owned(),
            advice: "See the help of this command.".to_owned(),
        },
    }
}

fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap_or(text).to_owned()
}
