//! The worked examples and how they are built.
#![allow(dead_code, clippy::expect_used, clippy::panic, clippy::unwrap_used)]

pub mod both;
pub mod make;
pub mod tamper;

use std::{fs, path::PathBuf};

use plimsoll_attestation::PublicKey;
use plimsoll_bom::{Bom, BomError, Bundle, Memory, Options, Selection};

/// A file of the worked examples.
pub fn example(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sbom");
    fs::read(folder.join(name)).unwrap()
}

pub fn key() -> PublicKey {
    PublicKey::from_pem(&example("example.pub")).unwrap()
}

/// The key the examples are signed with; its seed is published.
pub fn signing() -> plimsoll_attestation::SigningKey {
    let expected: serde_json::Value = serde_json::from_slice(&example("expected.json")).unwrap();
    let seed = hex::decode(expected["example.pub"]["seed_hex"].as_str().unwrap()).unwrap();
    let der = [
        b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(),
        &seed,
    ]
    .concat();
    let text = plimsoll_attestation::base64::encode(&der);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    plimsoll_attestation::SigningKey::from_pem(pem.as_bytes()).unwrap()
}

/// Builds what a selection gives under a key.
pub fn build(
    bundle: &[u8],
    key: &PublicKey,
    selection: &Selection,
    options: &Options,
) -> Result<Vec<u8>, BomError> {
    let store = Memory(bundle);
    let verified = Bundle::verify(&store, bundle, key, &mut |_| {})?;
    let subject = verified.select(selection)?;
    Bom::new(&verified, &subject, key, options)?.to_vec()
}

pub fn build_receipt(options: &Options) -> Result<Vec<u8>, BomError> {
    let bundle = example("3-pr-receipt.bundle.jsonl");
    let store = Memory(&bundle);
    let key = key();
    let verified = Bundle::verify(&store, bundle.as_slice(), &key, &mut |_| {})?;
    let subject = verified.receipt(
        &key,
        &example("3-pr-receipt.test-result.dsse.json"),
        &example("3-pr-receipt.receipt.dsse.json"),
    )?;
    Bom::new(&verified, &subject, &key, options)?.to_vec()
}

pub const SESSION: &str = "5947d7c33d783f94b3b4c1a96ebc8991ed28f1b069b71e03376cba8caa98a720";

/// What the three examples are built from, by name.
pub fn examples() -> [(&'static str, Vec<u8>); 3] {
    let options = Options::default();
    let session = Selection::Session(SESSION.to_owned());
    [
        (
            "1-single-run",
            build(
                &example("1-single-run.bundle.jsonl"),
                &key(),
                &Selection::Only,
                &options,
            )
            .unwrap(),
        ),
        (
            "2-session",
            build(
                &example("2-session.bundle.jsonl"),
                &key(),
                &session,
                &options,
            )
            .unwrap(),
        ),
        ("3-pr-receipt", build_receipt(&options).unwrap()),
    ]
}

/// A public key that signed nothing here.
pub fn stranger_pem() -> Vec<u8> {
    stranger().public().to_pem().into_bytes()
}

/// A key that signed nothing in the examples.
pub fn stranger() -> plimsoll_attestation::SigningKey {
    let der = [
        b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20".as_slice(),
        &[7; 32],
    ]
    .concat();
    let text = plimsoll_attestation::base64::encode(&der);
    let pem = format!("-----BEGIN PRIVATE KEY-----\n{text}\n-----END PRIVATE KEY-----\n");
    plimsoll_attestation::SigningKey::from_pem(pem.as_bytes()).unwrap()
}
