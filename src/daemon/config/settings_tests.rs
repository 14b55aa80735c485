use std::{collections::BTreeSet, time::Duration};

use plimsoll_wire::Tier;

use super::{
    Auth, Choice, ConfigError, Environment, Fault, Group, Settings, VARIABLES, help,
    rules::{HostMemory, clamped},
};
use crate::log::Format;

const TOKEN: &str = "0123456789abcdef0123456789abcdef";

fn environment(variables: &[(&str, &str)]) -> Environment {
    Environment::new(variables.iter().map(|(n, v)| (n.into(), v.into())))
}

fn read(variables: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    Settings::read(&environment(variables))
}

/// The text of the refusal, which must name the variable at fault.
fn refusal(variables: &[(&str, &str)], names: &str) -> String {
    let text = match read(variables) {
        Err(error) => error.to_string(),
        Ok(_) => panic!("{variables:?} was accepted"),
    };
    assert!(text.contains(names), "{text:?} does not name {names}");
    text
}

fn wasm<'a>(more: &[(&'a str, &'a str)]) -> Vec<(&'a str, &'a str)> {
    let mut all = vec![("SANDBOX_PROVIDER", "wasm"), ("PLIMSOLL_TOKEN", TOKEN)];
    all.extend_from_slice(more);
    all
}

#[test]
fn nothing_set() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.provider, Choice::Disabled);
    assert_eq!(settings.address, ":8746");
    assert!(matches!(settings.auth, Auth::Open));
    assert_eq!(settings.limits.max_concurrent, 8);
    assert_eq!(settings.limits.per_key, 4);
    assert_eq!(
        (settings.limits.rate_per_min, settings.limits.burst),
        (30, 30)
    );
    assert_eq!(settings.sessions.lifetime, Duration::from_secs(1800));
    assert!(!settings.embedded && settings.tls.is_none() && settings.clamp.is_none());
}

#[test]
fn provider_names() {
    let text = refusal(&[("SANDBOX_PROVIDER", "dokcer")], "dokcer");
    for name in [
        "wasm",
        "docker",
        "e2b",
        "dockercloud",
        "openshell",
        "agentsandbox",
    ] {
        assert!(text.contains(name), "{text}");
    }
    refusal(&[("SANDBOX_PROVIDER", "disabled")], "disabled");
    for name in ["openshell", "E2B", "agentsandbox"] {
        let text = refusal(&[("SANDBOX_PROVIDER", name)], "SANDBOX_PROVIDER");
        assert!(text.contains("this build has no such provider"), "{text}");
    }
}

#[cfg(not(feature = "wasm"))]
#[test]
fn a_build_without_wasm_says_so() {
    let text = refusal(&wasm(&[]), "SANDBOX_PROVIDER");
    assert!(
        text.contains("this build has no such provider; it has none"),
        "{text}"
    );
}

#[cfg(feature = "wasm")]
mod with_wasm {
    use super::*;

    #[test]
    fn chosen_in_any_case_and_with_authentication() {
        let insecure = [("SANDBOX_PROVIDER", " WASM "), ("PLIMSOLL_INSECURE", "1")];
        assert_eq!(read(&insecure).unwrap().provider, Choice::Wasm);
        refusal(&[("SANDBOX_PROVIDER", "wasm")], "PLIMSOLL_INSECURE=1");
        let truthy = [("SANDBOX_PROVIDER", "wasm"), ("PLIMSOLL_INSECURE", "true")];
        refusal(&truthy, "PLIMSOLL_INSECURE=1");
        assert!(matches!(read(&wasm(&[])).unwrap().auth, Auth::Token(_)));
    }

    #[test]
    fn caps_wasm_cannot_enforce() {
        for (name, value) in [
            ("SANDBOX_CPUS", "1"),
            ("SANDBOX_PIDS", "5"),
            ("SANDBOX_DISK_MB", "1"),
        ] {
            let text = refusal(&wasm(&[(name, value)]), name);
            assert!(text.contains(
                "wasm can enforce only SANDBOX_MEMORY_MB; CPU/PID/disk resource caps require docker or e2b"
            ));
            assert!(read(&wasm(&[(name, "0")])).is_ok(), "{name}");
        }
        refusal(
            &wasm(&[("SANDBOX_GUEST_UID", "61000")]),
            "SANDBOX_GUEST_UID",
        );
        let big = read(&wasm(&[("SANDBOX_MEMORY_MB", "8192")])).unwrap();
        assert_eq!(big.resources.memory_mb, 4096);
    }

    #[test]
    fn what_wasm_has_not() {
        for (name, value) in [
            ("PLIMSOLL_GUARD_ADDR", ":1"),
            ("SANDBOX_PAID_SECONDS_PER_DAY", "10"),
            ("SANDBOX_MAX_SESSIONS", "1"),
        ] {
            refusal(&wasm(&[(name, value)]), name);
        }
    }
}

