//! The provider chosen: its own settings, and what the other settings must know
//! of it before it is made.
//!
//! One module a provider. A module reads the variables of its provider's group
//! through [`Reader`] (nothing else may read them), checks them without network
//! or process, and states the provider's [`Profile`]. To add one: a module, a
//! variant of [`Choice`] and its lines in the `match`es below.

pub mod disabled;
#[cfg(feature = "docker")]
pub mod docker;
pub mod guest;
mod profile;
#[cfg(feature = "wasm")]
pub mod wasm;

pub use profile::{Cap, Profile};

use super::{environment::Reader, error::ConfigError, variable as v};

/// Every provider there is, in the order of the documentation.
const KNOWN: [&str; 6] = [
    "wasm",
    "docker",
    "e2b",
    "dockercloud",
    "openshell",
    "agentsandbox",
];

/// Those of this build.
const BUILT: &[&str] = &[
    #[cfg(feature = "wasm")]
    "wasm",
    #[cfg(feature = "docker")]
    "docker",
];

/// The provider chosen, with its own settings.
#[derive(Clone, Debug, PartialEq)]
pub enum Choice {
    /// None: every run is refused.
    Disabled,
    /// JavaScript snippets inside this process.
    #[cfg(feature = "wasm")]
    Wasm,
    /// Containers of a local engine.
    #[cfg(feature = "docker")]
    Docker(Box<crate::provider::DockerSettings>),
}

impl Choice {
    /// Whether this build holds the provider of this name.
    #[must_use]
    pub fn is_built(name: &str) -> bool {
        BUILT.contains(&name)
    }

    /// The names this build has, with commas.
    #[must_use]
    pub fn built_names() -> String {
        match BUILT {
            [] => "none".to_owned(),
            names => names.join(", "),
        }
    }

    /// The provider's name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.profile().name
    }

    /// Containers it keeps ready for runs, which use memory of this host.
    #[must_use]
    pub fn kept_ready(&self) -> u64 {
        match self {
            // One of each kind of run.
            #[cfg(feature = "docker")]
            Choice::Docker(settings) => u64::from(settings.fresh_pool) * 2,
            _ => 0,
        }
    }

    /// What the other settings must know of it.
    #[must_use]
    pub fn profile(&self) -> Profile {
        match self {
            Choice::Disabled => disabled::PROFILE,
            #[cfg(feature = "wasm")]
            Choice::Wasm => wasm::PROFILE,
            #[cfg(feature = "docker")]
            Choice::Docker(_) => docker::PROFILE,
        }
    }

    /// Reads which provider is chosen, then its own settings. An unknown name
    /// is never a fall-back to none.
    pub(super) fn read(reader: &Reader<'_>) -> Result<Choice, ConfigError> {
        let value = reader.text(&v::SANDBOX_PROVIDER)?;
        let lower = value.to_ascii_lowercase();
        if lower.is_empty() {
            return Ok(Choice::Disabled);
        }
        let Some(name) = KNOWN.into_iter().find(|known| *known == lower) else {
            return Err(ConfigError::UnknownProvider {
                value: value.to_owned(),
                known: KNOWN.join(", "),
            });
        };
        match name {
            #[cfg(feature = "wasm")]
            "wasm" => Ok(Choice::Wasm),
            #[cfg(feature = "docker")]
            "docker" => docker::read(reader).map(|read| Choice::Docker(Box::new(read))),
            _ => Err(ConfigError::ProviderNotBuilt {
                name,
                built: Self::built_names(),
            }),
        }
    }
}
