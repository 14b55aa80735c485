//! Wrong receipts that are signed again, consistent but for one lie.

use plimsoll_wire::proto::ProjectFile;

use super::{
    Mutation, Original,
    forge::{self, Forge, again},
};
use crate::{
    collect::Reason,
    folder::Folder,
    outcome::Verdict,
    statement::receipt::{Added, ConfigSource, Excluded},
};

macro_rules! mutations {
    ($($name:literal $code:literal $make:expr, $sentence:literal;)+) => {
        &[
            Mutation {
                name: "signed-by-another-key",
                sentence: "Everything is signed again with another key, and the reviewer knows the right one.",
                code: "key_mismatch",
                known_key: true,
                make: |o| again(o, |_| Some(())),
            },
            $(Mutation { name: $name, sentence: $sentence, code: $code, known_key: false, make: $make }),+
        ]
    };
}

/// The mutations that are signed again.
pub const ALL: &[Mutation] = mutations![
    "failed-test-moved" "result_mismatch" |o| again(o, fail_a_test),
        "A test failed in the report, and the statements list it as passed.";
    "failed-step-hidden" "result_mismatch" |o| again(o, |f| {
        let step = f.result()?.steps.first_mut()?;
        step.exit_code = if step.exit_code == 0 { 1 } else { 0 };
        f.receipt.summary.result = flipped(f.receipt.summary.result, step_failed(f));
        f.test_result.result = f.receipt.summary.result;
        Some(())
    }),
        "A step's exit code contradicts the result stated.";
    "result-turned" "result_mismatch" |o| again(o, |f| {
        let turned = match f.receipt.summary.result {
            Verdict::Passed => Verdict::Failed,
            _ => Verdict::Passed,
        };
        f.receipt.summary.result = turned;
        f.test_result.result = turned;
        Some(())
    }),
        "Both statements state another result than the reports.";
    "result-turned-in-one" "result_mismatch" |o| again(o, |f| {
        f.test_result.result = match f.test_result.result {
            Verdict::Passed => Verdict::Failed,
            _ => Verdict::Passed,
        };
        Some(())
    }),
        "The two statements disagree about the result.";
    "test-invented" "result_mismatch" |o| again(o, |f| { f.test_result.passed.push("a test that was not there".to_owned()); Some(()) }),
        "The test result names a test that the report does not.";
    "counts-changed" "result_mismatch" |o| again(o, |f| { f.receipt.summary.passed += 1; Some(()) }),
        "The receipt counts one passed test more.";
    "head-replaced" "git_commit" |o| again(o, |f| {
        let other = f.receipt.pull_request.base_sha.clone();
        f.receipt.pull_request.head_sha.clone_from(&other);
        f.receipt.tested.commit_sha = other;
        Some(())
    }),
        "The receipt is of another head.";
    "commit-replaced" "git_commit" |o| again(o, |f| {
        f.receipt.tested.commit_sha = f.receipt.pull_request.base_sha.clone();
        Some(())
    }),
        "Another commit than the head was tested.";
    "tree-replaced" "git_tree" |o| again(o, |f| {
        f.receipt.tested.tree_sha = f.receipt.tested.tree_sha.chars().rev().collect();
        Some(())
    }),
        "The receipt names another tree.";
    "file-replaced" "file_mismatch" |o| again(o, |f| {
        let file = f.asked()?.files.first_mut()?;
        file.content.push('\n');
        f.recount()
    }),
        "One file was sent with another content.";
    "file-not-sent" "file_missing" |o| again(o, |f| { f.asked()?.files.pop()?; f.recount() }),
        "One file was neither sent nor listed as left out.";
    "false-reason" "file_missing" |o| again(o, |f| {
        let algorithm = crate::git::Oid::parse(&f.receipt.tested.tree_sha)?.algorithm();
        let file = f.asked()?.files.pop()?;
        let blob = crate::git::blob::name(algorithm, file.content.as_bytes())?;
        f.receipt.tested.excluded.push(Excluded {
            path: file.path,
            git_blob: blob.as_str().to_owned(),
            reason: Reason::NotUtf8,
        });
        f.recount()
    }),
        "One file was left out for a reason that does not hold.";
    "left-out-invented" "file_missing" |o| again(o, |f| {
        f.receipt.tested.excluded.push(Excluded {
            path: "not/in/the/commit.bin".to_owned(),
            git_blob: f.receipt.tested.tree_sha.clone(),
            reason: Reason::NotUtf8,
        });
        Some(())
    }),
        "A file is listed as left out that the commit does not have.";
    "added-not-listed" "file_unexplained" |o| again(o, |f| { add(f)?; f.recount() }),
        "A file was sent that is neither of the commit nor listed as added.";
    "added-with-other-digest" "file_mismatch" |o| again(o, |f| {
        let path = add(f)?;
        f.receipt.tested.added.push(Added { path, sha256: "0".repeat(64) });
        f.recount()
    }),
        "A file is listed as added with another digest.";
    "added-not-sent" "file_unexplained" |o| again(o, |f| {
        f.receipt.tested.added.push(Added { path: "not-sent.js".to_owned(), sha256: "0".repeat(64) });
        f.recount()?;
        // The count must hold for the lie to reach its own check.
        f.receipt.tested.files = f.receipt.tested.files.checked_sub(1)?;
        Some(())
    }),
        "A file is listed as added that was not sent.";
    "commit-file-as-added" "file_mismatch" |o| again(o, |f| {
        let file = f.asked()?.files.first()?.clone();
        let sha256 = plimsoll_record::Digest::of(file.content.as_bytes()).to_hex();
        f.receipt.tested.added.push(Added { path: file.path, sha256 });
        f.recount()
    }),
        "A file of the commit is listed as added.";
    "executable-count" "file_mismatch" |o| again(o, |f| { f.receipt.tested.executable += 1; Some(()) }),
        "Another number of executable files is stated.";
    "tests-changed-hidden" "file_mismatch" |o| again(o, |f| {
        if f.receipt.tests_changed.pop().is_none() {
            f.receipt.tests_changed.push("test/invented.js".to_owned());
        }
        Some(())
    }),
        "The list of changed test files is another.";
    "manifest-changed" "binding_mismatch" |o| again(o, |f| { f.receipt.tested.manifest_sha256 = "0".repeat(64); Some(()) }),
        "The manifest's digest is of other files.";
    "bundle-digest" "binding_mismatch" |o| again(o, |f| { f.last = |r| r.bundle_sha256 = "0".repeat(64); Some(()) }),
        "The receipt names another bundle.";
    "entry-digest" "binding_mismatch" |o| again(o, |f| { f.last = |r| r.run.entry_sha256 = "0".repeat(64); Some(()) }),
        "The receipt names another line.";
    "pull-request-number" "binding_mismatch" |o| again(o, |f| { f.keep_subjects = true; f.receipt.pull_request.number += 1; Some(()) }),
        "The receipt is of another pull request than its subjects.";
    "made-before-the-run" "binding_mismatch" |o| again(o, |f| { f.receipt.created_unix_ms = 1; Some(()) }),
        "The receipt was made before its run ended.";
    "report-of-the-work-tree" "binding_mismatch" |o| again(o, |f| {
        f.receipt.reports.first_mut()?.sha256 = "0".repeat(64);
        f.test_result.configuration = crate::make::configuration(&f.receipt.workflow, &f.receipt.config, &f.receipt.reports);
        Some(())
    }),
        "The receipt names a report that is not the signed answer's.";
    "report-missing" "report_missing" |o| again(o, |f| { f.result()?.artifacts.clear(); f.receipt.reports.first().filter(|r| r.source.starts_with("artifact:"))?; Some(()) }),
        "The report is not in the signed answer.";
    "report-unreadable" "report_parse" |o| again(o, |f| { report(f, b"<!DOCTYPE x><testsuite/>") }),
        "The report in the signed answer cannot be read.";
    "configuration-swapped" "config_mismatch" |o| again(o, |f| {
        f.receipt.config.source = ConfigSource::Base;
        f.receipt.config.git_blob = f.receipt.tested.tree_sha.clone();
        f.test_result.configuration = crate::make::configuration(&f.receipt.workflow, &f.receipt.config, &f.receipt.reports);
        Some(())
    }),
        "The receipt names another configuration.";
    "workflow-swapped" "binding_mismatch" |o| again(o, |f| {
        f.receipt.workflow.git_blob = f.receipt.tested.tree_sha.clone();
        f.test_result.configuration = crate::make::configuration(&f.receipt.workflow, &f.receipt.config, &f.receipt.reports);
        Some(())
    }),
        "The receipt names another content of the workflow file.";
    "floor-lowered" "floor_not_met" |o| again(o, |f| {
        f.request.minimum_isolation = String::new();
        f.response.isolation = "process".to_owned();
        Some(())
    }),
        "The run was made behind a weaker tier.";
    "second-call" "many_runs" second_call,
        "The bundle holds a second call.";
];

