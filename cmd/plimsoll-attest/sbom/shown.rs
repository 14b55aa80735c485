//! What is said of a BOM.

use std::path::Path;

use plimsoll_attestation::PublicKey;
use plimsoll_bom::{CallFacts, Checked, Kind, QUALIFICATION_SHORT, Scope, Subject};
use plimsoll_console::{Failure, escape};
use plimsoll_record::{Digest, time::utc};
use serde::Serialize;

/// Longest shown form of a foreign value.
const VALUE_CHARS: usize = 48;

/// One BOM in the object for scripts.
#[derive(Serialize)]
pub struct Entry {
    pub file: String,
    pub ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial_number: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub lines: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub records: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bom_sha256: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scope: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub image_name: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_established: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Failure>,
}

impl Entry {
    /// A BOM that is not there or not accepted.
    pub fn refused(file: &Path, failure: &Failure) -> Self {
        Entry {
            file: file.to_string_lossy().into_owned(),
            ok: false,
            serial_number: None,
            kind: None,
            lines: Vec::new(),
            records: Vec::new(),
            bom_sha256: None,
            isolation: None,
            scope: None,
            image_name: None,
            not_established: Vec::new(),
            error: Some(failure.clone()),
        }
    }

    /// A BOM that was written.
    pub fn written(
        file: &Path,
        subject: &Subject,
        serial: &str,
        sha256: Digest,
        scope: Scope,
    ) -> Self {
        let records = subject.calls().iter();
        Entry {
            file: file.to_string_lossy().into_owned(),
            ok: true,
            serial_number: Some(serial.to_owned()),
            kind: Some(subject.kind().word()),
            lines: subject.lines().map(|line| line.number).collect(),
            records: records
                .map(|call| call.record.record_sha256.clone())
                .collect(),
            bom_sha256: Some(sha256.to_hex()),
            isolation: Some(subject.isolation().to_owned()),
            scope: Some(scope.word()),
            image_name: None,
            not_established: Vec::new(),
            error: None,
        }
    }

    /// A BOM that passed its check.
    pub fn checked(file: &Path, checked: &Checked) -> Self {
        Entry {
            file: file.to_string_lossy().into_owned(),
            ok: true,
            serial_number: Some(checked.serial_number.clone()),
            kind: Some(checked.kind.word()),
            lines: checked.lines.clone(),
            records: checked.records.clone(),
            bom_sha256: Some(checked.sha256.to_hex()),
            isolation: Some(checked.isolation.clone()),
            scope: Some(checked.scope.word()),
            image_name: checked.image_name.clone(),
            not_established: checked.not_established(),
            error: None,
        }
    }
}

/// The table about one BOM that was written; whole lines, escaped.
pub fn table(file: &str, subject: &Subject, serial: &str, key: &PublicKey, scope: Scope) -> String {
    let calls = subject.calls();
    let count = |n: usize, one: &str| format!("{n} {one}{}", if n == 1 { "" } else { "s" });
    let sum = |of: &dyn Fn(&CallFacts) -> usize| calls.iter().map(of).sum::<usize>();
    let steps = sum(&|call| call.steps.len());
    let failed = calls
        .iter()
        .flat_map(|call| &call.steps)
        .filter(|step| step.exit.is_some_and(|(code, late)| code != 0 || late))
        .count();
    let exits = match (steps, failed) {
        (0, _) => String::new(),
        (_, 0) => " (all exit 0)".to_owned(),
        (_, failed) => format!(" ({failed} not exit 0)"),
    };
    let established = match scope {
        Scope::Bundle => "whole bundle verified",
        Scope::Line => "this line alone verified; the rest of the file is not established",
    };
    format!(
        "BOM      {file}  ({serial})\n\
         subject  {}\n\
         tier     {}   {QUALIFICATION_SHORT}\n\
         provider {}\n\
         inputs   {}   artifacts {}   steps {steps}{exits}\n\
         signed   key {}  {established}\n",
        described(subject),
        value(subject.isolation()),
        platform(calls),
        count(sum(&|call| call.inputs.len()), "file"),
        sum(&|call| call.artifacts.len()),
        short(key.id()),
    )
}

