//! A daemon as a child process: this very program, started again.

// Each test program uses its own part of this.
#![allow(dead_code)]

use std::{
    env,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    process::{Child, ChildStderr, Command, ExitStatus, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
};

/// The token of every daemon here; no log, error or metric may hold it.
pub const TOKEN: &str = "CANARY-token-0123456789abcdef-0123456789";

/// This program as a daemon with nothing of our environment but these.
pub fn daemon(arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(env::current_exe().unwrap());
    command
        .env_clear()
        .env("PLIMSOLL_METRICS_ADDR", "off")
        .envs(variables.iter().copied())
        .arg("daemon")
        .args(arguments);
    command
}

/// A daemon that listens; its log is read line by line.
pub struct Running {
    pub child: Child,
    log: Option<BufReader<ChildStderr>>,
    pub seen: String,
    pub address: String,
    /// Of the metrics listener, or `off`.
    pub metrics: String,
}

/// A log that is read as it is written: a daemon waits for its reader.
pub struct Collected {
    text: Arc<Mutex<String>>,
    reader: JoinHandle<()>,
}

impl Collected {
    /// What was written so far.
    pub fn text(&self) -> String {
        self.text.lock().unwrap().clone()
    }

    /// Everything, once the daemon has ended.
    pub fn whole(self) -> String {
        self.reader.join().unwrap();
        self.text.lock().unwrap().clone()
    }
}

impl Running {
    pub fn start(variables: &[(&str, &str)]) -> Running {
        let mut all = vec![("PLIMSOLL_ADDR", "127.0.0.1:0"), ("PLIMSOLL_TOKEN", TOKEN)];
        all.extend_from_slice(variables);
        Self::of(&mut daemon(&[], &all))
    }

    pub fn of(command: &mut Command) -> Running {
        let mut child = command
            .stdin(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let log = BufReader::new(child.stderr.take().unwrap());
        let mut running = Running {
            child,
            log: Some(log),
            seen: String::new(),
            address: String::new(),
            metrics: String::new(),
        };
        let line = running.line_with("plimsolld listening");
        let value = |key: &str| {
            let (_, after) = line.split_once(&format!("\"{key}\":\"")).unwrap();
            after.split_once('"').unwrap().0.to_owned()
        };
        running.address = value("addr");
        running.metrics = value("metrics_addr");
        running
    }

    /// Reads the rest of the log on a thread.
    pub fn collect(&mut self) -> Collected {
        let text = Arc::new(Mutex::new(std::mem::take(&mut self.seen)));
        let (kept, log) = (Arc::clone(&text), self.log.take().unwrap());
        let reader = thread::spawn(move || {
            for line in log.lines() {
                let mut kept = kept.lock().unwrap();
                kept.push_str(&line.unwrap());
                kept.push('\n');
            }
        });
        Collected { text, reader }
    }

    pub fn line_with(&mut self, word: &str) -> String {
        loop {
            let mut line = String::new();
            assert_ne!(
                self.log.as_mut().unwrap().read_line(&mut line).unwrap(),
                0,
                "no {word}: {}",
                self.seen
            );
            self.seen.push_str(&line);
            if line.contains(word) {
                return line;
            }
        }
    }

    /// Takes a new connection and answers on it, so it has not begun to stop.
    pub fn answers(&self) {
        let mut health = TcpStream::connect(&self.address).unwrap();
        health
            .write_all(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        health.read_to_string(&mut answer).unwrap();
        assert!(answer.ends_with("ok\n"), "{answer}");
    }

    pub fn signal(&self, name: &str) {
        let sent = Command::new("/bin/sh")
            .args([
                "-c",
                "kill -s \"$1\" \"$2\"",
                "sh",
                name,
                &self.child.id().to_string(),
            ])
            .status()
            .unwrap();
        assert!(sent.success());
    }

    pub fn wait(mut self) -> (ExitStatus, String) {
        let status = self.child.wait().unwrap();
        let mut seen = std::mem::take(&mut self.seen);
        if let Some(log) = &mut self.log {
            log.read_to_string(&mut seen).unwrap();
        }
        (status, seen)
    }
}

/// A failed check leaves no daemon behind.
impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
