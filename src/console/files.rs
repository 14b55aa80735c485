//! Inputs and outputs of commands, with the same refusals everywhere.
//!
//! Reading: a file is opened once and used through that descriptor, so nothing can be exchanged
//! between a check and its use; what could block for ever or never end is refused before a byte is
//! read; sizes are bounded while reading. Writing: a file appears whole or not at all.

mod read;
mod write;

use std::io;

pub use read::{Dash, Input, Inputs};
pub use write::{Mode, OutFile, Replace, replaceable, write};

/// The system's reason in plain words, without its number.
#[must_use]
pub fn plain_words(error: &io::Error) -> String {
    use io::ErrorKind as Kind;
    let words = match error.kind() {
        Kind::NotFound => "it does not exist",
        Kind::PermissionDenied => "permission denied",
        Kind::IsADirectory => "is a directory",
        Kind::NotADirectory => "a part of the path is not a directory",
        Kind::AlreadyExists => "it exists already",
        Kind::BrokenPipe => "the reader closed it",
        Kind::StorageFull => "no space is left",
        Kind::QuotaExceeded => "the quota is used up",
        Kind::FileTooLarge => "it would be larger than allowed",
        Kind::ReadOnlyFilesystem => "the file system is read-only",
        Kind::InvalidFilename => "the name is not valid",
        Kind::InvalidInput => "the name is not valid",
        Kind::UnexpectedEof => "it ended early",
        Kind::Interrupted => "it was interrupted",
        _ => {
            let text = error.to_string();
            return text
                .split(" (os error")
                .next()
                .unwrap_or_default()
                .to_lowercase();
        }
    };
    words.to_owned()
}
