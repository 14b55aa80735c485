//! What the engine says of a container, compared with what was asked for.
//!
//! An engine, a plugin or a default of its configuration can add to or take
//! from a request. A container that is not as requested never starts.

use std::collections::BTreeSet;

use super::image;
use bollard::models::{
    ContainerCreateBody, ContainerInspectResponse, HostConfig, RestartPolicyNameEnum,
};

/// Paths of every engine's own list that no guest may read.
const MASKED: [&str; 4] = [
    "/proc/kcore",
    "/proc/keys",
    "/proc/timer_list",
    "/sys/firmware",
];
/// Paths of every engine's own list that no guest may write.
const READ_ONLY: [&str; 5] = [
    "/proc/bus",
    "/proc/fs",
    "/proc/irq",
    "/proc/sys",
    "/proc/sysrq-trigger",
];

/// Everything that differs, in words for the log; empty when nothing does.
pub(super) fn differences(
    asked: &ContainerCreateBody,
    seen: &ContainerInspectResponse,
) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut same = |what, same: bool| {
        if !same {
            found.push(what);
        }
    };
    let config = seen.config.clone().unwrap_or_default();
    same("image", seen.image == asked.image);
    same("user", config.user == asked.user);
    same("entrypoint", config.entrypoint == asked.entrypoint);
    same("command", config.cmd == asked.cmd);
    same("working directory", config.working_dir == asked.working_dir);
    same("terminal", config.tty == asked.tty);
    same("standard input", config.open_stdin == asked.open_stdin);
    same("standard input once", config.stdin_once == asked.stdin_once);
    let test = |health: &Option<bollard::models::HealthConfig>| {
        health.as_ref().and_then(|health| health.test.clone())
    };
    same(
        "health check",
        test(&config.healthcheck) == test(&asked.healthcheck),
    );
    same("volumes", is_empty(&config.volumes));
    // The image's, which was judged, and what an engine adds for its own ends.
    same(
        "environment",
        config
            .env
            .iter()
            .flatten()
            .all(|entry| !image::is_read_early(entry)),
    );
    same(
        "AppArmor profile",
        seen.app_armor_profile.as_deref() != Some("unconfined"),
    );
    same(
        "labels",
        asked.labels.iter().flatten().all(|(name, value)| {
            config.labels.as_ref().and_then(|labels| labels.get(name)) == Some(value)
        }),
    );
    let networks = seen
        .network_settings
        .as_ref()
        .and_then(|settings| settings.networks.as_ref());
    same(
        "networks",
        networks.is_none_or(|networks| networks.keys().all(|name| name == "none")),
    );
    let default = HostConfig::default();
    let host = seen.host_config.as_ref().unwrap_or(&default);
    let wanted = asked.host_config.as_ref().unwrap_or(&default);
    found.extend(host_differences(wanted, host));
    found
}

fn host_differences(wanted: &HostConfig, host: &HostConfig) -> Vec<&'static str> {
    let mut found = Vec::new();
    let mut same = |what, same: bool| {
        if !same {
            found.push(what);
        }
    };
    same("network mode", host.network_mode == wanted.network_mode);
    same(
        "runtime",
        wanted.runtime.is_none() || host.runtime == wanted.runtime,
    );
    same("memory", host.memory == wanted.memory);
    same("swap", host.memory_swap == wanted.memory_swap);
    same("cpus", host.nano_cpus == wanted.nano_cpus);
    same("process limit", host.pids_limit == wanted.pids_limit);
    same("read-only root", host.readonly_rootfs == Some(true));
    same("tmpfs", host.tmpfs == wanted.tmpfs);
    same("capabilities", host.cap_drop == wanted.cap_drop);
    same("security options", host.security_opt == wanted.security_opt);
    same("ulimits", host.ulimits == wanted.ulimits);
    same("ipc mode", host.ipc_mode == wanted.ipc_mode);
    same(
        "log driver",
        host.log_config.as_ref().and_then(|log| log.typ.as_deref()) == Some("none"),
    );
    same("removal", host.auto_remove != Some(true));
    same("mounts", mounts(host) == mounts(wanted));
    same("binds", is_empty(&host.binds));
    same("volumes from", is_empty(&host.volumes_from));
    same("privileged", host.privileged != Some(true));
    same("added capabilities", is_empty(&host.cap_add));
    same("devices", is_empty(&host.devices));
    same("device rules", is_empty(&host.device_cgroup_rules));
    same("device requests", is_empty(&host.device_requests));
    same("groups", is_empty(&host.group_add));
    same("hosts", is_empty(&host.extra_hosts));
    same(
        "sysctls",
        host.sysctls
            .as_ref()
            .is_none_or(std::collections::HashMap::is_empty),
    );
    let own = |mode: &Option<String>| mode.as_deref().is_none_or(str::is_empty);
    same("pid mode", own(&host.pid_mode));
    same("uts mode", own(&host.uts_mode));
    same("user namespace", own(&host.userns_mode));
    same("oom killer", host.oom_kill_disable != Some(true));
    let asked_or = |seen: Option<i64>, none: i64| seen.is_none_or(|seen| seen == none);
    same("oom score", asked_or(host.oom_score_adj, 0));
    same("swappiness", asked_or(host.memory_swappiness, -1));
    same("control group", own(&host.cgroup_parent));
    same(
        "restarts",
        host.restart_policy.as_ref().is_none_or(|policy| {
            use RestartPolicyNameEnum as Name;
            matches!(policy.name, None | Some(Name::EMPTY | Name::NO))
        }),
    );
    same("masked paths", holds(&host.masked_paths, &MASKED));
    same("read-only paths", holds(&host.readonly_paths, &READ_ONLY));
    found
}

/// Whether a list that is the engine's to choose, when it is told at all, has
/// at least these.
fn holds(list: &Option<Vec<String>>, least: &[&str]) -> bool {
    list.as_ref().is_none_or(|list| {
        least
            .iter()
            .all(|path| list.iter().any(|listed| listed == path))
    })
}

/// The mounts as a set: an engine lists them in no fixed order.
fn mounts(host: &HostConfig) -> BTreeSet<(String, String, String, bool)> {
    host.mounts
        .iter()
        .flatten()
        .map(|mount| {
            (
                mount.target.clone().unwrap_or_default(),
                mount.source.clone().unwrap_or_default(),
                mount.typ.map(|kind| kind.to_string()).unwrap_or_default(),
                mount.read_only == Some(true),
            )
        })
        .collect()
}

fn is_empty<T>(list: &Option<Vec<T>>) -> bool {
    list.as_ref().is_none_or(Vec::is_empty)
}
