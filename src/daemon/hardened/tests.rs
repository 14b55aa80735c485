use plimsoll_wire::Tier;

use super::{rules::is_loopback, *};
use crate::config::{Environment, Reader};

/// A docker daemon that meets every rule.
const DOCKER: [(&str, &str); 6] = [
    ("SANDBOX_REQUIRE_PINNED_IMAGES", "1"),
    ("SANDBOX_MEMORY_MB", "256"),
    ("SANDBOX_CPUS", "0.5"),
    ("SANDBOX_PIDS", "64"),
    ("SANDBOX_DISK_MB", "64"),
    ("SANDBOX_TOTAL_MEMORY_MB", "4096"),
];

fn facts(variables: &[(&str, &str)]) -> Facts {
    let variables = variables.iter().map(|(n, v)| (n.into(), v.into()));
    let environment = Environment::new(variables);
    Facts::read(&Reader::new(&environment)).unwrap()
}

/// [`DOCKER`] with other values; an empty one unsets.
fn docker_but(changes: &[(&str, &str)]) -> Facts {
    let kept = |name: &str| !changes.iter().any(|(changed, _)| *changed == name);
    let mut all: Vec<_> = DOCKER.into_iter().filter(|(n, _)| kept(n)).collect();
    all.extend_from_slice(changes);
    facts(&all)
}

fn good(provider: &str) -> Situation<'_> {
    Situation {
        provider,
        metered: false,
        registry: true,
        without_allowance: Vec::new(),
        tls: false,
        address: "127.0.0.1:8746",
        metrics: Some("localhost:9464"),
        guard: None,
        limits: Limits {
            max_concurrent: 8,
            per_key: 4,
            rate_per_min: 30,
            burst: 30,
        },
        sessions: 0,
        sessions_per_caller: 0,
    }
}

fn broken(facts: &Facts, situation: &Situation<'_>) -> Vec<Violation> {
    match check_settings(facts, situation) {
        Ok(()) => Vec::new(),
        Err(error) => error.violations,
    }
}

#[test]
fn a_compliant_docker_passes_both_passes() {
    let (facts, situation) = (docker_but(&[]), good("docker"));
    assert_eq!(check_settings(&facts, &situation), Ok(()));
    for tier in [Tier::Kernel, Tier::Vm] {
        assert_eq!(check_all(&facts, &situation, Some(tier)), Ok(()));
    }
    for proven in [
        None,
        Some(Tier::None),
        Some(Tier::Process),
        Some(Tier::Container),
    ] {
        let error = check_all(&facts, &situation, proven).unwrap_err();
        assert_eq!(error.violations, [Violation::Isolation { proven }]);
        assert!(error.is_isolation_alone());
    }
}

