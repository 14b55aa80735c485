//! What the page shows, as named texts for its template.
//!
//! The page's script makes the same from the evidence alone and refuses the
//! page when a character differs: `script/11_view.js` is the other half.

use plimsoll_attestation::Line;
use plimsoll_wire::proto::{self, RunResponse, run_response::Result as RunResult};
use serde_json::{Map, Value, json};

use super::show::{excerpt, grouped, micros, millis, moment, or_nothing};
use crate::{
    Evidence, Facts,
    facts::{StepFacts, TestClass, TestFacts},
};

/// Tiers, weakest first.
const TIERS: [&str; 5] = ["none", "process", "container", "kernel", "vm"];
/// Beyond this many a list of tests that need no look is closed at first.
const OPEN_TESTS: usize = 30;
/// Beyond this many a list of tests is cut.
const SHOWN_TESTS: usize = 5000;
/// Beyond this many the list of files is closed at first.
const OPEN_FILES: usize = 40;
/// How many failed tests are named beside the result.
const FAILING: usize = 5;
/// Bytes of a stream's beginning and end that are shown.
const STREAM: (usize, usize) = (4096, 12_288);
/// Bytes of the BOM's beginning and end that are shown.
const BOM: (usize, usize) = (49_152, 16_384);

/// The view of a receipt.
pub fn of(facts: &Facts, evidence: &Evidence) -> Value {
    let project = project(evidence);
    let mut view = Map::new();
    for part in [
        heading(facts),
        tests(facts, &project),
        run(facts, &project),
        change(facts),
        files(facts),
        digests(facts, evidence),
    ] {
        if let Value::Object(part) = part {
            view.extend(part);
        }
    }
    Value::Object(view)
}

fn heading(facts: &Facts) -> Value {
    let name = facts.repository.splitn(4, '/').nth(3).unwrap_or_default();
    json!({
        "result": facts.result,
        "class": facts.result.to_lowercase(),
        "repository": facts.repository,
        "repository_name": if name.is_empty() { &facts.repository } else { name },
        "number": facts.pull_request.to_string(),
        "head_sha": facts.head_sha,
        "head_short": short(&facts.head_sha),
        "commit_short": short(&facts.commit_sha),
        "merge": facts.tested_kind == "merge",
    })
}

