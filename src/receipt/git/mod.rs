//! Git objects of a clone that may be hostile.
//!
//! Objects are read through `git cat-file` in a repository of our own that
//! borrows the clone's object store and nothing else: no configuration, hook,
//! filter, replacement, graft, index or work tree of the clone takes part.
//! Every object is hashed again, with a SHA-1 that detects collisions, so that
//! what git says of one is never believed.

pub mod blob;
pub mod merge;
pub mod object;
pub mod place;
pub mod store;
pub mod tree;

pub use object::{Commit, Kind, Oid};
pub use place::Place;
pub use store::Store;
pub use tree::Entry;

use std::io;

/// Why git objects cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// No repository at the place named.
    #[error("no git repository")]
    NoRepository,
    /// The git program could not be started, or the system refused something.
    #[error("{0}: {1}")]
    Io(&'static str, io::Error),
    /// An object is not in the clone.
    #[error("the {0} {1} is not in the clone")]
    Missing(Kind, Oid),
    /// An object's bytes do not have the name they are stored under.
    #[error("the object {0} does not have the bytes its name stands for")]
    Hash(Oid),
    /// A SHA-1 collision was detected in an object's bytes.
    #[error("the object {0} is part of a SHA-1 collision")]
    Collision(Oid),
    /// An object is of another kind, or not of its form.
    #[error("the object {oid} is not valid: {what}")]
    Form {
        /// The object.
        oid: Oid,
        /// Why.
        what: &'static str,
    },
    /// A bound was met.
    #[error("{0}")]
    Limit(&'static str),
    /// git answered something that is no answer.
    #[error("git answered out of form")]
    Answer,
    /// The merge cannot be made again.
    #[error("the merge cannot be made again: {0}")]
    Merge(&'static str),
}
