//! The files of a receipt.

/// The BOM, everything below inside it.
pub const BOM: &str = "receipt.cdx.json";
/// The signed record file: the call and a checkpoint.
pub const BUNDLE: &str = "bundle.jsonl";
/// The test-result statement's envelope.
pub const TEST_RESULT: &str = "test-result.dsse.json";
/// The receipt statement's envelope.
pub const RECEIPT: &str = "receipt.dsse.json";
/// The public key.
pub const PUBLIC_KEY: &str = "receipt.pub";
/// The summary, rendered; not evidence.
pub const SUMMARY: &str = "summary.md";
/// The page, rendered; not evidence.
pub const PAGE: &str = "report.html";

/// Largest BOM that is read.
pub const MAX_BOM_BYTES: u64 = 256 << 20;
/// Largest bundle: one call's line, and a checkpoint's.
pub const MAX_BUNDLE_BYTES: u64 = (64 << 20) + (1 << 20);
/// Largest envelope.
pub const MAX_ENVELOPE_BYTES: u64 = plimsoll_attestation::own::MAX_ENVELOPE_BYTES as u64 + 1;
/// Largest key file.
pub const MAX_KEY_BYTES: u64 = plimsoll_attestation::key::MAX_KEY_BYTES as u64 + 1;

/// The evidence of a receipt, each part as its file holds it. Read once, so
/// that nothing can be exchanged between two checks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Folder {
    /// [`BOM`].
    pub bom: Vec<u8>,
    /// [`BUNDLE`].
    pub bundle: Vec<u8>,
    /// [`TEST_RESULT`].
    pub test_result: Vec<u8>,
    /// [`RECEIPT`].
    pub receipt: Vec<u8>,
    /// [`PUBLIC_KEY`].
    pub public_key: Vec<u8>,
}

impl Folder {
    /// The parts with their names and size limits, in the order they are read.
    pub fn parts(&mut self) -> [(&'static str, u64, &mut Vec<u8>); 5] {
        [
            (BOM, MAX_BOM_BYTES, &mut self.bom),
            (BUNDLE, MAX_BUNDLE_BYTES, &mut self.bundle),
            (TEST_RESULT, MAX_ENVELOPE_BYTES, &mut self.test_result),
            (RECEIPT, MAX_ENVELOPE_BYTES, &mut self.receipt),
            (PUBLIC_KEY, MAX_KEY_BYTES, &mut self.public_key),
        ]
    }
}
