//! One bundle against everything that was asked of it.

use std::{
    fs::File,
    io::BufReader,
    path::{Path, PathBuf},
};

use plimsoll_attestation::{
    Fault, PublicKey, Reason,
    bundle::{
        Call, Report, SeenLine, Verification, VerifyOptions, Visitor,
        state::{State, verify_from},
    },
    statement::SessionClose,
};
use plimsoll_console::{
    Class, Console, Failure,
    files::{Dash, Input, Inputs},
    progress::{Measure, Progress},
};

use super::{
    anchor::{Anchors, Outcome},
    follow::Feed,
    state::StateFile,
};
use crate::{
    expect::Expectations,
    explain::{Explain, Explained, Grounds},
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

impl Asked {
    /// Whether every record must be seen, so that a state stands for nothing.
    fn needs_every_record(&self) -> bool {
        self.expectations.speak_of_one() || !self.policies.is_empty() || self.explain.is_some()
    }
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
    pub anchor: Outcome,
    /// Lines that an earlier verification stood for; `None` without a state.
    pub earlier: Option<u64>,
    pub failures: Vec<Failure>,
    /// Whether the success line was printed as the bundle was followed.
    pub announced: bool,
    empty: bool,
    explain: Option<Explain>,
    grounds: Grounds,
}

impl Verdict {
    pub fn new(file: &Path, asked: &Asked) -> Self {
        Verdict {
            file: file.to_owned(),
            report: Report::default(),
            expected: if asked.expectations.speak_of_one() {
                "failed"
            } else {
                "not_asked"
            },
            missing: Vec::new(),
            unexpected: Vec::new(),
            policies: Policies::default(),
            anchor: Outcome::default(),
            earlier: None,
            failures: Vec::new(),
            announced: false,
            empty: false,
            explain: None,
            grounds: Grounds::default(),
        }
    }

    /// Whether the evidence itself was good.
    pub fn is_whole(&self) -> bool {
        self.report.lines > 0
    }

    /// Whether the evidence is good, nothing of it is known to be missing and
    /// what was expected is there.
    pub fn is_verified(&self) -> bool {
        self.is_whole() && !self.empty && self.expected != "failed" && !self.anchor.is_failed()
    }

    /// What is established, as text and as members; `None` when not asked.
    pub fn explained(&self) -> Option<(String, Explained)> {
        let explain = self.explain.as_ref()?;
        let explained = explain.explained(&self.grounds);
        Some((explained.to_text(explain), explained))
    }
}

/// Verifies a bundle and judges what was asked, in that order: evidence,
/// emptiness, expectations, policy, anchors.
pub fn one(
    console: &Console,
    inputs: &Inputs<'_>,
    file: &Path,
    asked: Asked,
    anchors: &mut Anchors,
    state: Option<&StateFile>,
) -> Verdict {
    let mut verdict = Verdict::new(file, &asked);
    let input = match inputs.open(file, Dash::Allowed) {
        Ok(input) => input,
        Err(failure) => {
            verdict.failures.push(failure);
            return verdict;
        }
    };
    if state.is_some() && input.size().is_none() {
        // A pipe is read once, so nothing of it can be read again next time.
        verdict.failures.push(
            Failure::new(
                Class::Io,
                "is not a regular file, which a state goes with",
                "Name the bundle's file, or leave --state out.",
            )
            .file(file),
        );
        return verdict;
    }
    anchors.begin();
    let keys = asked.keys.clone();
    let progress = console.progress(Measure::Bytes(input.size()));
    let mut pass = Pass::new(asked, anchors, Watcher::Progress(progress));
    let (checked, save) = match (state, input.file()) {
        (Some(state), Some(source)) => {
            let resumed = pass.resume(console, source, &keys, state);
            verdict.earlier = Some(resumed.earlier);
            (resumed.checked, Some((state, resumed.next)))
        }
        _ => (pass.read(input, &keys), None),
    };
    pass.conclude(console, &mut verdict, checked, &keys);
    if let Some((state, Some(next))) = save
        && verdict.failures.is_empty()
        && let Err(failure) = state.save(&next)
    {
        verdict.failures.push(failure);
    }
    verdict
}

/// What came of a pass that a state shortened.
struct Resumed {
    checked: Checked,
    /// Lines that the state stood for.
    earlier: u64,
    /// The state to keep.
    next: Option<State>,
}

/// The end of a pass: the report, or the fault that refused the bundle.
pub struct Checked {
    pub result: Result<Report, Fault>,
    /// ID of the key under which lines verified; empty when none did.
    pub key_id: String,
}

/// Where a pass shows that it goes on.
pub enum Watcher<'c> {
    Progress(Progress),
    Feed(Feed<'c>),
}

/// Everything that looks on while a bundle is verified.
pub struct Pass<'p> {
    watcher: Watcher<'p>,
    expectations: Expectations,
    policies: Policies,
    explain: Option<Explain>,
    every_record: bool,
    anchors: &'p mut Anchors,
}

