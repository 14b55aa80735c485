//! Steps 5 and 6: the key component and the attachments.

use std::{borrow::Cow, collections::HashMap, io};

use plimsoll_attestation::{PublicKey, base64};
use plimsoll_record::Digest;

use super::rebuilt::Evidence;
use crate::{
    fault::{BomError, Code, Refusal},
    lines::{LineRef, Store},
    profile::Kind,
    tree::Node,
};

/// Step 5: stated key, key component and the key asked for are one.
pub(super) fn key(root: &Node<'_>, stated: &str, key: &PublicKey) -> Result<(), BomError> {
    let refuse = |fact: &str, pointer: String, found: Option<&str>, expected: &str| {
        let refusal = Refusal::new(Code::KeyMismatch, fact)
            .at(pointer)
            .expected(expected);
        Err(match found {
            Some(found) => refusal.found(found),
            None => refusal,
        }
        .into())
    };
    if stated != key.id() {
        let fact = "the BOM names another signing key";
        return refuse(fact, "/properties".to_owned(), Some(stated), key.id());
    }
    let reference = format!("key:{stated}");
    let components = root.get("components").map_or(&[][..], Node::items);
    let found = components
        .iter()
        .enumerate()
        .find(|(_, c)| c.text_of("bom-ref") == Some(&reference));
    let Some((i, component)) = found else {
        let fact = "the BOM has no component of its signing key";
        return refuse(fact, "/components".to_owned(), None, &reference);
    };
    let material = component
        .get("cryptoProperties")
        .and_then(|crypto| crypto.get("relatedCryptoMaterialProperties"));
    for (member, expected) in [("id", key.id().to_owned()), ("value", key.to_pem())] {
        let found = material.and_then(|material| material.text_of(member));
        if found != Some(expected.as_str()) {
            let pointer = format!(
                "/components/{i}/cryptoProperties/relatedCryptoMaterialProperties/{member}"
            );
            return refuse(
                "the key component holds another key",
                pointer,
                found,
                &expected,
            );
        }
    }
    Ok(())
}

/// What is attached, by the reference of its component.
pub(super) struct Attachments {
    found: HashMap<String, Attached>,
}

/// One attachment whose digest and size are as stated.
#[derive(Clone, Copy)]
pub(super) struct Attached {
    /// The component's place.
    component: usize,
    pub(super) sha256: Digest,
    pub(super) length: u64,
}

impl Attached {
    /// Where its content stands.
    pub(super) fn pointer(&self) -> String {
        format!(
            "/components/{}/data/0/contents/attachment/content",
            self.component
        )
    }
}

impl Attachments {
    /// Step 6: decodes each attachment, compares its digest and size, and finds
    /// one for everything that must have one.
    pub(super) fn read(root: &Node<'_>, kind: Kind, lines: &[u64]) -> Result<Self, BomError> {
        let components = root.get("components").map_or(&[][..], Node::items);
        let mut found = HashMap::new();
        for (i, component) in components.iter().enumerate() {
            let data = component.get("data").map_or(&[][..], Node::items);
            for (j, item) in data.iter().enumerate() {
                let attachment = item
                    .get("contents")
                    .and_then(|contents| contents.get("attachment"));
                let Some(attachment) = attachment else {
                    continue;
                };
                let one = checked(component, attachment, i, j)?;
                if let (0, Some(reference)) = (j, component.text_of("bom-ref")) {
                    found.entry(reference.to_owned()).or_insert(one);
                }
            }
        }
        let attachments = Attachments { found };
        let statements: &[&str] = match kind {
            Kind::Receipt => &["statement:test-result", "statement:pr-receipt"],
            _ => &[],
        };
        let wanted = lines
            .iter()
            .map(|line| format!("line:{line}"))
            .chain(statements.iter().map(ToString::to_string));
        for reference in wanted {
            if !attachments.found.contains_key(&reference) {
                return Err(missing(reference).into());
            }
        }
        Ok(attachments)
    }

    pub(super) fn of_line(&self, line: u64) -> Result<Attached, BomError> {
        let reference = format!("line:{line}");
        self.found
            .get(&reference)
            .copied()
            .ok_or_else(|| missing(reference).into())
    }
}

pub(super) fn missing(reference: String) -> Refusal {
    Refusal::new(Code::AttachmentMissing, "the evidence is not attached")
        .at("/components")
        .expected(reference)
}

fn decoded(root: &Node<'_>, attached: &Attached) -> Option<Vec<u8>> {
    let content = root.at(&attached.pointer())?.text()?;
    base64::decode(content).ok()
}

fn checked(
    component: &Node<'_>,
    attachment: &Node<'_>,
    i: usize,
    j: usize,
) -> Result<Attached, BomError> {
    let refuse = |fact: &str, member: String| {
        Refusal::new(Code::AttachmentHash, fact).at(format!("/components/{i}/{member}"))
    };
    let content = format!("data/{j}/contents/attachment/content");
    let text = attachment.text_of("content").unwrap_or_default();
    let bytes = base64::decode(text)
        .map_err(|error| refuse("the attachment does not decode", content).found(error))?;
    let sha256 = Digest::of(&bytes);
    let stated = component
        .get("hashes")
        .and_then(|hashes| hashes.items().first())
        .and_then(|hash| hash.text_of("content"));
    if !stated.is_some_and(|stated| sha256.is(stated)) {
        let refusal = refuse(
            "the attachment has another digest",
            "hashes/0/content".to_owned(),
        )
        .expected(stated.unwrap_or("a digest"))
        .found(sha256);
        return Err(refusal.into());
    }
    let properties = component.get("properties").map_or(&[][..], Node::items);
    let size = properties
        .iter()
        .enumerate()
        .find(|(_, property)| property.text_of("name") == Some("plimsoll:size"));
    let size_text = size.and_then(|(_, property)| property.text_of("value"));
    if size_text != Some(bytes.len().to_string().as_str()) {
        let member = size.map_or("properties".to_owned(), |(k, _)| {
            format!("properties/{k}/value")
        });
        let refusal = refuse("the attachment has another size", member)
            .expected(size_text.unwrap_or("a size"))
            .found(bytes.len());
        return Err(refusal.into());
    }
    Ok(Attached {
        component: i,
        sha256,
        length: bytes.len() as u64,
    })
}

/// What is attached to a BOM that is held as a tree.
pub(super) struct InTree<'c> {
    pub(super) root: &'c Node<'c>,
    pub(super) attachments: &'c Attachments,
}

impl Store for InTree<'_> {
    fn read(&self, line: &LineRef) -> io::Result<Cow<'_, [u8]>> {
        let attached = self.attachments.of_line(line.number).ok();
        attached
            .and_then(|attached| decoded(self.root, &attached))
            .map(Cow::Owned)
            .ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Evidence for InTree<'_> {
    fn of_line(&self, line: u64) -> Result<(Digest, u64), BomError> {
        let attached = self.attachments.of_line(line)?;
        Ok((attached.sha256, attached.length))
    }

    fn pointer_of(&self, role: &str) -> Option<String> {
        let attached = self.attachments.found.get(&format!("statement:{role}"))?;
        Some(attached.pointer())
    }

    fn statement(&self, role: &str) -> Result<Vec<u8>, BomError> {
        let reference = format!("statement:{role}");
        let attached = self.attachments.found.get(&reference);
        match attached.and_then(|attached| decoded(self.root, attached)) {
            Some(bytes) => Ok(bytes),
            None => Err(missing(reference).into()),
        }
    }
}
