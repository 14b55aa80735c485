//! Step 1: the key, the BOM, and the files beside it.

use plimsoll_attestation::PublicKey;

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
        Some(Ok(format!("key {}", key.id()).into()))
    }
}
