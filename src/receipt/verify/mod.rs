//! The reviewer's offline check: thirteen steps, each with its refusal.
//!
//! What the reviewer knows comes from the reviewer: the head, the key, the base
//! and the floor. Where the receipt's own word stands in for one of them, the
//! report says so.

mod base;
mod binding;
mod document;
mod revision;

pub(crate) use binding::specs;

use plimsoll_attestation::PublicKey;
use plimsoll_wire::tier;
use serde::Serialize;

use crate::{
    Facts,
    folder::Folder,
    git::{GitError, Oid, Place, Store, object::Algorithm},
    outcome::{Outcome, Verdict},
    run::Run,
    show,
    statement::{Receipt, Statement, TestResult},
};

/// What the reviewer asks for.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// A clone with the commits; `None` when nothing is tied to a revision.
    pub place: Option<Place>,
    /// The head expected; `None` to take the clone's own name for it.
    pub head: Option<Oid>,
    /// A key learnt elsewhere.
    pub public_key: Option<PublicKey>,
    /// A key ID learnt elsewhere.
    pub key_id: Option<String>,
    /// Where workflow and configuration are compared.
    pub base: Option<String>,
    /// The workflow file the reviewer expects.
    pub workflow: Option<String>,
    /// A changed workflow or configuration is a refusal.
    pub require_workflow_unchanged: bool,
    /// The weakest tier taken; `None` for any.
    pub floor: Option<String>,
    /// Whether a warned result passes.
    pub refuse_warned: bool,
    /// Without a clone and without a head, whether that is all right.
    pub allow_unbound: bool,
}

/// How a step ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It holds.
    Ok,
    /// It holds, and something is to be known.
    Warned,
    /// It does not hold.
    Refused,
    /// It could not be checked, because of an earlier step or of what was asked.
    NotChecked,
}

/// One step.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Step {
    /// Its number, from 1.
    pub number: u8,
    /// What it checks.
    pub name: &'static str,
    /// How it ended.
    pub state: State,
    /// The refusal's or warning's code.
    pub code: Option<&'static str>,
    /// A sentence; may hold foreign text.
    pub detail: String,
}

/// A refusal of one step: its code, and a sentence that may hold foreign text.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Refused {
    code: &'static str,
    detail: String,
}

impl Refused {
    pub(crate) fn new(code: &'static str, detail: impl Into<String>) -> Self {
        Refused {
            code,
            detail: detail.into(),
        }
    }

    fn git(code: &'static str, error: &GitError) -> Self {
        Refused::new(code, error.to_string())
    }
}

/// What a check found.
#[derive(Debug, Default)]
pub struct Report {
    /// The steps, all thirteen.
    pub steps: Vec<Step>,
    /// What the reviewer should know although nothing is refused; may hold
    /// foreign text.
    pub warnings: Vec<String>,
    /// Where the key, head and base came from, in our own words.
    pub sources: Vec<String>,
    /// The facts, once the signed parts could be read.
    pub facts: Option<Facts>,
    /// The run, for a replay.
    pub run: Option<Run>,
    /// The tests, read again.
    pub outcome: Option<Outcome>,
    /// The receipt's statement.
    pub receipt: Option<Statement<Receipt>>,
}

impl Report {
    /// The first refusal, which decides.
    #[must_use]
    pub fn refusal(&self) -> Option<&Step> {
        self.steps.iter().find(|step| step.state == State::Refused)
    }
}

/// What each step checks.
const NAMES: [&str; 13] = [
    "the BOM is rebuilt from the evidence",
    "the bundle holds one project run",
    "both statements are signed",
    "every digest names its part",
    "the commit is the one expected",
    "the commit has the tree",
    "each file sent is the commit's or listed as added",
    "each file of the commit was sent or rightly left out",
    "the reports say what is stated",
    "commands and reports are those of the configuration",
    "the stated tier meets the floor",
    "workflow and configuration are those of the base",
    "the tests passed",
];

/// What is known so far.
struct Check<'a> {
    folder: &'a Folder,
    options: &'a Options,
    report: Report,
    key: Option<PublicKey>,
    run: Option<Run>,
    receipt: Option<(Statement<Receipt>, Vec<u8>)>,
    test_result: Option<(Statement<TestResult>, Vec<u8>)>,
    outcome: Option<Outcome>,
    store: Option<Store>,
    /// The tree tested, once its commit was read.
    tree: Option<Oid>,
}

/// Checks a receipt. Nothing of it is run, nothing is fetched.
#[must_use]
pub fn verify(folder: &Folder, options: &Options) -> Report {
    let mut check = Check {
        folder,
        options,
        report: Report::default(),
        key: None,
        run: None,
        receipt: None,
        test_result: None,
        outcome: None,
        store: None,
        tree: None,
    };
    let document = check.document();
    check.settle(1, document);
    let run = check.one_run();
    check.settle(2, run);
    let statements = check.statements();
    check.settle(3, statements);
    check.outcome = check.read_outcome();
    let digests = check.digests();
    check.settle(4, digests);
    check.open_store();
    let commit = check.commit();
    check.settle(5, commit);
    let tree = check.commit_tree();
    check.settle(6, tree);
    let config = check.config();
    let sent = check.files_sent();
    check.settle(7, sent);
    let left_out = check.files_left_out(config.as_ref().and_then(|config| config.as_ref().ok()));
    check.settle(8, left_out);
    let results = check.results();
    check.settle(9, results);
    let config = check.config_holds(config);
    check.settle(10, config);
    let floor = check.floor();
    check.settle(11, floor);
    let workflow = check.workflow();
    check.settle(12, workflow);
    let verdict = check.verdict();
    check.settle(13, verdict);
    check.finish()
}

