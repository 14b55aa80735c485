//! Containers made ahead, each used for exactly one run.
//!
//! A member is created, read back and started like any other container; its
//! launcher waits on standard input for the marker of the run that claims it.
//! Whatever is not as it was made, or not what the present state would make, is
//! removed and never used.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use tokio::sync::Notify;

use super::{
    body::Container,
    call::RUN_PREFIX,
    container::{Life, Ready},
    execution::{Execution, Role},
    launch::{self, Start},
    limits::{CONTROL_CALL, POOL_MEMBER_AGE, PREFLIGHT_AHEAD, PROJECT_BACKSTOP, PROJECT_CEILING},
    project, snippet,
    state::State,
};
use crate::{log::Log, provider::Answer, surface};

/// Pauses after a member could not be made, doubling.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// The longest a member's making may take.
const MAKING: Duration = Duration::from_secs(120);

struct Member {
    ready: Ready,
    /// Its only start.
    life: Life,
    execution: Arc<Execution>,
    made: Instant,
}

/// Members of each kind, and what fills them up.
pub(super) struct Pool {
    size: usize,
    open_descriptors: bool,
    members: Mutex<HashMap<Role, VecDeque<Member>>>,
    wake: Notify,
    closed: AtomicBool,
}

impl Pool {
    /// An empty pool that is to hold `size` members of each kind.
    pub(super) fn new(size: u32, open_descriptors: bool) -> Arc<Pool> {
        Arc::new(Pool {
            size: size as usize,
            open_descriptors,
            members: Mutex::default(),
            wake: Notify::new(),
            closed: AtomicBool::new(false),
        })
    }

    fn members(&self) -> MutexGuard<'_, HashMap<Role, VecDeque<Member>>> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A member that is, now, what a container made for this run would be; the
    /// oldest first. `None` when there is none.
    pub(super) async fn claim(&self, execution: &Execution, role: Role) -> Option<Ready> {
        loop {
            let member = self.members().get_mut(&role)?.pop_front()?;
            let usable = member.made.elapsed() < POOL_MEMBER_AGE
                && execution.makes_the_same(&member.execution, role)
                && matches!(member.ready.sandbox.read_back(true).await, Ok(life) if life == member.life);
            if usable {
                return Some(member.ready);
            }
            drop(member.ready.sandbox.remove(()));
        }
    }

    /// Makes members again; called when a run that took one has ended, so that
    /// the making does not compete with it.
    pub(super) fn refill(&self) {
        if self.size > 0 {
            self.wake.notify_one();
        }
    }

    /// Keeps the pool full until it is closed.
    pub(super) async fn fill(self: Arc<Self>, state: Arc<State>, log: Log) {
        let mut pause = FIRST_PAUSE;
        while self.size > 0 && !self.closed.load(Ordering::Acquire) {
            self.drop_old();
            let Some(role) = self.wanting() else {
                let woken = tokio::time::timeout(PREFLIGHT_AHEAD, self.wake.notified());
                if woken.await.is_err() {
                    // A failure is the next run's to report.
                    let _ = state.at_most(PREFLIGHT_AHEAD).await;
                }
                continue;
            };
            match tokio::time::timeout(MAKING, self.make(&state, role)).await {
                Ok(Ok(member)) => {
                    pause = FIRST_PAUSE;
                    self.put(role, member);
                }
                failed => {
                    let text = match failed {
                        Ok(Err(error)) => surface::cut(&error.full_text()),
                        _ => "it was not made in time".to_owned(),
                    };
                    log.warn("a sandbox could not be made ahead")
                        .text("error", &text)
                        .end();
                    let _ = tokio::time::timeout(pause, self.closing()).await;
                    pause = (pause * 2).min(LONGEST_PAUSE);
                }
            }
        }
    }

    async fn closing(&self) {
        while !self.closed.load(Ordering::Acquire) {
            self.wake.notified().await;
        }
    }

    fn wanting(&self) -> Option<Role> {
        let members = self.members();
        let held = |role: &Role| members.get(role).map_or(0, VecDeque::len);
        Role::ALL
            .into_iter()
            .filter(|role| held(role) < self.size)
            .min_by_key(held)
    }

    fn drop_old(&self) {
        let mut old = Vec::new();
        for members in self.members().values_mut() {
            while members
                .front()
                .is_some_and(|member| member.made.elapsed() >= POOL_MEMBER_AGE)
            {
                old.extend(members.pop_front());
            }
        }
        for member in old {
            drop(member.ready.sandbox.remove(()));
        }
    }

    fn put(&self, role: Role, member: Member) {
        let mut members = self.members();
        // Under the lock a close looks through: a member that comes later is
        // not left behind.
        if self.closed.load(Ordering::Acquire) {
            drop(members);
            drop(member.ready.sandbox.remove(()));
            return;
        }
        members.entry(role).or_default().push_back(member);
    }

    async fn make(&self, state: &Arc<State>, role: Role) -> Answer<Member> {
        let execution = state.preflight().await?;
        let image = execution.image(role);
        let arguments = match role {
            Role::Snippet => launch::guest(Start::Claimed, &image.environment, &snippet::NODE),
            Role::Project => launch::guest(
                Start::Claimed,
                &project::environment(),
                &project::arguments(self.open_descriptors),
            ),
        };
        let container = Container {
            image,
            arguments: &arguments,
            storage: execution.storage(role),
            lifetime: POOL_MEMBER_AGE + CONTROL_CALL + PROJECT_CEILING + PROJECT_BACKSTOP,
            socket: None,
            attached: true,
        };
        let ready = execution.maker.make(RUN_PREFIX, &container).await?;
        ready.sandbox.start().await?;
        let life = ready.sandbox.read_back(true).await?;
        Ok(Member {
            ready,
            life,
            execution: Arc::clone(&execution),
            made: Instant::now(),
        })
    }

    /// Stops filling and removes every member.
    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        self.wake.notify_waiters();
        self.wake.notify_one();
        let members = std::mem::take(&mut *self.members());
        for member in members.into_values().flatten() {
            drop(member.ready.sandbox.remove(()));
        }
    }

    /// How many members are ready.
    #[cfg(test)]
    pub(super) fn len(&self, role: Role) -> usize {
        self.members().get(&role).map_or(0, VecDeque::len)
    }
}
