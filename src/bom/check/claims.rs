//! Steps 1 to 7: the BOM read on its own.

use std::io;

use plimsoll_attestation::{Line, PublicKey};
use plimsoll_record::Digest;

use super::{
    Checked,
    attached::{self, Attachments, InTree},
    rebuilt::{self, Claim},
    stated,
};
use crate::{
    bom::digest,
    bundle::Bundle,
    document::Place,
    fault::{BomError, Code, Refusal},
    lines::verified,
    print::{Compare, Form, Hashing, Printer},
    profile::{Attach, Kind, MAX_BOM_BYTES, Options, Scope, SpecVersion},
    schema::{Broken, Parts},
    serial,
    tree::Node,
};

/// Numbers from here on are not exact for every reader.
const EXACT: u64 = 1 << 53;

/// A BOM that is well formed and consistent in itself. Nothing in it is
/// believed yet.
pub struct Claimed<'a> {
    pub(super) text: &'a [u8],
    pub(super) key: &'a PublicKey,
    pub(super) root: Node<'a>,
    pub(super) kind: Kind,
    pub(super) scope: Scope,
    pub(super) lines: Vec<u64>,
    pub(super) options: Options,
    pub(super) attachments: Attachments,
}

impl<'a> Claimed<'a> {
    /// Reads a BOM and checks what can be without evidence: strict JSON, its
    /// file form, the official schema, the profile, the key, its attachments'
    /// digests and its serial number, in this order.
    ///
    /// # Errors
    /// `bom_parse`, `bom_not_canonical`, `bom_schema`, `bom_profile`,
    /// `key_mismatch`, `attachment_hash`, `attachment_missing` or `bom_serial`.
    pub fn read(text: &'a [u8], key: &'a PublicKey) -> Result<Self, BomError> {
        if text.len() as u64 > MAX_BOM_BYTES {
            return Err(
                Refusal::new(Code::BomParse, "the file is larger than 256 MiB")
                    .found(format!("{} bytes", text.len()))
                    .into(),
            );
        }
        let root = Node::parse(text)?;
        canonical(&root, text)?;
        let spec_version = schema(&root)?;
        let stated = stated::read(&root, spec_version)?;
        attached::key(&root, &stated.key_id, key)?;
        let attachments = Attachments::read(&root, stated.kind, &stated.lines)?;
        serial_number(&root)?;
        Ok(Claimed {
            text,
            key,
            root,
            kind: stated.kind,
            scope: stated.scope,
            lines: stated.lines,
            options: stated.options,
            attachments,
        })
    }

    /// What it says it describes.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// How much of the bundle must be verified.
    #[must_use]
    pub fn scope(&self) -> Scope {
        self.scope
    }

    /// The lines it says it rests on, ascending; at least one.
    #[must_use]
    pub fn lines(&self) -> &[u64] {
        &self.lines
    }

    /// Steps 8 and 9 with a verified bundle.
    ///
    /// # Errors
    /// `attachment_evidence_mismatch`, `bom_mismatch`, or a code of the
    /// selection.
    pub fn against_bundle(&self, bundle: &Bundle<'_>) -> Result<Checked, BomError> {
        self.given(bundle, true)
    }

    /// [`Claimed::against_bundle`] for a caller that compares a receipt's
    /// statements with the evidence itself: here they are opened, and not
    /// compared beyond the call, key and test result they name.
    ///
    /// # Errors
    /// As [`Claimed::against_bundle`].
    pub fn rebuilt_from(&self, bundle: &Bundle<'_>) -> Result<Checked, BomError> {
        self.given(bundle, false)
    }

    /// Steps 8 and 9 with the attached lines as the only evidence.
    ///
    /// # Errors
    /// `attachment_missing` when envelopes alone are attached, the evidence's
    /// class, or `bom_mismatch`.
    pub fn against_attached(&self) -> Result<Checked, BomError> {
        self.with_claim(|claim| {
            let subject = rebuilt::of_attached(claim)?;
            rebuilt::compared(self, claim, &subject, claim.attached, true)
        })
    }

    fn given(&self, bundle: &Bundle<'_>, compare: bool) -> Result<Checked, BomError> {
        for &number in &self.lines {
            self.is_of_bundle(number, bundle)?;
        }
        self.with_claim(|claim| {
            let subject = rebuilt::of_bundle(claim, bundle, compare)?;
            rebuilt::compared(self, claim, &subject, bundle.store, false)
        })
    }

    /// That an attachment is the bundle's line.
    fn is_of_bundle(&self, number: u64, bundle: &Bundle<'_>) -> Result<(), BomError> {
        let attached = self.attachments.of_line(number)?;
        let refuse = |fact: &str| {
            Refusal::new(Code::AttachmentEvidenceMismatch, fact)
                .at(attached.pointer())
                .line(number)
        };
        let Some(line) = bundle.line(number) else {
            return Err(refuse("the bundle has no line of this number").into());
        };
        let expected = match self.options.attach {
            Attach::Line => line.digest,
            Attach::Envelope => {
                let bytes = verified(bundle.store, &line)?;
                let line = Line::decode(&bytes)?;
                let envelope = line.envelope.map(|envelope| envelope.to_json());
                Digest::of(envelope.unwrap_or_default().as_bytes())
            }
        };
        if attached.sha256 == expected {
            return Ok(());
        }
        Err(refuse("the attachment is not the bundle's line")
            .expected(expected)
            .found(attached.sha256)
            .into())
    }

