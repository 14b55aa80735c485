//! Memory caps, many runs at once, cancelling, starting.
#![allow(clippy::unwrap_used)]

mod common;

use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use common::{Fake, SECOND, grant};
use plimsoll_quickjs::{CancelToken, HostError, Interpreter, RunError, Settings, StartError};

const HALF_A_MINUTE: Duration = Duration::from_secs(30);

fn interpreter(memory_mb: u32, max_instances: u32) -> Interpreter {
    Interpreter::new(Settings {
        memory_mb,
        max_instances,
    })
    .unwrap()
}

#[test]
fn the_memory_cap_holds() {
    let code = "const a = []; for (let i = 0; i < 128; i++) a.push(new Uint8Array(1 << 20).fill(1)); console.log('ok')";
    for (memory_mb, exit_code, stdout) in [
        (256, 0, "ok\n"),
        (0, 0, "ok\n"),
        (32, 1, ""),
        (8192, 0, "ok\n"),
    ] {
        let outcome = interpreter(memory_mb, 1)
            .run(code, HALF_A_MINUTE, &CancelToken::new(), None)
            .unwrap();
        assert_eq!(
            (outcome.exit_code, outcome.stdout.as_slice()),
            (exit_code, stdout.as_bytes()),
            "{memory_mb} MiB"
        );
    }
}

#[test]
fn a_cap_below_what_the_interpreter_needs_is_a_start_error() {
    let error = Interpreter::new(Settings {
        memory_mb: 1,
        max_instances: 1,
    })
    .err();
    assert!(
        matches!(
            error,
            Some(StartError::MemoryTooSmall {
                have_mb: 1,
                need_mb: 2
            })
        ),
        "{error:?}"
    );
    let outcome = interpreter(2, 1)
        .run("console.log(1)", SECOND, &CancelToken::new(), None)
        .unwrap();
    assert_eq!(outcome.exit_code, 0);
}

#[test]
fn sixty_four_runs_at_once_at_the_cap_all_end_as_runs() {
    let interpreter = interpreter(16, 64);
    let code = "globalThis.mine = globalThis.mine ?? 0; mine++; const a = []; try { for (;;) a.push(new Uint8Array(1 << 16)) }
        catch (e) { a.length = 0; console.log(mine, e.message) }";
    thread::scope(|scope| {
        let runs: Vec<_> = (0..64)
            .map(|_| {
                scope.spawn(|| {
                    interpreter
                        .run(code, HALF_A_MINUTE, &CancelToken::new(), None)
                        .unwrap()
                })
            })
            .collect();
        for run in runs {
            let outcome = run.join().unwrap();
            assert_eq!(
                (outcome.exit_code, outcome.stdout.as_slice()),
                (0, &b"1 out of memory\n"[..])
            );
        }
    });
}

#[test]
fn one_run_too_many_is_told_so() {
    let interpreter = interpreter(16, 1);
    let (entered, inside) = mpsc::channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    let host = Fake::new(move |_, _| {
        entered.send(()).unwrap();
        released.lock().unwrap().recv().unwrap();
        (200, "1".into())
    });
    let held = grant(&["GET /hold"], host);
    thread::scope(|scope| {
        // The pool has two instances more than the setting.
        let runs: Vec<_> = (0..3)
            .map(|_| {
                scope.spawn(|| {
                    interpreter.run(
                        "await host.get('/hold')",
                        HALF_A_MINUTE,
                        &CancelToken::new(),
                        Some(&held),
                    )
                })
            })
            .collect();
        inside.recv().unwrap();
        // The first call holds the fake's lock, so two more wait inside it.
        inside.recv().unwrap();
        inside.recv().unwrap();
        let refused = interpreter.run("1", SECOND, &CancelToken::new(), None);
        assert!(
            matches!(refused, Err(RunError::Host(HostError::NoInstance))),
            "{refused:?}"
        );
        for _ in 0..3 {
            release.send(()).unwrap();
        }
        for run in runs {
            assert_eq!(run.join().unwrap().unwrap().exit_code, 0);
        }
    });
    assert_eq!(
        interpreter
            .run("1", SECOND, &CancelToken::new(), None)
            .unwrap()
            .exit_code,
        0
    );
}

#[test]
fn a_run_is_cancelled_from_another_thread() {
    let interpreter = interpreter(16, 1);
    let (entered, inside) = mpsc::channel();
    let started = grant(
        &["GET /"],
        Fake::new(move |_, _| (200, entered.send(()).map(|()| String::new()).unwrap())),
    );
    let token = CancelToken::new();
    thread::scope(|scope| {
        let run = scope.spawn(|| {
            interpreter.run(
                "host.get('/'); for (;;);",
                HALF_A_MINUTE,
                &token,
                Some(&started),
            )
        });
        inside.recv().unwrap();
        let asked = Instant::now();
        token.cancel();
        let ended = run.join().unwrap();
        assert!(matches!(ended, Err(RunError::Cancelled)), "{ended:?}");
        assert!(asked.elapsed() < SECOND, "{:?}", asked.elapsed());
    });
    let refused = interpreter.run("1", SECOND, &token, None);
    assert!(matches!(refused, Err(RunError::Cancelled)), "{refused:?}");
}

#[test]
fn zero_is_the_default_timeout_and_the_host_sees_the_deadline() {
    let left = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&left);
    let host = Fake::new(move |_, deadline| {
        noted
            .lock()
            .unwrap()
            .push(deadline.saturating_duration_since(Instant::now()));
        (204, String::new())
    });
    let granted = grant(&["GET /"], host);
    let interpreter = interpreter(16, 1);
    for timeout in [Duration::ZERO, Duration::from_secs(3600), SECOND] {
        interpreter
            .run(
                "await host.get('/')",
                timeout,
                &CancelToken::new(),
                Some(&granted),
            )
            .unwrap();
    }
    let seconds: Vec<_> = left
        .lock()
        .unwrap()
        .iter()
        .map(|left| left.as_secs_f64().ceil() as u64)
        .collect();
    assert_eq!(seconds, [5, 30, 1]);
}

#[test]
fn the_identity_names_the_module() {
    let digest = Interpreter::identity()
        .strip_prefix("quickjs-wasm:sha256:")
        .unwrap();
    assert_eq!(digest.len(), 64);
    assert!(
        digest
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    );
}
