//! What a report of a receipt shows.
//!
//! Every text that is not said to be our own came from a repository, a guest,
//! a CI service or a daemon: whoever shows it escapes it.

use serde::Serialize;

/// Facts of one receipt, independent of any verdict: they are read from the
/// signed material and say what it states, not whether it holds.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Facts {
    /// URL of the repository.
    pub repository: String,
    /// Number of the pull request.
    pub pull_request: u64,
    /// URL of the repository the head comes from; empty when it is gone.
    pub head_repository: String,
    /// The pull request's head commit, 40 or 64 hex digits.
    pub head_sha: String,
    /// Name of the branch it is to be merged into.
    pub base_ref: String,
    /// That branch's commit when the pull request was tested.
    pub base_sha: String,
    /// What was tested: `head` or `merge`.
    pub tested_kind: String,
    /// The commit that was tested.
    pub commit_sha: String,
    /// Its tree.
    pub tree_sha: String,
    /// Digest over the files sent from the commit.
    pub manifest_sha256: String,
    /// How many of them are executable in the commit; the mode does not travel.
    pub executable: u64,
    /// Where steps and reports were read from: `base`, `tested` or `workflow`.
    pub config_source: String,
    /// The configuration file's git blob; empty for `workflow`.
    pub config_blob: String,
    /// The CI job that made the receipt, as it states itself.
    pub workflow: WorkflowFacts,
    /// The run, as its signed record states it.
    pub run: RunFacts,
    /// The steps that ran, in order.
    pub steps: Vec<StepFacts>,
    /// The reports the tests were read from.
    pub reports: Vec<ReportFacts>,
    /// The tests, in report order.
    pub tests: Vec<TestFacts>,
    /// `PASSED`, `WARNED` or `FAILED`.
    pub result: String,
    /// Tests by class.
    pub counts: Counts,
    /// Why the result is what it is when no single test says so, and what does
    /// not agree in the reports; our own words with escaped names.
    pub remarks: Vec<String>,
    /// Files sent from the commit, sorted by path bytes.
    pub files: Vec<FileFacts>,
    /// Files of the commit that were not sent.
    pub left_out: Vec<LeftOutFacts>,
    /// Files sent that are not of the commit.
    pub added: Vec<AddedFacts>,
    /// Test files the pull request changes.
    pub tests_changed: Vec<String>,
    /// Key ID, 64 hex digits.
    pub key_id: String,
    /// What the receipt states of the key: `ephemeral` or `file`.
    pub key_kind: String,
    /// When the receipt was made, by the clock of the job, Unix milliseconds.
    pub created_unix_ms: u64,
    /// SHA-256 of the bundle file.
    pub bundle_sha256: String,
    /// SHA-256 of the test-result statement's payload.
    pub test_result_sha256: String,
    /// SHA-256 of the receipt statement's payload.
    pub receipt_sha256: String,
    /// SHA-256 of the BOM file.
    pub bom_sha256: String,
    /// The BOM's serial number, `urn:uuid:…`.
    pub serial_number: String,
    /// What the receipt establishes once it verifies; our own sentences.
    pub established: Vec<String>,
    /// What it does not; our own sentences.
    pub not_established: Vec<String>,
}

/// A CI job, as its environment states it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct WorkflowFacts {
    /// The event that started it.
    pub event: String,
    /// Path of the workflow file.
    pub path: String,
    /// That file's blob in the tested commit; empty when it has none.
    pub git_blob: String,
    /// Number of the run.
    pub run_id: u64,
    /// Number of the attempt, from 1.
    pub run_attempt: u64,
    /// Page of the run.
    pub run_url: String,
}

