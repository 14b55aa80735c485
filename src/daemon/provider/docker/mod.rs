//! Snippets and projects in containers of a local Docker Engine.
//!
//! Each run gets one throw-away container that is created, read back, fed on
//! standard input, read from and removed. No network, read-only root, three
//! small tmpfs mounts at most, a user no account of the host has, no
//! capabilities, no new privileges, bounds on processes, memory and CPU. Under
//! gVisor, verified, the tier is kernel; under anything else it is container.

mod accounts;
mod attach;
mod body;
mod call;
mod container;
mod dead_dirs;
mod endpoint;
mod engine;
mod execution;
#[cfg(test)]
mod fake_engine;
mod fault;
mod host_dir;
mod image;
mod launch;
mod limits;
mod orphans;
mod platform;
mod pool;
mod probe;
mod project;
mod readback;
mod removal;
mod runtime;
mod seccomp;
mod settings;
mod smoke;
mod smoke_judge;
mod smoke_socket;
mod snippet;
mod state;
mod storage;
mod transport;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use plimsoll_wire::{Kind as PayloadKind, Reason, Refusal, Tier, validate};

pub use settings::{ClientSettings, DockerSettings, Seccomp};

use self::{
    call::{Call, RUN_PREFIX},
    execution::{Execution, Role},
    limits::{
        CPUS, MEMORY_MB, PIDS, PROJECT_CEILING, PROJECT_DEFAULT, SNIPPET_CEILING, SNIPPET_DEFAULT,
    },
    pool::Pool,
    removal::Living,
    state::State,
};
use super::{
    Answer, Capabilities, Environment, Kind, Output, Payload, Provider, ProviderError, Resources,
    RunContext, RunOutput, RunSpec, TierNow,
};
use crate::log::Log;

/// The docker provider. Nothing of the engine is asked before the first
/// preflight.
pub struct Docker {
    state: Arc<State>,
    pool: Arc<Pool>,
    stated: Resources,
    log: Log,
}

impl Docker {
    /// A provider with these settings and this envelope for each run; zero in
    /// the envelope is the provider's own default.
    #[must_use]
    pub fn new(settings: DockerSettings, stated: Resources, log: Log) -> Docker {
        let effective = Resources {
            memory_mb: or(stated.memory_mb, MEMORY_MB),
            cpus: if stated.cpus > 0.0 { stated.cpus } else { CPUS },
            pids: or(stated.pids, PIDS),
            disk_mb: stated.disk_mb,
        };
        let pool = Pool::new(settings.fresh_pool, settings.open_runner_fds);
        Docker {
            state: State::new(settings, effective, Living::new(log.clone())),
            pool,
            stated,
            log,
        }
    }
}

fn or(value: u64, default: u64) -> u64 {
    if value == 0 { default } else { value }
}

impl Provider for Docker {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn tier(&self) -> TierNow {
        Some(self.state.tier())
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            javascript: true,
            project: true,
            ..Capabilities::default()
        }
    }

    fn environment(&self, kind: PayloadKind) -> Environment {
        let Some(role) = Role::of(kind) else {
            return Environment::default();
        };
        let ready = self.state.ready();
        let image = ready.as_ref().map(|ready| ready.image(role));
        Environment {
            identity: image.map_or_else(String::new, image::Image::identity),
            software_identity: image.map_or_else(String::new, |image| image.software.clone()),
            ceiling: match role {
                Role::Snippet => SNIPPET_CEILING,
                Role::Project => PROJECT_CEILING,
            },
            languages: match role {
                Role::Snippet => Vec::new(),
                Role::Project => self.state.languages(),
            },
        }
    }

    fn resources(&self) -> Resources {
        self.stated
    }

    fn preflight(&self) -> BoxFuture<'_, Answer<()>> {
        Box::pin(async { self.state.preflight().await.map(drop) })
    }

    fn smoke_test(&self) -> BoxFuture<'_, Answer<()>> {
        Box::pin(async {
            // What a dead daemon left goes before this one is ready.
            match orphans::reconcile(&self.state).await {
                Ok(0) => {}
                Ok(count) => {
                    let count = i64::try_from(count).unwrap_or(i64::MAX);
                    let line = self.log.warn("leaked sandboxes removed");
                    line.int("count", count).end();
                }
                Err(error) => {
                    let line = self.log.warn("leaked sandboxes could not be looked for");
                    line.text("error", &orphans::text(&error)).end();
                }
            }
            if self.state.settings.open_runner_fds {
                self.log
                    .warn("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS: a step can read or clutter its own run's report pipe")
                    .end();
            }
            smoke::run(&self.state, &self.log).await?;
            let pool = Arc::clone(&self.pool);
            let filling = pool.fill(Arc::clone(&self.state), self.log.clone());
            // A drain waits for its end: a member in the making must not stay.
            self.state.living.in_background(filling);
            Ok(())
        })
    }

    fn run(&self, spec: RunSpec, context: RunContext) -> BoxFuture<'_, Answer<RunOutput>> {
        Box::pin(run(
            Arc::clone(&self.state),
            Arc::clone(&self.pool),
            spec,
            context,
        ))
    }

    fn reconcile_orphans(&self) -> BoxFuture<'_, Answer<usize>> {
        Box::pin(orphans::reconcile(&self.state))
    }

    fn drain(&self, until: Instant) -> BoxFuture<'_, Answer<()>> {
        Box::pin(async move {
            self.pool.close();
            let settled = self.state.living.settled();
            if tokio::time::timeout_at(until.into(), settled)
                .await
                .is_err()
            {
                return Err(ProviderError::internal(
                    "docker: containers were still being removed",
                ));
            }
            self.state.leave();
            Ok(())
        })
    }
}

