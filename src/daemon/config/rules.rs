//! The rules for each group of settings.

use std::time::Duration;

use plimsoll_wire::Tier;

use super::{
    environment::{Environment, Reader, refused},
    error::{ConfigError, Fault},
    settings::{Auth, Choice, Clamp, SessionSettings, TlsFiles},
    variable as v,
    variable::{Group, VARIABLES},
};
use crate::{admission::Limits, log::Format, provider::Resources};

/// One run's memory when none is set, for the host's memory budget.
const ASSUMED_MEMORY_MB: u64 = 256;
/// The most memory a wasm guest can address.
const WASM_MEMORY_MB: u64 = 4096;
/// The shortest bearer token.
const MIN_TOKEN: usize = 32;
/// Where metrics are served when nothing is set: to this machine only.
const METRICS_ADDRESS: &str = "127.0.0.1:9464";
const SECOND: Duration = Duration::from_secs(1);
const HALF_DAY: Duration = Duration::from_secs(12 * 60 * 60);

pub(super) fn log_format(reader: &Reader<'_>) -> Format {
    match reader.text(&v::PLIMSOLL_LOG_FORMAT) {
        Ok(text) if text.eq_ignore_ascii_case("text") => Format::Text,
        _ => Format::Json,
    }
}

pub(super) fn envelope(reader: &Reader<'_>, provider: Choice) -> Result<Resources, ConfigError> {
    let mut resources = Resources {
        memory_mb: reader.count(&v::SANDBOX_MEMORY_MB)?,
        cpus: reader.float(&v::SANDBOX_CPUS)?,
        pids: reader.count(&v::SANDBOX_PIDS)?,
        disk_mb: reader.count(&v::SANDBOX_DISK_MB)?,
    };
    if provider == Choice::Wasm {
        // A cap that is not enforced is worse than none.
        for (variable, set) in [
            (&v::SANDBOX_CPUS, resources.cpus > 0.0),
            (&v::SANDBOX_PIDS, resources.pids > 0),
            (&v::SANDBOX_DISK_MB, resources.disk_mb > 0),
        ] {
            if set {
                return Err(ConfigError::WasmCaps {
                    variable: variable.name,
                });
            }
        }
        resources.memory_mb = resources.memory_mb.min(WASM_MEMORY_MB);
    }
    Ok(resources)
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

pub(super) fn sessions(reader: &Reader<'_>) -> Result<SessionSettings, ConfigError> {
    let max = reader.count(&v::SANDBOX_MAX_SESSIONS)?;
    let lifetime = reader.duration(&v::SANDBOX_SESSION_LIFETIME)?;
    let lifetime = lifetime.unwrap_or(Duration::from_secs(30 * 60));
    if !(SECOND..=HALF_DAY).contains(&lifetime) {
        let value = reader.text(&v::SANDBOX_SESSION_LIFETIME)?;
        return Err(refused(
            &v::SANDBOX_SESSION_LIFETIME,
            value,
            Fault::NotALifetime,
        ));
    }
    let idle = reader.duration(&v::SANDBOX_SESSION_IDLE)?;
    let idle = idle.unwrap_or(Duration::from_secs(5 * 60));
    if !idle.is_zero() && !(SECOND..=HALF_DAY).contains(&idle) {
        let value = reader.text(&v::SANDBOX_SESSION_IDLE)?;
        return Err(refused(
            &v::SANDBOX_SESSION_IDLE,
            value,
            Fault::NotAnIdleTime,
        ));
    }
    let most_pool = i64::try_from(max).unwrap_or(i64::MAX);
    Ok(SessionSettings {
        max,
        per_caller: reader.count(&v::SANDBOX_MAX_SESSIONS_PER_CALLER)?,
        per_owner: reader.count(&v::SANDBOX_MAX_SESSIONS_PER_OWNER)?,
        lifetime,
        idle,
        disk_mb: reader
            .integer(&v::SANDBOX_SESSION_DISK_MB, 0, Some(1 << 20))?
            .unwrap_or(1024)
            .unsigned_abs(),
        pool: reader
            .integer(&v::SANDBOX_SESSION_POOL, 0, Some(most_pool))?
            .unwrap_or(0)
            .unsigned_abs(),
    })
}

pub(super) fn limits(
    reader: &Reader<'_>,
    memory_mb: u64,
    pool: u64,
) -> Result<(Limits, Option<Clamp>), ConfigError> {
    let asked = reader
        .integer(&v::SANDBOX_MAX_CONCURRENT, 1, Some(1024))?
        .map_or(8, |n| u32::try_from(n).unwrap_or(1024));
    let total = reader.count(&v::SANDBOX_TOTAL_MEMORY_MB)?;
    let max_concurrent = clamped(asked, total, memory_mb, pool)?;
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

/// How many runs at once the host's memory holds beside the session pool.
pub(super) fn clamped(
    asked: u32,
    total: u64,
    memory_mb: u64,
    pool: u64,
) -> Result<u32, ConfigError> {
    if total == 0 {
        return Ok(asked);
    }
    let per_run = if memory_mb == 0 {
        ASSUMED_MEMORY_MB
    } else {
        memory_mb
    };
    match (total / per_run).saturating_sub(pool) {
        0 => Err(ConfigError::MemoryBudget {
            total,
            per_run,
            pool,
        }),
        fit => Ok(asked.min(u32::try_from(fit).unwrap_or(asked))),
    }
}

pub(super) fn auth(reader: &Reader<'_>, provider: Choice) -> Result<Auth, ConfigError> {
    later(
        reader,
        &v::PLIMSOLL_CLIENTS_FILE,
        "use PLIMSOLL_TOKEN for one shared caller",
    )?;
    let insecure = reader.exactly_one(&v::PLIMSOLL_INSECURE)?;
    let fault = |fault| ConfigError::Secret {
        variable: v::PLIMSOLL_TOKEN.name,
        fault,
    };
    match reader.secret(&v::PLIMSOLL_TOKEN)? {
        Some(token) if token.len() < MIN_TOKEN => Err(fault(Fault::ShortToken)),
        Some(token) if !token.bytes().all(|b| b.is_ascii_graphic()) => {
            Err(fault(Fault::UnusableToken))
        }
        Some(token) => Ok(Auth::Token(token)),
        None if provider == Choice::Disabled || insecure => Ok(Auth::Open),
        None => Err(ConfigError::NoAuthentication {
            provider: provider.name(),
        }),
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
    provider: Choice,
    why: &'static str,
) -> Result<(), ConfigError> {
    if reader.text(variable)?.is_empty() {
        return Ok(());
    }
    Err(not_with(variable, provider, why))
}

pub(super) fn not_with(variable: &v::Variable, provider: Choice, why: &'static str) -> ConfigError {
    ConfigError::NotWithProvider {
        variable: variable.name,
        provider: provider.name(),
        why,
    }
}

/// Settings of providers that are not chosen. Names outside the daemon's own
/// prefixes are left out: other programs use them too.
pub(super) fn foreign(environment: &Environment) -> Vec<&'static str> {
    VARIABLES
        .iter()
        .filter(|v| matches!(v.group, Group::Provider(_)) && v.name.starts_with("SANDBOX_"))
        .filter(|v| environment.is_set(v.name))
        .map(|v| v.name)
        .collect()
}
