//! The in-toto test-result statement.

use plimsoll_attestation::{Envelope, Fault, PublicKey, SigningKey, own::OwnStatement};
use serde::{Deserialize, Serialize};

use super::{OpenError, Statement, Subject, open, read};
use crate::{
    facts::TestClass,
    outcome::{Outcome, Test, Verdict},
};

/// The predicate type, of in-toto's attestation framework.
pub const TYPE: &str = "https://in-toto.io/attestation/test-result/v0.1";
/// Most names in the three lists together.
pub const MAX_NAMES: usize = 10_000;

/// The predicate. Members in the order they are written.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub struct TestResult {
    /// The verdict.
    pub result: Verdict,
    /// Files that decided what was run: workflow, configuration, reports.
    pub configuration: Vec<Subject>,
    /// The CI run's page; left out where there is none.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub url: String,
    /// Names of passed tests.
    #[serde(rename = "passedTests")]
    pub passed: Vec<String>,
    /// Names of warned tests.
    #[serde(rename = "warnedTests")]
    pub warned: Vec<String>,
    /// Names of failed tests.
    #[serde(rename = "failedTests")]
    pub failed: Vec<String>,
}

impl TestResult {
    /// What an outcome says: failed names first when there is no room for all.
    #[must_use]
    pub fn of(outcome: &Outcome, configuration: Vec<Subject>, url: String) -> Self {
        let mut room = MAX_NAMES;
        let mut names = |class| listed(&outcome.tests, class, &mut room);
        let failed = names(TestClass::Failed);
        let warned = names(TestClass::Warned);
        let passed = names(TestClass::Passed);
        TestResult {
            result: outcome.verdict,
            configuration,
            url,
            passed,
            warned,
            failed,
        }
    }
}

fn listed(tests: &[Test], class: TestClass, room: &mut usize) -> Vec<String> {
    let of_class = || tests.iter().filter(|test| test.class == class);
    let mut names: Vec<String> = of_class().take(*room).map(|t| t.name.clone()).collect();
    *room -= names.len();
    let more = of_class().count() - names.len();
    if more > 0 {
        names.push(format!("…and {more} more"));
    }
    names
}

/// Signs a test result.
///
/// # Errors
/// Class `statement`: its names make it too large.
pub fn sign(
    statement: &Statement<TestResult>,
    key: &SigningKey,
) -> Result<Envelope<'static>, Fault> {
    Ok(OwnStatement::from_payload(statement.payload())?.sign(key))
}

/// Opens a test result's envelope and gives the statement and its payload.
///
/// # Errors
/// [`OpenError`].
pub fn open_envelope(
    envelope: &[u8],
    key: &PublicKey,
) -> Result<(Statement<TestResult>, Vec<u8>), OpenError> {
    let opened = open(envelope, key, TYPE, false)?;
    Ok((read(&opened.payload)?, opened.payload))
}
