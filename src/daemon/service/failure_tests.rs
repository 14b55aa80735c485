//! Runs that fail, hang or are shed: marks, panics, slots.

use std::sync::Arc;

use plimsoll_wire::{Code, Reason, proto::ProjectRun};
use tokio::sync::{Notify, oneshot};

use super::fake::{Fake, Rig, answering, call, request, script, snippet};
use crate::{
    admission::{Capacity, Limits, Shed},
    call::Service,
    provider::{Kind, ProviderError, ScriptOutput},
};

#[tokio::test]
async fn a_provider_keeps_its_mark_and_its_code() {
    let refused = || {
        ProviderError::new(Kind::Unsupported, "python did not start")
            .not_dispatched(Reason::Environment)
    };
    for (error, code, mark) in [
        (refused(), Code::Unimplemented, Some(Reason::Environment)),
        (
            ProviderError::new(Kind::Unsupported, "no"),
            Code::Unimplemented,
            None,
        ),
        (
            ProviderError::new(Kind::InvalidRequest, "the table is too big"),
            Code::InvalidArgument,
            None,
        ),
        (ProviderError::deadline(), Code::DeadlineExceeded, None),
    ] {
        let rig = Rig::new(Fake {
            behaviour: answering(move || Err(error.clone())),
            ..Fake::default()
        });
        let seen = rig.service.run(call(None), snippet("1")).await.unwrap_err();
        assert_eq!((seen.code(), seen.not_dispatched()), (code, mark));
        assert_eq!(rig.service.metrics().runs_failed(), 0);
        assert_eq!(rig.service.metrics().runs(), 1);
    }
}

/// What the provider itself refuses comes after admission, so it costs a start;
/// what is refused before does not.
#[tokio::test]
async fn a_refusal_of_the_provider_spends_a_start() {
    for (kind, code) in [
        (Kind::Unsupported, Code::Unimplemented),
        (Kind::Disabled, Code::FailedPrecondition),
    ] {
        let refused = move || ProviderError::new(kind, "no").not_dispatched(Reason::Unsupported);
        let rig = Rig::limited(
            Fake {
                behaviour: answering(move || Err(refused())),
                ..Fake::default()
            },
            Limits {
                max_concurrent: 8,
                per_key: 0,
                rate_per_min: 1,
                burst: 1,
            },
        );
        let seen = [
            rig.service.run(call(None), snippet("")).await.unwrap_err(),
            rig.service.run(call(None), snippet("1")).await.unwrap_err(),
            rig.service.run(call(None), snippet("1")).await.unwrap_err(),
        ];
        assert_eq!(
            seen.map(|error| (error.code(), error.not_dispatched())),
            [
                (Code::InvalidArgument, Some(Reason::Request)),
                (code, Some(Reason::Unsupported)),
                (Code::ResourceExhausted, Some(Reason::Capacity)),
            ]
        );
        assert_eq!(rig.service.limiter().shed(Shed::Rate), 1);
        assert_eq!(rig.service.metrics().runs_failed(), 0);
    }
}

#[tokio::test]
async fn a_panic_is_an_unmarked_internal_error() {
    let rig = Rig::limited(
        Fake {
            behaviour: Box::new(|spec, _| {
                Box::pin(async move { panic!("choked on {:?} SECRET", spec.payload) })
            }),
            ..Fake::default()
        },
        Limits {
            max_concurrent: 1,
            per_key: 0,
            rate_per_min: 0,
            burst: 0,
        },
    );
    for _ in 0..2 {
        let error = rig
            .service
            .run(call(None), snippet("CANARY"))
            .await
            .unwrap_err();
        assert_eq!(
            (error.code(), error.not_dispatched()),
            (Code::Internal, None)
        );
        let id = error.message().strip_prefix("internal error ").unwrap();
        let (id, _) = id.split_at(16);
        assert!(id.bytes().all(|b| b.is_ascii_hexdigit()));
        assert!(rig.log.text().contains(id));
        assert_eq!(rig.service.limiter().inflight(), 0, "the slot came back");
    }
    for word in ["CANARY", "SECRET"] {
        assert!(!rig.log.text().contains(word));
    }
    assert_eq!(rig.service.metrics().runs_failed(), 2);
}

