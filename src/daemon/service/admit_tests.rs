//! Paid time: reserved before a run is admitted, charged at its end.

use std::{
    sync::{Arc, atomic::Ordering::SeqCst},
    time::Duration,
};

use plimsoll_wire::{Code, Kind, Reason};
use tokio::sync::Notify;

use super::fake::{Fake, Rig, call, script, snippet};
use crate::{
    admission::{Ledger, Limits, Moment, Shed},
    call::{CallError, Service},
    provider::{Capabilities, Environment, Metering, ProviderError, ScriptOutput},
};

const TEARDOWN: Duration = Duration::from_secs(33);

/// A provider billed by the second whose runs end when they are told to.
fn billed(release: &Arc<Notify>) -> Fake {
    let release = Arc::clone(release);
    let ceiling = Environment {
        ceiling: Duration::from_secs(120),
        ..Environment::default()
    };
    Fake {
        metering: Some(Metering {
            teardown: TEARDOWN,
            default_timeout: Duration::from_secs(30),
        }),
        environments: [(Kind::Javascript.name(), ceiling)].into(),
        behaviour: Box::new(move |_, _| {
            let release = Arc::clone(&release);
            Box::pin(async move {
                release.notified().await;
                Ok(script(ScriptOutput::default()))
            })
        }),
        ..Fake::default()
    }
}

struct Paid {
    rig: Rig,
    ledger: Arc<Ledger>,
}

fn paid(fake: Fake, limits: Limits, daemon: u64, own: u64) -> Paid {
    let ledger = Ledger::new(daemon, [(Arc::from("a"), own)].into());
    let rig = Rig::limited(fake, limits);
    let Rig { fake, service, log } = rig;
    let service = Arc::into_inner(service)
        .unwrap()
        .with_ledger(Arc::clone(&ledger));
    let rig = Rig {
        fake,
        service: Arc::new(service),
        log,
    };
    Paid { rig, ledger }
}

fn free() -> Limits {
    Limits {
        max_concurrent: 8,
        per_key: 0,
        rate_per_min: 0,
        burst: 0,
    }
}

impl Paid {
    async fn run(&self, timeout_ms: i32) -> Result<(), CallError> {
        let mut request = snippet("1");
        request.timeout_ms = timeout_ms;
        let answer = self.rig.service.run(call(Some("a")), request).await;
        answer.map(|_| ())
    }

    fn used(&self) -> Duration {
        self.ledger.used_by("a", Moment::now())
    }

    async fn begun(&self, runs: usize) {
        while self.rig.fake.calls.load(SeqCst) < runs {
            tokio::task::yield_now().await;
        }
    }
}

fn refused(answer: Result<(), CallError>) -> String {
    let error = answer.unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    assert_eq!(error.not_dispatched(), Some(Reason::Capacity));
    error.message().to_owned()
}

#[tokio::test]
async fn a_run_reserves_its_budget_and_the_removal() {
    let release = Arc::new(Notify::new());
    let paid = Arc::new(paid(billed(&release), free(), 0, 100));
    let first = tokio::spawn({
        let paid = Arc::clone(&paid);
        async move { paid.run(60_000).await }
    });
    paid.begun(1).await;
    assert_eq!(paid.used(), Duration::from_secs(93));
    let text = refused(paid.run(60_000).await);
    assert!(
        text.contains("7 s are left of 100 s a day") && text.contains("reserves 93 s"),
        "{text}"
    );
    assert_eq!(paid.rig.service.limiter().shed(Shed::PaidCaller), 1);
    assert_eq!(paid.rig.fake.calls(), 1);
    release.notify_one();
    first.await.unwrap().unwrap();
    assert!(paid.used() < Duration::from_secs(30), "{:?}", paid.used());
    assert!(
        paid.rig
            .log
            .text()
            .contains("\"grant_profile\":\"\",\"paid_seconds\":")
    );
}

#[tokio::test]
async fn budgets_are_cut_to_the_ceiling_and_default() {
    for (timeout_ms, seconds) in [
        (0, 63),
        (-1, 63),
        (1_000, 34),
        (300_000, 153),
        (i32::MAX, 153),
    ] {
        let release = Arc::new(Notify::new());
        let paid = Arc::new(paid(billed(&release), free(), 0, 1000));
        let run = tokio::spawn({
            let paid = Arc::clone(&paid);
            async move { paid.run(timeout_ms).await }
        });
        paid.begun(1).await;
        assert_eq!(paid.used(), Duration::from_secs(seconds), "{timeout_ms}");
        release.notify_one();
        run.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn the_daemons_allowance_tells_no_numbers() {
    let paid = paid(billed(&Arc::default()), free(), 50, 0);
    let text = refused(paid.run(60_000).await);
    assert!(!text.contains(|c: char| c.is_ascii_digit()), "{text}");
    assert_eq!(paid.rig.service.limiter().shed(Shed::PaidDaemon), 1);
}

#[tokio::test]
async fn a_refusal_by_the_limiter_costs_nothing_and_the_other_way_round() {
    let release = Arc::new(Notify::new());
    let limits = Limits {
        rate_per_min: 1,
        burst: 1,
        ..free()
    };
    let paid = paid(billed(&release), limits, 0, 100);
    // No token is spent by what the allowance refuses.
    refused(paid.run(90_000).await);
    release.notify_one();
    paid.run(1_000).await.unwrap();
    let used = paid.used();
    let text = refused(paid.run(1_000).await);
    assert!(text.contains("rate"), "{text}");
    assert_eq!(paid.used(), used);
}

#[tokio::test]
async fn what_cannot_be_done_reserves_nothing() {
    let fake = Fake {
        capabilities: Capabilities::default(),
        behaviour: super::fake::answering(|| {
            Err(
                ProviderError::new(crate::provider::Kind::Unsupported, "no snippets")
                    .not_dispatched(Reason::Unsupported),
            )
        }),
        ..billed(&Arc::default())
    };
    let paid = paid(fake, free(), 0, 1);
    let error = paid.run(1_000).await.unwrap_err();
    assert_eq!(error.not_dispatched(), Some(Reason::Unsupported));
    assert_eq!(paid.used(), Duration::ZERO);
}

#[tokio::test]
async fn a_machine_that_stays_costs_the_whole_reservation() {
    let fake = Fake {
        behaviour: Box::new(|_, context| {
            context.teardown.give_up();
            context.teardown.owes(Duration::from_secs(7));
            Box::pin(async { Ok(script(ScriptOutput::default())) })
        }),
        ..billed(&Arc::default())
    };
    let paid = paid(fake, free(), 0, 1000);
    paid.run(60_000).await.unwrap();
    assert_eq!(paid.used(), Duration::from_secs(100));
    let log = paid.rig.log.text();
    assert!(
        log.contains("\"paid_seconds\":100,\"teardown_gave_up\":true"),
        "{log}"
    );
}

#[tokio::test]
async fn a_panic_costs_the_time_so_far() {
    let fake = Fake {
        behaviour: Box::new(|_, _| Box::pin(async { panic!("a fault of the provider") })),
        ..billed(&Arc::default())
    };
    let paid = paid(fake, free(), 0, 100);
    let error = paid.run(60_000).await.unwrap_err();
    assert_eq!(error.not_dispatched(), None);
    assert!(paid.used() < Duration::from_secs(30));
    assert_eq!(paid.rig.service.limiter().inflight(), 0);
}
