//! The embedded daemon, with a shell script in its place and a fake behind it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "../../client/tests/fake/mod.rs"]
mod fake;
mod support;

use std::{
    fs,
    io::{BufRead, BufReader, Read},
    os::unix::process::ExitStatusExt,
    path::Path,
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use fake::{Fake, Reply};
use plimsoll_attestation::SigningKey;
use plimsoll_client::{CancelToken, Ran};
use plimsoll_harness::{
    Class, Embedded, EmbeddedOptions, Ledger, RunPlan, StartError, Target, run,
};
use support::{honest, snippet};

/// Options that start `script` in the shell; `PORT` in it is the fake's.
fn shell(script: &str, port: u16) -> EmbeddedOptions {
    let mut options = EmbeddedOptions::new("wasm");
    options.program = "/bin/sh".into();
    options.arguments = vec![
        "-c".into(),
        script.replace("PORT", &port.to_string()).into(),
    ];
    options
}

/// Says it listens, and ends with its standard input.
const LISTENS: &str = r#"echo '{"level":"INFO","msg":"plimsolld listening","addr":"127.0.0.1:PORT","provider":"wasm"}' >&2; exec cat >/dev/null"#;

fn fifo(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
}

#[tokio::test]
async fn a_run_on_an_embedded_daemon() {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::generate().unwrap();
    let ledger = Ledger::new(folder.path().join("runs.jsonl"), false);
    let fake = Fake::start(honest).await;
    let report = run(
        RunPlan {
            target: Target::Embedded(shell(LISTENS, fake.port)),
            key: &key,
            ledger: &ledger,
            request: snippet("1"),
            wait: Duration::from_secs(20),
            save_artifacts: None,
            cancel: None,
            on_phase: &|_| {},
        },
        &mut (),
    )
    .await;
    assert_eq!(report.result.unwrap().line(), 1);
    let stopped = report.embedded.unwrap();
    assert!(!stopped.killed);
    assert!(stopped.log.contains("plimsolld listening"));
    let seen = fake.seen();
    assert_eq!(seen[0].procedure(), "readyz");
    let token = seen[1].headers["authorization"]
        .strip_prefix("Bearer ")
        .unwrap();
    assert!(token.len() == 64 && token.bytes().all(|b| b.is_ascii_hexdigit()));
    assert!(!stopped.log.contains(token));
}

#[tokio::test]
async fn the_childs_environment_and_files() {
    let folder = tempfile::tempdir().unwrap();
    let dump = folder.path().join("environ");
    let descriptors = folder.path().join("fds");
    let fake = Fake::start(honest).await;
    let script = format!(
        "cat /proc/$$/environ > {}; ls -l /proc/$$/fd > {}; {}",
        dump.display(),
        descriptors.display(),
        // The shell stays: a process that replaces itself has no environment
        // to look at for a moment.
        LISTENS.replace("exec cat", "cat")
    );
    let mut options = shell(&script, fake.port);
    let key = SigningKey::generate().unwrap();
    let pem = key.to_pem();
    for (name, value) in [
        ("PLIMSOLL_ATTEST_KEY", pem.as_str()),
        ("PLIMSOLL_TOKEN", "canary-daemon-token"),
        ("PLIMSOLL_CALLER_TOKEN", "canary-caller-token"),
        ("PLIMSOLL_TLS_CERT", "canary-cert"),
        ("SANDBOX_PROVIDER", "docker"),
        ("SANDBOX_MEM_MB", "canary-memory"),
    ] {
        options.environment.push((name.into(), value.into()));
    }
    // A file of ours that holds the key is open while the child starts.
    let key_file = folder.path().join("attest.key");
    fs::write(&key_file, pem.as_bytes()).unwrap();
    let held = fs::File::open(&key_file).unwrap();
    let daemon = Embedded::start(&options, None).await.unwrap();
    let live = fs::read(format!("/proc/{}/environ", daemon.process_id().unwrap())).unwrap();
    for environment in [fs::read(&dump).unwrap(), live] {
        let text = String::from_utf8_lossy(&environment);
        assert!(
            !text.contains("canary") && !text.contains("PRIVATE KEY"),
            "{text}"
        );
        assert!(!text.contains(pem.lines().nth(1).unwrap()));
        for expected in [
            "SANDBOX_PROVIDER=wasm\0",
            "PLIMSOLL_ADDR=127.0.0.1:0\0",
            "PLIMSOLL_METRICS_ADDR=off\0",
            "PLIMSOLL_LOG_FORMAT=json\0",
            "PLIMSOLL_EMBEDDED=1\0",
        ] {
            assert!(text.contains(expected), "{expected}");
        }
    }
    let open = fs::read_to_string(&descriptors).unwrap();
    assert!(!open.contains("attest.key"), "{open}");
    drop(held);
    assert!(!daemon.stop(false).await.killed);
}

#[tokio::test]
async fn the_start_adds_little() {
    let fake = Fake::start(honest).await;
    let mut best = Duration::MAX;
    for _ in 0..10 {
        let start = Instant::now();
        let daemon = Embedded::start(&shell(LISTENS, fake.port), None)
            .await
            .unwrap();
        best = best.min(start.elapsed());
        daemon.stop(false).await;
    }
    // A shell starts, a line is read, one question is answered: no step waits.
    eprintln!("start of a shell script as daemon: {best:?}");
    assert!(best < Duration::from_millis(50), "{best:?}");
}

#[tokio::test]
async fn it_waits_for_readiness() {
    let ready = Arc::new(AtomicBool::new(false));
    let fake = Fake::start({
        let ready = Arc::clone(&ready);
        move |seen| {
            if ready.swap(true, Ordering::SeqCst) {
                return honest(seen);
            }
            Reply::error(503, "not ready\n").header("plimsoll-not-dispatched", "request")
        }
    })
    .await;
    let noise =
        r#"echo 'noise' >&2; echo '{"msg":"plimsolld listening","addr":"10.0.0.1:9"}' >&2; "#;
    let options = shell(&format!("{noise}{LISTENS}"), fake.port);
    let daemon = Embedded::start(&options, None).await.unwrap();
    assert_eq!(fake.seen().len(), 2);
    daemon.stop(false).await;
}

#[tokio::test]
async fn a_daemon_that_does_not_start() {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::generate().unwrap();
    let path = folder.path().join("runs.jsonl");
    let ledger = Ledger::new(&path, false);
    let script = r#"echo '{"level":"ERROR","msg":"no engine"}' >&2; echo '{"level":"INFO","msg":"bye"}' >&2; exit 4"#;
    let report = run(
        RunPlan {
            target: Target::Embedded(shell(script, 1)),
            key: &key,
            ledger: &ledger,
            request: snippet("1"),
            wait: Duration::from_secs(20),
            save_artifacts: None,
            cancel: None,
            on_phase: &|_| {},
        },
        &mut (),
    )
    .await;
    let failure = report.result.unwrap_err();
    assert_eq!(failure.class(), Class::Environment);
    assert!(matches!(failure.ran(), Ran::No { .. }));
    assert!(failure.to_string().ends_with("nothing was run"));
    assert!(!path.exists(), "the bundle is not made");
    let plimsoll_harness::RunFailure::Environment(StartError::Ended { status, last }) = *failure
    else {
        panic!("{failure}")
    };
    assert_eq!(status.code(), Some(4));
    assert_eq!(last.unwrap(), r#"{"level":"ERROR","msg":"no engine"}"#);
    let mut missing = shell("", 1);
    missing.program = folder.path().join("none");
    assert!(matches!(
        Embedded::start(&missing, None).await,
        Err(StartError::Spawn(_))
    ));
}

#[tokio::test]
async fn a_daemon_that_never_listens_is_killed() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    fifo(&alive);
    let script = format!(
        "exec 3>{}; trap '' TERM; echo 'still starting' >&2; while :; do sleep 1000; done",
        alive.display()
    );
    let mut options = shell(&script, 1);
    options.ready_within = Duration::from_millis(300);
    options.stop_within = Duration::from_millis(100);
    // The end of the FIFO is the end of the child and of what it started.
    let ended = tokio::task::spawn_blocking(move || {
        fs::File::open(alive)
            .unwrap()
            .read_to_end(&mut Vec::new())
            .unwrap()
    });
    let error = Embedded::start(&options, None).await.unwrap_err();
    assert!(matches!(error, StartError::NotReady { .. }));
    assert_eq!(error.last_line(), Some("still starting"));
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap()
        .unwrap();
    // Given up while it starts.
    let cancel = CancelToken::new();
    let started = Embedded::start(&options, Some(&cancel));
    cancel.cancel();
    assert!(matches!(started.await, Err(StartError::Canceled)));
}

#[tokio::test]
async fn dropping_it_ends_the_child() {
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    fifo(&alive);
    let fake = Fake::start(honest).await;
    let script = format!("exec 3>{}; {LISTENS}", alive.display());
    let ended = tokio::task::spawn_blocking(move || {
        fs::File::open(alive)
            .unwrap()
            .read_to_end(&mut Vec::new())
            .unwrap()
    });
    let daemon = Embedded::start(&shell(&script, fake.port), None)
        .await
        .unwrap();
    drop(daemon);
    tokio::time::timeout(Duration::from_secs(10), ended)
        .await
        .unwrap()
        .unwrap();
}

/// The variable that makes [`a_killed_parent_ends_the_child`] the parent.
const ROLE: &str = "EMBEDDED_TEST_FIFO";

/// `kill -9` of the parent: nothing of it runs any more, and the child ends
/// because its standard input does.
#[test]
fn a_killed_parent_ends_the_child() {
    if let Some(alive) = std::env::var_os(ROLE) {
        return parent(Path::new(&alive));
    }
    let folder = tempfile::tempdir().unwrap();
    let alive = folder.path().join("alive");
    fifo(&alive);
    let mut parent = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_parent_ends_the_child", "--nocapture"])
        .env(ROLE, &alive)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut child = fs::File::open(&alive).unwrap();
    let ready = BufReader::new(parent.stdout.take().unwrap())
        .lines()
        .any(|line| line.unwrap().contains("daemon is ready"));
    assert!(ready);
    parent.kill().unwrap();
    assert_eq!(parent.wait().unwrap().signal(), Some(9));
    // Blocks until the child, which holds the other end, is gone.
    assert_eq!(child.read_to_end(&mut Vec::new()).unwrap(), 0);
}

fn parent(alive: &Path) {
    let script = format!("exec 3>{}; {LISTENS}", alive.display());
    tokio::runtime::Runtime::new().unwrap().block_on(async {
        let fake = Fake::start(honest).await;
        let _daemon = Embedded::start(&shell(&script, fake.port), None)
            .await
            .unwrap();
        println!("daemon is ready");
        std::future::pending::<()>().await;
    });
}
