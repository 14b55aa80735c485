//! The daemon as a process: arguments, exit statuses, signals, standard input.
//!
//! This program is its own child: with `daemon` as its first argument it is the
//! subcommand, else it makes the checks. That needs a `main` of its own, so the
//! test harness is off.
// Not under the harness, so clippy does not know that these are tests.
#![allow(clippy::unwrap_used)]

#[path = "../child/mod.rs"]
mod child;

use std::{
    env,
    fs::{self, OpenOptions},
    io::{ErrorKind, Read, Write},
    net::TcpStream,
    os::unix::{fs::OpenOptionsExt, process::ExitStatusExt},
    process::{Command, ExitCode, Output, Stdio},
    sync::{Arc, mpsc},
    thread,
    time::Duration,
};

use child::{Running, TOKEN, daemon};
use rustix::process::{Resource, Rlimit, setrlimit};

/// The first argument of a daemon that gets one thread and no second.
const STARVED: &str = "starved-daemon";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let first = arguments.next();
    if first.as_ref().is_some_and(|first| first == STARVED) {
        one_more_thread();
    }
    if first.is_some_and(|first| first == "daemon" || first == STARVED) {
        return ExitCode::from(plimsoll_daemon::main(arguments));
    }
    // What is handled here has its default action in a child, even when whoever
    // started this ignores it.
    signal_hook::flag::register(signal_hook::consts::SIGHUP, Arc::default()).unwrap();
    let checks: &[(&str, fn())] = &[
        ("help_and_arguments", help_and_arguments),
        ("refused_settings", refused_settings),
        ("half_of_the_descriptors", half_of_the_descriptors),
        ("too_few_descriptors", too_few_descriptors),
        ("too_few_threads", too_few_threads),
        ("a_signal_stops_it", a_signal_stops_it),
        ("a_second_signal_kills_it", a_second_signal_kills_it),
        (
            "an_ignored_hangup_stays_ignored",
            an_ignored_hangup_stays_ignored,
        ),
        (
            "a_log_that_nobody_reads_holds_nothing_up",
            a_log_that_nobody_reads_holds_nothing_up,
        ),
        (
            "a_second_signal_leaves_an_embedded_daemon",
            a_second_signal_leaves_an_embedded_daemon,
        ),
        (
            "an_embedded_daemon_ends_with_its_input",
            an_embedded_daemon_ends_with_its_input,
        ),
        (
            "only_an_embedded_daemon_watches_its_input",
            only_an_embedded_daemon_watches_its_input,
        ),
    ];
    for (name, check) in checks {
        check();
        println!("test {name} ... ok");
    }
    ExitCode::SUCCESS
}

fn ended(arguments: &[&str], variables: &[(&str, &str)]) -> Output {
    daemon(arguments, variables)
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn help_and_arguments() {
    for argument in ["-h", "--help", "help"] {
        let output = ended(&[argument], &[]);
        assert_eq!(output.status.code(), Some(0));
        assert!(text(&output.stdout).contains("SANDBOX_MAX_CONCURRENT"));
        assert!(output.stderr.is_empty());
    }
    let output = ended(&["--port\u{1b}[2J", "1"], &[]);
    assert_eq!(output.status.code(), Some(2));
    assert!(output.stdout.is_empty());
    let errors = text(&output.stderr);
    assert!(errors.contains("--port") && errors.contains("SANDBOX_MAX_CONCURRENT"));
    assert!(
        !errors.contains('\u{1b}'),
        "nothing given moves the terminal"
    );
}

fn refused_settings() {
    for (variables, code, word) in [
        (&[("SANDBOX_PROVIDER", "dokcer")][..], 2, "agentsandbox"),
        #[cfg(feature = "wasm")]
        (
            &[
                ("SANDBOX_PROVIDER", "wasm"),
                ("PLIMSOLL_INSECURE", "1"),
                ("PLIMSOLL_ADDR", "127.0.0.1:0"),
                ("SANDBOX_MEMORY_MB", "1"),
            ],
            2,
            "SANDBOX_MEMORY_MB",
        ),
        (&[("PLIMSOLL_TOKEN", "CANARY-short")], 2, "PLIMSOLL_TOKEN"),
        (&[("PLIMSOLL_ADDR", "127.0.0.1")], 4, "PLIMSOLL_ADDR"),
        (
            &[
                ("SANDBOX_MIN_ISOLATION", "vm"),
                ("PLIMSOLL_ADDR", "127.0.0.1:0"),
            ],
            4,
            "proved none",
        ),
    ] {
        let output = ended(&[], variables);
        assert_eq!(output.status.code(), Some(code), "{variables:?}");
        let log = text(&output.stderr);
        let last = log.lines().last().unwrap();
        assert!(
            last.contains("\"level\":\"ERROR\"") && last.contains(word),
            "{last}"
        );
        assert!(!log.contains("CANARY"), "{log}");
        assert!(output.stdout.is_empty());
    }
}

/// This program under limits that a shell sets.
fn limited(limits: &str) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .env_clear()
        .env("PLIMSOLL_ADDR", "127.0.0.1:0")
        .env("PLIMSOLL_METRICS_ADDR", "off")
        .args(["-c", &format!("{limits} && exec \"$0\" daemon")])
        .arg(env::current_exe().unwrap());
    command
}

