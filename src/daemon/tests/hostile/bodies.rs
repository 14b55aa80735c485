//! Bodies that do not come, do not end, or grow.

use std::{fs, io::Write, net::TcpStream};

use flate2::{Compression, write::GzEncoder};

use crate::{
    child::TOKEN,
    honest::{answer, call, connect, ended, head, request},
    serving,
};

/// With a bad credential the answer comes at once; with a good one the caller
/// fills at most its own half of the decode slots.
pub fn withheld() {
    let (running, _log) = serving(&[]);
    let json = "Content-Type: application/json\r\n";
    for framing in ["Content-Length: 100\r\n", "Transfer-Encoding: chunked\r\n"] {
        for token in ["wrong", ""] {
            let mut peer = connect(&running.address);
            let head = head(token, &format!("{json}{framing}"));
            peer.write_all(head.as_bytes()).unwrap();
            peer.write_all(b"2\r\n").unwrap();
            let refused = answer(&mut peer).unwrap();
            assert_eq!(refused.status, 401);
            assert!(refused.closes() && refused.is_marked());
            ended(&mut peer);
        }
    }
    let holding: Vec<TcpStream> = (0..8)
        .map(|_| {
            let mut peer = connect(&running.address);
            let more = format!("{json}Content-Length: 100\r\nExpect: 100-continue\r\n");
            peer.write_all(head(TOKEN, &more).as_bytes()).unwrap();
            // From here on it holds a slot.
            assert_eq!(answer(&mut peer).unwrap().status, 100);
            peer
        })
        .collect();
    let mut over = connect(&running.address);
    let more = format!("{json}Content-Length: 100\r\n");
    over.write_all(head(TOKEN, &more).as_bytes()).unwrap();
    let refused = answer(&mut over).unwrap();
    assert_eq!(refused.status, 429);
    assert!(
        refused.is_marked() && refused.text().contains("CAY"),
        "{}",
        refused.text()
    );
    drop(holding);
    call(&running.address);
}

/// Over the limit, by declaration and by surprise.
pub fn oversize() {
    let (running, _log) = serving(&[]);
    let json = "Content-Type: application/json\r\n";
    let mut peer = connect(&running.address);
    let more = format!("{json}Content-Length: 8388609\r\n");
    peer.write_all(head(TOKEN, &more).as_bytes()).unwrap();
    peer.write_all(b"{}").unwrap();
    let refused = answer(&mut peer).unwrap();
    assert_eq!(refused.status, 429);
    assert!(
        refused.closes() && refused.text().contains("CAE"),
        "{}",
        refused.text()
    );
    call(&running.address);

    let mut peer = connect(&running.address);
    let more = format!("{json}Transfer-Encoding: chunked\r\n");
    peer.write_all(head(TOKEN, &more).as_bytes()).unwrap();
    let chunk = [b"10000\r\n".as_slice(), &vec![b' '; 0x10000], b"\r\n"].concat();
    for _ in 0..256 {
        // Refused somewhere in the middle of it.
        if peer.write_all(&chunk).is_err() {
            break;
        }
    }
    // A reset may overtake the answer.
    if let Some(refused) = answer(&mut peer) {
        assert_eq!(refused.status, 429);
    }
    call(&running.address);
}

/// A mebibyte of gzip that inflates to a gibibyte: refused, and memory stays.
pub fn bombs() {
    let (running, _log) = serving(&[]);
    call(&running.address);
    // Many members make one stream; compressing a gibibyte here would be slow.
    let mut member = GzEncoder::new(Vec::new(), Compression::best());
    member.write_all(&vec![b' '; 1 << 20]).unwrap();
    let member = member.finish().unwrap();
    let bomb = member.repeat(1024);
    assert!(bomb.len() < 2 << 20);
    let before = resident_kib(running.child.id());
    for content_type in ["application/json", "application/proto"] {
        let plain = request(TOKEN, content_type, &bomb);
        let at = plain.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
        let packed = [&plain[..at], b"\r\nContent-Encoding: gzip", &plain[at..]].concat();
        for _ in 0..3 {
            let mut peer = connect(&running.address);
            peer.write_all(&packed).unwrap();
            let refused = answer(&mut peer).unwrap();
            assert_eq!(refused.status, 429, "{}", refused.text());
            assert!(refused.is_marked());
        }
        call(&running.address);
    }
    let grown = resident_kib(running.child.id()).saturating_sub(before);
    assert!(grown < 100 << 10, "{grown} KiB more");
}

/// The most that was ever resident.
fn resident_kib(process: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let size = line.unwrap().split_whitespace().next().unwrap();
    size.parse().unwrap()
}
