//! Samples of one part, taken in turns with all others.

use std::{
    error::Error,
    time::{Duration, Instant},
};

/// What a bench step gives.
pub type Outcome<T> = Result<T, Box<dyn Error>>;

/// Samples taken of one part before the next part has its turn. Turns spread
/// what else the machine does over every part; a turn of one sample would
/// measure mostly caches that the other parts emptied.
const TURN: usize = 20;

/// One sample.
pub struct Sample {
    /// The whole time.
    pub time: Duration,
    /// What of it was writing and syncing.
    pub disk: Duration,
}

impl From<Duration> for Sample {
    fn from(time: Duration) -> Self {
        Sample {
            time,
            disk: Duration::ZERO,
        }
    }
}

/// One thing that is measured.
pub struct Part<'a> {
    /// Its place in the report.
    pub name: &'static str,
    step: Box<dyn FnMut() -> Outcome<Sample> + 'a>,
    samples: usize,
    taken: Vec<Sample>,
}

impl<'a> Part<'a> {
    /// A part measured `samples` times. `step` takes one sample and says how
    /// long it was, so that it can prepare and tidy outside of that time.
    pub fn new<T: Into<Sample>>(
        name: &'static str,
        samples: usize,
        mut step: impl FnMut() -> Outcome<T> + 'a,
    ) -> Self {
        Part {
            name,
            step: Box::new(move || step().map(Into::into)),
            samples,
            taken: Vec::with_capacity(samples),
        }
    }

    fn turn(&mut self) -> Outcome<()> {
        for _ in 0..TURN.min(self.samples - self.taken.len()) {
            let sample = (self.step)().map_err(|error| format!("{}: {error}", self.name))?;
            self.taken.push(sample);
        }
        Ok(())
    }

    /// What was measured.
    pub fn summary(self) -> Summary {
        let sorted = |of: fn(&Sample) -> Duration| {
            let mut times: Vec<_> = self.taken.iter().map(of).collect();
            times.sort_unstable();
            times
        };
        Summary {
            name: self.name,
            all: sorted(|sample| sample.time),
            disk: sorted(|sample| sample.disk),
            rest: sorted(|sample| sample.time.saturating_sub(sample.disk)),
        }
    }
}

/// Measures every part to its number of samples, each after a warm-up turn
/// that does not count.
pub fn measure(parts: &mut [Part<'_>]) -> Outcome<()> {
    for part in &mut *parts {
        part.turn()?;
        part.taken.clear();
    }
    while parts.iter().any(|part| part.taken.len() < part.samples) {
        for part in &mut *parts {
            part.turn()?;
        }
    }
    Ok(())
}

/// The time that `work` takes, and what it gives.
pub fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let started = Instant::now();
    let result = work();
    (started.elapsed(), result)
}

/// A part that has been measured; each list is sorted.
pub struct Summary {
    /// The part's name.
    pub name: &'static str,
    all: Vec<Duration>,
    disk: Vec<Duration>,
    rest: Vec<Duration>,
}

impl Summary {
    /// Samples taken.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The time that this percentage of all samples does not exceed, in
    /// milliseconds.
    pub fn at(&self, percent: usize) -> f64 {
        at(&self.all, percent)
    }

    /// The median in milliseconds.
    pub fn median(&self) -> f64 {
        at(&self.all, 50)
    }

    /// The median of writing and syncing in milliseconds; 0 where there is none.
    pub fn disk(&self) -> f64 {
        at(&self.disk, 50)
    }

    /// The median of everything but writing and syncing, in milliseconds.
    pub fn rest(&self) -> f64 {
        at(&self.rest, 50)
    }
}

/// By nearest rank, in milliseconds; 0 without samples.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
