//! The rules for each group of settings.

use plimsoll_wire::Tier;

use super::{
    environment::{Environment, Reader, refused},
    error::{ConfigError, Fault},
    providers::{Cap, Profile},
    settings::{Clamp, TlsFiles},
    variable as v,
    variable::{Group, VARIABLES},
};
use crate::{admission::Limits, log::Format, provider::Resources};

/// One run's memory when none is set, for the host's memory budget.
const ASSUMED_MEMORY_MB: u64 = 256;
/// Where metrics are served when nothing is set: to this machine only.
const METRICS_ADDRESS: &str = "127.0.0.1:9464";

pub(super) fn log_format(reader: &Reader<'_>) -> Format {
    match reader.text(&v::PLIMSOLL_LOG_FORMAT) {
        Ok(text) if text.eq_ignore_ascii_case("text") => Format::Text,
        _ => Format::Json,
    }
}

pub(super) fn envelope(reader: &Reader<'_>, profile: &Profile) -> Result<Resources, ConfigError> {
    let mut resources = Resources {
        memory_mb: reader.count(&v::SANDBOX_MEMORY_MB)?,
        cpus: reader.float(&v::SANDBOX_CPUS)?,
        pids: reader.count(&v::SANDBOX_PIDS)?,
        disk_mb: reader.count(&v::SANDBOX_DISK_MB)?,
    };
    for cap in profile.cannot_cap {
        let set = match cap {
            Cap::Memory => resources.memory_mb > 0,
            Cap::Cpus => resources.cpus > 0.0,
            Cap::Pids => resources.pids > 0,
            Cap::Disk => resources.disk_mb > 0,
        };
        if set {
            return Err(ConfigError::CannotCap {
                variable: cap.variable().name,
                why: profile.cap_words,
            });
        }
    }
    if let Some(most) = profile.most_memory_mb {
        resources.memory_mb = resources.memory_mb.min(most);
    }
    Ok(resources)
}

/// `SANDBOX_GUEST_UID` is read by the provider it means something to.
pub(super) fn guest_uid(reader: &Reader<'_>, profile: &Profile) -> Result<(), ConfigError> {
    if profile.guest_uid {
        return Ok(());
    }
    absent_with(
        reader,
        &v::SANDBOX_GUEST_UID,
        profile,
        "does not choose a guest's user",
    )
}

/// An egress guard's address goes with a provider that serves one, and with no
/// other: a listener nobody serves would look like a protection.
pub(super) fn guard(reader: &Reader<'_>, profile: &Profile) -> Result<(), ConfigError> {
    if profile.guard {
        return later(
            reader,
            &v::PLIMSOLL_GUARD_ADDR,
            "there is no guard listener yet",
        );
    }
    absent_with(
        reader,
        &v::PLIMSOLL_GUARD_ADDR,
        profile,
        "serves no egress guard",
    )
}

/// The daemon's own daily allowance.
pub(super) fn paid_seconds(reader: &Reader<'_>, profile: &Profile) -> Result<u64, ConfigError> {
    let seconds = reader.count(&v::SANDBOX_PAID_SECONDS_PER_DAY)?;
    if seconds > 0 && !profile.metered {
        return Err(not_with(
            &v::SANDBOX_PAID_SECONDS_PER_DAY,
            profile,
            "is not billed by the second",
        ));
    }
    Ok(seconds)
}

pub(super) fn min_isolation(reader: &Reader<'_>) -> Result<Option<Tier>, ConfigError> {
    let value = reader.text(&v::SANDBOX_MIN_ISOLATION)?;
    if value.is_empty() {
        return Ok(None);
    }
    match Tier::parse(&value.to_ascii_lowercase()) {
        Some(tier) if tier > Tier::None => Ok(Some(tier)),
        _ => Err(refused(&v::SANDBOX_MIN_ISOLATION, value, Fault::NotATier)),
    }
}

/// What the host's memory is shared by.
#[derive(Clone, Copy, Debug)]
pub(super) struct HostMemory {
    /// For all runs; 0 is no budget.
    pub(super) total_mb: u64,
    /// Of one run; 0 is the provider's default.
    pub(super) per_run_mb: u64,
    /// Sandboxes kept ready, which come first.
    pub(super) pool: u64,
}

pub(super) fn limits(
    reader: &Reader<'_>,
    host: HostMemory,
) -> Result<(Limits, Option<Clamp>), ConfigError> {
    let asked = reader
        .integer(&v::SANDBOX_MAX_CONCURRENT, 1, Some(1024))?
        .map_or(8, |n| u32::try_from(n).unwrap_or(1024));
    let max_concurrent = clamped(asked, host)?;
    let per_key = reader
        .integer(
            &v::SANDBOX_PER_KEY_CONCURRENT,
            0,
            Some(max_concurrent.into()),
        )?
        .map_or((max_concurrent / 2).max(1), |n| {
            u32::try_from(n).unwrap_or(max_concurrent)
        });
    let rate_per_min = reader
        .integer(&v::SANDBOX_RATE_PER_MIN, 0, None)?
        .unwrap_or(30)
        .unsigned_abs();
    let burst = match reader.count(&v::SANDBOX_RATE_BURST)? {
        0 => rate_per_min,
        burst => burst,
    };
    let limits = Limits {
        max_concurrent,
        per_key,
        rate_per_min,
        burst,
    };
    let clamp = (max_concurrent < asked).then_some(Clamp {
        asked,
        fit: max_concurrent,
    });
    Ok((limits, clamp))
}

