//! Taking a verification up where a state says it ended.

use std::io::{self, BufRead as _, BufReader, Read, Seek, SeekFrom};

use plimsoll_record::Digest;
use sha2::{Digest as _, Sha256};

use super::{State, StateNote};
use crate::{
    bundle::{
        hashing::{Hashing, LineHash},
        report::Report,
        verify::{Verification, VerifyOptions},
        visitor::{SeenLine, Visitor},
    },
    fault::Fault,
    key::PublicKey,
};

/// How a verification with a state went.
#[derive(Debug)]
pub struct Resumption {
    /// Lines that a state stood for: they were hashed and not checked again.
    pub earlier: u64,
    /// Why the state given was not used.
    pub note: Option<StateNote>,
    /// ID of the key under which the lines verified, also those before a fault;
    /// empty when not even the first did.
    pub key_id: String,
    /// The verdict, with the state to save. It is the verdict of a full
    /// verification: what a state stood for was verified under the same key.
    pub verdict: Result<(Report, State), Fault>,
}

/// Verifies a whole bundle, from where a state ends if its bytes are unchanged.
///
/// The visitor sees only what is checked now, and of the earlier lines the one
/// numbered `show`, as an anchor needs it.
pub fn verify_from(
    mut file: impl Read + Seek,
    keys: &[PublicKey],
    state: Option<State>,
    show: Option<u64>,
    options: VerifyOptions,
    visitor: &mut impl Visitor,
) -> Resumption {
    let mut note = None;
    if let Some(state) = state {
        match prefix(&mut file, keys, &state, show) {
            Ok((hasher, shown)) => {
                if let Some(line) = shown {
                    visitor.line(&line);
                }
                let earlier = state.report.lines;
                let verification = Verification::resume(keys, state.report);
                let (key_id, verdict) = rest(file, hasher, verification, options, visitor);
                return Resumption {
                    earlier,
                    note: None,
                    key_id,
                    verdict,
                };
            }
            Err(why) => note = Some(why),
        }
    }
    let (key_id, verdict) = match file.seek(SeekFrom::Start(0)) {
        Ok(_) => rest(
            file,
            Sha256::new(),
            Verification::new(keys),
            options,
            visitor,
        ),
        Err(error) => (String::new(), Err(Fault::io(&error))),
    };
    Resumption {
        earlier: 0,
        note,
        key_id,
        verdict,
    }
}

/// Hashes the bytes a state stands for; leaves the file after them.
fn prefix(
    file: &mut (impl Read + Seek),
    keys: &[PublicKey],
    state: &State,
    show: Option<u64>,
) -> Result<(Sha256, Option<SeenLine>), StateNote> {
    let unreadable = |error: io::Error| StateNote::Unreadable(error.kind());
    if !keys.iter().any(|key| key.id() == state.report.key_id) {
        return Err(StateNote::OtherKey);
    }
    file.seek(SeekFrom::Start(0)).map_err(unreadable)?;
    let mut shown = Shown::new(show);
    let mut hasher = Sha256::new();
    let mut source = BufReader::with_capacity(64 << 10, file.take(state.report.bytes));
    let mut length = 0;
    loop {
        let piece = source.fill_buf().map_err(unreadable)?;
        if piece.is_empty() {
            break;
        }
        hasher.update(piece);
        shown.take(piece);
        let taken = piece.len();
        length += taken as u64;
        source.consume(taken);
    }
    if length < state.report.bytes {
        return Err(StateNote::Shorter);
    }
    if Digest::from(<[u8; 32]>::from(hasher.clone().finalize())) != state.prefix {
        return Err(StateNote::Changed);
    }
    Ok((hasher, shown.line(&state.report)))
}

fn rest(
    file: impl Read,
    hasher: Sha256,
    mut verification: Verification<'_>,
    options: VerifyOptions,
    visitor: &mut impl Visitor,
) -> (String, Result<(Report, State), Fault>) {
    let file = BufReader::with_capacity(64 << 10, file);
    let mut source = Hashing::new(file, LineHash::after(hasher));
    let read = verification.read_with(&mut source, options, visitor);
    let key_id = verification.report().key_id.clone();
    let verdict = read.and_then(|()| verification.finish()).map(|report| {
        // Everything was read and ends in a checkpoint: the bytes hashed are
        // those of the report's lines.
        let state = State {
            report: report.clone(),
            prefix: source.hash().digest(),
        };
        (report, state)
    });
    (key_id, verdict)
}

/// Finds one line among bytes that were verified earlier.
struct Shown {
    wanted: Option<u64>,
    number: u64,
    /// Bytes taken.
    at: u64,
    start: u64,
    length: u64,
    hasher: Sha256,
    digest: Option<Digest>,
}

impl Shown {
    fn new(wanted: Option<u64>) -> Self {
        Shown {
            wanted,
            number: 1,
            at: 0,
            start: 0,
            length: 0,
            hasher: Sha256::new(),
            digest: None,
        }
    }

    fn take(&mut self, mut bytes: &[u8]) {
        let Some(wanted) = self.wanted else {
            return;
        };
        while self.number <= wanted && !bytes.is_empty() {
            let end = crate::scan::first(bytes, |byte| byte == b'\n');
            let (line, rest) = bytes.split_at(end);
            if self.number == wanted {
                self.hasher.update(line);
                self.length += line.len() as u64;
            }
            self.at += line.len() as u64;
            bytes = rest.get(1..).unwrap_or_default();
            if !rest.is_empty() {
                self.at += 1;
                if self.number == wanted {
                    let hasher = std::mem::take(&mut self.hasher);
                    self.digest = Some(Digest::from(<[u8; 32]>::from(hasher.finalize())));
                } else {
                    self.start = self.at;
                }
                self.number += 1;
            }
        }
    }

    fn line(self, report: &Report) -> Option<SeenLine> {
        let number = self.wanted?;
        Some(SeenLine {
            number,
            offset: self.start,
            length: self.length,
            digest: self.digest?,
            checkpoint: report.checkpoints.binary_search(&number).is_ok(),
        })
    }
}
