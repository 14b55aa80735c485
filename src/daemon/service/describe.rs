//! Describe: what the daemon is and can do. Discovery, never authority.

use plimsoll_wire::{
    Kind, PROTOCOL,
    limits::MAX_RUN_MS,
    proto::{DescribeResponse, MessageField, PayloadEnvironment, RunResources},
};

use crate::provider::{Provider, tier_name};

/// Everything a daemon without sessions states.
pub(super) fn describe(provider: &dyn Provider) -> DescribeResponse {
    let can = provider.capabilities();
    let resources = provider.resources();
    let environment = |kind, supported| {
        MessageField::some(if supported {
            stated(provider, kind)
        } else {
            PayloadEnvironment::default()
        })
    };
    DescribeResponse {
        sandbox: provider.name().to_owned(),
        isolation: tier_name(provider.tier()).to_owned(),
        supports_project: can.project,
        supports_javascript_grants: can.javascript_grants,
        supports_project_grants: can.project_grants,
        supports_module: can.module,
        protocol: PROTOCOL,
        javascript_environment: environment(Kind::Javascript, can.javascript),
        project_environment: environment(Kind::Project, can.project),
        module_environment: environment(Kind::Module, can.module),
        resources: MessageField::some(RunResources {
            memory_mb: clamped(resources.memory_mb),
            cpus: resources.cpus,
            pids: clamped(resources.pids),
            disk_mb: clamped(resources.disk_mb),
        }),
        policy: provider.policy(),
        ..Default::default()
    }
}

fn stated(provider: &dyn Provider, kind: Kind) -> PayloadEnvironment {
    let stated = provider.environment(kind);
    PayloadEnvironment {
        max_timeout_ms: u32::try_from(stated.ceiling.as_millis())
            .unwrap_or(MAX_RUN_MS)
            .min(MAX_RUN_MS),
        identity: stated.identity,
        software_identity: stated.software_identity,
        languages: stated.languages,
    }
}

fn clamped(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
