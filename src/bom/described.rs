//! The subject's own component, and what is declared of it.

use serde_json::{Map, Value, json};

use crate::{
    components::line_name,
    facts::CallFacts,
    fault::BomError,
    formulation::record,
    profile::{Attach, QUALIFICATION, RECEIPT_LIMITS},
    receipt::Receipt,
    subject::{Session, Subject},
    value::{Properties, put, time},
};

/// `metadata`.
pub(crate) fn metadata(subject: &Subject) -> Result<Value, BomError> {
    Ok(json!({
        "component": component(subject),
        "lifecycles": [{
            "description": "The code was run once, in a sandbox, and its record was signed.",
            "name": "execution",
        }],
        "timestamp": time(subject.unix_ms())?,
        "tools": {
            "components": [{
                "bom-ref": "tool:plimsoll-attest",
                "name": "plimsoll-attest",
                "type": "application",
            }],
        },
    }))
}

fn component(subject: &Subject) -> Value {
    match subject {
        Subject::Run(call) => run(subject, call),
        Subject::Session(of) => session(subject, of),
        Subject::Receipt(tested) => receipt(subject, &tested.call, &tested.receipt),
    }
}

fn run(subject: &Subject, call: &CallFacts) -> Value {
    let mut properties = Properties::default();
    record(&mut properties, call);
    json!({
        "bom-ref": subject.reference(),
        "description": "One sandboxed run, as its signed record states it.",
        "name": "plimsoll-run",
        "properties": properties.value(),
        "type": "application",
        "version": call.record.record_sha256,
    })
}

fn session(subject: &Subject, session: &Session) -> Value {
    let last = subject.calls().last();
    let last = last.map_or("", |call| call.record.record_sha256.as_str());
    json!({
        "bom-ref": subject.reference(),
        "description": "One closed session of sandboxed calls, as its signed records state it.",
        "name": "plimsoll-session",
        "properties": Properties::default()
            .with("session:fingerprint", session.fingerprint())
            .with("session:calls", subject.calls().len())
            .with("session:lastRecordSha256", last)
            .with("session:closed", true)
            .value(),
        "type": "application",
        "version": last,
    })
}

fn receipt(subject: &Subject, call: &CallFacts, receipt: &Receipt) -> Value {
    let Receipt {
        repository,
        pull_request,
        tested,
        workflow,
        summary,
        signing_key,
        ..
    } = receipt;
    let url = repository.url.as_str();
    let (owner, name) = owner_and_name(url);
    let mut object = Map::new();
    put(&mut object, "bom-ref", subject.reference());
    let description = format!(
        "Pull request {} as tested in a sandbox.",
        pull_request.number
    );
    put(&mut object, "description", description);
    let reference = |kind: &str, url: &str| json!({ "type": kind, "url": url });
    let pull = format!("{url}/pull/{}", pull_request.number);
    put(
        &mut object,
        "externalReferences",
        json!([
            reference("vcs", url),
            reference("build-meta", &workflow.run_url),
            { "comment": "the pull request", "type": "issue-tracker", "url": pull },
        ]),
    );
    if !owner.is_empty() {
        put(&mut object, "group", owner);
    }
    put(&mut object, "name", name);
    let mut properties = Properties::default();
    record(&mut properties, call);
    properties.push("receipt:pullRequest", pull_request.number);
    for (name, value) in [
        ("headRepository", &pull_request.head_repository),
        ("headSha", &pull_request.head_sha),
        ("baseRef", &pull_request.base_ref),
        ("baseSha", &pull_request.base_sha),
        ("tested", &tested.kind),
        ("commitSha", &tested.commit_sha),
        ("treeSha", &tested.tree_sha),
        ("result", &summary.result),
    ] {
        properties.push_some(&format!("receipt:{name}"), value);
    }
    for (name, value) in [
        ("passed", summary.passed),
        ("warned", summary.warned),
        ("failed", summary.failed),
        ("skipped", summary.skipped),
        ("excludedFiles", tested.excluded.len() as u64),
        ("addedFiles", tested.added.len() as u64),
    ] {
        properties.push(&format!("receipt:{name}"), value);
    }
    properties.push_some("receipt:keyKind", &signing_key.kind);
    put(&mut object, "properties", properties.value());
    if let Some(purl) = purl(url, &tested.commit_sha) {
        put(&mut object, "purl", purl);
    }
    if tested.commit_sha.len() == 40 {
        put(
            &mut object,
            "swhid",
            json!([
                format!("swh:1:rev:{}", tested.commit_sha),
                format!("swh:1:dir:{}", tested.tree_sha),
            ]),
        );
    }
    put(&mut object, "type", "application");
    put(&mut object, "version", tested.commit_sha.as_str());
    Value::Object(object)
}

