//! What the daemon counts, in the Prometheus text format.
//!
//! Names and labels are those of the reference implementation: dashboards match
//! on them. No label ever holds a caller, guest input or a raw path.

mod findings;
mod host_calls;
mod text;

use std::sync::atomic::{AtomicU64, Ordering};

pub use findings::{Finding, Findings};
pub use host_calls::{HostCallLabels, HostCalls};

use crate::admission::{Limiter, Shed};
use text::Exposition;

/// Content type of the exposition.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4";

/// Causes of a shed start, in the order in which they are printed.
const SHED: [&str; 5] = [
    "at_capacity",
    "per_key",
    "rate",
    "paid_caller",
    "paid_daemon",
];

/// A family of series: its name, kind and meaning.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// Its name.
    pub name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    pub kind: &'static str,
    /// Its labels, in order.
    pub labels: &'static [&'static str],
    /// What it counts.
    pub help: &'static str,
}

const RUNS: Family = Family {
    name: "plimsoll_runs_total",
    kind: "counter",
    labels: &[],
    help: "Runs and session calls dispatched to the provider.",
};
const RUNS_FAILED: Family = Family {
    name: "plimsoll_runs_failed_total",
    kind: "counter",
    labels: &[],
    help: "Dispatched runs and session calls that ended in a failure of the infrastructure.",
};
const INFLIGHT: Family = Family {
    name: "plimsoll_inflight",
    kind: "gauge",
    labels: &[],
    help: "Global slots held, running sessions included.",
};
const SHED_STARTS: Family = Family {
    name: "plimsoll_shed_total",
    kind: "counter",
    labels: &["reason"],
    help: "Starts refused by a limit.",
};

/// The reference implementation has none of this.
const LOG_LINES_LOST: Family = Family {
    name: "plimsoll_attest_log_lines_lost_total",
    kind: "counter",
    labels: &[],
    help: "Log lines, audit lines among them, that could not be written.",
};

/// Every family, in the order of the exposition.
pub const FAMILIES: [&Family; 11] = [
    &RUNS,
    &RUNS_FAILED,
    &INFLIGHT,
    &SHED_STARTS,
    &host_calls::CALLS,
    &host_calls::LATENCY,
    &findings::FINDINGS,
    &findings::EXTRA_CALLS,
    &findings::ADDED_LATENCY,
    &findings::BYTES_MOVED,
    &LOG_LINES_LOST,
];

/// Everything counted since the daemon started.
#[derive(Debug, Default)]
pub struct Metrics {
    runs: AtomicU64,
    runs_failed: AtomicU64,
    host_calls: HostCalls,
    findings: Findings,
}

impl Metrics {
    /// A run is handed to the provider.
    pub(crate) fn run_dispatched(&self) {
        self.runs.fetch_add(1, Ordering::Relaxed);
    }

    /// A dispatched run ended in a failure of the infrastructure.
    pub(crate) fn run_failed(&self) {
        self.runs_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs dispatched to the provider.
    #[must_use]
    pub fn runs(&self) -> u64 {
        self.runs.load(Ordering::Relaxed)
    }

    /// Runs that ended in a failure of the infrastructure.
    #[must_use]
    pub fn runs_failed(&self) -> u64 {
        self.runs_failed.load(Ordering::Relaxed)
    }

    /// Calls brokered for guests.
    #[must_use]
    pub fn host_calls(&self) -> &HostCalls {
        &self.host_calls
    }

    /// Findings of the efficiency advisor.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// The whole exposition, with the log's lost lines. A family without a
    /// series is left out.
    #[must_use]
    pub fn exposition(&self, limiter: &Limiter, log_lines_lost: u64) -> String {
        let mut out = Exposition::default();
        out.family(&RUNS).sample("", &[], self.runs());
        out.family(&RUNS_FAILED).sample("", &[], self.runs_failed());
        out.family(&INFLIGHT).sample("", &[], limiter.inflight());
        let mut shed = out.family(&SHED_STARTS);
        for reason in SHED {
            let cause = Shed::ALL.into_iter().find(|cause| cause.name() == reason);
            let count = cause.map_or(0, |cause| limiter.shed(cause));
            shed.sample("", &[reason], count);
        }
        self.host_calls.write(&mut out);
        self.findings.write(&mut out);
        out.family(&LOG_LINES_LOST).sample("", &[], log_lines_lost);
        out.into_text()
    }
}

#[cfg(test)]
mod tests;