/// How many runs at once the host's memory holds beside those kept ready.
pub(super) fn clamped(asked: u32, host: HostMemory) -> Result<u32, ConfigError> {
    if host.total_mb == 0 {
        return Ok(asked);
    }
    let per_run = if host.per_run_mb == 0 {
        ASSUMED_MEMORY_MB
    } else {
        host.per_run_mb
    };
    match (host.total_mb / per_run).saturating_sub(host.pool) {
        0 => Err(ConfigError::MemoryBudget {
            total: host.total_mb,
            per_run,
            pool: host.pool,
        }),
        fit => Ok(asked.min(u32::try_from(fit).unwrap_or(asked))),
    }
}

pub(super) fn tls(reader: &Reader<'_>) -> Result<Option<TlsFiles>, ConfigError> {
    let half = |set: &v::Variable, missing: &v::Variable| ConfigError::HalfAPair {
        set: set.name,
        missing: missing.name,
    };
    let certificate = reader.text(&v::PLIMSOLL_TLS_CERT)?;
    let key = reader.text(&v::PLIMSOLL_TLS_KEY)?;
    match (certificate.is_empty(), key.is_empty()) {
        (true, true) => Ok(None),
        (false, true) => Err(half(&v::PLIMSOLL_TLS_CERT, &v::PLIMSOLL_TLS_KEY)),
        (true, false) => Err(half(&v::PLIMSOLL_TLS_KEY, &v::PLIMSOLL_TLS_CERT)),
        (false, false) => Ok(Some(TlsFiles {
            certificate: certificate.into(),
            key: key.into(),
        })),
    }
}

/// The metrics listen address; `None` is off. Only the exact word switches it
/// off: an operator who wrote `no` must not find an open port.
pub(super) fn metrics(reader: &Reader<'_>) -> Result<Option<String>, ConfigError> {
    match reader.text(&v::PLIMSOLL_METRICS_ADDR)? {
        "" => Ok(Some(METRICS_ADDRESS.to_owned())),
        off if off.eq_ignore_ascii_case("off") => Ok(None),
        address if has_port(address) => Ok(Some(address.to_owned())),
        value => Err(refused(&v::PLIMSOLL_METRICS_ADDR, value, Fault::NoPort)),
    }
}

/// Whether text is `host:port`, the host possibly empty or in brackets.
fn has_port(address: &str) -> bool {
    address.rsplit_once(':').is_some_and(|(host, port)| {
        let bracketed = host.starts_with('[') && host.ends_with(']');
        (bracketed || !host.contains(':'))
            && port.bytes().all(|b| b.is_ascii_digit())
            && port.parse::<u16>().is_ok()
    })
}

pub(super) fn later(
    reader: &Reader<'_>,
    variable: &v::Variable,
    instead: &'static str,
) -> Result<(), ConfigError> {
    if reader.text(variable)?.is_empty() {
        return Ok(());
    }
    Err(ConfigError::NotInThisBuild {
        variable: variable.name,
        instead,
    })
}

pub(super) fn absent_with(
    reader: &Reader<'_>,
    variable: &v::Variable,
    profile: &Profile,
    why: &'static str,
) -> Result<(), ConfigError> {
    if reader.text(variable)?.is_empty() {
        return Ok(());
    }
    Err(not_with(variable, profile, why))
}

pub(super) fn not_with(
    variable: &v::Variable,
    profile: &Profile,
    why: &'static str,
) -> ConfigError {
    ConfigError::NotWithProvider {
        variable: variable.name,
        provider: profile.name,
        why,
    }
}

/// Prefixes of names that mean a provider of this program. Other names of a
/// provider's settings, such as `DOCKER_HOST` and `HOME`, are everybody's.
const PROVIDERS_OWN: [&str; 3] = ["SANDBOX_", "E2B_", "DOCKER_SBX_"];

/// Settings of providers that are not chosen, in names that are no other
/// program's.
pub(super) fn foreign(environment: &Environment, profile: &Profile) -> Vec<&'static str> {
    VARIABLES
        .iter()
        .filter(|v| matches!(v.group, Group::Provider(name) if name != profile.name))
        .filter(|v| PROVIDERS_OWN.iter().any(|own| v.name.starts_with(own)))
        .filter(|v| environment.is_set(v.name))
        .map(|v| v.name)
        .collect()
}
