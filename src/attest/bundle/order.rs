//! What a line's place decides: the links' chain and the sessions' chains.

use plimsoll_record::Digest;
use plimsoll_wire::{ids::is_hex_digest, proto::RunRecord};

use super::{examine::Examined, report::SessionReport, verify::Verification};
use crate::{
    fault::{ChainReason, Fault, LinkReason},
    statement::SessionClose,
};

impl Verification<'_> {
    /// Whether the line is the one after those taken.
    pub(super) fn place(&self, line: &Examined, number: u64) -> Result<(), Fault> {
        let link = &line.link;
        if link.index != number {
            return Err(Fault::new(LinkReason::Index)
                .in_member("link.payload.predicate.index")
                .expected(number)
                .found(link.index));
        }
        let follows = match self.report.last_line {
            None => link.previous_sha256.is_empty(),
            Some(last) => last.is(&link.previous_sha256),
        };
        if follows {
            return Ok(());
        }
        Err(Fault::new(LinkReason::Previous)
            .in_member("link.payload.predicate.previous_sha256")
            .expected(self.report.last_line.map_or_else(String::new, hex))
            .found(&link.previous_sha256))
    }

    fn session(&mut self, fingerprint: &str) -> &mut SessionReport {
        let sessions = &mut self.report.sessions;
        let place = *self
            .index
            .entry(fingerprint_bytes(fingerprint))
            .or_insert(sessions.len());
        if place == sessions.len() {
            sessions.push(SessionReport {
                session: fingerprint.to_owned(),
                calls: 0,
                unanswered: 0,
                last_record_sha256: String::new(),
                closed: false,
            });
        }
        &mut sessions[place]
    }

    /// Takes a call into its session, or as a single run.
    pub(super) fn call(&mut self, record: &RunRecord) -> Result<(), Fault> {
        chain_fields(record)?;
        let unanswered = u64::from(!record.unanswered.is_empty());
        if record.session.is_empty() {
            self.report.single_runs += 1;
        } else {
            let session = self.session(&record.session);
            if session.closed {
                return Err(in_record(ChainReason::Closed, "session").found(&record.session));
            }
            if session.calls.checked_add(1) != Some(record.sequence) {
                return Err(in_record(ChainReason::Sequence, "sequence")
                    .expected(session.calls.saturating_add(1))
                    .found(record.sequence));
            }
            if session.last_record_sha256 != record.previous_sha256 {
                return Err(in_record(ChainReason::Previous, "previous_sha256")
                    .expected(&session.last_record_sha256)
                    .found(&record.previous_sha256));
            }
            session.calls = record.sequence;
            session.unanswered += unanswered;
            session.last_record_sha256.clone_from(&record.record_sha256);
        }
        self.report.unanswered += unanswered;
        self.report.count_call(
            &record.isolation,
            record.started_unix_ms,
            record.ended_unix_ms,
        );
        Ok(())
    }

    /// Closes a session that was seen whole.
    pub(super) fn close(&mut self, close: &SessionClose) -> Result<(), Fault> {
        let known = self.index.contains_key(&fingerprint_bytes(&close.session));
        let session = self.session(&close.session);
        if session.closed {
            return Err(in_record(ChainReason::SecondClose, "session").found(&close.session));
        }
        let (calls, last) = if known {
            (ChainReason::Calls, ChainReason::Last)
        } else {
            (ChainReason::Empty, ChainReason::Empty)
        };
        if session.calls != close.calls {
            return Err(in_record(calls, "calls")
                .expected(session.calls)
                .found(close.calls));
        }
        if session.last_record_sha256 != close.last_record_sha256 {
            return Err(in_record(last, "last_record_sha256")
                .expected(&session.last_record_sha256)
                .found(&close.last_record_sha256));
        }
        session.closed = true;
        Ok(())
    }
}

/// Whether the chain fields of a record fit together, whatever came before.
pub(super) fn chain_fields(record: &RunRecord) -> Result<(), Fault> {
    if record.session.is_empty() {
        if !record.unanswered.is_empty() {
            return Err(in_record(ChainReason::Unanswered, "session"));
        }
        if record.sequence != 0 {
            return Err(in_record(ChainReason::SingleRun, "sequence")
                .expected(0)
                .found(record.sequence));
        }
        if !record.previous_sha256.is_empty() {
            return Err(
                in_record(ChainReason::SingleRun, "previous_sha256").found(&record.previous_sha256)
            );
        }
        return Ok(());
    }
    if !is_hex_digest(&record.session) {
        return Err(in_record(ChainReason::Session, "session")
            .expected("64 lowercase hex digits")
            .found(&record.session));
    }
    Ok(())
}

pub(super) fn in_record(reason: ChainReason, member: &str) -> Fault {
    Fault::new(reason).in_member(format!("envelope.payload.predicate.{member}"))
}

/// The bytes of a fingerprint, whose form was checked: a bundle may have many
/// sessions, and its text takes four times the memory.
pub(super) fn fingerprint_bytes(fingerprint: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    if hex::decode_to_slice(fingerprint, &mut bytes).is_err() {
        // Not reached with a checked form; distinct texts stay distinct.
        bytes = *Digest::of(fingerprint.as_bytes()).as_bytes();
    }
    bytes
}

fn hex(digest: Digest) -> String {
    digest.to_hex()
}
