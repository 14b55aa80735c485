//! One bundle against everything that was asked of it.

use std::{
    io::BufReader,
    path::{Path, PathBuf},
};

use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    bundle::{self, Call, Report, SeenLine, Visitor},
    statement::SessionClose,
};
use plimsoll_console::{
    Console, Failure,
    files::{Dash, Input, Inputs},
    progress::{Measure, Progress},
};

use crate::{
    expect::Expectations,
    explain::{Explain, Explained},
    policy::Policies,
    refusal,
};

/// What a command line asks of each bundle.
#[derive(Clone)]
pub struct Asked {
    pub keys: Vec<PublicKey>,
    pub expectations: Expectations,
    pub policies: Policies,
    pub explain: Option<Explain>,
}

/// What came of one bundle.
pub struct Verdict {
    pub file: PathBuf,
    /// Empty when the evidence was refused: only a whole bundle's counts mean
    /// anything.
    pub report: Report,
    pub expected: &'static str,
    pub missing: Vec<String>,
    pub unexpected: Vec<String>,
    pub policies: Policies,
    pub failures: Vec<Failure>,
    explain: Option<Explain>,
    /// The key asked for, to be named when the evidence was refused.
    key_id: String,
}

impl Verdict {
    /// Whether the evidence itself was good.
    pub fn is_whole(&self) -> bool {
        self.report.lines > 0
    }

    /// Whether the evidence is good and what was expected is there.
    pub fn is_verified(&self) -> bool {
        self.is_whole() && self.expected != "failed"
    }

    /// What is established, as text and as members; `None` when not asked.
    pub fn explained(&self) -> Option<(String, Explained)> {
        let explain = self.explain.as_ref()?;
        let key_id = if self.is_whole() {
            &self.report.key_id
        } else {
            &self.key_id
        };
        let explained = explain.explained(key_id, self.is_whole(), self.expected == "met");
        Some((explained.to_text(explain), explained))
    }
}

/// Verifies a bundle and judges what was asked, in that order: evidence,
/// emptiness, expectations, policy.
pub fn one(console: &Console, inputs: &mut Inputs<'_>, file: &Path, asked: Asked) -> Verdict {
    let mut verdict = Verdict {
        file: file.to_owned(),
        report: Report::default(),
        expected: "not_asked",
        missing: Vec::new(),
        unexpected: Vec::new(),
        policies: Policies::default(),
        failures: Vec::new(),
        explain: None,
        key_id: asked
            .keys
            .first()
            .map(|key| key.id().to_owned())
            .unwrap_or_default(),
    };
    if asked.expectations.speak_of_one() {
        verdict.expected = "failed";
    }
    let input = match inputs.open(file, Dash::Allowed) {
        Ok(input) => input,
        Err(failure) => {
            verdict.failures.push(failure);
            return verdict;
        }
    };
    let mut pass = Pass {
        progress: console.progress(Measure::Bytes(input.size())),
        expectations: asked.expectations,
        policies: asked.policies,
        explain: asked.explain,
    };
    let checked = checked(input, &asked.keys, &mut pass);
    drop(pass.progress);
    verdict.explain = pass.explain;
    match checked {
        Ok(report) => {
            verdict.report = report;
            match pass.expectations.met(&verdict.report) {
                Ok(()) if pass.expectations.speak_of_one() => verdict.expected = "met",
                Ok(()) => {}
                Err(unmet) => {
                    verdict.missing = unmet.missing().to_vec();
                    verdict.unexpected = unmet.unexpected().to_vec();
                    verdict.failures.push(unmet.failure(file));
                }
            }
            verdict.failures.extend(pass.policies.failures(file));
            verdict.policies = pass.policies;
        }
        Err(fault) => verdict
            .failures
            .push(refusal::failure(file, &fault, &asked.keys)),
    }
    verdict
}

fn checked(input: Input, keys: &[PublicKey], pass: &mut Pass) -> Result<Report, Fault> {
    let source = BufReader::with_capacity(1 << 16, input);
    let report = bundle::verify(source, keys, pass)?;
    if report.records == 0 && !pass.expectations.allow_empty() {
        return Err(Fault::new(Reason::Empty));
    }
    Ok(report)
}

/// Everything that looks on while a bundle is verified.
struct Pass {
    progress: Progress,
    expectations: Expectations,
    policies: Policies,
    explain: Option<Explain>,
}

impl Visitor for Pass {
    fn call(&mut self, call: &Call<'_>) {
        self.expectations.call(call);
        self.policies.call(call);
        if let Some(explain) = &mut self.explain {
            explain.call(call);
        }
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        if let Some(explain) = &mut self.explain {
            explain.close(line, close);
        }
    }

    fn line(&mut self, line: &SeenLine) {
        self.progress.advance(line.length + 1);
        if let Some(explain) = &mut self.explain {
            explain.line(line);
        }
    }
}
