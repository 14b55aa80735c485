//! A session of calls, each checked and signed as it comes, appended to the
//! bundle whole.

use std::{io, path::PathBuf, time::Duration};

use plimsoll_attestation::{
    Fault, SigningKey,
    bundle::{
        AppendError, Appended, Entry, SignedEntry,
        disk::{Disk, OsDisk},
    },
};
use plimsoll_client::{
    CallFailure, CallOptions, CancelToken, Checked, Closed, OpenSession, Ran, Session,
    session::Opened,
};
use plimsoll_record::Chain;
use plimsoll_wire::{
    Reason,
    proto::{RunRecord, RunRequest},
};

use crate::{
    embedded::Stopped,
    failure::{RunFailure, class_of_call},
    journal::Journal,
    ledger::Ledger,
    request::budget_ms,
    run::{Daemon, Phase, Target},
    witness::Witness,
};

pub use crate::failure::Class;
pub use crate::session_calls::{CallsError, MAX_CALL_BYTES, MAX_CALLS, parse as parse_calls};

/// How long a close may take when the calls were given up.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Everything a session run needs.
pub struct SessionPlan<'a, D = OsDisk> {
    /// Where it is opened.
    pub target: Target,
    /// The key that signs.
    pub key: &'a SigningKey,
    /// The bundle it is recorded in.
    pub ledger: &'a Ledger<D>,
    /// What it is opened with.
    pub open: OpenSession,
    /// Its calls, in order; see [`parse_calls`].
    pub calls: Vec<RunRequest>,
    /// A call's budget where its line states none.
    pub budget: Option<Duration>,
    /// The whole wait for each answer.
    pub wait: Duration,
    /// Gives it up: the call in progress ends, the session is closed.
    pub cancel: Option<CancelToken>,
    /// Told of each phase as it begins.
    pub on_phase: &'a (dyn Fn(Phase) + Sync),
}

/// What became of a session.
#[derive(Debug)]
pub struct SessionReport {
    /// What the daemon stated at open; `None` when it was not opened.
    pub opened: Option<Opened>,
    /// The calls that may have run and have a checked record, in order.
    pub calls: Vec<SessionCall>,
    /// The close that was checked and signed.
    pub closed: Option<Closed>,
    /// Where the calls and the close stand in the bundle; `None` when nothing
    /// was appended.
    pub appended: Option<Appended>,
    /// A side file with signed entries that are nowhere else.
    pub left: Option<PathBuf>,
    /// What went wrong, in the order it did; empty when all is recorded.
    pub problems: Vec<SessionProblem>,
    /// How the embedded daemon ended, where there was one.
    pub embedded: Option<Stopped>,
}

/// A call with a checked and signed record.
#[derive(Clone, Debug, PartialEq)]
pub enum SessionCall {
    /// It was answered.
    Answered(Checked),
    /// It may have run and gave no answer.
    Unanswered {
        /// The call as sent.
        request: RunRequest,
        /// Its record.
        record: RunRecord,
    },
}

/// Something that went wrong in a session.
#[derive(Debug)]
pub enum SessionProblem {
    /// The bundle could not be used, or no daemon was there. Nothing ran.
    Before(Box<RunFailure>),
    /// The open failed.
    Open(Box<CallFailure>),
    /// A call failed and ended the sequence; its number from 1.
    Call {
        /// Which.
        number: usize,
        /// How.
        failure: Box<CallFailure>,
    },
    /// A call or the close checks and cannot be signed.
    Sign(Fault),
    /// The side file that keeps signed entries meanwhile cannot be written.
    Journal(io::Error),
    /// The close gave no answer or one that does not check; it is not signed,
    /// and the session stands open in the bundle.
    Close(Box<CallFailure>),
    /// The append failed; a side file may hold the signed entries.
    Append(AppendError),
    /// All is recorded; the anchor was not written.
    Anchor(Box<dyn std::error::Error + Send + Sync>),
}

