//! One container's life: created, read back, attached, started, fed, awaited,
//! removed.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use tokio::{sync::oneshot, task::JoinHandle, time::timeout_at};
use tokio_util::sync::CancellationToken;

use super::{
    attach::{Attached, Fed, Kept},
    body::{Container, Lockdown},
    engine::Engine,
    fault::{during, environment, random_hex},
    launch::Marker,
    limits::{CONTROL_CALL, KILLED, MEMORY_NEWS, MEMORY_NEWS_PAUSE},
    readback::{self, Asked},
    removal::Living,
    runtime::Runtime,
};
use crate::provider::{Answer, ProviderError, Stream};

/// What containers are made with.
#[derive(Clone)]
pub(super) struct Maker {
    pub(super) engine: Engine,
    pub(super) lockdown: Arc<Lockdown>,
    /// What the engine runs them with.
    pub(super) runtime: Arc<Runtime>,
    /// Named to the engine when it chose one; else empty.
    pub(super) platform: String,
    pub(super) living: Living,
}

/// A container that was read back and attached and has not started.
pub(super) struct Ready {
    pub(super) attached: Attached,
    pub(super) sandbox: Sandbox,
}

/// One start of a container: another one has another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Life {
    started: Option<String>,
    pid: Option<i64>,
}

/// A container that exists or may exist. Dropped, it is removed.
pub(super) struct Sandbox {
    maker: Maker,
    name: String,
    asked: Asked,
    id: String,
    /// Ends when the creation has; `None` once that is known.
    creating: Option<oneshot::Receiver<()>>,
    removed: bool,
}

impl Sandbox {
    pub(super) fn id(&self) -> &str {
        &self.id
    }

    /// The most memory it may use, in MiB.
    pub(super) fn memory_mb(&self) -> u64 {
        self.maker.lockdown.memory_mb
    }

    pub(super) fn engine(&self) -> &Engine {
        &self.maker.engine
    }

    /// Starts the container. On an error nothing of a caller has run: nothing
    /// was fed.
    pub(super) async fn start(&self) -> Answer<()> {
        let started = self.maker.engine.start(&self.id).await;
        started.map_err(|fault| during("starting a container", fault))
    }

    /// Removes the container in the background. `kept` is let go when it is
    /// gone.
    pub(super) fn remove<T: Send + 'static>(mut self, kept: T) -> JoinHandle<bool> {
        self.begin_removal(kept)
    }

    fn begin_removal<T: Send + 'static>(&mut self, kept: T) -> JoinHandle<bool> {
        self.removed = true;
        let creating = self.creating.take();
        let made = async move {
            if let Some(creating) = creating {
                let _ = tokio::time::timeout(CONTROL_CALL, creating).await;
            }
        };
        self.maker
            .living
            .remove(self.maker.engine.clone(), self.name.clone(), made, kept)
    }

    /// Whether the container is, now, exactly what was asked for and, when it
    /// `runs`, that it does.
    pub(super) async fn read_back(&self, runs: bool) -> Answer<Life> {
        let seen = self
            .maker
            .engine
            .inspect(&self.id)
            .await
            .map_err(|fault| during("reading a container back", fault))?;
        let mut found = readback::differences(&self.asked, &seen);
        let state = seen.state.unwrap_or_default();
        if runs && (state.running != Some(true) || state.paused == Some(true)) {
            found.push("State".to_owned());
        }
        if found.is_empty() {
            return Ok(Life {
                started: state.started_at,
                pid: state.pid,
            });
        }
        Err(environment(format!(
            "docker: the created container is not as requested: {}",
            found.join(", ")
        )))
    }

    /// The engine ends an attached stream once the container has exited and not
    /// when the guest closes its ends: before that, it is the connection that
    /// ended, and there may be more output than what came.
    async fn has_exited(&self) -> Answer<()> {
        let seen = self.maker.engine.inspect(&self.id).await;
        let seen = seen.map_err(|fault| during("asking whether a container ended", fault))?;
        match seen.state.and_then(|state| state.running) {
            Some(true) => Err(during(
                "reading a container's output",
                "the stream ended while the container ran",
            )),
            _ => Ok(()),
        }
    }

    /// Whether memory ran out in it, so far as the engine says; `code` is how it
    /// exited. The engine hears of a kill for memory and of the exit it caused
    /// on two ways. When the exit is first, which is common with many kills at
    /// once, it never puts the other into the container's state, but still tells
    /// of it as an event: for a killed one, both are looked at for a while.
    pub(super) async fn out_of_memory(&self, code: i32) -> Answer<bool> {
        let until = Instant::now() + MEMORY_NEWS;
        let state = async {
            loop {
                let seen = self.maker.engine.inspect(&self.id).await;
                let seen = seen.map_err(|fault| during("asking how a container ended", fault))?;
                if seen.state.and_then(|state| state.oom_killed) == Some(true) {
                    return Ok(true);
                }
                if code != KILLED || Instant::now() >= until {
                    return Ok(false);
                }
                tokio::time::sleep(MEMORY_NEWS_PAUSE).await;
            }
        };
        let event = async {
            match code {
                KILLED => self.maker.engine.memory_ran_out(&self.id).await,
                _ => std::future::pending().await,
            }
        };
        tokio::select! {
            answer = state => answer,
            () = event => Ok(true),
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        if !self.removed && tokio::runtime::Handle::try_current().is_ok() {
            drop(self.begin_removal(()));
        }
    }
}

