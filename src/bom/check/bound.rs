//! What a receipt's statements say of the call, decided from the evidence.
//!
//! The statements are attached as they were signed, so that rebuilding the BOM
//! says nothing about them. Here every value that the call's line, the other
//! statement or the bundle decides is compared. What needs the repository is
//! `pr-receipt verify`'s to decide, and [`super::Checked::not_established`]
//! names it.

use std::collections::HashSet;

use plimsoll_attestation::{
    Line, PublicKey,
    own::{self, Wanted},
};
use plimsoll_record::Digest;
use plimsoll_wire::proto::{
    self, ProjectFile, ProjectResult, RunRequest, RunResponse, run_request::Payload,
    run_response::Result as RunResult,
};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{
    bundle::Bundle,
    facts::git_blob,
    fault::{BomError, Code, Refusal},
    lines::{Store, verified},
    manifest::manifest,
    receipt::{RECEIPT_TYPE, Receipt, Report, TEST_RESULT_TYPE},
    subject::Tested,
};

/// Where a receipt's configuration lies in its repository.
const CONFIG_PATH: &str = ".plimsoll/receipt.toml";

/// Most names that a test result lists before it is cut.
const MAX_NAMES: usize = 10_000;

/// Members of a receipt's predicate that no bundle decides.
pub(super) const NEEDS_THE_REPOSITORY: [&str; 8] = [
    "pull_request",
    "tested.commit_sha",
    "tested.executable",
    "tested.excluded",
    "config",
    "tests_changed",
    "workflow",
    "summary",
];

/// Compares what the statements state with the call's line, with each other
/// and, where there is one, with the bundle. `place` says where a statement
/// stands that is attached to a BOM.
///
/// # Errors
/// `binding_mismatch` for the first value that names something else.
pub(crate) fn statements(
    key: &PublicKey,
    tested: &Tested,
    store: &dyn Store,
    bundle: Option<&Bundle<'_>>,
    place: &dyn Fn(&str) -> Option<String>,
) -> Result<(), BomError> {
    let refuse = |role: &str, fact: &str, stated: &str, found: &str| -> BomError {
        let refusal = Refusal::new(Code::BindingMismatch, fact)
            .expected(stated)
            .found(found);
        match place(role) {
            Some(pointer) => refusal.at(pointer).into(),
            None => refusal.into(),
        }
    };
    let bytes = verified(store, &tested.call.line)?;
    let line = Line::decode(&bytes)?;
    let lost = || refuse("pr-receipt", "the call is no project", "a project", "none");
    let request: RunRequest =
        proto::decode(line.request.as_deref().unwrap_or_default()).map_err(|_| lost())?;
    let response: RunResponse =
        proto::decode(line.response.as_deref().unwrap_or_default()).map_err(|_| lost())?;
    let (Some(Payload::Project(run)), Some(RunResult::Project(result))) =
        (&request.payload, &response.result)
    else {
        return Err(lost());
    };
    let receipt = &tested.receipt;
    let entry = line.digests().content.map(|digest| digest.to_hex());
    let entry = entry.unwrap_or_default();
    let mut stated = of_receipt(receipt, &entry, tested.call.record.ended_unix_ms);
    stated.extend(of_files(receipt, &run.files));
    for report in &receipt.reports {
        stated.extend(of_report(report, result));
    }
    for (fact, stated, found) in stated {
        if stated != found {
            return Err(refuse("pr-receipt", fact, &stated, &found));
        }
    }
    let [test_result, envelope] = &tested.statements;
    let opened = own::open(&test_result.envelope, key, Wanted::Type(TEST_RESULT_TYPE))?;
    for (fact, stated, found) in of_test_result(receipt, &opened.payload) {
        if stated != found {
            return Err(refuse("test-result", fact, &stated, &found));
        }
    }
    let opened = own::open_receipt(&envelope.envelope, key, RECEIPT_TYPE)?;
    let mut expected = subjects(receipt);
    expected.push(json!({"name": "bundle.jsonl", "digest": {"sha256": receipt.bundle_sha256}}));
    let (stated, expected) = (subjects_of(&opened.payload), Value::Array(expected));
    if stated != expected {
        let fact = "the receipt's subjects are not those of its predicate";
        return Err(refuse(
            "pr-receipt",
            fact,
            &expected.to_string(),
            &stated.to_string(),
        ));
    }
    if let Some(bundle) = bundle
        && !bundle.began_as(&receipt.bundle_sha256, tested.call.line.number)?
    {
        return Err(refuse(
            "pr-receipt",
            "the receipt names another bundle, and this one has not grown from it",
            &receipt.bundle_sha256,
            "no such beginning",
        ));
    }
    Ok(())
}

