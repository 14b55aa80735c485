//! A log that cannot be written, or that nobody reads.

use std::{
    io::{self, Write},
    sync::{Arc, mpsc},
};

use plimsoll_wire::{Code, Tier};

use super::{
    RunService,
    fake::{Fake, call, snippet},
};
use crate::{
    admission::{Limiter, Limits},
    call::Service,
    log::{Format, Log},
    log_queue::LINES,
    provider::Provider,
};

fn service(log: &Log) -> (Arc<Fake>, RunService) {
    let fake = Arc::new(Fake::default());
    let limiter = Limiter::new(Limits {
        max_concurrent: 8,
        per_key: 4,
        rate_per_min: 0,
        burst: 0,
    });
    let provider = Arc::clone(&fake) as Arc<dyn Provider>;
    let service = RunService::new(provider, limiter, log.clone(), Some(Tier::Container));
    (fake, service)
}

/// Writes what it has permits for.
struct Gated(mpsc::Receiver<()>);

impl Write for Gated {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.recv().map_err(io::Error::other)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_audit_line_that_is_lost_is_counted_and_ends_readiness() {
    let (permits, taken) = mpsc::channel();
    let log = Log::new(Format::Json, Gated(taken));
    let (_, service) = service(&log);
    permits.send(()).unwrap();
    service.run(call(None), snippet("1")).await.unwrap();
    assert_eq!(log.lost(), 0);
    assert!(service.ready().await);
    drop(permits);
    service.run(call(None), snippet("1")).await.unwrap();
    assert_eq!(log.lost(), 1);
    assert!(!service.ready().await);
}

#[tokio::test(start_paused = true)]
async fn no_run_begins_that_the_log_has_no_room_for() {
    let (permits, taken) = mpsc::channel();
    let log = Log::new(Format::Json, Gated(taken));
    log.detach().unwrap();
    let (fake, service) = service(&log);
    // One may be in the writer's hand.
    for _ in 0..=LINES {
        log.info("line").end();
    }
    assert!(!service.ready().await);
    let refused = service.run(call(None), snippet("1")).await.unwrap_err();
    assert_eq!(refused.code(), Code::Unavailable);
    assert!(refused.not_dispatched().is_some());
    assert_eq!(fake.calls(), 0);
    drop(permits);
}
