//! Key files: a key or a typed refusal; a loaded key writes what loads again.
#![no_main]
use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::{PublicKey, SigningKey};

fuzz_target!(|data: &[u8]| {
    if let Ok(key) = PublicKey::from_pem(data) {
        let again = PublicKey::from_pem(key.to_pem().as_bytes()).expect("own PEM loads");
        assert_eq!(again.id(), key.id());
    }
    if let Ok(key) = SigningKey::from_pem(data) {
        let again = SigningKey::from_pem(key.to_pem().as_bytes()).expect("own PEM loads");
        assert_eq!(again.public().id(), key.public().id());
    }
});
