//! Handing a run to the provider: under a ceiling, in a task of its own, with
//! panics caught.

use std::{
    future::Future,
    panic::AssertUnwindSafe,
    sync::Arc,
    time::{Duration, Instant},
};

use futures_util::FutureExt;
use plimsoll_wire::limits::MAX_RUN;

use super::admit::Admitted;
use crate::{
    admission::{Charge, Moment, Receipt, Reservation},
    call::Call,
    provider::{Answer, Kind, Provider, ProviderError, RunContext, RunOutput, RunSpec, Teardown},
    surface,
};

/// How long a provider may take past the call's deadline to end a run before
/// the call is answered without it. Its task goes on and keeps its slot.
const GRACE: Duration = Duration::from_secs(10);

/// What a run leaves to be told, besides its outcome.
pub(super) struct Aftermath {
    teardown: Teardown,
    receipt: Option<Receipt>,
}

impl Aftermath {
    /// Whether the sandbox could not be removed.
    pub(super) fn gave_up(&self) -> bool {
        self.teardown.gave_up()
    }

    /// The limit in MiB that memory ran out at.
    pub(super) fn memory_limit_hit(&self) -> Option<u64> {
        self.teardown.memory_limit_hit()
    }

    /// The paid time it was charged, on a provider billed by the second.
    pub(super) fn paid(&self) -> Option<Duration> {
        self.receipt.as_ref().map(Receipt::charged)
    }
}

/// Runs one request.
pub(super) async fn run(
    provider: &Arc<dyn Provider>,
    spec: RunSpec,
    admitted: Admitted,
    call: &Call,
) -> (Answer<RunOutput>, Aftermath) {
    let Admitted { capacity, paid } = admitted;
    let ceiling = Instant::now() + MAX_RUN;
    let deadline = call.deadline.map_or(ceiling, |own| own.min(ceiling));
    let teardown = Teardown::default();
    let context = RunContext {
        deadline,
        caller_gone: call.caller_gone.clone(),
        // The task's clone is the only one: a provider that hangs keeps the
        // slot for as long as it hangs, whatever the caller was told.
        capacity,
        grant: None,
        teardown: teardown.clone(),
    };
    let aftermath = Aftermath {
        teardown: teardown.clone(),
        receipt: paid.as_ref().map(Reservation::receipt),
    };
    let provider = Arc::clone(provider);
    let left = deadline.saturating_duration_since(Instant::now());
    let outcome = bounded(left + GRACE, async move {
        let capacity = context.capacity.clone();
        let outcome = provider.run(spec, context).await;
        // A run that panics drops its reservation, which charges the time so far.
        if let Some(paid) = paid {
            paid.settle(charge(&teardown), Moment::now());
        }
        drop(capacity);
        outcome
    });
    (outcome.await, aftermath)
}

fn charge(teardown: &Teardown) -> Charge {
    let owed = teardown.owed();
    if teardown.gave_up() {
        Charge::Whole { owed }
    } else {
        Charge::Elapsed { owed }
    }
}

/// Runs `work` in a task of its own, which goes on when `bound` has passed.
pub(crate) async fn bounded<T: Send + 'static>(
    bound: Duration,
    work: impl Future<Output = Answer<T>> + Send + 'static,
) -> Answer<T> {
    let task = tokio::spawn(AssertUnwindSafe(work).catch_unwind());
    match tokio::time::timeout(bound, task).await {
        Err(_) => Err(ProviderError::new(
            Kind::Deadline,
            "the provider did not end in time",
        )),
        Ok(Err(_)) => Err(ProviderError::internal(
            "the daemon stopped before the provider ended",
        )),
        Ok(Ok(Err(payload))) => Err(ProviderError::internal(surface::panic_text(&*payload))),
        Ok(Ok(Ok(answer))) => answer,
    }
}

/// An error's text for the log; a bare deadline or cancellation has its
/// sentence.
pub(crate) fn log_text(error: &ProviderError) -> String {
    let text = error.full_text();
    match surface::sentence(error) {
        Some(sentence) if text.is_empty() => sentence.to_owned(),
        _ => text,
    }
}
