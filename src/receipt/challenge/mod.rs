//! Deliberately wrong receipts, and what each must be refused with.
//!
//! Where a wrong receipt needs a signature it is signed again with a key made
//! for it, as an attacker could: only what the reviewer knows and what can be
//! computed again stands against those.

mod document;
mod forge;
mod signed;

use plimsoll_attestation::{PublicKey, SigningKey};

use crate::{
    folder::Folder,
    run::Run,
    statement::{Receipt, Statement, TestResult, receipt, test_result},
    verify::{self, Options},
};

/// One way to be wrong.
pub struct Mutation {
    /// Its name, fit for a directory.
    pub name: &'static str,
    /// What was done, in one sentence.
    pub sentence: &'static str,
    /// The code it must be refused with.
    pub code: &'static str,
    /// Whether the reviewer knows the right key.
    known_key: bool,
    /// Makes it; `None` when this receipt has nothing to be made wrong there.
    make: fn(&Original) -> Option<Folder>,
}

/// Every mutation, those of the document first.
pub fn mutations() -> impl Iterator<Item = &'static Mutation> {
    document::ALL.iter().chain(signed::ALL)
}

/// A receipt that verified, opened.
pub struct Original {
    folder: Folder,
    receipt: Statement<Receipt>,
    test_result: Statement<TestResult>,
    run: Run,
    key: SigningKey,
}

/// A wrong receipt, and how the check took it.
pub struct Challenge {
    /// What is wrong with it.
    pub mutation: &'static Mutation,
    /// The receipt.
    pub folder: Folder,
    /// The code it was refused with; `None` when it was accepted.
    pub refused: Option<&'static str>,
}

impl Challenge {
    /// Whether it was refused with the right code.
    #[must_use]
    pub fn met(&self) -> bool {
        self.refused == Some(self.mutation.code)
    }
}

impl Original {
    /// Opens a receipt; `None` when its parts cannot be read, which a check
    /// says more about.
    #[must_use]
    pub fn open(folder: &Folder) -> Option<Original> {
        let key = PublicKey::from_pem(&folder.public_key).ok()?;
        let run = Run::read(&folder.bundle, &key).ok()?;
        let (test_result, _) = test_result::open_envelope(&folder.test_result, &key).ok()?;
        let (receipt, _) = receipt::open_envelope(&folder.receipt, &key).ok()?;
        Some(Original {
            folder: folder.clone(),
            receipt,
            test_result,
            run,
            key: SigningKey::generate().ok()?,
        })
    }

    /// Makes one wrong receipt and checks it; `None` when this receipt has
    /// nothing that the mutation changes.
    #[must_use]
    pub fn challenge(&self, mutation: &'static Mutation, options: &Options) -> Option<Challenge> {
        let folder = (mutation.make)(self)?;
        let mut options = options.clone();
        if mutation.known_key {
            options.public_key = PublicKey::from_pem(&self.folder.public_key).ok();
        } else {
            options.public_key = None;
            options.key_id = None;
        }
        let report = verify::verify(&folder, &options);
        let refused = report.refusal().map(|step| step.code.unwrap_or("internal"));
        Some(Challenge {
            mutation,
            folder,
            refused,
        })
    }
}
