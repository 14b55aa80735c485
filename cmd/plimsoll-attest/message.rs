//! Messages in files: proto3 JSON, or binary where a flag says so.

use std::path::Path;

use plimsoll_console::{
    Class, ExitCode, Failure,
    files::{Dash, Inputs},
};
use plimsoll_wire::{
    json::{self, JsonError},
    proto::{self, Message},
};
use serde::de::DeserializeOwned;

/// Largest request read from a file.
pub const MOST_REQUEST_BYTES: u64 = 16 << 20;

/// Reads a message of at most `limit` bytes from proto3 JSON.
///
/// # Errors
/// Class `io`, or `request` for a text that is not the message.
pub fn read<M: DeserializeOwned>(
    inputs: &Inputs<'_>,
    file: &Path,
    limit: u64,
) -> Result<M, Failure> {
    let bytes = inputs.read(file, Dash::Allowed, limit)?;
    from_json(file, &bytes)
}

/// A message from proto3 JSON; unknown members are refused.
///
/// # Errors
/// Class `request`, exit 1, with the place.
pub fn from_json<M: DeserializeOwned>(file: &Path, bytes: &[u8]) -> Result<M, Failure> {
    json::read_known(bytes).map_err(|error| {
        let advice = match &error {
            JsonError::Unknown { .. } => {
                "Remove the member or correct its name; a misspelt one would be ignored by a daemon."
            }
            _ => "Give one message as proto3 JSON.",
        };
        let failure = refused(file, &error.to_string(), advice);
        match error {
            JsonError::Text(at) => failure.reason("text").offset(at.offset as u64),
            JsonError::Message { line, path, .. } => {
                let failure = failure.reason("message").line(line as u64);
                if path.is_empty() { failure } else { failure.member(path) }
            }
            JsonError::Unknown { path } => failure.reason("unknown_member").member(path),
        }
    })
}

/// A message from its binary form.
///
/// # Errors
/// Class `request`, exit 1.
pub fn from_binary<M: Message>(file: &Path, bytes: &[u8]) -> Result<M, Failure> {
    proto::decode(bytes).map_err(|error| {
        refused(
            file,
            &format!("the file is not such a message: {error}"),
            "Give the message's binary protobuf form, or leave out --binary for proto3 JSON.",
        )
        .reason("message")
    })
}

fn refused(file: &Path, fact: &str, advice: &str) -> Failure {
    Failure::new(Class::Request, fact, advice)
        .file(file)
        .exit(ExitCode::Refused)
}
