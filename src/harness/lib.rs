//! Runs code through a daemon and signs what checks into a bundle.
//!
//! Everything `run` does around the client, without a word to a terminal:
//! results and failures are types, and whoever shows them escapes the texts in
//! them that came from a daemon, a guest or a file name.
//!
//! Trust: the signing key lives in this process only. The daemon, also one
//! started here as a child, never sees it; it states what it measured, and
//! this side recomputes whatever can be recomputed before anything is signed.
//!
//! ```no_run
//! use plimsoll_harness::{
//!     EmbeddedOptions, Ledger, Locations, RunPlan, Shorthand, Source, Target, default_key, request,
//!     run,
//! };
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let loaded = default_key::load(None, None, &Locations::from_environment(), true)?;
//! let prepared = Shorthand::new(Source::Code("console.log(6*7)".into())).prepare()?;
//! let ledger = Ledger::new("plimsoll-runs.jsonl", false);
//! let report = run(
//!     RunPlan {
//!         target: Target::Embedded(EmbeddedOptions::new("wasm")),
//!         key: &loaded.key,
//!         ledger: &ledger,
//!         request: prepared.request,
//!         wait: request::default_wait(None),
//!         save_artifacts: None,
//!         cancel: None,
//!         on_phase: &|_phase| {},
//!     },
//!     &mut (),
//! )
//! .await;
//! match report.result {
//!     Ok(recorded) => println!("line {}", recorded.line()),
//!     Err(failure) => println!("{}: ran {}", failure.class().word(), failure.ran().name()),
//! }
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod artifacts;
pub mod embedded;
pub mod failure;
pub mod project;
pub mod replay;
pub mod request;
pub mod run;
pub mod session;
pub mod software;
pub mod witness;

mod journal;
mod ledger;
mod session_calls;
mod session_work;
mod size_limit;

pub use embedded::{Embedded, EmbeddedOptions, StartError, Stopped};
pub use failure::{Class, RunFailure};
pub use ledger::{Ledger, can_be_made};
pub use plimsoll_keyfile::{KeyError, LoadedKey, Locations, default_key, files};
pub use plimsoll_record::outcome;
pub use request::{Prepared, RequestError, Shorthand, Source};
pub use run::{Recorded, RunPlan, Target, run};
pub use session::{SessionPlan, SessionReport, run_session};
pub use witness::{Perhaps, Witness};
