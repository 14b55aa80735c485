//! One pass over a file: each line is read, shown, and verified when a key was
//! given.

use std::io::{self, BufRead, BufReader, Seek, SeekFrom, Write};

use plimsoll_attestation::{
    Fault, Reason,
    bundle::{Report, Verification},
};
use plimsoll_console::{
    Class, Closed, Console, Failure, JsonObject,
    files::{Dash, Inputs, plain_words},
    output::Stop,
    progress::{Measure, Progress},
};
use tempfile::SpooledTempFile;

use super::{
    Form, detail, json,
    lines::{Found, Lines},
    seen::{Kind, Seen},
    text::Text,
};
use crate::{refusal, verify};

/// The first line when nothing vouches for what follows.
const NOT_VERIFIED: &str = "not verified: what follows is what the file says\n";
/// Text that waits for its verdict in memory; more of it waits in a file.
const MOST_IN_MEMORY: usize = 1 << 20;

/// How an inspection ended, after everything was shown.
pub struct End {
    pub failure: Option<Failure>,
    pub members: JsonObject,
}

/// Goes through the file.
///
/// # Errors
/// When the file cannot be read, or nobody reads the output.
pub fn inspected(console: &Console, form: Form) -> Result<End, Stop> {
    let input = Inputs::new(console).open(&form.file, Dash::Allowed)?;
    let mut pass = Pass {
        console,
        verdict: (!form.keys.is_empty()).then(|| Verdict {
            verification: Some(Verification::new(&form.keys)),
            refused: None,
            progress: console.progress(Measure::Bytes(input.size())),
            waiting: SpooledTempFile::new(MOST_IN_MEMORY),
        }),
        text: Text::new(form.line.is_some()),
        objects: Vec::new(),
        broken: None,
        checkpoint: None,
        shown: 0,
        form: &form,
    };
    if pass.verdict.is_none() {
        console.print(NOT_VERIFIED)?;
    }
    let mut lines = Lines::new(BufReader::with_capacity(1 << 16, input));
    while let Some((number, found)) = lines.next().map_err(|error| pass.unreadable(&error))? {
        pass.take(number, found)?;
        if pass.is_done(number) {
            break;
        }
    }
    pass.end()
}

struct Pass<'a> {
    console: &'a Console,
    form: &'a Form,
    verdict: Option<Verdict<'a>>,
    text: Text,
    objects: Vec<JsonObject>,
    /// How many lines could not be read; number and failure of the first.
    broken: Option<(u64, u64, Failure)>,
    /// The last line shown that says it is a checkpoint.
    checkpoint: Option<u64>,
    shown: u64,
}

/// A verification that goes along. What is shown waits until it is over, since
/// the verdict comes first.
struct Verdict<'a> {
    /// Gone after a refusal: no line after it is looked at.
    verification: Option<Verification<'a>>,
    refused: Option<Fault>,
    progress: Progress,
    waiting: SpooledTempFile,
}

impl Verdict<'_> {
    fn take(&mut self, found: Found<'_>) {
        let Some(verification) = &mut self.verification else {
            return;
        };
        let (taken, length) = match found {
            Found::Whole(bytes) => (verification.push(bytes, &mut ()), bytes.len() + 1),
            // Refused as any reader would refuse it, with its place.
            Found::Torn(bytes) | Found::TooLong(bytes) => {
                (verification.read(bytes, &mut ()), bytes.len())
            }
        };
        self.progress.advance(length as u64);
        if let Err(fault) = taken {
            self.refused = Some(fault);
            self.verification = None;
        }
    }

    fn finish(self) -> (Result<Report, Fault>, SpooledTempFile) {
        let report = match (self.verification, self.refused) {
            (Some(verification), None) => verification.finish().and_then(|report| {
                if report.records == 0 {
                    return Err(Fault::new(Reason::Empty));
                }
                Ok(report)
            }),
            (_, refused) => Err(refused.unwrap_or_else(|| Fault::new(Reason::Internal))),
        };
        (report, self.waiting)
    }
}

