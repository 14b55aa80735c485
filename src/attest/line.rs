//! One line of a bundle: its exact form and its digests.
//!
//! A line is byte for byte what the encoder gives for the object it decodes
//! to. It is decoded strictly, written again and compared, so no second
//! spelling of a line exists that two readers could understand differently.

use std::borrow::Cow;

use plimsoll_record::Digest;
use sha2::{Digest as _, Sha256};

use crate::{
    base64::{self, Base64Fault},
    dsse::{Envelope, EnvelopeFault, Members},
    escape::{Compare, Out},
    fault::{Fault, LineReason, SignatureReason},
    json::{Json, JsonFault, Kind},
};

/// Longest line, its newline included.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// A decoded line that is in its exact form.
#[derive(Debug)]
pub struct Line<'a> {
    /// The stored request's bytes.
    pub request: Option<Vec<u8>>,
    /// The stored response's bytes.
    pub response: Option<Vec<u8>>,
    /// The signed record or close.
    pub envelope: Option<Envelope<'a>>,
    /// The signed link.
    pub link: Option<Envelope<'a>>,
    /// The stored messages' base64 texts, to compare without encoding again.
    texts: [Option<Cow<'a, str>>; 2],
    bytes: &'a [u8],
    /// Where the content before the link ends.
    content_end: usize,
}

/// The digests of a line.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct LineDigests {
    /// LineDigest: the stored bytes without the newline, link included.
    pub line: Digest,
    /// ContentDigest: the same bytes without the link; `None` when nothing
    /// would be left.
    pub content: Option<Digest>,
}

impl<'a> Line<'a> {
    /// Decodes a line without its newline.
    ///
    /// # Errors
    /// Class `line`, with the byte range from the line's start where known.
    pub fn decode(bytes: &'a [u8]) -> Result<Self, Fault> {
        let text = plain(bytes)?;
        let mut json = Json::new(text);
        let mut line = Line {
            request: None,
            response: None,
            envelope: None,
            link: None,
            texts: [None, None],
            bytes,
            content_end: bytes.len(),
        };
        let mut order = 0;
        let mut disordered = None;
        let read = json.object::<Fault>(|json, name, at| {
            let place = MEMBERS.iter().position(|member| *member == name);
            let Some(place) = place else {
                return Err(refused(&json.unknown(name, at)));
            };
            if place < order {
                disordered = disordered.or(Some(at));
            }
            order = place;
            match place {
                0 => line.request = Some(stored(json, name, &mut line.texts[0])?),
                1 => line.response = Some(stored(json, name, &mut line.texts[1])?),
                2 => line.envelope = Some(envelope(json, name)?),
                _ => {
                    // The comma before the link goes with it.
                    line.content_end = at.saturating_sub(1);
                    line.link = Some(envelope(json, name)?);
                }
            }
            Ok(())
        });
        read.and_then(|()| json.end().map_err(|fault| refused(&fault)))?;
        if let Some(at) = disordered {
            return Err(Fault::new(LineReason::MemberOrder).over_bytes(at..at + 1));
        }
        line.exact()?;
        Ok(line)
    }

    /// Compares the line with what the encoder writes for it.
    fn exact(&self) -> Result<(), Fault> {
        let mut compare = Compare::with(self.bytes);
        self.write(&mut compare);
        let Some(at) = compare.first_difference() else {
            return Ok(());
        };
        let reason = match self.bytes.get(at) {
            Some(b' ' | b'\t' | b'\r') => LineReason::Space,
            _ => LineReason::NotExact,
        };
        Err(Fault::new(reason).over_bytes(at..at + 1))
    }

    fn write(&self, out: &mut impl Out) {
        let mut first = true;
        for (name, text) in MEMBERS.iter().zip(&self.texts) {
            if let Some(text) = text {
                member(out, name, &mut first);
                // Canonical base64 has nothing to escape.
                out.put("\"");
                out.put(text);
                out.put("\"");
            }
        }
        for (name, envelope) in [("envelope", &self.envelope), ("link", &self.link)] {
            if let Some(envelope) = envelope {
                member(out, name, &mut first);
                envelope.write(out);
            }
        }
        out.put(if first { "{}" } else { "}" });
    }

    /// The line's bytes without its newline.
    #[must_use]
    pub fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// LineDigest and ContentDigest; the shared part is hashed once.
    #[must_use]
    pub fn digests(&self) -> LineDigests {
        let (content, rest) = self.bytes.split_at(self.content_end);
        let mut hasher = Sha256::new();
        hasher.update(content);
        // A checkpoint's link begins right after the opening brace.
        let content = (self.content_end > 0 && self.bytes.len() > 2).then(|| {
            let mut hasher = hasher.clone();
            if self.content_end < self.bytes.len() {
                hasher.update(b"}");
            }
            finish(hasher)
        });
        hasher.update(rest);
        LineDigests {
            line: finish(hasher),
            content,
        }
    }
}

const MEMBERS: [&str; 4] = ["request", "response", "envelope", "link"];

