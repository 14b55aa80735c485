//! Findings of the efficiency advisor.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use super::{Family, text::Exposition};

const LABELS: &[&str] = &["profile", "pattern", "severity", "remedy", "agent_fixable"];

pub(super) const FINDINGS: Family = Family {
    name: "plimsoll_advice_findings_total",
    kind: "counter",
    labels: LABELS,
    help: "Findings of the efficiency advisor.",
};
pub(super) const EXTRA_CALLS: Family = Family {
    name: "plimsoll_advice_extra_calls_total",
    kind: "counter",
    labels: LABELS,
    help: "Host-API calls beyond one in findings.",
};
pub(super) const ADDED_LATENCY: Family = Family {
    name: "plimsoll_advice_added_latency_seconds_total",
    kind: "counter",
    labels: LABELS,
    help: "Modelled latency of the calls beyond one in findings.",
};
pub(super) const BYTES_MOVED: Family = Family {
    name: "plimsoll_advice_bytes_moved_total",
    kind: "counter",
    labels: LABELS,
    help: "Bytes moved by the calls of findings.",
};

/// One finding, as far as it is counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Name of the grant profile.
    pub profile: String,
    /// What was found.
    pub pattern: &'static str,
    /// How much it matters.
    pub severity: &'static str,
    /// What would mend it.
    pub remedy: &'static str,
    /// Whether the agent can mend it itself.
    pub agent_fixable: bool,
    /// Calls beyond one.
    pub extra_calls: u64,
    /// Modelled latency of these.
    pub added_latency: Duration,
    /// Bytes moved.
    pub bytes_moved: u64,
}

type Key = (String, &'static str, &'static str, &'static str, bool);

#[derive(Debug, Default)]
struct Series {
    findings: u64,
    extra_calls: u64,
    seconds: f64,
    bytes: u64,
}

/// All findings.
#[derive(Debug, Default)]
pub struct Findings(Mutex<BTreeMap<Key, Series>>);

impl Findings {
    /// Counts one.
    pub fn observe(&self, finding: Finding) {
        let key = (
            finding.profile,
            finding.pattern,
            finding.severity,
            finding.remedy,
            finding.agent_fixable,
        );
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series = all.entry(key).or_default();
        series.findings += 1;
        series.extra_calls = series.extra_calls.saturating_add(finding.extra_calls);
        series.seconds += finding.added_latency.as_secs_f64();
        series.bytes = series.bytes.saturating_add(finding.bytes_moved);
    }

    pub(super) fn write(&self, out: &mut Exposition) {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() {
            return;
        }
        let mut family = |family, value: fn(&Series) -> f64| {
            let mut open = out.family(family);
            for ((profile, pattern, severity, remedy, fixable), series) in all.iter() {
                let fixable = if *fixable { "true" } else { "false" };
                let labels = [profile.as_str(), pattern, severity, remedy, fixable];
                open.sample("", &labels, value(series));
            }
        };
        // The format knows doubles only.
        family(&FINDINGS, |s| s.findings as f64);
        family(&EXTRA_CALLS, |s| s.extra_calls as f64);
        family(&ADDED_LATENCY, |s| s.seconds);
        family(&BYTES_MOVED, |s| s.bytes as f64);
    }
}
