//! Running recorded requests again, and comparing what comes back with the
//! signed results.
//!
//! Two passes over one open file: the first verifies the whole bundle and
//! remembers where its calls stand, the second reads each call again when its
//! turn comes. A line is used in the second pass only when its bytes still have
//! the digest they were verified with, so nobody can put another request in
//! between. Nothing is contacted before the first pass is done.

mod compare;
mod select;

use std::{
    io::{self, Read, Seek, SeekFrom},
    time::Duration,
};

use plimsoll_attestation::{
    Line,
    statement::{Unverified, read_unverified},
};
use plimsoll_client::{CallFailure, CallOptions, CancelToken, Client, OpenSession, Ran, Session};
use plimsoll_record::{Digest, result_digest};
use plimsoll_wire::{
    Reason,
    proto::{self, RunRecord, RunRequest, RunResponse},
};

pub use select::{SelectError, Selection, select};

use crate::{
    embedded::Stopped,
    failure::RunFailure,
    run::{Daemon, Phase, Target},
};
use select::{Place, Unit};

/// How long a session's close may take once the replay was given up.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// What a replay needs beside the selection and its file.
pub struct ReplayPlan<'a> {
    /// Where the requests are sent.
    pub target: Target,
    /// The longest wait for one call.
    pub wait: Duration,
    /// Gives the replay up: the call in flight ends, no further one is sent.
    pub cancel: Option<CancelToken>,
    /// Told of each phase as it begins.
    pub on_phase: &'a (dyn Fn(Phase) + Sync),
}

/// One call, replayed.
#[derive(Debug)]
pub struct Replayed {
    /// Its line in the bundle, counted from 1.
    pub line: u64,
    /// The recorded session's fingerprint; empty for a single run.
    pub session: String,
    /// The protocol number its request states.
    pub protocol: u32,
    /// The signed result digest; empty for a call recorded without an answer.
    pub recorded: String,
    /// Digest of the replayed result, where a checked answer came.
    pub replayed: Option<Digest>,
    /// What the comparison says.
    pub outcome: Outcome,
}

/// What came of one replayed call.
#[derive(Debug)]
pub enum Outcome {
    /// The same result.
    Same,
    /// Another result.
    Different {
        /// The first member of the result that differs, in digest order.
        member: String,
    },
    /// No checked answer came.
    Failed(Problem),
    /// It was recorded without an answer, so there is nothing to compare.
    Unanswered {
        /// The status code it was recorded with.
        code: String,
        /// Why its replay failed, when it did; `None` also when the daemon
        /// again gave a record of a call without an answer that checks.
        problem: Option<Problem>,
    },
}

/// Why a call gave no checked answer.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The failure of the call, or of opening its session.
    pub failure: Box<CallFailure>,
    /// Whether its session could not be opened: then the call was never sent.
    pub at_open: bool,
}

impl Problem {
    /// Whether code of the call ran.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match self.failure.ran {
            Ran::Maybe | Ran::Yes if self.at_open => Ran::No {
                reason: Reason::Unknown,
            },
            ran => ran,
        }
    }
}

impl Replayed {
    /// Whether code of the replayed call ran.
    #[must_use]
    pub fn ran(&self) -> Ran {
        match &self.outcome {
            Outcome::Same | Outcome::Different { .. } => Ran::Yes,
            Outcome::Failed(problem) => problem.ran(),
            Outcome::Unanswered { problem, .. } => match problem {
                Some(problem) => problem.ran(),
                None if self.replayed.is_some() => Ran::Yes,
                None => Ran::Maybe,
            },
        }
    }
}

/// What ended a replay before its last call.
#[derive(Debug)]
pub enum Halt {
    /// No daemon; nothing was sent.
    Before(Box<RunFailure>),
    /// The line is not any more what was verified. It was not sent.
    Changed {
        /// Its number, counted from 1.
        line: u64,
    },
    /// The file cannot be read any more.
    Read {
        /// The line's number, counted from 1.
        line: u64,
        /// Why.
        error: io::Error,
    },
}

/// How a replay ended. Its calls were handed out one by one.
#[derive(Debug, Default)]
pub struct ReplayReport {
    /// What ended it early.
    pub halt: Option<Halt>,
    /// Closes that did not check: the recorded session's fingerprint, and why.
    /// A replay is not signed, so this is told and changes no outcome.
    pub closes: Vec<(String, Box<CallFailure>)>,
    /// How the embedded daemon ended; `None` for a remote one, and when it did
    /// not start.
    pub embedded: Option<Stopped>,
}

/// Replays the calls of a selection, in order, and hands each to `on_call` as it
/// is done. Single runs are sent exactly as stored; each recorded session gets
/// one fresh session of its own. A call's failure does not stop the next one.
///
/// `source` is the file the selection was made from, still open. Memory is that
/// of one call. Needs what [`crate::run()`] needs.
pub async fn replay(
    plan: ReplayPlan<'_>,
    selection: &Selection,
    source: &mut (impl Read + Seek),
    on_call: &mut dyn FnMut(Replayed),
) -> ReplayReport {
    let mut report = ReplayReport::default();
    let mut daemon = match Daemon::start(&plan.target, plan.cancel.as_ref(), plan.on_phase).await {
        Ok(daemon) => daemon,
        Err(failure) => {
            report.halt = Some(Halt::Before(Box::new(failure)));
            return report;
        }
    };
    (plan.on_phase)(Phase::WaitingForTheRun);
    let mut work = Work {
        client: &daemon.client,
        options: CallOptions {
            timeout: Some(plan.wait),
            cancel: plan.cancel.clone(),
        },
        report: &mut report,
        on_call,
    };
    for unit in selection.units() {
        if work.given_up() {
            break;
        }
        let done = match unit {
            Unit::Single(place) => Box::pin(work.single(place, source)).await,
            Unit::Session { fingerprint, calls } => {
                Box::pin(work.session(fingerprint, calls, source)).await
            }
        };
        if let Err(halt) = done {
            work.report.halt = Some(halt);
            break;
        }
    }
    daemon.begin_stop();
    report.embedded = daemon.stop(plan.cancel.as_ref()).await;
    report
}

