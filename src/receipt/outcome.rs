//! What a signed answer says about the tests.

use plimsoll_record::{Digest, outcome::outcome_name};
use plimsoll_wire::proto::{
    ProjectOutcome, ProjectResult, ProjectRun, RunRequest, RunResponse, run_request::Payload,
    run_response::Result as RunResult,
};
use serde::{Deserialize, Serialize};

use crate::{
    facts::{Counts, TestClass},
    report::{
        self, Source, Spec,
        name::{Unique, clean},
    },
};

/// The verdict of a receipt.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Verdict {
    /// Tests passed and none failed.
    Passed,
    /// None failed and at least one is not finished or passed on a retry.
    Warned,
    /// Anything else.
    Failed,
}

impl Verdict {
    /// Its word in statements.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Passed => "PASSED",
            Verdict::Warned => "WARNED",
            Verdict::Failed => "FAILED",
        }
    }
}

/// One test, its name cleaned, cut and unique.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Test {
    /// The name.
    pub name: String,
    /// How it ended.
    pub class: TestClass,
    /// Microseconds, as the report states.
    pub duration_us: Option<u64>,
}

/// A report that was asked for, as the answer holds it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Found {
    /// What was asked for.
    pub spec: Spec,
    /// The step whose stream it is, or the last that ran; from 1, 0 when none ran.
    pub step: u64,
    /// Digest of its bytes; `None` when it is not there.
    pub sha256: Option<Digest>,
    /// Whether it could be read.
    pub read: bool,
}

/// What the answer says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Outcome {
    /// The verdict.
    pub verdict: Verdict,
    /// Tests by class.
    pub counts: Counts,
    /// The tests, in report order.
    pub tests: Vec<Test>,
    /// The reports.
    pub reports: Vec<Found>,
    /// Why it failed although no test says so, and what does not agree: our
    /// own words, with numbers and the answer's own words left out.
    pub remarks: Vec<String>,
}

/// The project of a request and its result; `None` for anything else.
#[must_use]
pub fn project<'a>(
    request: &'a RunRequest,
    response: &'a RunResponse,
) -> Option<(&'a ProjectRun, &'a ProjectResult)> {
    match (&request.payload, &response.result) {
        (Some(Payload::Project(run)), Some(RunResult::Project(result))) => Some((run, result)),
        _ => None,
    }
}

/// Reads the tests from a signed answer. No report asked for: the steps' exit
/// codes alone decide, one test a step.
#[must_use]
pub fn evaluate(run: &ProjectRun, result: &ProjectResult, specs: &[Spec]) -> Outcome {
    let mut work = Work::default();
    work.steps(run, result);
    for spec in specs {
        work.report(result, spec);
    }
    if specs.is_empty() {
        for step in &result.steps {
            let ok = step.exit_code == 0 && !step.timed_out;
            let class = if ok {
                TestClass::Passed
            } else {
                TestClass::Failed
            };
            work.test(&step.command, class, duration(step.duration_ms));
        }
    }
    work.finish()
}

fn duration(ms: i64) -> Option<u64> {
    u64::try_from(ms).ok()?.checked_mul(1000)
}

#[derive(Default)]
struct Work {
    failed: bool,
    unique: Unique,
    tests: Vec<Test>,
    counts: Counts,
    reports: Vec<Found>,
    remarks: Vec<String>,
}

impl Work {
    fn fail(&mut self, why: String) {
        self.failed = true;
        self.remarks.push(why);
    }

    fn steps(&mut self, run: &ProjectRun, result: &ProjectResult) {
        if result.outcome != ProjectOutcome::PROJECT_OUTCOME_COMPLETED {
            self.fail(format!(
                "the run's outcome is {}",
                outcome_name(result.outcome)
            ));
        }
        for (n, step) in result.steps.iter().enumerate() {
            let number = n + 1;
            if step.timed_out {
                self.fail(format!("step {number} ran out of time"));
            } else if step.exit_code != 0 {
                self.fail(format!(
                    "step {number} ended with exit code {}",
                    step.exit_code
                ));
            }
            if run.steps.get(n) != Some(&step.command) {
                self.fail(format!("step {number} is not the step that was asked for"));
            }
        }
        if result.steps.len() < run.steps.len() {
            self.fail(format!(
                "{} of {} steps ran",
                result.steps.len(),
                run.steps.len()
            ));
        }
    }

    fn report(&mut self, result: &ProjectResult, spec: &Spec) {
        let label = match &spec.source {
            Source::Artifact(_) => format!("report {}", self.reports.len() + 1),
            Source::Stdout(step) => format!("the report on standard output of step {step}"),
        };
        let last = result.steps.len();
        let (step, bytes, cut) = match &spec.source {
            Source::Artifact(path) => {
                let found = result
                    .artifacts
                    .iter()
                    .find(|artifact| artifact.path == *path);
                let bytes = found.map(|artifact| artifact.content.as_slice());
                // Which artifact was cut is not said, so each may have been.
                (last, bytes, result.artifacts_truncated)
            }
            Source::Stdout(step) => {
                let found = step.checked_sub(1).and_then(|n| result.steps.get(n));
                let bytes = found.map(|step| step.stdout.as_slice());
                (
                    *step,
                    bytes,
                    found.is_some_and(|step| step.stdout_truncated),
                )
            }
        };
        let mut found = Found {
            spec: spec.clone(),
            step: step as u64,
            sha256: bytes.map(Digest::of),
            read: false,
        };
        match bytes.map(|bytes| report::read(spec.format, bytes)) {
            None => self.fail(format!("{label} is missing")),
            Some(Err(error)) => self.fail(format!("{label} cannot be read: {error}")),
            Some(Ok(parsed)) => {
                found.read = true;
                if parsed.counts_differ {
                    self.remarks.push(format!(
                        "{label}: a counter differs from the tests it lists (report_counts)"
                    ));
                }
                if let Some(broken) = parsed.broken {
                    self.fail(format!("{label}: {broken}"));
                }
                if parsed.cases.is_empty() {
                    self.remarks.push(format!("{label} lists no tests"));
                }
                for case in parsed.cases {
                    self.test(&case.name, case.class, case.duration_us);
                }
            }
        }
        if cut {
            self.fail(format!("{label} was cut by the daemon"));
        }
        self.reports.push(found);
    }

    fn test(&mut self, name: &str, class: TestClass, duration_us: Option<u64>) {
        let counter = match class {
            TestClass::Passed => &mut self.counts.passed,
            TestClass::Warned => &mut self.counts.warned,
            TestClass::Failed => &mut self.counts.failed,
            TestClass::Skipped => &mut self.counts.skipped,
        };
        *counter += 1;
        self.tests.push(Test {
            name: self.unique.name(clean(name)),
            class,
            duration_us,
        });
    }

    fn finish(mut self) -> Outcome {
        if self.counts.failed == 0 && self.failed && self.counts.passed > 0 {
            self.remarks
                .push("no test failed, and the stricter of steps and reports counts".to_owned());
        }
        if self.counts.passed == 0 {
            self.fail("no test passed".to_owned());
        }
        let verdict = if self.failed || self.counts.failed > 0 {
            Verdict::Failed
        } else if self.counts.warned > 0 {
            Verdict::Warned
        } else {
            Verdict::Passed
        };
        Outcome {
            verdict,
            counts: self.counts,
            tests: self.tests,
            reports: self.reports,
            remarks: self.remarks,
        }
    }
}
