//! Memory a guest has used goes back to the system. Alone in its binary: it reads the process's own figures.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use plimsoll_quickjs::{CancelToken, Interpreter, Settings};

/// A figure of the kernel's account of this process, in MiB.
fn mib(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    line.split_whitespace()
        .nth(1)
        .unwrap()
        .parse::<u64>()
        .unwrap()
        / 1024
}

fn fill(interpreter: &Interpreter, exit_code: i32) {
    let code =
        "const a = []; for (let i = 0; i < 128; i++) a.push(new Uint8Array(1 << 20).fill(1))";
    let outcome = interpreter
        .run(code, Duration::from_secs(30), &CancelToken::new(), None)
        .unwrap();
    assert_eq!(outcome.exit_code, exit_code);
}

#[test]
fn resident_memory_is_bounded_by_the_cap_and_returned() {
    let capped = Interpreter::new(Settings {
        memory_mb: 32,
        max_instances: 1,
    })
    .unwrap();
    let before = mib("VmRSS:");
    for _ in 0..20 {
        fill(&capped, 1);
    }
    let peak = mib("VmHWM:");
    assert!(
        peak <= before + 32 + 16,
        "{before} MiB before, peak {peak} MiB"
    );

    let roomy = Interpreter::new(Settings {
        memory_mb: 256,
        max_instances: 1,
    })
    .unwrap();
    for _ in 0..3 {
        fill(&roomy, 0);
    }
    assert!(
        mib("VmHWM:") >= before + 128,
        "the guest did not use what it asked for"
    );
    let after = mib("VmRSS:");
    assert!(
        after <= before + 32,
        "{before} MiB before, {after} MiB after"
    );
}
