//! A receipt in the terminal's words and in JSON members.

use std::{fmt::Write as _, path::Path};

use plimsoll_console::{JsonObject, escape};
use plimsoll_receipt::{Facts, show::TIER_SHORT};

/// Twelve characters of a digest.
fn short(digest: &str) -> String {
    let kept: String = digest.chars().take(12).collect();
    if kept.len() < digest.len() {
        kept + "…"
    } else {
        kept
    }
}

/// The pull request as `owner/name#7`.
pub fn name(facts: &Facts) -> String {
    let path = facts
        .repository
        .splitn(4, '/')
        .nth(3)
        .unwrap_or(&facts.repository);
    format!("{}#{}", escape::line_cut(path, 60), facts.pull_request)
}

/// The table of a receipt.
pub fn table(facts: &Facts, workflow: &str) -> String {
    let counts = &facts.counts;
    let run = &facts.run;
    let ms = run.ended_unix_ms.saturating_sub(run.started_unix_ms).max(0);
    let mut out = String::new();
    let _ = writeln!(
        out,
        "plimsoll receipt   {}   head {}",
        name(facts),
        short(&facts.head_sha)
    );
    let mut row = |label: &str, text: String| {
        let _ = writeln!(out, "{label:<10}{text}");
    };
    row(
        "result",
        format!(
            "{:<9}{} passed  {} warned  {} failed  {} skipped      {}.{:02} s",
            facts.result,
            counts.passed,
            counts.warned,
            counts.failed,
            counts.skipped,
            ms / 1000,
            ms % 1000 / 10
        ),
    );
    row(
        "tier",
        format!("{:<9}{TIER_SHORT}", escape::line_cut(&run.tier, 20)),
    );
    row("image", image(&run.software_identity));
    let left_out: Vec<String> = facts
        .left_out
        .iter()
        .take(3)
        .map(|file| format!("{}: {}", file.reason, escape::line_cut(&file.path, 40)))
        .collect();
    let left_out = match left_out.as_slice() {
        [] => String::new(),
        some => format!(
            " ({}{})",
            some.join(", "),
            if facts.left_out.len() > some.len() {
                ", …"
            } else {
                ""
            }
        ),
    };
    row(
        "files",
        format!(
            "{} of {} from the commit   excluded {}{left_out}   added {}",
            facts.files.len(),
            facts.files.len() + facts.left_out.len(),
            facts.left_out.len(),
            facts.added.len()
        ),
    );
    row(
        "changed",
        format!(
            "test files {}   workflow {workflow}",
            facts.tests_changed.len()
        ),
    );
    let key = match facts.key_kind.as_str() {
        "ephemeral" => "made in the job, as it states",
        _ => "from a file, as it states",
    };
    row(
        "signed",
        format!(
            "key {} {key}; BOM sha256 {}",
            short(&facts.key_id),
            short(&facts.bom_sha256)
        ),
    );
    for remark in facts.remarks.iter().take(10) {
        row("remark", escape::line_cut(remark, 90));
    }
    for file in facts
        .added
        .iter()
        .filter(|file| file.over_left_out)
        .take(20)
    {
        row(
            "replaced",
            format!(
                "{} is not of the commit and stands where its file was left out",
                escape::line_cut(&file.path, 40)
            ),
        );
    }
    out
}

fn image(identity: &str) -> String {
    match identity
        .strip_prefix("oci-manifest:")
        .and_then(|rest| rest.split_once('@'))
    {
        _ if identity.is_empty() => "manifest: not stated".to_owned(),
        Some((platform, digest)) => {
            let digest = digest.strip_prefix("sha256:").unwrap_or(digest);
            format!(
                "{} manifest sha256:{}",
                escape::line_cut(platform, 30),
                escape::line(short(digest))
            )
        }
        None => escape::line_cut(identity, 80),
    }
}

/// The members every receipt command's object has.
pub fn members(path: &Path, facts: &Facts) -> JsonObject {
    JsonObject::new()
        .with("receipt", &path.to_string_lossy())
        .with("result", &facts.result)
        .with("passed", &facts.counts.passed)
        .with("warned", &facts.counts.warned)
        .with("failed", &facts.counts.failed)
        .with("skipped", &facts.counts.skipped)
        .with("isolation", &facts.run.tier)
        .with("key_id", &facts.key_id)
        .with("key_kind", &facts.key_kind)
        .with("bom_sha256", &facts.bom_sha256)
}