async fn run(
    state: Arc<State>,
    pool: Arc<Pool>,
    spec: RunSpec,
    context: RunContext,
) -> Answer<RunOutput> {
    let role = checked(&spec, &context)?;
    let execution = ready(&state, &context).await?;
    admitted(&spec, &execution, role)?;
    let (default, ceiling) = match role {
        Role::Snippet => (SNIPPET_DEFAULT, SNIPPET_CEILING),
        Role::Project => (PROJECT_DEFAULT, PROJECT_CEILING),
    };
    let call = Call {
        budget: budget(spec.timeout, default, ceiling),
        deadline: context.deadline,
        caller_gone: context.caller_gone,
        capacity: Some(context.capacity),
        teardown: context.teardown,
        prefix: RUN_PREFIX,
    };
    let image = execution.image(role);
    let (environment, software_identity) = (image.identity(), image.software.clone());
    let tier = Some(execution.tier);
    let ran = match spec.payload {
        Payload::Javascript(run) => {
            let ran = snippet::run(&execution, Some(&pool), run.code, &call).await;
            ran.map(Output::Javascript)
        }
        Payload::Project(run) => {
            let open = state.settings.open_runner_fds;
            let ran = project::run(&execution, Some(&pool), *run, open, call).await;
            ran.map(Output::Project)
        }
        Payload::Module(_) => Err(no_modules()),
    };
    pool.refill();
    let output = ran?;
    Ok(RunOutput {
        output,
        tier,
        environment,
        software_identity,
    })
}

/// The role of a request that is valid and that this provider can run at all.
fn checked(spec: &RunSpec, context: &RunContext) -> Answer<Role> {
    let valid = match &spec.payload {
        Payload::Javascript(run) => validate::javascript(run),
        Payload::Project(run) => validate::project(run),
        Payload::Module(run) => validate::module(run),
    };
    valid.map_err(|Refusal { message, .. }| {
        ProviderError::new(Kind::InvalidRequest, message).not_dispatched(Reason::Request)
    })?;
    let role = Role::of(spec.payload.kind()).ok_or_else(no_modules)?;
    if context.grant.is_some() {
        return Err(ProviderError::new(
            Kind::Unsupported,
            "docker lends no host API in this build",
        )
        .not_dispatched(Reason::Unsupported));
    }
    Ok(role)
}

fn no_modules() -> ProviderError {
    ProviderError::new(
        Kind::Unsupported,
        "no module image is configured (SANDBOX_DOCKER_MODULE_IMAGE)",
    )
    .not_dispatched(Reason::Unsupported)
}

/// The state to launch with, unless the caller gave up while it was looked at.
async fn ready(state: &Arc<State>, context: &RunContext) -> Answer<Arc<Execution>> {
    tokio::select! {
        biased;
        () = context.caller_gone.cancelled() => {
            Err(ProviderError::canceled().not_dispatched(Reason::Capacity))
        }
        () = tokio::time::sleep_until(context.deadline.into()) => {
            Err(ProviderError::deadline().not_dispatched(Reason::Capacity))
        }
        ready = state.preflight() => ready.map_err(|e| e.not_dispatched(Reason::Environment)),
    }
}

/// Floor and rule, checked on what is about to be launched.
fn admitted(spec: &RunSpec, execution: &Execution, role: Role) -> Answer<()> {
    let tier: Tier = execution.tier;
    if spec.floor.is_some_and(|floor| floor > tier) {
        return Err(ProviderError::new(
            Kind::Isolation,
            format!("docker runs code at the {tier} tier now, below the request's floor"),
        )
        .not_dispatched(Reason::Isolation));
    }
    let software = &execution.image(role).software;
    if !spec.rule.allows(software) {
        let text = if software.is_empty() {
            "this engine states no software identity, so no software rule is met"
        } else {
            "the image's software is not what the software rule allows"
        };
        return Err(ProviderError::new(Kind::Software, text).not_dispatched(Reason::Environment));
    }
    Ok(())
}

/// The budget of a run: what was asked for, cut to the ceiling.
fn budget(asked: Option<Duration>, default: Duration, ceiling: Duration) -> Duration {
    match asked {
        Some(asked) if !asked.is_zero() => asked.min(ceiling),
        _ => default,
    }
}

#[cfg(test)]
#[path = "docker_tests.rs"]
mod tests;
