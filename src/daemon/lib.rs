//! The daemon: runs untrusted code through a provider and answers every call
//! with a run record. It holds no signing key.
//!
//! A request flows transport → [`call::Service`] → admission → provider →
//! record. See `docs/architecture.md`.
#![forbid(unsafe_code)]

pub mod admission;
pub mod call;
pub mod config;
pub mod hardened;
pub mod log;
pub mod metrics;
pub mod provider;
pub mod registry;
pub mod service;
pub mod start;
pub mod surface;
pub mod transport;

mod announce;
mod descriptors;
mod entry;
mod exit;
mod faults;
mod listeners;
mod log_queue;
mod process;
mod shortage;
mod stop;
mod time;

pub use entry::main;

#[cfg(test)]
mod operator_page_tests;
