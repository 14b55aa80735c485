//! What the engine says of a container, compared with what was asked for.
//!
//! An engine, a plugin or a default of its configuration can add to or take
//! from a request. A container that is not as requested never starts: all that
//! was asked for must be there, and whatever the engine tells of that was not
//! asked for must say nothing, unless it is named here.

use std::{
    collections::BTreeSet,
    path::{Component, Path, PathBuf},
};

use bollard::models::{
    ContainerConfig, ContainerCreateBody, ContainerInspectResponse, HealthConfig, HostConfig,
    RestartPolicyNameEnum,
};
use serde_json::{Map, Value};

/// What a container was asked to be.
pub(super) struct Asked {
    /// The body of its creation.
    pub(super) body: ContainerCreateBody,
    /// The environment its image gives it; nothing else is asked for.
    pub(super) environment: Vec<String>,
    /// The runtime it is to run under, also when the body names none.
    pub(super) runtime: String,
}

/// Settings of a container that are judged here one by one.
const CONFIG_JUDGED: [&str; 4] = ["Env", "Healthcheck", "Hostname", "Labels"];
/// What an image says for itself and nothing of ours uses.
const CONFIG_OF_IMAGES: [&str; 5] = [
    "ArgsEscaped",
    "ExposedPorts",
    "OnBuild",
    "Shell",
    "StopSignal",
];
/// Parts of a creation's body that are no setting of the container's own.
const BODY_ALONE: [&str; 2] = ["HostConfig", "NetworkingConfig"];

/// Settings of the host's side that are judged here one by one.
const HOST_JUDGED: [&str; 7] = [
    "LogConfig",
    "MaskedPaths",
    "MemorySwappiness",
    "Mounts",
    "ReadonlyPaths",
    "RestartPolicy",
    "Runtime",
];
/// What every engine fills in by itself: the kind of control group namespace,
/// words of terminals and of Windows, and the size of a `/dev/shm` that ours is
/// mounted over.
const HOST_OF_ENGINES: [&str; 4] = ["CgroupnsMode", "ConsoleSize", "Isolation", "ShmSize"];

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

/// Everything that differs, by the engine's names, for the log; empty when
/// nothing does.
pub(super) fn differences(asked: &Asked, seen: &ContainerInspectResponse) -> Vec<String> {
    let config = seen.config.clone().unwrap_or_default();
    let host = seen.host_config.clone().unwrap_or_default();
    let wanted = asked.body.host_config.clone().unwrap_or_default();
    let mut found = Vec::new();
    let mut same = |what: &str, same: bool| {
        if !same {
            found.push(what.to_owned());
        }
    };
    same("Image", seen.image == asked.body.image);
    same("Path", starts(asked, seen));
    same(
        "AppArmorProfile",
        seen.app_armor_profile.as_deref() != Some("unconfined"),
    );
    let networks = seen
        .network_settings
        .as_ref()
        .and_then(|settings| settings.networks.as_ref());
    same(
        "NetworkSettings.Networks",
        networks.is_none_or(|networks| networks.keys().all(|name| name == "none")),
    );
    same("Mounts", mount_points(seen) == mounts(&wanted));
    found.extend(config_differences(asked, &config, seen.id.as_deref()));
    found.extend(host_differences(asked, &wanted, &host));
    found
}

/// Whether the program that will start is the one asked for, when the engine
/// says so besides its settings.
fn starts(asked: &Asked, seen: &ContainerInspectResponse) -> bool {
    let words = [&asked.body.entrypoint, &asked.body.cmd];
    let mut words = words.into_iter().flatten().flatten();
    let program = words.next();
    (seen.path.is_none() || seen.path.as_ref() == program)
        && seen.args.as_ref().is_none_or(|args| args.iter().eq(words))
}

fn config_differences(asked: &Asked, config: &ContainerConfig, id: Option<&str>) -> Vec<String> {
    let judged = [&CONFIG_JUDGED[..], &CONFIG_OF_IMAGES, &BODY_ALONE].concat();
    let mut found = unlike("Config.", &judged, &asked.body, config);
    let mut same = |what: &str, same: bool| {
        if !same {
            found.push(what.to_owned());
        }
    };
    let sorted = |entries: &[String]| {
        let mut entries = entries.to_vec();
        entries.sort();
        entries
    };
    // Its programs start with none of it; but what somebody adds here, a proxy's
    // password say, was not asked for.
    let environment = config.env.as_deref().unwrap_or_default();
    same(
        "Config.Env",
        sorted(environment) == sorted(&asked.environment),
    );
    // The image's intervals are merged into it.
    let test = |health: &Option<HealthConfig>| health.as_ref().and_then(|it| it.test.clone());
    same(
        "Config.Healthcheck",
        test(&config.healthcheck) == test(&asked.body.healthcheck),
    );
    let hostname = config.hostname.as_deref().unwrap_or_default();
    same(
        "Config.Hostname",
        id.unwrap_or_default().starts_with(hostname),
    );
    // The image's come along.
    same(
        "Config.Labels",
        asked.body.labels.iter().flatten().all(|(name, value)| {
            config.labels.as_ref().and_then(|labels| labels.get(name)) == Some(value)
        }),
    );
    found
}