fn short(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The parts of the signed answer that the facts give by digest only.
#[derive(Default)]
struct Project {
    streams: Vec<[Vec<u8>; 2]>,
    artifacts_truncated: bool,
}

/// What the call's line holds; nothing when it cannot be read, which the
/// page's own check then says.
fn project(evidence: &Evidence) -> Project {
    let line = evidence.bundle.split('\n').next().unwrap_or_default();
    let response = Line::decode(line.as_bytes())
        .ok()
        .and_then(|line| line.response)
        .and_then(|bytes| proto::decode::<RunResponse>(&bytes).ok());
    let Some(RunResult::Project(result)) = response.and_then(|response| response.result) else {
        return Project::default();
    };
    Project {
        artifacts_truncated: result.artifacts_truncated,
        streams: result
            .steps
            .into_iter()
            .map(|step| [step.stdout, step.stderr])
            .collect(),
    }
}

fn tests(facts: &Facts, project: &Project) -> Value {
    let counts = &facts.counts;
    let groups: Vec<Value> = [
        TestClass::Failed,
        TestClass::Warned,
        TestClass::Passed,
        TestClass::Skipped,
    ]
    .into_iter()
    .filter_map(|class| group(facts, class))
    .collect();
    let failing: Vec<Value> = of_class(facts, TestClass::Failed)
        .take(FAILING)
        .map(|test| json!({"name": test.name}))
        .collect();
    let failed = of_class(facts, TestClass::Failed).count();
    let reports: Vec<Value> = facts
        .reports
        .iter()
        .map(|report| {
            json!({
                "source": report.source,
                "format": report.format,
                "step": report.step.to_string(),
                "sha256": report.sha256,
            })
        })
        .collect();
    json!({
        "passed": grouped(counts.passed),
        "warned": grouped(counts.warned),
        "failed": grouped(counts.failed),
        "skipped": grouped(counts.skipped),
        "counts": by_class(facts)
            .iter()
            .map(|(name, count)| {
                json!({
                    "class": if *count == 0 { "zero" } else { name },
                    "name": name,
                    "count": grouped(count),
                })
            })
            .collect::<Vec<_>>(),
        "failing": failing,
        "failing_more": or_nothing(failed.saturating_sub(FAILING) as u64),
        "bar": bar(facts),
        "reasons": reasons(facts, project),
        "groups": groups,
        "reports": reports,
    })
}

fn of_class(facts: &Facts, class: TestClass) -> impl Iterator<Item = &TestFacts> {
    facts.tests.iter().filter(move |test| test.class == class)
}

/// The tests of one class; `None` when there are none.
fn group(facts: &Facts, class: TestClass) -> Option<Value> {
    let count = of_class(facts, class).count();
    if count == 0 {
        return None;
    }
    let tests: Vec<Value> = of_class(facts, class)
        .take(SHOWN_TESTS)
        .map(|test| {
            let took = test.duration_us.map(micros).unwrap_or_default();
            json!({"name": test.name, "took": took})
        })
        .collect();
    let look = matches!(class, TestClass::Failed | TestClass::Warned);
    Some(json!({
        "class": class.name(),
        "count": grouped(count),
        "noun": if count == 1 { "test" } else { "tests" },
        "open": look || count <= OPEN_TESTS,
        "tests": tests,
        "more": or_nothing(count.saturating_sub(SHOWN_TESTS) as u64),
    }))
}

fn by_class(facts: &Facts) -> [(&'static str, u64); 4] {
    let counts = &facts.counts;
    [
        ("passed", counts.passed),
        ("warned", counts.warned),
        ("failed", counts.failed),
        ("skipped", counts.skipped),
    ]
}

/// Each class's share of a bar 1000 wide.
fn bar(facts: &Facts) -> Vec<Value> {
    let parts = by_class(facts);
    let total: u128 = parts.iter().map(|(_, count)| u128::from(*count)).sum();
    let at = |before: u128| (before * 1000).checked_div(total).unwrap_or(0);
    let mut before = 0;
    let mut out = Vec::new();
    for (class, count) in parts {
        let from = at(before);
        before += u128::from(count);
        let to = at(before);
        if to > from {
            out.push(
                json!({"class": class, "x": from.to_string(), "width": (to - from).to_string()}),
            );
        }
    }
    out
}

/// Why a result is what it is when no single test says so.
fn reasons(facts: &Facts, project: &Project) -> Vec<Value> {
    let mut out = Vec::new();
    if facts.run.outcome != "completed" {
        out.push(outcome_means(&facts.run.outcome).to_owned());
    }
    for (n, step) in (1..).zip(&facts.steps) {
        if step.timed_out {
            out.push(format!("Step {n} was ended by its time budget."));
        } else if step.exit_code != 0 {
            out.push(format!("Step {n} ended with exit code {}.", step.exit_code));
        }
    }
    if project.artifacts_truncated {
        out.push("The files the run gave back were cut.".to_owned());
    }
    if facts.counts.passed == 0 {
        out.push("No test passed.".to_owned());
    }
    out.into_iter()
        .map(|reason| json!({"reason": reason}))
        .collect()
}

fn outcome_means(outcome: &str) -> &'static str {
    match outcome {
        "completed" => "The run completed.",
        "setup_failed" => "The run failed while it was set up.",
        "timed_out" => "The run was ended by its time budget.",
        "protocol_error" => "The run ended without an answer that could be read.",
        _ => "How the run ended is not stated.",
    }
}

fn tier_means(tier: &str) -> &'static str {
    match tier {
        "none" => "The code ran with nothing between it and the machine.",
        "process" => "A process of its own, and limits the process itself enforces.",
        "container" => "A container: its own view of the system, and the kernel of the machine.",
        "kernel" => "A kernel of its own between the code and the kernel of the machine.",
        "vm" => "A virtual machine of its own.",
        _ => "A word this page does not know: it counts as weaker than none.",
    }
}

