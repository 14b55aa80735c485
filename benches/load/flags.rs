//! What is asked of the bench.

use std::time::Duration;

use crate::measure::Outcome;

/// How much load.
pub struct Flags {
    /// Callers at once.
    pub callers: usize,
    /// How long they call.
    pub time: Duration,
    /// Runs the daemon takes at once.
    pub max_concurrent: usize,
    /// The figures mean nothing.
    pub quick: bool,
}

impl Flags {
    /// `--callers N`, `--seconds N`, `--max-concurrent N`, `--quick`; what else
    /// cargo passes is for the usual harness.
    pub fn of(mut arguments: impl Iterator<Item = String>) -> Outcome<Flags> {
        let mut flags = Flags {
            callers: 1000,
            time: Duration::from_secs(60),
            // Room for every caller; with less, what is over it is shed.
            max_concurrent: 1024,
            quick: true,
        };
        let mut asked_quick = false;
        while let Some(argument) = arguments.next() {
            let mut number = || -> Outcome<u64> {
                let value = arguments.next().ok_or("a number is missing")?;
                Ok(value.parse()?)
            };
            match argument.as_str() {
                // Run as a test, it is not optimised.
                "--bench" => flags.quick = false,
                "--quick" => asked_quick = true,
                "--callers" => flags.callers = usize::try_from(number()?)?.max(1),
                "--seconds" => flags.time = Duration::from_secs(number()?.max(1)),
                "--max-concurrent" => flags.max_concurrent = usize::try_from(number()?)?,
                _ => {}
            }
        }
        flags.quick |= asked_quick;
        if flags.quick {
            flags.callers = flags.callers.min(100);
            flags.time = flags.time.min(Duration::from_secs(2));
        }
        Ok(flags)
    }
}
