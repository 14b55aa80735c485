//! The product's own binary as a child process, serving on loopback.

use std::{
    io::{BufRead as _, BufReader},
    path::{Path, PathBuf},
    process::{Child, ChildStderr, Command, Stdio},
    thread,
};

use plimsoll_client::{BaseUrl, Options, Token};

use crate::measure::Outcome;

const BINARY: &str = "plimsoll-attest";

/// Builds the binary in the profile of this bench and gives its path.
pub fn binary() -> Outcome<PathBuf> {
    // <target>/<profile>/deps/<this>
    let own = std::env::current_exe()?;
    let profile = own
        .parent()
        .and_then(Path::parent)
        .ok_or("this bench lies outside a target directory")?;
    let target = profile.parent().ok_or("no target directory")?;
    let mut build = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    build
        .args(["build", "--quiet", "--locked", "-p", BINARY])
        .arg("--manifest-path")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/../Cargo.toml"))
        .arg("--target-dir")
        .arg(target);
    if !cfg!(debug_assertions) {
        build.arg("--release");
    }
    if !build.status()?.success() {
        return Err("the binary does not build".into());
    }
    Ok(profile.join(BINARY))
}

/// A running daemon; it ends with this value.
pub struct Daemon {
    process: Child,
    address: String,
    options: Options,
}

impl Daemon {
    /// Starts the wasm provider on a free loopback port, with no limit on how
    /// often runs start, and waits until it listens.
    pub fn start(binary: &Path) -> Outcome<Self> {
        Self::with(binary, &[])
    }

    /// The same with further variables, which win.
    pub fn with(binary: &Path, variables: &[(&str, &str)]) -> Outcome<Self> {
        let mut secret = [0; 32];
        getrandom::fill(&mut secret).map_err(|error| error.to_string())?;
        let token = hex::encode(secret);
        let mut process = Command::new(binary)
            .arg("daemon")
            .env_clear()
            .env("PLIMSOLL_ADDR", "127.0.0.1:0")
            .env("PLIMSOLL_METRICS_ADDR", "off")
            .env("PLIMSOLL_TOKEN", &token)
            .env("PLIMSOLL_LOG_FORMAT", "json")
            // It ends with its input, whatever ends this process.
            .env("PLIMSOLL_EMBEDDED", "1")
            .env("SANDBOX_PROVIDER", "wasm")
            .env("SANDBOX_RATE_PER_MIN", "0")
            .envs(variables.iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()?;
        let stderr = process.stderr.take().ok_or("the daemon has no log")?;
        let mut log = BufReader::new(stderr);
        let address = listening(&mut log)?;
        // It writes a line for every run and waits when nobody reads.
        thread::spawn(move || std::io::copy(&mut log, &mut std::io::sink()));
        let mut options = Options::new(BaseUrl::parse(&format!("http://{address}"))?);
        options.token = Some(Token::new(&token)?);
        Ok(Daemon {
            process,
            address,
            options,
        })
    }

    /// Where it listens, host and port.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its process ID.
    pub fn process_id(&self) -> u32 {
        self.process.id()
    }

    /// Asks it to end; gives its exit status.
    pub fn stop(mut self) -> Outcome<Option<i32>> {
        drop(self.process.stdin.take());
        Ok(self.process.wait()?.code())
    }

    /// Options of a client of this daemon.
    pub fn options(&self) -> Options {
        self.options.clone()
    }

    /// Its resident memory in KiB, from the kernel; `None` where it does not tell.
    pub fn resident_kib(&self) -> Option<u64> {
        let path = format!("/proc/{}/status", self.process.id());
        let status = std::fs::read_to_string(path).ok()?;
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix("VmRSS:"))?;
        line.split_whitespace().next()?.parse().ok()
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let _ = self.process.wait();
    }
}

fn listening(log: &mut BufReader<ChildStderr>) -> Outcome<String> {
    let mut line = String::new();
    while log.read_line(&mut line)? > 0 {
        let entry: serde_json::Value = serde_json::from_str(&line)?;
        if let Some(address) = entry["addr"].as_str() {
            return Ok(address.to_owned());
        }
        line.clear();
    }
    Err("the daemon ended before it listened".into())
}
