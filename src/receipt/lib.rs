//! Receipts for pull requests: which files of which commit were tested, with
//! which commands, what came back, and the signatures that hold it together.
//!
//! Everything here was written by a stranger: repository, file names, test
//! names, reports. Nothing is believed that can be computed again.
#![forbid(unsafe_code)]

pub mod facts;
pub mod page;

pub use facts::{Evidence, Facts};
