//! The log: one line an event, keys in exactly the order written.
//!
//! Log parsers match on message and key order, which is why the line writer is
//! written out here. Nothing secret is ever handed to it: no token, no session
//! ID, no code, no output. Values may still hold text of a peer, so every
//! control and direction character is escaped in both formats.

use std::{
    fmt::Write as _,
    io::{self, Write},
    sync::{Arc, Mutex, OnceLock, PoisonError},
    time::{Instant, SystemTime},
};

use crate::{
    log_queue::{Queue, Written},
    time::rfc3339,
};

/// The format of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object.
    Json,
    /// `key=value` words.
    Text,
}

/// How much a line matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The ordinary course.
    Info,
    /// Something an operator should look at.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    const fn name(self) -> &'static str {
        match self {
            Level::Info => "INFO",
            Level::Warn => "WARN",
            Level::Error => "ERROR",
        }
    }
}

/// Where lines go. Cheap to clone; lines of several threads never mix.
#[derive(Clone)]
pub struct Log {
    format: Format,
    sink: Arc<Mutex<dyn Write + Send>>,
    /// Between the lines and the sink, once it was started.
    queue: Arc<OnceLock<Arc<Queue>>>,
    written: Arc<Written>,
    clock: fn() -> SystemTime,
}

impl Log {
    /// A log that writes to `sink`.
    pub fn new(format: Format, sink: impl Write + Send + 'static) -> Self {
        Log {
            format,
            sink: Arc::new(Mutex::new(sink)),
            queue: Arc::default(),
            written: Arc::default(),
            clock: SystemTime::now,
        }
    }

    /// Lets a thread of its own write from now on: no line waits for the log's
    /// reader any more. [`Log::close`] waits for the rest.
    ///
    /// # Errors
    /// The system's, when there is no thread to be had.
    pub(crate) fn detach(&self) -> io::Result<()> {
        let queue = Queue::start(Arc::clone(&self.sink), Arc::clone(&self.written))?;
        let _ = self.queue.set(queue);
        Ok(())
    }

    /// Waits until a run's line has room; false when the daemon stops before.
    pub(crate) async fn room(&self) -> bool {
        match self.queue.get() {
            Some(queue) => queue.room().await,
            None => true,
        }
    }

    /// No wait for room outlasts this.
    pub(crate) fn stop_waits(&self) {
        if let Some(queue) = self.queue.get() {
            queue.stop_waits();
        }
    }

    /// Blocks until every line is written, at most until `until`.
    pub(crate) fn close(&self, until: Instant) {
        if let Some(queue) = self.queue.get() {
            queue.close(until, &self.written);
        }
    }

    /// Lines that could not be written.
    pub(crate) fn lost(&self) -> u64 {
        self.written.lost()
    }

    /// Why the next run's line may be lost or late; `None` when nothing speaks
    /// for that.
    pub(crate) fn trouble(&self) -> Option<&'static str> {
        if self.written.is_failing() {
            return Some("the log cannot be written");
        }
        let full = self.queue.get().is_some_and(|queue| !queue.has_room());
        full.then_some("the log is not being read")
    }

    /// The same log with another clock, so that tests can compare whole lines.
    #[must_use]
    pub fn with_clock(mut self, clock: fn() -> SystemTime) -> Self {
        self.clock = clock;
        self
    }

    /// Begins an INFO line.
    pub fn info(&self, message: &str) -> Line<'_> {
        self.line(Level::Info, message)
    }

    /// Begins a WARN line.
    pub fn warn(&self, message: &str) -> Line<'_> {
        self.line(Level::Warn, message)
    }

    /// Begins an ERROR line.
    pub fn error(&self, message: &str) -> Line<'_> {
        self.line(Level::Error, message)
    }

    fn line(&self, level: Level, message: &str) -> Line<'_> {
        let mut line = Line {
            log: self,
            text: String::with_capacity(256),
        };
        if self.format == Format::Json {
            line.text.push('{');
        }
        line.text("time", &rfc3339((self.clock)()))
            .text("level", level.name())
            .text("msg", message)
    }
}

/// A line being written; [`Line::end`] puts it out.
#[must_use = "a line without its end is never written"]
pub struct Line<'a> {
    log: &'a Log,
    text: String,
}

