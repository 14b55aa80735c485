//! The session half of a provider.
//!
//! A session keeps one sandbox for many calls of one principal. Turns, timers,
//! caps and the chain of records belong to the daemon; suspending, resuming,
//! reading back and cleaning between calls belong to the provider.

use std::time::{Duration, Instant};

use futures_util::future::BoxFuture;
use plimsoll_wire::proto::{CellRun, JavaScriptRun, ProjectRun};
use plimsoll_wire::{Kind, Rule, Tier};
use tokio_util::sync::CancellationToken;

use super::{Answer, End, Environment, RunContext, RunOutput, TierNow};
use crate::admission::Capacity;

/// A provider that keeps sessions.
pub trait Sessions: Send + Sync {
    /// The environment of a session, as stated now, for the given kind.
    fn environment(&self, kind: Kind) -> Environment;

    /// Whether grants may be lent to session calls.
    fn grants(&self) -> bool {
        false
    }

    /// Whether a pool of ready sandboxes can be kept.
    fn pools(&self) -> bool {
        false
    }

    /// Opens a session. An error is unmarked unless no sandbox can exist.
    fn open(&self, spec: OpenSpec) -> BoxFuture<'_, Answer<Box<dyn OpenSession>>>;

    /// Proves on one real session, at start, that the boundary between two
    /// calls holds.
    fn smoke_test(&self, lifetime: Duration) -> BoxFuture<'_, Answer<()>>;
}

/// What a session is opened with.
#[derive(Clone)]
pub struct OpenSpec {
    /// The weakest tier the caller accepts.
    pub floor: Option<Tier>,
    /// The software the caller accepts.
    pub rule: Rule,
    /// Absolute lifetime from open.
    pub lifetime: Duration,
    /// Languages to make ready, a hint.
    pub languages: Vec<String>,
    /// Bytes a call may leave in the session's files; zero is no bound.
    pub disk_bytes: u64,
    /// When the open must have ended.
    pub deadline: Instant,
    /// Cancelled when the caller has gone.
    pub caller_gone: CancellationToken,
    /// The session's slot; kept while the sandbox holds memory here.
    pub capacity: Capacity,
}

/// Whether a suspended sandbox still holds memory on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suspended {
    /// It does (a paused container): the slot stays taken.
    HoldsMemory,
    /// It does not: the slot goes back.
    Released,
}

/// A cell call.
pub type CellSpec = Box<CellRun>;

/// What a session call executes.
#[derive(Clone, Debug)]
pub enum SessionPayload {
    /// A snippet.
    Javascript(Box<JavaScriptRun>),
    /// Files and steps.
    Project(Box<ProjectRun>),
    /// A cell.
    Cell(CellSpec),
}

/// A validated session call.
#[derive(Clone, Debug)]
pub struct CallSpec {
    /// What to execute.
    pub payload: SessionPayload,
    /// The budget asked for; `None` asks for the provider's default.
    pub timeout: Option<Duration>,
    /// The rule in force for this call.
    pub rule: Rule,
}

/// An open session. The daemon makes one call at a time.
pub trait OpenSession: Send + Sync {
    /// The tier measured at open.
    fn tier(&self) -> TierNow;

    /// The environment captured at open, for the given kind.
    fn environment(&self, kind: Kind) -> Environment;

    /// The end, once there is one; must not block.
    fn ended(&self) -> Option<End>;

    /// Resumes when suspended, reads the sandbox back and runs one call. The
    /// clean-up after it happens off the answer's path, before the next call.
    fn run(&self, spec: CallSpec, context: RunContext) -> BoxFuture<'_, Answer<RunOutput>>;

    /// Suspends the sandbox.
    fn suspend(&self) -> BoxFuture<'_, Answer<Suspended>>;

    /// Ends the session; returns when its sandbox is gone.
    fn close(&self) -> BoxFuture<'_, Answer<()>>;
}
