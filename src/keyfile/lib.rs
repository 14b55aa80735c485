//! Which key signs: a file, an environment variable, or the default key.
//!
//! A room of its own, because a program that only verifies and signs statements
//! needs it too, without any of what sends code to a daemon.
#![forbid(unsafe_code)]

pub mod default_key;
pub mod files;

pub use default_key::{KeyError, LoadedKey, Locations};
