//! Prints how long a snippet takes, start of the interpreter included. `cargo bench -p plimsoll-quickjs`.

use std::error::Error;
use std::time::{Duration, Instant};

use plimsoll_quickjs::{CancelToken, Interpreter, Settings};

const WARM_UP: usize = 50;
const RUNS: usize = 500;
const SNIPPETS: [(&str, &str); 3] = [
    ("empty", "0"),
    ("print", "console.log('wasm', 6 * 7)"),
    (
        "sum",
        "let s = 0; for (let i = 0; i < 1000; i++) s += i; console.log(s)",
    ),
];

fn main() -> Result<(), Box<dyn Error>> {
    // Built as a test it only has to run: figures of an unoptimised build mean nothing.
    let measured = std::env::args().any(|arg| arg == "--bench");
    let start = Instant::now();
    let interpreter = Interpreter::new(Settings {
        memory_mb: 256,
        max_instances: 4,
    })?;
    println!(
        "start                {:>9.3} ms, resident {} KiB",
        milliseconds(start.elapsed()),
        resident_kib()
    );
    let runs = if measured { RUNS } else { 1 };
    for (name, code) in SNIPPETS {
        let mut whole = Vec::with_capacity(runs);
        let mut inside = Vec::with_capacity(runs);
        for i in 0..WARM_UP.min(runs) + runs {
            let started = Instant::now();
            let outcome =
                interpreter.run(code, Duration::from_secs(5), &CancelToken::new(), None)?;
            let elapsed = started.elapsed();
            assert_eq!(outcome.exit_code, 0);
            if i >= WARM_UP.min(runs) {
                whole.push(elapsed);
                inside.push(outcome.duration);
            }
        }
        print_line(name, "whole call", whole);
        print_line(name, "instance and guest", inside);
    }
    println!("end                  resident {} KiB", resident_kib());
    Ok(())
}

fn print_line(name: &str, what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |percent: usize| milliseconds(times[(times.len() - 1) * percent / 100]);
    println!(
        "{name:<8} {what:<20} median {:.3} ms, p99 {:.3} ms",
        at(50),
        at(99)
    );
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// From the kernel's account of this process; 0 where there is none.
fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
