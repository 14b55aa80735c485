//! A session of calls, each checked and signed as it comes, appended to the
//! bundle whole.

use std::{io, path::PathBuf, time::Duration};

use plimsoll_attestation::{
    Fault, SigningKey,
    bundle::{
        AppendError, Appended, Report,
        disk::{Disk, OsDisk},
    },
};
use plimsoll_client::{
    CallFailure, CallOptions, CancelToken, Checked, Closed, OpenSession, Ran, Stage,
    session::Opened,
};
use plimsoll_wire::{
    Code, Reason,
    proto::{RunRecord, RunRequest},
};

use crate::{
    embedded::Stopped,
    failure::{RunFailure, class_of_call},
    ledger::Ledger,
    run::{Daemon, Phase, Target},
    session_work::Work,
    size_limit,
    witness::Witness,
};

pub use crate::failure::Class;
pub use crate::session_calls::{CallsError, MAX_CALL_BYTES, MAX_CALLS, parse as parse_calls};

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
    /// Gives it up: the call in progress ends, the session is closed, and the
    /// bundle's lock is not waited for.
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
    /// The close gave no answer or one that does not check. It is not signed,
    /// and nothing of the session is in the bundle: an open session would make
    /// it one that cannot be continued.
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
/// to the bundle in one go, with the close and a checkpoint; without a close
/// that checks nothing is appended, and the signed calls stay in a side file.
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
    size_limit::survive();
    let before = match plan.ledger.check(plan.key, witness) {
        Ok(before) => before,
        Err(fault) => {
            let failure = Box::new(RunFailure::Bundle(fault));
            report.problems.push(SessionProblem::Before(failure));
            return report;
        }
    };
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
    match opening {
        Ok(session) if holds(before.as_ref(), &session.opened().session) => {
            // Not recorded: its close would be a second one in the chain.
            let _ = session.close(&options).await;
            let failure = Box::new(opened_twice());
            report.problems.push(SessionProblem::Open(failure));
        }
        Ok(session) => {
            let mut work = Work::new(&plan, &mut report);
            Box::pin(work.session(&session, &options)).await;
            daemon.begin_stop();
            work.append(before.as_ref(), witness);
        }
        Err(failure) => report.problems.push(SessionProblem::Open(failure)),
    }
    report.embedded = daemon.stop(plan.cancel.as_ref()).await;
    report
}

/// Whether a bundle holds a session already.
fn holds(bundle: Option<&Report>, fingerprint: &str) -> bool {
    bundle.is_some_and(|report| {
        report
            .sessions
            .iter()
            .any(|known| known.session == fingerprint)
    })
}

/// A daemon gives every session an ID of its own. Calls under one that the
/// bundle holds would break its chain, and the whole bundle with it.
fn opened_twice() -> CallFailure {
    CallFailure {
        code: Code::DataLoss,
        message: "the daemon opened a session under an ID that the bundle holds already".into(),
        ran: Ran::Maybe,
        class: plimsoll_client::Class::RecordRefused,
        stage: Stage::Unchecked,
        member: "session".into(),
        ended: None,
        unchecked: None,
        record_error: None,
        checked: None,
        unanswered: None,
        closed: None,
        recorder_error: None,
        tls: None,
    }
}
