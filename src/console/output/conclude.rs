//! The last words of the program: the result object, and the answers that come before any command
//! runs (help, version, usage errors).

use std::io::Write as _;
use std::sync::{Mutex, PoisonError};

use super::{Console, Errors, Options, Stream};
use crate::args::ParseOutcome;
use crate::exit::ExitCode;
use crate::json::JsonObject;

/// The format of an object that was promised and not yet printed, so that even a fault of this
/// program gives a script its one object.
static OWED: Mutex<Option<String>> = Mutex::new(None);

pub(super) fn owe_object(options: &Options) {
    if options.json {
        *OWED.lock().unwrap_or_else(PoisonError::into_inner) = Some(options.format());
    }
}

pub(super) fn object_given() {
    OWED.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Prints the object of a fault of this program when one is still owed.
pub(crate) fn settle_debt() {
    let owed = OWED.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let Some(format) = owed {
        let failure = crate::fault::internal("panic");
        let line = object(
            &format,
            ExitCode::Internal,
            Errors::One(&failure),
            JsonObject::new(),
        );
        let _ = std::io::stdout().write_all(line.as_bytes());
        let _ = std::io::stdout().flush();
    }
}

/// The object with its common members first, and a newline.
pub(super) fn object(
    format: &str,
    code: ExitCode,
    errors: Errors<'_>,
    members: JsonObject,
) -> String {
    let mut object = JsonObject::new()
        .with("format", format)
        .with("ok", &code.is_ok())
        .with("exit", &code.code());
    match errors {
        Errors::One(failure) => object.push("error", failure),
        Errors::Many(failures) if !failures.is_empty() => object.push("errors", failures),
        Errors::None | Errors::Many(_) => {}
    }
    object.extend(members);
    object.to_line() + "\n"
}

/// What `--version` prints.
#[derive(Clone, Debug, Default)]
pub struct Version {
    /// The line, without a newline.
    pub line: String,
    /// The members of the object with `--json`.
    pub members: JsonObject,
}

/// Answers an outcome of [`crate::args::parse`] on the process's own streams and gives the exit
/// code.
#[must_use]
pub fn report(outcome: ParseOutcome, version: Version) -> ExitCode {
    answer(outcome, version, Console::new)
}

/// [`report`] with a console made from the options that fit the outcome.
pub(super) fn answer(
    outcome: ParseOutcome,
    version: Version,
    console: impl FnOnce(Options) -> Console,
) -> ExitCode {
    match outcome {
        ParseOutcome::Help { text } => {
            let console = console(Options::new("help", Stream::Text));
            let _ = console.print(&text);
            console.finish(ExitCode::Ok, Errors::None, JsonObject::new())
        }
        ParseOutcome::Version { json } => {
            let console = console(Options {
                json,
                ..Options::new("version", Stream::Text)
            });
            let _ = console.print(&(version.line + "\n"));
            console.finish(ExitCode::Ok, Errors::None, version.members)
        }
        ParseOutcome::Usage(error) => {
            let options = Options::new(error.command.join(" "), Stream::Verdict);
            let console = console(Options {
                json: error.json,
                ..options
            });
            let failure = error.failure();
            console.finish(
                failure.exit_code(),
                Errors::One(&failure),
                JsonObject::new(),
            )
        }
    }
}
