//! Bundles: JSON Lines files of signed records, held together by links.

pub mod append;
pub mod disk;
pub mod entry;
pub mod expected;
#[cfg(unix)]
pub mod folder;
pub mod follow;
pub mod reader;
pub mod report;
pub mod seal;
pub mod state;
pub mod verify;
pub mod visitor;
pub mod writer;

mod append_fault;
mod examine;
mod hashing;
mod order;
mod parallel;
mod rescue;

pub use append::{Appended, Guard, Options, append, check};
pub use append_fault::{AppendError, AppendFault, Cut};
pub use entry::{EntryReport, Lone, verify_entry, verify_lone};
pub use expected::{Expectation, expect_count};
pub use follow::{FollowFault, Followed, Follower};
pub use reader::LineReader;
pub use report::{Report, SessionReport};
pub use rescue::{create_side_file, keep_aside};
pub use seal::{Entry, SignedEntry};
pub use verify::{Verification, VerifyOptions, verify, verify_with};
pub use visitor::{Call, SeenLine, Visitor};
pub use writer::{BundleWriter, Position};
