//! The rules of every variable, as its table has them: what is taken, what is
//! refused with the variable and the value named, and what holds unset.

use std::time::Duration;

use plimsoll_wire::Tier;

use super::{Choice, Environment, Settings};

const TOKEN: (&str, &str) = ("PLIMSOLL_TOKEN", "0123456789abcdef0123456789abcdef");

fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
    let variables = variables.iter().map(|(n, v)| (n.into(), v.into()));
    Settings::read(&Environment::new(variables)).map_err(|error| error.to_string())
}

fn taken(name: &str, value: &str) -> Settings {
    match read(&[(name, value)]) {
        Ok(settings) => settings,
        Err(error) => panic!("{name}={value:?}: {error}"),
    }
}

fn refused(name: &str, value: &str) {
    let Err(text) = read(&[(name, value)]) else {
        panic!("{name}={value:?} was taken")
    };
    assert!(text.contains(name), "{text:?} does not name {name}");
    let shown = format!("{:?}", value.trim());
    assert!(text.contains(&shown), "{text:?} does not show {shown}");
}

#[test]
fn numbers_of_at_least_0() {
    for name in [
        "SANDBOX_MEMORY_MB",
        "SANDBOX_PIDS",
        "SANDBOX_DISK_MB",
        "SANDBOX_TOTAL_MEMORY_MB",
        "SANDBOX_RATE_PER_MIN",
        "SANDBOX_RATE_BURST",
        "SANDBOX_PAID_SECONDS_PER_DAY",
        "SANDBOX_MAX_SESSIONS",
        "SANDBOX_MAX_SESSIONS_PER_CALLER",
        "SANDBOX_MAX_SESSIONS_PER_OWNER",
        "SANDBOX_SESSION_POOL",
        "SANDBOX_SESSION_DISK_MB",
        "SANDBOX_PER_KEY_CONCURRENT",
    ] {
        for value in ["", " ", "0", "+0", " -0\t"] {
            taken(name, value);
        }
        for value in [
            "-1",
            "1.5",
            "1e3",
            "0x10",
            "1_000",
            "1 0",
            "eight",
            "8MB",
            "9223372036854775808",
            "99999999999999999999999",
        ] {
            refused(name, value);
        }
    }
    assert_eq!(
        taken("SANDBOX_MEMORY_MB", " +256 ").resources.memory_mb,
        256
    );
    assert_eq!(taken("SANDBOX_PIDS", "64").resources.pids, 64);
    assert_eq!(taken("SANDBOX_DISK_MB", "64").resources.disk_mb, 64);
    assert_eq!(taken("SANDBOX_RATE_PER_MIN", "7").limits.burst, 7);
    let limits = taken("SANDBOX_RATE_BURST", "3").limits;
    assert_eq!((limits.rate_per_min, limits.burst), (30, 3));
}

#[test]
fn numbers_with_both_bounds() {
    for (name, good, bad) in [
        (
            "SANDBOX_MAX_CONCURRENT",
            &["", "1", " 8 ", "1024"][..],
            &["0", "1025", "-1", "8.0", "eight"][..],
        ),
        (
            "SANDBOX_PER_KEY_CONCURRENT",
            &["", "0", "1", "8"],
            &["9", "-1", "none"],
        ),
        (
            "SANDBOX_SESSION_DISK_MB",
            &["", "0", "1", "1048576"],
            &["1048577", "-1", "1G"],
        ),
        ("SANDBOX_SESSION_POOL", &["", "0"], &["1", "-1"]),
    ] {
        for value in good {
            taken(name, value);
        }
        for value in bad {
            refused(name, value);
        }
    }
    // The bound of a caller is the daemon's after the clamp.
    let clamped = |own| {
        let host = ("SANDBOX_TOTAL_MEMORY_MB", "1024");
        read(&[host, ("SANDBOX_PER_KEY_CONCURRENT", own)])
    };
    assert_eq!(clamped("4").unwrap().limits.per_key, 4);
    assert!(clamped("5").is_err_and(|text| text.contains("0 to 4")));
}

#[test]
fn cores() {
    for value in ["", "0", "0.5", "2", "1e1", ".5"] {
        taken("SANDBOX_CPUS", value);
    }
    for value in ["-0.5", "NaN", "inf", "+Infinity", "1e999", "1,5", "two"] {
        refused("SANDBOX_CPUS", value);
    }
}

