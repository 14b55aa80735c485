//! The life of a daemon: start, serve, drain.
//!
//! Everything local is settled before anything can cost money or time: settings
//! first, then the listener is bound, and only then is the provider proven.
//! Connections wait in the kernel's queue until it is.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::net::TcpListener;

use crate::{
    admission::Limiter,
    config::{Auth, Choice, Environment, Settings},
    descriptors,
    log::Log,
    provider::{Disabled, Provider, TierNow, tier_name},
    service::{RunService, bounded, log_text},
    surface,
    transport::{self, Drained, Events, Options, Server, SharedToken, tls},
};

pub use crate::exit::{Exit, StartError};

/// Longest preflight and smoke test together.
const READY_BOUND: Duration = Duration::from_secs(120);
/// Interval of upkeep.
const UPKEEP: Duration = Duration::from_secs(60);
/// Longest drain, the provider's included.
const DRAIN: Duration = Duration::from_secs(360);
/// What the provider gets when the listener's drain took all of it.
const LEAST_DRAIN: Duration = Duration::from_secs(5);

/// Runs a daemon from its variables until it is told to stop. `stop` makes the
/// future that resolves when it is; it is called once everything is ready, with
/// whether the daemon is embedded.
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
            let provider = provider(&settings);
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
fn provider(settings: &Settings) -> Arc<dyn Provider> {
    match settings.provider {
        #[cfg(feature = "wasm")]
        Choice::Wasm => Arc::new(crate::provider::Wasm::new(
            settings.resources,
            settings.limits.max_concurrent,
        )),
        // Settings refuse a provider this build does not have.
        #[cfg(not(feature = "wasm"))]
        Choice::Wasm => Arc::new(Disabled::new(settings.resources)),
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
    say_settings(&settings, log);
    let acceptor = match &settings.tls {
        Some(files) => Some(tls::load(&files.certificate, &files.key)?),
        None => None,
    };
    let connection_cap = descriptors::connection_cap();
    let server = bind(&settings.address).await?;
    ensure_ready(&provider).await?;
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
    log.info("sandbox provider ready")
        .text("provider", provider.name())
        .end();

    let limiter = Limiter::new(settings.limits);
    let service = Arc::new(RunService::new(
        Arc::clone(&provider),
        limiter,
        log.clone(),
        proven,
    ));
    let stop = stop(settings.embedded).map_err(StartError::Signals)?;
    let upkeep = tokio::spawn(upkeep(Arc::clone(&service)));
    let ending = Arc::new(Ending::default());
    let options = Options {
        auth: match &settings.auth {
            Auth::Open => transport::Auth::Open,
            Auth::Token(token) => transport::Auth::Shared(SharedToken::new(token.clone())),
        },
        tls: acceptor,
        settings: transport::Settings {
            connection_cap,
            drain: DRAIN,
            ..transport::Settings::new(settings.limits.max_concurrent as usize)
        },
        events: Arc::new(Said {
            log: log.clone(),
            ending: Arc::clone(&ending),
        }),
    };
    say_listening(&settings, &*provider, proven, &server, connection_cap, log);
    // The token's last copy but its digest.
    drop(settings);

    let stopped = async {
        stop.await;
        ending.begin();
        log.info("shutdown signal received; draining in-flight runs")
            .end();
    };
    let ended = server.serve(service, options, stopped).await;
    upkeep.abort();
    drain_provider(provider, ended.drained, ending.begin(), log).await;
    log.info("plimsolld stopped").end();
    Ok(match ended.failure {
        Some(_) => Exit::Environment,
        None => Exit::Ok,
    })
}

fn say_settings(settings: &Settings, log: &Log) {
    for name in &settings.foreign {
        log.warn("setting of another provider ignored")
            .text("name", name)
            .text("provider", settings.provider.name())
            .end();
    }
    if let Some(clamp) = settings.clamp {
        log.warn("SANDBOX_TOTAL_MEMORY_MB lowers SANDBOX_MAX_CONCURRENT")
            .int("max_concurrent", clamp.asked)
            .int("fit", clamp.fit)
            .end();
    }
    if matches!(settings.auth, Auth::Open) {
        log.warn("no authentication: everyone who can connect is the same caller")
            .text("provider", settings.provider.name())
            .end();
    }
}

/// Binds the RPC listener. Without a host it is every interface of both
/// families, or of the only one the machine has.
async fn bind(address: &str) -> Result<Server, StartError> {
    let bound = match address.strip_prefix(':') {
        Some(port) => match TcpListener::bind(format!("[::]:{port}")).await {
            Err(error) if has_no_ipv6(&error) => TcpListener::bind(format!("0.0.0.0:{port}")).await,
            bound => bound,
        },
        None => TcpListener::bind(address).await,
    };
    bound
        .and_then(Server::new)
        .map_err(|error| StartError::Bind {
            address: address.to_owned(),
            error,
        })
}

fn has_no_ipv6(error: &io::Error) -> bool {
    // EAFNOSUPPORT, EADDRNOTAVAIL
    matches!(error.raw_os_error(), Some(97 | 99))
}

async fn ensure_ready(provider: &Arc<dyn Provider>) -> Result<(), StartError> {
    let name = provider.name();
    let provider = Arc::clone(provider);
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

async fn drain_provider(provider: Arc<dyn Provider>, left: Drained, begun: Instant, log: &Log) {
    if left != Drained::default() {
        log.warn("runs did not end in time and were cut")
            .int("connections", count(left.connections_cut))
            .int("calls", count(left.calls_left))
            .end();
    }
    let now = Instant::now();
    let until = (begun + DRAIN).max(now + LEAST_DRAIN);
    let drained = bounded(until - now, async move { provider.drain(until).await }).await;
    if let Err(error) = drained {
        log.warn("the provider did not drain; a later daemon removes what is left")
            .text("error", &surface::cut(&log_text(&error)))
            .end();
    }
}

fn say_listening(
    settings: &Settings,
    provider: &dyn Provider,
    proven: TierNow,
    server: &Server,
    connection_cap: Option<usize>,
    log: &Log,
) {
    let limits = settings.limits;
    let resources = provider.resources();
    log.info("plimsolld listening")
        .text("addr", &server.local_addr().to_string())
        .text("provider", provider.name())
        .text("isolation", tier_name(proven))
        .bool("auth", !matches!(settings.auth, Auth::Open))
        .int("max_concurrent", limits.max_concurrent)
        .int("per_key_concurrent", limits.per_key)
        .int("rate_per_min", limits.rate_per_min)
        .int("rate_burst", limits.burst)
        .int("mem_mb", resources.memory_mb)
        .float("cpus", resources.cpus)
        .int("pids", resources.pids)
        .int("disk_mb", resources.disk_mb)
        .bool("tls", settings.tls.is_some())
        .text("metrics_addr", "off")
        .text("guard_addr", "none")
        // 0 is no bound.
        .int("max_connections", connection_cap.map_or(0, count))
        .end();
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// When the end began: at the stop signal or when a listener failed.
#[derive(Default)]
struct Ending(Mutex<Option<Instant>>);

impl Ending {
    fn begin(&self) -> Instant {
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(Instant::now)
    }
}

/// What the transport has to say, as log lines.
struct Said {
    log: Log,
    ending: Arc<Ending>,
}

impl Events for Said {
    fn credentials_refused(&self, count: u64, window: Duration) {
        self.log
            .warn("credentials refused")
            .int("count", count)
            .text("window", &format!("{}s", window.as_secs()))
            .end();
    }

    fn listener_failed(&self, error: &io::Error) {
        self.ending.begin();
        self.log
            .error("the RPC listener failed; draining in-flight runs")
            .text("error", &error.to_string())
            .end();
    }
}

#[cfg(test)]
#[path = "start_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "start_run_tests.rs"]
mod run_tests;
