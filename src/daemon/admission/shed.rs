//! Why a start was shed.

/// Why a start was shed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shed {
    /// All slots of the daemon are taken.
    AtCapacity,
    /// All slots of the caller are taken.
    PerKey,
    /// The caller's bucket is empty.
    Rate,
    /// The caller's paid time of today is used up or reserved.
    PaidCaller,
    /// The daemon's paid time of today is used up or reserved.
    PaidDaemon,
}

impl Shed {
    /// Every cause, in the order in which they are counted and shown.
    pub const ALL: [Shed; 5] = [
        Shed::AtCapacity,
        Shed::PerKey,
        Shed::Rate,
        Shed::PaidCaller,
        Shed::PaidDaemon,
    ];

    /// The name counters use.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Shed::AtCapacity => "at_capacity",
            Shed::PerKey => "per_key",
            Shed::Rate => "rate",
            Shed::PaidCaller => "paid_caller",
            Shed::PaidDaemon => "paid_daemon",
        }
    }

    /// What the caller is told. No numbers: they would tell of other callers.
    #[must_use]
    pub const fn message(self) -> &'static str {
        match self {
            Shed::AtCapacity => "the daemon is at capacity; try again later",
            Shed::PerKey => "this caller has too many runs in flight",
            Shed::Rate => "this caller starts runs faster than its rate allows",
            Shed::PaidCaller => "this caller's paid time of today does not cover the run",
            Shed::PaidDaemon => "the daemon's paid time of today does not cover the run",
        }
    }
}
