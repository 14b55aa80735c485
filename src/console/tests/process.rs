//! What only a whole process shows: closed pipes, panics, signals, standard input.
#![allow(clippy::unwrap_used, clippy::panic)]
#![cfg(unix)]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// The example program, built beside the tests.
fn probe() -> Command {
    let mut path: PathBuf = std::env::current_exe().unwrap();
    path.pop();
    if path.ends_with("deps") {
        path.pop();
    }
    let mut command = Command::new(path.join("examples/probe"));
    command.env_remove("GITHUB_ACTIONS").stdin(Stdio::null());
    command
}

fn run(args: &[&str]) -> Output {
    probe().args(args).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

fn with_file(content: &[u8]) -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("in.txt");
    std::fs::write(&file, content).unwrap();
    let name = file.to_str().unwrap().to_owned();
    (dir, name)
}

fn names(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir).unwrap();
    entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect()
}

/// Runs with a standard output whose reader takes `bytes` and leaves.
fn with_closed_output(args: &[&str], bytes: u64) -> (i32, String) {
    let (reader, writer) = std::io::pipe().unwrap();
    let mut reader = if bytes == 0 {
        drop(reader);
        None
    } else {
        Some(reader)
    };
    let child = probe()
        .args(args)
        .stdout(writer)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    if let Some(reader) = reader.take() {
        let mut some = Vec::new();
        reader.take(bytes).read_to_end(&mut some).unwrap();
        assert!(!some.is_empty());
    }
    let output = child.wait_with_output().unwrap();
    (
        output.status.code().unwrap(),
        text(&output.stderr).to_owned(),
    )
}

#[test]
fn verdicts_survive_a_reader_that_leaves() {
    let (_dir, good) = with_file(b"fine\n");
    let (_dir2, bad) = with_file(b"fine\nbad\n");
    for json in [&[][..], &["--json"]] {
        let line = |file: &str| {
            [
                &["check".to_owned(), file.to_owned()][..],
                &json.iter().map(ToString::to_string).collect::<Vec<_>>(),
            ]
            .concat()
        };
        for (file, code) in [(&good, 0), (&bad, 1)] {
            let line = line(file);
            let line: Vec<&str> = line.iter().map(String::as_str).collect();
            let (got, err) = with_closed_output(&line, 0);
            assert_eq!(got, code, "{err}");
            assert!(!err.contains("error[io]"), "{err}");
        }
    }
}

#[test]
fn text_stops_quietly_and_products_fail() {
    let (_dir, long) = with_file(&b"line\n".repeat(2000));
    assert_eq!(with_closed_output(&["show", &long], 1), (0, String::new()));
    assert_eq!(with_closed_output(&["--help"], 0), (0, String::new()));
    let (code, err) = with_closed_output(&["give"], 0);
    assert_eq!(code, 1);
    assert!(
        err.contains("error[io]: standard output could not be written: the reader closed it"),
        "{err}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_is_io_whatever_the_command() {
    let (_dir, good) = with_file(b"fine\n");
    for line in [
        &["check", &good][..],
        &["check", "--json", &good],
        &["show", &good],
        &["give"],
        &["--help"],
    ] {
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = probe().args(line).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line:?}");
        assert!(
            text(&output.stderr).contains("no space is left"),
            "{line:?}"
        );
    }
}

#[test]
fn a_closed_standard_error_changes_no_code() {
    let (_dir, bad) = with_file(b"bad\n");
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let status = probe()
        .args(["check", &bad])
        .stdout(Stdio::null())
        .stderr(writer)
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(1));
}

#[test]
fn a_panic_is_one_line_and_exit_70_and_leaves_no_file() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let output = run(&["panic", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(70));
    let err = text(&output.stderr);
    assert_eq!(err.lines().count(), 1, "{err}");
    assert!(
        err.starts_with("plimsoll-attest: error[internal]: internal fault at ")
            && err.contains("report"),
        "{err}"
    );
    assert!(
        !err.contains("index out of bounds"),
        "no message made of data: {err}"
    );
    assert_eq!(names(dir.path()), Vec::<String>::new());

    let output = run(&["panic", "--json", out.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(70));
    let object = text(&output.stdout);
    assert!(object.starts_with("{\"format\":\"plimsoll-attest/panic/v1\",\"ok\":false,\"exit\":70,\"error\":{\"class\":\"internal\""), "{object}");
    assert_eq!(object.lines().count(), 1);
}

/// Starts the waiting command and comes back when it waits.
fn waiting(dir: &Path, graceful: bool) -> Child {
    let mut command = probe();
    command
        .arg("wait")
        .arg(dir.join("out"))
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    if graceful {
        command.arg("--graceful");
    }
    let mut child = command.spawn().unwrap();
    let mut ready = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut ready)
        .unwrap();
    assert_eq!(ready, "ready\n");
    assert_eq!(names(dir).len(), 1, "an unfinished file is there");
    child
}

fn send(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}

#[test]
fn a_signal_cleans_up_and_ends_the_process_by_itself() {
    use rustix::process::Signal;
    for (signal, graceful) in [
        (Signal::INT, false),
        (Signal::TERM, false),
        (Signal::INT, true),
        (Signal::TERM, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let child = waiting(dir.path(), graceful);
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.signal(), Some(signal.as_raw()));
        assert_eq!(names(dir.path()), Vec::<String>::new());
        assert_eq!(text(&output.stderr).contains("may have run"), graceful);
    }
}

#[test]
fn standard_input_is_read_where_it_is_allowed() {
    let mut child = probe()
        .args(["check", "-"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(b"fine\nbad\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(
        text(&output.stderr)
            .starts_with("plimsoll-attest: error[line]: standard input line 2: the line is bad\n")
    );
}

#[test]
fn a_workflow_runner_sees_no_command_in_shown_text() {
    let (_dir, file) = with_file(b"::error::x\n##[group]\n\x1b[31m");
    let output = probe()
        .env("GITHUB_ACTIONS", "true")
        .args(["show", &file])
        .output()
        .unwrap();
    assert_eq!(
        text(&output.stdout),
        "| \\::error::x\n| \\##[group]\n| \\u{1b}[31m∎\n"
    );
    let output = run(&["show", &file]);
    assert_eq!(
        text(&output.stdout),
        "| ::error::x\n| ##[group]\n| \\u{1b}[31m∎\n"
    );
}

#[test]
fn colour_can_be_forced_and_is_off_in_a_pipe() {
    let (_dir, bad) = with_file(b"bad\n");
    assert!(!text(&run(&["check", &bad]).stderr).contains('\u{1b}'));
    assert!(text(&run(&["check", "--color", "always", &bad]).stderr).contains('\u{1b}'));
    let output = run(&["check", "--json", "--color=always", &bad]);
    assert!(!text(&output.stdout).contains('\u{1b}') && output.stderr.is_empty());
}