/// A file that the commit does not have; its path.
fn add(forge: &mut Forge) -> Option<String> {
    let path = "zz-added-by-the-challenge.js".to_owned();
    forge.asked()?.files.push(ProjectFile {
        path: path.clone(),
        content: "1\n".to_owned(),
    });
    Some(path)
}

fn step_failed(forge: &mut Forge) -> bool {
    forge
        .result()
        .is_some_and(|result| result.steps.iter().any(|step| step.exit_code != 0))
}

/// The verdict that contradicts the steps.
fn flipped(stated: Verdict, failed: bool) -> Verdict {
    match (failed, stated) {
        (true, _) => Verdict::Passed,
        (false, Verdict::Failed) => Verdict::Failed,
        (false, _) => Verdict::Failed,
    }
}

/// Puts other bytes in the place of the first report, and says so.
fn report(forge: &mut Forge, bytes: &[u8]) -> Option<()> {
    let source = forge.receipt.reports.first()?.source.clone();
    if let Some(path) = source.strip_prefix("artifact:") {
        let artifact = forge
            .result()?
            .artifacts
            .iter_mut()
            .find(|a| a.path == path)?;
        artifact.content = bytes.to_vec();
    } else {
        let step: usize = source.strip_prefix("stdout:")?.parse().ok()?;
        forge.result()?.steps.get_mut(step.checked_sub(1)?)?.stdout = bytes.to_vec();
    }
    forge.receipt.reports.first_mut()?.sha256 = plimsoll_record::Digest::of(bytes).to_hex();
    forge.test_result.configuration = crate::make::configuration(
        &forge.receipt.workflow,
        &forge.receipt.config,
        &forge.receipt.reports,
    );
    Some(())
}