/// The number of the pull request a receipt says it is of, without any check:
/// to look for the clone's name of its head.
#[must_use]
pub fn stated_pull_request(folder: &Folder) -> Option<u64> {
    #[derive(serde::Deserialize)]
    struct Envelope {
        payload: String,
    }
    let envelope: Envelope = serde_json::from_slice(&folder.receipt).ok()?;
    let payload = plimsoll_attestation::base64::decode(&envelope.payload).ok()?;
    let statement: Statement<Receipt> = serde_json::from_slice(&payload).ok()?;
    Some(statement.predicate.pull_request.number)
}

/// How a step ended: `None` when it could not be checked. A warning has a code
/// and a sentence, and is no refusal.
type Outcomes = Option<Result<Said, Refused>>;

/// What a step that holds has to say.
#[derive(Default)]
struct Said {
    detail: String,
    warning: Option<&'static str>,
}

impl From<String> for Said {
    fn from(detail: String) -> Self {
        Said {
            detail,
            warning: None,
        }
    }
}

impl From<&str> for Said {
    fn from(detail: &str) -> Self {
        detail.to_owned().into()
    }
}

impl Check<'_> {
    fn settle(&mut self, number: u8, outcome: Outcomes) {
        let name = NAMES
            .get(usize::from(number) - 1)
            .copied()
            .unwrap_or_default();
        let (state, code, detail) = match outcome {
            None => (State::NotChecked, None, String::new()),
            Some(Ok(Said { detail, warning })) => match warning {
                None => (State::Ok, None, detail),
                Some(code) => {
                    self.report.warnings.push(detail.clone());
                    (State::Warned, Some(code), detail)
                }
            },
            Some(Err(Refused { code, detail })) => (State::Refused, Some(code), detail),
        };
        self.report.steps.push(Step {
            number,
            name,
            state,
            code,
            detail,
        });
    }

    fn predicate(&self) -> Option<&Receipt> {
        self.receipt
            .as_ref()
            .map(|(statement, _)| &statement.predicate)
    }

    fn open_store(&mut self) {
        let Some(place) = &self.options.place else {
            return;
        };
        let head = self
            .predicate()
            .and_then(|r| Oid::parse(&r.tested.tree_sha));
        let algorithm = head.map_or(Algorithm::Sha1, |oid| oid.algorithm());
        match Store::open(place, algorithm) {
            Ok(store) => self.store = Some(store),
            Err(error) => self.report.warnings.push(error.to_string()),
        }
    }

    fn floor(&self) -> Outcomes {
        let run = self.run.as_ref()?;
        let tier = &run.record.isolation;
        let said = format!("{tier}, {}", show::TIER_SHORT);
        Some(match &self.options.floor {
            None => Ok(format!("no floor was asked for; {said}").into()),
            Some(floor) if tier::meets(tier, floor) => Ok(said.into()),
            Some(floor) => Err(Refused::new(
                "floor_not_met",
                format!("the tier is {said}; the floor is {floor}"),
            )),
        })
    }

    fn verdict(&self) -> Outcomes {
        let outcome = self.outcome.as_ref()?;
        let counts = outcome.counts;
        let said = format!(
            "{} {}/{}/{}/{}",
            outcome.verdict.name(),
            counts.passed,
            counts.warned,
            counts.failed,
            counts.skipped
        );
        Some(match outcome.verdict {
            Verdict::Passed => Ok(said.into()),
            Verdict::Warned if !self.options.refuse_warned => Ok(said.into()),
            _ if counts.passed + counts.warned + counts.failed == 0 => {
                Err(Refused::new("no_tests", said))
            }
            _ => {
                let why = outcome.remarks.first();
                let why = why.map_or_else(String::new, |why| format!(": {why}"));
                Err(Refused::new("tests_failed", said + &why))
            }
        })
    }

    fn finish(mut self) -> Report {
        // What was to be checked and could not be is no pass.
        if self.options.place.is_some() && self.report.refusal().is_none() {
            for step in &mut self.report.steps {
                if step.state == State::NotChecked {
                    step.state = State::Refused;
                    step.code = Some("git_commit");
                    step.detail = "it could not be checked".to_owned();
                }
            }
        }
        if let (Some((receipt, payload)), Some(run), Some(outcome)) =
            (&self.receipt, &self.run, &self.outcome)
        {
            let facts = show::facts(&receipt.predicate, payload, run, outcome, &self.folder.bom);
            for file in facts.added.iter().filter(|file| file.over_left_out) {
                self.report.warnings.push(format!(
                    "{} is not of the commit and stands where a file of the commit was left out",
                    file.path
                ));
            }
            if !facts.added.is_empty() {
                self.report.warnings.push(format!(
                    "{} files were sent that are not of the commit",
                    facts.added.len()
                ));
            }
            self.report.facts = Some(facts);
        }
        self.report.run = self.run;
        self.report.outcome = self.outcome;
        self.report.receipt = self.receipt.map(|(statement, _)| statement);
        self.report
    }
}