impl SessionReport {
    /// The class of the session's failure; `None` when all is recorded.
    #[must_use]
    pub fn class(&self) -> Option<Class> {
        let kept = self.calls.is_empty() || self.appended.is_some();
        let class = |problem: &SessionProblem| match problem {
            SessionProblem::Before(failure) => failure.class(),
            SessionProblem::Open(failure) => class_of_call(failure),
            SessionProblem::Call { failure, .. } => class_of_call(failure),
            SessionProblem::Close(_)
            | SessionProblem::Sign(_)
            | SessionProblem::Append(_)
            | SessionProblem::Anchor(_) => Class::NotKept,
            // Told in any case; a failure only when nothing else kept them.
            SessionProblem::Journal(_) if kept => Class::Io,
            SessionProblem::Journal(_) => Class::NotKept,
        };
        let classes: Vec<Class> = self.problems.iter().map(class).collect();
        // The worse news first: code that ran without a kept record.
        [Class::MayHaveRun, Class::Unchecked, Class::NotKept]
            .into_iter()
            .find(|worse| classes.contains(worse))
            .or_else(|| classes.first().copied())
    }

    /// Whether code ran: of a call that is kept, or of one that is not.
    #[must_use]
    pub fn ran(&self) -> Ran {
        if !self.calls.is_empty() {
            return Ran::Yes;
        }
        self.problems
            .iter()
            .find_map(|problem| match problem {
                SessionProblem::Before(failure) => Some(failure.ran()),
                SessionProblem::Open(failure) | SessionProblem::Call { failure, .. } => {
                    Some(failure.ran)
                }
                _ => None,
            })
            // No call was sent at all.
            .unwrap_or(Ran::No {
                reason: Reason::Request,
            })
    }
}

/// Opens a session, makes its calls in order and closes it, whatever happened.
/// A call that was refused or lost ends the sequence. What checked is appended
/// to the bundle in one go, with the close and a checkpoint.
///
/// Needs what [`crate::run()`] needs.
pub async fn run_session<D: Disk>(
    plan: SessionPlan<'_, D>,
    witness: &mut impl Witness,
) -> SessionReport {
    let mut report = SessionReport {
        opened: None,
        calls: Vec::new(),
        closed: None,
        appended: None,
        left: None,
        problems: Vec::new(),
        embedded: None,
    };
    if let Err(fault) = plan.ledger.check(plan.key, witness) {
        let failure = Box::new(RunFailure::Bundle(fault));
        report.problems.push(SessionProblem::Before(failure));
        return report;
    }
    let mut daemon = match Daemon::start(&plan.target, plan.cancel.as_ref(), plan.on_phase).await {
        Ok(daemon) => daemon,
        Err(failure) => {
            report
                .problems
                .push(SessionProblem::Before(Box::new(failure)));
            return report;
        }
    };
    (plan.on_phase)(Phase::WaitingForTheRun);
    let options = CallOptions {
        timeout: Some(plan.wait),
        cancel: plan.cancel.clone(),
    };
    let opening = Box::pin(daemon.client.open_session(&plan.open, &options)).await;
    let mut work = Work {
        plan: &plan,
        report: &mut report,
        entries: Vec::new(),
        journal: None,
    };
    match opening {
        Ok(session) => {
            Box::pin(work.session(&session, &options)).await;
            daemon.begin_stop();
            work.append(witness);
        }
        Err(failure) => work.report.problems.push(SessionProblem::Open(failure)),
    }
    report.embedded = daemon.stop(plan.cancel.as_ref()).await;
    report
}

struct Work<'w, 'p, D: Disk> {
    plan: &'w SessionPlan<'p, D>,
    report: &'w mut SessionReport,
    entries: Vec<SignedEntry>,
    journal: Option<Journal<D::File>>,
}

