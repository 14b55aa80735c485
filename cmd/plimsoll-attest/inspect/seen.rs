//! What a line says, read without believing it.

use plimsoll_attestation::{
    Fault, Line,
    dsse::Envelope,
    fault::{LineReason, LinkReason, SignatureReason, StatementReason, StoredReason},
    statement::{Link, SessionClose, Unverified, read_unverified},
};
use plimsoll_record::{Digest, request_digest, result_digest};
use plimsoll_wire::proto::{self, RunRecord, RunRequest, RunResponse};

use super::{lines::Found, unknown};

/// A line, as far as it could be read.
pub struct Seen {
    /// What it is.
    pub kind: Kind,
    /// Its link, when it has one.
    pub link: Option<Link>,
    /// The key IDs its signatures name, each once.
    pub keys: Vec<String>,
}

/// What a line is.
pub enum Kind {
    /// A call, answered or not.
    Call(Box<Call>),
    /// The close of a session.
    Close(SessionClose),
    /// A checkpoint.
    Checkpoint,
    /// A line that cannot be read, and why.
    Broken(Fault),
}

/// A call: what was signed, and what is stored beside it.
pub struct Call {
    /// The record, consistent in itself.
    pub record: RunRecord,
    /// The stored request.
    pub request: Option<RunRequest>,
    /// The stored response.
    pub response: Option<RunResponse>,
    /// Digest of the stored request.
    pub request_digest: Option<Digest>,
    /// Digest of the stored result.
    pub result_digest: Option<Digest>,
    /// Fields of the stored messages that this version does not know.
    pub unknown: Vec<String>,
}

impl Kind {
    /// The word for people and scripts.
    pub fn word(&self) -> &'static str {
        match self {
            Kind::Call(call) if call.record.unanswered.is_empty() => "call",
            Kind::Call(_) => "unanswered call",
            Kind::Close(_) => "close",
            Kind::Checkpoint => "checkpoint",
            Kind::Broken(_) => "broken",
        }
    }
}

impl Seen {
    /// Reads a line. Nothing is refused: what cannot be read is broken.
    pub fn read(found: Found<'_>) -> Self {
        let read = match found {
            Found::Whole(bytes) => Line::decode(bytes).and_then(Self::of),
            Found::Torn(_) => Err(Fault::new(LineReason::NoNewline)),
            Found::TooLong(_) => Err(Fault::new(LineReason::TooLong)),
        };
        read.unwrap_or_else(|fault| Seen {
            kind: Kind::Broken(fault),
            link: None,
            keys: Vec::new(),
        })
    }

    fn of(line: Line<'_>) -> Result<Self, Fault> {
        let mut keys: Vec<String> = Vec::new();
        for envelope in [&line.envelope, &line.link].into_iter().flatten() {
            for id in envelope.key_ids() {
                if keys.iter().all(|known| known != id) {
                    keys.push(id.to_owned());
                }
            }
        }
        let link = line.link.as_ref().map(link).transpose()?;
        let kind = match (&link, &line.envelope) {
            (Some(link), None) if link.checkpoint => Kind::Checkpoint,
            (Some(link), Some(_)) if link.checkpoint => {
                return Err(Fault::new(LinkReason::CheckpointNotAlone));
            }
            (_, None) => return Err(Fault::new(SignatureReason::None)),
            (_, Some(envelope)) => match payload(envelope)? {
                Unverified::Record(record) => Kind::Call(Box::new(Call::of(*record, &line)?)),
                Unverified::Close(close) => Kind::Close(close),
                Unverified::Link(_) | Unverified::Other(_) => {
                    return Err(Fault::new(StatementReason::PredicateType));
                }
            },
        };
        Ok(Seen { kind, link, keys })
    }
}

fn payload(envelope: &Envelope<'_>) -> Result<Unverified, Fault> {
    read_unverified(&envelope.payload_bytes()?)
}

fn link(envelope: &Envelope<'_>) -> Result<Link, Fault> {
    match payload(envelope)? {
        Unverified::Link(link) => Ok(link),
        _ => Err(Fault::new(StatementReason::PredicateType)),
    }
}

impl Call {
    fn of(record: RunRecord, line: &Line<'_>) -> Result<Self, Fault> {
        let mut unknown = Vec::new();
        let mut name = |message: &str, fields, bytes: &[u8]| {
            let paths = unknown::unknown(fields, bytes);
            unknown.extend(paths.iter().map(|path| format!("{message}.{path}")));
        };
        let request: Option<RunRequest> = match &line.request {
            Some(bytes) => {
                name("request", &unknown::REQUEST, bytes);
                let message = proto::decode(bytes);
                Some(message.map_err(|_| Fault::new(StoredReason::RequestDecode))?)
            }
            None => None,
        };
        let response: Option<RunResponse> = match &line.response {
            Some(bytes) => {
                name("response", &unknown::RESPONSE, bytes);
                let message = proto::decode(bytes);
                Some(message.map_err(|_| Fault::new(StoredReason::ResponseDecode))?)
            }
            None => None,
        };
        Ok(Call {
            request_digest: request.as_ref().map(request_digest),
            result_digest: response.as_ref().map(result_digest),
            record,
            request,
            response,
            unknown,
        })
    }
}