impl Pass<'_> {
    /// Whether no line after this one is needed.
    fn is_done(&self, number: u64) -> bool {
        self.verdict.is_none() && self.form.line == Some(number)
    }

    fn take(&mut self, number: u64, found: Found<'_>) -> Result<(), Stop> {
        if let Some(verdict) = &mut self.verdict {
            verdict.take(found);
        }
        if self.form.line.is_some_and(|line| line != number) {
            return Ok(());
        }
        self.shown += 1;
        let seen = Seen::read(found);
        if matches!(seen.kind, Kind::Checkpoint) {
            self.checkpoint = Some(number);
        }
        let failure = match &seen.kind {
            Kind::Broken(fault) => Some(self.broken_line(number, fault, found)),
            _ => None,
        };
        if self.console.options().json {
            let content = self.form.line.is_some();
            let object = json::object(number, &seen, failure.as_ref(), content);
            self.objects.push(object);
        } else {
            let text = self.text.of(number, &seen);
            self.show(&text)?;
            if let (Some(_), Kind::Call(call)) = (self.form.line, &seen.kind) {
                for block in detail::blocks(call, self.form.full) {
                    self.show(&block)?;
                }
            }
        }
        if let Some(failure) = failure {
            match &mut self.broken {
                Some((count, ..)) => *count += 1,
                None => self.broken = Some((1, number, failure)),
            }
        }
        Ok(())
    }

    fn broken_line(&self, number: u64, fault: &Fault, found: Found<'_>) -> Failure {
        let failure = match (found, self.checkpoint) {
            (Found::Torn(_), Some(line)) => refusal::with_cure(
                fault,
                format!(
                    "The file was cut or is still being written. Its last line that says it is a \
                     checkpoint is {line}; verify decides what holds up to there."
                ),
            ),
            (Found::Torn(_), None) => refusal::with_cure(
                fault,
                "The file was cut or is still being written. verify-entry checks single lines of \
                 such a file.",
            ),
            _ => refusal::failure(&self.form.file, fault, &[]),
        };
        failure.file(&self.form.file).line(number)
    }

    fn show(&mut self, text: &str) -> Result<(), Stop> {
        match &mut self.verdict {
            None => self.console.print(text)?,
            Some(verdict) => verdict
                .waiting
                .write_all(text.as_bytes())
                .map_err(|error| not_kept(&error))?,
        }
        Ok(())
    }

    fn end(mut self) -> Result<End, Stop> {
        let mut failure = None;
        let mut verified = false;
        if let Some(verdict) = self.verdict.take() {
            let (report, waiting) = verdict.finish();
            match report {
                Ok(report) => {
                    verified = true;
                    let line = verify::success_line(&report);
                    self.console.print(&format!("{line}\n"))?;
                }
                Err(fault) => {
                    let refused = refusal::of_calls(
                        &self.form.file,
                        &fault,
                        &self.form.keys,
                        "Nothing was verified that ran. Name the bundle that holds the calls.",
                    );
                    failure = Some(refused);
                    // With a refusal its exit code stands whoever reads on.
                    if let Err(Closed) = self.console.print(NOT_VERIFIED) {
                        return Ok(self.ended(failure, verified));
                    }
                }
            }
            if let Err(stop) = self.deliver(waiting) {
                return match (failure, stop) {
                    (Some(refused), Stop::Closed) => Ok(self.ended(Some(refused), verified)),
                    (_, stop) => Err(stop),
                };
            }
        }
        if self.shown == 0 {
            match self.form.line {
                Some(line) => failure = failure.or_else(|| Some(self.no_line(line))),
                None => self.console.print("the file has no lines\n")?,
            }
        }
        if failure.is_none() {
            failure = self.unread();
        }
        Ok(self.ended(failure, verified))
    }

    /// Prints what waited for the verdict.
    fn deliver(&self, mut waiting: SpooledTempFile) -> Result<(), Stop> {
        waiting
            .seek(SeekFrom::Start(0))
            .map_err(|error| not_kept(&error))?;
        let mut text = BufReader::new(waiting);
        let mut line = String::new();
        while text.read_line(&mut line).map_err(|e| not_kept(&e))? > 0 {
            self.console.print(&line)?;
            line.clear();
        }
        Ok(())
    }

    fn ended(&mut self, failure: Option<Failure>, verified: bool) -> End {
        let lines = std::mem::take(&mut self.objects);
        let members = JsonObject::new()
            .with("verified", &verified)
            .with("lines", &lines);
        End { failure, members }
    }

    fn no_line(&self, line: u64) -> Failure {
        Failure::new(
            Class::NoLine,
            "the file has fewer lines",
            "Name a line the file has.",
        )
        .reason("no_line")
        .file(&self.form.file)
        .line(line)
    }

    /// The failure for lines that could not be read.
    fn unread(&self) -> Option<Failure> {
        let (count, number, first) = self.broken.as_ref()?;
        let fact = if *count == 1 {
            format!("the line could not be read: {}", first.message())
        } else {
            format!(
                "the first of {count} lines that could not be read: {}",
                first.message()
            )
        };
        let failure = Failure::new(Class::Line, fact, first.advice());
        let failure = match first.reason_word() {
            Some(word) => failure.reason(word),
            None => failure,
        };
        Some(failure.file(&self.form.file).line(*number))
    }

    fn unreadable(&self, error: &io::Error) -> Failure {
        Failure::new(
            Class::Io,
            format!("cannot be read: {}", plain_words(error)),
            "Check the file and the disk it is on.",
        )
        .file(&self.form.file)
    }
}

/// What waits for its verdict may need a temporary file.
fn not_kept(error: &io::Error) -> Failure {
    Failure::new(
        Class::Io,
        format!(
            "what is to be shown after the verdict cannot be kept in a temporary file: {}",
            plain_words(error)
        ),
        "Make room for temporary files, or leave out --pub and use verify for the verdict.",
    )
}
