//! Everything a person's terminal and a script see of `plimsoll-attest`.
//!
//! One crate for what all subcommands share, so that an exit code, an error block or an escaped
//! field means the same whichever command printed it:
//!
//! * [`exit`]: the exit codes, one table that help, manual pages and tests read;
//! * [`args`] and [`values`]: arguments in both spellings (`-name`, `--name`), checked against the
//!   command's own `clap` definition, and the value types flags take;
//! * [`failure`]: the error of every command, as a block for people and an object for scripts;
//! * [`escape`]: how foreign text is shown without letting it steer a terminal;
//! * [`output`] and [`json`]: standard output and error, broken pipes, `--quiet`, colour, `--json`;
//! * [`progress`]: a progress line that never reaches a file or a script;
//! * [`signals`], [`cleanup`] and [`fault`]: interruption, temporary files, panics;
//! * [`files`]: reading inputs and writing outputs with the same refusals everywhere;
//! * [`help`] and [`pages`]: help sections, completions and manual pages.
//!
//! The trust rule of the crate: text from outside is data. Failures, notes, warnings and progress
//! take raw values and escape them here, once. Only [`Console::print`] takes finished lines, whose
//! foreign fields the caller has passed through [`escape`]; only [`Console::product`] writes bytes
//! as they are.
#![forbid(unsafe_code)]

pub mod args;
pub mod class;
pub mod cleanup;
pub mod escape;
pub mod exit;
pub mod failure;
pub mod fault;
pub mod files;
pub mod help;
pub mod json;
mod layout;
pub mod output;
pub mod pages;
pub mod progress;
pub mod signals;
pub mod values;

/// The program's name as it stands before every message.
pub const PROGRAM: &str = "plimsoll-attest";

pub use class::Class;
pub use exit::ExitCode;
pub use failure::{Failure, Ran};
pub use json::JsonObject;
pub use output::{Closed, Console, Errors, Options, Stop, Stream};