    fn with_claim<T>(&self, with: impl FnOnce(&Claim<'_>) -> T) -> T {
        let attached = InTree {
            root: &self.root,
            attachments: &self.attachments,
        };
        with(&Claim {
            key: self.key,
            kind: self.kind,
            scope: self.scope,
            lines: &self.lines,
            options: &self.options,
            attached: &attached,
        })
    }
}

/// Step 2: nothing but objects, arrays, strings, booleans and small integers,
/// nothing empty, in exactly the file form.
fn canonical(root: &Node<'_>, text: &[u8]) -> Result<(), BomError> {
    if let Some((pointer, fact)) = forbidden(root, &mut String::new()) {
        return Err(Refusal::new(Code::BomNotCanonical, fact).at(pointer).into());
    }
    let mut compare = Compare::with(text);
    let mut printer = Printer::new(&mut compare, Form::File);
    // A difference ends the printing early; what counts is the comparison.
    let printed = root
        .print(&mut printer, None)
        .and_then(|()| printer.finish());
    if printed.is_ok() && compare.is_equal() {
        return Ok(());
    }
    Err(
        Refusal::new(Code::BomNotCanonical, "the file is not in its file form")
            .byte(compare.at)
            .into(),
    )
}

fn forbidden(node: &Node<'_>, pointer: &mut String) -> Option<(String, &'static str)> {
    let length = pointer.len();
    let found = match node {
        Node::Null => Some("a value is null"),
        Node::Number(text) => {
            let exact = text.parse::<u64>().is_ok_and(|number| number < EXACT);
            (!exact || !text.bytes().all(|b| b.is_ascii_digit()))
                .then_some("a number is no integer from 0 to 2^53 - 1")
        }
        Node::Array(items) if items.is_empty() => Some("an array is empty"),
        Node::Object(members) if members.is_empty() => Some("an object is empty"),
        Node::Array(items) => {
            for (i, item) in items.iter().enumerate() {
                pointer.push('/');
                pointer.push_str(&i.to_string());
                let found = forbidden(item, pointer);
                if found.is_some() {
                    return found;
                }
                pointer.truncate(length);
            }
            None
        }
        Node::Object(members) => {
            for (name, member) in members {
                pointer.push('/');
                pointer.push_str(&name.replace('~', "~0").replace('/', "~1"));
                let found = forbidden(member, pointer);
                if found.is_some() {
                    return found;
                }
                pointer.truncate(length);
            }
            None
        }
        Node::Bool(_) | Node::String(_) => None,
    };
    found.map(|fact| (pointer.clone(), fact))
}

/// Step 3: the official schema of the version it names.
fn schema(root: &Node<'_>) -> Result<SpecVersion, BomError> {
    let refuse = |fact: &str| Refusal::new(Code::BomSchema, fact);
    let stated = root.text_of("specVersion");
    let version = stated.and_then(SpecVersion::parse).ok_or_else(|| {
        let refusal = refuse("the version of the specification is neither 1.6 nor 1.7");
        match stated {
            Some(found) => refusal.at("/specVersion").found(found),
            None => refusal.at("/specVersion"),
        }
    })?;
    let broken = |broken: Broken| -> BomError {
        match broken {
            Broken::Invalid(at) => refuse("a value does not meet the schema")
                .at(at.pointer)
                .expected(at.keyword)
                .found(at.value)
                .into(),
            Broken::Schema(error) => BomError::Internal(error),
        }
    };
    let parts = Parts::new(version).map_err(broken)?;
    let emptied = Place::ALL.map(Place::pointer);
    parts
        .tree(&root.value(&mut String::new(), &emptied))
        .map_err(broken)?;
    for place in Place::ALL {
        let mut list = parts.list(place);
        for item in root.at(place.pointer()).map_or(&[][..], Node::items) {
            list.take(item.value(&mut String::new(), &[]))
                .map_err(broken)?;
        }
        list.finish().map_err(broken)?;
    }
    Ok(version)
}

/// Step 7: the serial number that the rest of the BOM gives.
fn serial_number(root: &Node<'_>) -> Result<(), BomError> {
    const MEMBER: &str = "serialNumber";
    let mut hashing = Hashing::over(io::sink());
    let mut printer = Printer::new(&mut hashing, Form::Compact);
    root.print(&mut printer, Some(MEMBER))
        .map_err(BomError::Write)?;
    let derived = serial::of(&digest(hashing.hasher));
    match root.text_of(MEMBER) {
        Some(stated) if stated == derived => Ok(()),
        stated => {
            let refusal = Refusal::new(
                Code::BomSerial,
                "the serial number is not the one the content gives",
            )
            .at("/serialNumber")
            .expected(derived);
            Err(match stated {
                Some(stated) => refusal.found(stated),
                None => refusal,
            }
            .into())
        }
    }
}
