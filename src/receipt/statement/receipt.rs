//! The statement that ties a run to a pull request.

use plimsoll_attestation::{Envelope, Fault, PublicKey, SigningKey, own};
use serde::{Deserialize, Serialize};

use super::{OpenError, Statement, open, read};
use crate::{collect::Reason, outcome::Verdict};

/// The predicate type; under the reserved name, so that nobody signs one by
/// other means.
pub const TYPE: &str = "urn:plimsoll-attest:pr-receipt:v1";

/// The predicate. Members in the order they are written.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Receipt {
    /// Always 1.
    pub version: u64,
    /// The repository, as CI states it.
    pub repository: Repository,
    /// The pull request, as CI states it.
    pub pull_request: PullRequest,
    /// What was tested, from git objects.
    pub tested: Tested,
    /// Where steps and reports were read from.
    pub config: ConfigFrom,
    /// Test files the pull request changes.
    pub tests_changed: Vec<String>,
    /// The CI job, as it states itself.
    pub workflow: Workflow,
    /// The run's place in the bundle.
    pub run: Run,
    /// SHA-256 of the bundle file.
    pub bundle_sha256: String,
    /// The reports in the signed answer.
    pub reports: Vec<Report>,
    /// SHA-256 of the test-result statement's payload.
    pub test_result_sha256: String,
    /// The verdict and counts.
    pub summary: Summary,
    /// The key.
    pub signing_key: Key,
    /// When it was made, Unix milliseconds.
    pub created_unix_ms: u64,
}

/// A repository.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Repository {
    /// Its URL.
    pub url: String,
}

/// A pull request.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct PullRequest {
    /// Its number.
    pub number: u64,
    /// URL of the head's repository; empty when it is gone.
    pub head_repository: String,
    /// The head commit.
    pub head_sha: String,
    /// The branch it goes into.
    pub base_ref: String,
    /// That branch's commit.
    pub base_sha: String,
}

/// Which commit was tested.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestedKind {
    /// The pull request's head.
    Head,
    /// Its merge into the base.
    Merge,
}

impl TestedKind {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            TestedKind::Head => "head",
            TestedKind::Merge => "merge",
        }
    }
}

/// What was tested.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tested {
    /// Head or merge.
    pub kind: TestedKind,
    /// The commit.
    pub commit_sha: String,
    /// Its tree.
    pub tree_sha: String,
    /// How many of its files were sent.
    pub files: u64,
    /// Digest over those files.
    pub manifest_sha256: String,
    /// How many of them are executable in the commit.
    pub executable: u64,
    /// Those that were not sent.
    pub excluded: Vec<Excluded>,
    /// Files sent that are not of the commit.
    pub added: Vec<Added>,
}

/// A file that was not sent.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Excluded {
    /// Its path.
    pub path: String,
    /// Its object.
    pub git_blob: String,
    /// Why.
    pub reason: Reason,
}

/// A file sent that is not of the commit.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    /// Its path.
    pub path: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// Where a configuration came from.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ConfigSource {
    /// The base commit's file.
    Base,
    /// The tested commit's file.
    Tested,
    /// Flags in the workflow.
    Workflow,
}

impl ConfigSource {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            ConfigSource::Base => "base",
            ConfigSource::Tested => "tested",
            ConfigSource::Workflow => "workflow",
        }
    }
}

/// The configuration used.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct ConfigFrom {
    /// Where from.
    pub source: ConfigSource,
    /// Its blob; empty for flags.
    pub git_blob: String,
}

/// A CI job.
#[derive(Clone, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Workflow {
    /// The event.
    pub event: String,
    /// Path of the workflow file.
    pub path: String,
    /// Its blob in the tested commit; empty when it has none.
    pub git_blob: String,
    /// The run's number.
    pub run_id: u64,
    /// The attempt's.
    pub run_attempt: u64,
    /// The run's page.
    pub run_url: String,
}

/// A place in the bundle.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    /// The line.
    pub line: u64,
    /// Digest of the line without its link.
    pub entry_sha256: String,
    /// The record's digest.
    pub record_sha256: String,
}

/// A report in the signed answer.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Report {
    /// The step whose stream it is, or the last that ran.
    pub step: u64,
    /// `artifact:<path>` or `stdout:<step>`.
    pub source: String,
    /// `junit` or `tap`.
    pub format: String,
    /// SHA-256 of its bytes; empty when the answer does not hold it.
    pub sha256: String,
}

/// Verdict and counts.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Summary {
    /// The verdict.
    pub result: Verdict,
    /// Passed tests.
    pub passed: u64,
    /// Warned tests.
    pub warned: u64,
    /// Failed tests.
    pub failed: u64,
    /// Skipped tests.
    pub skipped: u64,
}

/// What is said of a key.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum KeyKind {
    /// Made in the job and gone with it.
    Ephemeral,
    /// From a file.
    File,
}

impl KeyKind {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            KeyKind::Ephemeral => "ephemeral",
            KeyKind::File => "file",
        }
    }
}

/// The signing key.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Key {
    /// Its ID.
    pub id: String,
    /// What is said of it.
    pub kind: KeyKind,
}

/// Signs a receipt.
///
/// # Errors
/// Class `statement`: a text in it makes it too large or no valid statement.
pub fn sign(statement: &Statement<Receipt>, key: &SigningKey) -> Result<Envelope<'static>, Fault> {
    Ok(own::receipt_statement(statement.payload())?.sign(key))
}

/// Opens a receipt's envelope and gives the statement and its payload.
///
/// # Errors
/// [`OpenError`].
pub fn open_envelope(
    envelope: &[u8],
    key: &PublicKey,
) -> Result<(Statement<Receipt>, Vec<u8>), OpenError> {
    let opened = open(envelope, key, TYPE, true)?;
    Ok((read(&opened.payload)?, opened.payload))
}
