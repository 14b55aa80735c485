//! The facts of a receipt, read from its verified parts.

use plimsoll_record::{Digest, outcome::outcome_name};
use plimsoll_wire::proto::StepResult;

use crate::{
    collect::Reason,
    facts::{
        AddedFacts, Counts, Evidence, Facts, FileFacts, LeftOutFacts, ReportFacts, RunFacts,
        StepFacts, StreamFacts, TestFacts, WorkflowFacts,
    },
    folder::Folder,
    git::{Oid, blob},
    outcome::Outcome,
    run::Run,
    statement::{Receipt, receipt::KeyKind},
};

/// The short words beside every tier.
pub const TIER_SHORT: &str = "stated by the daemon; not hardware attestation";

/// What a receipt cannot show.
pub const LIMITS: &str = "A receipt whose key was made inside the pull request's own job shows that its parts \
     belong together, not who made them. The pull request can change the workflow that made it. Run the tests \
     again to be sure of the result.";

/// Reads the facts of a receipt whose statements were opened and whose run was
/// verified. `bom` is the BOM file's bytes.
#[must_use]
pub fn facts(
    receipt: &Receipt,
    receipt_payload: &[u8],
    run: &Run,
    outcome: &Outcome,
    bom: &[u8],
) -> Facts {
    let added = added(receipt, run);
    Facts {
        repository: receipt.repository.url.clone(),
        pull_request: receipt.pull_request.number,
        head_repository: receipt.pull_request.head_repository.clone(),
        head_sha: receipt.pull_request.head_sha.clone(),
        base_ref: receipt.pull_request.base_ref.clone(),
        base_sha: receipt.pull_request.base_sha.clone(),
        tested_kind: receipt.tested.kind.word().to_owned(),
        commit_sha: receipt.tested.commit_sha.clone(),
        tree_sha: receipt.tested.tree_sha.clone(),
        manifest_sha256: receipt.tested.manifest_sha256.clone(),
        executable: receipt.tested.executable,
        config_source: receipt.config.source.word().to_owned(),
        config_blob: receipt.config.git_blob.clone(),
        workflow: WorkflowFacts {
            event: receipt.workflow.event.clone(),
            path: receipt.workflow.path.clone(),
            git_blob: receipt.workflow.git_blob.clone(),
            run_id: receipt.workflow.run_id,
            run_attempt: receipt.workflow.run_attempt,
            run_url: receipt.workflow.run_url.clone(),
        },
        run: run_facts(run),
        steps: steps(run),
        reports: reports(receipt),
        tests: tests(outcome),
        result: outcome.verdict.name().to_owned(),
        counts: Counts { ..outcome.counts },
        remarks: outcome.remarks.clone(),
        files: files(receipt, run, &added),
        left_out: left_out(receipt, &added),
        added,
        tests_changed: receipt.tests_changed.clone(),
        key_id: receipt.signing_key.id.clone(),
        key_kind: receipt.signing_key.kind.word().to_owned(),
        created_unix_ms: receipt.created_unix_ms,
        bundle_sha256: run.bundle_sha256.clone(),
        test_result_sha256: receipt.test_result_sha256.clone(),
        receipt_sha256: Digest::of(receipt_payload).to_hex(),
        bom_sha256: Digest::of(bom).to_hex(),
        serial_number: serial_number(bom),
        established: established(receipt),
        not_established: not_established(receipt),
    }
}

/// The evidence of a folder as text, for a page that carries it. Bytes that
/// are no text are replaced: such a folder does not verify anyway.
#[must_use]
pub fn evidence(folder: &Folder) -> Evidence {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    Evidence {
        bundle: text(&folder.bundle),
        test_result: text(&folder.test_result),
        receipt: text(&folder.receipt),
        public_key: text(&folder.public_key),
        bom: text(&folder.bom),
    }
}

fn run_facts(run: &Run) -> RunFacts {
    let outcome = run
        .project()
        .map(|(_, result)| outcome_name(result.outcome));
    let record = &run.record;
    RunFacts {
        provider: record.provider.clone(),
        tier: record.isolation.clone(),
        floor: match run.request.minimum_isolation.as_str() {
            "" => "none".to_owned(),
            floor => floor.to_owned(),
        },
        environment: record.environment.clone(),
        software_identity: record.software_identity.clone(),
        software_rule_id: record.software_rule_id.clone(),
        policy: record.policy.clone(),
        started_unix_ms: record.started_unix_ms,
        ended_unix_ms: record.ended_unix_ms,
        timeout_ms: i64::from(run.request.timeout_ms),
        outcome: outcome.unwrap_or("unspecified").to_owned(),
        line: run.line,
        entry_sha256: run.entry_sha256.clone(),
        record_sha256: record.record_sha256.clone(),
        request_sha256: record.request_sha256.clone(),
        result_sha256: record.result_sha256.clone(),
    }
}

fn steps(run: &Run) -> Vec<StepFacts> {
    let stream = |bytes: &[u8], truncated| StreamFacts {
        bytes: bytes.len() as u64,
        sha256: Digest::of(bytes).to_hex(),
        truncated,
    };
    let step = |step: &StepResult| StepFacts {
        command: step.command.clone(),
        exit_code: step.exit_code,
        timed_out: step.timed_out,
        duration_ms: step.duration_ms,
        stdout: stream(&step.stdout, step.stdout_truncated),
        stderr: stream(&step.stderr, step.stderr_truncated),
    };
    run.project()
        .map(|(_, result)| result.steps.iter().map(step).collect())
        .unwrap_or_default()
}

