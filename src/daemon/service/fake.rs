//! A provider that counts what it is asked and answers what a test says.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use futures_util::future::BoxFuture;
use plimsoll_wire::{
    Kind as PayloadKind, Tier,
    proto::{JavaScriptRun, RunRequest, SoftwareRule, run_request::Payload},
};
use tokio_util::sync::CancellationToken;

use super::RunService;
use crate::{
    admission::{Limiter, Limits},
    call::{Call, Principal},
    log::{
        Format,
        test_support::{self, Kept},
    },
    provider::{
        Answer, Capabilities, Environment, Metering, Output, Provider, ProviderError, Resources,
        RunContext, RunOutput, RunSpec, ScriptOutput, TierNow,
    },
};

pub(crate) type Behaviour =
    Box<dyn Fn(RunSpec, RunContext) -> BoxFuture<'static, Answer<RunOutput>> + Send + Sync>;

pub(crate) struct Fake {
    pub(crate) calls: AtomicUsize,
    pub(crate) preflights: AtomicUsize,
    pub(crate) tier: Mutex<TierNow>,
    /// What a preflight proves.
    pub(crate) proves: Tier,
    pub(crate) capabilities: Capabilities,
    pub(crate) environments: HashMap<&'static str, Environment>,
    pub(crate) preflight: Mutex<Option<ProviderError>>,
    /// The next preflight waits for it before it proves anything.
    pub(crate) preflight_gate: Mutex<Option<Arc<tokio::sync::Notify>>>,
    pub(crate) smoke: Option<ProviderError>,
    /// The smoke test waits for it.
    pub(crate) smoke_gate: Option<Arc<tokio::sync::Notify>>,
    pub(crate) metering: Option<Metering>,
    pub(crate) drains: AtomicUsize,
    pub(crate) orphans: Mutex<Answer<usize>>,
    pub(crate) specs: Mutex<Vec<RunSpec>>,
    pub(crate) behaviour: Behaviour,
}

impl Default for Fake {
    fn default() -> Self {
        Fake {
            calls: AtomicUsize::new(0),
            preflights: AtomicUsize::new(0),
            tier: Mutex::new(Some(Tier::Container)),
            proves: Tier::Container,
            capabilities: Capabilities {
                javascript: true,
                project: true,
                module: true,
                ..Capabilities::default()
            },
            environments: HashMap::new(),
            preflight: Mutex::new(None),
            preflight_gate: Mutex::new(None),
            smoke: None,
            smoke_gate: None,
            metering: None,
            drains: AtomicUsize::new(0),
            orphans: Mutex::new(Ok(0)),
            specs: Mutex::default(),
            behaviour: answering(|| Ok(script(ScriptOutput::default()))),
        }
    }
}

impl Fake {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

/// A behaviour that answers without looking.
pub(crate) fn answering(
    answer: impl Fn() -> Answer<RunOutput> + Send + Sync + 'static,
) -> Behaviour {
    Box::new(move |_, _| {
        let answer = answer();
        Box::pin(async move { answer })
    })
}

/// An output of a snippet in a container.
pub(crate) fn script(script: ScriptOutput) -> RunOutput {
    output(Output::Javascript(script))
}

/// Any output in a container.
pub(crate) fn output(output: Output) -> RunOutput {
    RunOutput {
        output,
        tier: Some(Tier::Container),
        environment: String::new(),
        software_identity: String::new(),
    }
}

impl Provider for Fake {
    fn name(&self) -> &'static str {
        "docker"
    }

    fn tier(&self) -> TierNow {
        *self.tier.lock().unwrap()
    }

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn environment(&self, kind: PayloadKind) -> Environment {
        self.environments
            .get(kind.name())
            .cloned()
            .unwrap_or_default()
    }

    fn resources(&self) -> Resources {
        Resources {
            memory_mb: 128,
            ..Resources::default()
        }
    }

    fn metering(&self) -> Option<Metering> {
        self.metering
    }

    fn preflight(&self) -> BoxFuture<'_, Answer<()>> {
        self.preflights.fetch_add(1, Ordering::SeqCst);
        let failure = self.preflight.lock().unwrap().clone();
        let gate = self.preflight_gate.lock().unwrap().take();
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.notified().await;
            }
            if failure.is_none() {
                *self.tier.lock().unwrap() = Some(self.proves);
            }
            failure.map_or(Ok(()), Err)
        })
    }

    fn smoke_test(&self) -> BoxFuture<'_, Answer<()>> {
        let failure = self.smoke.clone();
        let gate = self.smoke_gate.clone();
        Box::pin(async move {
            if let Some(gate) = gate {
                gate.notified().await;
            }
            failure.map_or(Ok(()), Err)
        })
    }

    fn drain(&self, _: Instant) -> BoxFuture<'_, Answer<()>> {
        self.drains.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(()) })
    }

    fn run(&self, spec: RunSpec, context: RunContext) -> BoxFuture<'_, Answer<RunOutput>> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        self.specs.lock().unwrap().push(spec.clone());
        (self.behaviour)(spec, context)
    }

    fn reconcile_orphans(&self) -> BoxFuture<'_, Answer<usize>> {
        let answer = self.orphans.lock().unwrap().clone();
        Box::pin(async move { answer })
    }
}

/// A service over a fake, and what it logs.
pub(crate) struct Rig {
    pub(crate) fake: Arc<Fake>,
    pub(crate) service: Arc<RunService>,
    pub(crate) log: Kept,
}

impl Rig {
    pub(crate) fn new(fake: Fake) -> Rig {
        let limits = Limits {
            max_concurrent: 8,
            per_key: 4,
            rate_per_min: 0,
            burst: 0,
        };
        Rig::limited(fake, limits)
    }

    pub(crate) fn limited(fake: Fake, limits: Limits) -> Rig {
        let fake = Arc::new(fake);
        let (log, kept) = test_support::log(Format::Json);
        let service = RunService::new(
            Arc::clone(&fake) as Arc<dyn Provider>,
            Limiter::new(limits),
            log,
            Some(Tier::Container),
        );
        Rig {
            fake,
            service: Arc::new(service),
            log: kept,
        }
    }
}

/// A call of the caller `id`, received at a fixed wall-clock time.
pub(crate) fn call(id: Option<&str>) -> Call {
    Call {
        principal: Principal {
            id: id.map(Arc::from),
        },
        received: received(),
        received_at: Instant::now(),
        deadline: None,
        caller_gone: CancellationToken::new(),
    }
}

pub(crate) fn received() -> SystemTime {
    UNIX_EPOCH + Duration::from_millis(1_766_000_000_000)
}

/// A good snippet request.
pub(crate) fn snippet(code: &str) -> RunRequest {
    request(JavaScriptRun {
        code: code.to_owned(),
        ..Default::default()
    })
}

pub(crate) fn request(payload: impl Into<Payload>) -> RunRequest {
    RunRequest {
        protocol: 3,
        payload: Some(payload.into()),
        ..Default::default()
    }
}

pub(crate) fn rule(mode: &str, identities: &[&str]) -> SoftwareRule {
    SoftwareRule {
        mode: mode.into(),
        identities: identities.iter().map(|&i| i.into()).collect(),
    }
}
