//! What a verification found: running while it goes, final when it succeeds.

use std::collections::BTreeMap;

use plimsoll_record::Digest;

/// Most tier names counted by name; a bundle with more counts the rest together.
const MAX_TIERS: usize = 32;

/// A session as the bundle holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct SessionReport {
    /// The session's fingerprint, 64 hex digits.
    pub session: String,
    /// Its calls, unanswered ones included.
    pub calls: u64,
    /// Its unanswered calls.
    pub unanswered: u64,
    /// Digest of its last record; empty before the first.
    pub last_record_sha256: String,
    /// Whether its close was seen. Always true in a whole bundle.
    pub closed: bool,
}

/// What a bundle holds. Kept by a verification as it goes, so it can be stored
/// with its place and taken up again; complete when the verification succeeds.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Report {
    /// ID of the key everything is signed by; empty before line 1.
    pub key_id: String,
    /// Lines of every kind.
    pub lines: u64,
    /// Bytes of those lines, newlines included.
    pub bytes: u64,
    /// Calls, answered or not.
    pub records: u64,
    /// Calls without an answer.
    pub unanswered: u64,
    /// Calls outside any session.
    pub single_runs: u64,
    /// Sessions in order of first appearance.
    pub sessions: Vec<SessionReport>,
    /// Numbers of the checkpoint lines.
    pub checkpoints: Vec<u64>,
    /// Calls by the tier their record states; foreign text.
    pub tiers: BTreeMap<String, u64>,
    /// Calls whose tier is not in `tiers` because that has no room.
    pub further_tiers: u64,
    /// Earliest start of a call, Unix milliseconds by the daemon's clock.
    pub first_unix_ms: Option<i64>,
    /// Latest end of a call, Unix milliseconds by the daemon's clock.
    pub last_unix_ms: Option<i64>,
    /// LineDigest of the first line.
    pub first_line: Option<Digest>,
    /// LineDigest of the last line.
    pub last_line: Option<Digest>,
}

impl Report {
    /// The last checkpoint's line number.
    #[must_use]
    pub fn last_checkpoint(&self) -> Option<u64> {
        self.checkpoints.last().copied()
    }

    /// Whether the last line is a checkpoint.
    #[must_use]
    pub fn ends_in_checkpoint(&self) -> bool {
        self.last_checkpoint()
            .is_some_and(|line| line == self.lines)
    }

    /// Session closes.
    #[must_use]
    pub fn closes(&self) -> u64 {
        self.sessions
            .iter()
            .filter(|session| session.closed)
            .count() as u64
    }

    pub(super) fn count_call(&mut self, tier: &str, started: i64, ended: i64) {
        self.records += 1;
        self.first_unix_ms = Some(
            self.first_unix_ms
                .map_or(started, |first| first.min(started)),
        );
        self.last_unix_ms = Some(self.last_unix_ms.map_or(ended, |last| last.max(ended)));
        let room = self.tiers.len() < MAX_TIERS && tier.len() <= 64;
        match self.tiers.get_mut(tier) {
            Some(count) => *count += 1,
            None if room => {
                self.tiers.insert(tier.to_owned(), 1);
            }
            None => self.further_tiers += 1,
        }
    }
}
