//! Isolation tiers and floors.

use std::fmt;

/// How strongly a provider separates guest code from its host, weakest first.
///
/// A tier is configuration evidence stated by a daemon; it is never hardware
/// attestation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// No isolation: the provider runs nothing.
    None,
    /// A language runtime inside the daemon's own process.
    Process,
    /// A container sharing the host's kernel.
    Container,
    /// A container behind a user-space kernel.
    Kernel,
    /// A virtual machine.
    Vm,
}

impl Tier {
    /// Every tier, weakest first.
    pub const ALL: [Tier; 5] = [
        Tier::None,
        Tier::Process,
        Tier::Container,
        Tier::Kernel,
        Tier::Vm,
    ];

    /// The tier of exactly this name; case counts.
    #[must_use]
    pub fn parse(name: &str) -> Option<Tier> {
        Self::ALL.into_iter().find(|t| t.name() == name)
    }

    /// The name on the wire and in records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Tier::None => "none",
            Tier::Process => "process",
            Tier::Container => "container",
            Tier::Kernel => "kernel",
            Tier::Vm => "vm",
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Whether a stated tier meets a stated floor.
///
/// An empty floor is met by anything. Otherwise both names must be known and
/// the tier at least as strong: an unknown tier meets nothing, and nothing
/// meets an unknown floor.
#[must_use]
pub fn meets(tier: &str, floor: &str) -> bool {
    if floor.is_empty() {
        return true;
    }
    match (Tier::parse(tier), Tier::parse(floor)) {
        (Some(tier), Some(floor)) => tier >= floor,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn floors() {
        assert!(meets("unknown", ""));
        assert!(meets("vm", "kernel"));
        assert!(meets("kernel", "kernel"));
        assert!(!meets("container", "kernel"));
        assert!(!meets("KERNEL", "kernel"));
        assert!(!meets("unknown", "none"));
        assert!(!meets("vm", "strongest"));
        assert!(!meets("", "none"));
    }
}
