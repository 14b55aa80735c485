//! An anchor note: taken only when the key signed it, and then it is what it says
//! and signs again to the same text.
#![no_main]
use std::sync::OnceLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::{
    PublicKey, SigningKey,
    anchor::{Anchor, MAX_ANCHOR_BYTES},
};

const KEY: &[u8] = include_bytes!("../../testdata/vectors/own-mixed.key");

fuzz_target!(|data: &[u8]| {
    static KEYS: OnceLock<(SigningKey, [PublicKey; 1])> = OnceLock::new();
    let (key, accepted) = KEYS.get_or_init(|| {
        let key = SigningKey::from_pem(KEY).expect("the published key loads");
        let accepted = [key.public().clone()];
        (key, accepted)
    });
    assert!(Anchor::open(data, &[]).is_err(), "no key, no anchor");
    if let Ok(anchor) = Anchor::open(data, accepted) {
        assert!(data.len() <= MAX_ANCHOR_BYTES && anchor.reach().lines() > 0);
        let again = Anchor::sign(anchor.reach(), key);
        let text = |bytes: &[u8]| {
            bytes
                .split(|byte| *byte == b'\n')
                .take(3)
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        };
        assert_eq!(text(again.as_bytes()), text(data));
        assert!(Anchor::open(again.as_bytes(), accepted).is_ok());
    }
});
