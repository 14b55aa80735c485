//! How fast a bundle verifies, against what its signatures alone cost.
//!
//! `cargo bench -p plimsoll-attestation --bench throughput [-- LINES [OUTPUT_BYTES]]`
//!
//! The floor is what a verifier without any other work would take: one strict
//! single-signature check for each signature, shared by the cores, and one
//! SHA-256 pass over the file. Each measurement runs in a process of its own,
//! so that peak memory is its own too. The medians of several rounds are
//! printed; on a busy machine the ratios mean more than the times.
#![allow(clippy::expect_used, clippy::print_stdout, clippy::unwrap_used)]

mod forge;

use std::{
    env,
    fs::File,
    io::{BufReader, BufWriter, Read as _, Write as _},
    path::Path,
    process::Command,
    time::Instant,
};

use forge::Shape;
use plimsoll_attestation::{
    Envelope, Line, PublicKey, SigningKey,
    bundle::{LineReader, VerifyOptions, verify_with},
};
use sha2::{Digest as _, Sha256};

const ROUNDS: usize = 5;
/// Signatures that one plain check is measured over.
const SAMPLE: usize = 2000;
/// Time it is measured for.
const SAMPLE_SECONDS: f64 = 1.0;

fn main() {
    let arguments: Vec<String> = env::args().skip(1).filter(|a| a != "--bench").collect();
    if let [task, file, public, threads] = arguments.as_slice() {
        return measure(task, Path::new(file), Path::new(public), threads);
    }
    let number = |place: usize| arguments.get(place).map(|a| a.parse().expect("a number"));
    match (number(0), number(1)) {
        (None, _) => {
            run("small lines", 100_000, 200);
            run("large lines", 400, 1 << 20);
        }
        (Some(lines), output) => run("lines", lines as u64, output.unwrap_or(200)),
    }
}

/// Forges a bundle and measures everything about it.
fn run(name: &str, lines: u64, output: usize) {
    let directory = tempfile::tempdir().unwrap();
    let (file, public) = (
        directory.path().join("bundle.jsonl"),
        directory.path().join("key.pub"),
    );
    let key = SigningKey::generate().unwrap();
    std::fs::write(&public, key.public().to_pem()).unwrap();
    let mut sink = BufWriter::new(File::create(&file).unwrap());
    let forged = forge::write(&mut sink, &key, Shape { lines, output }).unwrap();
    sink.flush().unwrap();
    let bytes = std::fs::metadata(&file).unwrap().len();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);

    let mut rounds = Vec::new();
    for _ in 0..ROUNDS {
        let child = |task: &str, threads: usize| {
            let done = Command::new(env::current_exe().unwrap())
                .arg(task)
                .args([&file, &public])
                .arg(threads.to_string())
                .output()
                .unwrap();
            assert!(done.status.success(), "{done:?}");
            let text = String::from_utf8(done.stdout).unwrap();
            let mut words = text.split_whitespace().map(|w| w.parse::<f64>().unwrap());
            let mut next = || words.next().unwrap();
            [next(), next(), next()]
        };
        let [plain, plain_time, _] = child("plain", 1);
        let shared = child("plain", cores)[0];
        let [sha, sha_time, _] = child("sha256", 1);
        let one = child("verify", 1);
        let all = child("verify", cores);
        let floor = |cores: usize| forged.signatures as f64 * plain / cores as f64 + sha;
        rounds.push([
            plain * 1e6,
            sha,
            one[0],
            all[0],
            one[0] / floor(1),
            all[0] / floor(cores),
            one[2].max(all[2]),
            floor(cores),
            all[1] / (forged.signatures as f64 * plain_time + sha_time * cores as f64),
            all[0] / (forged.signatures as f64 * shared + sha),
        ]);
    }
    let median = |place: usize| {
        let mut values: Vec<f64> = rounds.iter().map(|round| round[place]).collect();
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let mib = bytes as f64 / f64::from(1 << 20);
    println!(
        "{name}: {} lines, {} signatures, {mib:.0} MiB, {cores} cores",
        forged.lines, forged.signatures
    );
    println!("  plain check      {:8.2} us a signature", median(0));
    println!("  SHA-256 pass     {:8.3} s", median(1));
    println!("  floor            {:8.3} s", median(7));
    for (label, time, ratio) in [("1 thread ", 2, 4), ("all cores", 3, 5)] {
        println!(
            "  verify {label} {:8.3} s  {:8.0} lines/s  {:6.0} MiB/s  ratio to its floor {:.2}",
            median(time),
            forged.lines as f64 / median(time),
            mib / median(time),
            median(ratio)
        );
    }
    println!(
        "  all cores to a floor measured on all cores at once: ratio {:.2}",
        median(9)
    );
    println!(
        "  processor time of all cores to that of the floor: ratio {:.2} (of an idle machine)",
        median(8)
    );
    println!("  peak memory      {:8.1} MiB", median(6) / 1024.0);
}

