//! A daemon under the load of many callers at once.
//!
//! `cargo bench -p plimsoll-bench --bench load`; with `-- --quick` a short run
//! that only shows that everything still works.
//!
//! Each caller has a token and a connection of its own and sends the next call
//! when the last is answered. A call is run, or shed with its mark; everything
//! else fails the bench. The floor is the provider without a daemon, measured
//! before and after in the same run.

mod callers;
mod flags;
mod process;
mod registry;
mod report;

// Each bench uses its own share of these.
#[allow(dead_code)]
#[path = "../common/daemon.rs"]
mod daemon;
#[allow(dead_code)]
#[path = "../common/measure.rs"]
mod measure;
#[allow(dead_code)]
#[path = "../common/provider.rs"]
mod provider;

use std::{
    thread,
    time::{Duration, Instant},
};

use flags::Flags;
use measure::Outcome;
use process::Usage;
use report::{Floor, Load, Moment};

const CODE: &str = "console.log(6*7)";

fn main() -> Outcome<()> {
    let flags = Flags::of(std::env::args().skip(1))?;
    process::raise_descriptors();
    let binary = daemon::binary()?;
    let bare = provider::Bare::ready(CODE)?;
    let floor_time = flags.time / 6;
    let before = floor(&bare, floor_time)?;

    let folder = tempfile::tempdir()?;
    let registry = registry::write(folder.path(), flags.callers)?;
    let most = flags.max_concurrent.to_string();
    let daemon = daemon::Daemon::with(
        &binary,
        &[
            ("PLIMSOLL_CLIENTS_FILE", registry.path.as_str()),
            ("SANDBOX_MAX_CONCURRENT", most.as_str()),
            ("SANDBOX_PER_KEY_CONCURRENT", "0"),
        ],
    )?;
    let idle = Usage::of(daemon.process_id())?;
    let load = loaded(&daemon, &registry.tokens, &flags)?;
    let status = daemon.stop()?;
    let after = floor(&bare, floor_time)?;

    report::print(&flags, idle.resident_kib, &load, &[before, after]);
    if status != Some(0) {
        return Err(format!("the daemon ended with {status:?}").into());
    }
    if !load.seen.errors.is_empty() {
        return Err("calls failed that were not shed".into());
    }
    if load.seen.latencies.is_empty() {
        return Err("nothing ran".into());
    }
    Ok(())
}

/// Threads that answer, in this program as in the daemon.
fn workers() -> usize {
    thread::available_parallelism().map_or(2, |n| n.get().min(8))
}

fn floor(bare: &provider::Bare, time: Duration) -> Outcome<Floor> {
    let own = std::process::id();
    let (begun, cpu) = (Instant::now(), Usage::of(own)?.cpu);
    // As many as there are cores: more would only wait.
    let runs = bare.run_for(workers(), time)?;
    Ok(Floor {
        runs,
        time: begun.elapsed(),
        cpu: Usage::of(own)?.cpu - cpu,
    })
}

/// Drives the callers and watches the daemon's memory meanwhile.
fn loaded(daemon: &daemon::Daemon, tokens: &[String], flags: &Flags) -> Outcome<Load> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(workers())
        .enable_all()
        .build()?;
    let before = Usage::of(daemon.process_id())?;
    let begun = Instant::now();
    let until = begun + flags.time;
    let callers = runtime.spawn(callers::all(
        daemon.address().to_owned(),
        tokens.to_vec(),
        until,
    ));
    let mut curve = Vec::new();
    let step = flags.time / 20;
    while Instant::now() + step < until {
        thread::sleep(step);
        curve.push(Moment {
            at: begun.elapsed(),
            resident_kib: Usage::of(daemon.process_id())?.resident_kib,
        });
    }
    let seen = runtime.block_on(callers)?;
    let time = begun.elapsed();
    let after = Usage::of(daemon.process_id())?;
    Ok(Load {
        seen,
        time,
        cpu: after.cpu - before.cpu,
        curve,
        most_resident_kib: after.most_resident_kib,
    })
}
