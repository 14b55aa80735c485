//! Steps 2, 3, 4 and 9: the signed parts and what ties them together.

use plimsoll_record::Digest;

use super::{Check, Outcomes, Refused};
use crate::{
    collect::manifest,
    event::{self, Binding},
    git::{Oid, blob},
    make,
    outcome::{Outcome, evaluate},
    report::{Format, Source, Spec},
    run::{Run, RunError},
    statement::{
        self, Digest as Named, OpenError, Receipt, Subject, TestResult,
        receipt::{KeyKind, Report as Listed},
        test_result,
    },
};

impl Check<'_> {
    /// Step 2.
    pub(super) fn one_run(&mut self) -> Outcomes {
        let key = self.key.as_ref()?;
        Some(match Run::read(&self.folder.bundle, key) {
            Ok(run) => {
                let said = format!("record {}", run.record.record_sha256);
                self.run = Some(run);
                Ok(said.into())
            }
            Err(error) => Err(match error {
                RunError::Evidence(fault) => {
                    let place = fault
                        .line()
                        .map_or_else(String::new, |n| format!("line {n}: "));
                    Refused::new(
                        fault.class().word(),
                        format!("bundle.jsonl {place}{}", fault.reason().text()),
                    )
                }
                RunError::Many(_) => Refused::new("many_runs", error.to_string()),
                RunError::None => Refused::new("no_runs", error.to_string()),
                RunError::Other(_) => Refused::new("binding_mismatch", error.to_string()),
            }),
        })
    }

    /// Step 3.
    pub(super) fn statements(&mut self) -> Outcomes {
        let key = self.key.clone()?;
        let refused = |file: &str, error: &OpenError| {
            let code = match error {
                OpenError::Fault(fault) => fault.class().word(),
                OpenError::Form(_) => "statement",
            };
            Refused::new(code, format!("{file}: {error}"))
        };
        match test_result::open_envelope(&self.folder.test_result, &key) {
            Ok(opened) => self.test_result = Some(opened),
            Err(error) => return Some(Err(refused("test-result.dsse.json", &error))),
        }
        let opened = match statement::receipt::open_envelope(&self.folder.receipt, &key) {
            Ok(opened) => opened,
            Err(error) => return Some(Err(refused("receipt.dsse.json", &error))),
        };
        let predicate = &opened.0.predicate;
        let binding = Binding {
            repository: predicate.repository.clone(),
            pull_request: predicate.pull_request.clone(),
        };
        let form = if predicate.version == 1 {
            binding.check().map_err(|error| error.to_string())
        } else {
            Err("its version is not 1".to_owned())
        };
        let workflow = || {
            let repository = &predicate.repository.url;
            event::check_workflow(&predicate.workflow, repository).map_err(|e| e.to_string())
        };
        let form = form.and_then(|()| workflow());
        if let Err(why) = form.and_then(|()| specs(predicate).map(drop)) {
            return Some(Err(Refused::new(
                "statement",
                format!("receipt.dsse.json: {why}"),
            )));
        }
        let kind = match predicate.signing_key.kind {
            KeyKind::Ephemeral => "made in the job, as the receipt states",
            KeyKind::File => "from a file, as the receipt states",
        };
        let said = format!("key {}, {kind}", key.id());
        // Nothing of a clone says which server's pull request it is.
        self.report
            .sources
            .push("repository and number: from the receipt itself".to_owned());
        self.receipt = Some(opened);
        Some(Ok(said.into()))
    }

    /// The tests, read again from the signed answer.
    pub(super) fn read_outcome(&self) -> Option<Outcome> {
        let specs = specs(self.predicate()?).ok()?;
        let (asked, result) = self.run.as_ref()?.project()?;
        Some(evaluate(asked, result, &specs))
    }

    /// Step 4.
    pub(super) fn digests(&self) -> Outcomes {
        let (run, receipt) = (self.run.as_ref()?, self.predicate()?);
        let (key, (test_result, payload)) = (self.key.as_ref()?, self.test_result.as_ref()?);
        let outcome = self.outcome.as_ref()?;
        let mut subjects = make::subjects(
            &receipt.repository.url,
            receipt.pull_request.number,
            receipt.tested.kind,
            &receipt.tested.commit_sha,
            &receipt.tested.tree_sha,
            &run.record.record_sha256,
        );
        let same_subjects = test_result.subject == subjects;
        subjects.push(Subject {
            name: "bundle.jsonl".to_owned(),
            digest: Named::Sha256(run.bundle_sha256.clone()),
        });
        let statement = &self.receipt.as_ref()?.0;
        let sent = run.project()?.0.files.len() as u64;
        let added = receipt.tested.added.len() as u64;
        let ended = u64::try_from(run.record.ended_unix_ms).unwrap_or(0);
        let configuration =
            make::configuration(&receipt.workflow, &receipt.config, &receipt.reports);
        for (holds, what) in [
            (receipt.bundle_sha256 == run.bundle_sha256, "bundle_sha256"),
            (receipt.run.line == run.line, "run.line"),
            (
                receipt.run.entry_sha256 == run.entry_sha256,
                "run.entry_sha256",
            ),
            (
                receipt.run.record_sha256 == run.record.record_sha256,
                "run.record_sha256",
            ),
            (
                Digest::of(payload).is(&receipt.test_result_sha256),
                "test_result_sha256",
            ),
            (receipt.signing_key.id == key.id(), "signing_key.id"),
            (same_subjects, "the test result's subjects"),
            (statement.subject == subjects, "the receipt's subjects"),
            (
                test_result.predicate.configuration == configuration,
                "the test result's configuration",
            ),
            (
                test_result.predicate.url == make::attempt_url(&receipt.workflow),
                "the test result's url",
            ),
            (
                receipt.tested.files.checked_add(added) == Some(sent),
                "tested.files",
            ),
            (
                manifest_of(run, receipt).as_deref() == Some(&receipt.tested.manifest_sha256),
                "tested.manifest_sha256",
            ),
            (receipt.created_unix_ms >= ended, "created_unix_ms"),
            (reports_hold(outcome, receipt), "reports"),
        ] {
            if !holds {
                return Some(Err(Refused::new(
                    "binding_mismatch",
                    format!("{what} does not name what is there"),
                )));
            }
        }
        Some(Ok("each digest was computed again".into()))
    }

    /// Step 9.
    pub(super) fn results(&self) -> Outcomes {
        let (receipt, outcome) = (self.predicate()?, self.outcome.as_ref()?);
        let (test_result, _) = self.test_result.as_ref()?;
        let configuration = test_result.predicate.configuration.clone();
        let url = test_result.predicate.url.clone();
        let expected = TestResult::of(outcome, configuration, url);
        let same = receipt.summary == make::summary(outcome) && test_result.predicate == expected;
        let stated = |listed: &&Listed| !listed.sha256.is_empty();
        let lacking = receipt
            .reports
            .iter()
            .filter(stated)
            .zip(&outcome.reports)
            .any(|(_, found)| found.sha256.is_none());
        if same && !lacking {
            let said = match outcome.reports.len() {
                0 => "no report was asked for; exit codes decide".to_owned(),
                n => format!("{n} reports, {} tests", outcome.tests.len()),
            };
            return Some(Ok(said.into()));
        }
        let missing = outcome.reports.iter().any(|found| found.sha256.is_none());
        let unread = outcome.reports.iter().any(|found| !found.read);
        let said = format!(
            "stated is {} with {} passed and {} failed; the answer says {} with {} and {}",
            receipt.summary.result.name(),
            receipt.summary.passed,
            receipt.summary.failed,
            outcome.verdict.name(),
            outcome.counts.passed,
            outcome.counts.failed
        );
        Some(Err(if missing || lacking {
            Refused::new(
                "report_missing",
                format!("a report is not in the answer; {said}"),
            )
        } else if unread {
            Refused::new("report_parse", format!("a report cannot be read; {said}"))
        } else {
            Refused::new("result_mismatch", said)
        }))
    }
}