struct Work<'w> {
    client: &'w Client,
    options: CallOptions,
    report: &'w mut ReplayReport,
    on_call: &'w mut dyn FnMut(Replayed),
}

type Answer = Result<RunResponse, Problem>;

impl Work<'_> {
    fn given_up(&self) -> bool {
        let cancel = self.options.cancel.as_ref();
        cancel.is_some_and(CancelToken::is_cancelled)
    }

    async fn single(&mut self, place: &Place, source: &mut (impl Read + Seek)) -> Result<(), Halt> {
        let stored = Stored::read(place, source)?;
        let answer = self.client.run_with(&stored.request, &self.options).await;
        let answer = answer
            .map(|checked| checked.response)
            .map_err(|failure| Problem {
                failure,
                at_open: false,
            });
        self.hand_out(place, stored, answer);
        Ok(())
    }

    async fn session(
        &mut self,
        fingerprint: &str,
        calls: &[Place],
        source: &mut (impl Read + Seek),
    ) -> Result<(), Halt> {
        let open = OpenSession::default();
        let session = match Box::pin(self.client.open_session(&open, &self.options)).await {
            Ok(session) => session,
            Err(failure) => {
                for place in calls {
                    let stored = Stored::read(place, source)?;
                    let problem = Problem {
                        failure: failure.clone(),
                        at_open: true,
                    };
                    self.hand_out(place, stored, Err(problem));
                }
                return Ok(());
            }
        };
        let mut done = Ok(());
        for place in calls {
            if self.given_up() {
                break;
            }
            done = self.session_call(&session, place, source).await;
            if done.is_err() {
                break;
            }
        }
        self.close(fingerprint, &session).await;
        done
    }

    async fn session_call(
        &mut self,
        session: &Session,
        place: &Place,
        source: &mut (impl Read + Seek),
    ) -> Result<(), Halt> {
        let stored = Stored::read(place, source)?;
        let answer = session.call(&stored.request, &self.options).await;
        let answer = answer
            .map(|checked| checked.response)
            .map_err(|failure| Problem {
                failure,
                at_open: false,
            });
        self.hand_out(place, stored, answer);
        Ok(())
    }

    async fn close(&mut self, fingerprint: &str, session: &Session) {
        // Not cut by the token that gave the calls up.
        let options = CallOptions {
            timeout: match self.options.timeout {
                Some(wait) if self.given_up() => Some(wait.min(CLOSE_WITHIN)),
                wait => wait,
            },
            cancel: None,
        };
        if let Err(failure) = session.close(&options).await {
            self.report.closes.push((fingerprint.to_owned(), failure));
        }
    }

    fn hand_out(&mut self, place: &Place, stored: Stored, answer: Answer) {
        let record = stored.record;
        let replayed = answer.as_ref().ok().map(result_digest);
        let outcome = match answer {
            answer if !record.unanswered.is_empty() => Outcome::Unanswered {
                code: record.unanswered,
                problem: answer
                    .err()
                    .filter(|problem| problem.failure.unanswered.is_none()),
            },
            Err(problem) => Outcome::Failed(problem),
            Ok(_) if replayed.is_some_and(|digest| digest.is(&record.result_sha256)) => {
                Outcome::Same
            }
            Ok(response) => Outcome::Different {
                member: compare::first_difference(&stored.response, &response),
            },
        };
        (self.on_call)(Replayed {
            line: place.line,
            session: record.session,
            protocol: stored.request.protocol,
            recorded: record.result_sha256,
            replayed,
            outcome,
        });
    }
}

/// A call as the bundle holds it.
struct Stored {
    record: RunRecord,
    request: RunRequest,
    response: RunResponse,
}

impl Stored {
    /// Reads a call again. Equal bytes were verified in the first pass, so
    /// signature and record need no second check.
    fn read(place: &Place, source: &mut (impl Read + Seek)) -> Result<Self, Halt> {
        let changed = || Halt::Changed { line: place.line };
        let bytes = bytes_at(place, source).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => changed(),
            _ => Halt::Read {
                line: place.line,
                error,
            },
        })?;
        if Digest::of(&bytes) != place.digest {
            return Err(changed());
        }
        let line = Line::decode(&bytes).map_err(|_| changed())?;
        let payload = line.envelope.and_then(|e| e.payload_bytes().ok());
        let Some(Ok(Unverified::Record(record))) = payload.map(|bytes| read_unverified(&bytes))
        else {
            return Err(changed());
        };
        let request = line.request.ok_or_else(changed)?;
        Ok(Stored {
            record: *record,
            request: proto::decode(&request).map_err(|_| changed())?,
            response: proto::decode(line.response.as_deref().unwrap_or_default())
                .map_err(|_| changed())?,
        })
    }
}

fn bytes_at(place: &Place, source: &mut (impl Read + Seek)) -> io::Result<Vec<u8>> {
    source.seek(SeekFrom::Start(place.offset))?;
    let mut bytes = vec![0; place.length];
    source.read_exact(&mut bytes)?;
    Ok(bytes)
}
