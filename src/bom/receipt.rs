//! The two signed statements of a pull-request receipt, as a BOM needs them.
//!
//! Who the statements are right about is the receipt's own check; here their
//! signatures, their form and the digests that tie them to the call are.

use plimsoll_attestation::{
    Fault, PublicKey,
    fault::StatementReason,
    own::{self, Wanted},
};
use plimsoll_record::Digest;
use serde::{Deserialize, Serialize};

use crate::{
    bundle::Bundle,
    check::bound,
    facts::{CallFacts, Input},
    fault::{BomError, Code, Refusal},
    lines::LineRef,
    subject::{Subject, Tested},
};

/// The predicate type of a receipt's statement.
pub const RECEIPT_TYPE: &str = "urn:plimsoll-attest:pr-receipt:v1";

/// The predicate type of a test-result statement.
pub const TEST_RESULT_TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";

/// A statement as it is attached: its envelope, one line without the newline.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Statement {
    pub(crate) envelope: Vec<u8>,
}

macro_rules! members {
    ($($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $kind:ty,)+ })+) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
            #[serde(deny_unknown_fields)]
            pub struct $name { $($(#[$field_doc])* pub $field: $kind,)+ }
        )+
    };
}

members! {
    /// The predicate of a receipt's statement; members are written in this order.
    Receipt {
        /// Always 1.
        version: u32,
        /// The repository.
        repository: Repository,
        /// The pull request.
        pull_request: PullRequest,
        /// What was tested.
        tested: TestedFiles,
        /// Where the commands came from.
        config: Config,
        /// Test files the pull request changes.
        tests_changed: Vec<String>,
        /// The workflow run.
        workflow: Workflow,
        /// The signed call.
        run: Run,
        /// SHA-256 of the bundle file.
        bundle_sha256: String,
        /// The reports read.
        reports: Vec<Report>,
        /// SHA-256 of the test-result statement's payload.
        test_result_sha256: String,
        /// The result in numbers.
        summary: Summary,
        /// The key everything is signed with.
        signing_key: Key,
        /// When the receipt was made, Unix milliseconds.
        created_unix_ms: i64,
    }
    /// A repository.
    Repository {
        /// Its URL.
        url: String,
    }
    /// A pull request, as its event states it.
    PullRequest {
        /// Its number.
        number: u64,
        /// The head's repository; empty when it is gone.
        head_repository: String,
        /// The head commit.
        head_sha: String,
        /// The base branch.
        base_ref: String,
        /// The base commit.
        base_sha: String,
    }
    /// What was tested, from git objects.
    TestedFiles {
        /// `head` or `merge`.
        kind: String,
        /// The commit.
        commit_sha: String,
        /// Its tree.
        tree_sha: String,
        /// Files of the commit that were sent.
        files: u64,
        /// Digest over those files.
        manifest_sha256: String,
        /// Executable files among them.
        executable: u64,
        /// Files of the commit that were not sent.
        excluded: Vec<Excluded>,
        /// Files sent that are not of the commit.
        added: Vec<Added>,
    }
    /// A file of the commit that was not sent.
    Excluded {
        /// Its path.
        path: String,
        /// Its git object.
        git_blob: String,
        /// Why.
        reason: String,
    }
    /// A file sent that is not of the commit.
    Added {
        /// Its path.
        path: String,
        /// SHA-256 of its content.
        sha256: String,
    }
    /// Where the commands came from.
    Config {
        /// `base`, `tested` or `workflow`.
        source: String,
        /// The configuration file's blob; empty for `workflow`.
        git_blob: String,
    }
    /// The workflow run, as its environment states it.
    Workflow {
        /// The event's name.
        event: String,
        /// The workflow file.
        path: String,
        /// Its blob in the tested commit; empty when absent.
        git_blob: String,
        /// The run's ID.
        run_id: u64,
        /// The attempt.
        run_attempt: u64,
        /// The run's page.
        run_url: String,
    }
    /// The signed call.
    Run {
        /// Its line in the bundle.
        line: u64,
        /// The line's ContentDigest.
        entry_sha256: String,
        /// The record's digest.
        record_sha256: String,
    }
    /// One report.
    Report {
        /// The step whose stream it is, or the last step that ran.
        step: u64,
        /// `artifact:<path>` or `stdout:<step>`.
        source: String,
        /// `junit`, `tap` or `none`.
        format: String,
        /// SHA-256 of its bytes.
        sha256: String,
    }
    /// The result in numbers.
    Summary {
        /// `PASSED`, `WARNED` or `FAILED`.
        result: String,
        /// Tests passed.
        passed: u64,
        /// Tests passed with a warning.
        warned: u64,
        /// Tests failed.
        failed: u64,
        /// Tests skipped.
        skipped: u64,
    }
    /// The signing key.
    Key {
        /// The key ID.
        id: String,
        /// `ephemeral` or `file`.
        kind: String,
    }
}

