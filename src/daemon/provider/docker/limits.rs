//! The fixed bounds of the provider. None of them is a setting: each is part of
//! what the isolation tier means, or keeps one run from holding another up.

use std::time::Duration;

/// Bytes in a MiB.
pub(super) const MIB: u64 = 1 << 20;

/// A snippet's budget when the request names none.
pub(super) const SNIPPET_DEFAULT: Duration = Duration::from_secs(5);
/// The longest budget of a snippet.
pub(super) const SNIPPET_CEILING: Duration = Duration::from_secs(30);
/// A project's budget when the request names none.
pub(super) const PROJECT_DEFAULT: Duration = Duration::from_secs(30);
/// The longest budget of a project.
pub(super) const PROJECT_CEILING: Duration = Duration::from_secs(120);
/// What a project's container gets past its budget, so that the runner can
/// report the step that used it up.
pub(super) const PROJECT_BACKSTOP: Duration = Duration::from_secs(5);

/// Bytes kept of a snippet's streams and of a project container's standard error.
pub(super) const STREAM_CAP: usize = 64 << 10;

/// Bytes of one engine answer that is parsed; a larger one is an error.
pub(super) const ANSWER_CAP: u64 = 4 * MIB;
/// Bytes kept of an engine's error text.
pub(super) const ENGINE_TEXT_CAP: usize = 64 << 10;

/// One whole preflight.
pub(super) const PREFLIGHT: Duration = Duration::from_secs(10);
/// How long a good preflight stands for the next one.
pub(super) const PREFLIGHT_FRESH: Duration = Duration::from_secs(5);
/// How often a provider that keeps containers ready looks again, so that no run
/// has to wait for it.
pub(super) const PREFLIGHT_AHEAD: Duration = Duration::from_secs(3);
/// How long a caller waits behind a preflight in flight.
pub(super) const PREFLIGHT_WAIT: Duration = Duration::from_secs(2);

/// One control call to the engine: create, inspect, start, list.
pub(super) const CONTROL_CALL: Duration = Duration::from_secs(60);
/// One attempt at removing a container.
pub(super) const REMOVAL_ATTEMPT: Duration = Duration::from_secs(10);
/// Pauses before the second and the third attempt.
pub(super) const REMOVAL_PAUSES: [Duration; 2] = [Duration::from_secs(1), Duration::from_secs(2)];
/// Pauses before a removal that was given up is tried again. What these do not
/// reach is left to the sweep of every minute.
pub(super) const REMOVAL_AGAIN: [Duration; 3] = [
    Duration::from_secs(2),
    Duration::from_secs(5),
    Duration::from_secs(15),
];
/// How long after its declared end a container nobody answers for is removed.
pub(super) const REAP_MARGIN: Duration = Duration::from_secs(300);

/// The status of a container that was killed.
pub(super) const KILLED: i32 = 137;
/// How long after a killed container's exit the engine may still learn that
/// memory had run out in it.
pub(super) const MEMORY_NEWS: Duration = Duration::from_secs(2);
/// Between two questions about that.
pub(super) const MEMORY_NEWS_PAUSE: Duration = Duration::from_millis(20);

/// One container of the smoke test.
pub(super) const SMOKE_RUN: Duration = Duration::from_secs(30);
/// What the smoke test tells a guest to answer within; old gVisor starts slowly.
pub(super) const SMOKE_ANSWER_CAP: usize = 256 << 10;

/// The oldest a pool member may be when it is used.
pub(super) const POOL_MEMBER_AGE: Duration = Duration::from_secs(600);

/// Size of `/tmp` and of `/dev/shm` in MiB.
pub(super) const SMALL_TMPFS_MB: u64 = 16;
/// Size of `/work` in MiB when no budget is set.
pub(super) const WORK_MB: u64 = 128;

/// Memory of one run in MiB when none is set.
pub(super) const MEMORY_MB: u64 = 256;
/// CPU cores of one run when none are set.
pub(super) const CPUS: f64 = 1.0;
/// Processes of one run when none are set.
pub(super) const PIDS: u64 = 256;
