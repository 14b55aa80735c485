//! Providers: what runs untrusted code.
//!
//! A daemon has exactly one, chosen at start. A provider states what it is and
//! what it can prove (tier, identities, limits); the service checks a request
//! against these statements before anything is admitted, and the provider
//! checks again against what it is about to launch.

mod disabled;
#[cfg(feature = "docker")]
mod docker;
mod error;
mod output;
mod run;
mod session;
#[cfg(feature = "wasm")]
mod wasm;

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use plimsoll_wire::{Kind as PayloadKind, Tier};

pub use disabled::Disabled;
#[cfg(feature = "docker")]
pub use docker::{ClientSettings, Docker, DockerSettings, Seccomp};
pub use error::{End, Kind, ProviderError, Segment};
pub use output::{
    Artifact, CellOutput, ModuleOutput, Output, ProjectOutput, RowOutput, RunOutput, ScriptOutput,
    StepOutput, Stream,
};
pub use run::{HostAnswer, HostApi, HostCall, Payload, RunContext, RunSpec, Teardown};
pub use session::{CallSpec, CellSpec, OpenSession, OpenSpec, SessionPayload, Sessions, Suspended};

#[cfg(feature = "wasm")]
pub use wasm::Wasm;

/// The answer of a provider's operation.
pub type Answer<T> = Result<T, ProviderError>;

/// The tier a provider can prove now; `None` when its evidence has lapsed. An
/// unknown tier meets no floor.
pub type TierNow = Option<Tier>;

/// The name of a tier that may be unknown, as it is stated in answers and logs.
#[must_use]
pub fn tier_name(tier: TierNow) -> &'static str {
    tier.map_or("unknown", Tier::name)
}

/// Which operations a provider can do at all. A claim about the provider, not
/// about the tools in an image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Snippets.
    pub javascript: bool,
    /// Projects.
    pub project: bool,
    /// Module tables.
    pub module: bool,
    /// Grants on snippets.
    pub javascript_grants: bool,
    /// Grants on projects.
    pub project_grants: bool,
}

impl Capabilities {
    /// Whether a single run of this kind can be dispatched.
    #[must_use]
    pub fn runs(&self, kind: PayloadKind) -> bool {
        match kind {
            PayloadKind::Javascript => self.javascript,
            PayloadKind::Project => self.project,
            PayloadKind::Module => self.module,
            PayloadKind::Cell => false,
        }
    }
}

/// What a provider states of the environment of one payload kind. Empty means
/// not stated; a tag or a template's name is never an identity.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// Content-addressed identity of the outer image or interpreter.
    pub identity: String,
    /// Identity of the selected executable image.
    pub software_identity: String,
    /// Longest budget of one run of this kind; zero when not stated.
    pub ceiling: Duration,
    /// Languages the start-up checks proved.
    pub languages: Vec<String>,
}

/// The envelope configured for one run; zero means the provider's default.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Resources {
    /// Memory in MiB.
    pub memory_mb: u64,
    /// CPU cores.
    pub cpus: f64,
    /// Processes.
    pub pids: u64,
    /// Writable storage in MiB.
    pub disk_mb: u64,
}

/// A provider billed by the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metering {
    /// Longest time a machine may be billed past its run while it is deleted.
    pub teardown: Duration,
    /// Budget of a run that asks for none.
    pub default_timeout: Duration,
}

/// One provider. Every method but `run` and the session calls must be cheap or
/// bounded in time by the provider itself.
pub trait Provider: Send + Sync + 'static {
    /// The name on the wire, in records and logs.
    fn name(&self) -> &'static str;

    /// The tier proven now. Read again for every request, because evidence can
    /// lapse; must not block.
    fn tier(&self) -> TierNow;

    /// What the provider can do.
    fn capabilities(&self) -> Capabilities;

    /// The environment of one payload kind, as stated now; must not block.
    fn environment(&self, kind: PayloadKind) -> Environment;

    /// The envelope of one run.
    fn resources(&self) -> Resources;

    /// Digest of a verified sandbox policy with its prefix; empty when there
    /// is none.
    fn policy(&self) -> String {
        String::new()
    }

    /// How the provider is billed; `None` when it is not billed by the second.
    fn metering(&self) -> Option<Metering> {
        None
    }

    /// Whether runs use this host's memory, so that a budget for the host
    /// bounds how many run at once.
    fn uses_host_memory(&self) -> bool {
        true
    }

    /// The path of the egress guard the provider serves, when it needs one.
    fn guard_path(&self) -> Option<&'static str> {
        None
    }

    /// Evidence from configuration and dependencies, bounded by the provider.
    /// Called at start, by readiness polls and by the background loop; runs to
    /// its end whether or not the poller stays.
    fn preflight(&self) -> BoxFuture<'_, Answer<()>>;

    /// Proof by behaviour in throw-away sandboxes. Made once, at start, never
    /// by a poll: a platform may bill for it.
    fn smoke_test(&self) -> BoxFuture<'_, Answer<()>> {
        Box::pin(async { Ok(()) })
    }

    /// Runs one request. Checks it again, then the floor and the rule, then
    /// whether it can be done at all, and marks a refusal of these. The service
    /// calls it in a task of its own and never drops the future: the provider
    /// itself ends the run at the context's deadline or when the caller goes.
    fn run(&self, spec: RunSpec, context: RunContext) -> BoxFuture<'_, Answer<RunOutput>>;

    /// The session half, for a provider that has one.
    fn sessions(&self) -> Option<&dyn Sessions> {
        None
    }

    /// Destroys sandboxes no run or session owns, and says how many. Must never
    /// touch one another run may still use.
    fn reconcile_orphans(&self) -> BoxFuture<'_, Answer<usize>> {
        Box::pin(async { Ok(0) })
    }

    /// Finishes work done off the answer's path and ends open sessions, all
    /// before `until`.
    fn drain(&self, until: Instant) -> BoxFuture<'_, Answer<()>> {
        let _ = until;
        Box::pin(async { Ok(()) })
    }
}
