//! The life of a daemon: start, serve, drain.
//!
//! Everything local is settled before anything can cost money or time: settings
//! first, then the production policy, then every listener is bound, and only
//! then is the provider proven. Connections wait in the kernel's queue until it
//! is.

use std::{
    io,
    pin::pin,
    sync::Arc,
    time::{Duration, Instant},
};

use plimsoll_callers::Caller;
use tokio_rustls::TlsAcceptor;

use crate::{
    admission::{Ledger, Limiter},
    announce::{self, Addresses, count},
    config::{Auth, Choice, Environment, Settings},
    descriptors,
    hardened::{self, Situation},
    listeners::{Bound, Ending, Said, Scraped},
    log::Log,
    provider::{Disabled, Provider},
    registry::RegistryLookup,
    service::{RunService, bounded, log_text},
    surface,
    transport::{self, Drained, Options, SharedToken, tls},
};

pub use crate::exit::{Exit, StartError};

/// Longest preflight and smoke test together.
const READY_BOUND: Duration = Duration::from_secs(120);
/// Interval of upkeep.
const UPKEEP: Duration = Duration::from_secs(60);
/// Longest drain, the provider's included.
const DRAIN: Duration = Duration::from_secs(360);
/// The provider's drain after a start that failed.
const FAILED_DRAIN: Duration = Duration::from_secs(30);
/// What the provider gets when the listener's drain took all of it.
const LEAST_DRAIN: Duration = Duration::from_secs(5);

/// Runs a daemon from its variables until it is told to stop. `stop` makes the
/// future that resolves when it is; it is called, with whether the daemon is
/// embedded, before anything outside this process is begun.
pub async fn run<S: Future<Output = ()>>(
    environment: Environment,
    log: Log,
    stop: impl FnOnce(bool) -> io::Result<S>,
) -> Exit {
    for name in environment.unknown() {
        log.warn("unknown variable ignored: this plimsolld has no such setting")
            .text("name", &name)
            .end();
    }
    let settings = Settings::read(&environment);
    // Wipes the token's copy; the settings hold the only other one.
    drop(environment);
    let outcome = match settings {
        Ok(settings) => {
            let provider = provider(&settings, &log);
            run_with(settings, provider, &log, stop).await
        }
        Err(error) => Err(error.into()),
    };
    outcome.unwrap_or_else(|error| {
        log.error("plimsolld could not start")
            .text("error", &surface::cut(&error.to_string()))
            .end();
        error.exit()
    })
}

/// The provider the settings choose. No network, no process.
fn provider(settings: &Settings, log: &Log) -> Arc<dyn Provider> {
    // Only an engine has more to say than its errors.
    #[cfg(not(feature = "docker"))]
    let _ = log;
    match &settings.provider {
        #[cfg(feature = "wasm")]
        Choice::Wasm => Arc::new(crate::provider::Wasm::new(
            settings.resources,
            settings.limits.max_concurrent,
        )),
        #[cfg(feature = "docker")]
        Choice::Docker(docker) => Arc::new(crate::provider::Docker::new(
            (**docker).clone(),
            settings.resources,
            log.clone(),
        )),
        Choice::Disabled => Arc::new(Disabled::new(settings.resources)),
    }
}

/// As [`run`], with settings and provider made.
pub(crate) async fn run_with<S: Future<Output = ()>>(
    settings: Settings,
    provider: Arc<dyn Provider>,
    log: &Log,
    stop: impl FnOnce(bool) -> io::Result<S>,
) -> Result<Exit, StartError> {
    announce::settings(&settings, log);
    let acceptor = match &settings.tls {
        Some(files) => Some(tls::load(&files.certificate, &files.key)?),
        None => None,
    };
    if let Some(facts) = &settings.hardened {
        hardened::check_settings(facts, &situation(&settings, &*provider))?;
    }
    let bound = Bound::all(&settings).await?;
    announce::metrics_address(&settings, log);
    let ended = Box::pin(run_bound(
        settings,
        Arc::clone(&provider),
        log,
        stop,
        acceptor,
        bound,
    ));
    let ended = ended.await;
    if ended.is_err() {
        // A start that failed half-way may have made something already.
        let until = Instant::now() + FAILED_DRAIN;
        drain_provider(provider, Drained::default(), until, log).await;
    }
    ended
}