fn run(facts: &Facts, project: &Project) -> Value {
    let run = &facts.run;
    let empty = [Vec::new(), Vec::new()];
    let steps: Vec<Value> = facts
        .steps
        .iter()
        .enumerate()
        .map(|(i, facts)| step(i + 1, facts, project.streams.get(i).unwrap_or(&empty)))
        .collect();
    let tiers: Vec<Value> = TIERS
        .iter()
        .map(|name| json!({"name": name, "here": *name == run.tier}))
        .collect();
    json!({
        "tier": run.tier,
        "tier_means": tier_means(&run.tier),
        "tiers": tiers,
        "floor": if run.floor == "none" { "" } else { &run.floor },
        "provider": run.provider,
        "software": run.software_identity,
        "rule": run.software_rule_id,
        "environment": run.environment,
        "policy": run.policy,
        "started": moment(run.started_unix_ms),
        "ended": moment(run.ended_unix_ms),
        "took": millis(run.ended_unix_ms.saturating_sub(run.started_unix_ms)),
        "timeout": if run.timeout_ms == 0 { "is the provider’s own".to_owned() } else { millis(run.timeout_ms) },
        "outcome_means": outcome_means(&run.outcome),
        "steps": steps,
    })
}

fn step(n: usize, step: &StepFacts, streams: &[Vec<u8>; 2]) -> Value {
    let [stdout, stderr] = streams;
    let streams: Vec<Value> = [
        ("Standard output", &step.stdout, stdout),
        ("Standard error", &step.stderr, stderr),
    ]
    .into_iter()
    .map(|(label, facts, bytes)| {
        let (text, omitted) = excerpt(bytes, STREAM.0, STREAM.1);
        json!({
            "label": label,
            "bytes": grouped(facts.bytes),
            "truncated": facts.truncated,
            "shown": facts.bytes > 0,
            "sha256": facts.sha256,
            "text": text,
            "omitted": omitted,
        })
    })
    .collect();
    let failed = step.timed_out || step.exit_code != 0;
    json!({
        "n": n.to_string(),
        "command": step.command,
        "class": if failed { "failed" } else { "passed" },
        "ended": if step.timed_out { "timed out".to_owned() } else { format!("exit {}", step.exit_code) },
        "took": millis(step.duration_ms),
        "streams": streams,
    })
}

fn change(facts: &Facts) -> Value {
    let workflow = &facts.workflow;
    json!({
        "head_repository": facts.head_repository,
        "base_ref": facts.base_ref,
        "base_sha": facts.base_sha,
        "commit_sha": facts.commit_sha,
        "tree_sha": facts.tree_sha,
        "config_means": match facts.config_source.as_str() {
            "base" => "the configuration file of the base commit",
            "tested" => "the configuration file of the tested commit, which the pull request can change",
            "workflow" => "flags in the workflow file",
            other => other,
        },
        "config_blob": facts.config_blob,
        "workflow_path": workflow.path,
        "workflow_blob": workflow.git_blob,
        "event": workflow.event,
        "run_id": workflow.run_id.to_string(),
        "run_attempt": workflow.run_attempt.to_string(),
        "run_url": workflow.run_url,
        "created": moment(i64::try_from(facts.created_unix_ms).unwrap_or(i64::MAX)),
    })
}

