//! Step 1: the key, the BOM, and the files beside it.

use plimsoll_attestation::PublicKey;
use plimsoll_bom::{BomError, Bundle, Claimed, Kind, Memory, Scope};
use serde_json::Value;

use super::{Check, Outcomes, Refused};

impl Check<'_> {
    /// Step 1. The key that counts is the reviewer's, where there is one.
    pub(super) fn document(&mut self) -> Outcomes {
        let mismatch = |why: String| Some(Err(Refused::new("key_mismatch", why)));
        let own = match PublicKey::from_pem(&self.folder.public_key) {
            Ok(key) => key,
            Err(fault) => return mismatch(format!("receipt.pub: {fault}")),
        };
        let (key, source) = match (&self.options.public_key, &self.options.key_id) {
            (Some(key), _) => (key.clone(), "given with --pub"),
            (None, Some(id)) if *id != own.id() => {
                return mismatch(format!(
                    "receipt.pub is key {}; asked for was {id}",
                    own.id()
                ));
            }
            (None, Some(_)) => (own.clone(), "the receipt's, its ID given with --keyid"),
            (None, None) => (own.clone(), "from the receipt itself"),
        };
        self.report.sources.push(format!("key: {source}"));
        self.key = Some(key.clone());
        if key.id() != own.id() {
            return mismatch(format!(
                "receipt.pub is key {}; given was {}",
                own.id(),
                key.id()
            ));
        }
        if self.folder.public_key != own.to_pem().as_bytes() {
            return mismatch("receipt.pub holds more than its key".to_owned());
        }
        Some(
            self.bom(&key)
                .map(|serial| format!("{serial}, key {}", key.id()).into()),
        )
    }

    /// The BOM against the bundle, and its attachments against the files.
    fn bom(&mut self, key: &PublicKey) -> Result<String, Refused> {
        let refused = |error: BomError| {
            let place = match &error {
                BomError::Refused(refusal) => {
                    let pointer = refusal
                        .pointer
                        .as_ref()
                        .map(|pointer| format!(" at {pointer}"));
                    pointer.unwrap_or_default()
                }
                _ => String::new(),
            };
            Refused::new(error.code(), format!("receipt.cdx.json: {error}{place}"))
        };
        let claimed = Claimed::read(&self.folder.bom, key).map_err(refused)?;
        let bundle = self.folder.bundle.as_slice();
        let store = Memory(bundle);
        let verified = Bundle::verify(&store, bundle, key, &mut |_| {})
            .map_err(|error| Refused::new(error.code(), format!("bundle.jsonl: {error}")))?;
        let checked = claimed.rebuilt_from(&verified).map_err(refused)?;
        if checked.kind != Kind::Receipt || checked.scope != Scope::Bundle {
            return Err(Refused::new(
                "bom_profile",
                "receipt.cdx.json is not the BOM of a receipt",
            ));
        }
        if let Some(name) = &checked.image_name {
            self.report.warnings.push(format!(
                "the image's name {name} is the word of the BOM's author"
            ));
        }
        let value: Value = serde_json::from_slice(&self.folder.bom).unwrap_or_default();
        for (reference, file, bytes) in [
            (
                "statement:test-result",
                "test-result.dsse.json",
                &self.folder.test_result,
            ),
            (
                "statement:pr-receipt",
                "receipt.dsse.json",
                &self.folder.receipt,
            ),
        ] {
            let line = bytes.strip_suffix(b"\n");
            if line.is_none() || attachment(&value, reference).as_deref() != line {
                return Err(Refused::new(
                    "attachment_evidence_mismatch",
                    format!("{file} is not the statement attached to the BOM"),
                ));
            }
        }
        Ok(checked.serial_number)
    }
}

/// The bytes attached to a component of a checked BOM.
fn attachment(bom: &Value, reference: &str) -> Option<Vec<u8>> {
    let components = bom.get("components")?.as_array()?;
    let component = components
        .iter()
        .find(|component| component.get("bom-ref").and_then(Value::as_str) == Some(reference))?;
    let content = component.pointer("/data/0/contents/attachment/content")?;
    plimsoll_attestation::base64::decode(content.as_str()?).ok()
}
