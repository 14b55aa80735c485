//! A host socket for the smoke test, to prove that a guest can connect to one
//! that is mounted for it.

use std::{
    fs::Permissions,
    io,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
};

use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixListener,
    task::JoinHandle,
};

/// Answers `ping` with `pong` for as long as it lives.
pub(super) struct PingSocket {
    directory: TempDir,
    answering: JoinHandle<()>,
}

impl PingSocket {
    pub(super) fn make(parent: &Path) -> io::Result<PingSocket> {
        let directory = tempfile::Builder::new()
            .prefix("crsbx-smoke-sock")
            .rand_bytes(16)
            .permissions(Permissions::from_mode(0o700))
            .tempdir_in(parent)?;
        let path = directory.path().join("host-api.sock");
        let listener = UnixListener::bind(&path)?;
        // The guest is another user; the directory keeps users of this host out.
        std::fs::set_permissions(&path, Permissions::from_mode(0o666))?;
        let answering = tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut said = [0; 4];
                if stream.read_exact(&mut said).await.is_ok() && &said == b"ping" {
                    let _ = stream.write_all(b"pong").await;
                }
            }
        });
        Ok(PingSocket {
            directory,
            answering,
        })
    }

    pub(super) fn path(&self) -> PathBuf {
        self.directory.path().join("host-api.sock")
    }
}

impl Drop for PingSocket {
    fn drop(&mut self) {
        self.answering.abort();
    }
}
