//! Wrong documents: nothing is signed again.

use serde_json::Value;
use sha2::Digest as _;

use super::{Mutation, Original, forge};
use crate::folder::Folder;

macro_rules! mutations {
    ($($name:literal $code:literal $make:expr, $sentence:literal;)+) => {
        &[$(Mutation { name: $name, sentence: $sentence, code: $code, known_key: false, make: $make }),+]
    };
}

/// The mutations of documents and files.
pub const ALL: &[Mutation] = mutations![
    "attached-line-byte" "attachment_hash" |o| attachment(o, "content"),
        "One character of the line attached in the BOM is another.";
    "attached-line-hash" "attachment_hash" |o| attachment(o, "hash"),
        "The digest beside the attached line is another.";
    "serial-number" "bom_serial" |o| bom(o, false, |b| set(b, "/serialNumber", "urn:uuid:00000000-0000-5000-8000-000000000000")),
        "The BOM has another serial number.";
    "tier-in-bom" "bom_serial" |o| bom(o, false, stronger),
        "The BOM claims the tier vm.";
    "tier-in-bom-and-serial" "bom_mismatch" |o| bom(o, true, stronger),
        "The BOM claims the tier vm, and its serial number was made again.";
    "bom-reindented" "bom_not_canonical" |o| with_bom(o, |b| serde_json::to_vec(&serde_json::from_slice::<Value>(b).ok()?).ok()),
        "The BOM is written without white space.";
    "bom-line-ends" "bom_not_canonical" |o| with_bom(o, |b| Some(String::from_utf8(b.to_vec()).ok()?.replace('\n', "\r\n").into_bytes())),
        "The BOM has other line ends.";
    "bom-unknown-member" "bom_schema" |o| bom(o, false, |b| { b.as_object_mut()?.insert("x".to_owned(), "y".into()); Some(()) }),
        "The BOM has a member that CycloneDX does not know.";
    "bom-profile" "bom_profile" |o| bom(o, false, |b| set(b, "/properties/0/value", "2")),
        "The BOM follows rules of another version.";
    "checkpoint-signature" "signature" |o| with_bundle(o, |text| Some(text.replace(&last_signature(text)?, &other(&last_signature(text)?)))),
        "One character of the checkpoint's signature is another.";
    "checkpoint-removed" "incomplete" |o| with_bundle(o, |text| Some(format!("{}\n", text.lines().next()?))),
        "The bundle ends before its checkpoint.";
    "line-of-another-receipt" "signature" |o| {
        let other = forge::again(o, |_| Some(()))?;
        let line = String::from_utf8(other.bundle).ok()?.lines().next()?.to_owned();
        with_bundle(o, |text| Some(format!("{line}\n{}\n", text.lines().nth(1)?)))
    },
        "The call's line is one that another key signed.";
    "test-result-exchanged" "attachment_evidence_mismatch" |o| {
        let other = forge::again(o, |_| Some(()))?;
        Some(Folder { test_result: other.test_result, ..o.folder.clone() })
    },
        "The test result's file holds another envelope than the BOM.";
    "receipt-exchanged" "attachment_evidence_mismatch" |o| {
        let other = forge::again(o, |_| Some(()))?;
        Some(Folder { receipt: other.receipt, ..o.folder.clone() })
    },
        "The receipt's file holds another envelope than the BOM.";
    "key-exchanged" "key_mismatch" |o| Some(Folder { public_key: o.key.public().to_pem().into_bytes(), ..o.folder.clone() }),
        "The public key is another.";
    "key-with-more" "key_mismatch" |o| Some(Folder {
        public_key: [b"# trusted\n", o.folder.public_key.as_slice()].concat(),
        ..o.folder.clone()
    }),
        "The public key's file holds more than the key.";
];

fn with_bom(original: &Original, change: impl FnOnce(&[u8]) -> Option<Vec<u8>>) -> Option<Folder> {
    Some(Folder {
        bom: change(&original.folder.bom)?,
        ..original.folder.clone()
    })
}

