//! HTTP/1.1 by hand, for bytes no client library would send.

use std::{net::SocketAddr, time::Duration};

use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
};

use super::{REQUEST_ID, TOKEN, timed};

pub struct Raw<I = TcpStream> {
    io: I,
    buffer: Vec<u8>,
}

/// An answer's head and body.
#[derive(Debug)]
pub struct Plain {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Plain {
    /// All values of a header.
    pub fn all(&self, name: &str) -> Vec<&str> {
        self.headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, v)| v.as_str())
            .collect()
    }

    /// The one value of a header, or empty.
    pub fn header(&self, name: &str) -> &str {
        let all = self.all(name);
        assert!(all.len() < 2, "{name} is repeated: {all:?}");
        all.first().copied().unwrap_or("")
    }

    pub fn mark(&self) -> &str {
        self.header("plimsoll-not-dispatched")
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    pub fn closes(&self) -> bool {
        self.header("connection").eq_ignore_ascii_case("close")
    }
}

impl Raw {
    pub async fn connect(address: SocketAddr) -> Raw {
        Raw::over(TcpStream::connect(address).await.unwrap())
    }
}

impl<I: AsyncRead + AsyncWrite + Unpin> Raw<I> {
    pub fn over(io: I) -> Raw<I> {
        Raw {
            io,
            buffer: Vec::new(),
        }
    }

    pub async fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.io.write_all(bytes.as_ref()).await.unwrap();
    }

    /// Reads one answer; a chunked body is put together.
    pub async fn answer(&mut self) -> Plain {
        self.answer_in_time().await.0
    }

    /// The same, and how long it took.
    pub async fn answer_in_time(&mut self) -> (Plain, Duration) {
        timed(self.read_answer()).await
    }

    async fn read_answer(&mut self) -> Plain {
        let head = self.until(b"\r\n\r\n").await;
        let head = String::from_utf8(head).unwrap();
        let mut lines = head.trim_end().split("\r\n");
        let status = lines.next().unwrap();
        assert!(status.starts_with("HTTP/1.1 "), "{status}");
        let status = status[9..12].parse().unwrap();
        let headers = lines
            .map(|line| {
                let (name, value) = line.split_once(':').unwrap();
                (name.to_owned(), value.trim().to_owned())
            })
            .collect();
        let mut plain = Plain {
            status,
            headers,
            body: Vec::new(),
        };
        if plain.header("transfer-encoding") == "chunked" {
            loop {
                let line = self.until(b"\r\n").await;
                let size = std::str::from_utf8(&line).unwrap().trim();
                let size = usize::from_str_radix(size, 16).unwrap();
                let chunk = self.exactly(size + 2).await;
                plain.body.extend_from_slice(&chunk[..size]);
                if size == 0 {
                    break;
                }
            }
        } else if let Ok(length) = plain.header("content-length").parse() {
            plain.body = self.exactly(length).await;
        }
        plain
    }

    /// Waits for the server to close and returns how long that took. Bytes
    /// that come before are a failure.
    pub async fn closed(&mut self) -> Duration {
        assert_eq!(self.buffer, b"", "bytes before the end");
        let mut rest = Vec::new();
        let (_, time) = timed(self.io.read_to_end(&mut rest)).await;
        assert_eq!(rest, b"", "bytes before the end");
        time
    }

    pub fn into_io(self) -> I {
        self.io
    }

    async fn until(&mut self, mark: &[u8]) -> Vec<u8> {
        loop {
            let found = self.buffer.windows(mark.len()).position(|w| w == mark);
            if let Some(at) = found {
                return self.buffer.drain(..at + mark.len()).collect();
            }
            self.more().await;
        }
    }

    async fn exactly(&mut self, length: usize) -> Vec<u8> {
        while self.buffer.len() < length {
            self.more().await;
        }
        self.buffer.drain(..length).collect()
    }

    async fn more(&mut self) {
        let read = self.io.read_buf(&mut self.buffer).await.unwrap();
        assert_ne!(
            read,
            0,
            "closed after {:?}",
            String::from_utf8_lossy(&self.buffer)
        );
    }
}

/// Path of a method.
pub fn path(method: &str) -> String {
    format!("/plimsoll.v1.SandboxService/{method}")
}

/// A head with the usual headers, then `more` headers, each ending in CRLF.
pub fn head(method: &str, more: &str) -> String {
    format!(
        "POST {} HTTP/1.1\r\nHost: test\r\nAuthorization: Bearer {TOKEN}\r\n\
         Content-Type: application/json\r\nPlimsoll-Request-Id: {REQUEST_ID}\r\n{more}\r\n",
        path(method)
    )
}

/// A whole JSON request.
pub fn json(method: &str, body: &str) -> String {
    head(method, &format!("Content-Length: {}\r\n", body.len())) + body
}
