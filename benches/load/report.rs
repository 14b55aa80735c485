//! The figures as tables.

use std::time::Duration;

use crate::{callers::Seen, flags::Flags, workers};

/// Memory at a moment of the load.
pub struct Moment {
    pub at: Duration,
    pub resident_kib: u64,
}

/// The load and what the daemon took for it.
pub struct Load {
    pub seen: Seen,
    pub time: Duration,
    pub cpu: Duration,
    pub curve: Vec<Moment>,
    pub most_resident_kib: u64,
}

/// The provider alone.
pub struct Floor {
    pub runs: usize,
    pub time: Duration,
    pub cpu: Duration,
}

/// Prints everything.
pub fn print(flags: &Flags, idle_kib: u64, load: &Load, floors: &[Floor]) {
    let Load { seen, time, .. } = load;
    println!(
        "{} callers at once for {:.0} s, at most {} runs at once, {} cores\n",
        flags.callers,
        time.as_secs_f64(),
        flags.max_concurrent,
        workers()
    );
    let mut sorted = seen.latencies.clone();
    sorted.sort_unstable();
    let ran = sorted.len();
    let rate = ran as f64 / time.as_secs_f64();
    println!(
        "| ran | shed, marked | other errors | records recomputed | runs/s | p50 ms | p95 ms | p99 ms | max ms |"
    );
    println!("|---:|---:|---:|---:|---:|---:|---:|---:|---:|");
    println!(
        "| {ran} | {} | {} | {} | {rate:.0} | {:.2} | {:.2} | {:.2} | {:.2} |",
        seen.shed,
        seen.errors.len(),
        seen.checked,
        at(&sorted, 50),
        at(&sorted, 95),
        at(&sorted, 99),
        at(&sorted, 100)
    );
    for error in &seen.errors {
        println!("error: {error}");
    }

    let runs: usize = floors.iter().map(|floor| floor.runs).sum();
    let floor_time: f64 = floors.iter().map(|floor| floor.time.as_secs_f64()).sum();
    let floor_cpu: f64 = floors.iter().map(|floor| floor.cpu.as_secs_f64()).sum();
    let floor_rate = runs as f64 / floor_time;
    let floor_each = floor_cpu / runs.max(1) as f64 * 1e3;
    let each = load.cpu.as_secs_f64() / ran.max(1) as f64 * 1e3;
    println!("\n| | runs/s | CPU ms a run | ratio |");
    println!("|---|---:|---:|---:|");
    println!("| floor: provider alone, no daemon | {floor_rate:.0} | {floor_each:.3} | |");
    println!(
        "| daemon, its shed calls included | {rate:.0} | {each:.3} | {:.2} |",
        each / floor_each
    );

    println!(
        "\nresident KiB: {idle_kib} idle, {} at most",
        load.most_resident_kib
    );
    let curve: Vec<String> = load
        .curve
        .iter()
        .map(|moment| format!("{:.1}s {}", moment.at.as_secs_f64(), moment.resident_kib))
        .collect();
    println!("curve: {}", curve.join(", "));
    if flags.quick {
        println!("\nquick: these figures show only that everything runs");
    }
}

/// The time that this percentage does not exceed, in milliseconds.
fn at(sorted: &[Duration], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted
        .get(rank.saturating_sub(1))
        .map_or(0.0, |time| time.as_secs_f64() * 1e3)
}