fn reports(receipt: &Receipt) -> Vec<ReportFacts> {
    let report = |report: &crate::statement::receipt::Report| ReportFacts {
        step: report.step,
        source: report.source.clone(),
        format: report.format.clone(),
        sha256: report.sha256.clone(),
    };
    receipt.reports.iter().map(report).collect()
}

fn tests(outcome: &Outcome) -> Vec<TestFacts> {
    let test = |test: &crate::outcome::Test| TestFacts {
        name: test.name.clone(),
        class: test.class,
        duration_us: test.duration_us,
    };
    outcome.tests.iter().map(test).collect()
}

fn added(receipt: &Receipt, run: &Run) -> Vec<AddedFacts> {
    let sent = run
        .project()
        .map(|(run, _)| run.files.as_slice())
        .unwrap_or_default();
    let bytes = |path: &str| {
        let file = sent.iter().find(|file| file.path == path);
        file.map_or(0, |file| file.content.len() as u64)
    };
    let fact = |file: &crate::statement::receipt::Added| AddedFacts {
        path: file.path.clone(),
        sha256: file.sha256.clone(),
        bytes: bytes(&file.path),
        over_left_out: receipt
            .tested
            .excluded
            .iter()
            .any(|out| covers(&file.path, &out.path)),
    };
    receipt.tested.added.iter().map(fact).collect()
}

/// Whether a file sent under one path stands where a file of the commit would:
/// at it, below it (a link or submodule made a directory), or above it.
#[must_use]
pub fn covers(added: &str, left_out: &str) -> bool {
    let below = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.starts_with('/'))
    };
    added == left_out || below(added, left_out) || below(left_out, added)
}

fn left_out(receipt: &Receipt, added: &[AddedFacts]) -> Vec<LeftOutFacts> {
    let fact = |file: &crate::statement::receipt::Excluded| LeftOutFacts {
        path: file.path.clone(),
        git_blob: file.git_blob.clone(),
        reason: file.reason.word().to_owned(),
        replaced: added.iter().any(|added| covers(&added.path, &file.path)),
    };
    receipt.tested.excluded.iter().map(fact).collect()
}

fn files(receipt: &Receipt, run: &Run, added: &[AddedFacts]) -> Vec<FileFacts> {
    let algorithm = Oid::parse(&receipt.tested.tree_sha).map(|oid| oid.algorithm());
    let added: std::collections::HashSet<&str> = added.iter().map(|a| a.path.as_str()).collect();
    let sent = run
        .project()
        .map(|(run, _)| run.files.as_slice())
        .unwrap_or_default();
    sent.iter()
        .filter(|file| !added.contains(file.path.as_str()))
        .map(|file| {
            let content = file.content.as_bytes();
            let blob = algorithm.and_then(|algorithm| blob::name(algorithm, content));
            FileFacts {
                path: file.path.clone(),
                git_blob: blob.map_or_else(String::new, |oid| oid.as_str().to_owned()),
                sha256: Digest::of(content).to_hex(),
                bytes: content.len() as u64,
            }
        })
        .collect()
}

fn serial_number(bom: &[u8]) -> String {
    #[derive(serde::Deserialize)]
    struct Serial {
        #[serde(rename = "serialNumber", default)]
        serial_number: String,
    }
    serde_json::from_slice::<Serial>(bom).map_or_else(|_| String::new(), |bom| bom.serial_number)
}

fn established(receipt: &Receipt) -> Vec<String> {
    let commit = match receipt.tested.kind {
        crate::statement::receipt::TestedKind::Head => "the pull request's head commit",
        crate::statement::receipt::TestedKind::Merge => "the pull request's merge commit",
    };
    vec![
        "The parts were signed by the holder of one key and have not been changed since."
            .to_owned(),
        format!(
            "The files sent are those of {commit}, but for those listed as left out or added; a clone of the \
             repository confirms it."
        ),
        "The commands, their exit codes and their output are those the daemon answered with."
            .to_owned(),
        "The result follows from the reports in that answer, read again.".to_owned(),
    ]
}

fn not_established(receipt: &Receipt) -> Vec<String> {
    let mut list = vec![
        "That the daemon told the truth: the isolation tier is what it stated, from configuration and startup \
         checks, never hardware attestation."
            .to_owned(),
        match receipt.signing_key.kind {
            KeyKind::Ephemeral => {
                "Who made the receipt: its key says of itself that it was made in the job. The CI run that the \
                 artifact came from answers that."
                    .to_owned()
            }
            KeyKind::File => {
                "Who made the receipt, unless you know the key from elsewhere.".to_owned()
            }
        },
        "That the tests are good ones: the pull request can change tests and, on its own branch, the workflow."
            .to_owned(),
        "That a failing hook after the tests was seen: JUnit reports have no place for one, and only the step's \
         exit code shows it."
            .to_owned(),
    ];
    if receipt
        .tested
        .excluded
        .iter()
        .any(|file| file.reason == Reason::Configured)
    {
        list.push("Anything about files that the configuration leaves out.".to_owned());
    }
    list
}
