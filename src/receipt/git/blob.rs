//! The name file content has as a git blob.

use super::{
    Kind, Oid,
    object::{Algorithm, name_of},
};

/// The blob of content; `None` when it is made to collide.
#[must_use]
pub fn name(algorithm: Algorithm, content: &[u8]) -> Option<Oid> {
    name_of(algorithm, Kind::Blob, content)
}
