//! A daemon of our own: this same binary as a child, for one run.
//!
//! The child gets a cleaned environment, a random token, an address it picks
//! itself, and a standard input that ends when this process does, whatever
//! ends it. It never gets the signing key: not in its environment, not as an
//! argument, not as an open file.

mod child;
mod environment;
mod log;

use std::{
    ffi::OsString,
    fmt,
    net::SocketAddr,
    path::PathBuf,
    process::ExitStatus,
    time::{Duration, Instant},
};

use plimsoll_client::{BaseUrl, CallOptions, CancelToken, Client, Options, Token};
use tokio::time::timeout_at;

pub use environment::{cleaned, other_provider};

use child::Child;

/// How long the wasm provider may take until it is ready.
pub const READY_WITHIN_WASM: Duration = Duration::from_secs(10);
/// How long any other provider may take.
pub const READY_WITHIN: Duration = Duration::from_secs(150);
/// How long a child may take to end before it is killed.
pub const STOP_WITHIN: Duration = Duration::from_secs(10);
/// The same when its run was given up: someone is waiting for the end.
pub const GIVEN_UP_STOP_WITHIN: Duration = Duration::from_secs(5);

/// Between two questions to a daemon that listens and is not ready yet.
const READY_AGAIN: Duration = Duration::from_millis(50);

/// How the child is started.
#[derive(Clone)]
pub struct EmbeddedOptions {
    /// The program; never looked up in `PATH`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The provider it is told to use.
    pub provider: String,
    /// The environment it is made from; see [`cleaned`].
    pub environment: Vec<(OsString, OsString)>,
    /// How long it may take until it is ready.
    pub ready_within: Duration,
    /// How long it may take to end; see [`STOP_WITHIN`].
    pub stop_within: Duration,
}

impl EmbeddedOptions {
    /// This running binary, with this process's environment.
    #[must_use]
    pub fn new(provider: &str) -> Self {
        EmbeddedOptions {
            program: own_program(),
            arguments: vec!["daemon".into()],
            provider: provider.to_owned(),
            environment: std::env::vars_os().collect(),
            ready_within: if provider == "wasm" {
                READY_WITHIN_WASM
            } else {
                READY_WITHIN
            },
            stop_within: STOP_WITHIN,
        }
    }
}

impl fmt::Debug for EmbeddedOptions {
    /// Without the environment: it holds secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbeddedOptions")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

/// The running binary itself, also when its file was replaced meanwhile.
fn own_program() -> PathBuf {
    if cfg!(target_os = "linux") {
        PathBuf::from("/proc/self/exe")
    } else {
        // An empty path fails to start, with the system's reason.
        std::env::current_exe().unwrap_or_default()
    }
}

/// Why there is no embedded daemon. Nothing was run.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its caller gave up.
    #[error("the start of the embedded daemon was canceled")]
    Canceled,
    /// It ended before it was ready.
    #[error("the embedded daemon ended before it was ready ({status})")]
    Ended {
        /// How it ended.
        status: ExitStatus,
        /// Its last error line, or last line; data, to be escaped.
        last: Option<String>,
    },
    /// It did not get ready in time, and was killed.
    #[error("the embedded daemon was not ready within {} s", within.as_secs())]
    NotReady {
        /// The time it had.
        within: Duration,
        /// Its last error line, or last line; data, to be escaped.
        last: Option<String>,
    },
    /// No random bytes for its token.
    #[error("no random bytes for the embedded daemon's token")]
    Random,
    /// The program cannot be started.
    #[error("the embedded daemon cannot be started: {0}")]
    Spawn(std::io::Error),
}

impl StartError {
    /// The child's last error line, or its last line; data, to be escaped.
    #[must_use]
    pub fn last_line(&self) -> Option<&str> {
        match self {
            StartError::Ended { last, .. } | StartError::NotReady { last, .. } => last.as_deref(),
            _ => None,
        }
    }
}

/// How an embedded daemon ended.
#[derive(Clone, Debug)]
pub struct Stopped {
    /// It did not end in time and was killed: what it made outside this
    /// machine's processes, such as containers, may be left behind.
    pub killed: bool,
    /// Its last error line, or last line; data, to be escaped.
    pub last: Option<String>,
    /// The end of its log, at most 64 KiB; data, to be escaped.
    pub log: String,
}

