//! Being interrupted: clean up once, end at once when asked twice, and end by the signal itself.
//!
//! A shell tells "ended by SIGINT" from "ended with a code": loops stop and `make` removes its
//! targets only for the former. So after cleaning up, the process ends by the same signal, with
//! the default action.
//!
//! How it works: one thread waits for SIGINT and SIGTERM. On the first it calls the callback set
//! with [`Interrupts::on_first`], which should make the command stop (cancel a token, close a
//! session); the command then returns and [`Interrupts::end`] ends the process by the signal. When
//! no callback is set there is nothing to wait for, and the thread removes temporary files and ends
//! the process itself. The second signal always does that. No code runs inside a signal handler.
//!
//! SIGPIPE needs nothing: the runtime ignores it at start, and writes report a closed pipe.
//!
//! Commands with their own shutdown (`daemon`, the protocol servers) do not install this.

use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use crate::cleanup;
use crate::exit::ExitCode;

/// A signal that asks the process to end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Signal {
    /// SIGINT, a person's Ctrl-C.
    Interrupt,
    /// SIGTERM, a supervisor's request.
    Terminate,
}

impl fmt::Display for Signal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
        })
    }
}

type Callback = Box<dyn FnOnce(Signal) + Send>;

#[derive(Default)]
struct State {
    first: Option<Signal>,
    callback: Option<Callback>,
}

/// The process's interruption state. Clones share it.
#[derive(Clone, Default)]
pub struct Interrupts(Arc<Mutex<State>>);

/// What the waiting thread does about a signal.
#[derive(Debug, Eq, PartialEq)]
enum Action {
    Wait,
    End,
}

impl Interrupts {
    /// Begins to listen. Until a callback is set, the first signal ends the process.
    ///
    /// # Errors
    /// When the system refuses to hand over the signals.
    pub fn install() -> io::Result<Self> {
        let interrupts = Self::default();
        listen(interrupts.clone())?;
        Ok(interrupts)
    }

    /// Sets what the first signal does instead of ending the process; called at most once, on the
    /// waiting thread. It must not block. When the signal has come already it is called now.
    pub fn on_first(&self, callback: impl FnOnce(Signal) + Send + 'static) {
        let mut state = self.lock();
        match state.first {
            Some(signal) => {
                drop(state);
                callback(signal);
            }
            None => state.callback = Some(Box::new(callback)),
        }
    }

    /// The signal that came, if one did.
    #[must_use]
    pub fn pending(&self) -> Option<Signal> {
        self.lock().first
    }

    /// Ends the process by the signal that came; without one gives the code back. Call it last,
    /// after output is written and children are ended.
    pub fn end(&self, code: ExitCode) -> ExitCode {
        if let Some(signal) = self.pending() {
            end_by(signal);
        }
        code
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a signal, calls the callback on the first, and says what is left to do.
    fn note(&self, signal: Signal) -> Action {
        let mut state = self.lock();
        if state.first.is_some() {
            return Action::End;
        }
        state.first = Some(signal);
        let callback = state.callback.take();
        drop(state);
        match callback {
            Some(callback) => {
                callback(signal);
                Action::Wait
            }
            None => Action::End,
        }
    }
}

impl fmt::Debug for Interrupts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interrupts")
            .field("first", &self.pending())
            .finish_non_exhaustive()
    }
}

#[cfg(unix)]
fn listen(interrupts: Interrupts) -> io::Result<()> {
    use signal_hook::consts::{SIGINT, SIGTERM};

    let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || {
            for number in signals.forever() {
                let signal = if number == SIGINT {
                    Signal::Interrupt
                } else {
                    Signal::Terminate
                };
                if interrupts.note(signal) == Action::End {
                    end_by(signal);
                }
            }
        })?;
    Ok(())
}

/// Makes a write past the process's file size limit (`ulimit -f`) fail like one on a full disk. By
/// default the system would end the process there, with a file half written and nothing said.
pub(crate) fn survive_size_limit() {
    // With any handler the write reports the limit; where none can be set, the default stays.
    #[cfg(unix)]
    let _ = signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default());
}

/// Elsewhere the system's own handling of Ctrl-C stays.
#[cfg(not(unix))]
fn listen(_interrupts: Interrupts) -> io::Result<()> {
    Ok(())
}

/// Removes temporary files and ends the process as if the signal had not been handled.
fn end_by(signal: Signal) {
    cleanup::remove_all_and_hold();
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let number = match signal {
            Signal::Interrupt => SIGINT,
            Signal::Terminate => SIGTERM,
        };
        let _ = signal_hook::low_level::emulate_default_handler(number);
    }
    // Only when the system did not end the process: the codes a shell shows for these signals.
    std::process::exit(match signal {
        Signal::Interrupt => 130,
        Signal::Terminate => 143,
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn the_first_signal_calls_back_and_the_second_ends() {
        let interrupts = Interrupts::default();
        let calls = Arc::new(AtomicUsize::new(0));
        let seen = Arc::clone(&calls);
        interrupts.on_first(move |signal| {
            assert_eq!(signal, Signal::Interrupt);
            seen.fetch_add(1, Ordering::SeqCst);
        });
        assert_eq!(interrupts.pending(), None);
        assert_eq!(interrupts.note(Signal::Interrupt), Action::Wait);
        assert_eq!(interrupts.pending(), Some(Signal::Interrupt));
        assert_eq!(interrupts.note(Signal::Terminate), Action::End);
        assert_eq!(
            interrupts.pending(),
            Some(Signal::Interrupt),
            "the first one is the cause"
        );
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[test]
    fn without_a_callback_the_first_signal_ends() {
        assert_eq!(Interrupts::default().note(Signal::Terminate), Action::End);
        assert_eq!(
            Interrupts::default().end(ExitCode::Negative),
            ExitCode::Negative
        );
    }

    #[test]
    fn a_late_callback_still_hears_of_the_signal() {
        let interrupts = Interrupts::default();
        interrupts.note(Signal::Terminate);
        let (sender, receiver) = std::sync::mpsc::channel();
        interrupts.on_first(move |signal| sender.send(signal).unwrap());
        assert_eq!(receiver.try_recv(), Ok(Signal::Terminate));
    }
}
