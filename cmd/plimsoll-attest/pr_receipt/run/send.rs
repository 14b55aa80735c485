//! The one run. A lack of capacity, which ran nothing, is waited for.

use std::time::Duration;

use plimsoll_attestation::SigningKey;
use plimsoll_client::CancelToken;
use plimsoll_console::{Console, Failure, progress::Measure, signals::Interrupts};
use plimsoll_harness::{Ledger, RunFailure, RunPlan, Target, request::default_wait};
use plimsoll_wire::Reason;

use super::{flags::Form, keep::Out, subject::Subject};
use crate::run::{Facts, failure, show_phase, warn_of_killed};

/// Waits before another try, in seconds.
const WAITS: [u64; 3] = [2, 4, 8];

/// Sends the request and signs what comes back into the receipt's bundle.
///
/// # Errors
/// The classes of `run`.
pub fn send(
    console: &Console,
    interrupts: &Interrupts,
    form: &Form,
    subject: &Subject,
    key: &SigningKey,
    target: Target,
    out: &Out,
) -> Result<(), Failure> {
    let runtime = crate::runtime::start()
        .map_err(|error| failure::environment(&plimsoll_console::files::plain_words(&error)))?;
    let cancel = CancelToken::new();
    let token = cancel.clone();
    interrupts.on_first(move |_| token.cancel());
    let bundle = out.bundle();
    let facts = Facts {
        anchor: None,
        bundle: bundle.display().to_string(),
        key_id: key.public().id().to_owned(),
        key_created: true,
        embedded: matches!(target, Target::Embedded(_)),
    };
    let ledger = Ledger::on(out.disk(), &bundle, false);
    let progress = console.progress(Measure::Phase);
    let on_phase = |phase| show_phase(&progress, phase);
    let mut waits = WAITS.iter();
    let result = loop {
        let report = runtime.block_on(plimsoll_harness::run(
            RunPlan {
                target: target.clone(),
                key,
                ledger: &ledger,
                request: subject.request.clone(),
                wait: default_wait(Some(form.timeout)),
                save_artifacts: None,
                cancel: Some(cancel.clone()),
                on_phase: &on_phase,
            },
            &mut (),
        ));
        warn_of_killed(console, report.embedded.as_ref());
        let failed = match report.result {
            Ok(_) => break Ok(()),
            Err(failed) => failed,
        };
        let full = matches!(&*failed, RunFailure::Call(call)
            if call.not_dispatched() == Some(Reason::Capacity));
        match waits.next() {
            Some(seconds) if full && !cancel.is_cancelled() => {
                progress.phase("waiting for capacity");
                runtime.block_on(pause(*seconds, &cancel));
            }
            _ => break Err(failure::of_run(&failed, &facts, None)),
        }
    };
    runtime.shutdown_background();
    result
}

async fn pause(seconds: u64, cancel: &CancelToken) {
    for _ in 0..seconds * 10 {
        if cancel.is_cancelled() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}
