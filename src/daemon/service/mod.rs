//! The five procedures.
//!
//! Everything cheap is checked first and nothing is admitted before every check
//! passed, in the order of `check.rs`. A refusal says so with its mark; an
//! error after dispatch never does unless the provider itself marked it.

mod admit;
mod answer;
mod audit;
mod check;
mod describe;
mod dispatch;
mod sessions;

pub(crate) use dispatch::{bounded, log_text};

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use plimsoll_record::{make, request_digest};
use plimsoll_wire::{
    Code, Reason, Refusal,
    proto::{
        CloseSessionRequest, CloseSessionResponse, DescribeRequest, DescribeResponse, MessageField,
        OpenSessionRequest, OpenSessionResponse, RunRequest, RunResponse, SessionRunRequest,
        SessionRunResponse, run_request,
    },
};

use crate::{
    admission::{Ledger, Limiter},
    call::{Answer, Call, CallError, Service},
    log::Log,
    metrics::Metrics,
    provider::{Payload, Provider, RunSpec, TierNow, tier_name},
    surface,
    time::{millis, unix_ms},
};

/// The longest a readiness check or a re-proof of the tier is waited for.
pub const PREFLIGHT_BOUND: Duration = Duration::from_secs(30);
/// A failing readiness check is logged at most this often.
const READY_LOG_EVERY: Duration = Duration::from_secs(30);

/// The longest a run waits for the log's reader before it is refused.
const LOG_PATIENCE: Duration = Duration::from_secs(10);

/// The service over one provider.
pub struct RunService {
    provider: Arc<dyn Provider>,
    limiter: Arc<Limiter>,
    ledger: Arc<Ledger>,
    log: Log,
    proven: TierNow,
    metrics: Arc<Metrics>,
    ready_logged: Mutex<Option<Instant>>,
}

impl RunService {
    /// A service over a provider that start-up has proven at tier `proven`.
    #[must_use]
    pub fn new(
        provider: Arc<dyn Provider>,
        limiter: Arc<Limiter>,
        log: Log,
        proven: TierNow,
    ) -> Self {
        RunService {
            provider,
            limiter,
            ledger: Ledger::new(0, HashMap::new()),
            log,
            proven,
            metrics: Arc::default(),
            ready_logged: Mutex::new(None),
        }
    }

    /// The same service with these allowances of paid time; without, there are
    /// none.
    #[must_use]
    pub fn with_ledger(mut self, ledger: Arc<Ledger>) -> Self {
        self.ledger = ledger;
        self
    }

    /// What has been counted.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// The limiter, for gauges.
    #[must_use]
    pub fn limiter(&self) -> &Arc<Limiter> {
        &self.limiter
    }

    /// One round of upkeep, made every minute while serving: proves the tier
    /// again when it fell below what start-up proved, and destroys sandboxes
    /// nothing owns. Without the first, a lapsed tier would refuse every call
    /// with a floor and nothing would ever refresh it.
    pub async fn upkeep(&self) {
        let tier = self.provider.tier();
        if tier < self.proven
            && let Err(text) = self.preflight().await
        {
            self.log
                .warn("the isolation tier could not be proven again")
                .text("provider", self.provider.name())
                .text("isolation", tier_name(self.provider.tier()))
                .text("proven", tier_name(self.proven))
                .text("error", &surface::cut(&text))
                .end();
        }
        let provider = Arc::clone(&self.provider);
        let reaped = dispatch::bounded(PREFLIGHT_BOUND, async move {
            provider.reconcile_orphans().await
        });
        let line = match reaped.await {
            Ok(0) => return,
            Ok(count) => self
                .log
                .warn("leaked sandboxes removed")
                .int("count", i64::try_from(count).unwrap_or(i64::MAX)),
            Err(error) => self
                .log
                .warn("leaked sandboxes could not be looked for")
                .text("error", &surface::cut(&error.full_text())),
        };
        line.end();
    }

    /// A bounded preflight; an error is text for the log only.
    async fn preflight(&self) -> Result<(), String> {
        let provider = Arc::clone(&self.provider);
        // In a task of its own: a poller that hangs up must not cut a check
        // short and so lower the tier.
        dispatch::bounded(PREFLIGHT_BOUND, async move { provider.preflight().await })
            .await
            .map_err(|error| dispatch::log_text(&error))
    }

