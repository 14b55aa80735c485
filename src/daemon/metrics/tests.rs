use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use super::*;
use crate::admission::Limits;

fn limiter() -> Arc<Limiter> {
    Limiter::new(Limits {
        max_concurrent: 2,
        per_key: 1,
        rate_per_min: 0,
        burst: 0,
    })
}

fn call(route: &str) -> HostCallLabels {
    HostCallLabels {
        profile: "orders".into(),
        method: "GET".into(),
        route: route.into(),
    }
}

#[test]
fn a_fresh_daemon() {
    assert_eq!(
        Metrics::default().exposition(&limiter(), 7),
        "\
# HELP plimsoll_runs_total Runs and session calls dispatched to the provider.
# TYPE plimsoll_runs_total counter
plimsoll_runs_total 0
# HELP plimsoll_runs_failed_total Dispatched runs and session calls that ended in a failure of the infrastructure.
# TYPE plimsoll_runs_failed_total counter
plimsoll_runs_failed_total 0
# HELP plimsoll_inflight Global slots held, running sessions included.
# TYPE plimsoll_inflight gauge
plimsoll_inflight 0
# HELP plimsoll_shed_total Starts refused by a limit.
# TYPE plimsoll_shed_total counter
plimsoll_shed_total{reason=\"at_capacity\"} 0
plimsoll_shed_total{reason=\"per_key\"} 0
plimsoll_shed_total{reason=\"rate\"} 0
plimsoll_shed_total{reason=\"paid_caller\"} 0
plimsoll_shed_total{reason=\"paid_daemon\"} 0
# HELP plimsoll_attest_log_lines_lost_total Log lines, audit lines among them, that could not be written.
# TYPE plimsoll_attest_log_lines_lost_total counter
plimsoll_attest_log_lines_lost_total 7
"
    );
}

#[test]
fn what_the_limiter_counts() {
    let (metrics, limiter) = (Metrics::default(), limiter());
    let key: Arc<str> = "a".into();
    let held = limiter.admit(&key, Instant::now()).unwrap();
    assert!(limiter.admit(&key, Instant::now()).is_err());
    metrics.run_dispatched();
    metrics.run_failed();
    let text = metrics.exposition(&limiter, 0);
    for line in [
        "plimsoll_runs_total 1",
        "plimsoll_runs_failed_total 1",
        "plimsoll_inflight 1",
        "plimsoll_shed_total{reason=\"per_key\"} 1",
        "plimsoll_shed_total{reason=\"at_capacity\"} 0",
    ] {
        assert!(text.lines().any(|l| l == line), "{line}: {text}");
    }
    drop(held);
    assert!(
        metrics
            .exposition(&limiter, 0)
            .contains("plimsoll_inflight 0\n")
    );
}

/// Every cause the limiter knows is printed.
#[test]
fn no_cause_is_left_out() {
    for cause in Shed::ALL {
        assert!(SHED.contains(&cause.name()), "{}", cause.name());
    }
}

#[test]
fn buckets_hold_what_is_below() {
    let metrics = Metrics::default();
    metrics
        .host_calls()
        .observe(call("/v1/orders/{id}"), Duration::from_millis(3));
    metrics
        .host_calls()
        .observe(call("/v1/orders/{id}"), Duration::from_millis(39));
    metrics
        .host_calls()
        .observe(call("/v1/z"), Duration::from_secs(60));
    let text = metrics.exposition(&limiter(), 7);
    let counts = |route: &str| -> Vec<u64> {
        let start = format!(
            "plimsoll_host_call_latency_seconds_bucket{{profile=\"orders\",method=\"GET\",route=\"{route}\",le="
        );
        let of = text.lines().filter(|line| line.starts_with(&start));
        of.map(|line| line.rsplit_once(' ').unwrap().1.parse().unwrap())
            .collect()
    };
    assert_eq!(
        counts("/v1/orders/{id}"),
        [0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]
    );
    assert_eq!(counts("/v1/z"), [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
    assert!(text.contains("le=\"+Inf\"} 2\n"));
    assert!(text.contains("plimsoll_host_call_latency_seconds_count{profile=\"orders\",method=\"GET\",route=\"/v1/z\"} 1\n"));
    assert!(text.contains("plimsoll_host_call_latency_seconds_sum{profile=\"orders\",method=\"GET\",route=\"/v1/z\"} 60\n"));
    assert!(text.contains(
        "plimsoll_host_calls_total{profile=\"orders\",method=\"GET\",route=\"/v1/orders/{id}\"} 2\n"
    ));
}

#[test]
fn findings_are_added_up() {
    let metrics = Metrics::default();
    let finding = Finding {
        profile: "orders".into(),
        pattern: "fan_out",
        severity: "high",
        remedy: "batch",
        agent_fixable: true,
        extra_calls: 9,
        added_latency: Duration::from_millis(1500),
        bytes_moved: 2048,
    };
    metrics.findings().observe(finding.clone());
    metrics.findings().observe(finding);
    let text = metrics.exposition(&limiter(), 7);
    let labels = "{profile=\"orders\",pattern=\"fan_out\",severity=\"high\",remedy=\"batch\",agent_fixable=\"true\"}";
    for (name, value) in [
        ("findings_total", "2"),
        ("extra_calls_total", "18"),
        ("added_latency_seconds_total", "3"),
        ("bytes_moved_total", "4096"),
    ] {
        let line = format!("plimsoll_advice_{name}{labels} {value}\n");
        assert!(text.contains(&line), "{line}: {text}");
    }
}

#[test]
fn a_hostile_label_stays_a_label() {
    let metrics = Metrics::default();
    let route = "/a\"} 1\nplimsoll_runs_total 99\\";
    metrics.host_calls().observe(call(route), Duration::ZERO);
    let text = metrics.exposition(&limiter(), 7);
    assert!(
        text.contains(r#"route="/a\"} 1\nplimsoll_runs_total 99\\"} 1"#),
        "{text}"
    );
    assert!(!text.lines().any(|line| line == "plimsoll_runs_total 99\\"));
}

/// Every family has its own name, and the exposition keeps their order.
#[test]
fn families_are_written_once_and_in_order() {
    let metrics = Metrics::default();
    metrics.host_calls().observe(call("/"), Duration::ZERO);
    metrics.findings().observe(Finding {
        profile: String::new(),
        pattern: "p",
        severity: "s",
        remedy: "r",
        agent_fixable: false,
        extra_calls: 0,
        added_latency: Duration::ZERO,
        bytes_moved: 0,
    });
    let text = metrics.exposition(&limiter(), 7);
    let typed: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE "))
        .collect();
    let families: Vec<String> = FAMILIES
        .iter()
        .map(|f| format!("{} {}", f.name, f.kind))
        .collect();
    assert_eq!(typed, families);
    for family in FAMILIES {
        assert!(text.contains(&format!("# HELP {} {}\n", family.name, family.help)));
    }
}