impl Line<'_> {
    /// Adds text.
    pub fn text(mut self, key: &str, value: &str) -> Self {
        self.key(key);
        match self.log.format {
            Format::Json => json_string(&mut self.text, value),
            Format::Text if is_bare(value) => self.text.push_str(value),
            Format::Text => json_string(&mut self.text, value),
        }
        self
    }

    /// Adds an integer.
    pub fn int(mut self, key: &str, value: impl Into<i128>) -> Self {
        self.key(key);
        let _ = write!(self.text, "{}", value.into());
        self
    }

    /// Adds a number with a fraction; not finite becomes `null`.
    pub fn float(mut self, key: &str, value: f64) -> Self {
        self.key(key);
        let _ = if value.is_finite() {
            write!(self.text, "{value}")
        } else {
            write!(self.text, "null")
        };
        self
    }

    /// Adds a truth value.
    pub fn bool(mut self, key: &str, value: bool) -> Self {
        self.key(key);
        self.text.push_str(if value { "true" } else { "false" });
        self
    }

    /// Lets `add` put further attributes here, in its order.
    pub fn with(self, add: impl FnOnce(Self) -> Self) -> Self {
        add(self)
    }

    /// Writes the line. A log that cannot be written must not stop a run, so a
    /// failure is only counted.
    pub fn end(self) {
        self.put(false);
    }

    /// As [`Line::end`] for a line of a run, which is never left out however
    /// far behind the log's reader is.
    pub(crate) fn end_of_run(self) {
        self.put(true);
    }

    fn put(mut self, kept: bool) {
        if self.log.format == Format::Json {
            self.text.push('}');
        }
        self.text.push('\n');
        let log = self.log;
        if let Some(queue) = log.queue.get() {
            return queue.push(self.text.into_bytes(), kept, &log.written);
        }
        let mut sink = log.sink.lock().unwrap_or_else(PoisonError::into_inner);
        log.written.line(&mut *sink, self.text.as_bytes());
    }

    /// Keys are words of this program, so they need no escape.
    fn key(&mut self, key: &str) {
        match self.log.format {
            Format::Json => {
                if self.text.len() > 1 {
                    self.text.push(',');
                }
                let _ = write!(self.text, "\"{key}\":");
            }
            Format::Text => {
                if !self.text.is_empty() {
                    self.text.push(' ');
                }
                let _ = write!(self.text, "{key}=");
            }
        }
    }
}

fn is_bare(value: &str) -> bool {
    !value.is_empty()
        && value
            .bytes()
            .all(|b| b.is_ascii_graphic() && !matches!(b, b'"' | b'=' | b'\\'))
}

/// A JSON string in which nothing can move a cursor, end a line or turn the
/// direction of text.
fn json_string(out: &mut String, value: &str) {
    out.push('"');
    for c in value.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            c if c.is_control() || is_direction(c) => {
                let _ = write!(out, "\\u{:04x}", c as u32);
            }
            c => out.push(c),
        }
    }
    out.push('"');
}

fn is_direction(c: char) -> bool {
    matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
pub(crate) mod test_support {
    //! A log that is kept in memory.

    use super::*;
    use std::time::Duration;

    /// What a test log has written.
    #[derive(Clone, Default)]
    pub(crate) struct Kept(Arc<Mutex<Vec<u8>>>);

    impl Kept {
        pub(crate) fn text(&self) -> String {
            String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
        }

        pub(crate) fn lines(&self) -> Vec<String> {
            self.text().lines().map(str::to_owned).collect()
        }
    }

    impl Write for Kept {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    pub(crate) fn log(format: Format) -> (Log, Kept) {
        let kept = Kept::default();
        let log = Log::new(format, kept.clone())
            .with_clock(|| SystemTime::UNIX_EPOCH + Duration::from_millis(1_766_000_000_123));
        (log, kept)
    }
}

#[cfg(test)]
mod tests {
    use super::{test_support::log, *};

    #[test]
    fn json_lines() {
        let (log, kept) = log(Format::Json);
        log.warn("a \"b\"")
            .text("k", "x\ny\u{1b}[0m\u{202e}\u{85}é")
            .int("n", -3)
            .float("f", 1.5)
            .bool("b", true)
            .end();
        let line = kept.text();
        assert_eq!(
            line,
            concat!(
                r#"{"time":"2025-12-17T19:33:20.123+00:00","level":"WARN","msg":"a \"b\"","#,
                r#""k":"x\ny\u001b[0m\u202e\u0085é","n":-3,"f":1.5,"b":true}"#,
                "\n"
            )
        );
        assert!(serde_json::from_str::<serde_json::Value>(&line).is_ok());
    }

    #[test]
    fn text_lines() {
        let (log, kept) = log(Format::Text);
        log.info("two words")
            .text("a", "1=2")
            .text("b", "plain")
            .text("c", "")
            .end();
        assert_eq!(
            kept.text(),
            "time=2025-12-17T19:33:20.123+00:00 level=INFO msg=\"two words\" a=\"1=2\" b=plain c=\"\"\n"
        );
    }

    proptest::proptest! {
        #[test]
        fn any_value_is_one_line_that_reads_back(value in proptest::prelude::any::<String>()) {
            let (log, kept) = log(Format::Json);
            log.info("m").text("v", &value).end();
            let text = kept.text();
            proptest::prop_assert_eq!(text.lines().count(), 1);
            let back: serde_json::Value = serde_json::from_str(&text).unwrap();
            proptest::prop_assert_eq!(back["v"].as_str().unwrap(), value);
        }
    }
}