/// As [`run_with`], with everything local settled and every listener bound.
async fn run_bound<S: Future<Output = ()>>(
    settings: Settings,
    provider: Arc<dyn Provider>,
    log: &Log,
    stop: impl FnOnce(bool) -> io::Result<S>,
    acceptor: Option<TlsAcceptor>,
    bound: Bound,
) -> Result<Exit, StartError> {
    let connection_cap = descriptors::connection_cap();

    // From here on something of this daemon may be outside of it, such as the
    // sandbox of a smoke test, which a signal must not leave behind.
    let mut stop = pin!(stop(settings.embedded).map_err(StartError::Signals)?);
    let ending = Arc::new(Ending::default());
    let mut ready = pin!(ensure_ready(Arc::clone(&provider)));
    let stopped_early = tokio::select! {
        biased;
        ready = ready.as_mut() => {
            ready?;
            false
        }
        () = stop.as_mut() => true,
    };
    if stopped_early {
        say_draining(log);
        // The smoke test removes its sandbox at its own, bounded end.
        let _ = ready.await;
        let until = ending.begin() + DRAIN;
        drain_provider(provider, Drained::default(), until, log).await;
        log.info("plimsolld stopped").end();
        return Ok(Exit::Ok);
    }
    let proven = provider.tier();
    if let Some(floor) = settings.min_isolation
        && proven < Some(floor)
    {
        return Err(StartError::Isolation {
            provider: provider.name(),
            floor,
            proven,
        });
    }
    announce::ready(&*provider, proven, log);

    let limiter = Limiter::new(settings.limits);
    let service = RunService::new(Arc::clone(&provider), limiter, log.clone(), proven);
    let service = Arc::new(service.with_ledger(ledger(&settings)));
    if let Some(facts) = &settings.hardened {
        hardened::check_all(facts, &situation(&settings, &*provider), proven)?;
        log.info("the production policy is met")
            .text("provider", provider.name())
            .end();
    }
    let said = |listener| Said {
        listener,
        log: log.clone(),
        ending: Arc::clone(&ending),
    };
    let addresses = Addresses {
        rpc: bound.rpc.local_addr().to_string(),
        metrics: bound.metrics.as_ref().map(|m| m.local_addr().to_string()),
        connection_cap,
    };
    let upkeep = tokio::spawn(upkeep(Arc::clone(&service)));
    let scraped = Scraped::serve(bound.metrics, acceptor.clone(), &service, said("metrics"));
    let options = Options {
        auth: match &settings.auth {
            Auth::Open => transport::Auth::Open,
            Auth::Token(token) => transport::Auth::Shared(SharedToken::new(token.clone())),
            Auth::Registry(registry) => {
                transport::Auth::Lookup(Arc::new(RegistryLookup::new(Arc::clone(registry))))
            }
        },
        tls: acceptor,
        settings: transport::Settings {
            connection_cap,
            drain: DRAIN,
            ..transport::Settings::new(settings.limits.max_concurrent as usize)
        },
        events: Arc::new(said("RPC")),
    };
    announce::listening(&settings, &*provider, proven, &addresses, log);
    // The token's last copy but its digest.
    drop(settings);

    let metrics_failed = scraped.failed();
    let stopped = async {
        tokio::select! {
            () = stop => say_draining(log),
            () = metrics_failed => log.stop_waits(),
        }
        ending.begin();
    };
    let ended = bound.rpc.serve(service, options, stopped).await;
    upkeep.abort();
    drain_provider(provider, ended.drained, ending.begin() + DRAIN, log).await;
    // Last, so that a scraper can watch the runs in flight go down.
    let metrics_failed = scraped.close().await;
    log.info("plimsolld stopped").end();
    Ok(match ended.failure {
        None if !metrics_failed => Exit::Ok,
        _ => Exit::Environment,
    })
}

/// The allowances of paid time: the daemon's and each caller's own.
fn ledger(settings: &Settings) -> Arc<Ledger> {
    let callers = callers(settings)
        .iter()
        .map(|caller| (caller.id.shared(), caller.paid_seconds_per_day));
    Ledger::new(settings.paid_seconds_per_day, callers.collect())
}

/// The callers of the registry; none without one.
fn callers(settings: &Settings) -> &[Caller] {
    match &settings.auth {
        Auth::Registry(registry) => registry.callers(),
        Auth::Open | Auth::Token(_) => &[],
    }
}

/// What the production policy judges.
fn situation<'a>(settings: &'a Settings, provider: &'a dyn Provider) -> Situation<'a> {
    Situation {
        provider: provider.name(),
        metered: provider.metering().is_some(),
        registry: matches!(settings.auth, Auth::Registry(_)),
        without_allowance: callers(settings)
            .iter()
            .filter(|caller| caller.paid_seconds_per_day == 0)
            .map(|caller| caller.id.as_str().to_owned())
            .collect(),
        tls: settings.tls.is_some(),
        address: &settings.address,
        metrics: settings.metrics_address.as_deref(),
        guard: None,
        limits: settings.limits,
        sessions: settings.sessions.max,
        sessions_per_caller: settings.sessions.per_caller,
    }
}

async fn ensure_ready(provider: Arc<dyn Provider>) -> Result<(), StartError> {
    let name = provider.name();
    bounded(READY_BOUND, async move {
        provider.preflight().await?;
        provider.smoke_test().await
    })
    .await
    .map_err(|error| match error.setting() {
        Some(variable) => StartError::Unusable {
            variable,
            provider: name,
            error,
        },
        None => StartError::NotReady {
            provider: name,
            error,
        },
    })
}

async fn upkeep(service: Arc<RunService>) {
    let mut round = tokio::time::interval_at(tokio::time::Instant::now() + UPKEEP, UPKEEP);
    round.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        round.tick().await;
        service.upkeep().await;
    }
}

async fn drain_provider(provider: Arc<dyn Provider>, left: Drained, until: Instant, log: &Log) {
    if left != Drained::default() {
        log.warn("runs did not end in time and were cut")
            .int("connections", count(left.connections_cut))
            .int("calls", count(left.calls_left))
            .end();
    }
    let now = Instant::now();
    let until = until.max(now + LEAST_DRAIN);
    let drained = bounded(until - now, async move { provider.drain(until).await }).await;
    if let Err(error) = drained {
        log.warn("the provider did not drain; a later daemon removes what is left")
            .text("error", &surface::cut(&log_text(&error)))
            .end();
    }
}

fn say_draining(log: &Log) {
    log.info("shutdown signal received; draining in-flight runs")
        .end();
    log.stop_waits();
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "start_run_tests.rs"]
mod run_tests;

#[cfg(test)]
#[path = "start_wire_tests.rs"]
mod wire_tests;
