//! The daemon's listeners: bound together before anything is proven, served
//! and closed in their order.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{
    config::{Settings, Variable, variable as v},
    exit::StartError,
    log::Log,
    metrics,
    service::RunService,
    transport::{self, Ended, Events, Page, Server},
};

/// Bound listeners that answer nothing yet: connections wait in the kernel.
pub(crate) struct Bound {
    pub(crate) rpc: Server,
    pub(crate) metrics: Option<Server>,
}

impl Bound {
    /// Binds every listener. One address for two of them fails here.
    pub(crate) async fn all(settings: &Settings) -> Result<Bound, StartError> {
        let rpc = bind(&v::PLIMSOLL_ADDR, &settings.address).await?;
        let metrics = match &settings.metrics_address {
            Some(address) => Some(bind(&v::PLIMSOLL_METRICS_ADDR, address).await?),
            None => None,
        };
        Ok(Bound { rpc, metrics })
    }
}

/// Binds one. Without a host it is every interface of both families, or of the
/// only one the machine has.
async fn bind(variable: &Variable, address: &str) -> Result<Server, StartError> {
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
            variable: variable.name,
            address: address.to_owned(),
            error,
        })
}

fn has_no_ipv6(error: &io::Error) -> bool {
    // EAFNOSUPPORT, EADDRNOTAVAIL
    matches!(error.raw_os_error(), Some(97 | 99))
}

/// The metrics listener while it serves.
pub(crate) struct Scraped {
    close: CancellationToken,
    failed: CancellationToken,
    task: Option<JoinHandle<Ended>>,
}

impl Scraped {
    /// Serves the metrics of `service`, until [`Scraped::close`].
    pub(crate) fn serve(
        server: Option<Server>,
        tls: Option<TlsAcceptor>,
        service: &Arc<RunService>,
        events: Said,
    ) -> Scraped {
        let (close, failed) = (CancellationToken::new(), CancellationToken::new());
        let task = server.map(|server| {
            let (counted, limiter) = (Arc::clone(service.metrics()), Arc::clone(service.limiter()));
            let log = events.log.clone();
            let page = Page::new("/metrics", metrics::CONTENT_TYPE, move || {
                counted.exposition(&limiter, log.lost())
            });
            let (close, failed) = (close.clone(), failed.clone());
            tokio::spawn(async move {
                let settings = transport::Settings::page();
                let stop = close.cancelled_owned();
                let ended = server
                    .serve_page(page, tls, settings, Arc::new(events), stop)
                    .await;
                if ended.failure.is_some() {
                    failed.cancel();
                }
                ended
            })
        });
        Scraped {
            close,
            failed,
            task,
        }
    }

    /// Resolves when the listener has failed.
    pub(crate) fn failed(&self) -> impl Future<Output = ()> + use<> {
        self.failed.clone().cancelled_owned()
    }

    /// Ends the listener, and says whether it had failed before.
    pub(crate) async fn close(self) -> bool {
        self.close.cancel();
        match self.task {
            // A lost task is a fault of ours that the panic's hook has told of.
            Some(task) => task.await.map_or(true, |ended| ended.failure.is_some()),
            None => false,
        }
    }
}

/// When the end began: at the stop signal or when a listener failed.
#[derive(Default)]
pub(crate) struct Ending(Mutex<Option<Instant>>);

impl Ending {
    pub(crate) fn begin(&self) -> Instant {
        *self
            .0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_or_insert_with(Instant::now)
    }
}

/// What a listener has to say, as log lines.
#[derive(Clone)]
pub(crate) struct Said {
    pub(crate) listener: &'static str,
    pub(crate) log: Log,
    pub(crate) ending: Arc<Ending>,
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
        let message = format!(
            "the {} listener failed; draining in-flight runs",
            self.listener
        );
        self.log
            .error(&message)
            .text("error", &error.to_string())
            .end();
        self.log.stop_waits();
    }
}
