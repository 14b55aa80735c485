//! One run from a prepared request to a signed record.
//!
//! The order is fixed: the bundle is checked before anything is contacted, and
//! nothing is signed before the answer checked.

use std::{path::PathBuf, time::Duration};

use plimsoll_attestation::{
    SigningKey,
    bundle::{
        Appended, Entry, Report,
        disk::{Disk, OsDisk},
    },
};
use plimsoll_client::{CallOptions, CancelToken, Checked, Client, Options};
use plimsoll_wire::proto::RunRequest;

use crate::{
    artifacts::{Folder, SaveError},
    embedded::{Embedded, EmbeddedOptions, Stopped},
    failure::{NotKept, RunFailure},
    ledger::{Ledger, Wait},
    size_limit,
    witness::Witness,
};

/// Where a request is sent.
#[derive(Clone)]
pub enum Target {
    /// A daemon of our own, for this run.
    Embedded(EmbeddedOptions),
    /// A daemon someone runs. Its recorder, if any, is not used.
    Remote(Box<Options>),
}

/// What a run is doing; for a progress line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The embedded daemon starts.
    StartingDaemon,
    /// The request is under way.
    WaitingForTheRun,
    /// The record is signed and appended.
    Signing,
    /// Another run holds the bundle's lock; the code has run.
    WaitingForTheLock,
}

/// Everything a run needs. The request was prepared and checked before.
pub struct RunPlan<'a, D = OsDisk> {
    /// Where it is sent.
    pub target: Target,
    /// The key that signs; it never leaves this process.
    pub key: &'a SigningKey,
    /// The bundle it is recorded in.
    pub ledger: &'a Ledger<D>,
    /// What is sent, exactly as given.
    pub request: RunRequest,
    /// The whole wait for the answer.
    pub wait: Duration,
    /// Where returned artifacts are written: absent or empty.
    pub save_artifacts: Option<PathBuf>,
    /// Gives the run up; after the answer came, the wait for the bundle's lock.
    pub cancel: Option<CancelToken>,
    /// Told of each phase as it begins.
    pub on_phase: &'a (dyn Fn(Phase) + Sync),
}

/// What became of a run, and of the daemon started for it.
#[derive(Debug)]
pub struct RunReport {
    /// The result.
    pub result: Result<Recorded, Box<RunFailure>>,
    /// How the embedded daemon ended; `None` for a remote one, and when it did
    /// not start.
    pub embedded: Option<Stopped>,
}

/// A run that is signed into its bundle.
#[derive(Debug)]
pub struct Recorded {
    /// The exchange; its record's tier is what the daemon states.
    pub checked: Checked,
    /// Where it stands in the bundle: one entry, and the checkpoint after it.
    pub appended: Appended,
    /// Artifacts written, or why none are; `None` when none were to be.
    pub saved: Option<Result<usize, SaveError>>,
}

impl Recorded {
    /// The entry's line in the bundle, from 1.
    #[must_use]
    pub fn line(&self) -> u64 {
        self.appended.lines.first().copied().unwrap_or_default()
    }
}

