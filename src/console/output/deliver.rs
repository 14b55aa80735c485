//! Handing over a secret.

use std::io::{self, Write as _};

use super::Console;

impl Console {
    /// Hands bytes to the system at once, past every buffer of this process, so
    /// that no copy of a secret stays behind and the command learns whether it
    /// arrived. For commands of [`super::Stream::Delivery`].
    ///
    /// # Errors
    /// The system's; the command says what that means, nothing is said here.
    pub fn deliver(&self, secret: &[u8]) -> io::Result<()> {
        let mut state = self.lock();
        state.out.flush()?;
        straight(secret)
    }
}

#[cfg(unix)]
fn straight(mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match rustix::io::write(io::stdout(), bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(n) => bytes = bytes.get(n..).unwrap_or_default(),
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(unix))]
fn straight(bytes: &[u8]) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(bytes)?;
    out.flush()
}