fn host_differences(asked: &Asked, wanted: &HostConfig, host: &HostConfig) -> Vec<String> {
    let judged = [&HOST_JUDGED[..], &HOST_OF_ENGINES].concat();
    let mut found = unlike("HostConfig.", &judged, wanted, host);
    let mut same = |what: &str, same: bool| {
        if !same {
            found.push(format!("HostConfig.{what}"));
        }
    };
    same(
        "Runtime",
        host.runtime.as_deref() == Some(asked.runtime.as_str()),
    );
    same(
        "LogConfig",
        host.log_config.as_ref().and_then(|log| log.typ.as_deref()) == Some("none"),
    );
    same("Mounts", mounts(host) == mounts(wanted));
    same(
        "MemorySwappiness",
        host.memory_swappiness.is_none_or(|seen| seen == -1),
    );
    same(
        "RestartPolicy",
        host.restart_policy.as_ref().is_none_or(|policy| {
            use RestartPolicyNameEnum as Name;
            matches!(policy.name, None | Some(Name::EMPTY | Name::NO))
        }),
    );
    same("MaskedPaths", holds(&host.masked_paths, &MASKED));
    same("ReadonlyPaths", holds(&host.readonly_paths, &READ_ONLY));
    found
}

/// The settings, by name, that are not the same on both sides and not on both
/// sides a way to say nothing; `judged` ones aside.
fn unlike<A, S>(place: &str, judged: &[&str], asked: &A, seen: &S) -> Vec<String>
where
    A: serde::Serialize,
    S: serde::Serialize,
{
    let (asked, seen) = (members(asked), members(seen));
    let names: BTreeSet<&String> = asked.keys().chain(seen.keys()).collect();
    let none = Value::Null;
    names
        .into_iter()
        .filter(|name| !judged.contains(&name.as_str()))
        .filter(|name| {
            let asked = asked.get(*name).unwrap_or(&none);
            let seen = seen.get(*name).unwrap_or(&none);
            asked != seen && !(says_nothing(asked) && says_nothing(seen))
        })
        .map(|name| format!("{place}{name}"))
        .collect()
}

fn members(settings: &impl serde::Serialize) -> Map<String, Value> {
    match serde_json::to_value(settings) {
        Ok(Value::Object(members)) => members,
        _ => Map::new(),
    }
}

/// Whether a value is what engines put where nothing is set.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(set) => !set,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
    }
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

/// A mount: where, of what, of which kind, read-only. Compared as sets, since an
/// engine lists them in no fixed order.
type Mounted = BTreeSet<(PathBuf, PathBuf, String, bool)>;

fn mounts(host: &HostConfig) -> Mounted {
    host.mounts
        .iter()
        .flatten()
        .map(|mount| {
            (
                cleaned(mount.target.as_deref()),
                cleaned(mount.source.as_deref()),
                mount.typ.map(|kind| kind.to_string()).unwrap_or_default(),
                mount.read_only == Some(true),
            )
        })
        .collect()
}

/// The mounts that the engine will make, volumes of its own included; those of
/// its temporary file systems are among the settings.
fn mount_points(seen: &ContainerInspectResponse) -> Mounted {
    seen.mounts
        .iter()
        .flatten()
        .map(|mount| {
            (
                cleaned(mount.destination.as_deref()),
                cleaned(mount.source.as_deref()),
                mount.typ.clone().unwrap_or_default(),
                mount.rw == Some(false),
            )
        })
        .collect()
}

/// A path as an engine writes it: without repeated separators, `.` and `..`.
fn cleaned(path: Option<&str>) -> PathBuf {
    let mut clean = PathBuf::new();
    for component in Path::new(path.unwrap_or_default()).components() {
        match component {
            Component::ParentDir => {
                clean.pop();
            }
            other => clean.push(other),
        }
    }
    clean
}
