//! Verification of a whole bundle in one pass, in constant memory per session.

use std::{collections::HashMap, io::BufRead};

use super::{
    examine::{Content, Examined, Exchange, Linked},
    order::fingerprint_bytes,
    parallel,
    report::{Report, SessionReport},
    visitor::{Call, SeenLine, Visitor},
};
use crate::{
    fault::{ChainReason, Fault, IncompleteReason, SignatureReason},
    key::PublicKey,
};

/// How the work of a verification is done. No choice changes a verdict, the
/// line it names or the order of what a visitor sees.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct VerifyOptions {
    /// Threads that check lines; `None` for as many as the machine runs at
    /// once. One works on the caller's thread alone.
    pub threads: Option<usize>,
    /// Bytes of lines that are handed to a thread together; `None` for 128 KiB.
    /// A line longer than that goes alone.
    pub batch_bytes: Option<usize>,
}

/// Verifies a bundle under one of `keys`: the one whose ID line 1's link names.
/// The visitor sees each call, close and line in the same pass.
///
/// All cores take part. Memory is bounded whatever the bundle's length: some
/// MiB of lines are held at once, and one line may be 64 MiB.
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
    verify_with(source, keys, VerifyOptions::default(), visitor)
}

/// [`verify`] with a choice of threads.
///
/// # Errors
/// As [`verify`].
pub fn verify_with(
    source: impl BufRead,
    keys: &[PublicKey],
    options: VerifyOptions,
    visitor: &mut impl Visitor,
) -> Result<Report, Fault> {
    let mut verification = Verification::new(keys);
    verification.read_with(source, options, visitor)?;
    verification.finish()
}

/// Lines after which a key's multiples are worth making.
const PREPARE_AFTER: u64 = 32;

/// A verification in progress: takes lines in order.
pub struct Verification<'k> {
    keys: &'k [PublicKey],
    key: Option<PublicKey>,
    /// Lines taken by [`Verification::push`].
    pushed: u64,
    pub(super) report: Report,
    /// Places in the report's sessions, by fingerprint.
    pub(super) index: HashMap<[u8; 32], usize>,
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
            .map(|(place, session)| (fingerprint_bytes(&session.session), place))
            .collect();
        Verification {
            keys,
            key: keys.iter().find(|key| key.id() == report.key_id).cloned(),
            pushed: 0,
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
        self.read_with(source, VerifyOptions::default(), visitor)
    }

    /// [`Verification::read`] with a choice of threads.
    ///
    /// # Errors
    /// As [`Verification::read`].
    pub fn read_with(
        &mut self,
        source: impl BufRead,
        options: VerifyOptions,
        visitor: &mut impl Visitor,
    ) -> Result<(), Fault> {
        parallel::read(self, source, options, visitor)
    }

    /// Takes the next line, without its newline.
    ///
    /// # Errors
    /// As [`verify`], but `incomplete`. After an error the report is that of
    /// the lines before, and no further line must be given.
    pub fn push(&mut self, bytes: &[u8], visitor: &mut impl Visitor) -> Result<(), Fault> {
        self.pushed += 1;
        if self.pushed == PREPARE_AFTER {
            self.prepare();
        }
        let examined = self.examine(bytes);
        self.settle(bytes, examined, visitor)
    }

    /// The stage that needs no neighbours.
    fn examine(&mut self, bytes: &[u8]) -> Result<Examined, Fault> {
        let line = Linked::decode(bytes)?;
        if let Some(key) = &self.key {
            return line.examine(key);
        }
        let key = self.choose(line.key_id())?.clone();
        line.examine(self.key.insert(key))
    }

    /// Makes the multiples of the key, for many lines.
    pub(super) fn prepare(&mut self) -> Option<&PublicKey> {
        let key = self.key.as_ref()?.prepared();
        Some(self.key.insert(key))
    }

    /// The stage that needs the order: takes a line's examination, for the line
    /// after those taken.
    pub(super) fn settle(
        &mut self,
        bytes: &[u8],
        examined: Result<Examined, Fault>,
        visitor: &mut impl Visitor,
    ) -> Result<(), Fault> {
        let number = self.report.lines.saturating_add(1);
        let offset = self.report.bytes;
        examined
            .and_then(|examined| self.take(bytes, examined, number, visitor))
            .map_err(|fault| {
                fault
                    .at_line(number)
                    .over_line(bytes.len())
                    .shifted(offset)
                    .after_checkpoint(self.report.last_checkpoint())
            })
    }

    fn take(
        &mut self,
        bytes: &[u8],
        examined: Examined,
        number: u64,
        visitor: &mut impl Visitor,
    ) -> Result<(), Fault> {
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
        if self.report.lines == 0 {
            let key = self.key.as_ref().map_or("", PublicKey::id);
            key.clone_into(&mut self.report.key_id);
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
        self.whole(open)?;
        Ok(self.report)
    }

    /// Whether the lines taken so far are a whole bundle, [`Verification::finish_but`]
    /// without an end: more lines may be given afterwards.
    ///
    /// # Errors
    /// As [`Verification::finish`].
    pub fn whole(&self, open: Option<&str>) -> Result<(), Fault> {
        let report = &self.report;
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
        match report.sessions.iter().find(left) {
            Some(session) => refuse(Fault::new(ChainReason::NotClosed).found(&session.session)),
            None => Ok(()),
        }
    }
}
