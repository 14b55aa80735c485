//! The report as one HTML page: readable without script or style, no network.
//!
//! It shows the facts and carries the evidence. Its script, bound by digest in
//! the page's own content security policy, verifies the evidence in the
//! reader's browser, writes the whole page again from it and compares: one
//! changed character is refused. Whoever can rewrite the page can rewrite that
//! check too, which the page says; it names the command that counts.

mod show;
mod template;
mod view;

use std::sync::LazyLock;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::{Evidence, Facts};

/// The form of the evidence inside the page.
const FORMAT: &str = "plimsoll-attest/pr-receipt-page/v1";

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");

/// The script's parts, in order.
const PARTS: [&str; 14] = [
    include_str!("script/00_cover.js"),
    include_str!("script/01_bytes.js"),
    include_str!("script/02_json.js"),
    include_str!("script/03_signature.js"),
    include_str!("script/04_messages.js"),
    include_str!("script/05_bundle.js"),
    include_str!("script/06_receipt.js"),
    include_str!("script/07_junit.js"),
    include_str!("script/08_tap.js"),
    include_str!("script/09_outcome.js"),
    include_str!("script/10_bom.js"),
    include_str!("script/11_view.js"),
    include_str!("script/12_template.js"),
    include_str!("script/13_page.js"),
];

/// The script: its parts, and what it must know of the rest of the page.
static SCRIPT: LazyLock<String> = LazyLock::new(|| {
    let style = hex::encode(Sha256::digest(STYLE));
    format!(
        "\n\"use strict\";\n(() => {{\nconst FORMAT = {};\nconst STYLE_SHA256 = \"{style}\";\nconst TEMPLATE = {};\n{}}})();\n",
        ascii_json(&json!(FORMAT)),
        ascii_json(&json!(TEMPLATE)),
        PARTS.join("\n"),
    )
});

/// The page: shows the facts, carries the evidence.
#[must_use]
pub fn html(facts: &Facts, evidence: &Evidence) -> String {
    let mut view = view::of(facts, evidence);
    if let Value::Object(view) = &mut view {
        view.insert("csp".to_owned(), policy().into());
        view.insert("style".to_owned(), STYLE.into());
        view.insert("script".to_owned(), SCRIPT.as_str().into());
        view.insert("island".to_owned(), island(evidence).into());
    }
    template::render(TEMPLATE, &view).unwrap_or_else(|fault| {
        // Excluded by a test: the template and the view are both ours.
        format!("<!DOCTYPE html>\n<title>plimsoll receipt</title>\n<p>{fault}</p>\n")
    })
}

/// Nothing is loaded; only this script and this style act.
fn policy() -> String {
    format!(
        "default-src 'none'; script-src {}; style-src {}; base-uri 'none'; form-action 'none'",
        source(&SCRIPT),
        source(STYLE)
    )
}

fn source(text: &str) -> String {
    format!("'sha256-{}'", STANDARD.encode(Sha256::digest(text)))
}

/// The evidence as the script reads it, members in this order.
fn island(evidence: &Evidence) -> String {
    let members = [
        ("format", FORMAT),
        ("bundle", &evidence.bundle),
        ("test_result", &evidence.test_result),
        ("receipt", &evidence.receipt),
        ("public_key", &evidence.public_key),
        ("bom", &evidence.bom),
    ]
    .map(|(name, text)| format!("\"{name}\":{}", ascii_json(&json!(text))));
    format!("{{{}}}", members.join(","))
}

/// JSON of nothing but ASCII, and without the characters that could end a
/// script or begin mark-up.
fn ascii_json(value: &Value) -> String {
    use std::fmt::Write as _;
    let text = value.to_string();
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_ascii() && !matches!(c, '<' | '>' | '&') && c != '\u{7f}' {
            out.push(c);
        } else {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                let _ = write!(out, "\\u{unit:04x}");
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_and_the_view_fit() {
        let page = html(&Facts::default(), &Evidence::default());
        assert!(page.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"));
        assert!(page.ends_with("</html>\n"));
        assert_eq!(page.matches("<script").count(), 2);
        assert_eq!(page.matches("</script").count(), 2);
        let (visible, _) = page.split_once("<script").unwrap_or_default();
        assert!(visible.contains("</footer>") && !visible.contains("{{"));
    }

    #[test]
    fn the_evidence_cannot_end_its_own_script() {
        let evidence = Evidence {
            bom: "</script><!-- \u{202e}\u{1f600}\u{7f}".to_owned(),
            ..Evidence::default()
        };
        let island = island(&evidence);
        assert!(island.is_ascii());
        assert!(!island.contains(['<', '>', '&']));
        let read: Value = serde_json::from_str(&island).unwrap_or_default();
        assert_eq!(read["bom"], evidence.bom);
    }

    #[test]
    fn the_script_can_stand_in_a_page() {
        for part in PARTS {
            let lower = part.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("<!--"));
        }
        assert!(!STYLE.contains('<'));
    }
}
