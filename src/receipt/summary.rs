//! The Markdown summary of a CI job.

use std::fmt::Write as _;

use crate::{
    escape::code,
    facts::{Facts, TestClass},
    show::{LIMITS, TIER_SHORT},
};

/// Largest summary; a CI service drops one over its own cap whole.
pub const MAX_BYTES: usize = 256 << 10;
/// Rows of a list before the rest is counted.
const ROWS: usize = 20;

/// The summary. Foreign text stands in code spans alone.
#[must_use]
pub fn markdown(facts: &Facts) -> String {
    let mut out = String::new();
    heading(&mut out, facts);
    table(&mut out, facts);
    failed(&mut out, facts);
    remarks(&mut out, facts);
    files(&mut out, facts);
    changed(&mut out, facts);
    let _ = writeln!(out, "{LIMITS}\n");
    commands(&mut out, facts);
    if out.len() > MAX_BYTES {
        // Rows and names are bounded, so this does not happen; a summary that
        // is dropped whole would say less than this.
        out = String::new();
        heading(&mut out, facts);
        let _ = writeln!(
            out,
            "The summary is too large to be shown; the page of the receipt has it.\n"
        );
        commands(&mut out, facts);
    }
    out
}

fn heading(out: &mut String, facts: &Facts) {
    let counts = &facts.counts;
    let _ = writeln!(
        out,
        "## plimsoll receipt: {}\n\n{} passed, {} warned, {} failed, {} skipped\n",
        facts.result, counts.passed, counts.warned, counts.failed, counts.skipped
    );
}

fn table(out: &mut String, facts: &Facts) {
    let run = &facts.run;
    let ms = run.ended_unix_ms.saturating_sub(run.started_unix_ms).max(0);
    let manifest = match run.software_identity.as_str() {
        "" => "manifest not stated".to_owned(),
        identity => code(identity),
    };
    let environment = match run.environment.as_str() {
        "" => "not stated".to_owned(),
        identity => code(identity),
    };
    let config = match facts.config_blob.as_str() {
        "" => "flags in the workflow".to_owned(),
        blob => format!(
            "file of the {} commit, blob {}",
            facts.config_source,
            code(blob)
        ),
    };
    let key = match facts.key_kind.as_str() {
        "ephemeral" => "made in this job, as the receipt states",
        _ => "from a file, as the receipt states",
    };
    for (name, value) in [
        ("", String::new()),
        ("---", "---".to_owned()),
        (
            "pull request",
            format!("{} #{}", code(&facts.repository), facts.pull_request),
        ),
        ("head", code(&facts.head_sha)),
        (
            "tested",
            format!("{} {}", facts.tested_kind, code(&facts.commit_sha)),
        ),
        (
            "base",
            format!("{} at {}", code(&facts.base_ref), code(&facts.base_sha)),
        ),
        ("tier", format!("{} ({TIER_SHORT})", code(&run.tier))),
        ("provider", code(&run.provider)),
        ("image", format!("{manifest}; environment {environment}")),
        (
            "run",
            format!("{}, {}.{:03} s", code(&run.outcome), ms / 1000, ms % 1000),
        ),
        ("commands from", config),
        (
            "files",
            format!(
                "{} from the commit, {} left out, {} added",
                facts.files.len(),
                facts.left_out.len(),
                facts.added.len()
            ),
        ),
        ("key", format!("{} {key}", code(&facts.key_id))),
        ("BOM SHA-256", code(&facts.bom_sha256)),
    ] {
        let _ = writeln!(out, "| {name} | {value} |");
    }
    out.push('\n');
}

/// A list of at most [`ROWS`] rows.
fn list(out: &mut String, title: &str, rows: &[String]) {
    if rows.is_empty() {
        return;
    }
    let _ = writeln!(out, "### {title}\n");
    for row in rows.iter().take(ROWS) {
        let _ = writeln!(out, "- {row}");
    }
    if let Some(more) = rows.len().checked_sub(ROWS).filter(|n| *n > 0) {
        let _ = writeln!(out, "- …and {more} more");
    }
    out.push('\n');
}

fn failed(out: &mut String, facts: &Facts) {
    let rows: Vec<String> = facts
        .tests
        .iter()
        .filter(|test| test.class == TestClass::Failed)
        .map(|test| code(&test.name))
        .collect();
    list(out, "Failed tests", &rows);
}

fn remarks(out: &mut String, facts: &Facts) {
    let rows: Vec<String> = facts.remarks.iter().map(|text| code(text)).collect();
    list(out, "Remarks", &rows);
}

fn files(out: &mut String, facts: &Facts) {
    let replaced: Vec<String> = facts
        .added
        .iter()
        .filter(|file| file.over_left_out)
        .map(|file| {
            format!(
                "{} stands where a file of the commit was left out",
                code(&file.path)
            )
        })
        .collect();
    list(
        out,
        "Files that are not of the commit in the place of files that are",
        &replaced,
    );
    let left_out: Vec<String> = facts
        .left_out
        .iter()
        .map(|file| format!("{} {}", code(&file.path), file.reason))
        .collect();
    list(out, "Files left out", &left_out);
    let added: Vec<String> = facts
        .added
        .iter()
        .map(|file| format!("{} SHA-256 {}", code(&file.path), code(&file.sha256)))
        .collect();
    list(out, "Files added that are not of the commit", &added);
}

fn changed(out: &mut String, facts: &Facts) {
    let rows: Vec<String> = facts.tests_changed.iter().map(|path| code(path)).collect();
    list(out, "Test files this pull request changes", &rows);
}

/// What a reviewer runs. Nothing but numbers and hex digits of ours is in it.
fn commands(out: &mut String, facts: &Facts) {
    let head: String = facts
        .head_sha
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    let key: String = facts
        .key_id
        .chars()
        .filter(char::is_ascii_hexdigit)
        .collect();
    let _ = writeln!(
        out,
        "To check it, download the artifact and run, in a clone of the repository:\n\n```sh\ngit fetch origin \
         pull/{}/head\nplimsoll-attest pr-receipt verify --repo . --head {head} --keyid {key} \
         plimsoll-receipt/\n```",
        facts.pull_request
    );
}
