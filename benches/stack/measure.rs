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

/// One thing that is measured.
pub struct Part<'a> {
    /// Its place in the report.
    pub name: &'static str,
    step: Box<dyn FnMut() -> Outcome<Duration> + 'a>,
    samples: usize,
    times: Vec<Duration>,
}

impl<'a> Part<'a> {
    /// A part measured `samples` times. `step` takes one sample and says how
    /// long it was, so that it can prepare and tidy outside of that time.
    pub fn new(
        name: &'static str,
        samples: usize,
        step: impl FnMut() -> Outcome<Duration> + 'a,
    ) -> Self {
        Part {
            name,
            step: Box::new(step),
            samples,
            times: Vec::with_capacity(samples),
        }
    }

    fn turn(&mut self) -> Outcome<()> {
        for _ in 0..TURN.min(self.samples - self.times.len()) {
            let time = (self.step)().map_err(|error| format!("{}: {error}", self.name))?;
            self.times.push(time);
        }
        Ok(())
    }

    /// The measured times; none are left to measure afterwards.
    pub fn summary(mut self) -> Summary {
        self.times.sort_unstable();
        Summary {
            name: self.name,
            sorted: self.times,
        }
    }
}

/// Measures every part to its number of samples, each after a warm-up turn
/// that does not count.
pub fn measure(parts: &mut [Part<'_>]) -> Outcome<()> {
    for part in &mut *parts {
        part.turn()?;
        part.times.clear();
    }
    while parts.iter().any(|part| part.times.len() < part.samples) {
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

/// A part that has been measured.
pub struct Summary {
    /// The part's name.
    pub name: &'static str,
    sorted: Vec<Duration>,
}

impl Summary {
    /// Samples taken.
    pub fn count(&self) -> usize {
        self.sorted.len()
    }

    /// The time that this percentage of all samples does not exceed (nearest
    /// rank), in milliseconds; 0 without samples.
    pub fn at(&self, percent: usize) -> f64 {
        let rank = (self.sorted.len() * percent).div_ceil(100);
        self.sorted
            .get(rank.saturating_sub(1))
            .map_or(0.0, |time| time.as_secs_f64() * 1e3)
    }

    /// The median in milliseconds.
    pub fn median(&self) -> f64 {
        self.at(50)
    }
}