/// Each rule broken alone is the one that is reported.
#[test]
fn each_rule_alone() {
    let clear = |variable| Violation::ClearText { variable };
    type Break = fn(&mut Situation<'static>);
    let situations: [(Break, Violation); 10] = [
        (|s| s.registry = false, Violation::NoRegistry),
        (|s| s.address = ":8746", clear("PLIMSOLL_ADDR")),
        (
            |s| s.metrics = Some("0.0.0.0:9464"),
            clear("PLIMSOLL_METRICS_ADDR"),
        ),
        (
            |s| s.guard = Some("example.com:443"),
            clear("PLIMSOLL_GUARD_ADDR"),
        ),
        (
            |s| (s.limits.rate_per_min, s.limits.burst) = (0, 0),
            Violation::NoRate,
        ),
        (|s| s.limits.burst = 31, Violation::Burst),
        (|s| s.limits.per_key = 0, Violation::NoCallerCap),
        (
            |s| s.limits.per_key = 8,
            Violation::CallerTakesAll { max: 8 },
        ),
        (|s| s.sessions = 1, Violation::NoSessionCap),
        (
            |s| {
                s.metered = true;
                s.without_allowance = vec!["a".into(), "b".into()];
            },
            Violation::NoAllowance {
                callers: vec!["a".into(), "b".into()],
            },
        ),
    ];
    for (change, violation) in situations {
        let mut situation = good("docker");
        change(&mut situation);
        assert_eq!(broken(&docker_but(&[]), &situation), [violation]);
    }
    let unset = |variable| Violation::NoBound { variable };
    let pinned = "SANDBOX_REQUIRE_PINNED_IMAGES";
    let not_pinned = || Violation::NotPinned { variable: pinned };
    for (change, violation) in [
        (("PLIMSOLL_INSECURE", "0"), Violation::Insecure),
        (("PLIMSOLL_INSECURE", "1"), Violation::Insecure),
        ((pinned, ""), not_pinned()),
        ((pinned, "false"), not_pinned()),
        (
            ("SANDBOX_DOCKER_SECCOMP", " Unconfined "),
            Violation::Unconfined,
        ),
        (("SANDBOX_MEMORY_MB", "0"), unset("SANDBOX_MEMORY_MB")),
        (("SANDBOX_CPUS", "-1"), unset("SANDBOX_CPUS")),
        (("SANDBOX_DISK_MB", "many"), unset("SANDBOX_DISK_MB")),
        (("SANDBOX_PIDS", ""), unset("SANDBOX_PIDS")),
        (
            ("SANDBOX_TOTAL_MEMORY_MB", "inf"),
            unset("SANDBOX_TOTAL_MEMORY_MB"),
        ),
    ] {
        assert_eq!(
            broken(&docker_but(&[change]), &good("docker")),
            [violation],
            "{change:?}"
        );
    }
}

#[test]
fn tls_frees_the_addresses() {
    let situation = Situation {
        tls: true,
        address: ":8746",
        metrics: Some("0.0.0.0:9464"),
        guard: Some(":443"),
        ..good("docker")
    };
    assert_eq!(broken(&docker_but(&[]), &situation), []);
    let off = Situation {
        metrics: None,
        ..good("docker")
    };
    assert_eq!(broken(&docker_but(&[]), &off), []);
}

#[test]
fn a_single_slot_cannot_be_shared() {
    let mut situation = good("docker");
    situation.limits.max_concurrent = 1;
    situation.limits.per_key = 1;
    let all = Violation::CallerTakesAll { max: 1 };
    assert_eq!(broken(&docker_but(&[]), &situation), [all]);
}

#[test]
fn what_each_provider_needs() {
    let bounds = [
        ("SANDBOX_MEMORY_MB", "1"),
        ("SANDBOX_CPUS", "1"),
        ("SANDBOX_DISK_MB", "1"),
    ];
    let with = |more: &[(&str, &str)]| facts(&[&bounds[..], more].concat());
    assert_eq!(broken(&with(&[]), &good("wasm")), []);
    assert_eq!(broken(&with(&[]), &good("e2b")), [Violation::NoTemplate]);
    assert_eq!(broken(&with(&[("E2B_TEMPLATE", "t")]), &good("e2b")), []);
    let not_pinned = Violation::NotPinned {
        variable: "SANDBOX_REQUIRE_PINNED_IMAGES",
    };
    assert_eq!(
        broken(&with(&[]), &good("openshell")),
        std::slice::from_ref(&not_pinned)
    );
    assert_eq!(
        broken(&with(&[]), &good("dockercloud")),
        [not_pinned, Violation::NotConnect]
    );
    let cloud = [
        ("SANDBOX_DOCKERCLOUD_API", "connect"),
        ("SANDBOX_DOCKERCLOUD_STORE_IMAGE", "x"),
    ];
    assert_eq!(broken(&with(&cloud), &good("dockercloud")), []);
}

/// Its disk bound depends on the tier, so only the full pass asks for it.
#[test]
fn agentsandbox_bounds_its_disk_by_tier() {
    let facts = facts(&[("SANDBOX_MEMORY_MB", "1"), ("SANDBOX_CPUS", "1")]);
    let situation = good("agentsandbox");
    assert_eq!(check_settings(&facts, &situation), Ok(()));
    assert_eq!(check_all(&facts, &situation, Some(Tier::Vm)), Ok(()));
    let error = check_all(&facts, &situation, Some(Tier::Kernel)).unwrap_err();
    let disk = Violation::NoBound {
        variable: "SANDBOX_DISK_MB",
    };
    assert_eq!(error.violations, [disk]);
    assert!(!error.is_isolation_alone());
}

#[test]
fn five_at_once_are_five_in_one_message() {
    let facts = docker_but(&[
        ("PLIMSOLL_INSECURE", "1"),
        ("SANDBOX_REQUIRE_PINNED_IMAGES", "0"),
        ("SANDBOX_PIDS", "0"),
    ]);
    let mut situation = good("docker");
    situation.registry = false;
    situation.limits.rate_per_min = 0;
    let text = check_settings(&facts, &situation).unwrap_err().to_string();
    for name in [
        "PLIMSOLL_CLIENTS_FILE",
        "PLIMSOLL_INSECURE",
        "SANDBOX_REQUIRE_PINNED_IMAGES",
        "SANDBOX_PIDS",
        "SANDBOX_RATE_PER_MIN",
    ] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("(5)") && !text.contains("(6)"), "{text}");
}

#[test]
fn loopback_addresses() {
    for address in [
        "127.0.0.1:1",
        "127.9.9.9:1",
        "[::1]:1",
        "localhost:1",
        "LocalHost:0",
    ] {
        assert!(is_loopback(address), "{address}");
    }
    for address in [
        "",
        ":1",
        "0.0.0.0:1",
        "10.0.0.5:1",
        "example.com:1",
        "127.0.0.1",
        "localhost",
        "::1:1",
        "[::]:1",
        "[127.0.0.1]:1",
        "127.0.0.1:x",
        "[::1]",
        "[::ffff:127.0.0.1]:1",
    ] {
        assert!(!is_loopback(address), "{address}");
    }
}