impl Maker {
    /// Creates a container, reads it back and attaches to it. Nothing of a
    /// caller is in it yet.
    ///
    /// # Errors
    /// The engine's; the container, if there is one, is being removed.
    pub(super) async fn make(&self, prefix: &str, container: &Container<'_>) -> Answer<Ready> {
        let sandbox = self.create(prefix, container).await?;
        let (read_back, attached) =
            tokio::join!(sandbox.read_back(false), self.engine.attach(&sandbox.id));
        read_back?;
        let attached = attached.map_err(|fault| during("attaching to a container", fault))?;
        Ok(Ready { attached, sandbox })
    }

    /// Creates a container.
    pub(super) async fn create(&self, prefix: &str, container: &Container<'_>) -> Answer<Sandbox> {
        let digits = random_hex().map_err(|error| during("making a name", error))?;
        let name = format!("{prefix}{digits}");
        let asked = self.lockdown.body(container);
        self.living.add(&name);
        let (made, creating) = oneshot::channel();
        let mut sandbox = Sandbox {
            maker: self.clone(),
            name: name.clone(),
            asked: Asked {
                body: asked.clone(),
                environment: container.image.environment.clone(),
                runtime: self.runtime.name.clone(),
            },
            id: String::new(),
            creating: Some(creating),
            removed: false,
        };
        let engine = self.engine.clone();
        let platform = self.platform.clone();
        // A task of its own: the removal waits for its end, also when this
        // future is dropped.
        let creation = tokio::spawn(async move {
            let created = engine.create(&name, &platform, asked).await;
            let _ = made.send(());
            created
        });
        let created = creation
            .await
            .map_err(|lost| during("creating a container", lost))?;
        sandbox.id = created.map_err(|fault| during("creating a container", fault))?;
        sandbox.creating = None;
        Ok(sandbox)
    }
}

/// What a command may use.
#[derive(Clone)]
pub(super) struct Bounds {
    /// Its budget, from its start.
    pub(super) budget: Duration,
    /// When the call is over, whatever the budget says.
    pub(super) deadline: Instant,
    /// Cancelled when the caller has gone.
    pub(super) caller_gone: CancellationToken,
    /// Bytes kept of standard output.
    pub(super) stdout_cap: usize,
    /// Bytes kept of standard error.
    pub(super) stderr_cap: usize,
}

/// What ended a command, sampled when it ended.
#[derive(Debug)]
pub(super) enum Ending {
    /// It exited.
    Exited(i32),
    /// Its budget did.
    Budget,
    /// The call's deadline did.
    Deadline,
    /// The caller went.
    Canceled,
    /// The engine or the connection to it did.
    Broken(ProviderError),
}

/// A command that is over, in a container that is still there.
pub(super) struct Ended {
    pub(super) ending: Ending,
    pub(super) stdout: Stream,
    /// What followed the marker; `None` when it never came.
    pub(super) stderr: Option<Stream>,
    pub(super) sandbox: Sandbox,
}

/// A started command.
pub(super) struct Started {
    output: Kept,
    feeding: JoinHandle<()>,
    sandbox: Sandbox,
}

impl Ready {
    /// Feeds the container, which runs.
    pub(super) fn feed(self, input: Fed) -> Started {
        Started {
            output: self.attached.output,
            feeding: tokio::spawn(self.attached.input.feed(input)),
            sandbox: self.sandbox,
        }
    }
}

impl Started {
    /// Waits for the command's end, at most for as long as it may take.
    pub(super) async fn ended(self, marker: &Marker, bounds: &Bounds) -> Ended {
        let Started {
            mut output,
            feeding,
            sandbox,
        } = self;
        let marker_line = marker.line().len();
        let own = Instant::now() + bounds.budget;
        let end = own.min(bounds.deadline);
        let run = async {
            let drained = output.drain(
                bounds.stdout_cap,
                bounds.stderr_cap.saturating_add(marker_line),
            );
            drained
                .await
                .map_err(|fault| during("reading a container's output", fault))?;
            let waited = async {
                let code = sandbox.engine().wait(&sandbox.id).await;
                code.map_err(|fault| during("waiting for a container", fault))
            };
            let ((), code) = tokio::try_join!(sandbox.has_exited(), waited)?;
            Ok(code)
        };
        let ending = tokio::select! {
            biased;
            ran = timeout_at(end.into(), run) => match ran {
                Ok(Ok(code)) => Ending::Exited(i32::try_from(code).unwrap_or(-1)),
                Ok(Err(error)) => Ending::Broken(error),
                Err(_) if own <= bounds.deadline => Ending::Budget,
                Err(_) => Ending::Deadline,
            },
            () = bounds.caller_gone.cancelled() => Ending::Canceled,
        };
        // A guest that closed its input and runs on must not keep the writer.
        feeding.abort();
        let (stdout, stderr) = output.take();
        let stderr = marker.strip(stderr.bytes).map(|bytes| Stream {
            truncated: stderr.truncated,
            bytes,
        });
        Ended {
            ending,
            stdout,
            stderr,
            sandbox,
        }
    }
}
