//! Configuration: the one place that reads settings.
//!
//! Settings come from environment variables, handed in as a map, so that a test
//! needs no process environment. Every variable is declared once as a
//! [`Variable`], with its help; what is not declared cannot be read. A setting
//! this build cannot honour is an error, never silence.

mod auth;
mod duration;
mod environment;
mod error;
mod help;
pub mod providers;
mod rules;
mod sessions;
mod settings;
pub(crate) mod variable;

pub use duration::parse_duration;
pub use environment::Environment;
pub(crate) use environment::Reader;
pub use error::{ConfigError, Fault};
pub use help::help;
pub use providers::{Choice, Profile};
pub use settings::{Auth, Clamp, SessionSettings, Settings, TlsFiles};
pub use variable::{Group, VARIABLES, Variable};

#[cfg(test)]
mod settings_tests;
#[cfg(test)]
mod tables_tests;
