//! The chain of a session's calls, as one side saw it.

use plimsoll_wire::{ids, proto::RunRecord};

use crate::check::RecordError;

/// Where a session's chain stands. Each record names its number and the digest
/// of the one before, so a dropped, moved or repeated call shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chain {
    fingerprint: String,
    calls: u64,
    last: String,
}

impl Chain {
    /// The chain of a session that has run nothing yet.
    #[must_use]
    pub fn new(fingerprint: impl Into<String>) -> Self {
        Chain {
            fingerprint: fingerprint.into(),
            calls: 0,
            last: String::new(),
        }
    }

    /// As [`Chain::new`], from the session's ID.
    #[must_use]
    pub fn of_session_id(id: &str) -> Self {
        Self::new(ids::session_fingerprint(id))
    }

    /// The session's fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// Calls in the chain, unanswered ones included.
    #[must_use]
    pub fn calls(&self) -> u64 {
        self.calls
    }

    /// Digest of the last call's record; empty before the first.
    #[must_use]
    pub fn last(&self) -> &str {
        &self.last
    }

    /// Whether a record continues this chain.
    ///
    /// # Errors
    /// [`RecordError::Chain`].
    pub fn continues(&self, record: &RunRecord) -> Result<(), RecordError> {
        let differs = |field, expected: String, found: String| RecordError::Chain {
            field,
            expected,
            found,
        };
        if record.session != self.fingerprint {
            return Err(differs(
                "session",
                self.fingerprint.clone(),
                record.session.clone(),
            ));
        }
        // A chain cannot grow past u64::MAX; no sequence continues it there.
        if self.calls.checked_add(1) != Some(record.sequence) {
            return Err(differs(
                "sequence",
                self.calls.saturating_add(1).to_string(),
                record.sequence.to_string(),
            ));
        }
        if record.previous_sha256 != self.last {
            return Err(differs(
                "previous_sha256",
                self.last.clone(),
                record.previous_sha256.clone(),
            ));
        }
        Ok(())
    }

    /// Moves the chain past a record that [`Chain::continues`] it.
    ///
    /// # Errors
    /// [`RecordError::Chain`]; the chain does not move.
    pub fn advance(&mut self, record: &RunRecord) -> Result<(), RecordError> {
        self.continues(record)?;
        self.calls = record.sequence;
        self.last.clone_from(&record.record_sha256);
        Ok(())
    }

    /// Whether a close's claims are what this side saw.
    ///
    /// # Errors
    /// [`RecordError::Chain`].
    pub fn closes(&self, session: &str, calls: u64, last: &str) -> Result<(), RecordError> {
        let fields = [
            ("session", self.fingerprint.clone(), session.to_owned()),
            ("calls", self.calls.to_string(), calls.to_string()),
            ("last_record_sha256", self.last.clone(), last.to_owned()),
        ];
        for (field, expected, found) in fields {
            if expected != found {
                return Err(RecordError::Chain {
                    field,
                    expected,
                    found,
                });
            }
        }
        Ok(())
    }
}
