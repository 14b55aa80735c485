//! The body of a container's creation: every option it has, in one place.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::Arc,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use bollard::models::{
    ContainerCreateBody, HealthConfig, HostConfig, HostConfigLogConfig, Mount, MountType,
    ResourcesUlimits,
};

use super::{image::Image, limits::MIB, storage::Storage};

/// Unix seconds by which a container should be gone.
pub(super) const EXPIRES: &str = "io.plimsoll.expires";
/// The socket of the daemon that made a container.
pub(super) const OWNER: &str = "io.plimsoll.owner";

/// What is the same for every container of a daemon.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Lockdown {
    /// OCI runtime; empty is the engine's own.
    pub(super) runtime: String,
    /// The seccomp option's value; `None` leaves the engine's own.
    pub(super) seccomp: Option<Arc<str>>,
    /// User and group.
    pub(super) uid: u32,
    /// MiB.
    pub(super) memory_mb: u64,
    /// Cores.
    pub(super) cpus: f64,
    /// Processes.
    pub(super) pids: u64,
    /// The resolver file on the host.
    pub(super) resolver: PathBuf,
    /// The socket that tells whether the owner lives.
    pub(super) owner: PathBuf,
}

/// What differs from one container to the next.
#[derive(Clone, Debug)]
pub(super) struct Container<'a> {
    /// What it is made from.
    pub(super) image: &'a Image,
    /// Its first process.
    pub(super) arguments: &'a [String],
    /// What it can write to.
    pub(super) storage: Storage,
    /// How long it may be needed from now on.
    pub(super) lifetime: Duration,
    /// A socket of the host at `/run/host-api.sock`.
    pub(super) socket: Option<PathBuf>,
    /// Whether its streams are attached.
    pub(super) attached: bool,
}

impl Lockdown {
    /// The whole body.
    pub(super) fn body(&self, container: &Container<'_>) -> ContainerCreateBody {
        let (entrypoint, command) = container
            .arguments
            .split_at(1.min(container.arguments.len()));
        let attached = Some(container.attached);
        ContainerCreateBody {
            image: Some(container.image.id.clone()),
            entrypoint: Some(entrypoint.to_vec()),
            cmd: Some(command.to_vec()),
            user: Some(self.user()),
            working_dir: Some(container.storage.directory().to_owned()),
            healthcheck: Some(HealthConfig {
                test: Some(vec!["NONE".to_owned()]),
                ..HealthConfig::default()
            }),
            labels: Some(HashMap::from([
                (EXPIRES.to_owned(), expiry(container.lifetime).to_string()),
                (OWNER.to_owned(), self.owner.display().to_string()),
            ])),
            attach_stdin: attached,
            attach_stdout: attached,
            attach_stderr: attached,
            open_stdin: attached,
            stdin_once: attached,
            tty: Some(false),
            host_config: Some(self.host_config(container)),
            ..ContainerCreateBody::default()
        }
    }

    /// The user of every process, as the engine takes it.
    pub(super) fn user(&self) -> String {
        format!("{0}:{0}", self.uid)
    }

    fn host_config(&self, container: &Container<'_>) -> HostConfig {
        let memory = i64::try_from(self.memory_mb.saturating_mul(MIB)).unwrap_or(i64::MAX);
        let mut security = vec!["no-new-privileges".to_owned()];
        if let Some(profile) = &self.seccomp {
            security.push(format!("seccomp={profile}"));
        }
        let mut mounts = vec![read_only(&self.resolver, "/etc/resolv.conf")];
        if let Some(socket) = &container.socket {
            mounts.push(read_only(socket, "/run/host-api.sock"));
        }
        HostConfig {
            network_mode: Some("none".to_owned()),
            runtime: (!self.runtime.is_empty()).then(|| self.runtime.clone()),
            memory: Some(memory),
            // Equal: no swap.
            memory_swap: Some(memory),
            nano_cpus: Some(nano_cpus(self.cpus)),
            pids_limit: Some(i64::try_from(self.pids).unwrap_or(i64::MAX)),
            readonly_rootfs: Some(true),
            tmpfs: Some(
                container
                    .storage
                    .mounts()
                    .iter()
                    .map(|mount| (mount.path.to_owned(), mount.options()))
                    .collect(),
            ),
            cap_drop: Some(vec!["ALL".to_owned()]),
            security_opt: Some(security),
            ulimits: Some(vec![
                ulimit("core", 0),
                ulimit("nofile", 4096),
                ulimit("msgqueue", 0),
            ]),
            ipc_mode: Some("private".to_owned()),
            // Hostile output must not reach a file of the host.
            log_config: Some(HostConfigLogConfig {
                typ: Some("none".to_owned()),
                config: None,
            }),
            auto_remove: Some(false),
            mounts: Some(mounts),
            ..HostConfig::default()
        }
    }
}

/// Billionths of a core; never 0, which is no limit to the engine.
fn nano_cpus(cores: f64) -> i64 {
    ((cores * 1e9).round() as i64).max(1)
}

fn read_only(source: &std::path::Path, target: &str) -> Mount {
    Mount {
        typ: Some(MountType::BIND),
        source: Some(source.display().to_string()),
        target: Some(target.to_owned()),
        read_only: Some(true),
        ..Mount::default()
    }
}

fn ulimit(name: &str, value: i64) -> ResourcesUlimits {
    ResourcesUlimits {
        name: Some(name.to_owned()),
        soft: Some(value),
        hard: Some(value),
    }
}

/// Unix seconds in `lifetime` from now, rounded up.
fn expiry(lifetime: Duration) -> u64 {
    let end = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .saturating_add(lifetime);
    end.as_secs() + u64::from(end.subsec_nanos() > 0)
}

#[cfg(test)]
#[path = "body_tests.rs"]
mod tests;
