//! A BOM read as a stream: what it is made of, and then whether it is the same
//! bytes once more.
//!
//! What is taken from the file here is believed by nobody. In the file form each
//! member stands on a line of its own, so that the few that say how to rebuild a
//! BOM are found without a tree over it; in any other text they are not found or
//! are wrong, and then the rebuilt bytes are others. A file that is those bytes
//! passes every step of the check, since each of them is about these bytes alone
//! and the rebuilt BOM is valid by the schema.

use std::{
    borrow::Cow,
    collections::BTreeMap,
    io::{self, Read, Seek},
};

use plimsoll_attestation::{PublicKey, base64};
use plimsoll_record::Digest;

use super::{
    Checked,
    attached::missing,
    rebuilt::{self, Claim, Evidence},
    stated::{self, Stated},
};
use crate::{
    bom::Bom,
    bundle::Bundle,
    chunks::Chunks,
    fault::BomError,
    lines::{LineRef, Seekable, Store},
    print::Compare,
    profile::{Kind, MAX_BOM_BYTES, Scope, SpecVersion},
    subject::Subject,
    tree::Node,
};

/// Most bytes of the top-level properties. A BOM of the greatest length has no
/// room for as many lines as their numbers here would name.
const MAX_PROPERTIES: usize = 16 << 20;

/// What is kept of any other line: room for its indentation, a member's name and
/// a reference.
const KEPT: usize = 256;

/// A BOM in a file, of which only the parts that say how to rebuild it are held.
/// It answers one question: whether the BOM is good. Read the whole text with
/// [`Claimed::read`](super::Claimed::read) to learn why one is not.
pub struct Outline<'k, R> {
    key: &'k PublicKey,
    stated: Stated,
    length: u64,
    attached: InFile<R>,
}

impl<'k, R: Read + Seek> Outline<'k, R> {
    /// Reads the file once. `None` for a file that is no good BOM under this
    /// key, or that cannot be read.
    pub fn read(file: R, key: &'k PublicKey) -> Option<Self> {
        let file = Seekable::new(file);
        let found = Found::of(&file).ok()??;
        let properties = [b"{\"properties\":[", found.properties.as_slice(), b"]}"].concat();
        let stated = stated::read(&Node::parse(&properties).ok()?, found.version?).ok()?;
        (stated.key_id == key.id()).then_some(Outline {
            key,
            stated,
            length: found.length,
            attached: InFile {
                file,
                lines: found.lines,
                statements: found.statements,
            },
        })
    }

    /// What it says it describes.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.stated.kind
    }

    /// How much of the bundle must be verified.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.stated.scope
    }

    /// The lines it says it rests on, ascending; at least one.
    #[must_use]
    pub fn lines(&self) -> &[u64] {
        &self.stated.lines
    }

    /// The whole check with a verified bundle. `None` when it does not pass.
    #[must_use]
    pub fn against_bundle(&self, bundle: &Bundle<'_>) -> Option<Checked> {
        let subject = rebuilt::of_bundle(&self.claim(), bundle, true).ok()?;
        self.compared(&subject, bundle.store, false)
    }

    /// The whole check with the attached lines as the only evidence. `None` when
    /// it does not pass.
    #[must_use]
    pub fn against_attached(&self) -> Option<Checked> {
        let subject = rebuilt::of_attached(&self.claim()).ok()?;
        self.compared(&subject, &self.attached, true)
    }

    fn claim(&self) -> Claim<'_> {
        Claim {
            key: self.key,
            kind: self.stated.kind,
            scope: self.stated.scope,
            lines: &self.stated.lines,
            options: &self.stated.options,
            attached: &self.attached,
        }
    }

    fn compared(&self, subject: &Subject, store: &dyn Store, attached: bool) -> Option<Checked> {
        let claim = self.claim();
        let bom = Bom::unvalidated(subject, claim.key, store, claim.scope, claim.options).ok()?;
        if bom.length() != self.length {
            return None;
        }
        let mut compare = Compare::with(Chunks::of(&self.attached.file));
        let written = bom.write(&mut compare).ok()?;
        if !compare.is_equal() {
            return None;
        }
        bom.validate(claim.options).ok()?;
        Some(rebuilt::told(
            &claim,
            subject,
            &bom,
            written.sha256,
            attached,
        ))
    }
}

/// Where a value's text stands in the file.
#[derive(Clone, Copy)]
struct Span {
    offset: u64,
    length: u64,
}

/// What the file's lines say.
#[derive(Default)]
struct Found {
    length: u64,
    version: Option<SpecVersion>,
    /// The items of the top-level properties.
    properties: Vec<u8>,
    /// The attached content of each signed line.
    lines: BTreeMap<u64, Span>,
    /// That of each statement, by its role.
    statements: BTreeMap<String, Span>,
}