/// The path of a repository's URL as owner and name.
fn owner_and_name(url: &str) -> (&str, &str) {
    let path = url.split_once("://").map_or(url, |(_, rest)| rest);
    let path = path.split_once('/').map_or("", |(_, path)| path);
    let path = path.trim_matches('/');
    match path.rsplit_once('/') {
        Some(parts) => parts,
        None if path.is_empty() => ("", url),
        None => ("", path),
    }
}

/// The package URL of a commit on github.com; none for any other host.
fn purl(url: &str, commit: &str) -> Option<String> {
    let (owner, name) = url.strip_prefix("https://github.com/")?.split_once('/')?;
    let plain = |text: &str| {
        !text.is_empty()
            && text
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b))
    };
    (plain(owner) && plain(name))
        .then(|| format!("pkg:github/{owner}/{name}@{commit}").to_ascii_lowercase())
}

/// `annotations`.
pub(crate) fn annotations(subject: &Subject, providers: &[&str]) -> Result<Value, BomError> {
    let timestamp = time(subject.unix_ms())?;
    let annotation = |reference: &str, subjects: Vec<String>, text: &str| {
        json!({
            "annotator": { "component": { "name": "plimsoll-attest", "type": "application" } },
            "bom-ref": reference,
            "subjects": subjects,
            "text": text,
            "timestamp": timestamp,
        })
    };
    let about = std::iter::once(subject.reference())
        .chain(providers.iter().map(ToString::to_string))
        .collect();
    let mut list = vec![annotation("annotation:qualification", about, QUALIFICATION)];
    if let Subject::Receipt(_) = subject {
        let about = vec![subject.reference()];
        list.push(annotation(
            "annotation:receipt-limits",
            about,
            RECEIPT_LIMITS,
        ));
    }
    Ok(Value::Array(list))
}

/// `declarations`, its evidence left empty: see [`evidence`].
pub(crate) fn declarations(subject: &Subject) -> Value {
    let lines: Vec<String> = subject
        .calls()
        .iter()
        .map(|call| format!("evidence:line:{}", call.line.number))
        .collect();
    let claim = |name: &str, evidence: &[String], predicate: String, reasoning: &str| {
        json!({
            "bom-ref": format!("claim:{name}"),
            "evidence": evidence,
            "predicate": predicate,
            "reasoning": reasoning,
            "target": subject.reference(),
        })
    };
    let mut claims = vec![
        claim(
            "isolation",
            &lines,
            format!("isolation-tier={}", subject.isolation()),
            QUALIFICATION,
        ),
        claim(
            "signed",
            &lines,
            "records-checked-and-signed".to_owned(),
            "Each record was recomputed from the stored request and answer, and its signature \
             was checked under the signing key.",
        ),
    ];
    let mut named = vec!["claim:isolation", "claim:signed"];
    if let Subject::Receipt(tested) = subject {
        let evidence = [lines, vec!["evidence:test-result".to_owned()]].concat();
        claims.push(claim(
            "tests",
            &evidence,
            format!("tests={}", tested.receipt.summary.result),
            "Read from the report the signed run returned; see the test result statement.",
        ));
        named.push("claim:tests");
    }
    json!({
        "assessors": [{ "bom-ref": "assessor:harness", "thirdParty": false }],
        "attestations": [{
            "assessor": "assessor:harness",
            "map": [{ "claims": named }],
            "summary": "What the signed records support, and how far.",
        }],
        "claims": claims,
        "evidence": [],
    })
}

/// The declared evidence of one call line.
pub(crate) fn evidence(call: &CallFacts, attach: Attach) -> Result<Value, BomError> {
    let number = call.line.number;
    Ok(json!({
        "bom-ref": format!("evidence:line:{number}"),
        "created": time(call.record.ended_unix_ms)?,
        "data": [{
            "contents": { "url": format!("#line:{number}") },
            "name": line_name(number, attach),
        }],
        "description": "The signed line this BOM was built from.",
        "propertyName": "plimsoll:signed-line",
    }))
}

/// The declared evidence of a receipt's result.
pub(crate) fn test_evidence(subject: &Subject) -> Result<Value, BomError> {
    Ok(json!({
        "bom-ref": "evidence:test-result",
        "created": time(subject.unix_ms())?,
        "data": [{
            "contents": { "url": "#statement:test-result" },
            "name": "test result statement",
        }],
        "description": "The signed test result statement.",
        "propertyName": "plimsoll:test-result",
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repositories() {
        for (url, owner, name, package) in [
            (
                "https://github.com/A/b.C",
                "A",
                "b.C",
                Some("pkg:github/a/b.c@00"),
            ),
            ("https://git.example/a/b/c", "a/b", "c", None),
            ("https://git.example/c", "", "c", None),
            ("https://git.example", "", "https://git.example", None),
            ("https://github.com/a/b/c", "a/b", "c", None),
            ("https://github.com/a b/c", "a b", "c", None),
            ("x", "", "x", None),
        ] {
            assert_eq!(owner_and_name(url), (owner, name), "{url}");
            assert_eq!(purl(url, "00").as_deref(), package, "{url}");
        }
    }
}
