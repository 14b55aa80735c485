//! JavaScript snippets inside this process, on the embedded interpreter.
//!
//! Memory, time and output are bounded and there is no ambient authority, but
//! code that escapes the interpreter is in the daemon: tier process, not for
//! hostile code. A floor above that is refused before anything runs.

use std::{
    sync::{Arc, OnceLock},
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use plimsoll_quickjs::{
    CancelToken, DEFAULT_TIMEOUT, Grant, HostCalls, HostError, HostRequest, HostResponse,
    Interpreter, MAX_TIMEOUT, Outcome, RunError, Settings, StartError,
};
use plimsoll_wire::{Kind as PayloadKind, Reason, Refusal, Tier, validate};
use tokio::runtime::Handle;

use super::{
    Answer, Capabilities, Environment, HostApi, HostCall, Kind, Output, Payload, Provider,
    ProviderError, Resources, RunContext, RunOutput, RunSpec, ScriptOutput, Stream, TierNow,
};
use crate::{config::variable, surface};

/// The wasm provider. Its interpreter is made by the first preflight, so that
/// listeners are bound before memory is mapped.
pub struct Wasm {
    resources: Resources,
    engine: Arc<Engine>,
}

struct Engine {
    settings: Settings,
    interpreter: OnceLock<Result<Interpreter, StartError>>,
}

impl Engine {
    /// The interpreter, made on first use; blocks.
    fn interpreter(&self) -> Result<&Interpreter, ProviderError> {
        self.interpreter
            .get_or_init(|| Interpreter::new(self.settings))
            .as_ref()
            .map_err(|error| {
                let shown = ProviderError::internal(error.to_string());
                match error {
                    StartError::MemoryTooSmall { .. } => {
                        shown.of_setting(variable::SANDBOX_MEMORY_MB.name)
                    }
                    _ => shown,
                }
            })
    }
}

impl Wasm {
    /// A provider with this envelope for at most `max_concurrent` runs at once.
    #[must_use]
    pub fn new(resources: Resources, max_concurrent: u32) -> Self {
        Wasm {
            resources,
            engine: Arc::new(Engine {
                settings: Settings {
                    memory_mb: u32::try_from(resources.memory_mb).unwrap_or(u32::MAX),
                    max_instances: max_concurrent,
                },
                interpreter: OnceLock::new(),
            }),
        }
    }
}

impl Provider for Wasm {
    fn name(&self) -> &'static str {
        "wasm"
    }

    fn tier(&self) -> TierNow {
        Some(Tier::Process)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            javascript: true,
            javascript_grants: true,
            ..Capabilities::default()
        }
    }

    fn environment(&self, kind: PayloadKind) -> Environment {
        match kind {
            PayloadKind::Javascript => Environment {
                identity: Interpreter::identity().to_owned(),
                ceiling: MAX_TIMEOUT,
                ..Environment::default()
            },
            _ => Environment::default(),
        }
    }

    fn resources(&self) -> Resources {
        self.resources
    }

    fn preflight(&self) -> BoxFuture<'_, Answer<()>> {
        if self.engine.interpreter.get().is_some_and(Result::is_ok) {
            return Box::pin(async { Ok(()) });
        }
        let engine = Arc::clone(&self.engine);
        Box::pin(async move {
            tokio::task::spawn_blocking(move || engine.interpreter().map(drop))
                .await
                .unwrap_or_else(|lost| Err(ProviderError::internal(surface::lost_text(lost))))
        })
    }

    fn run(&self, spec: RunSpec, context: RunContext) -> BoxFuture<'_, Answer<RunOutput>> {
        Box::pin(run(Arc::clone(&self.engine), spec, context))
    }
}

