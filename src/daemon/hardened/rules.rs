//! The rules, in the order in which they are reported.

use std::net::IpAddr;

use plimsoll_wire::Tier;

use super::{
    Situation, Violation,
    facts::{CPUS, DISK, Facts, MEMORY, PIDS, TOTAL_MEMORY},
};
use crate::{
    config::{Variable, variable as v},
    provider::TierNow,
};

/// Rule 1: the shared kernel of a container is no boundary against strangers.
pub(super) fn isolation(proven: TierNow) -> Option<Violation> {
    (proven < Some(Tier::Kernel)).then_some(Violation::Isolation { proven })
}

/// Every other rule. `proven` is known in the full pass only.
pub(super) fn settings(
    facts: &Facts,
    situation: &Situation<'_>,
    proven: Option<TierNow>,
) -> Vec<Violation> {
    let mut found = Vec::new();
    let mut rule = |broken: bool, violation: Violation| {
        if broken {
            found.push(violation);
        }
    };
    rule(!situation.registry, Violation::NoRegistry);
    rule(facts.insecure, Violation::Insecure);
    for (variable, address) in [
        (&v::PLIMSOLL_ADDR, Some(situation.address)),
        (&v::PLIMSOLL_METRICS_ADDR, situation.metrics),
        (&v::PLIMSOLL_GUARD_ADDR, situation.guard),
    ] {
        let open = address.is_some_and(|address| !is_loopback(address));
        let variable = variable.name;
        rule(open && !situation.tls, Violation::ClearText { variable });
    }
    let not_pinned = |variable: &Variable| Violation::NotPinned {
        variable: variable.name,
    };
    match situation.provider {
        "docker" => {
            rule(!facts.pinned, not_pinned(&v::SANDBOX_REQUIRE_PINNED_IMAGES));
            rule(facts.unconfined, Violation::Unconfined);
        }
        "dockercloud" => {
            let unbound = !facts.pinned && !facts.store_image;
            rule(unbound, not_pinned(&v::SANDBOX_REQUIRE_PINNED_IMAGES));
            rule(!facts.connect, Violation::NotConnect);
        }
        "e2b" => rule(!facts.template, Violation::NoTemplate),
        "openshell" => rule(!facts.pinned, not_pinned(&v::SANDBOX_REQUIRE_PINNED_IMAGES)),
        _ => {}
    }
    for variable in envelope(situation.provider, proven) {
        let no_bound = Violation::NoBound {
            variable: variable.name,
        };
        rule(!facts.has_bound(variable), no_bound);
    }
    let limits = situation.limits;
    rule(limits.rate_per_min == 0, Violation::NoRate);
    let burst = limits.rate_per_min > 0 && limits.burst > limits.rate_per_min;
    rule(burst, Violation::Burst);
    rule(limits.per_key == 0, Violation::NoCallerCap);
    let max = limits.max_concurrent;
    rule(limits.per_key >= max, Violation::CallerTakesAll { max });
    let sessions_open = situation.sessions > 0 && situation.sessions_per_caller == 0;
    rule(sessions_open, Violation::NoSessionCap);
    let callers = situation.without_allowance.clone();
    let unpaid = situation.metered && !callers.is_empty();
    rule(unpaid, Violation::NoAllowance { callers });
    found
}

/// The bounds a provider must have. agentsandbox refuses one on disk under the
/// vm tier, which only the full pass can know.
fn envelope(provider: &str, proven: Option<TierNow>) -> Vec<&'static Variable> {
    match provider {
        "docker" => vec![MEMORY, CPUS, DISK, PIDS, TOTAL_MEMORY],
        "dockercloud" => vec![MEMORY, CPUS],
        "agentsandbox" => match proven {
            None | Some(Some(Tier::Vm)) => vec![MEMORY, CPUS],
            Some(_) => vec![MEMORY, CPUS, DISK],
        },
        _ => vec![MEMORY, CPUS, DISK],
    }
}

/// Whether a listen address is reached from this machine only. A name other
/// than `localhost` is not: who resolves it decides where it leads.
pub(crate) fn is_loopback(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else {
        return false;
    };
    if port.parse::<u16>().is_err() {
        return false;
    }
    if host.eq_ignore_ascii_case("localhost") {
        return true;
    }
    let bracketed = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    match bracketed {
        Some(host) => host
            .parse()
            .is_ok_and(|ip: std::net::Ipv6Addr| ip.is_loopback()),
        None => host
            .parse()
            .is_ok_and(|ip: IpAddr| ip.is_ipv4() && ip.is_loopback()),
    }
}
