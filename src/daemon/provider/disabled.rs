//! The provider of a daemon that names none: it runs nothing.

use futures_util::future::BoxFuture;
use plimsoll_wire::{Kind as PayloadKind, Reason, Tier};

use super::{
    Answer, Capabilities, Environment, Kind, Provider, ProviderError, Resources, RunContext,
    RunOutput, RunSpec, TierNow,
};

/// Refuses every run. What a daemon does without configuration: safe, and
/// still able to say so.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disabled {
    resources: Resources,
}

impl Disabled {
    /// A disabled provider that states this envelope.
    #[must_use]
    pub fn new(resources: Resources) -> Self {
        Disabled { resources }
    }
}

impl Provider for Disabled {
    fn name(&self) -> &'static str {
        "disabled"
    }

    fn tier(&self) -> TierNow {
        Some(Tier::None)
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn environment(&self, _: PayloadKind) -> Environment {
        Environment::default()
    }

    fn resources(&self) -> Resources {
        self.resources
    }

    fn preflight(&self) -> BoxFuture<'_, Answer<()>> {
        Box::pin(async { Ok(()) })
    }

    fn run(&self, _: RunSpec, _: RunContext) -> BoxFuture<'_, Answer<RunOutput>> {
        Box::pin(async {
            Err(ProviderError::new(
                Kind::Disabled,
                "code execution is disabled: this daemon has no provider",
            )
            .not_dispatched(Reason::Unsupported))
        })
    }
}
