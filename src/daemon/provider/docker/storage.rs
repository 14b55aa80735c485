//! The writable mounts of a container: small tmpfs mounts and nothing else.

use super::limits::{MIB, SMALL_TMPFS_MB, WORK_MB};

/// One tmpfs mount.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tmpfs {
    pub(super) path: &'static str,
    pub(super) bytes: u64,
    mode_1777: bool,
}

impl Tmpfs {
    /// The mount's options as the engine takes them.
    pub(super) fn options(&self) -> String {
        let mode = if self.mode_1777 { ",mode=1777" } else { "" };
        format!("rw,noexec,nosuid,size={}m{mode}", self.bytes / MIB)
    }
}

/// What a container can write to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Storage {
    /// `/tmp` and `/dev/shm`.
    Scratch,
    /// These and `/work` of so many MiB.
    Work(u64),
}

impl Storage {
    /// Every mount, in the order of their paths.
    pub(super) fn mounts(self) -> Vec<Tmpfs> {
        let small = |path| Tmpfs {
            path,
            bytes: SMALL_TMPFS_MB * MIB,
            mode_1777: false,
        };
        // Mounted explicitly: the engine's own is 64 MiB that no limit counts.
        let mut mounts = vec![small("/dev/shm"), small("/tmp")];
        if let Storage::Work(mib) = self {
            mounts.push(Tmpfs {
                path: "/work",
                bytes: mib.saturating_mul(MIB),
                mode_1777: true,
            });
        }
        mounts
    }

    /// Where its processes start.
    pub(super) fn directory(self) -> &'static str {
        match self {
            Storage::Scratch => "/",
            Storage::Work(_) => "/work",
        }
    }
}

/// The size of `/work` under a budget for all writable storage of a run in MiB;
/// zero is no budget. `None` when the budget leaves less than 1 MiB for it.
pub(super) fn work_mb(budget: u64) -> Option<u64> {
    match budget {
        0 => Some(WORK_MB),
        budget => budget
            .checked_sub(2 * SMALL_TMPFS_MB)
            .filter(|left| *left >= 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_budget_is_an_aggregate() {
        assert_eq!(work_mb(0), Some(128));
        assert_eq!(work_mb(64), Some(32));
        assert_eq!(work_mb(33), Some(1));
        for budget in [1, 31, 32] {
            assert_eq!(work_mb(budget), None, "{budget}");
        }
    }

    #[test]
    fn every_mount_is_sized_and_not_executable() {
        let mounts = Storage::Work(96).mounts();
        assert_eq!(
            mounts.iter().map(|m| m.path).collect::<Vec<_>>(),
            ["/dev/shm", "/tmp", "/work"]
        );
        assert_eq!(mounts[1].options(), "rw,noexec,nosuid,size=16m");
        assert_eq!(mounts[2].options(), "rw,noexec,nosuid,size=96m,mode=1777");
        assert_eq!(Storage::Scratch.mounts().len(), 2);
    }
}