/// A run, as its record states it.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct RunFacts {
    /// The sandbox provider.
    pub provider: String,
    /// The isolation tier: stated by the daemon, never hardware attestation.
    pub tier: String,
    /// The floor the request asked for; `none` when it asked for none.
    pub floor: String,
    /// The environment's identity; may be empty.
    pub environment: String,
    /// The software's identity; may be empty.
    pub software_identity: String,
    /// The software rule the run was held to; may be empty.
    pub software_rule_id: String,
    /// The policy's identity; may be empty.
    pub policy: String,
    /// Start, Unix milliseconds by the daemon's clock.
    pub started_unix_ms: i64,
    /// End, Unix milliseconds by the daemon's clock.
    pub ended_unix_ms: i64,
    /// The budget asked for, in milliseconds; 0 for the provider's own.
    pub timeout_ms: i64,
    /// `completed`, `setup_failed`, `timed_out`, `protocol_error` or `unspecified`.
    pub outcome: String,
    /// Line of the call in the bundle, from 1.
    pub line: u64,
    /// Digest of that line without its link.
    pub entry_sha256: String,
    /// The record's digest.
    pub record_sha256: String,
    /// The request's digest.
    pub request_sha256: String,
    /// The result's digest.
    pub result_sha256: String,
}

/// A step that ran.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct StepFacts {
    /// The command.
    pub command: String,
    /// Its exit code.
    pub exit_code: i32,
    /// Whether it was cut by the budget.
    pub timed_out: bool,
    /// Milliseconds it took, by the daemon's clock.
    pub duration_ms: i64,
    /// Its standard output.
    pub stdout: StreamFacts,
    /// Its standard error.
    pub stderr: StreamFacts,
}

/// An output stream, by its digest: the bytes are in the signed line.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct StreamFacts {
    /// Bytes.
    pub bytes: u64,
    /// SHA-256 of the bytes.
    pub sha256: String,
    /// Whether the daemon cut it.
    pub truncated: bool,
}

/// A report that tests were read from.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct ReportFacts {
    /// The step whose stream it is, or the last that ran; from 1.
    pub step: u64,
    /// `artifact:<path>` or `stdout:<step>`.
    pub source: String,
    /// `junit`, `tap` or `none`.
    pub format: String,
    /// SHA-256 of its bytes.
    pub sha256: String,
}

/// How a test ended.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TestClass {
    /// It passed.
    #[default]
    Passed,
    /// It is marked as not finished, or passed on another try.
    Warned,
    /// It failed.
    Failed,
    /// It was not run.
    Skipped,
}

impl TestClass {
    /// Its word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            TestClass::Passed => "passed",
            TestClass::Warned => "warned",
            TestClass::Failed => "failed",
            TestClass::Skipped => "skipped",
        }
    }
}

/// One test.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct TestFacts {
    /// Its name, suites first, joined with ` > `.
    pub name: String,
    /// How it ended.
    pub class: TestClass,
    /// Microseconds it took, as the report states; `None` when it does not.
    pub duration_us: Option<u64>,
}

/// Tests by class.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq, Serialize)]
pub struct Counts {
    /// Passed.
    pub passed: u64,
    /// Warned.
    pub warned: u64,
    /// Failed.
    pub failed: u64,
    /// Skipped.
    pub skipped: u64,
}

/// A file that was sent from the commit.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct FileFacts {
    /// Its path.
    pub path: String,
    /// Its git blob, computed from the bytes sent.
    pub git_blob: String,
    /// SHA-256 of the bytes sent.
    pub sha256: String,
    /// Bytes.
    pub bytes: u64,
}

/// A file of the commit that was not sent.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct LeftOutFacts {
    /// Its path.
    pub path: String,
    /// Its object in the tree.
    pub git_blob: String,
    /// `not-utf8`, `symlink`, `submodule`, `configured`, `path` or `too-large`.
    pub reason: String,
    /// Whether a file that is not of the commit was sent under this path.
    pub replaced: bool,
}

/// A file that was sent and is not of the commit.
#[derive(Clone, Debug, Default, Eq, PartialEq, Serialize)]
pub struct AddedFacts {
    /// Its path.
    pub path: String,
    /// SHA-256 of the bytes sent.
    pub sha256: String,
    /// Bytes.
    pub bytes: u64,
    /// Whether the commit has a file at this path that was left out.
    pub over_left_out: bool,
}

/// The signed material of a receipt, each part as it stands in its file.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Evidence {
    /// `bundle.jsonl`: the call's line and the checkpoint's.
    pub bundle: String,
    /// `test-result.dsse.json`, its newline included.
    pub test_result: String,
    /// `receipt.dsse.json`, its newline included.
    pub receipt: String,
    /// `receipt.pub`, PEM.
    pub public_key: String,
    /// `receipt.cdx.json`.
    pub bom: String,
}
