//! What an engine can do wrong, and how that reads as a provider's error.
//!
//! Every word of an engine is private: it names hosts, paths and images. It
//! goes to the log under an error ID and to nobody else.

use std::{fmt, io};

use plimsoll_wire::Reason;

use super::limits::ENGINE_TEXT_CAP;
use crate::provider::{Kind, ProviderError};

/// A failed call to the engine.
#[derive(Debug, thiserror::Error)]
pub(super) enum EngineFault {
    /// No socket is there.
    #[error("no engine: nothing is at its socket")]
    Absent,
    /// A socket is there and nobody listens.
    #[error("no engine: its socket refuses connections")]
    Refused,
    /// The socket is somebody else's.
    #[error("no permission to connect to the engine's socket")]
    Denied,
    /// The connection broke.
    #[error("the connection to the engine broke: {0}")]
    Broken(String),
    /// No answer in time.
    #[error("the engine did not answer in time")]
    Timeout,
    /// An answer above the bound.
    #[error("the engine's answer is larger than is read")]
    TooLarge,
    /// An answer that cannot be understood.
    #[error("the engine's answer cannot be understood: {0}")]
    Malformed(String),
    /// The engine refused or failed.
    #[error("the engine answered {status}: {text}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// Its words, cut.
        text: String,
    },
}

impl EngineFault {
    /// Whether the engine answered that there is no such thing.
    pub(super) fn is_missing(&self) -> bool {
        matches!(self, EngineFault::Status { status: 404, .. })
    }

    /// The fault of a connection that could not be made.
    pub(super) fn of_connect(error: &io::Error) -> EngineFault {
        match error.kind() {
            io::ErrorKind::NotFound => EngineFault::Absent,
            io::ErrorKind::ConnectionRefused => EngineFault::Refused,
            io::ErrorKind::PermissionDenied => EngineFault::Denied,
            _ => EngineFault::Broken(error.to_string()),
        }
    }

    /// The engine's own refusal.
    pub(super) fn status(status: u16, text: &str) -> EngineFault {
        let mut text = text.to_owned();
        let mut end = text.len().min(ENGINE_TEXT_CAP);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        text.truncate(end);
        EngineFault::Status { status, text }
    }
}

/// An infrastructure fault while doing `what`; unmarked.
pub(super) fn during(what: &str, fault: impl fmt::Display) -> ProviderError {
    ProviderError::internal(format!("docker: {what}: {fault}"))
}

/// A refusal because the environment is not what it must be; nothing ran.
pub(super) fn environment(text: impl Into<String>) -> ProviderError {
    ProviderError::internal(text).not_dispatched(Reason::Environment)
}

/// The images are not the ones that were proven; nothing ran.
pub(super) fn unproven(text: impl Into<String>) -> ProviderError {
    ProviderError::new(
        Kind::Software,
        "the sandbox image is not the content that start-up proved: ",
    )
    .and_private(text)
    .not_dispatched(Reason::Environment)
}

/// 16 random hexadecimal digits.
pub(super) fn random_hex() -> Result<String, getrandom::Error> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes)?;
    Ok(hex::encode(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engines_words_are_private_and_cut() {
        let long = "é".repeat(ENGINE_TEXT_CAP);
        let fault = EngineFault::status(500, &long);
        let EngineFault::Status { text, .. } = &fault else {
            unreachable!()
        };
        assert!(text.len() <= ENGINE_TEXT_CAP);
        let error = during("create", EngineFault::status(500, "/srv/SECRET"));
        assert_eq!(error.kind(), Kind::Internal);
        assert_eq!(error.mark(), None);
        assert!(!error.to_string().contains("SECRET"));
        assert!(error.full_text().contains("/srv/SECRET"));
    }

    #[test]
    fn what_keeps_from_connecting_is_told_apart() {
        let of = |kind: io::ErrorKind| EngineFault::of_connect(&kind.into());
        assert!(matches!(of(io::ErrorKind::NotFound), EngineFault::Absent));
        assert!(matches!(
            of(io::ErrorKind::ConnectionRefused),
            EngineFault::Refused
        ));
        assert!(matches!(
            of(io::ErrorKind::PermissionDenied),
            EngineFault::Denied
        ));
    }
}
