//! The listener: connections under a cap, and an end that loses no call.

use std::{future::Future, io, net::SocketAddr, pin::pin, sync::Arc, time::Duration};

use tokio::{
    net::{TcpListener, TcpStream},
    time::{Instant, sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::task::TaskTracker;

use super::{
    admit::Admission,
    auth::Auth,
    connection::{self, Ending, Opening},
    events::Events,
    gate::Gate,
    page::Page,
    places::{Place, Places},
    refused::RefusedCredentials,
    respond::Respond,
    settings::Settings,
    slots::DecodeSlots,
};
use crate::call::Service;

/// Pause after a connection could not be accepted for want of a resource.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// A bound listener that answers nothing yet.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
}

/// How to serve.
#[derive(Clone)]
pub struct Options {
    /// How callers are known.
    pub auth: Auth,
    /// TLS, see [`tls`](super::tls); without it the listener speaks clear text
    /// and nothing else.
    pub tls: Option<TlsAcceptor>,
    /// Limits and timers.
    pub settings: Settings,
    /// Receiver of what is worth a log line.
    pub events: Arc<dyn Events>,
}

/// How a listener ended.
#[derive(Debug)]
pub struct Ended {
    /// The error that ended it; `None` when it was told to stop.
    pub failure: Option<io::Error>,
    /// What was still going on when the drain's time was over.
    pub drained: Drained,
}

/// What a drain left behind; all zero when everything finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// Connections cut.
    pub connections_cut: usize,
    /// Calls that had not ended; they go on until the process ends.
    pub calls_left: usize,
}

impl Server {
    /// Binds. Until [`Server::serve`] runs, connections wait unanswered.
    ///
    /// # Errors
    /// The system's, for example that the address is taken.
    pub async fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::new(TcpListener::bind(address).await?)
    }

    /// Takes over a listener bound elsewhere.
    ///
    /// # Errors
    /// The system's, when it has no address.
    pub fn new(listener: TcpListener) -> io::Result<Self> {
        let address = listener.local_addr()?;
        Ok(Server { listener, address })
    }

    /// The address in use, with the port the system chose for port 0.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` resolves or the listener fails, then closes it,
    /// lets calls in flight finish for at most the drain's time, and returns.
    pub async fn serve<S: Service>(
        self,
        service: Arc<S>,
        options: Options,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let Options {
            auth,
            tls,
            settings,
            events,
        } = options;
        let refused = RefusedCredentials::new(settings.refusal_window, Arc::clone(&events));
        let calls = TaskTracker::new();
        let admission = Admission {
            auth,
            slots: DecodeSlots::new(settings.decode_slots),
            settings: settings.clone(),
            refused: Arc::clone(&refused),
        };
        let gate = Gate::new(service, admission, calls.clone());
        let host = Host::new(gate, tls, settings);
        let ended = listen(self.listener, host, calls, &*events, stop).await;
        refused.report();
        ended
    }

    /// Serves one page, to anyone who connects, and ends as
    /// [`Server::serve`] does.
    pub async fn serve_page(
        self,
        page: Page,
        tls: Option<TlsAcceptor>,
        settings: Settings,
        events: Arc<dyn Events>,
        stop: impl Future<Output = ()>,
    ) -> Ended {
        let host = Host::new(Arc::new(page), tls, settings);
        listen(self.listener, host, TaskTracker::new(), &*events, stop).await
    }
}

async fn listen<R: Respond>(
    listener: TcpListener,
    host: Host<R>,
    calls: TaskTracker,
    events: &dyn Events,
    stop: impl Future<Output = ()>,
) -> Ended {
    let connections = TaskTracker::new();
    let failure = tokio::select! {
        failure = accept(listener, &host, &connections) => Some(failure),
        () = stop => None,
    };
    if let Some(error) = &failure {
        events.listener_failed(error);
    }
    let drained = drain(&host, &connections, &calls).await;
    Ended { failure, drained }
}