fn files(facts: &Facts) -> Value {
    let (sent, left_out) = (facts.files.len(), facts.left_out.len());
    let rows: Vec<Value> = facts
        .files
        .iter()
        .map(|file| json!({"path": file.path, "bytes": grouped(file.bytes), "git_blob": file.git_blob}))
        .collect();
    let left: Vec<Value> = facts
        .left_out
        .iter()
        .map(|item| {
            json!({"path": item.path, "reason_means": reason_means(&item.reason), "git_blob": item.git_blob})
        })
        .collect();
    let added: Vec<Value> = facts
        .added
        .iter()
        .map(|file| {
            json!({
                "path": file.path,
                "bytes": grouped(file.bytes),
                "sha256": file.sha256,
                "over": file.over_left_out,
            })
        })
        .collect();
    let changed: Vec<Value> = facts
        .tests_changed
        .iter()
        .map(|path| json!({"path": path}))
        .collect();
    json!({
        "sent": grouped(sent),
        "in_commit": grouped(sent + left_out),
        "few_files": sent <= OPEN_FILES,
        "executable": or_nothing(facts.executable),
        "files": rows,
        "left_out_count": or_nothing(left_out as u64),
        "left_out": left,
        "added_count": or_nothing(added.len() as u64),
        "added": added,
        "changed_count": or_nothing(listed(&facts.tests_changed)),
        "changed": changed,
    })
}

fn reason_means(reason: &str) -> &str {
    match reason {
        "not-utf8" => "not UTF-8 text, which is all that can be sent",
        "symlink" => "a symbolic link",
        "submodule" => "a submodule",
        "configured" => "excluded by the configuration",
        "path" => "a path that cannot be sent",
        "too-large" => "over the size limit of a file",
        other => other,
    }
}

/// How many things a list stands for whose last entry may say `…and n more`.
fn listed(names: &[String]) -> u64 {
    let more = names.last().and_then(|last| {
        let digits = last.strip_prefix("…and ")?.strip_suffix(" more")?;
        let formed = digits.len() <= 9
            && digits.bytes().all(|byte| byte.is_ascii_digit())
            && !digits.starts_with('0');
        formed.then(|| digits.parse::<u64>().ok()).flatten()
    });
    match more {
        Some(more) => (names.len() as u64 - 1).saturating_add(more),
        None => names.len() as u64,
    }
}

fn digests(facts: &Facts, evidence: &Evidence) -> Value {
    let (bom_text, bom_omitted) = excerpt(evidence.bom.as_bytes(), BOM.0, BOM.1);
    json!({
        "key_id": facts.key_id,
        "ephemeral": facts.key_kind == "ephemeral",
        "record_sha256": facts.run.record_sha256,
        "request_sha256": facts.run.request_sha256,
        "result_sha256": facts.run.result_sha256,
        "entry_sha256": facts.run.entry_sha256,
        "bundle_sha256": facts.bundle_sha256,
        "manifest_sha256": facts.manifest_sha256,
        "test_result_sha256": facts.test_result_sha256,
        "receipt_sha256": facts.receipt_sha256,
        "bom_sha256": facts.bom_sha256,
        "serial_number": facts.serial_number,
        "bom_bytes": grouped(evidence.bom.len()),
        "bom_shown": !evidence.bom.is_empty(),
        "bom_text": bom_text,
        "bom_omitted": bom_omitted,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_list_counts_what_it_left_out() {
        let list = |last: &str| vec!["a".to_owned(), last.to_owned()];
        assert_eq!(listed(&list("…and 12 more")), 13);
        for last in [
            "b",
            "…and 012 more",
            "…and  more",
            "…and 1234567890 more",
            "…and -1 more",
        ] {
            assert_eq!(listed(&list(last)), 2, "{last}");
        }
        assert_eq!(listed(&[]), 0);
    }

    #[test]
    fn a_bar_is_whole_and_has_no_empty_part() {
        let mut facts = Facts::default();
        assert!(bar(&facts).is_empty());
        facts.counts.passed = 2;
        facts.counts.failed = 1;
        assert_eq!(
            Value::from(bar(&facts)),
            json!([
                {"class": "passed", "x": "0", "width": "666"},
                {"class": "failed", "x": "666", "width": "334"},
            ])
        );
    }
}
