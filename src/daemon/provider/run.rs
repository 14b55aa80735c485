//! What a provider is given for one run.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::BoxFuture;
use plimsoll_wire::{
    Kind, Rule, Tier,
    proto::{JavaScriptRun, ModuleRun, ProjectRun},
};
use tokio_util::sync::CancellationToken;

use crate::admission::Capacity;

/// What a single run executes.
#[derive(Clone, Debug)]
pub enum Payload {
    /// A snippet.
    Javascript(Box<JavaScriptRun>),
    /// Files and steps.
    Project(Box<ProjectRun>),
    /// A table of simulation runs.
    Module(Box<ModuleRun>),
}

impl Payload {
    /// The payload's kind.
    #[must_use]
    pub fn kind(&self) -> Kind {
        match self {
            Payload::Javascript(_) => Kind::Javascript,
            Payload::Project(_) => Kind::Project,
            Payload::Module(_) => Kind::Module,
        }
    }
}

/// A validated request, as far as a provider is concerned with it.
#[derive(Clone, Debug)]
pub struct RunSpec {
    /// What to execute.
    pub payload: Payload,
    /// The budget asked for, at most five minutes; `None` asks for the
    /// provider's default. The provider cuts it to its own ceiling.
    pub timeout: Option<Duration>,
    /// The weakest tier the caller accepts.
    pub floor: Option<Tier>,
    /// The software the caller accepts.
    pub rule: Rule,
}

/// Everything around one run.
#[derive(Clone)]
pub struct RunContext {
    /// When the call is over, whatever the provider's own budget says: the
    /// daemon's ceiling or the caller's deadline, whichever comes first.
    pub deadline: Instant,
    /// Cancelled when the caller has gone.
    pub caller_gone: CancellationToken,
    /// The run's slot. A provider that deletes its sandbox after answering
    /// keeps a clone until the delete is through.
    pub capacity: Capacity,
    /// The host API lent to this run.
    pub grant: Option<Arc<dyn HostApi>>,
    /// What the provider has to say about the sandbox's removal.
    pub teardown: Teardown,
}

/// What became of a run's sandbox; shared between provider and service.
#[derive(Clone, Debug, Default)]
pub struct Teardown {
    gave_up: Arc<AtomicBool>,
    memory_limit_mb: Arc<AtomicU64>,
    owed_ms: Arc<AtomicU64>,
}

impl Teardown {
    /// Says that the sandbox could not be removed and is left to reconciliation.
    pub fn give_up(&self) {
        self.gave_up.store(true, Ordering::Release);
    }

    /// Says that memory ran out in the sandbox, and at which limit in MiB.
    pub fn out_of_memory(&self, limit_mb: u64) {
        self.memory_limit_mb.store(limit_mb, Ordering::Release);
    }

    /// The limit in MiB that memory ran out at; `None` when it did not.
    #[must_use]
    pub fn memory_limit_hit(&self) -> Option<u64> {
        Some(self.memory_limit_mb.load(Ordering::Acquire)).filter(|limit| *limit > 0)
    }

    /// Whether the removal was given up.
    #[must_use]
    pub fn gave_up(&self) -> bool {
        self.gave_up.load(Ordering::Acquire)
    }

    /// Says, before the run's end, how long its machine will still be billed.
    pub fn owes(&self, time: Duration) {
        let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        self.owed_ms.store(ms, Ordering::Release);
    }

    /// How long the machine will still be billed.
    #[must_use]
    pub fn owed(&self) -> Duration {
        Duration::from_millis(self.owed_ms.load(Ordering::Acquire))
    }
}

/// One call of guest code to the host API, as the guest sent it: data to judge.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// HTTP method.
    pub method: String,
    /// Raw path, with its query.
    pub path: String,
    /// Body, exact bytes.
    pub body: Option<Vec<u8>>,
}

/// What the guest is answered.
#[derive(Clone, Debug)]
pub struct HostAnswer {
    /// HTTP status, 100 to 599.
    pub status: u16,
    /// Body bytes.
    pub body: Vec<u8>,
}

/// The host API lent to one run: routes, quotas and credential stay behind it
/// and never enter a sandbox.
pub trait HostApi: Send + Sync {
    /// The global the guest finds its client at.
    fn global(&self) -> &str;

    /// `METHOD /path` lines for the client's own check; they decide nothing.
    fn routes(&self) -> &[String];

    /// Source run after the client is there and before the caller's code.
    fn preamble(&self) -> &str;

    /// Makes one call. Never fails: a refusal is an answer.
    fn call(&self, call: HostCall) -> BoxFuture<'_, HostAnswer>;

    /// Ends the grant; later calls are refused.
    fn end(&self);
}
