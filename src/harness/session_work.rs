//! The calls of a session, one after the other, and what becomes of what was
//! signed.

use std::time::Duration;

use plimsoll_attestation::{
    Fault,
    bundle::{Entry, Report, SignedEntry, disk::Disk, keep_aside},
};
use plimsoll_client::{CallOptions, CancelToken, Session};
use plimsoll_record::Chain;

use crate::{
    journal::Journal,
    ledger::Wait,
    request::budget_ms,
    run::Phase,
    session::{SessionCall, SessionPlan, SessionProblem, SessionReport},
    witness::Witness,
};

/// How long a close may take when the calls were given up.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// A session in progress.
pub(crate) struct Work<'w, 'p, D: Disk> {
    plan: &'w SessionPlan<'p, D>,
    report: &'w mut SessionReport,
    /// What was signed, in order.
    entries: Vec<SignedEntry>,
    journal: Option<Journal<D::File>>,
    /// A call or the close could not be signed.
    unsigned: bool,
}

impl<'w, 'p, D: Disk> Work<'w, 'p, D> {
    pub(crate) fn new(plan: &'w SessionPlan<'p, D>, report: &'w mut SessionReport) -> Self {
        Work {
            plan,
            report,
            entries: Vec::new(),
            journal: None,
            unsigned: false,
        }
    }

    /// Makes the calls and closes, whatever happened.
    pub(crate) async fn session(&mut self, session: &Session, options: &CallOptions) {
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
                self.unsigned = true;
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
                let signed = entry.is_ok();
                self.sign(entry);
                self.report.closed = signed.then_some(closed);
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

    /// Leaves the signed entries of a session that is not whole in a side file
    /// alone: with them the bundle would hold an open session or a gap, and be
    /// none that verifies.
    fn leave(&mut self, journal: Option<Journal<D::File>>) {
        let disk = self.plan.ledger.disk();
        let left = match journal.map(Journal::leave) {
            Some((path, entries)) if entries == self.entries.len() => Ok(path),
            // It took not all of them; another may.
            Some((path, entries)) => {
                let kept = keep_aside(disk, self.plan.ledger.path(), &self.entries);
                if kept.is_ok() || entries == 0 {
                    let _ = disk.remove(&path);
                    kept
                } else {
                    Ok(path)
                }
            }
            None => keep_aside(disk, self.plan.ledger.path(), &self.entries),
        };
        match left {
            Ok(path) => self.report.left = Some(path),
            Err(error) => self.report.problems.push(SessionProblem::Journal(error)),
        }
    }

    /// Appends what was signed, or leaves it aside.
    pub(crate) fn append(&mut self, before: Option<&Report>, witness: &mut impl Witness) {
        let (plan, journal) = (self.plan, self.journal.take());
        let disk = plan.ledger.disk();
        if self.entries.is_empty() {
            if let Some(journal) = journal {
                journal.remove(disk);
            }
            return;
        }
        if self.unsigned || self.report.closed.is_none() {
            return self.leave(journal);
        }
        (plan.on_phase)(Phase::Signing);
        let wait = Wait {
            cancel: plan.cancel.as_ref(),
            on_phase: plan.on_phase,
        };
        match (plan.ledger).append(plan.key, &self.entries, before, wait, witness) {
            Ok(appended) => {
                if let Err(error) = witness.appended(&appended, plan.key) {
                    self.report.problems.push(SessionProblem::Anchor(error));
                }
                self.report.appended = Some(appended);
                if let Some(journal) = journal {
                    journal.remove(disk);
                }
            }
            Err(error) => {
                // One side file is enough.
                match (&error.kept, journal) {
                    (Ok(_), Some(journal)) => journal.remove(disk),
                    (Err(_), Some(journal)) => match journal.leave() {
                        (path, 0) => drop(disk.remove(&path)),
                        (path, _) => self.report.left = Some(path),
                    },
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
