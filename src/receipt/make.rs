//! Making the two statements from what was tested and what came back.

use crate::{
    collect::{Collected, LeftOut},
    config,
    event::Binding,
    git::Oid,
    outcome::{Found, Outcome},
    report::Source,
    run::Run,
    statement::{
        Digest, Receipt, Statement, Subject, TestResult,
        receipt::{
            self, Added, ConfigFrom, ConfigSource, Excluded, Key, KeyKind, Report, Summary,
            TestedKind, Workflow,
        },
        test_result,
    },
};

/// Everything of a receipt but the run.
#[derive(Clone, Debug)]
pub struct About {
    /// Repository and pull request.
    pub binding: Binding,
    /// Head or merge.
    pub kind: TestedKind,
    /// The commit tested.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its files.
    pub files: Files,
    /// Files sent that are not of the commit, sorted by path bytes.
    pub added: Vec<Added>,
    /// Where the configuration came from.
    pub config: ConfigFrom,
    /// Test files changed.
    pub tests_changed: Vec<String>,
    /// The CI job.
    pub workflow: Workflow,
    /// The key.
    pub key: Key,
    /// The clock, read once.
    pub created_unix_ms: u64,
}

/// What is said of a commit's files.
#[derive(Clone, Debug)]
pub struct Files {
    /// How many were sent.
    pub sent: u64,
    /// Their manifest.
    pub manifest_sha256: String,
    /// How many are executable.
    pub executable: u64,
    /// Those not sent.
    pub left_out: Vec<LeftOut>,
}

impl Files {
    /// What is said of collected files.
    #[must_use]
    pub fn of(collected: &Collected) -> Self {
        Files {
            sent: collected.files.len() as u64,
            manifest_sha256: collected.manifest().to_hex(),
            executable: collected.executable,
            left_out: collected.left_out.clone(),
        }
    }
}

/// A configuration's source and blob.
#[must_use]
pub fn config_from(source: ConfigSource, blob: Option<&Oid>) -> ConfigFrom {
    ConfigFrom {
        source,
        git_blob: blob.map_or_else(String::new, |oid| oid.as_str().to_owned()),
    }
}

/// A key's entry.
#[must_use]
pub fn key(id: &str, kind: KeyKind) -> Key {
    Key {
        id: id.to_owned(),
        kind,
    }
}

/// The three subjects both statements share.
#[must_use]
pub fn subjects(
    repository: &str,
    number: u64,
    kind: TestedKind,
    commit: &str,
    tree: &str,
    record: &str,
) -> Vec<Subject> {
    let subject = |name: String, digest| Subject { name, digest };
    vec![
        subject(
            format!("git+{repository}@refs/pull/{number}/{}", kind.word()),
            Digest::Commit(commit.to_owned()),
        ),
        subject("tree".to_owned(), Digest::Tree(tree.to_owned())),
        subject("run-record".to_owned(), Digest::Sha256(record.to_owned())),
    ]
}

/// The files that decided what was run.
#[must_use]
pub fn configuration(workflow: &Workflow, config: &ConfigFrom, reports: &[Report]) -> Vec<Subject> {
    let mut named = Vec::new();
    for (name, blob) in [
        (workflow.path.as_str(), &workflow.git_blob),
        (config::PATH, &config.git_blob),
    ] {
        if !blob.is_empty() {
            named.push(Subject {
                name: name.to_owned(),
                digest: Digest::Blob(blob.clone()),
            });
        }
    }
    for report in reports.iter().filter(|report| !report.sha256.is_empty()) {
        let name = report.source.strip_prefix("artifact:");
        named.push(Subject {
            name: name.unwrap_or(&report.source).to_owned(),
            digest: Digest::Sha256(report.sha256.clone()),
        });
    }
    named
}

/// The page of one attempt of a CI run; empty where there is none.
#[must_use]
pub fn attempt_url(workflow: &Workflow) -> String {
    match workflow.run_url.as_str() {
        "" => String::new(),
        url => format!("{url}/attempts/{}", workflow.run_attempt),
    }
}

/// The reports as the receipt lists them.
#[must_use]
pub fn reports(found: &[Found]) -> Vec<Report> {
    found
        .iter()
        .map(|found| Report {
            step: found.step,
            source: match &found.spec.source {
                source @ (Source::Artifact(_) | Source::Stdout(_)) => source.to_string(),
            },
            format: found.spec.format.name().to_owned(),
            sha256: found
                .sha256
                .map_or_else(String::new, |digest| digest.to_hex()),
        })
        .collect()
}

/// Verdict and counts as the receipt lists them.
#[must_use]
pub fn summary(outcome: &Outcome) -> Summary {
    Summary {
        result: outcome.verdict,
        passed: outcome.counts.passed,
        warned: outcome.counts.warned,
        failed: outcome.counts.failed,
        skipped: outcome.counts.skipped,
    }
}

/// Makes both statements.
#[must_use]
pub fn statements(
    about: About,
    run: &Run,
    outcome: &Outcome,
) -> (Statement<TestResult>, Statement<Receipt>) {
    let reports = reports(&outcome.reports);
    let mut subjects = subjects(
        &about.binding.repository.url,
        about.binding.pull_request.number,
        about.kind,
        about.commit.as_str(),
        about.tree.as_str(),
        &run.record.record_sha256,
    );
    let test_result = Statement::new(
        test_result::TYPE,
        subjects.clone(),
        TestResult::of(
            outcome,
            configuration(&about.workflow, &about.config, &reports),
            attempt_url(&about.workflow),
        ),
    );
    subjects.push(Subject {
        name: "bundle.jsonl".to_owned(),
        digest: Digest::Sha256(run.bundle_sha256.clone()),
    });
    let excluded = about.files.left_out.into_iter().map(|file| Excluded {
        path: file.path,
        git_blob: file.oid.as_str().to_owned(),
        reason: file.reason,
    });
    let receipt = Receipt {
        version: 1,
        repository: about.binding.repository,
        pull_request: about.binding.pull_request,
        tested: receipt::Tested {
            kind: about.kind,
            commit_sha: about.commit.as_str().to_owned(),
            tree_sha: about.tree.as_str().to_owned(),
            files: about.files.sent,
            manifest_sha256: about.files.manifest_sha256,
            executable: about.files.executable,
            excluded: excluded.collect(),
            added: about.added,
        },
        config: about.config,
        tests_changed: about.tests_changed,
        workflow: about.workflow,
        run: receipt::Run {
            line: run.line,
            entry_sha256: run.entry_sha256.clone(),
            record_sha256: run.record.record_sha256.clone(),
        },
        bundle_sha256: run.bundle_sha256.clone(),
        reports,
        test_result_sha256: plimsoll_record::Digest::of(&test_result.payload()).to_hex(),
        summary: summary(outcome),
        signing_key: about.key,
        created_unix_ms: about.created_unix_ms,
    };
    (
        test_result,
        Statement::new(receipt::TYPE, subjects, receipt),
    )
}
