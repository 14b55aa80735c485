//! What the provider knows now, and the one preflight at a time that renews it.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use plimsoll_wire::Tier;

use super::{
    execution::{Execution, Role},
    image::Image,
    limits::{PREFLIGHT, PREFLIGHT_FRESH, PREFLIGHT_WAIT},
    orphans,
    probe::{Found, Ground, Probe},
    removal::Living,
    runtime::Runtime,
    settings::DockerSettings,
};
use crate::{
    provider::{Answer, ProviderError, Resources},
    surface,
};

/// What the smoke test proved: the runtime, and the images by role.
#[derive(Clone, Debug)]
pub(super) struct Proven {
    runtime: Arc<Runtime>,
    images: HashMap<Role, String>,
}

impl Proven {
    pub(super) fn of(execution: &Execution) -> Proven {
        Proven {
            runtime: Arc::clone(&execution.maker.runtime),
            images: Role::ALL
                .into_iter()
                .map(|role| (role, execution.image(role).id.clone()))
                .collect(),
        }
    }

    /// Whether a runtime is still the one that was proven.
    pub(super) fn runs(&self, runtime: &Runtime) -> Result<(), String> {
        runtime.is_still(&self.runtime)
    }

    /// Whether an image is still the content that was proven.
    pub(super) fn holds(&self, role: Role, image: &Image) -> Result<(), String> {
        match self.images.get(&role) {
            Some(id) if *id != image.id => Err(format!(
                "docker image {:?} now names {}, not {}, the content the smoke test proved; restart (or run the smoke test again) to prove it",
                image.reference,
                short(&image.id),
                short(id),
            )),
            _ => Ok(()),
        }
    }
}

/// An identity as people compare it.
fn short(id: &str) -> &str {
    id.get(.."sha256:".len() + 12).unwrap_or(id)
}

#[derive(Default)]
struct Known {
    ground: Option<Arc<Ground>>,
    ready: Option<Arc<Execution>>,
    last: Option<(Instant, Answer<()>)>,
    proven: Option<Proven>,
    languages: Vec<String>,
}

/// The provider's state.
pub(super) struct State {
    pub(super) settings: DockerSettings,
    pub(super) resources: Resources,
    pub(super) living: Living,
    known: Mutex<Known>,
    turn: Arc<tokio::sync::Mutex<()>>,
}

impl State {
    pub(super) fn new(
        settings: DockerSettings,
        resources: Resources,
        living: Living,
    ) -> Arc<State> {
        Arc::new(State {
            settings,
            resources,
            living,
            known: Mutex::default(),
            turn: Arc::default(),
        })
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The tier that stands now: gVisor's only while the last preflight that
    /// ended has verified its runtime.
    pub(super) fn tier(&self) -> Tier {
        self.known()
            .ready
            .as_ref()
            .map_or(Tier::Container, |ready| ready.tier)
    }

    /// The state the last preflight found, when it was good.
    pub(super) fn ready(&self) -> Option<Arc<Execution>> {
        self.known().ready.clone()
    }

    pub(super) fn ground(&self) -> Option<Arc<Ground>> {
        self.known().ground.clone()
    }

    /// Lets go of the engine and the private directory, at the very end.
    pub(super) fn leave(&self) {
        let mut known = self.known();
        known.ready = None;
        known.ground = None;
    }

    pub(super) fn languages(&self) -> Vec<String> {
        self.known().languages.clone()
    }

    /// Takes note of what the smoke test proved.
    pub(super) fn prove(&self, execution: &Execution, languages: Vec<String>) {
        let mut known = self.known();
        known.proven = Some(Proven::of(execution));
        known.languages = languages;
    }

    /// A verified state, at most a few seconds old. One probe runs at a time,
    /// detached from whoever asked first: a poller that hangs up cannot abort
    /// it. The state before stays in use until it has ended.
    ///
    /// # Errors
    /// What the probe found wrong; the state is then not ready.
    pub(super) async fn preflight(self: &Arc<Self>) -> Answer<Arc<Execution>> {
        self.at_most(PREFLIGHT_FRESH).await
    }

    /// A verified state of at most this age, as [`State::preflight`].
    pub(super) async fn at_most(self: &Arc<Self>, age: Duration) -> Answer<Arc<Execution>> {
        if let Some(fresh) = self.fresh(age) {
            return Ok(fresh);
        }
        let asked = Instant::now();
        match Arc::clone(&self.turn).try_lock_owned() {
            Ok(turn) => {
                let state = Arc::clone(self);
                let probe = tokio::spawn(async move {
                    let _turn = turn;
                    state.probe().await;
                });
                probe
                    .await
                    .map_err(|lost| ProviderError::internal(surface::lost_text(lost)))?;
            }
            Err(_) => {
                let wait = Arc::clone(&self.turn).lock_owned();
                if tokio::time::timeout(PREFLIGHT_WAIT, wait).await.is_err() {
                    return Err(in_progress());
                }
            }
        }
        let known = self.known();
        match (&known.last, &known.ready) {
            (Some((at, Err(error))), _) if *at >= asked => Err(error.clone()),
            (Some((at, Ok(()))), Some(ready)) if *at >= asked => Ok(Arc::clone(ready)),
            _ => Err(in_progress()),
        }
    }

    /// Makes the next preflight a real one.
    #[cfg(test)]
    pub(super) fn forget_freshness(&self) {
        self.known().last = None;
    }

    fn fresh(&self, age: Duration) -> Option<Arc<Execution>> {
        let known = self.known();
        match &known.last {
            Some((at, Ok(()))) if at.elapsed() < age => known.ready.clone(),
            _ => None,
        }
    }

    /// Sweeps in the background; what it cannot remove the next round does.
    fn sweep(self: &Arc<Self>) {
        let state = Arc::clone(self);
        self.living.in_background(async move {
            let _ = orphans::reconcile(&state).await;
        });
    }

    async fn probe(self: &Arc<Self>) {
        let (ground, proven) = {
            let known = self.known();
            (known.ground.clone(), known.proven.clone())
        };
        let probe = Probe {
            settings: &self.settings,
            resources: &self.resources,
            ground: ground.clone(),
            living: &self.living,
            proven: proven.as_ref(),
        };
        let found = tokio::time::timeout(PREFLIGHT, probe.run())
            .await
            .unwrap_or_else(|_| Found {
                ground,
                execution: Err(ProviderError::internal(
                    "docker: the engine did not answer a preflight in time",
                )),
            });
        let mut known = self.known();
        known.ground = found.ground;
        let now = Instant::now();
        let was_away = matches!(known.last, Some((_, Err(_))));
        match found.execution {
            Ok(execution) => {
                known.ready = Some(Arc::new(execution));
                known.last = Some((now, Ok(())));
                if was_away {
                    // What could not be removed meanwhile goes now, not at the next round.
                    drop(known);
                    self.sweep();
                }
            }
            Err(error) => {
                known.ready = None;
                known.last = Some((now, Err(error)));
            }
        }
    }
}

fn in_progress() -> ProviderError {
    ProviderError::internal("docker preflight is already in progress")
}
