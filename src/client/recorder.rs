//! Where exchanges go that passed every check.

use std::{error::Error, fmt, sync::Arc};

use plimsoll_wire::proto::{RunRecord, RunRequest};

use crate::{Checked, session::Closed};

/// Keeps evidence of calls. Called on the calling task, after every check
/// passed and before the result is returned; it may block. An exchange that
/// failed a check never reaches it.
pub trait Recorder: Send + Sync {
    /// Whether unanswered calls and closes can be kept too; without it a
    /// session is refused before anything is sent.
    fn keeps_sessions(&self) -> bool {
        false
    }

    /// Keeps an answered call: the request as sent (a session call in its
    /// `RunRequest` form) and the answer as received.
    ///
    /// # Errors
    /// Whatever kept it from being kept; the caller gets the result and this.
    fn answered(&self, call: &Checked) -> Result<(), RecorderError>;

    /// Keeps a session call that may have run and gave no answer.
    ///
    /// # Errors
    /// As [`Recorder::answered`].
    fn unanswered(&self, request: &RunRequest, record: &RunRecord) -> Result<(), RecorderError> {
        let (_, _) = (request, record);
        Err(RecorderError::new(Unsupported))
    }

    /// Keeps the close of a session whose chain is the daemon's.
    ///
    /// # Errors
    /// As [`Recorder::answered`].
    fn closed(&self, close: &Closed) -> Result<(), RecorderError> {
        let _ = close;
        Err(RecorderError::new(Unsupported))
    }
}

/// Why a recorder kept nothing. The recorder's own error is inside.
#[derive(Clone, Debug)]
pub struct RecorderError(Arc<dyn Error + Send + Sync>);

impl RecorderError {
    /// Wraps the recorder's own error.
    pub fn new(error: impl Error + Send + Sync + 'static) -> Self {
        RecorderError(Arc::new(error))
    }

    /// The recorder's own error, of the type it was made with.
    #[must_use]
    pub fn downcast<E: Error + 'static>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl fmt::Display for RecorderError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

impl Error for RecorderError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.0)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("this recorder keeps no sessions")]
struct Unsupported;
