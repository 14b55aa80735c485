//! Calls brokered for guests: how many, and how long they took.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{Family, text::Exposition};

pub(super) const CALLS: Family = Family {
    name: "plimsoll_host_calls_total",
    kind: "counter",
    labels: &["profile", "method", "route"],
    help: "Host-API calls brokered for guests.",
};
pub(super) const LATENCY: Family = Family {
    name: "plimsoll_host_call_latency_seconds",
    kind: "histogram",
    labels: &["profile", "method", "route"],
    help: "Time of a brokered host-API call.",
};

/// Upper bounds of the buckets in seconds, and their text.
const BOUNDS: [(f64, &str); 12] = [
    (0.001, "0.001"),
    (0.005, "0.005"),
    (0.01, "0.01"),
    (0.025, "0.025"),
    (0.05, "0.05"),
    (0.1, "0.1"),
    (0.25, "0.25"),
    (0.5, "0.5"),
    (1.0, "1"),
    (2.5, "2.5"),
    (5.0, "5"),
    (10.0, "10"),
];

/// The series of a call. All three come from a grant profile, so there are as
/// many series as profiles have routes.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct HostCallLabels {
    /// Name of the grant profile.
    pub profile: String,
    /// HTTP method.
    pub method: String,
    /// The route's template, never the path called.
    pub route: String,
}

#[derive(Debug, Default)]
struct Series {
    /// Calls in each bucket alone; those above the last bound are in no bucket.
    buckets: [u64; BOUNDS.len()],
    count: u64,
    seconds: f64,
}

/// All brokered calls.
#[derive(Debug, Default)]
pub struct HostCalls(Mutex<BTreeMap<HostCallLabels, Series>>);

impl HostCalls {
    /// Counts one call, whether or not its run fails afterwards.
    pub fn observe(&self, labels: HostCallLabels, latency: Duration) {
        let seconds = latency.as_secs_f64();
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series = all.entry(labels).or_default();
        let bucket = BOUNDS.iter().position(|(bound, _)| seconds <= *bound);
        if let Some(calls) = bucket.and_then(|at| series.buckets.get_mut(at)) {
            *calls += 1;
        }
        series.count += 1;
        series.seconds += seconds;
    }

    pub(super) fn write(&self, out: &mut Exposition) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return;
        }
        let values = |l: &HostCallLabels| [l.profile.clone(), l.method.clone(), l.route.clone()];
        let mut calls = out.family(&CALLS);
        for (labels, series) in all.iter() {
            calls.sample(
                "",
                &values(labels).each_ref().map(String::as_str),
                series.count,
            );
        }
        let mut latency = out.family(&LATENCY);
        for (labels, series) in all.iter() {
            let values = values(labels);
            let values = values.each_ref().map(String::as_str);
            let mut below = 0;
            for ((_, bound), calls) in BOUNDS.iter().zip(series.buckets) {
                below += calls;
                latency.bucket(&values, bound, below);
            }
            latency.bucket(&values, "+Inf", series.count);
            latency.sample("_sum", &values, series.seconds);
            latency.sample("_count", &values, series.count);
        }
    }
}
