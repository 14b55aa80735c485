//! One line on its own, for a file that is not whole yet.

use std::io::BufRead;

use plimsoll_wire::ids::is_hex_digest;

use super::{
    examine::{Content, Exchange, Linked},
    order::{chain_fields, in_record},
    reader::LineReader,
    visitor::Call,
};
use crate::{
    fault::{ChainReason, Fault, LineReason, LinkReason, NotACallReason, Reason, SignatureReason},
    key::PublicKey,
    statement::SessionClose,
};

/// A line that was verified on its own. It does not establish that the rest of
/// the file is whole, that the lines before and after are there, that the
/// session's chain goes on or was closed, or that no other call was made.
#[derive(Debug)]
pub struct EntryReport {
    /// ID of the key the line is signed by.
    pub key_id: String,
    /// What its link says of the line before; not compared with that line.
    pub previous_line_sha256: String,
    /// The line's bytes without the newline.
    pub bytes: Vec<u8>,
    call: Call<'static>,
}

impl EntryReport {
    /// The call; its `bytes` are empty, see [`EntryReport::bytes`].
    #[must_use]
    pub fn call(&self) -> &Call<'static> {
        &self.call
    }
}

/// Verifies line `number`, counted from 1, of a bundle that need not be whole.
/// Lines before it are walked over, neither decoded nor checked.
///
/// # Errors
/// Class `no_line`, `not_a_call`, or the class of the line's first fault.
pub fn verify_entry(
    source: impl BufRead,
    keys: &[PublicKey],
    number: u64,
) -> Result<EntryReport, Fault> {
    let mut lines = LineReader::new(source);
    loop {
        let seen = lines.lines();
        let Some(line) = lines.next_line()? else {
            return Err(Fault::new(Reason::NoLine)
                .at_line(number)
                .expected(number)
                .found(seen));
        };
        if line.number == number {
            let offset = line.offset;
            return one(line.bytes, keys, number, offset).map_err(|fault| {
                fault
                    .at_line(number)
                    .over_line(line.bytes.len())
                    .shifted(offset)
            });
        }
        if number == 0 {
            return Err(Fault::new(Reason::NoLine).at_line(0).expected("1 or more"));
        }
    }
}

fn one(bytes: &[u8], keys: &[PublicKey], number: u64, offset: u64) -> Result<EntryReport, Fault> {
    match lone(bytes, keys, number, offset)? {
        Lone::Call(entry) => Ok(*entry),
        Lone::Close(_) => Err(Fault::new(NotACallReason::Close)),
    }
}

/// A line that was verified away from its bundle.
#[derive(Debug)]
pub enum Lone {
    /// A call.
    Call(Box<EntryReport>),
    /// A session's close.
    Close(SessionClose),
}

/// Verifies one line that was taken out of a bundle, as its `number`th line and
/// without its newline. As for [`verify_entry`], nothing is established of the
/// lines around it; its place in the file is not known, so the call's offset is 0.
///
/// # Errors
/// Class `not_a_call` for a checkpoint, or the class of the line's first fault.
pub fn verify_lone(bytes: &[u8], keys: &[PublicKey], number: u64) -> Result<Lone, Fault> {
    lone(bytes, keys, number, 0).map_err(|fault| fault.at_line(number).over_line(bytes.len()))
}

fn lone(bytes: &[u8], keys: &[PublicKey], number: u64, offset: u64) -> Result<Lone, Fault> {
    let line = Linked::decode(bytes)?;
    let named = line.key_id();
    let key = match keys {
        [one] => one,
        keys => keys.iter().find(|key| key.id() == named).ok_or_else(|| {
            let asked: Vec<&str> = keys.iter().map(PublicKey::id).collect();
            Fault::new(SignatureReason::OtherKey)
                .in_member("link.signatures[0].keyid")
                .expected(asked.join(" or "))
                .found(named)
        })?,
    };
    let examined = line.examine(key)?;
    let link = &examined.link;
    if link.index != number {
        return Err(Fault::new(LinkReason::Index)
            .in_member("link.payload.predicate.index")
            .expected(number)
            .found(link.index));
    }
    let previous = &link.previous_sha256;
    if previous.is_empty() != (number == 1) || !(previous.is_empty() || is_hex_digest(previous)) {
        return Err(Fault::new(LinkReason::PreviousForm)
            .in_member("link.payload.predicate.previous_sha256")
            .found(previous));
    }
    let exchange = match examined.content? {
        Content::Call(exchange) => exchange,
        Content::Checkpoint => return Err(Fault::new(NotACallReason::Checkpoint)),
        Content::Close(close) => return Ok(Lone::Close(close)),
    };
    chain_fields(&exchange.record)?;
    if !exchange.record.session.is_empty() {
        let record = &exchange.record;
        if record.sequence == 0 {
            return Err(in_record(ChainReason::Sequence, "sequence")
                .expected("1 or more")
                .found(0));
        }
        let previous = &record.previous_sha256;
        if previous.is_empty() != (record.sequence == 1)
            || !(previous.is_empty() || is_hex_digest(previous))
        {
            return Err(in_record(ChainReason::Previous, "previous_sha256").found(previous));
        }
    }
    let Exchange {
        record,
        request,
        response,
    } = *exchange;
    Ok(Lone::Call(Box::new(EntryReport {
        key_id: key.id().to_owned(),
        previous_line_sha256: examined.link.previous_sha256,
        bytes: bytes.to_vec(),
        call: Call {
            line: number,
            offset,
            bytes: &[],
            digests: examined.digests,
            record,
            request,
            response,
        },
    })))
}

/// Whether a fault says that the file ends inside the line: it was cut, or its
/// writer has not finished the line yet.
#[must_use]
pub fn is_torn(fault: &Fault) -> bool {
    fault.reason() == Reason::Line(LineReason::NoNewline)
}