#[test]
fn tokens() {
    let text = refusal(&[("PLIMSOLL_TOKEN", &TOKEN[1..])], "PLIMSOLL_TOKEN");
    assert!(!text.contains(&TOKEN[1..]), "a token is never shown");
    assert!(matches!(
        read(&[("PLIMSOLL_TOKEN", TOKEN)]).unwrap().auth,
        Auth::Token(_)
    ));
    let newline = format!("{TOKEN}\n");
    assert_eq!(
        read(&[("PLIMSOLL_TOKEN", &newline)]).err(),
        Some(ConfigError::Secret {
            variable: "PLIMSOLL_TOKEN",
            fault: Fault::UnusableToken
        })
    );
}

#[test]
fn limits() {
    for value in ["0", "1025", "eight", "-1"] {
        let text = refusal(
            &[("SANDBOX_MAX_CONCURRENT", value)],
            "SANDBOX_MAX_CONCURRENT",
        );
        assert!(text.contains(value), "{text}");
    }
    let one = read(&[("SANDBOX_MAX_CONCURRENT", "1")]).unwrap().limits;
    assert_eq!((one.max_concurrent, one.per_key), (1, 1));
    let clamp = [
        ("SANDBOX_TOTAL_MEMORY_MB", "1024"),
        ("SANDBOX_MEMORY_MB", "256"),
    ];
    let settings = read(&clamp).unwrap();
    assert_eq!(
        (settings.limits.max_concurrent, settings.limits.per_key),
        (4, 2)
    );
    assert_eq!(settings.clamp.map(|c| (c.asked, c.fit)), Some((8, 4)));
    refusal(
        &[("SANDBOX_TOTAL_MEMORY_MB", "200")],
        "SANDBOX_TOTAL_MEMORY_MB=200",
    );
    let over = [
        ("SANDBOX_TOTAL_MEMORY_MB", "1024"),
        ("SANDBOX_PER_KEY_CONCURRENT", "5"),
    ];
    refusal(&over, "SANDBOX_PER_KEY_CONCURRENT");
    let host = |total_mb, per_run_mb, pool| HostMemory {
        total_mb,
        per_run_mb,
        pool,
    };
    assert_eq!(clamped(8, host(1024, 0, 3)), Ok(1));
    assert!(
        clamped(8, host(1024, 256, 4))
            .unwrap_err()
            .to_string()
            .contains("beside 4 sandboxes kept ready")
    );
    assert_eq!(clamped(8, host(0, 256, 0)), Ok(8));
    let rates = read(&[("SANDBOX_RATE_PER_MIN", "0"), ("SANDBOX_RATE_BURST", "7")]).unwrap();
    assert_eq!((rates.limits.rate_per_min, rates.limits.burst), (0, 7));
    for name in [
        "SANDBOX_RATE_PER_MIN",
        "SANDBOX_RATE_BURST",
        "SANDBOX_PER_KEY_CONCURRENT",
    ] {
        refusal(&[(name, "-1")], name);
    }
}

#[test]
fn minimum_isolation() {
    for (value, tier) in [(" VM ", Tier::Vm), ("process", Tier::Process)] {
        let settings = read(&[("SANDBOX_MIN_ISOLATION", value)]).unwrap();
        assert_eq!(settings.min_isolation, Some(tier));
    }
    for value in ["none", "unknown", "strong"] {
        refusal(&[("SANDBOX_MIN_ISOLATION", value)], "SANDBOX_MIN_ISOLATION");
    }
}

#[test]
fn session_values_are_checked_while_sessions_are_off() {
    for (name, value) in [
        ("SANDBOX_SESSION_IDLE", "500ms"),
        ("SANDBOX_SESSION_IDLE", "13h"),
        ("SANDBOX_SESSION_IDLE", "5"),
        ("SANDBOX_SESSION_IDLE", "-1s"),
        ("SANDBOX_SESSION_LIFETIME", "0"),
        ("SANDBOX_SESSION_LIFETIME", "1200h"),
        ("SANDBOX_SESSION_DISK_MB", "1048577"),
        ("SANDBOX_SESSION_DISK_MB", "17592186044416"),
        ("SANDBOX_SESSION_POOL", "1"),
        ("SANDBOX_MAX_SESSIONS_PER_OWNER", "-1"),
        ("SANDBOX_MAX_SESSIONS", "1"),
    ] {
        refusal(&[(name, value)], name);
    }
    for (name, value) in [
        ("SANDBOX_SESSION_IDLE", "0"),
        ("SANDBOX_SESSION_IDLE", "1s"),
        ("SANDBOX_SESSION_IDLE", "12h"),
        ("SANDBOX_SESSION_LIFETIME", "12h"),
        ("SANDBOX_SESSION_DISK_MB", "1048576"),
        ("SANDBOX_MAX_SESSIONS", "0"),
    ] {
        assert!(read(&[(name, value)]).is_ok(), "{name}={value}");
    }
}

