//! A counting service, a server on loopback, and the clients of the tests.

pub mod client;
pub mod fake;
pub mod raw;

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use plimsoll_daemon::transport::{
    Auth, AuthFailure, Ended, Events, Options, Server, Settings, TokenLookup, Verified,
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinHandle,
};
use tokio_rustls::TlsAcceptor;

use self::fake::Fake;

/// The credential every test client sends unless it says otherwise.
pub const TOKEN: &str = "example-token-0123456789abcdef0123456789";
/// The request ID every test client sends unless it says otherwise.
pub const REQUEST_ID: &str = "00112233445566778899aabbccddeeff";
/// More than any test should wait for an event.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// A running server.
pub struct Daemon {
    pub address: SocketAddr,
    pub fake: Arc<Fake>,
    pub refused: mpsc::UnboundedReceiver<u64>,
    stop: Option<oneshot::Sender<()>>,
    ended: JoinHandle<Ended>,
}

/// Callers of tests: `TOKEN` is `alice`, `bob` is `bob`, and some are bad.
pub struct Callers;

impl TokenLookup for Callers {
    fn verify<'a>(
        &'a self,
        token: &'a str,
    ) -> std::pin::Pin<Box<dyn Future<Output = Result<Verified, AuthFailure>> + Send + 'a>> {
        Box::pin(async move {
            let (id, scope) = match token {
                TOKEN => ("alice", "code:run"),
                "bob" => ("bob", "*"),
                "noscope" => ("carol", "code:read"),
                "star" => ("*", "code:run"),
                "broken" => return Err(AuthFailure::Unavailable),
                "hanging" => std::future::pending().await,
                _ => return Err(AuthFailure::Unknown),
            };
            Ok(Verified {
                id: id.into(),
                scopes: vec![scope.to_owned()],
            })
        })
    }
}

struct Log(mpsc::UnboundedSender<u64>);

impl Events for Log {
    fn credentials_refused(&self, count: u64, _window: Duration) {
        let _ = self.0.send(count);
    }
    fn listener_failed(&self, error: &std::io::Error) {
        panic!("the listener failed: {error}");
    }
}

/// Timers of tests: the values of production, so that one that fires shows.
pub fn settings() -> Settings {
    Settings::new(4)
}

impl Daemon {
    /// A server with a verifier and the settings of production.
    pub async fn start() -> Daemon {
        Self::with(settings(), Auth::Lookup(Arc::new(Callers)), None).await
    }

    /// A server without a verifier.
    pub async fn open() -> Daemon {
        Self::with(settings(), Auth::Open, None).await
    }

    /// A server with a verifier and other settings.
    pub async fn tuned(settings: Settings) -> Daemon {
        Self::with(settings, Auth::Lookup(Arc::new(Callers)), None).await
    }

    pub async fn with(settings: Settings, auth: Auth, tls: Option<TlsAcceptor>) -> Daemon {
        let server = Server::bind("127.0.0.1:0".parse().unwrap()).await.unwrap();
        let address = server.local_addr();
        let fake = Arc::new(Fake::default());
        let (log, refused) = mpsc::unbounded_channel();
        let (stop, stopped) = oneshot::channel();
        let options = Options {
            auth,
            tls,
            settings,
            events: Arc::new(Log(log)),
        };
        let ended = tokio::spawn(server.serve(Arc::clone(&fake), options, async move {
            let _ = stopped.await;
        }));
        Daemon {
            address,
            fake,
            refused,
            stop: Some(stop),
            ended,
        }
    }

    /// Tells the server to stop.
    pub fn stop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }

    /// Waits for the end after [`Daemon::stop`].
    pub async fn ended(self) -> Ended {
        in_time(self.ended).await.unwrap()
    }
}

/// The future's value, or a failed test.
pub async fn in_time<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(PATIENCE, future)
        .await
        .expect("the event did not happen")
}

/// The future's value and the time it took.
pub async fn timed<F: Future>(future: F) -> (F::Output, Duration) {
    let start = Instant::now();
    let out = in_time(future).await;
    (out, start.elapsed())
}
