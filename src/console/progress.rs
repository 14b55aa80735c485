//! A progress line for a person who waits, and for nobody else.
//!
//! It is shown on a terminal only, after half a second of work, and erased before anything else is
//! printed; [`crate::Console::progress`] decides whether there is one at all.

use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::escape;

/// Work shorter than this shows nothing.
pub(crate) const DELAY: Duration = Duration::from_millis(500);

/// How often a line that waits is drawn again.
const TICK: Duration = Duration::from_millis(100);

/// Longest shown phase.
const PHASE_CHARS: usize = 60;

/// What is counted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Measure {
    /// Bytes, of a total when it is known.
    Bytes(Option<u64>),
    /// Lines, of a total when it is known.
    Lines(Option<u64>),
    /// Nothing: only the phase is shown.
    Phase,
}

impl Measure {
    fn template(self) -> &'static str {
        match self {
            Self::Bytes(Some(_)) => {
                "{spinner} {msg} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left"
            }
            Self::Bytes(None) => "{spinner} {msg} {bytes}, {bytes_per_sec}",
            Self::Lines(Some(_)) => "{spinner} {msg} {pos} of {len} lines, {per_sec}, {eta} left",
            Self::Lines(None) => "{spinner} {msg} {pos} lines, {per_sec}",
            Self::Phase => "{spinner} {msg} {elapsed}",
        }
    }

    fn total(self) -> Option<u64> {
        match self {
            Self::Bytes(total) | Self::Lines(total) => total,
            Self::Phase => None,
        }
    }
}

/// A running progress line, or nothing where none may be shown. Dropping it erases the line.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    // Dropping the sender wakes the waiting thread, which then ends.
    _waiter: Option<Sender<()>>,
}

impl Progress {
    /// A line that is never shown.
    pub(crate) fn hidden() -> Self {
        Self {
            bar: ProgressBar::hidden(),
            _waiter: None,
        }
    }

    /// A line that appears on `target` once `delay` has passed.
    pub(crate) fn start(
        measure: Measure,
        target: impl FnOnce() -> ProgressDrawTarget + Send + 'static,
        delay: Duration,
    ) -> Self {
        let bar = ProgressBar::with_draw_target(measure.total(), ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(measure.template()) {
            bar.set_style(style.tick_chars("|/-\\ "));
        }
        let (sender, receiver) = channel::<()>();
        let shown = bar.clone();
        let thread = std::thread::Builder::new()
            .name("progress".into())
            .spawn(move || {
                let waited = receiver.recv_timeout(delay);
                if waited == Err(RecvTimeoutError::Timeout) && !shown.is_finished() {
                    shown.set_draw_target(target());
                    shown.tick();
                    shown.enable_steady_tick(TICK);
                }
            });
        // Without a thread there is no line; the work goes on.
        Self {
            bar,
            _waiter: thread.is_ok().then_some(sender),
        }
    }

    /// Names what is being done. Foreign text in it is escaped.
    pub fn phase(&self, text: &str) {
        self.bar.set_message(escape::line_cut(text, PHASE_CHARS));
    }

    /// Counts `units` more done.
    pub fn advance(&self, units: u64) {
        self.bar.inc(units);
    }

    /// The line's handle, by which a console erases it before it prints.
    pub(crate) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use indicatif::InMemoryTerm;
    use std::sync::mpsc::Receiver;

    fn started(delay: Duration) -> (Progress, InMemoryTerm, Receiver<()>) {
        let term = InMemoryTerm::new(5, 100);
        let target = term.clone();
        let (sender, shown) = channel();
        let progress = Progress::start(
            Measure::Lines(Some(10)),
            move || {
                let _ = sender.send(());
                ProgressDrawTarget::term_like(Box::new(target))
            },
            delay,
        );
        (progress, term, shown)
    }

    #[test]
    fn short_work_shows_nothing() {
        let (progress, term, shown) = started(Duration::from_secs(3600));
        progress.phase("reading");
        progress.advance(3);
        drop(progress);
        // The sender is gone without having been used: the thread ended without drawing.
        assert!(shown.recv().is_err());
        assert_eq!(term.contents(), "");
    }

    #[test]
    fn long_work_is_shown_escaped_and_erased() {
        let (progress, term, shown) = started(Duration::ZERO);
        progress.phase("reading \u{1b}[31m");
        progress.advance(3);
        shown.recv().unwrap();
        // The target is handed over just after the message; draw until it is in use.
        let expected = "reading \\u{1b}[31m 3 of 10 lines";
        let deadline = std::time::Instant::now() + Duration::from_secs(60);
        while !term.contents().contains(expected) {
            assert!(std::time::Instant::now() < deadline, "{}", term.contents());
            progress.bar.force_draw();
            std::thread::yield_now();
        }
        drop(progress);
        assert_eq!(term.contents(), "");
    }

    #[test]
    fn templates_are_valid() {
        for measure in [
            Measure::Bytes(Some(1)),
            Measure::Bytes(None),
            Measure::Lines(Some(1)),
            Measure::Lines(None),
            Measure::Phase,
        ] {
            assert!(ProgressStyle::with_template(measure.template()).is_ok());
        }
    }
}