async fn run(engine: Arc<Engine>, spec: RunSpec, context: RunContext) -> Answer<RunOutput> {
    let code = admitted(spec.payload, spec.floor)?;
    if !spec.rule.is_none() {
        return Err(ProviderError::new(
            Kind::Software,
            "wasm states no software identity, so no software rule is met",
        )
        .not_dispatched(Reason::Environment));
    }
    if context.caller_gone.is_cancelled() {
        return Err(ProviderError::canceled().not_dispatched(Reason::Capacity));
    }
    let budget = spec.timeout.unwrap_or(DEFAULT_TIMEOUT).min(MAX_TIMEOUT);
    let left = context.deadline.saturating_duration_since(Instant::now());
    // A zero budget would read as the default.
    if left < Duration::from_millis(1) {
        return Err(ProviderError::deadline().not_dispatched(Reason::Capacity));
    }
    let cancel = CancelToken::new();
    let token = cancel.clone();
    let capacity = context.capacity;
    let grant = context.grant.map(|api| lent(api, Handle::current()));
    let mut task = tokio::task::spawn_blocking(move || {
        // The slot stands for the guest's memory, so the thread holds it.
        let _capacity = capacity;
        let interpreter = engine
            .interpreter()
            .map_err(|error| error.not_dispatched(Reason::Environment))?;
        interpreter
            .run(&code, budget.min(left), &token, grant.as_ref())
            .map_err(failed)
    });
    let joined = tokio::select! {
        joined = &mut task => joined,
        () = context.caller_gone.cancelled() => {
            cancel.cancel();
            task.await
        }
    };
    let outcome =
        joined.unwrap_or_else(|lost| Err(ProviderError::internal(surface::lost_text(lost))))?;
    if outcome.timed_out && left < budget {
        // The call's deadline ended it, not the guest's own budget.
        return Err(ProviderError::deadline());
    }
    Ok(RunOutput {
        output: Output::Javascript(output(outcome)),
        tier: Some(Tier::Process),
        environment: Interpreter::identity().to_owned(),
        software_identity: String::new(),
    })
}

/// The snippet of a request that may run here: valid, then at its floor, then
/// of a kind this provider can do. In this order, so that a bad request and a
/// tier that is too weak are each reported as such.
fn admitted(payload: Payload, floor: Option<Tier>) -> Answer<String> {
    let valid = match &payload {
        Payload::Javascript(run) => validate::javascript(run),
        Payload::Project(run) => validate::project(run),
        Payload::Module(run) => validate::module(run),
    };
    valid.map_err(|Refusal { message, .. }| {
        ProviderError::new(Kind::InvalidRequest, message).not_dispatched(Reason::Request)
    })?;
    if floor.is_some_and(|floor| floor > Tier::Process) {
        return Err(ProviderError::new(
            Kind::Isolation,
            "wasm runs code at the process tier, below the request's floor",
        )
        .not_dispatched(Reason::Isolation));
    }
    match payload {
        Payload::Javascript(run) => Ok(run.code),
        Payload::Project(_) | Payload::Module(_) => Err(ProviderError::new(
            Kind::Unsupported,
            "wasm runs JavaScript snippets only",
        )
        .not_dispatched(Reason::Unsupported)),
    }
}

fn failed(error: RunError) -> ProviderError {
    match error {
        RunError::Cancelled => ProviderError::canceled(),
        RunError::Host(HostError::NoInstance) => {
            ProviderError::new(Kind::AtCapacity, "every interpreter instance is in use")
                .not_dispatched(Reason::Capacity)
        }
        error => ProviderError::internal(error.to_string()),
    }
}

fn output(outcome: Outcome) -> ScriptOutput {
    ScriptOutput {
        stdout: Stream {
            bytes: outcome.stdout,
            truncated: outcome.stdout_truncated,
        },
        stderr: Stream {
            bytes: outcome.stderr,
            truncated: outcome.stderr_truncated,
        },
        exit_code: outcome.exit_code,
        timed_out: outcome.timed_out,
    }
}

fn lent(api: Arc<dyn HostApi>, runtime: Handle) -> Grant {
    Grant {
        global: api.global().to_owned(),
        allow: api.routes().to_vec(),
        preamble: api.preamble().to_owned(),
        calls: Arc::new(Calls { api, runtime }),
    }
}

/// The host API as the interpreter calls it: from the guest's own thread.
struct Calls {
    api: Arc<dyn HostApi>,
    runtime: Handle,
}

impl HostCalls for Calls {
    fn call(&self, request: HostRequest<'_>, deadline: Instant) -> HostResponse {
        let call = self.api.call(HostCall {
            method: request.method.to_owned(),
            path: request.path.to_owned(),
            body: request.body.map(<[u8]>::to_vec),
        });
        let answer = self
            .runtime
            .block_on(async { tokio::time::timeout_at(deadline.into(), call).await });
        match answer {
            Ok(answer) => HostResponse {
                status: answer.status,
                body: answer.body,
            },
            Err(_) => HostResponse {
                status: 504,
                body: b"host api call past the run's deadline".to_vec(),
            },
        }
    }
}

#[cfg(test)]
#[path = "wasm_tests.rs"]
mod tests;