fn finish(hasher: Sha256) -> Digest {
    Digest::from(<[u8; 32]>::from(hasher.finalize()))
}

/// Starts a member of a line.
fn member(out: &mut impl Out, name: &str, first: &mut bool) {
    out.put(if *first { "{\"" } else { ",\"" });
    out.put(name);
    out.put("\":");
    *first = false;
}

fn write_messages(out: &mut impl Out, request: Option<&[u8]>, response: Option<&[u8]>) {
    let mut first = true;
    for (name, bytes) in [("request", request), ("response", response)] {
        if let Some(bytes) = bytes {
            member(out, name, &mut first);
            out.put("\"");
            out.put(&base64::encode(bytes));
            out.put("\"");
        }
    }
}

/// A line's content as the encoder writes it, without its closing brace: the
/// messages and the envelope. Never empty: an entry has an envelope.
pub(crate) fn encode_content(
    request: Option<&[u8]>,
    response: Option<&[u8]>,
    envelope: &Envelope<'_>,
) -> String {
    let size = |bytes: Option<&[u8]>| bytes.map_or(0, |bytes| bytes.len() / 3 * 4 + 20);
    let mut out = String::with_capacity(size(request) + size(response) + 4096);
    write_messages(&mut out, request, response);
    let mut first = out.is_empty();
    member(&mut out, "envelope", &mut first);
    envelope.write(&mut out);
    out
}

/// Closes a line: the content of [`encode_content`] or nothing, then the link.
pub(crate) fn encode_with_link(mut content: String, link: &Envelope<'_>) -> String {
    let mut first = content.is_empty();
    member(&mut content, "link", &mut first);
    link.write(&mut content);
    content.push('}');
    content
}

/// The line as text, after what line-end conversion and editors do to files
/// was recognised.
fn plain(bytes: &[u8]) -> Result<&str, Fault> {
    let refuse = |reason, range| Err(Fault::new(reason).over_bytes(range));
    let end = bytes.len();
    if bytes.starts_with(b"\xef\xbb\xbf") {
        return refuse(LineReason::ByteOrderMark, 0..3);
    }
    match bytes {
        [] => return refuse(LineReason::Blank, 0..0),
        [b'\r'] => return refuse(LineReason::CarriageReturn, 0..1),
        _ if bytes.iter().all(u8::is_ascii_whitespace) => {
            return refuse(LineReason::Blank, 0..end);
        }
        [.., b'\r'] => return refuse(LineReason::CarriageReturn, end - 1..end),
        _ => {}
    }
    std::str::from_utf8(bytes).or_else(|error| {
        let at = error.valid_up_to();
        refuse(LineReason::NotUtf8, at..at + 1)
    })
}

fn stored<'a>(
    json: &mut Json<'a>,
    name: &str,
    kept: &mut Option<Cow<'a, str>>,
) -> Result<Vec<u8>, Fault> {
    let start = json.at();
    let text = json.string().map_err(|fault| refused(&fault).under(name))?;
    let refuse = |reason| {
        Fault::new(reason)
            .in_member(name)
            .over_bytes(start..json.at())
    };
    if text.is_empty() {
        return Err(refuse(LineReason::EmptyMember));
    }
    let bytes = base64::decode(&text).map_err(|fault| {
        refuse(match fault {
            Base64Fault::UrlSafe => LineReason::UrlSafe,
            Base64Fault::Invalid => LineReason::Base64,
        })
    })?;
    *kept = Some(text);
    Ok(bytes)
}

fn envelope<'a>(json: &mut Json<'a>, name: &str) -> Result<Envelope<'a>, Fault> {
    Envelope::read(json, Members::Exact).map_err(|fault| match fault {
        EnvelopeFault::Json(fault) => refused(&fault).under(name),
        EnvelopeFault::Missing(member, at) => Fault::new(LineReason::MissingMember)
            .in_member(format!("{name}.{member}"))
            .over_bytes(at..at + 1),
        EnvelopeFault::TooMany(at) => Fault::new(SignatureReason::TooMany)
            .in_member(format!("{name}.signatures"))
            .over_bytes(at..at + 1),
    })
}

impl From<JsonFault> for Fault {
    /// A JSON fault of a line.
    fn from(fault: JsonFault) -> Self {
        refused(&fault)
    }
}

fn refused(fault: &JsonFault) -> Fault {
    let reason = match fault.kind {
        Kind::ControlCharacter => LineReason::ControlCharacter,
        Kind::NotInteger | Kind::WrongType => LineReason::WrongType,
        Kind::Repeated => LineReason::RepeatedMember,
        Kind::Syntax => LineReason::Syntax,
        Kind::TooDeep => LineReason::TooDeep,
        Kind::Trailing => LineReason::TrailingData,
        Kind::Unknown => LineReason::UnknownMember,
    };
    let refusal = Fault::new(reason).over_bytes(fault.at..fault.at + 1);
    match &fault.member {
        Some(member) => refusal.in_member(member),
        None => refusal,
    }
}