fn with_bundle(original: &Original, change: impl FnOnce(&str) -> Option<String>) -> Option<Folder> {
    let text = std::str::from_utf8(&original.folder.bundle).ok()?;
    Some(Folder {
        bundle: change(text)?.into_bytes(),
        ..original.folder.clone()
    })
}

/// Changes a BOM's value; with `serial` its serial number is made again.
fn bom(
    original: &Original,
    serial: bool,
    change: impl FnOnce(&mut Value) -> Option<()>,
) -> Option<Folder> {
    with_bom(original, |bytes| {
        let mut value: Value = serde_json::from_slice(bytes).ok()?;
        change(&mut value)?;
        if serial {
            value.as_object_mut()?.remove("serialNumber");
            let number = serial_number(&serde_json::to_vec(&value).ok()?)?;
            value
                .as_object_mut()?
                .insert("serialNumber".to_owned(), number.into());
        }
        let mut bytes = serde_json::to_vec_pretty(&value).ok()?;
        bytes.push(b'\n');
        Some(bytes)
    })
}

/// The serial number of a BOM without one, in its compact form: a version 5
/// UUID (RFC 9562) of its digest.
fn serial_number(compact: &[u8]) -> Option<String> {
    const NAMESPACE: [u8; 16] = 0x3b15ce66_6b73_5f69_8526_bef3b6aa1293_u128.to_be_bytes();
    let mut hasher = sha1_checked::Sha1::new();
    hasher.update(NAMESPACE);
    hasher.update(plimsoll_record::Digest::of(compact).to_hex());
    let hash = hasher.try_finalize().hash().to_vec();
    let mut uuid = <[u8; 16]>::try_from(hash.get(..16)?).ok()?;
    uuid[6] = uuid[6] & 0x0f | 0x50;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    let hex = hex::encode(uuid);
    let (a, rest) = hex.split_at_checked(8)?;
    let (b, rest) = rest.split_at_checked(4)?;
    let (c, rest) = rest.split_at_checked(4)?;
    let (d, e) = rest.split_at_checked(4)?;
    Some(format!("urn:uuid:{a}-{b}-{c}-{d}-{e}"))
}

fn set(value: &mut Value, pointer: &str, text: &str) -> Option<()> {
    *value.pointer_mut(pointer)? = text.into();
    Some(())
}

fn stronger(value: &mut Value) -> Option<()> {
    let claims = value.pointer_mut("/declarations/claims")?.as_array_mut()?;
    let claim = claims.iter_mut().find(|claim| {
        claim
            .get("predicate")
            .and_then(Value::as_str)
            .is_some_and(|p| p.starts_with("isolation-tier="))
    })?;
    let other = match claim.get("predicate").and_then(Value::as_str) {
        Some("isolation-tier=vm") => "isolation-tier=kernel",
        _ => "isolation-tier=vm",
    };
    claim
        .as_object_mut()?
        .insert("predicate".to_owned(), other.into());
    Some(())
}

/// The attached line's content or digest, one character changed.
fn attachment(original: &Original, what: &str) -> Option<Folder> {
    bom(original, false, |value| {
        let components = value.get_mut("components")?.as_array_mut()?;
        let line = components
            .iter_mut()
            .find(|c| c.get("bom-ref").and_then(Value::as_str) == Some("line:1"))?;
        let pointer = match what {
            "hash" => "/hashes/0/content",
            _ => "/data/0/contents/attachment/content",
        };
        let text = line.pointer(pointer)?.as_str()?;
        let changed = match what {
            "hash" => other(text),
            // Inside the text, so that its end stays canonical.
            _ => {
                let (head, tail) = text.split_at_checked(text.len() / 2)?;
                format!("{}{tail}", other(head))
            }
        };
        set(line, pointer, &changed)
    })
}

/// A text with another last character of hex digits and base64.
fn other(text: &str) -> String {
    let mut chars: Vec<char> = text.chars().collect();
    if let Some(last) = chars.last_mut() {
        *last = if *last == 'a' { 'b' } else { 'a' };
    }
    chars.into_iter().collect()
}

/// The first part of the last signature in a bundle's text.
fn last_signature(text: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once("\"sig\":\"")?;
    rest.get(..20).map(str::to_owned)
}
