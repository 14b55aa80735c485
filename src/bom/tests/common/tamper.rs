//! Changing BOMs the way an attacker could: values, then what is derived of them.
#![allow(dead_code, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

use plimsoll_attestation::{PublicKey, base64};
use plimsoll_bom::{BomError, Bundle, Memory};
use plimsoll_record::Digest;
use serde_json::{Value, json};

use super::{
    both::{check, check_attached},
    example, key,
};

/// A BOM as values that can be changed.
pub fn parsed(bom: &[u8]) -> Value {
    serde_json::from_slice(bom).unwrap()
}

/// The file form, as the sorted JSON writer gives it.
pub fn file_form(bom: &Value) -> Vec<u8> {
    let mut text = serde_json::to_string_pretty(bom).unwrap();
    text.push('\n');
    text.into_bytes()
}

/// Gives a BOM the serial number of its content, computed without this crate.
pub fn resealed(mut bom: Value) -> Value {
    bom.as_object_mut().unwrap().remove("serialNumber");
    let digest = Digest::of(bom.to_string().as_bytes()).to_hex();
    let namespace = uuid::uuid!("3b15ce66-6b73-5f69-8526-bef3b6aa1293");
    let serial = format!(
        "urn:uuid:{}",
        uuid::Uuid::new_v5(&namespace, digest.as_bytes())
    );
    bom["serialNumber"] = json!(serial);
    bom
}

/// The component of this reference.
pub fn component<'b>(bom: &'b mut Value, reference: &str) -> &'b mut Value {
    bom["components"]
        .as_array_mut()
        .unwrap()
        .iter_mut()
        .find(|c| c["bom-ref"] == reference)
        .unwrap()
}

/// The attached bytes of a component.
pub fn attached(bom: &mut Value, reference: &str) -> Vec<u8> {
    let content = &component(bom, reference)["data"][0]["contents"]["attachment"]["content"];
    base64::decode(content.as_str().unwrap()).unwrap()
}

/// Attaches other bytes, with the digest and size they have.
pub fn attach(bom: &mut Value, reference: &str, bytes: &[u8]) {
    let component = component(bom, reference);
    component["data"][0]["contents"]["attachment"]["content"] = json!(base64::encode(bytes));
    component["hashes"][0]["content"] = json!(Digest::of(bytes).to_hex());
    for property in component["properties"].as_array_mut().unwrap() {
        if property["name"] == "plimsoll:size" {
            property["value"] = json!(bytes.len().to_string());
        }
    }
}

/// Sets a top-level property.
pub fn set(bom: &mut Value, name: &str, value: &str) {
    for property in bom["properties"].as_array_mut().unwrap() {
        if property["name"] == format!("plimsoll:{name}") {
            property["value"] = json!(value);
        }
    }
}

pub const SINGLE: &str = "1-single-run";
pub const SESSION: &str = "2-session";
pub const RECEIPT: &str = "3-pr-receipt";

pub fn bom(name: &str) -> Value {
    parsed(&example(&format!("{name}.cdx.json")))
}

/// What a check against the bundle says.
pub fn with_bundle(name: &str, text: &[u8], under: &PublicKey) -> Result<(), BomError> {
    let bundle = example(&format!("{name}.bundle.jsonl"));
    let store = Memory(&bundle);
    let verified = Bundle::verify(&store, bundle.as_slice(), &key(), &mut |_| {}).unwrap();
    check(text, under, &verified).map(drop)
}

pub fn code(result: Result<(), BomError>) -> &'static str {
    result.map_or_else(|error| error.code(), |()| "accepted")
}

/// Code with the bundle and code with the attached lines.
pub fn codes(name: &str, text: &[u8]) -> (&'static str, &'static str) {
    (
        code(with_bundle(name, text, &key())),
        code(check_attached(text, &key()).map(drop)),
    )
}

pub fn pointer(name: &str, text: &[u8]) -> String {
    match with_bundle(name, text, &key()) {
        Err(BomError::Refused(refusal)) => refusal.pointer.unwrap_or_default(),
        other => panic!("{other:?}"),
    }
}

/// Changes a value and checks it as it is, and with a serial number that fits.
pub fn both_ways(name: &str, what: &str, change: impl Fn(&mut Value), plain: &str, sealed: &str) {
    let mut changed = bom(name);
    change(&mut changed);
    assert_ne!(changed, bom(name), "{name}: {what} changes nothing");
    let (with_bundle, alone) = codes(name, &file_form(&changed));
    assert_eq!((with_bundle, alone), (plain, plain), "{name}: {what}");
    let (with_bundle, alone) = codes(name, &file_form(&resealed(changed)));
    assert_eq!(
        (with_bundle, alone),
        (sealed, sealed),
        "{name}: {what}, resealed"
    );
}