/// The top-level member that is being read.
#[derive(Clone, Copy, Eq, PartialEq)]
enum Member {
    Components,
    Properties,
    Other,
}

impl Found {
    /// `None` for a file that is larger than a BOM may be.
    fn of<R: Read + Seek>(file: &Seekable<R>) -> io::Result<Option<Self>> {
        // Within a line nothing counts its length, and it may be the whole file.
        if file.length()? > MAX_BOM_BYTES {
            return Ok(None);
        }
        let mut found = Found::default();
        let mut chunks = Chunks::of(file);
        let mut line = Vec::new();
        let mut member = Member::Other;
        let mut reference = String::new();
        loop {
            let most = match member {
                Member::Properties => MAX_PROPERTIES,
                _ => KEPT,
            };
            let length = chunks.line(&mut line, most)?;
            if length == 0 {
                return Ok(Some(found));
            }
            if let Some(rest) = line.strip_prefix(b"  \"") {
                member = found.begin(rest);
            } else if member == Member::Properties {
                if line.starts_with(b"    ") {
                    found.properties.extend_from_slice(&line);
                }
                if found.properties.len() >= MAX_PROPERTIES {
                    return Ok(None);
                }
            } else if member == Member::Components {
                if let Some(text) = value(&line, b"      \"bom-ref\": \"") {
                    text.clone_into(&mut reference);
                } else if line.starts_with(CONTENT) {
                    found.attachment(&std::mem::take(&mut reference), length);
                }
            }
            found.length = found.length.saturating_add(length);
            if found.length > MAX_BOM_BYTES {
                return Ok(None);
            }
        }
    }

    /// A top-level member's line after its opening quote.
    fn begin(&mut self, line: &[u8]) -> Member {
        if line == b"components\": [\n" {
            return Member::Components;
        }
        if line == b"properties\": [\n" {
            return Member::Properties;
        }
        if let Some(text) = value(line, b"specVersion\": \"") {
            self.version = SpecVersion::parse(text);
        }
        Member::Other
    }

    /// The content of a component's attachment, on a line of this length.
    fn attachment(&mut self, reference: &str, length: u64) {
        let around = CONTENT.len().saturating_add(AFTER.len()) as u64;
        let span = Span {
            offset: self.length.saturating_add(CONTENT.len() as u64),
            length: length.saturating_sub(around),
        };
        match reference.split_once(':') {
            Some(("line", number)) => {
                if let Ok(number) = number.parse() {
                    self.lines.insert(number, span);
                }
            }
            Some(("statement", role)) => {
                self.statements.insert(role.to_owned(), span);
            }
            _ => {}
        }
    }
}

/// How the line of an attachment's content begins.
const CONTENT: &[u8] = b"              \"content\": \"";

/// How it ends.
const AFTER: &[u8] = b"\",\n";

/// The text of a line's value up to its closing quote.
fn value<'l>(line: &'l [u8], before: &[u8]) -> Option<&'l str> {
    let rest = std::str::from_utf8(line.strip_prefix(before)?).ok()?;
    rest.split_once('"').map(|(text, _)| text)
}

/// What is attached to a BOM that stays in its file.
struct InFile<R> {
    file: Seekable<R>,
    lines: BTreeMap<u64, Span>,
    statements: BTreeMap<String, Span>,
}

impl<R: Read + Seek> InFile<R> {
    fn decoded(&self, span: Option<&Span>) -> Option<Vec<u8>> {
        let span = span?;
        let text = self.file.read_exact_at(span.offset, span.length).ok()?;
        base64::decode(std::str::from_utf8(&text).ok()?).ok()
    }

    fn line(&self, number: u64) -> Option<Vec<u8>> {
        self.decoded(self.lines.get(&number))
    }
}

impl<R: Read + Seek> Store for InFile<R> {
    fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>> {
        let bytes = self.line(line.number).map(Cow::Owned);
        bytes.ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl<R: Read + Seek> Evidence for InFile<R> {
    fn of_line(&self, line: u64) -> Result<(Digest, u64), BomError> {
        match self.line(line) {
            Some(bytes) => Ok((Digest::of(&bytes), bytes.len() as u64)),
            None => Err(missing(format!("line:{line}")).into()),
        }
    }

    /// Nobody is told where: what does not pass is read again.
    fn pointer_of(&self, _: &str) -> Option<String> {
        None
    }

    fn statement(&self, role: &str) -> Result<Vec<u8>, BomError> {
        let bytes = self.decoded(self.statements.get(role));
        bytes.ok_or_else(|| missing(format!("statement:{role}")).into())
    }
}
