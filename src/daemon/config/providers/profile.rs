//! What settings outside a provider depend on.

use crate::config::variable::{self as v, Variable};

/// A dimension of one run's envelope.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cap {
    /// `SANDBOX_MEMORY_MB`.
    Memory,
    /// `SANDBOX_CPUS`.
    Cpus,
    /// `SANDBOX_PIDS`.
    Pids,
    /// `SANDBOX_DISK_MB`.
    Disk,
}

impl Cap {
    /// The variable that sets it.
    #[must_use]
    pub const fn variable(self) -> &'static Variable {
        match self {
            Cap::Memory => &v::SANDBOX_MEMORY_MB,
            Cap::Cpus => &v::SANDBOX_CPUS,
            Cap::Pids => &v::SANDBOX_PIDS,
            Cap::Disk => &v::SANDBOX_DISK_MB,
        }
    }
}

/// Facts about a provider, known before it is made. What a provider turns out to
/// be when it is proven (its tier) is not here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Profile {
    /// Its name in settings, answers and logs.
    pub name: &'static str,
    /// Dimensions it cannot enforce: setting one above zero stops the start,
    /// since a cap that is not enforced is worse than none.
    pub cannot_cap: &'static [Cap],
    /// The words of that refusal.
    pub cap_words: &'static str,
    /// The most memory of one run in MiB; more is cut to it.
    pub most_memory_mb: Option<u64>,
    /// Whether runs use this host's memory, so that `SANDBOX_TOTAL_MEMORY_MB`
    /// bounds how many run at once.
    pub host_memory: bool,
    /// Whether it is billed by the second.
    pub metered: bool,
    /// Whether it serves an egress guard, which needs `PLIMSOLL_GUARD_ADDR`.
    pub guard: bool,
    /// Whether it keeps sessions.
    pub sessions: bool,
    /// Whether it keeps a pool of ready session sandboxes.
    pub session_pool: bool,
    /// Whether `SANDBOX_GUEST_UID` means something to it.
    pub guest_uid: bool,
}

impl Profile {
    /// A provider with no abilities beyond running code on this host; the base
    /// that each one's own is made from.
    pub const NONE: Profile = Profile {
        name: "",
        cannot_cap: &[],
        cap_words: "",
        most_memory_mb: None,
        host_memory: true,
        metered: false,
        guard: false,
        sessions: false,
        session_pool: false,
        guest_uid: false,
    };
}
