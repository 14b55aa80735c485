//! The check of a BOM, with its own lines as the evidence. Whatever passes is
//! the file form of what the signed lines give, so it holds a signature of the
//! examples' key.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plimsoll_attestation::PublicKey;

static KEY: LazyLock<PublicKey> = LazyLock::new(|| {
    PublicKey::from_pem(include_bytes!("../../testdata/sbom/example.pub")).unwrap()
});

fuzz_target!(|data: &[u8]| {
    if let Ok(checked) = plimsoll_bom::check_attached(data, &KEY) {
        assert!(std::str::from_utf8(data).unwrap().contains(KEY.id()));
        assert_eq!(checked.lines.len() - usize::from(checked.kind == plimsoll_bom::Kind::Session), checked.records.len());
    }
});
