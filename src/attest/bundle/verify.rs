//! Verification of a whole bundle in one pass, in constant memory per session.

use std::{collections::HashMap, io::BufRead};

use plimsoll_record::Digest;
use plimsoll_wire::{ids::is_hex_digest, proto::RunRecord};

use super::{
    examine::{Content, Examined, Exchange, Linked},
    reader::LineReader,
    report::{Report, SessionReport},
    visitor::{Call, SeenLine, Visitor},
};
use crate::{
    fault::{ChainReason, Fault, IncompleteReason, LinkReason, SignatureReason},
    key::PublicKey,
    statement::SessionClose,
};

/// Verifies a bundle under one of `keys`: the one whose ID line 1's link names.
/// The visitor sees each call, close and line in the same pass.
///
/// A bundle that verifies and holds no call is no fault here: see
/// [`Report::records`].
///
/// # Errors
/// The first fault in the order of the lines. Class `line`, `link`,
/// `signature`, `statement`, `stored`, `chain`, `incomplete` or `io`.
pub fn verify(
    source: impl BufRead,
    keys: &[PublicKey],
    visitor: &mut impl Visitor,
) -> Result<Report, Fault> {
    Verification::new(keys).run(source, visitor)
}

/// A verification in progress: takes lines in order.
pub struct Verification<'k> {
    keys: &'k [PublicKey],
    key: Option<&'k PublicKey>,
    report: Report,
    index: HashMap<String, usize>,
}

impl<'k> Verification<'k> {
    /// Begins before line 1.
    #[must_use]
    pub fn new(keys: &'k [PublicKey]) -> Self {
        Self::resume(keys, Report::default())
    }

    /// Goes on after the lines of an earlier report, whose truth is the
    /// caller's responsibility: it stands for a verification under the key it
    /// names, which must be among `keys`.
    #[must_use]
    pub fn resume(keys: &'k [PublicKey], report: Report) -> Self {
        let index = report
            .sessions
            .iter()
            .enumerate()
            .map(|(place, session)| (session.session.clone(), place))
            .collect();
        Verification {
            keys,
            key: keys.iter().find(|key| key.id() == report.key_id),
            report,
            index,
        }
    }

    /// What was found so far.
    #[must_use]
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Takes every line of a source and finishes.
    ///
    /// # Errors
    /// As [`verify`].
    pub fn run(
        mut self,
        source: impl BufRead,
        visitor: &mut impl Visitor,
    ) -> Result<Report, Fault> {
        self.read(source, visitor)?;
        self.finish()
    }

    /// Takes every line of a source, which begins after the lines taken.
    ///
    /// # Errors
    /// As [`verify`], but `incomplete`.
    pub fn read(&mut self, source: impl BufRead, visitor: &mut impl Visitor) -> Result<(), Fault> {
        let mut lines = LineReader::at(source, self.report.lines, self.report.bytes);
        loop {
            match lines.next_line() {
                Ok(Some(line)) => self.push(line.bytes, visitor)?,
                Ok(None) => return Ok(()),
                Err(fault) => return Err(fault.after_checkpoint(self.report.last_checkpoint())),
            }
        }
    }

    /// Takes the next line, without its newline.
    ///
    /// # Errors
    /// As [`verify`], but `incomplete`. After an error the report is that of
    /// the lines before, and no further line must be given.
    pub fn push(&mut self, bytes: &[u8], visitor: &mut impl Visitor) -> Result<(), Fault> {
        let number = self.report.lines.saturating_add(1);
        let offset = self.report.bytes;
        self.take(bytes, number, visitor).map_err(|fault| {
            fault
                .at_line(number)
                .over_line(bytes.len())
                .shifted(offset)
                .after_checkpoint(self.report.last_checkpoint())
        })
    }

    fn take(&mut self, bytes: &[u8], number: u64, visitor: &mut impl Visitor) -> Result<(), Fault> {
        let line = Linked::decode(bytes)?;
        let key = match self.key {
            Some(key) => key,
            None => self.choose(line.key_id())?,
        };
        let examined = line.examine(key)?;
        self.place(&examined, number)?;
        let Examined {
            digests,
            link,
            content,
        } = examined;
        let offset = self.report.bytes;
        match content? {
            Content::Checkpoint => self.report.checkpoints.push(number),
            Content::Close(close) => {
                self.close(&close)?;
                visitor.close(number, &close);
            }
            Content::Call(exchange) => {
                self.call(&exchange.record)?;
                let Exchange {
                    record,
                    request,
                    response,
                } = *exchange;
                visitor.call(&Call {
                    line: number,
                    offset,
                    bytes,
                    digests,
                    record,
                    request,
                    response,
                });
            }
        }
        self.key = Some(key);
        if self.report.lines == 0 {
            key.id().clone_into(&mut self.report.key_id);
            self.report.first_line = Some(digests.line);
        }
        self.report.lines = number;
        self.report.bytes = offset.saturating_add(bytes.len() as u64 + 1);
        self.report.last_line = Some(digests.line);
        visitor.line(&SeenLine {
            number,
            offset,
            length: bytes.len() as u64,
            digest: digests.line,
            checkpoint: link.checkpoint,
        });
        Ok(())
    }

    /// The key a bundle is checked under: one key for all its lines.
    fn choose(&self, named: &str) -> Result<&'k PublicKey, Fault> {
        match self.keys {
            // A single key is tried whatever is named: the fault says the rest.
            [one] => Ok(one),
            keys => keys.iter().find(|key| key.id() == named).ok_or_else(|| {
                let asked: Vec<&str> = keys.iter().map(PublicKey::id).collect();
                Fault::new(SignatureReason::OtherKey)
                    .in_member("link.signatures[0].keyid")
                    .expected(asked.join(" or "))
                    .found(named)
            }),
        }
    }

    fn place(&self, line: &Examined, number: u64) -> Result<(), Fault> {
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
            .entry(fingerprint.to_owned())
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

    fn call(&mut self, record: &RunRecord) -> Result<(), Fault> {
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

    fn close(&mut self, close: &SessionClose) -> Result<(), Fault> {
        let known = self.index.contains_key(&close.session);
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

    /// Ends the bundle after the last line given.
    ///
    /// # Errors
    /// Class `incomplete` or `chain`.
    pub fn finish(self) -> Result<Report, Fault> {
        self.finish_but(None)
    }

    /// [`Verification::finish`] for the one who is still writing a session:
    /// `open`, by its fingerprint, may lack its close.
    ///
    /// # Errors
    /// As [`Verification::finish`].
    pub fn finish_but(self, open: Option<&str>) -> Result<Report, Fault> {
        let report = self.report;
        let refuse = |fault: Fault| {
            Err(fault
                .at_line(report.lines)
                .after_checkpoint(report.last_checkpoint()))
        };
        if report.lines == 0 {
            return refuse(Fault::new(IncompleteReason::Empty));
        }
        if !report.ends_in_checkpoint() {
            return refuse(Fault::new(IncompleteReason::NoCheckpoint));
        }
        // A session that was not closed looks like one that was cut.
        let left =
            |session: &&SessionReport| !session.closed && open != Some(session.session.as_str());
        if let Some(session) = report.sessions.iter().find(left) {
            return refuse(Fault::new(ChainReason::NotClosed).found(&session.session));
        }
        Ok(report)
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

fn hex(digest: Digest) -> String {
    digest.to_hex()
}