/// The reports a receipt lists, as they were asked for.
pub(crate) fn specs(receipt: &Receipt) -> Result<Vec<Spec>, String> {
    let mut specs: Vec<Spec> = Vec::new();
    for report in &receipt.reports {
        let format = match report.format.as_str() {
            "junit" => Format::Junit,
            "tap" => Format::Tap,
            _ => return Err("a report of an unknown format".to_owned()),
        };
        let source = Source::parse(&report.source).ok_or("a report of an unknown source")?;
        let spec = Spec { format, source };
        if specs.contains(&spec) {
            return Err("a report is listed twice".to_owned());
        }
        specs.push(spec);
    }
    Ok(specs)
}

/// Whether each report that is there has the digest and step stated. One that
/// is stated and not there is step 9's.
fn reports_hold(outcome: &Outcome, receipt: &Receipt) -> bool {
    let found = make::reports(&outcome.reports);
    found.len() == receipt.reports.len()
        && found
            .iter()
            .zip(&receipt.reports)
            .all(|(found, stated)| found.sha256.is_empty() || found == stated)
}

/// The manifest over the files sent that are not listed as added.
fn manifest_of(run: &Run, receipt: &Receipt) -> Option<String> {
    let algorithm = Oid::parse(&receipt.tested.tree_sha)?.algorithm();
    let added: std::collections::HashSet<&str> = receipt
        .tested
        .added
        .iter()
        .map(|file| file.path.as_str())
        .collect();
    let mut files = Vec::new();
    for file in &run.project()?.0.files {
        if !added.contains(file.path.as_str()) {
            let blob = blob::name(algorithm, file.content.as_bytes())?;
            files.push((
                file.path.as_str(),
                blob,
                Digest::of(file.content.as_bytes()),
            ));
        }
    }
    files.sort_by(|a, b| a.0.cmp(b.0));
    let listed = files
        .iter()
        .map(|(path, blob, sha)| (*path, blob.as_str(), *sha));
    Some(manifest(listed).to_hex())
}