impl<D: Disk> Work<'_, '_, D> {
    async fn session(&mut self, session: &Session, options: &CallOptions) {
        self.report.opened = Some(session.opened().clone());
        match Journal::create(self.plan.ledger.disk(), self.plan.ledger.path()) {
            Ok(journal) => self.journal = Some(journal),
            // No code has run: without a place for its evidence none will.
            Err(error) => {
                self.report.problems.push(SessionProblem::Journal(error));
                return self.close(session).await;
            }
        }
        for (i, call) in self.plan.calls.iter().enumerate() {
            let mut call = call.clone();
            if call.timeout_ms <= 0 {
                call.timeout_ms = budget_ms(self.plan.budget);
            }
            match session.call(&call, options).await {
                Ok(checked) => {
                    let entry = Entry::answered(&checked.request, &checked.response);
                    self.report.calls.push(SessionCall::Answered(checked));
                    if !self.sign(entry) {
                        break;
                    }
                }
                Err(mut failure) => {
                    let goes_on = match failure.unanswered.take() {
                        Some(unanswered) => {
                            let (request, record) = *unanswered;
                            let entry = Entry::unanswered(&request, &record);
                            self.report
                                .calls
                                .push(SessionCall::Unanswered { request, record });
                            self.sign(entry)
                        }
                        None => {
                            let number = i + 1;
                            self.report
                                .problems
                                .push(SessionProblem::Call { number, failure });
                            false
                        }
                    };
                    if !goes_on {
                        break;
                    }
                }
            }
        }
        self.close(session).await;
    }

    /// Signs an entry and keeps it; whether the session may go on.
    fn sign(&mut self, entry: Result<Entry, Fault>) -> bool {
        let signed = match entry {
            Ok(entry) => entry.sign(self.plan.key),
            Err(fault) => {
                self.report.problems.push(SessionProblem::Sign(fault));
                return false;
            }
        };
        let kept = self
            .journal
            .as_mut()
            .map_or(Ok(()), |journal| journal.keep(&signed));
        self.entries.push(signed);
        match kept {
            Ok(()) => true,
            Err(error) => {
                self.report.problems.push(SessionProblem::Journal(error));
                false
            }
        }
    }

    async fn close(&mut self, session: &Session) {
        // Not cut by the token that gave the calls up.
        let given_up = self
            .plan
            .cancel
            .as_ref()
            .is_some_and(CancelToken::is_cancelled);
        let options = CallOptions {
            timeout: Some(if given_up {
                CLOSE_WITHIN
            } else {
                self.plan.wait
            }),
            cancel: None,
        };
        match session.close(&options).await {
            Ok(closed) => {
                // Equal to what the client saw, or it would not be `Ok`.
                let chain = self.chain(&closed.session);
                let entry = Entry::close(&chain, closed.calls, &closed.last_record_sha256);
                if self.sign(entry) {
                    self.report.closed = Some(closed);
                }
            }
            Err(failure) => self.report.problems.push(SessionProblem::Close(failure)),
        }
    }

    /// The chain of the records that were signed.
    fn chain(&self, fingerprint: &str) -> Chain {
        let mut chain = Chain::new(fingerprint);
        for call in &self.report.calls {
            let record = match call {
                SessionCall::Answered(checked) => checked.record(),
                SessionCall::Unanswered { record, .. } => record,
            };
            // One that does not continue leaves the chain behind, and the
            // close then differs and is not signed.
            if chain.advance(record).is_err() {
                break;
            }
        }
        chain
    }

    fn append(&mut self, witness: &mut impl Witness) {
        let journal = self.journal.take();
        if self.entries.is_empty() {
            if let Some(journal) = journal {
                journal.remove();
            }
            return;
        }
        (self.plan.on_phase)(Phase::Signing);
        let plan = self.plan;
        match plan.ledger.append(plan.key, &self.entries, witness) {
            Ok(appended) => {
                if let Err(error) = witness.appended(&appended) {
                    self.report.problems.push(SessionProblem::Anchor(error));
                }
                self.report.appended = Some(appended);
                if let Some(journal) = journal {
                    journal.remove();
                }
            }
            Err(error) => {
                // One side file is enough.
                match (&error.kept, journal) {
                    (Ok(_), Some(journal)) => journal.remove(),
                    (Err(_), Some(journal)) => self.report.left = Some(journal.path().to_owned()),
                    (_, None) => {}
                }
                if let Ok(path) = &error.kept {
                    self.report.left = Some(path.clone());
                }
                self.report.problems.push(SessionProblem::Append(error));
            }
        }
    }
}
