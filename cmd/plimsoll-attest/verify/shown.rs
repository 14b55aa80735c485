//! A bundle's verdict as people and scripts see it.

use std::time::Instant;

use plimsoll_attestation::bundle::Report;
use plimsoll_console::{Failure, escape};
use serde::Serialize;

use super::check::Verdict;
use crate::policy;

/// Sessions named in the success line.
const SHOWN_SESSIONS: usize = 20;

/// The lines of a bundle that verified; none for one that did not.
pub fn lines(verdict: &Verdict) -> Vec<String> {
    if !verdict.is_verified() {
        return Vec::new();
    }
    let mut lines = Vec::new();
    if !verdict.announced {
        lines.push(success_line(&verdict.report));
    }
    if let Some(earlier) = verdict.earlier.filter(|&lines| lines > 0) {
        lines.push(format!("lines 1 to {earlier} verified earlier, unchanged"));
    }
    if verdict.report.records > 0 {
        lines.extend(verdict.policies.met_lines());
    }
    lines.extend(verdict.anchor.lines());
    lines
}

/// The line of a bundle that verified, without a newline.
pub fn success_line(report: &Report) -> String {
    let mut line = format!(
        "verified {} entries ({} records) signed by key {}, whole to its last checkpoint: {} single runs",
        report.lines, report.records, report.key_id, report.single_runs
    );
    for session in report.sessions.iter().take(SHOWN_SESSIONS) {
        line += &format!(
            "; session {}…, {} calls, chain closed",
            escape::line(session.session.chars().take(12).collect::<String>()),
            session.calls
        );
    }
    if report.sessions.len() > SHOWN_SESSIONS {
        line += &format!(
            "; and {} more sessions",
            report.sessions.len() - SHOWN_SESSIONS
        );
    }
    line
}

/// Measures a verification.
pub struct Clock(Instant);

/// What a verification took.
#[derive(Serialize)]
pub struct Stats {
    seconds: f64,
    lines_per_second: f64,
    bytes_per_second: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    peak_memory_bytes: Option<u64>,
}

impl Clock {
    pub fn start() -> Self {
        Clock(Instant::now())
    }

    pub fn stop(self, verdicts: &[Verdict]) -> Stats {
        let seconds = self.0.elapsed().as_secs_f64();
        let sum =
            |of: fn(&Report) -> u64| verdicts.iter().map(|v| of(&v.report)).sum::<u64>() as f64;
        let rate = |total: f64| if seconds > 0.0 { total / seconds } else { 0.0 };
        Stats {
            seconds,
            lines_per_second: rate(sum(|report| report.lines)),
            bytes_per_second: rate(sum(|report| report.bytes)),
            peak_memory_bytes: peak_memory(),
        }
    }
}

impl Stats {
    pub fn to_text(&self) -> String {
        let memory = self.peak_memory_bytes.map_or_else(String::new, |bytes| {
            format!(", peak memory {} KiB", bytes / 1024)
        });
        format!(
            "{:.3} s, {:.0} lines/s, {:.1} MB/s{memory}",
            self.seconds,
            self.lines_per_second,
            self.bytes_per_second / 1e6
        )
    }
}

/// The most memory this process has held, where the system says it.
fn peak_memory() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    let kib: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kib * 1024)
}

#[derive(Serialize)]
struct ShownSession<'a> {
    session: &'a str,
    calls: u64,
    unanswered: u64,
}

/// A bundle's verdict as a script sees it.
#[derive(Serialize)]
pub struct Shown<'a> {
    file: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lines: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    checkpoints: Option<&'a [u64]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    runs: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    sessions: Option<Vec<ShownSession<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tiers: Option<&'a std::collections::BTreeMap<String, u64>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_unix_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_unix_ms: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_line_sha256: Option<String>,
    expected: &'a str,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    missing: &'a [String],
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unexpected: &'a [String],
    anchor: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    verified_earlier: Option<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    policy: Vec<policy::Verdict>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a Failure>,
}

impl<'a> From<&'a Verdict> for Shown<'a> {
    fn from(verdict: &'a Verdict) -> Self {
        let report = &verdict.report;
        let whole = verdict.is_whole();
        let in_sessions = report.records - report.single_runs;
        Shown {
            file: verdict.file.to_string_lossy().into_owned(),
            ok: verdict.failures.is_empty(),
            key_id: whole.then_some(report.key_id.as_str()),
            lines: whole.then_some(report.lines),
            records: whole.then_some(report.records),
            checkpoints: whole.then_some(report.checkpoints.as_slice()),
            runs: whole.then_some(report.single_runs),
            calls: whole.then_some(in_sessions),
            sessions: whole.then(|| {
                report
                    .sessions
                    .iter()
                    .map(|session| ShownSession {
                        session: &session.session,
                        calls: session.calls,
                        unanswered: session.unanswered,
                    })
                    .collect()
            }),
            tiers: whole.then_some(&report.tiers),
            first_unix_ms: report.first_unix_ms,
            last_unix_ms: report.last_unix_ms,
            last_line_sha256: report.last_line.map(|digest| digest.to_hex()),
            expected: verdict.expected,
            missing: &verdict.missing,
            unexpected: &verdict.unexpected,
            anchor: verdict.anchor.word(),
            verified_earlier: verdict.earlier.filter(|_| whole),
            policy: if whole {
                verdict.policies.verdicts()
            } else {
                Vec::new()
            },
            error: verdict.failures.first(),
        }
    }
}
