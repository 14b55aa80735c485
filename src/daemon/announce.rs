//! The lines of a start. Log parsers match on their messages and key order.

use crate::{
    config::{Auth, Settings},
    hardened::rules::is_loopback,
    log::Log,
    provider::{Provider, TierNow, tier_name},
};

/// What of the settings an operator may not expect.
pub(crate) fn settings(settings: &Settings, log: &Log) {
    for name in &settings.foreign {
        log.warn("setting of another provider ignored")
            .text("name", name)
            .text("provider", settings.provider.name())
            .end();
    }
    if let Some(clamp) = settings.clamp {
        log.warn("SANDBOX_TOTAL_MEMORY_MB lowers SANDBOX_MAX_CONCURRENT")
            .int("max_concurrent", clamp.asked)
            .int("fit", clamp.fit)
            .end();
    }
    if let Auth::Registry(registry) = &settings.auth {
        log.info("multi-client auth enabled")
            .int("clients", count(registry.callers().len()))
            .end();
    }
    if matches!(settings.auth, Auth::Open) {
        log.warn("no authentication: everyone who can connect is the same caller")
            .text("provider", settings.provider.name())
            .end();
    }
}

/// Metrics tell how busy a daemon is and which routes its guests call.
pub(crate) fn metrics_address(settings: &Settings, log: &Log) {
    if let Some(address) = &settings.metrics_address
        && !is_loopback(address)
    {
        log.warn("metrics are served without authentication beyond this machine")
            .text("addr", address)
            .end();
    }
}

/// The provider is proven.
pub(crate) fn ready(provider: &dyn Provider, proven: TierNow, log: &Log) {
    log.info("sandbox provider ready")
        .text("provider", provider.name())
        .end();
    if provider.name() == "docker" && proven == Some(plimsoll_wire::Tier::Container) {
        log.warn("containers share this host's kernel: use gVisor (SANDBOX_DOCKER_RUNTIME=runsc) for hostile code")
            .text("provider", provider.name())
            .text("isolation", tier_name(proven))
            .end();
    }
}

/// Where a daemon listens.
pub(crate) struct Addresses {
    pub(crate) rpc: String,
    pub(crate) metrics: Option<String>,
    pub(crate) connection_cap: Option<usize>,
}

/// The listening line.
pub(crate) fn listening(
    settings: &Settings,
    provider: &dyn Provider,
    proven: TierNow,
    addresses: &Addresses,
    log: &Log,
) {
    let limits = settings.limits;
    let resources = provider.resources();
    log.info("plimsolld listening")
        .text("addr", &addresses.rpc)
        .text("provider", provider.name())
        .text("isolation", tier_name(proven))
        .bool("auth", !matches!(settings.auth, Auth::Open))
        .int("max_concurrent", limits.max_concurrent)
        .int("per_key_concurrent", limits.per_key)
        .int("rate_per_min", limits.rate_per_min)
        .int("rate_burst", limits.burst)
        .int("mem_mb", resources.memory_mb)
        .float("cpus", resources.cpus)
        .int("pids", resources.pids)
        .int("disk_mb", resources.disk_mb)
        .bool("tls", settings.tls.is_some())
        .text(
            "metrics_addr",
            addresses.metrics.as_deref().unwrap_or("off"),
        )
        .text("guard_addr", "none")
        // 0 is no bound.
        .int("max_connections", addresses.connection_cap.map_or(0, count))
        .end();
}

/// A count as the log writes one.
pub(crate) fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
