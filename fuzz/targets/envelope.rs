//! A foreign envelope: opened only when its one signature is the key's.
#![no_main]
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::{
    PublicKey,
    own::{self, Wanted},
};

const KEY: &[u8] = include_bytes!("../../testdata/vectors/own-mixed.pub");

fuzz_target!(|data: &[u8]| {
    static KEYS: OnceLock<PublicKey> = OnceLock::new();
    let key = KEYS.get_or_init(|| PublicKey::from_pem(KEY).expect("the published key loads"));
    if let Ok(opened) = own::open(data, key, Wanted::Any) {
        assert!(!own::reserved::is_reserved(&opened.predicate_type));
    }
});
