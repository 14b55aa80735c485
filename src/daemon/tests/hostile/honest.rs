//! The honest caller, and HTTP/1.1 by hand.

use std::{
    io::{Read, Write},
    net::TcpStream,
    thread,
    time::{Duration, Instant},
};

use crate::child::TOKEN;

/// More than anything here should take, on a machine with other work.
pub const PATIENCE: Duration = Duration::from_secs(120);
/// Between two looks at something that is waited for.
const AGAIN: Duration = Duration::from_millis(20);

pub fn connect(address: &str) -> TcpStream {
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// A head of a `Run` with this token and further headers, each with its CRLF.
pub fn head(token: &str, more: &str) -> String {
    format!(
        "POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n{more}\r\n"
    )
}

/// A whole request.
pub fn request(token: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
    let more = format!(
        "Content-Type: {content_type}\r\nContent-Length: {}\r\n",
        body.len()
    );
    [head(token, &more).as_bytes(), body].concat()
}

pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn closes(&self) -> bool {
        self.head.to_ascii_lowercase().contains("connection: close")
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Whether it says that nothing ran: by its header, or by its detail.
    pub fn is_marked(&self) -> bool {
        self.head
            .to_ascii_lowercase()
            .contains("\r\nplimsoll-not-dispatched: ")
            || self.text().contains("plimsoll.v1.NotDispatched")
    }
}

/// Reads one answer; `None` when the connection ends without one.
pub fn answer(stream: &mut TcpStream) -> Option<Answer> {
    let mut seen = Vec::new();
    let end = loop {
        if let Some(at) = seen.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, &mut seen)?;
    };
    let head = String::from_utf8(seen[..end].to_vec()).unwrap();
    let mut body = seen.split_off(end);
    let lower = head.to_ascii_lowercase();
    let length = lower
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length: "));
    if let Some(length) = length {
        let length: usize = length.parse().unwrap();
        while body.len() < length {
            more(stream, &mut body)?;
        }
    } else if lower.contains("transfer-encoding: chunked") {
        while !body.ends_with(b"0\r\n\r\n") {
            more(stream, &mut body)?;
        }
    }
    let status = head.get(9..12).unwrap().parse().unwrap();
    Some(Answer { status, head, body })
}

fn more(stream: &mut TcpStream, into: &mut Vec<u8>) -> Option<()> {
    let mut piece = [0; 4096];
    match stream.read(&mut piece) {
        Ok(0) | Err(_) => None,
        Ok(read) => {
            into.extend_from_slice(&piece[..read]);
            Some(())
        }
    }
}

/// A call of someone who means well, on a connection of its own. While peers
/// that just left are still being noticed, a marked refusal for want of
/// capacity is allowed; it must pass.
pub fn call(address: &str) {
    let body = br#"{"protocol":3,"javascript":{"code":"console.log(6*7)"}}"#;
    let until = Instant::now() + PATIENCE;
    loop {
        let mut stream = connect(address);
        stream
            .write_all(&request(TOKEN, "application/json", body))
            .unwrap();
        let answer = answer(&mut stream).expect("an honest call is answered");
        if answer.status == 429 && answer.is_marked() && Instant::now() < until {
            thread::sleep(AGAIN);
            continue;
        }
        if cfg!(feature = "wasm") {
            assert_eq!(answer.status, 200, "{}", answer.text());
            assert!(answer.text().contains("NDIK"), "{}", answer.text());
        } else {
            assert!(answer.is_marked(), "{}", answer.text());
        }
        return;
    }
}

/// A page, read to its end.
pub fn get(address: &str, path: &str) -> Answer {
    let mut stream = connect(address);
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    answer(&mut stream).expect("a page is answered")
}

/// Waits until the daemon ends the connection, whatever it says before.
pub fn ended(stream: &mut TcpStream) {
    let mut piece = [0; 4096];
    let until = Instant::now() + PATIENCE;
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return,
            Ok(_) => assert!(Instant::now() < until, "the connection does not end"),
            Err(error) => {
                let kind = error.kind();
                let waited = matches!(
                    kind,
                    std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                );
                assert!(!waited, "the connection does not end");
                return;
            }
        }
    }
}