impl<'p> Pass<'p> {
    pub fn new(asked: Asked, anchors: &'p mut Anchors, watcher: Watcher<'p>) -> Self {
        Pass {
            every_record: asked.needs_every_record(),
            watcher,
            expectations: asked.expectations,
            policies: asked.policies,
            explain: asked.explain,
            anchors,
        }
    }

    fn read(&mut self, input: Input, keys: &[PublicKey]) -> Checked {
        let source = BufReader::with_capacity(1 << 16, input);
        let mut verification = Verification::new(keys);
        let read = verification.read(source, self);
        let key_id = verification.report().key_id.clone();
        let result = read.and_then(|()| verification.finish());
        Checked { result, key_id }
    }

    /// Verifies from where a state ends, when it may stand for anything.
    fn resume(
        &mut self,
        console: &Console,
        source: &File,
        keys: &[PublicKey],
        file: &StateFile,
    ) -> Resumed {
        let wanted = self.anchors.line_wanted();
        let state = if self.every_record || wanted.is_err() {
            console
                .note("every record is needed for what was asked, so the whole bundle is verified");
            None
        } else {
            file.load(console)
        };
        let show = wanted.unwrap_or_default();
        let done = verify_from(source, keys, state, show, VerifyOptions::default(), self);
        if let Some(note) = done.note {
            file.not_used(console, note);
        }
        let (result, next) = match done.verdict {
            Ok((report, next)) => (Ok(report), Some(next)),
            Err(fault) => (Err(fault), None),
        };
        Resumed {
            checked: Checked {
                result,
                key_id: done.key_id,
            },
            earlier: done.earlier,
            next,
        }
    }

    /// Judges everything that was asked and closes the pass.
    pub fn conclude(
        self,
        console: &Console,
        verdict: &mut Verdict,
        checked: Checked,
        keys: &[PublicKey],
    ) {
        let Pass {
            watcher,
            expectations,
            policies,
            explain,
            anchors,
            ..
        } = self;
        drop(watcher);
        let file = verdict.file.clone();
        verdict.explain = explain;
        verdict.grounds.key_id = checked.key_id;
        let report = match checked.result {
            Ok(report) => report,
            Err(fault) => {
                verdict.failures.push(refusal::failure(&file, &fault, keys));
                return;
            }
        };
        verdict.grounds.whole = true;
        let failures = &mut verdict.failures;
        if report.records == 0 && !expectations.allow_empty() {
            verdict.empty = true;
            failures.push(refusal::failure(&file, &Fault::new(Reason::Empty), keys));
        } else {
            match expectations.met(&report) {
                Ok(()) => {
                    if expectations.speak_of_one() {
                        verdict.expected = "met";
                    }
                    verdict.grounds.list = expectations.has_list();
                    verdict.grounds.count = expectations.has_count();
                    verdict.grounds.requests = expectations.has_requests();
                }
                Err(unmet) => {
                    verdict.missing = unmet.missing().to_vec();
                    verdict.unexpected = unmet.unexpected().to_vec();
                    failures.push(unmet.failure(&file));
                }
            }
        }
        // Without any call `empty` is told, once.
        if !verdict.empty {
            failures.extend(policies.failures(&file));
        }
        // A cut file must not hide behind another complaint.
        failures.extend(anchors.judge(&file, &report));
        if failures.is_empty()
            && let Err(failure) = anchors.keep(console, &file, &report)
        {
            failures.push(failure);
        }
        verdict.anchor = anchors.outcome();
        verdict.grounds.anchor = verdict.anchor.met().cloned();
        verdict.policies = policies;
        verdict.report = report;
    }
}

impl Visitor for Pass<'_> {
    fn call(&mut self, call: &Call<'_>) {
        self.expectations.call(call);
        self.policies.call(call);
        if let Some(explain) = &mut self.explain {
            explain.call(call);
        }
        if let Watcher::Feed(feed) = &mut self.watcher {
            feed.call(call, &self.policies);
        }
    }

    fn close(&mut self, line: u64, close: &SessionClose) {
        if let Some(explain) = &mut self.explain {
            explain.close(line, close);
        }
        if let Watcher::Feed(feed) = &mut self.watcher {
            feed.close(line, close);
        }
    }

    fn line(&mut self, line: &SeenLine) {
        if let Watcher::Progress(progress) = &self.watcher {
            progress.advance(line.length + 1);
        }
        self.anchors.line(line);
        if let Some(explain) = &mut self.explain {
            explain.line(line);
        }
    }
}
