//! The child process itself.

use std::{
    ffi::OsString,
    io,
    net::SocketAddr,
    path::Path,
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::Duration,
};

use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use tokio::{
    io::AsyncReadExt,
    process::{ChildStderr, ChildStdin, Command},
    sync::mpsc,
    task::JoinHandle,
    time::timeout,
};

use super::{Stopped, log::Log};

/// How long the end of the log is waited for after the child has ended: a
/// process it left behind may hold the stream.
const LOG_WITHIN: Duration = Duration::from_secs(1);

pub(super) struct Child {
    process: tokio::process::Child,
    /// Ends with this process, and the child with it.
    stdin: Option<ChildStdin>,
    log: Arc<Log>,
    reader: Option<JoinHandle<()>>,
    addresses: mpsc::Receiver<SocketAddr>,
}

impl Child {
    pub(super) fn spawn(
        program: &Path,
        arguments: &[OsString],
        environment: Vec<(OsString, OsString)>,
    ) -> io::Result<Child> {
        let mut process = Command::new(program)
            .arg0("plimsoll-attest")
            .args(arguments)
            .env_clear()
            .envs(environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            // A terminal's interrupt is for the parent, which ends the child.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()?;
        let log = Arc::new(Log::default());
        let (sender, addresses) = mpsc::channel(1);
        let reader = process
            .stderr
            .take()
            .map(|stderr| tokio::spawn(read(stderr, Arc::clone(&log), sender)));
        Ok(Child {
            stdin: process.stdin.take(),
            process,
            log,
            reader,
            addresses,
        })
    }

    /// The next address a listening line names; `Err` when the child ends.
    pub(super) async fn listening(&mut self) -> Result<Option<SocketAddr>, ExitStatus> {
        tokio::select! {
            biased;
            Some(address) = self.addresses.recv() => Ok(Some(address)),
            status = self.process.wait() => Err(status.unwrap_or_default()),
        }
    }

    /// Waits for the child's end, which is always an `Err` here.
    pub(super) async fn ended<T>(&mut self) -> Result<T, ExitStatus> {
        Err(self.process.wait().await.unwrap_or_default())
    }

    pub(super) fn process_id(&self) -> Option<u32> {
        self.process.id()
    }

    pub(super) fn terminate(&self) {
        if let Some(pid) = self.pid() {
            // It may end by itself at any moment.
            let _ = kill_process(pid, Signal::TERM);
        }
    }

    pub(super) async fn stop(mut self, within: Duration) -> Stopped {
        self.terminate();
        let killed = timeout(within, self.process.wait()).await.is_err();
        if killed {
            self.kill_now().await;
        }
        self.finish_log().await;
        Stopped {
            killed,
            last: self.log.last(),
            log: self.log.text(),
        }
    }

    /// The last error line of a child that has ended.
    pub(super) async fn last_line(&mut self) -> Option<String> {
        self.finish_log().await;
        self.log.last()
    }

    async fn kill_now(&mut self) {
        if let Some(pid) = self.pid() {
            // With the processes it started, which are in its group.
            let _ = kill_process_group(pid, Signal::KILL);
        }
        let _ = self.process.kill().await;
    }

    async fn finish_log(&mut self) {
        // What the child left behind may wait for it, and hold its log open.
        self.stdin = None;
        if let Some(reader) = self.reader.take() {
            let abort = reader.abort_handle();
            if timeout(LOG_WITHIN, reader).await.is_err() {
                abort.abort();
            }
        }
    }

    fn pid(&self) -> Option<Pid> {
        // `None` once it was waited for, so the number cannot be another's.
        Pid::from_raw(i32::try_from(self.process.id()?).ok()?)
    }
}

async fn read(mut stderr: ChildStderr, log: Arc<Log>, addresses: mpsc::Sender<SocketAddr>) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read) = stderr.read(&mut buffer).await {
        if read == 0 {
            break;
        }
        if let Some(address) = log.take(&buffer[..read]) {
            // Only the first is waited for; the log is read on in any case.
            let _ = addresses.try_send(address);
        }
    }
}
