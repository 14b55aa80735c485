//! What one run costs from client to signed line, and which part costs it.
//!
//! `cargo bench -p plimsoll-bench --bench stack`; with `-- --quick` a few
//! samples that only show that everything still runs.
//!
//! The daemon is the product's own binary in another process, reached over
//! loopback. Every claim is a ratio to a floor that is measured in the same
//! run and in turns with it, since times alone say as much about the machine.

mod bundles;
mod disk;
mod echo;
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

use std::time::Duration;

use bytes::Bytes;
use plimsoll_attestation::{PublicKey, SigningKey, bundle::Entry};
use plimsoll_client::{Checked, Client};
use plimsoll_harness::{Ledger, RunPlan, Shorthand, Source, Target};
use plimsoll_quickjs::{CancelToken, Interpreter, Settings};
use plimsoll_wire::proto::{Message as _, RunRequest};

use bundles::{Bundles, append_one};
use disk::MeteredDisk;
use measure::{Outcome, Part, Sample, measure, timed};
use report::{Ratio, Report, print_ratios, print_shares, print_target};

const CODE: &str = "console.log(6*7)";
const PRINTED: &[u8] = b"42\n";
const LONG_LINES: usize = 1000;
/// Two signatures for each entry line, one for each checkpoint.
const LONG_SIGNATURES: usize = LONG_LINES / 2 * 3;

const INTERPRETER: &str = "floor: interpreter alone";
const EXCHANGE: &str = "floor: HTTP exchange alone";
const SIGNATURE: &str = "floor: one Ed25519 signature";
const VERIFICATIONS: &str = "floor: 1,500 Ed25519 verifications";
const SYNC_NEW: &str = "floor: write and sync, new file";
const SYNC_MORE: &str = "floor: write and sync, at the end";
const PROVIDER: &str = "provider run";
const CALL: &str = "call: client, daemon, provider, checks";
const CHECK: &str = "record check";
const SIGN: &str = "check again, encode, sign";
const APPEND_NEW: &str = "append to a new bundle";
const APPEND_LONG: &str = "append to 1,000 lines";
const VERIFY_LONG: &str = "verify 1,000 lines";
const WHOLE_NEW: &str = "everything, new bundle";
const WHOLE_LONG: &str = "everything, 1,000 lines";

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let Some(at) = arguments.iter().position(|a| a == echo::SERVE) {
        let bytes = arguments.get(at + 1).ok_or("no length of the answer")?;
        return echo::serve(bytes.parse()?);
    }
    // Run as a test, it is not optimised and its figures mean nothing.
    let measured = arguments.iter().any(|a| a == "--bench");
    let quick = !measured || arguments.iter().any(|a| a == "--quick");
    bench(quick)
}

/// Threads that answer, in this program as in the daemon.
fn workers() -> usize {
    std::thread::available_parallelism().map_or(2, |n| n.get().min(8))
}