    async fn single_run(&self, call: Call, request: RunRequest) -> Answer<RunResponse> {
        let checked = check::single_run(&request, &call.principal, &*self.provider)
            .map_err(|refusal| CallError::refused(&refusal))?;
        let digest = request_digest(&request);
        let entry = audit::Entry::of(&request, &call.principal);
        let payload = payload(request.payload).ok_or_else(|| {
            surface::internal("a payload passed its check and is none", &self.log)
        })?;
        let kind = payload.kind();
        self.room_in_log(&call).await?;
        let admitted = admit::run(
            &*self.provider,
            &self.limiter,
            &self.ledger,
            &call.principal,
            kind,
            checked.timeout,
        )
        .map_err(|refusal| CallError::refused(&refusal))?;
        let rule = checked.rule;
        let spec = RunSpec {
            payload,
            timeout: checked.timeout,
            floor: checked.floor,
            rule: rule.clone(),
        };

        self.metrics.run_dispatched();
        let begun = Instant::now();
        let (outcome, aftermath) = dispatch::run(&self.provider, spec, admitted, &call).await;
        let duration_ms = millis(begun.elapsed());

        let stated = || self.provider.environment(kind).identity;
        let response = outcome.and_then(|output| {
            answer::build(output, kind, self.provider.name(), stated, duration_ms)
        });
        let mut response = match response {
            Ok(response) => response,
            Err(error) => {
                if error.kind().is_infrastructure() {
                    self.metrics.run_failed();
                }
                let current = audit::Current {
                    sandbox: self.provider.name(),
                    tier: self.provider.tier(),
                };
                entry.failed(&self.log, &current, duration_ms, &aftermath, &error);
                return Err(surface::shown(&error, &self.log));
            }
        };
        entry.succeeded(&self.log, &response, &aftermath);

        let started = unix_ms(call.received);
        let facts = make::Facts {
            request: digest,
            rule: &rule,
            policy: &self.provider.policy(),
            started_unix_ms: started,
            ended_unix_ms: started.saturating_add(millis(call.received_at.elapsed())),
            chain: None,
        };
        response.record = MessageField::some(make::answered(&facts, &response));
        Ok(response)
    }

    /// Waits until the line of one more run has room in the log, or refuses the
    /// run: none begins that the log could not tell of.
    async fn room_in_log(&self, call: &Call) -> Answer<()> {
        let patience = tokio::time::Instant::now() + LOG_PATIENCE;
        let until = call
            .deadline
            .map_or(patience, |deadline| patience.min(deadline.into()));
        let room = tokio::select! {
            biased;
            room = self.log.room() => room,
            () = call.caller_gone.cancelled() => false,
            () = tokio::time::sleep_until(until) => false,
        };
        if room {
            return Ok(());
        }
        Err(CallError::refused(&Refusal::new(
            Code::Unavailable,
            Reason::Environment,
            "the daemon's log is not being read; the run was not started",
        )))
    }

    /// Whether a failing check may be logged now.
    fn may_log_readiness(&self) -> bool {
        let mut last = self
            .ready_logged
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let due = last.is_none_or(|at| at.elapsed() >= READY_LOG_EVERY);
        if due {
            *last = Some(Instant::now());
        }
        due
    }
}

fn payload(payload: Option<run_request::Payload>) -> Option<Payload> {
    match payload? {
        run_request::Payload::Javascript(run) => Some(Payload::Javascript(run)),
        run_request::Payload::Project(run) => Some(Payload::Project(run)),
        run_request::Payload::Module(run) => Some(Payload::Module(run)),
        run_request::Payload::Cell(_) => None,
    }
}

impl Service for RunService {
    async fn run(&self, call: Call, request: RunRequest) -> Answer<RunResponse> {
        Box::pin(self.single_run(call, request)).await
    }

    async fn describe(&self, _: Call, _: DescribeRequest) -> Answer<DescribeResponse> {
        Ok(describe::describe(&*self.provider))
    }

    async fn open_session(
        &self,
        _: Call,
        request: OpenSessionRequest,
    ) -> Answer<OpenSessionResponse> {
        Err(sessions::open(&request))
    }

    async fn session_run(&self, _: Call, request: SessionRunRequest) -> Answer<SessionRunResponse> {
        Err(sessions::run(&request))
    }

    async fn close_session(
        &self,
        _: Call,
        request: CloseSessionRequest,
    ) -> Answer<CloseSessionResponse> {
        Err(sessions::close(&request))
    }

    async fn ready(&self) -> bool {
        let checked = match self.preflight().await {
            // A daemon that cannot keep its audit lines should get no more runs.
            Ok(()) => match self.log.trouble() {
                Some(trouble) => Err(trouble.to_owned()),
                None => Ok(()),
            },
            failed => failed,
        };
        match checked {
            Ok(()) => true,
            Err(text) => {
                if self.may_log_readiness() {
                    self.log
                        .warn("readiness check failed")
                        .text("provider", self.provider.name())
                        .text("error", &surface::cut(&text))
                        .end();
                }
                false
            }
        }
    }

    fn internal_error(&self, detail: &str) -> CallError {
        surface::internal(detail, &self.log)
    }
}

#[cfg(test)]
mod admit_tests;
#[cfg(test)]
mod audit_tests;
#[cfg(test)]
mod failure_tests;
#[cfg(test)]
pub(crate) mod fake;
#[cfg(test)]
mod log_tests;
#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod run_tests;
#[cfg(test)]
mod surfacing_tests;
#[cfg(all(test, feature = "wasm"))]
mod wasm_tests;
