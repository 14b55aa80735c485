//! What runs are launched with: the state that one good preflight found.

use plimsoll_wire::{Kind as PayloadKind, Tier};

use super::{container::Maker, image::Image, storage::Storage};

/// The kinds of run that have an image of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Role {
    Snippet,
    Project,
}

impl Role {
    pub(super) const ALL: [Role; 2] = [Role::Snippet, Role::Project];

    /// The role of a payload kind; `None` when nothing here runs it.
    pub(super) fn of(kind: PayloadKind) -> Option<Role> {
        match kind {
            PayloadKind::Javascript => Some(Role::Snippet),
            PayloadKind::Project => Some(Role::Project),
            PayloadKind::Module | PayloadKind::Cell => None,
        }
    }
}

/// A verified state of engine, runtime and images.
#[derive(Clone)]
pub(super) struct Execution {
    pub(super) maker: Maker,
    pub(super) tier: Tier,
    pub(super) snippet: Image,
    pub(super) project: Image,
    /// Size of `/work` in MiB.
    pub(super) work_mb: u64,
}

impl Execution {
    pub(super) fn image(&self, role: Role) -> &Image {
        match role {
            Role::Snippet => &self.snippet,
            Role::Project => &self.project,
        }
    }

    pub(super) fn storage(&self, role: Role) -> Storage {
        match role {
            Role::Snippet => Storage::Scratch,
            Role::Project => Storage::Work(self.work_mb),
        }
    }

    /// Whether a container made under `other` is one this state would make.
    pub(super) fn makes_the_same(&self, other: &Execution, role: Role) -> bool {
        self.image(role) == other.image(role)
            && self.tier == other.tier
            && self.maker.platform == other.maker.platform
            && self.maker.runtime == other.maker.runtime
            && self.maker.lockdown == other.maker.lockdown
    }
}
