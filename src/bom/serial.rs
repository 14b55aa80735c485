//! The serial number: a UUID of the BOM's own content.

use plimsoll_record::Digest;
use uuid::Uuid;

/// The version 5 UUID of `urn:plimsoll-attest:bom:1` in RFC 9562's URL
/// namespace.
const NAMESPACE: Uuid = Uuid::from_u128(0x3b15ce66_6b73_5f69_8526_bef3b6aa1293);

/// The serial number for the digest of a BOM's compact form without one.
pub(crate) fn of(digest: &Digest) -> String {
    let uuid = Uuid::new_v5(&NAMESPACE, digest.to_hex().as_bytes());
    format!("urn:uuid:{}", uuid.hyphenated())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_namespace_is_derived_as_documented() {
        let derived = Uuid::new_v5(&Uuid::NAMESPACE_URL, b"urn:plimsoll-attest:bom:1");
        assert_eq!(NAMESPACE, derived);
    }
}
