//! Request IDs, session fingerprints and owner digests.

use hmac::{Hmac, Mac};
use sha2::{Digest, Sha256};

/// Whether a `Plimsoll-Request-Id` is well formed: 32 lowercase hex digits.
#[must_use]
pub fn is_request_id(value: &[u8]) -> bool {
    value.len() == 32 && value.iter().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// Whether text is a hex digest: 64 characters of `0-9a-f`.
#[must_use]
pub fn is_hex_digest(value: &str) -> bool {
    value.len() == 64
        && value
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'))
}

/// The fingerprint of a session: SHA-256 of its ID's characters (not of the
/// bytes they spell). The ID itself is a capability and is never shown.
#[must_use]
pub fn session_fingerprint(session_id: &str) -> String {
    hex::encode(Sha256::digest(session_id.as_bytes()))
}

/// What a client sends as a session's owner instead of the user's name.
/// `token` is the caller's bearer token, empty when there is none.
#[must_use]
pub fn owner_digest(token: &str, owner: &str) -> String {
    let mut key = Sha256::new();
    key.update(b"plimsoll session owner key v2\n");
    key.update(token.as_bytes());
    let key = key.finalize();
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(&key) else {
        unreachable!("HMAC takes a key of any length")
    };
    mac.update(b"plimsoll session owner v2\n");
    mac.update(owner.as_bytes());
    hex::encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners() {
        let token = "example-token-0123456789abcdef0123456789";
        for (token, owner, digest) in [
            (
                "",
                "user-42",
                "ed36b44b1e7691188662a96defd444f73fa31d203707bb387599f332db08c2df",
            ),
            (
                token,
                "user-42",
                "560dfed78abe75420c99ee67a34ac1a7fa5710f702b93f8ad69242d249a8cadb",
            ),
            (
                &"x".repeat(80),
                "user-42",
                "1260809f7fb8dc7178b0f297a7d3f9376d71097d98089e2bc13faf9739ee61ce",
            ),
            (
                token,
                "é",
                "9fde71e47b849b7a5066027a2822b299777cea8dfb6e1a01fa65087ba2fb2177",
            ),
        ] {
            assert_eq!(owner_digest(token, owner), digest);
        }
    }

    #[test]
    fn fingerprint_hashes_the_characters() {
        assert_eq!(
            session_fingerprint("00112233445566778899aabbccddeeff"),
            "5947d7c33d783f94b3b4c1a96ebc8991ed28f1b069b71e03376cba8caa98a720"
        );
    }

    #[test]
    fn request_ids() {
        assert!(is_request_id(b"00112233445566778899aabbccddeeff"));
        for bad in [
            "",
            "0011",
            "00112233445566778899AABBCCDDEEFF",
            "00112233445566778899aabbccddeefg",
            "00112233445566778899aabbccddeeff0",
        ] {
            assert!(!is_request_id(bad.as_bytes()), "{bad}");
        }
    }
}