/// Runs a request once and records it. Never retries.
///
/// Needs a tokio runtime with I/O, time and signals. Appending waits for the
/// bundle's lock on the calling thread, for up to two minutes: only another
/// thread can cancel that wait, which leaves the signed entry in a side file.
///
/// From the first run on, a write past the process's file size limit fails
/// instead of ending the process (SIGXFSZ is handled), so that what ran is
/// kept or told.
pub async fn run<D: Disk>(plan: RunPlan<'_, D>, witness: &mut impl Witness) -> RunReport {
    let early = |failure| RunReport {
        result: Err(Box::new(failure)),
        embedded: None,
    };
    size_limit::survive();
    let before = match plan.ledger.check(plan.key, witness) {
        Ok(before) => before,
        Err(fault) => return early(RunFailure::Bundle(fault)),
    };
    let folder = match plan
        .save_artifacts
        .as_deref()
        .map(Folder::prepare)
        .transpose()
    {
        Ok(folder) => folder,
        Err(error) => return early(RunFailure::Artifacts(error)),
    };
    let mut daemon = match Daemon::start(&plan.target, plan.cancel.as_ref(), plan.on_phase).await {
        Ok(daemon) => daemon,
        Err(failure) => {
            folder.into_iter().for_each(Folder::abandon);
            return early(failure);
        }
    };
    (plan.on_phase)(Phase::WaitingForTheRun);
    let options = CallOptions {
        timeout: Some(plan.wait),
        cancel: plan.cancel.clone(),
    };
    let answer = daemon.client.run_with(&plan.request, &options).await;
    // It ends beside the work that is left.
    daemon.begin_stop();
    let result = match answer {
        Ok(checked) => {
            (plan.on_phase)(Phase::Signing);
            record(&plan, checked, before.as_ref(), folder, witness)
        }
        Err(failure) => {
            folder.into_iter().for_each(Folder::abandon);
            Err(Box::new(RunFailure::Call(failure)))
        }
    };
    RunReport {
        result,
        embedded: daemon.stop(plan.cancel.as_ref()).await,
    }
}

fn record<D: Disk>(
    plan: &RunPlan<'_, D>,
    checked: Checked,
    before: Option<&Report>,
    folder: Option<Folder>,
    witness: &mut impl Witness,
) -> Result<Recorded, Box<RunFailure>> {
    let not_kept = |checked: Checked, why| {
        let checked = Box::new(checked);
        Box::new(RunFailure::NotKept { checked, why })
    };
    let entry = match Entry::answered(&checked.request, &checked.response) {
        Ok(entry) => entry.sign(plan.key),
        Err(fault) => return Err(not_kept(checked, NotKept::Sign(fault))),
    };
    let wait = Wait {
        cancel: plan.cancel.as_ref(),
        on_phase: plan.on_phase,
    };
    let appended = match (plan.ledger).append(plan.key, &[entry], before, wait, witness) {
        Ok(appended) => appended,
        Err(error) => return Err(not_kept(checked, NotKept::Append(error))),
    };
    let saved = folder.map(|folder| folder.save(&checked.request, &checked.response));
    if let Err(error) = witness.appended(&appended, plan.key) {
        return Err(not_kept(checked, NotKept::Anchor { appended, error }));
    }
    Ok(Recorded {
        checked,
        appended,
        saved,
    })
}

/// A client, and the daemon it speaks to when that is our own.
pub(crate) struct Daemon {
    pub(crate) client: Client,
    embedded: Option<Embedded>,
}

impl Daemon {
    pub(crate) async fn start(
        target: &Target,
        cancel: Option<&CancelToken>,
        on_phase: &(dyn Fn(Phase) + Sync),
    ) -> Result<Daemon, RunFailure> {
        let (options, embedded) = match target {
            Target::Remote(options) => {
                let mut options = (**options).clone();
                // This run records by itself.
                options.recorder = None;
                (options, None)
            }
            Target::Embedded(embedded) => {
                on_phase(Phase::StartingDaemon);
                let embedded = Embedded::start(embedded, cancel)
                    .await
                    .map_err(RunFailure::Environment)?;
                (embedded.client_options(), Some(embedded))
            }
        };
        match Client::new(options) {
            Ok(client) => Ok(Daemon { client, embedded }),
            Err(error) => Err(RunFailure::Client(error)),
        }
    }

    pub(crate) fn begin_stop(&mut self) {
        if let Some(embedded) = &mut self.embedded {
            embedded.begin_stop();
        }
    }

    pub(crate) async fn stop(self, cancel: Option<&CancelToken>) -> Option<Stopped> {
        let given_up = cancel.is_some_and(CancelToken::is_cancelled);
        match self.embedded {
            Some(embedded) => Some(embedded.stop(given_up).await),
            None => None,
        }
    }
}