#[test]
fn truth_values() {
    for name in ["PLIMSOLL_HARDENED", "SANDBOX_REQUIRE_PINNED_IMAGES"] {
        for (value, on) in [
            ("", false),
            ("0", false),
            (" FALSE ", false),
            ("1", true),
            ("True", true),
        ] {
            let settings = taken(name, value);
            let seen = match name {
                "PLIMSOLL_HARDENED" => settings.hardened.is_some(),
                _ => settings.pinned_images,
            };
            assert_eq!(seen, on, "{name}={value:?}");
        }
        for value in ["yes", "on", "off", "no", "2", "01", "t", "TRUE!"] {
            refused(name, value);
        }
    }
}

/// Where only `1` counts, nothing else is an error, and nothing else counts.
#[test]
fn switches_of_exactly_1() {
    for (value, on) in [
        ("1", true),
        ("", false),
        ("0", false),
        ("true", false),
        ("yes", false),
        ("01", false),
        ("11", false),
    ] {
        assert_eq!(taken("PLIMSOLL_EMBEDDED", value).embedded, on, "{value}");
        #[cfg(feature = "wasm")]
        {
            let wasm = ("SANDBOX_PROVIDER", "wasm");
            let open = read(&[wasm, ("PLIMSOLL_INSECURE", value)]);
            assert_eq!(open.is_ok(), on, "{value}");
        }
    }
}

#[test]
fn durations() {
    for (name, good, bad) in [
        (
            "SANDBOX_SESSION_LIFETIME",
            &["", "1s", "12h", "1h30m", "1500ms", "90s", " 30m "][..],
            &["0", "999ms", "12h1ns", "13h", "5", "-1s", "1 h", "1d", "1H"][..],
        ),
        (
            "SANDBOX_SESSION_IDLE",
            &["", "0", "0s", "1s", "12h", "2m30s"],
            &["500ms", "1ns", "12h0m1s", "13h", "5", "-1s", "never"],
        ),
    ] {
        for value in good {
            taken(name, value);
        }
        for value in bad {
            refused(name, value);
        }
    }
}

#[test]
fn words() {
    for (value, tier) in [
        ("process", Tier::Process),
        ("Container", Tier::Container),
        (" KERNEL ", Tier::Kernel),
        ("vm", Tier::Vm),
    ] {
        let settings = taken("SANDBOX_MIN_ISOLATION", value);
        assert_eq!(settings.min_isolation, Some(tier));
    }
    for value in ["none", "unknown", "kernel,vm", "0"] {
        refused("SANDBOX_MIN_ISOLATION", value);
    }
    assert_eq!(taken("SANDBOX_PROVIDER", " ").provider, Choice::Disabled);
    for value in ["none", "disabled", "docker,wasm", "wasm2"] {
        refused("SANDBOX_PROVIDER", value);
    }
    for value in ["no", "none", "disabled", "9464", "127.0.0.1", "::1", "h:"] {
        refused("PLIMSOLL_METRICS_ADDR", value);
    }
}

/// A value that is not trimmed is taken as it is.
#[test]
fn raw_values() {
    assert_eq!(taken("PLIMSOLL_ADDR", " :1").address, " :1");
    let spaced = format!("{} ", TOKEN.1);
    assert!(read(&[(TOKEN.0, &spaced)]).is_err());
}

/// Every default in one place.
#[test]
fn unset() {
    let settings = read(&[]).unwrap();
    assert_eq!(settings.address, ":8746");
    assert_eq!(settings.metrics_address.as_deref(), Some("127.0.0.1:9464"));
    assert!(settings.tls.is_none() && settings.hardened.is_none());
    assert!(!settings.embedded && !settings.pinned_images);
    assert_eq!(settings.min_isolation, None);
    let resources = settings.resources;
    assert_eq!(
        (resources.memory_mb, resources.pids, resources.disk_mb),
        (0, 0, 0)
    );
    assert_eq!(resources.cpus.to_bits(), 0);
    let limits = settings.limits;
    assert_eq!((limits.max_concurrent, limits.per_key), (8, 4));
    assert_eq!((limits.rate_per_min, limits.burst), (30, 30));
    assert_eq!(settings.paid_seconds_per_day, 0);
    let sessions = settings.sessions;
    assert_eq!((sessions.max, sessions.pool), (0, 0));
    assert_eq!((sessions.per_caller, sessions.per_owner), (0, 0));
    assert_eq!(sessions.lifetime, Duration::from_secs(30 * 60));
    assert_eq!(sessions.idle, Duration::from_secs(5 * 60));
    assert_eq!(sessions.disk_mb, 1024);
    for (max, own) in [("1", 1), ("2", 1), ("3", 1), ("9", 4)] {
        assert_eq!(taken("SANDBOX_MAX_CONCURRENT", max).limits.per_key, own);
    }
}