fn bench(quick: bool) -> Outcome<()> {
    let (fast, slow) = if quick { (3, 2) } else { (600, 60) };
    let binary = daemon::binary()?;
    let interpreter = Interpreter::new(Settings {
        memory_mb: 256,
        max_instances: 1,
    })?;
    let bare = provider::Bare::ready(CODE)?;
    let daemon = daemon::Daemon::start(&binary)?;
    let idle = daemon.resident_kib();
    // One thread, as the command line has it.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let client = Client::new(daemon.options())?;
    let request = Shorthand::new(Source::Code(CODE.into())).prepare()?.request;
    let key = SigningKey::generate()?;

    let Checked { response, .. } = runtime.block_on(client.run(&request))?;
    let body = Bytes::from(request.encode_to_vec());
    let answer_bytes = response.encode_to_vec().len();
    let echo = echo::Echo::start(answer_bytes)?;
    let entry = Entry::answered(&request, &response)?.sign(&key);
    let bundles = Bundles::new(&key, &entry, LONG_LINES)?;
    let long_floor = bundles.long_file()?;
    let long_append = bundles.long_file()?;
    let disk = MeteredDisk::default();
    let long_whole = Ledger::on(disk.clone(), bundles.long_file()?, false);
    let lines: Vec<&[u8]> = bundles.long().split_inclusive(|b| *b == b'\n').collect();
    let [.., first, second] = lines.as_slice() else {
        return Err("the long bundle has no lines".into());
    };
    let text = format!("plimsoll-attest.bundle/{}", "0".repeat(300));
    let signature = key.sign_anchor(&text).ok_or("nothing was signed")?;
    let public = PublicKey::from_pem(key.public().to_pem().as_bytes())?;
    let keys = std::slice::from_ref(&public);
    let options = daemon.options();
    // A sample with the disk's share in it.
    let metered = |work: &dyn Fn() -> Outcome<u64>| {
        disk.take();
        let (time, line) = timed(work);
        line?;
        let disk = disk.take();
        Ok::<_, Box<dyn std::error::Error>>(Sample { time, disk })
    };

    let mut parts = [
        Part::new(INTERPRETER, fast, || {
            let cancel = CancelToken::new();
            let (time, outcome) =
                timed(|| interpreter.run(CODE, Duration::from_secs(5), &cancel, None));
            printed(&outcome?.stdout).map(|()| time)
        }),
        Part::new(EXCHANGE, fast, || {
            let (time, bytes) = timed(|| runtime.block_on(echo.exchange(body.clone())));
            match bytes? {
                bytes if bytes == answer_bytes => Ok(time),
                _ => Err("the answer is short".into()),
            }
        }),
        Part::new(PROVIDER, fast, || {
            let (time, stdout) = bare.run()?;
            printed(&stdout).map(|()| time)
        }),
        Part::new(CALL, fast, || {
            let (time, checked) = timed(|| runtime.block_on(client.run(&request)));
            checked?;
            Ok(time)
        }),
        Part::new(CHECK, fast, || {
            let (time, record) =
                timed(|| plimsoll_record::check::single_run(&request, &response).map(drop));
            record?;
            Ok(time)
        }),
        Part::new(SIGN, fast, || {
            let (time, entry) =
                timed(|| Entry::answered(&request, &response).map(|entry| entry.sign(&key)));
            entry?;
            Ok(time)
        }),
        Part::new(SIGNATURE, fast, || {
            let (time, signature) = timed(|| key.sign_anchor(&text));
            signature.ok_or("nothing was signed")?;
            Ok(time)
        }),
        Part::new(SYNC_NEW, fast, || bundles.write_new([first, second])),
        Part::new(APPEND_NEW, fast, || {
            let path = bundles.absent();
            let sample = metered(&|| Ok(append_one(&disk, &path, &key, &entry)?.checkpoint))?;
            std::fs::remove_file(path)?;
            Ok(sample)
        }),
        Part::new(WHOLE_NEW, fast, || {
            let ledger = Ledger::on(disk.clone(), bundles.absent(), false);
            let sample = metered(&|| run(&runtime, &options, &key, &ledger, &request))?;
            std::fs::remove_file(ledger.path())?;
            Ok(sample)
        }),
        Part::new(SYNC_MORE, slow, || {
            bundles.write_more(&long_floor, [first, second])
        }),
        // As many as the bundle holds in one sample, so that both suffer alike
        // when the machine has other work.
        Part::new(VERIFICATIONS, slow, || {
            let good = || public.verifies(text.as_bytes(), &signature);
            match timed(|| (0..LONG_SIGNATURES).all(|_| good())) {
                (time, true) => Ok(time),
                (_, false) => Err("a good signature does not verify".into()),
            }
        }),
        Part::new(VERIFY_LONG, slow, || {
            let (time, report) =
                timed(|| plimsoll_attestation::bundle::verify(bundles.long(), keys, &mut ()));
            report?;
            Ok(time)
        }),
        Part::new(APPEND_LONG, slow, || {
            let sample =
                metered(&|| Ok(append_one(&disk, &long_append, &key, &entry)?.checkpoint))?;
            bundles.cut_back(&long_append).map(|()| sample)
        }),
        Part::new(WHOLE_LONG, slow, || {
            let sample = metered(&|| run(&runtime, &options, &key, &long_whole, &request))?;
            bundles.cut_back(long_whole.path()).map(|()| sample)
        }),
    ];
    measure(&mut parts)?;
    let report = Report(parts.into_iter().map(Part::summary).collect());

    println!(
        "snippet {CODE:?}; request {} bytes, answer {answer_bytes} bytes; {} cores\n",
        body.len(),
        workers()
    );
    print(&report);
    let kib = |kib: Option<u64>| kib.map_or_else(|| "unknown".into(), |kib| format!("{kib} KiB"));
    println!(
        "\ndaemon resident: {} before the first run, {} at the end; target at most {} KiB idle",
        kib(idle),
        kib(daemon.resident_kib()),
        60 << 10
    );
    if quick {
        println!("\nquick: these figures show only that everything runs");
    } else {
        print_target(PROVIDER, report.median(PROVIDER), 0.5);
        print_target(CALL, report.median(CALL), 2.0);
    }
    Ok(())
}

