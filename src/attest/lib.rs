//! Keys, DSSE envelopes, statements, bundles and their verification.
//!
//! A bundle is a JSON Lines file of signed run records, session closes, links
//! and checkpoints. Everything read here was written by someone else: each
//! byte is either covered by a check or refused, and no check depends on the
//! clock, the locale or the machine. Signing is only possible through types
//! that the checks build, so a generic signature cannot pass for a checked run.
//!
//! The only I/O is reading a bundle from a `BufRead`, appending to a bundle
//! file ([`bundle::append()`]), following one that grows
//! ([`bundle::Follower`]), and the small files beside one: anchors
//! ([`anchor`]) and states of earlier verifications ([`bundle::state`]). A
//! verification uses all cores ([`bundle::VerifyOptions`]).
//!
//! ```
//! use plimsoll_attestation::{
//!     PublicKey, SigningKey,
//!     bundle::{Call, Entry, Options, Visitor, append, disk::OsDisk, verify, verify_entry},
//! };
//! use plimsoll_wire::proto::{RunRequest, RunResponse};
//!
//! /// Counts calls below a tier, in the pass that verifies.
//! struct Below(&'static str, u64);
//!
//! impl Visitor for Below {
//!     fn call(&mut self, call: &Call<'_>) {
//!         let met = plimsoll_wire::tier::meets(&call.record.isolation, self.0);
//!         self.1 += u64::from(!met);
//!     }
//! }
//!
//! fn check(public_pem: &[u8], bundle: &[u8]) -> Result<u64, Box<dyn std::error::Error>> {
//!     let keys = [PublicKey::from_pem(public_pem)?];
//!     let mut below = Below("kernel", 0);
//!     let report = verify(bundle, &keys, &mut below)?;
//!     let first = verify_entry(bundle, &keys, 1)?;
//!     assert_eq!(first.key_id, report.key_id);
//!     Ok(below.1)
//! }
//!
//! fn keep(
//!     private_pem: &[u8],
//!     path: &std::path::Path,
//!     request: &RunRequest,
//!     response: &RunResponse,
//! ) -> Result<u64, Box<dyn std::error::Error>> {
//!     let key = SigningKey::from_pem(private_pem)?;
//!     let entry = Entry::answered(request, response)?.sign(&key);
//!     let done = append(&OsDisk, path, &key, &[entry], Options::default(), &mut ())?;
//!     Ok(done.checkpoint)
//! }
//!
//! # let vectors = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/vectors");
//! # let bundle = std::fs::read(vectors.join("own-mixed.jsonl")).unwrap();
//! # let pem = std::fs::read(vectors.join("own-mixed.pub")).unwrap();
//! # assert_eq!(check(&pem, &bundle).unwrap(), 1);
//! # let pem = std::fs::read(vectors.join("own-mixed.key")).unwrap();
//! # assert!(keep(&pem, "x".as_ref(), &RunRequest::default(), &RunResponse::default()).is_err());
//! ```
#![forbid(unsafe_code)]

pub mod anchor;
pub mod base64;
pub mod bundle;
pub mod dsse;
pub mod fault;
pub mod json;
pub mod key;
pub mod line;
pub mod own;
pub mod statement;

mod escape;
mod replace;
mod scan;

pub use dsse::Envelope;
pub use fault::{Class, Fault, Reason};
pub use key::{KeyFault, PublicKey, SigningKey};
pub use line::Line;