/// The first report with the same tests, one of them failed; without a report
/// the steps fail.
fn fail_a_test(forge: &mut Forge) -> Option<()> {
    let passed = forge.test_result.passed.clone();
    let text = match forge
        .receipt
        .reports
        .first()
        .map(|report| report.format.as_str())
    {
        Some("junit") => {
            let cases: String = passed
                .iter()
                .map(|_| "<testcase name=\"t\"><failure/></testcase>")
                .collect();
            format!("<testsuites>{cases}</testsuites>\n")
        }
        Some(_) => {
            let count = passed.len();
            let lines: String = (1..=count).map(|n| format!("not ok {n} - t\n")).collect();
            format!("TAP version 13\n{lines}1..{count}\n")
        }
        None => {
            forge.result()?.steps.first_mut()?.exit_code = 1;
            return Some(());
        }
    };
    report(forge, text.as_bytes())
}

/// One call in the BOM, two in the bundle.
fn second_call(original: &Original) -> Option<Folder> {
    let made = again(original, |_| Some(()))?;
    let mut parts = Forge {
        request: original.run.request.clone(),
        response: original.run.response.clone(),
        receipt: original.receipt.predicate.clone(),
        test_result: original.test_result.predicate.clone(),
        keep_subjects: false,
        last: |_| {},
    };
    Some(Folder {
        bundle: forge::bundle(&mut parts, &original.key, 2)?,
        ..made
    })
}
