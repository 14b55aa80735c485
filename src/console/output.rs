//! Standard output and standard error of a command.
//!
//! Standard output carries the result and nothing else; errors, warnings, notes and progress go to
//! standard error. With `--json` standard output is one object and a newline. What a closed pipe
//! means depends on what the output is for, so each command states its [`Stream`].

mod conclude;
mod deliver;
mod options;

use std::io::{self, BufWriter, IsTerminal as _, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::{ProgressBar, ProgressDrawTarget};

pub(crate) use conclude::settle_debt;
pub use conclude::{Version, report};
pub use options::{Color, Options, Stream, shared_flags};

use crate::PROGRAM;
use crate::class::Class;
use crate::escape;
use crate::exit::ExitCode;
use crate::failure::Failure;
use crate::json::JsonObject;
use crate::layout;
use crate::progress::{DELAY, Measure, Progress};

/// Styles for words that carry a verdict. Text printed with them is stripped where there is no
/// colour; a word is never told apart by its colour alone.
pub mod style {
    use anstyle::{AnsiColor, Style};

    /// A good verdict.
    pub const GOOD: Style = AnsiColor::Green.on_default().bold();
    /// A refusal.
    pub const BAD: Style = AnsiColor::Red.on_default().bold();
    /// A warning.
    pub const WARN: Style = AnsiColor::Yellow.on_default().bold();
    /// A heading.
    pub const HEAD: Style = Style::new().bold();
}

/// Standard output takes no more: the reader has gone, or a write failed. A text command stops; a
/// verdict command never sees it.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
#[error("standard output takes no more")]
pub struct Closed;

/// Why a command ended early.
#[derive(Debug)]
pub enum Stop {
    /// Its output is closed; what that means is the console's to say.
    Closed,
    /// It failed.
    Failed(Failure),
}

impl From<Closed> for Stop {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// The failures of a command, as the JSON object names them.
#[derive(Clone, Copy, Debug)]
pub enum Errors<'a> {
    /// None.
    None,
    /// The member `error`.
    One(&'a Failure),
    /// The member `errors`, for commands with several inputs; absent when empty.
    Many(&'a [Failure]),
}

impl<'a> Errors<'a> {
    fn as_slice(self) -> &'a [Failure] {
        match self {
            Self::None => &[],
            Self::One(failure) => std::slice::from_ref(failure),
            Self::Many(failures) => failures,
        }
    }
}

/// What the later lines of a note or warning begin with.
const LATER: &str = "    ";

/// The two streams of one command. Shared by reference between threads and tasks.
pub struct Console {
    options: Options,
    out_color: bool,
    err_color: bool,
    out_is_terminal: bool,
    progress_allowed: bool,
    width: usize,
    state: Mutex<State>,
}

struct State {
    out: Box<dyn Write + Send>,
    err: Box<dyn Write + Send>,
    /// The first write error on standard output.
    fault: Option<io::Error>,
    bar: Option<ProgressBar>,
    /// What to do when what was printed did not arrive.
    if_lost: Option<String>,
}

impl Console {
    /// The console of this process.
    #[must_use]
    pub fn new(options: Options) -> Self {
        let (out, err) = (io::stdout(), io::stderr());
        let (out_terminal, err_terminal) = (out.is_terminal(), err.is_terminal());
        let width = if err_terminal {
            terminal_width()
        } else {
            layout::WIDTH
        };
        let out = BufWriter::with_capacity(64 * 1024, out);
        let console = Self::with_streams(
            options,
            Box::new(out),
            Box::new(err),
            (out_terminal, err_terminal),
        );
        conclude::owe_object(&console.options);
        Self { width, ..console }
    }

    /// A console over other streams, for tests; `terminals` says which of output and error counts
    /// as a terminal.
    #[must_use]
    pub fn with_streams(
        options: Options,
        out: Box<dyn Write + Send>,
        err: Box<dyn Write + Send>,
        terminals: (bool, bool),
    ) -> Self {
        Self {
            out_color: options.colors(terminals.0),
            err_color: options.colors(terminals.1),
            out_is_terminal: terminals.0,
            progress_allowed: options.shows_progress(terminals.1),
            width: layout::WIDTH,
            state: Mutex::new(State {
                out,
                err,
                fault: None,
                bar: None,
                if_lost: None,
            }),
            options,
        }
    }

    /// Sets what to do when standard output cannot be written, for a command
    /// that must not be run a second time just to see its output. Raw text.
    pub fn if_output_is_lost(&self, advice: impl Into<String>) {
        self.lock().if_lost = Some(advice.into());
    }

    /// What the command was told about its output.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Prints a command's own data: whole lines, foreign fields already escaped, styles allowed.
    /// Nothing with `--json`, where the object says it.
    ///
    /// # Errors
    /// [`Closed`] when standard output takes no more; never for a verdict command, whose work goes
    /// on unseen.
    pub fn print(&self, text: &str) -> Result<(), Closed> {
        if self.options.json {
            return Ok(());
        }
        if self.out_color {
            self.write_out(text.as_bytes())
        } else {
            self.write_out(anstream::adapter::strip_str(text).to_string().as_bytes())
        }
    }

    /// Prints the success line of a command whose product is a file; `--quiet` drops it.
    ///
    /// # Errors
    /// As [`Console::print`].
    pub fn success(&self, text: &str) -> Result<(), Closed> {
        if self.options.quiet {
            Ok(())
        } else {
            self.print(text)
        }
    }

    /// Writes a product's bytes as they are: the only way past the escaping rules.
    ///
    /// # Errors
    /// As [`Console::print`].
    pub fn product(&self, bytes: &[u8]) -> Result<(), Closed> {
        self.write_out(bytes)
    }

    /// Hands buffered output to the system now, for a reader that follows along.
    ///
    /// # Errors
    /// As [`Console::print`].
    pub fn flush(&self) -> Result<(), Closed> {
        self.with_out(|out| out.flush())
    }

    /// A note on standard error; `--quiet` drops it. `text` is raw and is escaped here.
    pub fn note(&self, text: &str) {
        if !self.options.quiet {
            self.write_err(&self.labelled("note", style::HEAD, text));
        }
    }

    /// Whole lines on standard error about a product that is itself on standard output, foreign
    /// fields already escaped; `--quiet` drops them.
    pub fn beside(&self, text: &str) {
        if !self.options.quiet {
            self.write_err(text);
        }
    }

    /// A warning on standard error. `text` is raw and is escaped here.
    pub fn warning(&self, text: &str) {
        self.write_err(&self.labelled("warning", style::WARN, text));
    }

    /// The block of a failure on standard error, at once; nothing with `--json`. For failures
    /// shown while work goes on, which then are not given to [`Console::finish`] again but with
    /// `--json`.
    pub fn show(&self, failure: &Failure) {
        if self.options.json {
            return;
        }
        let block = failure.to_block(self.width);
        let label = format!("error[{}]", failure.class());
        let styled = format!("{}{label}{:#}", style::BAD.render(), style::BAD);
        self.write_err(&block.replacen(&label, &styled, 1));
    }

    /// A progress line, or an invisible one where none may be shown. One at a time.
    #[must_use]
    pub fn progress(&self, measure: Measure) -> Progress {
        if !self.progress_allowed {
            return Progress::hidden();
        }
        let progress = Progress::start(measure, ProgressDrawTarget::stderr, DELAY);
        self.lock().bar = Some(progress.bar());
        progress
    }

    /// Ends a command that has one result or one failure.
    pub fn conclude(&self, result: Result<JsonObject, Stop>) -> ExitCode {
        match result {
            Ok(members) => self.finish(ExitCode::Ok, Errors::None, members),
            Err(Stop::Closed) => self.finish(ExitCode::Ok, Errors::None, JsonObject::new()),
            Err(Stop::Failed(failure)) => self.finish(
                failure.exit_code(),
                Errors::One(&failure),
                JsonObject::new(),
            ),
        }
    }

    /// Ends a command: shows its failures, or prints the object with `--json`, and gives the exit
    /// code of the process, which a failed write may have made worse. Call it once, last.
    #[must_use = "the exit code is the command's verdict"]
    pub fn finish(&self, code: ExitCode, errors: Errors<'_>, members: JsonObject) -> ExitCode {
        if let Some(bar) = self.lock().bar.take() {
            bar.finish_and_clear();
        }
        if self.options.json {
            if members.is_broken() {
                let fault = crate::fault::internal("result object");
                let line = self.object(ExitCode::Internal, Errors::One(&fault), JsonObject::new());
                let _ = self.write_out(line.as_bytes());
                return self.settle(ExitCode::Internal, true);
            }
            let line = self.object(code, errors, members);
            let _ = self.write_out(line.as_bytes());
        } else {
            // What was found comes before why it ended, also when both go to one file.
            let _ = self.flush();
            for failure in errors.as_slice() {
                self.show(failure);
            }
        }
        self.settle(code, !errors.as_slice().is_empty())
    }

    fn object(&self, code: ExitCode, errors: Errors<'_>, members: JsonObject) -> String {
        conclude::object(&self.options.format(), code, errors, members)
    }

    /// Flushes, and turns what happened to standard output into the exit code.
    fn settle(&self, code: ExitCode, refused: bool) -> ExitCode {
        let _ = self.flush();
        conclude::object_given();
        let Some(fault) = self.lock().fault.take() else {
            return code;
        };
        let pipe = fault.kind() == io::ErrorKind::BrokenPipe;
        match self.options.stream {
            Stream::Verdict | Stream::Delivery if pipe => code,
            Stream::Text if pipe && !refused => ExitCode::Ok,
            Stream::Text if pipe => code,
            _ => {
                let reason = crate::files::plain_words(&fault);
                let told = self.lock().if_lost.take();
                let failure = Failure::new(
                    Class::Io,
                    format!("standard output could not be written: {reason}"),
                    told.unwrap_or_else(|| {
                        "What was printed is not complete. Run the command again with an output \
                         that takes all of it."
                            .to_owned()
                    }),
                )
                .exit(ExitCode::Refused);
                self.write_err(&failure.to_block(self.width));
                code.combine(ExitCode::Refused)
            }
        }
    }

    fn labelled(&self, label: &str, style: anstyle::Style, text: &str) -> String {
        let text = format!("{PROGRAM}: {label}: {}", escape::line(text));
        let lines = layout::wrap(&text, self.width.saturating_sub(LATER.len()));
        let styled = format!("{}{label}:{style:#}", style.render());
        lines
            .join(&format!("\n{LATER}"))
            .replacen(&format!("{label}:"), &styled, 1)
            + "\n"
    }

    fn write_out(&self, bytes: &[u8]) -> Result<(), Closed> {
        let at_once = self.out_is_terminal;
        self.with_out(|out| {
            out.write_all(bytes)?;
            if at_once { out.flush() } else { Ok(()) }
        })
    }

    fn with_out(&self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Closed> {
        let mut state = self.lock();
        let State {
            out, fault, bar, ..
        } = &mut *state;
        if fault.is_none() {
            *fault = aside(bar.as_ref(), || write(&mut **out)).err();
        }
        let seen = fault.is_some() && self.options.stream != Stream::Verdict;
        if seen { Err(Closed) } else { Ok(()) }
    }

    fn write_err(&self, text: &str) {
        let text = if self.err_color {
            text.to_owned()
        } else {
            anstream::adapter::strip_str(text).to_string()
        };
        let mut state = self.lock();
        let State { err, bar, .. } = &mut *state;
        // A broken standard error is ignored: there is nowhere left to say so.
        let _ = aside(bar.as_ref(), || err.write_all(text.as_bytes()));
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Writers are used for whole calls only, so a panic elsewhere leaves them usable.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes with the progress line taken away meanwhile.
fn aside<T>(bar: Option<&ProgressBar>, write: impl FnOnce() -> T) -> T {
    match bar {
        Some(bar) if !bar.is_finished() => bar.suspend(write),
        _ => write(),
    }
}

#[cfg(unix)]
fn terminal_width() -> usize {
    let columns = rustix::termios::tcgetwinsize(io::stderr()).map_or(0, |size| size.ws_col);
    // Zero stands for unknown; below 40 columns wrapping helps nobody.
    if columns == 0 {
        layout::WIDTH
    } else {
        usize::from(columns).clamp(40, layout::WIDTH)
    }
}

#[cfg(not(unix))]
fn terminal_width() -> usize {
    layout::WIDTH
}

#[cfg(test)]
mod tests;