/// One measurement: seconds, processor seconds and peak memory in KiB on
/// standard output.
fn measure(task: &str, file: &Path, public: &Path, threads: &str) {
    let key = PublicKey::from_pem(&std::fs::read(public).unwrap()).unwrap();
    let mut file = File::open(file).unwrap();
    let seconds = match task {
        "plain" => {
            let (seconds, processor) = plain(file, &key, threads.parse().unwrap());
            println!("{seconds} {processor} {}", peak_kib());
            return;
        }
        "sha256" => {
            let start = Instant::now();
            let mut hasher = Sha256::new();
            let mut buffer = vec![0; 64 << 10];
            loop {
                let length = file.read(&mut buffer).unwrap();
                if length == 0 {
                    break;
                }
                hasher.update(&buffer[..length]);
            }
            std::hint::black_box(hasher.finalize());
            start.elapsed().as_secs_f64()
        }
        _ => {
            let options = VerifyOptions {
                threads: Some(threads.parse().unwrap()),
                ..VerifyOptions::default()
            };
            let start = Instant::now();
            let source = BufReader::with_capacity(64 << 10, file);
            verify_with(source, &[key], options, &mut ()).unwrap();
            start.elapsed().as_secs_f64()
        }
    };
    println!("{seconds} {} {}", processor_seconds(), peak_kib());
}

/// Seconds, and processor seconds, of one strict check of a signature, shared
/// by so many threads.
fn plain(file: File, key: &PublicKey, threads: usize) -> (f64, f64) {
    let mut lines = LineReader::new(BufReader::new(file));
    let mut checks = Vec::new();
    while checks.len() < SAMPLE
        && let Some(line) = lines.next_line().unwrap()
    {
        let line = Line::decode(line.bytes).unwrap();
        for envelope in [line.envelope, line.link].into_iter().flatten() {
            let payload = envelope.payload_bytes().unwrap();
            let signature = &envelope.signatures.as_ref().unwrap()[0].sig;
            let signature = plimsoll_attestation::base64::decode(signature).unwrap();
            let signature: [u8; 64] = signature.try_into().unwrap();
            checks.push((Envelope::pae(&envelope.payload_type, &payload), signature));
        }
    }
    let (start, before) = (Instant::now(), processor_seconds());
    let done: usize = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    let mut done = 0;
                    while start.elapsed().as_secs_f64() < SAMPLE_SECONDS {
                        for (message, signature) in &checks {
                            assert!(key.verifies(message, signature));
                        }
                        done += checks.len();
                    }
                    done
                })
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap())
            .sum()
    });
    let each = |total: f64| total / done as f64;
    (
        each(start.elapsed().as_secs_f64()),
        each(processor_seconds() - before),
    )
}

/// Processor time of this process; 0 where the system does not say.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name, which may hold anything but ends at the last bracket:
    // user and system time are the 12th and 13th field, in hundredths.
    let fields = stat.rsplit(')').next().unwrap_or_default();
    let ticks = fields.split_whitespace().skip(11).take(2);
    ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0
}

/// The most memory this process held; 0 where the system does not say.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
