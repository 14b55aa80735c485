//! CycloneDX bills of materials of signed runs, and their check.
//!
//! A BOM is a second reading of signed evidence: anyone with the bundle and the
//! public key rebuilds it byte for byte. So no clock, no locale, no map order
//! and no version of this program is in it. It states what the records state,
//! and qualifies what they cannot show.
//!
//! Building goes in three steps, each of which only takes what the one before
//! has checked: [`Bundle::verify`] verifies the evidence, [`Bundle::select`] (or
//! [`Bundle::receipt`], for a pull request's two statements) takes what one BOM
//! describes, [`Bom::new`] builds it and validates it against the official
//! schema. Only then can it be written.
//!
//! ```
//! use plimsoll_attestation::PublicKey;
//! use plimsoll_bom::{Bom, BomError, Bundle, Memory, Options, Selection};
//!
//! /// The BOM of a bundle's only call.
//! fn of_run(bundle: &[u8], key: &PublicKey) -> Result<Vec<u8>, BomError> {
//!     let store = Memory(bundle);
//!     let verified = Bundle::verify(&store, bundle, key, &mut |_| {})?;
//!     let subject = verified.select(&Selection::Only)?;
//!     let options = Options::default();
//!     Bom::new(&verified, &subject, key, &options)?.to_vec()
//! }
//!
//! /// The BOM of a pull request's receipt: its bundle and two envelopes.
//! fn of_receipt(
//!     bundle: &[u8],
//!     key: &PublicKey,
//!     test_result: &[u8],
//!     receipt: &[u8],
//! ) -> Result<Vec<u8>, BomError> {
//!     let store = Memory(bundle);
//!     let verified = Bundle::verify(&store, bundle, key, &mut |_| {})?;
//!     let subject = verified.receipt(key, test_result, receipt)?;
//!     let options = Options::default();
//!     Bom::new(&verified, &subject, key, &options)?.to_vec()
//! }
//!
//! # let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/sbom");
//! # let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
//! # let key = PublicKey::from_pem(&read("example.pub")).unwrap();
//! # assert_eq!(of_run(&read("1-single-run.bundle.jsonl"), &key).unwrap(), read("1-single-run.cdx.json"));
//! # let made = of_receipt(
//! #     &read("3-pr-receipt.bundle.jsonl"),
//! #     &key,
//! #     &read("3-pr-receipt.test-result.dsse.json"),
//! #     &read("3-pr-receipt.receipt.dsse.json"),
//! # );
//! # assert_eq!(made.unwrap(), read("3-pr-receipt.cdx.json"));
//! ```
//!
//! [`check()`] does the reverse: it reads a BOM, says early what is wrong with it,
//! rebuilds it from the evidence and compares the bytes. A BOM in a file is first
//! read as an [`Outline`], which compares it chunk by chunk; only one that
//! differs is held in memory, to say where.
//!
//! Everything in a BOM that comes from a request or an answer is a stranger's
//! text. It is escaped as JSON here; whoever shows it escapes it again.
#![forbid(unsafe_code)]

mod bom;
mod bundle;
mod check;
mod chunks;
mod components;
mod described;
mod document;
mod facts;
mod fault;
mod formulation;
mod identity;
mod lines;
mod manifest;
mod print;
mod profile;
pub mod receipt;
mod schema;
mod serial;
mod subject;
mod tree;
mod value;

pub use bom::{Bom, Written};
pub use bundle::{Bundle, Selection};
pub use check::{Checked, Claimed, Outline, check, check_attached};
pub use facts::{CallFacts, Content, Input, Step, Stream, git_blob};
pub use fault::{BomError, Code, Refusal};
pub use lines::{LineRef, Memory, Seekable, Store};
pub use manifest::manifest;
pub use profile::{
    Attach, DEFAULT_MAX_ATTACH, ImageName, Kind, MAX_BOM_BYTES, Options, PROFILE, QUALIFICATION,
    QUALIFICATION_SHORT, Scope, SpecVersion,
};
pub use subject::{Session, Subject, Tested};
