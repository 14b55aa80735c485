//! The digest that names the files a receipt's run was sent from a commit.

use plimsoll_record::{Digest, encoding::Sink};
use sha2::{Digest as _, Sha256};

/// The digest over files: path, blob and SHA-256 of each, in path order.
pub fn manifest<'f>(files: impl ExactSizeIterator<Item = (&'f str, &'f str, Digest)>) -> Digest {
    let mut encoding = Hashed(Sha256::new());
    encoding.domain("plimsoll-attest.tree-manifest.v1");
    encoding.count("files", files.len());
    for (path, blob, sha256) in files {
        encoding.text("path", path);
        encoding.text("git_blob", blob);
        encoding.text("sha256", &sha256.to_hex());
    }
    Digest::from(<[u8; 32]>::from(encoding.0.finalize()))
}

/// The record encoding, hashed as it is written.
struct Hashed(Sha256);

impl Hashed {
    fn value(&mut self, bytes: &[u8]) {
        self.0.update((bytes.len() as u64).to_be_bytes());
        self.0.update(bytes);
    }
}

impl Sink for Hashed {
    fn domain(&mut self, domain: &str) {
        self.value(domain.as_bytes());
    }

    fn bytes(&mut self, name: &'static str, content: &[u8]) {
        self.value(name.as_bytes());
        self.value(content);
    }
}