#[test]
fn what_this_build_cannot_honour() {
    let grants = ("PLIMSOLL_GRANTS_FILE", "/etc/grants.json");
    let text = refusal(&[grants], grants.0);
    assert!(text.contains("does not support it yet"), "{text}");
    refusal(
        &[("SANDBOX_REQUIRE_PINNED_IMAGES", "on")],
        "SANDBOX_REQUIRE_PINNED_IMAGES",
    );
}

#[test]
fn metrics_addresses() {
    let address = |value| {
        let settings = read(&[("PLIMSOLL_METRICS_ADDR", value)]).unwrap();
        settings.metrics_address
    };
    for (value, expected) in [
        ("", Some("127.0.0.1:9464")),
        (" [::1]:9464 ", Some("[::1]:9464")),
        (":0", Some(":0")),
        (" OFF ", None),
    ] {
        assert_eq!(address(value).as_deref(), expected, "{value:?}");
    }
    for value in [
        "9464", "no", "disabled", "::1", "h:", "h:x", "h:70000", "h:+1",
    ] {
        let text = refusal(&[("PLIMSOLL_METRICS_ADDR", value)], "PLIMSOLL_METRICS_ADDR");
        assert!(text.contains("host:port"), "{text}");
    }
}

#[test]
fn the_production_policy_is_on_or_off() {
    for (value, on) in [("", false), ("false", false), ("TRUE", true), ("1", true)] {
        let settings = read(&[("PLIMSOLL_HARDENED", value)]).unwrap();
        assert_eq!(settings.hardened.is_some(), on, "{value:?}");
    }
    refusal(&[("PLIMSOLL_HARDENED", "yes")], "PLIMSOLL_HARDENED");
}

#[test]
fn tls_needs_both() {
    let text = refusal(&[("PLIMSOLL_TLS_CERT", "/c.pem")], "PLIMSOLL_TLS_CERT");
    assert!(text.contains("PLIMSOLL_TLS_KEY"));
    refusal(&[("PLIMSOLL_TLS_KEY", "/k.pem")], "PLIMSOLL_TLS_KEY");
    let both = [
        ("PLIMSOLL_TLS_CERT", "/c.pem"),
        ("PLIMSOLL_TLS_KEY", "/k.pem"),
    ];
    assert!(read(&both).unwrap().tls.is_some());
}

#[test]
fn log_formats() {
    for (value, format) in [
        ("TEXT", Format::Text),
        ("json", Format::Json),
        ("xml", Format::Json),
    ] {
        let environment = environment(&[("PLIMSOLL_LOG_FORMAT", value)]);
        assert_eq!(Settings::log_format(&environment), format, "{value}");
    }
}

#[test]
fn settings_of_another_provider_are_named() {
    let settings = read(&[
        ("SANDBOX_DOCKER_IMAGE", "node:22"),
        ("E2B_API_KEY", "key"),
        ("E2B_TEMPLATE", "base"),
        ("DOCKER_SBX_USERNAME", "someone"),
        ("DOCKER_HOST", "tcp://203.0.113.1:2375"),
        ("HOME", "/root"),
    ]);
    assert_eq!(
        settings.unwrap().foreign,
        [
            "SANDBOX_DOCKER_IMAGE",
            "E2B_API_KEY",
            "E2B_TEMPLATE",
            "DOCKER_SBX_USERNAME"
        ]
    );
}

/// Everything that is read is declared and in the help, and everything declared
/// for the daemon itself is really read.
#[test]
fn the_help_names_every_variable_read() {
    let help = help();
    let words: BTreeSet<&str> = help
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let mut read = BTreeSet::new();
    for variables in [vec![], wasm(&[]), vec![("PLIMSOLL_TOKEN", TOKEN)]] {
        let (settings, names) = Settings::read_recording(&environment(&variables));
        assert!(settings.is_ok() || cfg!(not(feature = "wasm")));
        read.extend(names);
    }
    for name in &read {
        assert!(words.contains(name), "the help does not name {name}");
    }
    for variable in VARIABLES {
        assert!(words.contains(variable.name), "{}", variable.name);
        if !matches!(variable.group, Group::Provider(_)) {
            assert!(
                read.contains(variable.name),
                "{} is never read",
                variable.name
            );
        }
    }
    let names: BTreeSet<&str> = VARIABLES.iter().map(|v| v.name).collect();
    assert_eq!(names.len(), VARIABLES.len(), "a variable is declared twice");
}