impl Receipt {
    /// Reads a predicate: exactly these members in this order, compact.
    #[must_use]
    pub fn read(predicate: &[u8]) -> Option<Self> {
        let receipt: Receipt = serde_json::from_slice(predicate).ok()?;
        let again = serde_json::to_value(&receipt).ok()?;
        let same = serde_json::from_slice::<serde_json::Value>(predicate).ok()? == again;
        let mut written = serde_json::to_vec(&receipt).ok()?;
        if written != predicate {
            // Statements escape what could act in HTML; the rest is the same.
            written = String::from_utf8(written)
                .ok()?
                .replace('<', "\\u003c")
                .replace('>', "\\u003e")
                .replace('&', "\\u0026")
                .replace('\u{2028}', "\\u2028")
                .replace('\u{2029}', "\\u2029")
                .into_bytes();
        }
        (same && written == predicate && receipt.version == 1).then_some(receipt)
    }
}

impl Bundle<'_> {
    /// Takes a pull request's receipt: the bundle's call and the two statements'
    /// envelopes, each signed by the bundle's key, and each stating what call,
    /// bundle and the other one say. A final newline of an envelope is not part
    /// of it.
    ///
    /// # Errors
    /// `many_runs` or `no_runs` when the bundle has not exactly one call,
    /// `signature` or `statement` for an envelope, `binding_mismatch` when a
    /// statement names something else than the evidence holds.
    pub fn receipt(
        &self,
        key: &PublicKey,
        test_result: &[u8],
        receipt: &[u8],
    ) -> Result<Subject, BomError> {
        let tested = self.tested(key, test_result, receipt)?;
        bound::statements(key, &tested, self.store, Some(self), &|_| None)?;
        Ok(Subject::Receipt(Box::new(tested)))
    }

    /// [`Bundle::receipt`] for whoever makes wrong receipts to see them
    /// refused: the statements are opened, and not compared beyond the call, key
    /// and test result they name. What is built of it need not pass its check.
    ///
    /// # Errors
    /// As [`Bundle::receipt`].
    pub fn receipt_as_signed(
        &self,
        key: &PublicKey,
        test_result: &[u8],
        receipt: &[u8],
    ) -> Result<Subject, BomError> {
        let tested = self.tested(key, test_result, receipt)?;
        Ok(Subject::Receipt(Box::new(tested)))
    }

    fn tested(
        &self,
        key: &PublicKey,
        test_result: &[u8],
        receipt: &[u8],
    ) -> Result<Tested, BomError> {
        let only = self.select(&crate::Selection::Only)?;
        let number = only.lines().next().map_or(0, |line| line.number);
        tested(self.call(number, true)?, key, test_result, receipt)
    }
}

/// A verified call and its two statements.
pub(crate) fn tested(
    mut call: CallFacts,
    key: &PublicKey,
    test_result: &[u8],
    receipt: &[u8],
) -> Result<Tested, BomError> {
    let [test_result, receipt] = [test_result, receipt]
        .map(|envelope| envelope.strip_suffix(b"\n").unwrap_or(envelope).to_vec());
    let opened_result = own::open(&test_result, key, Wanted::Type(TEST_RESULT_TYPE))
        .map_err(BomError::Statement)?;
    let opened = own::open_receipt(&receipt, key, RECEIPT_TYPE).map_err(BomError::Statement)?;
    let malformed = || BomError::Statement(Fault::new(StatementReason::Shape));
    let facts = opened
        .predicate()
        .and_then(Receipt::read)
        .ok_or_else(malformed)?;
    bound(
        &facts,
        &call.line,
        &call.record.record_sha256,
        key,
        &opened_result.payload,
    )?;
    let git = facts.tested.commit_sha.len() == 40;
    let added: std::collections::HashSet<&str> = facts
        .tested
        .added
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    for input in &mut call.inputs {
        if let Input::File {
            content, git_blob, ..
        } = input
            && (!git || added.contains(content.path.as_str()))
        {
            *git_blob = None;
        }
    }
    Ok(Tested {
        call,
        receipt: facts,
        statements: [test_result, receipt].map(|envelope| Statement { envelope }),
    })
}

fn bound(
    receipt: &Receipt,
    line: &LineRef,
    record: &str,
    key: &PublicKey,
    test_result: &[u8],
) -> Result<(), BomError> {
    let result = Digest::of(test_result).to_hex();
    for (fact, stated, found) in [
        (
            "the receipt names another line",
            receipt.run.line.to_string(),
            line.number.to_string(),
        ),
        (
            "the receipt names another record",
            receipt.run.record_sha256.clone(),
            record.to_owned(),
        ),
        (
            "the receipt names another key",
            receipt.signing_key.id.clone(),
            key.id().to_owned(),
        ),
        (
            "the receipt names another test-result statement",
            receipt.test_result_sha256.clone(),
            result,
        ),
    ] {
        if stated != found {
            return Err(Refusal::new(Code::BindingMismatch, fact)
                .expected(stated)
                .found(found)
                .into());
        }
    }
    Ok(())
}
