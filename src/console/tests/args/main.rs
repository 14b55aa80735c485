//! The command line's rules.
#![allow(clippy::unwrap_used, clippy::panic)]

mod definition;
mod hostile;
mod rules;
