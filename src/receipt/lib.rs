//! Receipts for pull requests: which files of which commit were tested, with
//! which commands, what came back, and the signatures that hold it together.
//!
//! Everything here was written by a stranger: repository, file names, test
//! names, reports. Nothing is believed that can be computed again: files are
//! compared with git objects that are hashed here, tests are read again from
//! the signed answer.
#![forbid(unsafe_code)]

pub mod assemble;
pub mod challenge;
pub mod collect;
pub mod config;
pub mod escape;
pub mod event;
pub mod facts;
pub mod folder;
pub mod git;
pub mod make;
pub mod outcome;
pub mod page;
pub mod report;
pub mod run;
pub mod show;
pub mod statement;
pub mod summary;
pub mod verify;

pub use facts::{Evidence, Facts};
