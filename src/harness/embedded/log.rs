//! The child's log: read line by line, kept in bounded memory.

use std::{
    collections::VecDeque,
    net::SocketAddr,
    sync::{Mutex, MutexGuard, PoisonError},
};

use serde::Deserialize;

/// Most bytes of log kept; older lines go first.
const MAX_LOG_BYTES: usize = 64 << 10;
/// Most bytes of one line kept; the rest of it is dropped.
const MAX_LINE_BYTES: usize = 8 << 10;

/// The message of the line that names the daemon's address.
const LISTENING: &str = "plimsolld listening";

/// What is kept of a log.
#[derive(Default)]
pub(super) struct Log(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    lines: VecDeque<String>,
    bytes: usize,
    partial: Vec<u8>,
}

/// A log line as far as it matters here.
#[derive(Deserialize)]
struct Line<'a> {
    #[serde(default)]
    level: &'a str,
    #[serde(default)]
    msg: &'a str,
    addr: Option<&'a str>,
}

fn parse(line: &str) -> Option<Line<'_>> {
    serde_json::from_str(line).ok()
}

impl Log {
    /// Takes bytes as they come. Gives the address of a listening line among
    /// the lines they end.
    pub(super) fn take(&self, bytes: &[u8]) -> Option<SocketAddr> {
        let mut kept = self.kept();
        let mut address = None;
        for part in bytes.split_inclusive(|b| *b == b'\n') {
            let (part, ends) = match part.strip_suffix(b"\n") {
                Some(part) => (part, true),
                None => (part, false),
            };
            let room = MAX_LINE_BYTES - kept.partial.len();
            kept.partial
                .extend_from_slice(&part[..part.len().min(room)]);
            if ends {
                let line = kept.end_line();
                if let Some(Line {
                    msg: LISTENING,
                    addr: Some(addr),
                    ..
                }) = parse(&line)
                {
                    address = addr.parse().ok().or(address);
                }
                kept.push(line);
            }
        }
        address
    }

    /// The last line of level ERROR, else the last line at all.
    pub(super) fn last(&self) -> Option<String> {
        let mut kept = self.kept();
        if !kept.partial.is_empty() {
            let line = kept.end_line();
            kept.push(line);
        }
        let error = (kept.lines.iter().rev())
            .find(|line| parse(line).is_some_and(|line| line.level == "ERROR"));
        error.or(kept.lines.back()).cloned()
    }

    /// All that is kept, a line each.
    pub(super) fn text(&self) -> String {
        let kept = self.kept();
        kept.lines
            .iter()
            .flat_map(|line| [line.as_str(), "\n"])
            .collect()
    }

    fn kept(&self) -> MutexGuard<'_, Kept> {
        // Whole after every statement.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn end_line(&mut self) -> String {
        let line = String::from_utf8_lossy(&self.partial).into_owned();
        self.partial.clear();
        line
    }

    fn push(&mut self, line: String) {
        self.bytes += line.len() + 1;
        self.lines.push_back(line);
        while self.bytes > MAX_LOG_BYTES {
            match self.lines.pop_front() {
                Some(line) => self.bytes -= line.len() + 1,
                None => break,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_listening_line_in_pieces() {
        let log = Log::default();
        assert_eq!(
            log.take(b"not json\n{\"level\":\"INFO\",\"msg\":\"plims"),
            None
        );
        let rest = b"olld listening\",\"addr\":\"127.0.0.1:81\",\"n\":1}\n{\"x\"";
        assert_eq!(log.take(rest), Some("127.0.0.1:81".parse().unwrap()));
        for odd in [
            "{\"msg\":\"plimsolld listening\"}\n",
            "{\"msg\":\"plimsolld listening\",\"addr\":\"x\"}\n",
            "{\"msg\":\"plimsolld listening at\",\"addr\":\"127.0.0.1:1\"}\n",
            "{\"msg\":5,\"addr\":\"127.0.0.1:1\"}\n",
        ] {
            assert_eq!(Log::default().take(odd.as_bytes()), None, "{odd}");
        }
    }

    #[test]
    fn the_last_error_is_found() {
        let log = Log::default();
        assert_eq!(log.last(), None);
        log.take(b"{\"level\":\"INFO\",\"msg\":\"a\"}\n{\"level\":\"ERROR\",\"msg\":\"b\"}\n");
        log.take(b"{\"level\":\"INFO\",\"msg\":\"c\"}\npartial");
        assert_eq!(log.last().unwrap(), "{\"level\":\"ERROR\",\"msg\":\"b\"}");
        let plain = Log::default();
        plain.take(b"one\ntwo \xff");
        assert_eq!(plain.last().unwrap(), "two \u{fffd}");
    }

    #[test]
    fn memory_is_bounded() {
        let log = Log::default();
        log.take(&vec![b'x'; 1 << 20]);
        assert_eq!(log.kept().partial.len(), MAX_LINE_BYTES);
        log.take(b"\n");
        for i in 0..100_000 {
            log.take(format!("line {i}\n").as_bytes());
        }
        let text = log.text();
        assert!(text.len() <= MAX_LOG_BYTES && text.len() > MAX_LOG_BYTES - 100);
        assert!(text.ends_with("line 99999\n"));
    }
}
