//! The streams of an attached container: what is written to its standard input
//! and what is kept of what it writes.

use std::pin::Pin;

use bollard::container::{AttachContainerResults, LogOutput};
use futures_util::{Stream as Frames, StreamExt};
use tokio::io::{AsyncWrite, AsyncWriteExt};
use zeroize::Zeroizing;

use super::{engine::fault, fault::EngineFault};
use crate::provider::Stream;

type Output = Pin<Box<dyn Frames<Item = Result<LogOutput, bollard::errors::Error>> + Send>>;

/// What a command reads, piece by piece: a caller's code, a report's key.
pub(super) type Fed = Vec<Zeroizing<Vec<u8>>>;

/// Both directions of an attached container.
pub(super) struct Attached {
    pub(super) input: Input,
    pub(super) output: Kept,
}

impl Attached {
    pub(super) fn new(streams: AttachContainerResults) -> Attached {
        Attached {
            input: Input(streams.input),
            output: Kept {
                frames: streams.output,
                stdout: Capped::default(),
                stderr: Capped::default(),
            },
        }
    }
}

/// A container's standard input.
pub(super) struct Input(Pin<Box<dyn AsyncWrite + Send>>);

impl Input {
    /// Writes everything and closes this direction alone. A guest that reads
    /// none of it makes this last as long as it runs; one that has ended makes
    /// it fail, which is its own affair.
    pub(super) async fn feed(mut self, parts: Fed) {
        for part in parts {
            if self.0.write_all(&part).await.is_err() {
                return;
            }
        }
        let _ = self.0.flush().await;
        let _ = self.0.shutdown().await;
    }
}

/// A container's output, as far as it is kept.
pub(super) struct Kept {
    frames: Output,
    stdout: Capped,
    stderr: Capped,
}

impl Kept {
    /// Reads until both streams have ended. What is past the caps is read and
    /// dropped, so that a flood neither blocks the guest nor takes memory.
    ///
    /// # Errors
    /// The connection broke, or what came is not framed output.
    pub(super) async fn drain(
        &mut self,
        stdout_cap: usize,
        stderr_cap: usize,
    ) -> Result<(), EngineFault> {
        while let Some(frame) = self.frames.next().await {
            match frame.map_err(fault)? {
                LogOutput::StdOut { message } => self.stdout.keep(&message, stdout_cap),
                LogOutput::StdErr { message } => self.stderr.keep(&message, stderr_cap),
                LogOutput::StdIn { .. } => {}
                LogOutput::Console { .. } => {
                    return Err(EngineFault::Malformed(
                        "an attached stream ended inside a frame".to_owned(),
                    ));
                }
            }
        }
        Ok(())
    }

    /// What was kept so far: standard output, standard error.
    pub(super) fn take(self) -> (Stream, Stream) {
        (self.stdout.0, self.stderr.0)
    }
}

#[derive(Default)]
struct Capped(Stream);

impl Capped {
    fn keep(&mut self, bytes: &[u8], cap: usize) {
        let room = cap.saturating_sub(self.0.bytes.len());
        let (kept, dropped) = bytes.split_at(room.min(bytes.len()));
        self.0.bytes.extend_from_slice(kept);
        self.0.truncated |= !dropped.is_empty();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;

    fn attached(frames: Vec<LogOutput>) -> Kept {
        let frames = futures_util::stream::iter(frames.into_iter().map(Ok));
        Attached::new(AttachContainerResults {
            output: Box::pin(frames),
            input: Box::pin(tokio::io::sink()),
        })
        .output
    }

    fn out(message: &'static str) -> LogOutput {
        LogOutput::StdOut {
            message: Bytes::from_static(message.as_bytes()),
        }
    }

    #[tokio::test]
    async fn a_prefix_of_each_stream_is_kept() {
        let err = LogOutput::StdErr {
            message: Bytes::from_static(b"\xff\x00"),
        };
        let mut kept = attached(vec![out("abc"), err, out("def"), out("g")]);
        kept.drain(4, 4).await.unwrap();
        let (stdout, stderr) = kept.take();
        assert_eq!(
            (stdout.bytes.as_slice(), stdout.truncated),
            (&b"abcd"[..], true)
        );
        assert_eq!(
            (stderr.bytes.as_slice(), stderr.truncated),
            (&b"\xff\x00"[..], false)
        );
    }

    #[tokio::test]
    async fn output_that_is_not_framed_is_a_fault() {
        let cut = LogOutput::Console {
            message: Bytes::from_static(b"\x01\x00"),
        };
        let mut kept = attached(vec![out("abc"), cut]);
        assert!(kept.drain(9, 9).await.is_err());
        assert_eq!(kept.take().0.bytes, b"abc");
    }
}
