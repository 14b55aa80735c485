//! The `wasm` provider has no settings of its own: the envelope says it all.

use super::{Cap, Profile};

/// The most memory a wasm guest can address, in MiB.
const MEMORY_MB: u64 = 4096;

/// What the other settings must know.
pub const PROFILE: Profile = Profile {
    name: "wasm",
    cannot_cap: &[Cap::Cpus, Cap::Pids, Cap::Disk],
    cap_words: "wasm can enforce only SANDBOX_MEMORY_MB; CPU/PID/disk resource caps require docker or e2b",
    most_memory_mb: Some(MEMORY_MB),
    ..Profile::NONE
};