#[tokio::test]
async fn a_result_of_another_kind_is_a_fault() {
    let rig = Rig::new(Fake::default());
    let project = request(ProjectRun {
        steps: vec!["x".into()],
        ..Default::default()
    });
    let error = rig.service.run(call(None), project).await.unwrap_err();
    assert_eq!(error.code(), Code::Internal);
}

#[tokio::test(start_paused = true)]
async fn a_provider_that_never_ends_is_cut_and_keeps_its_slot() {
    let rig = Rig::new(Fake {
        behaviour: Box::new(|_, context| {
            Box::pin(async move {
                let _held = context;
                std::future::pending().await
            })
        }),
        ..Fake::default()
    });
    let error = rig.service.run(call(None), snippet("1")).await.unwrap_err();
    assert_eq!(
        (error.code(), error.not_dispatched()),
        (Code::DeadlineExceeded, None)
    );
    assert!(error.message().starts_with(crate::surface::DEADLINE));
    assert_eq!(rig.service.limiter().inflight(), 1);
}

#[tokio::test]
async fn concurrency_of_daemon_and_caller() {
    let (begun, mut running) = tokio::sync::mpsc::unbounded_channel();
    let release = Arc::new(Notify::new());
    let gate = Arc::clone(&release);
    let rig = Rig::limited(
        Fake {
            behaviour: Box::new(move |_, _| {
                let (begun, gate) = (begun.clone(), Arc::clone(&gate));
                Box::pin(async move {
                    let released = gate.notified();
                    begun.send(()).unwrap();
                    released.await;
                    Ok(script(ScriptOutput::default()))
                })
            }),
            ..Fake::default()
        },
        Limits {
            max_concurrent: 2,
            per_key: 1,
            rate_per_min: 0,
            burst: 0,
        },
    );
    let start = |id: &'static str| {
        let service = Arc::clone(&rig.service);
        tokio::spawn(async move { service.run(call(Some(id)), snippet("1")).await })
    };
    let first = start("a");
    running.recv().await.unwrap();
    let error = rig
        .service
        .run(call(Some("a")), snippet("1"))
        .await
        .unwrap_err();
    assert_eq!(error.not_dispatched(), Some(Reason::Capacity));
    let second = start("b");
    running.recv().await.unwrap();
    let error = rig
        .service
        .run(call(Some("c")), snippet("1"))
        .await
        .unwrap_err();
    assert_eq!(error.code(), Code::ResourceExhausted);
    let shed = Shed::ALL.map(|cause| rig.service.limiter().shed(cause));
    assert_eq!(shed, [1, 1, 0, 0, 0]);
    release.notify_waiters();
    assert!(first.await.unwrap().is_ok() && second.await.unwrap().is_ok());
    assert_eq!(rig.service.limiter().inflight(), 0);
}

#[tokio::test]
async fn a_provider_may_hold_the_slot_past_its_answer() {
    let (send, held) = oneshot::channel::<Capacity>();
    let send = std::sync::Mutex::new(Some(send));
    let rig = Rig::new(Fake {
        behaviour: Box::new(move |_, context| {
            let send = send.lock().unwrap().take().unwrap();
            assert!(send.send(context.capacity.clone()).is_ok());
            Box::pin(async { Ok(script(ScriptOutput::default())) })
        }),
        ..Fake::default()
    });
    rig.service.run(call(None), snippet("1")).await.unwrap();
    assert_eq!(rig.service.limiter().inflight(), 1);
    drop(held.await.unwrap());
    assert_eq!(rig.service.limiter().inflight(), 0);
}
