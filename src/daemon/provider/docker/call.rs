//! One run in one container, from admission's slot to the container's removal.

use std::time::{Duration, Instant};

use plimsoll_wire::Reason;
use tokio_util::sync::CancellationToken;
use zeroize::Zeroizing;

use super::{
    attach::Fed,
    body::Container,
    container::{Bounds, Ended, Ending, Ready, Sandbox},
    execution::{Execution, Role},
    fault::during,
    launch::{self, Marker, Start},
    limits::CONTROL_CALL,
    pool::Pool,
};
use crate::{
    admission::Capacity,
    provider::{Answer, Kind, ProviderError, Stream, Teardown},
};

/// How names of containers that run callers' code begin.
pub(super) const RUN_PREFIX: &str = "crsbx-";

/// What surrounds one run.
pub(super) struct Call {
    /// The command's budget, from its start.
    pub(super) budget: Duration,
    /// When the call is over, whatever the budget says.
    pub(super) deadline: Instant,
    /// Cancelled when the caller has gone.
    pub(super) caller_gone: CancellationToken,
    /// Kept until the container is gone.
    pub(super) capacity: Option<Capacity>,
    /// Told when the container could not be removed, or memory ran out in it.
    pub(super) teardown: Teardown,
    /// How its container's name begins.
    pub(super) prefix: &'static str,
}

/// A command to run.
pub(super) struct Command<'a> {
    pub(super) role: Role,
    /// `NAME=value` entries before it.
    pub(super) environment: &'a [String],
    pub(super) arguments: &'a [&'a str],
    /// What it reads.
    pub(super) input: Zeroizing<Vec<u8>>,
    pub(super) stdout_cap: usize,
    pub(super) stderr_cap: usize,
}

/// A command that started, and how it ended.
pub(super) struct Outcome {
    pub(super) exit: Exit,
    pub(super) stdout: Stream,
    pub(super) stderr: Stream,
    /// Memory ran out in the container, so far as the engine says.
    pub(super) out_of_memory: bool,
}

/// How a command that started ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exit {
    /// By itself, or by a signal of its own container.
    Code(i32),
    /// Its budget ended it.
    Budget,
}

impl Call {
    /// Runs a command to its end. On a clean exit the container is removed
    /// behind the answer, and keeps the run's slot until it is gone; on any
    /// other end it is removed first.
    ///
    /// # Errors
    /// Marked when nothing was fed to a container; else the run may have
    /// happened.
    pub(super) async fn run(
        &self,
        execution: &Execution,
        pool: Option<&Pool>,
        command: Command<'_>,
    ) -> Answer<Outcome> {
        let bounds = Bounds {
            budget: self.budget,
            deadline: self.deadline,
            caller_gone: self.caller_gone.clone(),
            stdout_cap: command.stdout_cap,
            stderr_cap: command.stderr_cap,
        };
        let marker = Marker::fresh().map_err(|e| nothing_ran(during("making a marker", e)))?;
        let (ready, input) = self.ready(execution, pool, &marker, command).await?;
        let ended = ready.feed(input).ended(&marker, &bounds).await;
        self.judged(ended).await
    }

    /// A started container that waits for its input, and that input.
    async fn ready(
        &self,
        execution: &Execution,
        pool: Option<&Pool>,
        marker: &Marker,
        command: Command<'_>,
    ) -> Answer<(Ready, Fed)> {
        let role = command.role;
        let making = async {
            if let Some(pool) = pool
                && let Some(member) = pool.claim(execution, role).await
            {
                let line = Zeroizing::new(marker.line());
                return Ok((member, vec![line, command.input]));
            }
            let image = execution.image(role);
            let arguments =
                launch::guest(Start::Now(marker), command.environment, command.arguments);
            let container = Container {
                image,
                arguments: &arguments,
                storage: execution.storage(role),
                lifetime: self.lifetime(),
                socket: None,
                attached: true,
            };
            let ready = execution.maker.make(self.prefix, &container).await?;
            ready.sandbox.start().await?;
            Ok((ready, vec![command.input]))
        };
        // Dropped here, a container in the making is removed.
        tokio::select! {
            biased;
            made = making => made.map_err(nothing_ran),
            () = self.caller_gone.cancelled() => {
                Err(ProviderError::canceled().not_dispatched(Reason::Capacity))
            }
            () = tokio::time::sleep_until(self.deadline.into()) => {
                Err(ProviderError::deadline().not_dispatched(Reason::Capacity))
            }
        }
    }

    /// How long a container of this call may be needed.
    fn lifetime(&self) -> Duration {
        let left = self.deadline.saturating_duration_since(Instant::now());
        left.min(self.budget + CONTROL_CALL)
    }

    async fn judged(&self, ended: Ended) -> Answer<Outcome> {
        let Ended {
            ending,
            stdout,
            stderr,
            sandbox,
        } = ended;
        let outcome = |exit, stderr, out_of_memory| {
            Ok(Outcome {
                exit,
                stdout,
                stderr,
                out_of_memory,
            })
        };
        let answer = match (ending, stderr) {
            (Ending::Exited(0), Some(stderr)) => {
                let answer = outcome(Exit::Code(0), stderr, false);
                sandbox.remove(self.capacity.clone());
                return answer;
            }
            // Asked also to know that the engine lives: one that stops sends
            // its containers signals that are not the guest's doing.
            (Ending::Exited(code), Some(stderr)) => match sandbox.out_of_memory(code).await {
                Ok(out_of_memory) => {
                    if out_of_memory {
                        self.teardown.out_of_memory(sandbox.memory_mb());
                    }
                    let answer = outcome(Exit::Code(code), stderr, out_of_memory);
                    sandbox.remove(self.capacity.clone());
                    return answer;
                }
                Err(error) => Err(error),
            },
            (Ending::Budget, Some(stderr)) => outcome(Exit::Budget, stderr, false),
            (Ending::Budget | Ending::Deadline, None) => Err(not_started(Kind::Deadline)),
            (Ending::Canceled, None) => Err(not_started(Kind::Canceled)),
            (Ending::Deadline, Some(_)) => Err(ProviderError::deadline()),
            (Ending::Canceled, Some(_)) => Err(ProviderError::canceled()),
            (Ending::Broken(error), _) => Err(error),
            (Ending::Exited(code), None) => Err(during(
                "starting a command",
                format!("the container exited {code} and never showed its start"),
            )),
        };
        self.removed(sandbox).await;
        answer
    }

    /// Removes a container before the answer.
    async fn removed(&self, sandbox: Sandbox) {
        let gone = sandbox.remove(self.capacity.clone()).await;
        if !gone.unwrap_or(false) {
            self.teardown.give_up();
        }
    }
}

/// Nothing was fed to a container, so nothing of the caller's can have run.
fn nothing_ran(error: ProviderError) -> ProviderError {
    error.not_dispatched(Reason::Environment)
}

fn not_started(kind: Kind) -> ProviderError {
    ProviderError::new(kind, "the command did not start before the run ended")
}