/// What every connection of a listener shares.
struct Host<R> {
    responder: Arc<R>,
    tls: Option<TlsAcceptor>,
    settings: Arc<Settings>,
    ending: Ending,
}

impl<R> Host<R> {
    fn new(responder: Arc<R>, tls: Option<TlsAcceptor>, settings: Settings) -> Self {
        Host {
            responder,
            tls,
            settings: Arc::new(settings),
            ending: Ending::default(),
        }
    }
}

impl<R> Clone for Host<R> {
    fn clone(&self) -> Self {
        Host {
            responder: Arc::clone(&self.responder),
            tls: self.tls.clone(),
            settings: Arc::clone(&self.settings),
            ending: self.ending.clone(),
        }
    }
}

/// Accepts until the listener fails. Owns the listener, so that dropping this
/// future closes it at once. The place under the cap is taken before a
/// connection is accepted: at the cap it waits in the kernel's queue.
async fn accept<R: Respond>(
    listener: TcpListener,
    host: &Host<R>,
    connections: &TaskTracker,
) -> io::Error {
    let places = Places::new(host.settings.connection_cap);
    loop {
        let free = places.free().await;
        match listener.accept().await {
            Ok((stream, _)) => {
                connections.spawn(host.clone().connection(stream, places.take(free)));
            }
            Err(error) if is_fatal(&error) => return error,
            Err(error) if is_of_one_connection(&error) => {}
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl<R: Respond> Host<R> {
    /// One connection from its first byte to its end.
    async fn connection(self, mut stream: TcpStream, place: Place) {
        // Answers are written whole; waiting to fill a packet only delays them.
        let _ = stream.set_nodelay(true);
        let Host {
            responder,
            tls,
            settings,
            ending,
        } = self;
        match tls {
            None => {
                if let Ok(opening) = connection::sniff(&mut stream, &settings).await {
                    connection::serve(stream, opening, responder, &settings, &ending, &place).await;
                }
            }
            Some(tls) => {
                let Ok(Ok(stream)) = timeout(settings.head, tls.accept(stream)).await else {
                    return;
                };
                let opening = Opening {
                    http2: stream.get_ref().1.alpn_protocol() == Some(b"h2"),
                    bytes: bytes::Bytes::new(),
                    since: Instant::now(),
                };
                connection::serve(stream, opening, responder, &settings, &ending, &place).await;
            }
        }
    }
}

async fn drain<R>(host: &Host<R>, connections: &TaskTracker, calls: &TaskTracker) -> Drained {
    host.ending.soon.cancel();
    connections.close();
    calls.close();
    let mut all = pin!(async {
        connections.wait().await;
        calls.wait().await;
    });
    if timeout(host.settings.drain, all.as_mut()).await.is_ok() {
        return Drained::default();
    }
    let drained = Drained {
        connections_cut: connections.len(),
        calls_left: calls.len(),
    };
    host.ending.now.cancel();
    connections.wait().await;
    drained
}

/// Errors of the listening socket itself; waiting would not help.
fn is_fatal(error: &io::Error) -> bool {
    // EBADF, EINVAL, ENOTSOCK, EOPNOTSUPP
    matches!(error.raw_os_error(), Some(9 | 22 | 88 | 95))
}

/// Errors of a connection that was gone before it was accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_of_accept() {
        for errno in [9, 22, 88, 95] {
            assert!(is_fatal(&io::Error::from_raw_os_error(errno)), "{errno}");
        }
        // ENFILE, EMFILE, ECONNABORTED
        for errno in [23, 24, 103] {
            assert!(!is_fatal(&io::Error::from_raw_os_error(errno)), "{errno}");
        }
        assert!(is_of_one_connection(&io::Error::from_raw_os_error(103)));
        assert!(!is_of_one_connection(&io::Error::from_raw_os_error(24)));
    }
}