/// The line about one BOM of many.
pub fn row(file: &str, subject: &Subject, serial: &str) -> String {
    format!(
        "{file}  {serial}  {}  {}\n",
        described(subject),
        value(subject.isolation())
    )
}

/// What a passed check says.
pub fn verdict(file: &str, checked: &Checked, attached: bool) -> String {
    let lines = match checked.lines.as_slice() {
        [one] => format!("line {one}"),
        lines => format!("{} lines", lines.len()),
    };
    let source = if attached {
        "the attached"
    } else {
        "the bundle's"
    };
    let scope = if attached { "evidence:scope and " } else { "" };
    let author = match &checked.image_name {
        Some(name) => format!(
            "every member was rebuilt from the evidence but {scope}bom:imageName {}, which is its \
             author's statement",
            value(name)
        ),
        None if attached => {
            "every member but evidence:scope was rebuilt from the evidence".to_owned()
        }
        None => "every member was rebuilt from the evidence".to_owned(),
    };
    let statements = match (checked.kind == Kind::Receipt, attached) {
        (false, _) => "",
        (true, false) => {
            "\nthe statements name this call and bundle; what they say of the repository (pull \
             request, files\nleft out, configuration, workflow, test counts) was not rebuilt: \
             pr-receipt verify decides it"
        }
        (true, true) => {
            "\nthe statements name this call; their bundle and what they say of the repository \
             (pull request,\nfiles left out, configuration, workflow, test counts) were not \
             rebuilt: pr-receipt verify decides it"
        }
    };
    let established = if attached {
        "\nthe rest of the file its lines came from is not established"
    } else if checked.scope == Scope::Line {
        "\nthe BOM rests on this line alone: the rest of the bundle is not established"
    } else {
        ""
    };
    format!(
        "equal    {file}  ({})\n\
         subject  {} of {source} {lines}\n\
         tier     {}   {QUALIFICATION_SHORT}\n\
         {author}{statements}{established}\n",
        checked.serial_number,
        checked.kind.word(),
        value(&checked.isolation),
    )
}

fn described(subject: &Subject) -> String {
    let time = subject
        .calls()
        .last()
        .map(|call| utc(call.record.ended_unix_ms))
        .unwrap_or_default();
    let time = time.replace('T', " ").replace('Z', " UTC");
    let (first, count) = (subject.calls().first(), subject.calls().len());
    let record = first.map_or("", |call| call.record.record_sha256.as_str());
    match subject {
        Subject::Session(session) => {
            let calls = if count == 1 { "call" } else { "calls" };
            format!(
                "session {}  {count} {calls}  {time}",
                short(session.fingerprint())
            )
        }
        _ => format!("run {}  {time}", short(record)),
    }
}

fn platform(calls: &[CallFacts]) -> String {
    let Some(record) = calls.first().map(|call| &call.record) else {
        return String::new();
    };
    let mut text = value(&record.provider);
    if let Some(image) = record.environment.strip_prefix("docker-image:") {
        text += &format!("   image index {}", digest(image));
    } else if !record.environment.is_empty() {
        text += &format!("   environment {}", value(&record.environment));
    }
    if let Some(manifest) = record.software_identity.strip_prefix("oci-manifest:") {
        let shown = match manifest.split_once('@') {
            Some((platform, image)) => format!("{} {}", value(platform), digest(image)),
            None => value(manifest),
        };
        text += &format!("  manifest {shown}");
    }
    let differs = |call: &&CallFacts| {
        call.record.provider != record.provider || call.record.environment != record.environment
    };
    if calls.iter().any(|call| differs(&call)) {
        text += "  (the first of several)";
    }
    text
}

/// A digest's beginning, or the value itself.
fn digest(text: &str) -> String {
    match text.strip_prefix("sha256:") {
        Some(hex) if hex.len() == 64 => format!("sha256:{}", short(hex)),
        _ => value(text),
    }
}

fn short(hex: &str) -> String {
    let head: String = hex.chars().take(12).collect();
    format!("{}…", value(&head))
}

/// A foreign value as one escaped field.
fn value(text: &str) -> String {
    escape::line_cut(text, VALUE_CHARS)
}