/// As `run` with a daemon that someone else started.
fn run(
    runtime: &tokio::runtime::Runtime,
    options: &plimsoll_client::Options,
    key: &SigningKey,
    ledger: &Ledger<MeteredDisk>,
    request: &RunRequest,
) -> Outcome<u64> {
    let plan = RunPlan {
        target: Target::Remote(Box::new(options.clone())),
        key,
        ledger,
        request: request.clone(),
        wait: plimsoll_harness::request::default_wait(None),
        save_artifacts: None,
        cancel: None,
        on_phase: &|_| {},
    };
    match runtime
        .block_on(plimsoll_harness::run(plan, &mut ()))
        .result
    {
        Ok(recorded) => Ok(recorded.line()),
        Err(failure) => Err(format!("{failure:?}").into()),
    }
}

fn printed(stdout: &[u8]) -> Outcome<()> {
    match stdout == PRINTED {
        true => Ok(()),
        false => Err("the snippet printed something else".into()),
    }
}

fn print(report: &Report) {
    report.print_times();
    let of = |name| report.median(name);
    let ratio = |name, time, floor_name, floor| Ratio {
        name,
        time,
        floor_name,
        floor,
    };
    let floors = of(INTERPRETER) + of(EXCHANGE);
    print_ratios(&[
        ratio(PROVIDER, of(PROVIDER), INTERPRETER, of(INTERPRETER)),
        ratio(CALL, of(CALL), "interpreter + exchange", floors),
        ratio(SIGN, of(SIGN), SIGNATURE, of(SIGNATURE)),
        ratio(
            VERIFY_LONG,
            of(VERIFY_LONG),
            VERIFICATIONS,
            of(VERIFICATIONS),
        ),
        ratio(
            "everything, new bundle, without the disk",
            report.rest(WHOLE_NEW),
            "interpreter + exchange",
            floors,
        ),
        ratio(
            "everything, 1,000 lines, without the disk",
            report.rest(WHOLE_LONG),
            "the same + 1,500 verifications",
            floors + of(VERIFICATIONS),
        ),
        ratio(
            "disk in an append to a new bundle",
            report.disk(APPEND_NEW),
            SYNC_NEW,
            of(SYNC_NEW),
        ),
        ratio(
            "disk in an append to 1,000 lines",
            report.disk(APPEND_LONG),
            SYNC_MORE,
            of(SYNC_MORE),
        ),
    ]);
    let call_rest = of(CALL) - of(PROVIDER) - of(EXCHANGE) - of(CHECK);
    print_shares(
        report.rest(WHOLE_NEW),
        &[
            ("interpreter", of(INTERPRETER)),
            ("provider around it", of(PROVIDER) - of(INTERPRETER)),
            ("connection and HTTP", of(EXCHANGE)),
            ("daemon's gate, service and log; codecs", call_rest),
            (CHECK, of(CHECK)),
            (SIGN, of(SIGN)),
            ("append: lock, link, checkpoint", report.rest(APPEND_NEW)),
        ],
    );
}