/// A ready daemon. Dropping it kills it; [`Embedded::stop`] ends it in peace.
pub struct Embedded {
    child: Child,
    base: BaseUrl,
    token: Token,
    stop_within: Duration,
}

impl fmt::Debug for Embedded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Embedded")
            .field("base", &self.base.to_string())
            .finish_non_exhaustive()
    }
}

impl Embedded {
    /// Starts the child and waits until it is ready: its listening line names
    /// its address, then `/readyz` must answer 200.
    ///
    /// # Errors
    /// [`StartError`]; the child has ended.
    pub async fn start(
        options: &EmbeddedOptions,
        cancel: Option<&CancelToken>,
    ) -> Result<Embedded, StartError> {
        let deadline = Instant::now() + options.ready_within;
        let (token, secret) = token()?;
        let environment = cleaned(&options.environment, &options.provider, &secret);
        let mut child = Child::spawn(&options.program, &options.arguments, environment)
            .map_err(StartError::Spawn)?;
        let given_up = async {
            match cancel {
                Some(cancel) => cancel.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let ready = Box::pin(timeout_at(deadline.into(), ready(&mut child, &token)));
        let error = tokio::select! {
            biased;
            () = given_up => StartError::Canceled,
            ready = ready => match ready {
                Ok(Ok(base)) => {
                    let stop_within = options.stop_within;
                    return Ok(Embedded { child, base, token, stop_within });
                }
                Ok(Err(status)) => StartError::Ended {
                    status,
                    last: child.last_line().await,
                },
                Err(_) => StartError::NotReady {
                    within: options.ready_within,
                    last: None,
                },
            },
        };
        // Asked first: it may have begun something outside this machine.
        let within = options.stop_within.min(GIVEN_UP_STOP_WITHIN);
        let last = child.stop(within).await.last;
        Err(match error {
            StartError::NotReady { within, .. } => StartError::NotReady { within, last },
            other => other,
        })
    }

    /// Options of a client of this daemon.
    #[must_use]
    pub fn client_options(&self) -> Options {
        let mut options = Options::new(self.base.clone());
        options.token = Some(self.token.clone());
        options
    }

    /// The child's process ID; `None` once it has ended.
    #[must_use]
    pub fn process_id(&self) -> Option<u32> {
        self.child.process_id()
    }

    /// Asks the child to end, without waiting for it.
    pub fn begin_stop(&mut self) {
        self.child.terminate();
    }

    /// Ends the child: asks it, waits, kills it when it takes too long, and
    /// sooner when its run was given up.
    pub async fn stop(self, given_up: bool) -> Stopped {
        let within = if given_up {
            self.stop_within.min(GIVEN_UP_STOP_WITHIN)
        } else {
            self.stop_within
        };
        self.child.stop(within).await
    }
}

/// Waits for the listening line, then for readiness; `Err` when the child ends.
async fn ready(child: &mut Child, token: &Token) -> Result<BaseUrl, ExitStatus> {
    let base = loop {
        // A line that names no address of this machine is not the one waited for.
        if let Some(base) = child.listening().await?.and_then(loopback_url) {
            break base;
        }
    };
    let mut options = Options::new(base.clone());
    options.token = Some(token.clone());
    let Ok(client) = Client::new(options) else {
        return child.ended().await;
    };
    let options = CallOptions::default();
    loop {
        let asked = client.ready(&options);
        tokio::select! {
            biased;
            answer = asked => {
                if matches!(answer, Ok(true)) {
                    return Ok(base);
                }
            }
            status = child.ended() => return status,
        }
        tokio::time::sleep(READY_AGAIN).await;
    }
}

fn loopback_url(address: SocketAddr) -> Option<BaseUrl> {
    BaseUrl::parse(&format!("http://{address}")).ok()
}

/// A token of 64 random hex digits, and its text for the child.
fn token() -> Result<(Token, zeroize::Zeroizing<String>), StartError> {
    let mut bytes = zeroize::Zeroizing::new([0; 32]);
    getrandom::fill(bytes.as_mut_slice()).map_err(|_| StartError::Random)?;
    let text = zeroize::Zeroizing::new(hex::encode(bytes.as_slice()));
    let token = Token::new(&text).map_err(|_| StartError::Random)?;
    Ok((token, text))
}