/// A start that the environment refuses: soon, in one line, without a fault.
fn refused_by_the_environment(command: &mut Command, word: &str) {
    let mut child = command
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut errors = child.stderr.take().unwrap();
    let (send, ended) = mpsc::channel();
    let reader = thread::spawn(move || {
        let mut log = String::new();
        errors.read_to_string(&mut log).unwrap();
        let _ = send.send(log);
    });
    let log = ended.recv_timeout(Duration::from_secs(20));
    if log.is_err() {
        child.kill().unwrap();
    }
    let status = child.wait().unwrap();
    reader.join().unwrap();
    let log = log.unwrap();
    assert_eq!(status.code(), Some(4), "{log}");
    assert_eq!(log.lines().count(), 1, "{log}");
    assert!(log.contains("plimsolld could not start"), "{log}");
    assert!(log.contains(word) && !log.contains(".rs"), "{log}");
}

fn too_few_descriptors() {
    for most in 6..=12 {
        let mut command = limited(&format!("ulimit -n {most}"));
        refused_by_the_environment(&mut command, "too few file descriptors");
    }
    // What the hard limit allows is there.
    let mut running = Running::of(&mut limited("ulimit -S -n 6 && ulimit -H -n 100"));
    running.child.kill().unwrap();
    running.wait();
}

/// Leaves this process address space for the stack of one thread.
fn one_more_thread() {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let size = status.lines().find_map(|l| l.strip_prefix("VmSize:"));
    let size = size.unwrap().trim().strip_suffix(" kB").unwrap();
    let most = (size.parse::<u64>().unwrap() + 3 * 1024) * 1024;
    let limit = Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::As, limit).unwrap();
}

fn too_few_threads() {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .env_clear()
        .env("PLIMSOLL_ADDR", "127.0.0.1:0")
        .env("PLIMSOLL_METRICS_ADDR", "off")
        .arg(STARVED);
    refused_by_the_environment(&mut command, "too few threads");
}

/// The soft limit is raised to the hard one, and half of it is for connections.
fn half_of_the_descriptors() {
    let mut running = Running::of(&mut limited("ulimit -S -n 60 && ulimit -H -n 100"));
    assert!(
        running.seen.contains("\"max_connections\":50}"),
        "{}",
        running.seen
    );
    running.child.kill().unwrap();
    running.wait();
}

fn a_signal_stops_it() {
    for signal in ["TERM", "INT", "HUP"] {
        let mut running = Running::start(&[]);
        running.answers();
        running.signal(signal);
        running.line_with("shutdown signal received; draining in-flight runs");
        let (status, log) = running.wait();
        assert_eq!(status.code(), Some(0), "{log}");
        assert!(log.contains("plimsolld stopped"));
        assert!(!log.contains("CANARY"), "{log}");
    }
}