/// A fact of its refusal, what is stated and what is there.
type Stated = (&'static str, String, String);

/// One that either holds or does not.
fn holds(fact: &'static str, holds: bool, stated: impl ToString, found: impl ToString) -> Stated {
    let stated = stated.to_string();
    let found = if holds {
        stated.clone()
    } else {
        found.to_string()
    };
    (fact, stated, found)
}

fn of_receipt(receipt: &Receipt, entry: &str, ended: i64) -> Vec<Stated> {
    let (tested, head) = (&receipt.tested, &receipt.pull_request.head_sha);
    vec![
        (
            "the receipt names another line's content",
            receipt.run.entry_sha256.clone(),
            entry.to_owned(),
        ),
        holds(
            "the receipt was made before the run ended",
            receipt.created_unix_ms >= ended,
            receipt.created_unix_ms,
            ended,
        ),
        holds(
            "what was tested is neither head nor merge",
            ["head", "merge"].contains(&tested.kind.as_str()),
            &tested.kind,
            "another word",
        ),
        holds(
            "the tested commit is not the head that is named",
            tested.kind != "head" || tested.commit_sha == *head,
            &tested.commit_sha,
            head,
        ),
        holds(
            "a configuration has a blob exactly when it is a file",
            (receipt.config.source == "workflow") == receipt.config.git_blob.is_empty(),
            &receipt.config.source,
            &receipt.config.git_blob,
        ),
    ]
}

fn of_files(receipt: &Receipt, files: &[ProjectFile]) -> Vec<Stated> {
    let tested = &receipt.tested;
    let added: HashSet<&str> = tested.added.iter().map(|file| file.path.as_str()).collect();
    let mut sent: Vec<&ProjectFile> = files
        .iter()
        .filter(|file| !added.contains(file.path.as_str()))
        .collect();
    sent.sort_by(|a, b| a.path.cmp(&b.path));
    let blob = |file: &ProjectFile| match tested.tree_sha.len() {
        64 => sha256_blob(file.content.as_bytes()),
        _ => git_blob(file.content.as_bytes()),
    };
    let names: Vec<(&str, String, Digest)> = sent
        .iter()
        .map(|file| {
            (
                file.path.as_str(),
                blob(file),
                Digest::of(file.content.as_bytes()),
            )
        })
        .collect();
    let mut stated = vec![(
        "the receipt states another number of files",
        tested.files.to_string(),
        sent.len().to_string(),
    )];
    stated.push((
        "the receipt names other files",
        tested.manifest_sha256.clone(),
        manifest(
            names
                .iter()
                .map(|(path, blob, sha256)| (*path, blob.as_str(), *sha256)),
        )
        .to_hex(),
    ));
    for file in &tested.added {
        let found = files.iter().find(|sent| sent.path == file.path);
        let found = found.map(|sent| Digest::of(sent.content.as_bytes()).to_hex());
        stated.push((
            "a file that is said to be added was not sent so",
            file.sha256.clone(),
            found.unwrap_or_else(|| "no such file".to_owned()),
        ));
    }
    let from_commit = |path: &str| {
        let at = sent.binary_search_by(|file| file.path.as_str().cmp(path));
        at.ok().and_then(|at| sent.get(at))
    };
    for file in &tested.excluded {
        stated.push(holds(
            "a file that is said to be left out was sent",
            from_commit(&file.path).is_none(),
            &file.path,
            "the file",
        ));
    }
    if let Some(file) = from_commit(&receipt.workflow.path) {
        stated.push((
            "the receipt names another workflow file than was sent",
            receipt.workflow.git_blob.clone(),
            blob(file),
        ));
    }
    if let Some(file) = from_commit(CONFIG_PATH).filter(|_| receipt.config.source == "tested") {
        stated.push((
            "the receipt names another configuration than was sent",
            receipt.config.git_blob.clone(),
            blob(file),
        ));
    }
    stated
}

/// Digest and step of a report that the answer holds, or that it holds none.
fn of_report(report: &Report, result: &ProjectResult) -> Vec<Stated> {
    let last = result.steps.len() as u64;
    let (step, found) = match report.source.split_once(':') {
        Some(("artifact", path)) => {
            let artifact = result.artifacts.iter().find(|found| found.path == path);
            (last, artifact.map(|found| Digest::of(&found.content)))
        }
        Some(("stdout", step)) => {
            let step: u64 = step.parse().unwrap_or_default();
            let at = step.checked_sub(1).and_then(|at| usize::try_from(at).ok());
            let found = at.and_then(|at| result.steps.get(at));
            (step, found.map(|found| Digest::of(&found.stdout)))
        }
        _ => (last, None),
    };
    let found = found.map(|digest| digest.to_hex());
    vec![
        (
            "the receipt names another report than the answer holds",
            report.sha256.clone(),
            found.unwrap_or_default(),
        ),
        (
            "the receipt names another step of a report",
            report.step.to_string(),
            step.to_string(),
        ),
        holds(
            "a report is of no known format",
            ["junit", "tap"].contains(&report.format.as_str()),
            &report.format,
            "another word",
        ),
    ]
}

/// The test result, by what the receipt says.
fn of_test_result(receipt: &Receipt, payload: &[u8]) -> Vec<Stated> {
    let value: Value = serde_json::from_slice(payload).unwrap_or_default();
    let predicate = value.get("predicate").cloned().unwrap_or_default();
    let member = |name: &str| predicate.get(name).cloned().unwrap_or_default();
    let mut configuration = Vec::new();
    for (name, blob) in [
        (receipt.workflow.path.as_str(), &receipt.workflow.git_blob),
        (CONFIG_PATH, &receipt.config.git_blob),
    ] {
        if !blob.is_empty() {
            configuration.push(json!({"name": name, "digest": {"gitBlob": blob}}));
        }
    }
    for report in receipt.reports.iter().filter(|r| !r.sha256.is_empty()) {
        let name = report.source.strip_prefix("artifact:");
        let name = name.unwrap_or(&report.source);
        configuration.push(json!({"name": name, "digest": {"sha256": report.sha256}}));
    }
    let url = match receipt.workflow.run_url.as_str() {
        "" => Value::Null,
        url => format!("{url}/attempts/{}", receipt.workflow.run_attempt).into(),
    };
    let pair = |fact, stated: &Value, found: Value| (fact, found.to_string(), stated.to_string());
    let mut stated = vec![
        pair(
            "the test result's subjects are not the receipt's",
            value.get("subject").unwrap_or(&Value::Null),
            Value::Array(subjects(receipt)),
        ),
        pair(
            "the test result is not the receipt's",
            &member("result"),
            receipt.summary.result.as_str().into(),
        ),
        pair(
            "the test result's configuration is not the receipt's",
            &member("configuration"),
            Value::Array(configuration),
        ),
        pair(
            "the test result's page is not the receipt's",
            &member("url"),
            url,
        ),
    ];
    let lists = [
        ("passedTests", receipt.summary.passed),
        ("warnedTests", receipt.summary.warned),
        ("failedTests", receipt.summary.failed),
    ];
    let listed = |name| member(name).as_array().map_or(0, Vec::len);
    // A longer list was cut and says so in words.
    if lists.iter().map(|(name, _)| listed(name)).sum::<usize>() <= MAX_NAMES {
        for (name, count) in lists {
            stated.push((
                "the receipt counts other tests than the test result lists",
                count.to_string(),
                listed(name).to_string(),
            ));
        }
    }
    stated
}

fn subjects_of(payload: &[u8]) -> Value {
    let value: Value = serde_json::from_slice(payload).unwrap_or_default();
    value.get("subject").cloned().unwrap_or_default()
}

/// The subjects that both statements share.
fn subjects(receipt: &Receipt) -> Vec<Value> {
    let pull = format!(
        "git+{}@refs/pull/{}/{}",
        receipt.repository.url, receipt.pull_request.number, receipt.tested.kind
    );
    vec![
        json!({"name": pull, "digest": {"gitCommit": receipt.tested.commit_sha}}),
        json!({"name": "tree", "digest": {"gitTree": receipt.tested.tree_sha}}),
        json!({"name": "run-record", "digest": {"sha256": receipt.run.record_sha256}}),
    ]
}

/// The name of content in a repository of SHA-256.
fn sha256_blob(content: &[u8]) -> String {
    let mut hasher = Sha256::new();
    hasher.update(format!("blob {}\0", content.len()));
    hasher.update(content);
    hex::encode(hasher.finalize())
}