/// A request whose body is held back keeps a drain from ending.
fn held_request(address: &str) -> TcpStream {
    let mut held = TcpStream::connect(address).unwrap();
    let head = format!(
        "POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"
    );
    held.write_all(head.as_bytes()).unwrap();
    let mut go_on = [0u8; 25];
    held.read_exact(&mut go_on).unwrap();
    assert_eq!(&go_on, b"HTTP/1.1 100 Continue\r\n\r\n");
    held
}

fn a_second_signal_kills_it() {
    for (signal, number) in [("TERM", 15), ("HUP", 1)] {
        let mut running = Running::start(&[]);
        let _held = held_request(&running.address);
        running.signal("TERM");
        running.line_with("shutdown signal received");
        running.signal(signal);
        let (status, _) = running.wait();
        assert_eq!(status.signal(), Some(number));
    }
}

/// As `nohup` starts it: the terminal's end is nothing to it.
fn an_ignored_hangup_stays_ignored() {
    let running = Running::of(&mut limited("trap '' HUP"));
    running.signal("HUP");
    running.answers();
    running.signal("TERM");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
}

/// Fills the pipe of a daemon's log, so that no write to it returns.
fn fill_log(running: &Running) {
    const NONBLOCK: i32 = 0o4000;
    let mut log = OpenOptions::new()
        .write(true)
        // Of this opening alone: the daemon's own writes still block.
        .custom_flags(NONBLOCK)
        .open(format!("/proc/{}/fd/2", running.child.id()))
        .unwrap();
    for size in [4096, 1] {
        let filled = loop {
            if let Err(error) = log.write(&vec![b'\n'; size]) {
                break error.kind();
            }
        };
        assert_eq!(filled, ErrorKind::WouldBlock);
    }
}

fn a_log_that_nobody_reads_holds_nothing_up() {
    let mut running = Running::start(&[
        #[cfg(feature = "wasm")]
        ("SANDBOX_PROVIDER", "wasm"),
        ("SANDBOX_RATE_PER_MIN", "0"),
    ]);
    fill_log(&running);
    // Each of these has an audit line, of which the first is being written.
    #[cfg(feature = "wasm")]
    for _ in 0..5 {
        let body = r#"{"protocol":3,"javascript":{"code":"1"}}"#;
        let mut call = TcpStream::connect(&running.address).unwrap();
        let request = format!(
            "POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {TOKEN}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        );
        call.write_all(request.as_bytes()).unwrap();
        let mut answer = String::new();
        call.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }
    for _ in 0..20 {
        running.answers();
    }
    running.signal("TERM");
    // The log is read no more before the daemon has ended.
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
}

/// Its parent asks twice, with a person's second Ctrl-C, while a sandbox is
/// being removed.
fn a_second_signal_leaves_an_embedded_daemon() {
    let mut running = Running::start(&[("PLIMSOLL_EMBEDDED", "1")]);
    let mut held = held_request(&running.address);
    running.signal("TERM");
    running.line_with("shutdown signal received");
    for signal in ["TERM", "INT", "HUP"] {
        running.signal(signal);
    }
    held.write_all(b"{}").unwrap();
    let mut answer = String::new();
    held.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 400"), "{answer}");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0), "{log}");
    assert!(log.contains("plimsolld stopped"));
}

fn an_embedded_daemon_ends_with_its_input() {
    let mut running = Running::start(&[("PLIMSOLL_EMBEDDED", "1")]);
    let mut input = running.child.stdin.take().unwrap();
    input.write_all(b"anything\n").unwrap();
    drop(input);
    running.line_with("draining in-flight runs");
    assert_eq!(running.wait().0.code(), Some(0));
}

fn only_an_embedded_daemon_watches_its_input() {
    let mut running = Running::start(&[("PLIMSOLL_EMBEDDED", "true")]);
    drop(running.child.stdin.take());
    // An end that were seen would close the listener within the first of these.
    for _ in 0..20 {
        running.answers();
    }
    running.signal("TERM");
    let (status, log) = running.wait();
    assert_eq!(status.code(), Some(0));
    assert_eq!(log.matches("draining in-flight runs").count(), 1);
}
