//! HTTP/2 frames by hand, many of them.

use std::{io::Write, net::TcpStream, thread, time::Duration};

use crate::{
    honest::{call, connect, ended},
    serving,
};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const END_HEADERS: u8 = 4;
/// `:method POST`, `:scheme http`, `:path /`, `:authority a`.
const REQUEST: &[u8] = b"\x83\x86\x84\x41\x01a";

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(9 + payload.len());
    out.extend(&(payload.len() as u32).to_be_bytes()[1..]);
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
    out
}

fn headers(stream: u32, block: &[u8], flags: u8) -> Vec<u8> {
    frame(1, flags, stream, block)
}

/// What a peer sends in round `round` of its flood.
type Flood = fn(round: u32) -> Vec<u8>;

const FLOODS: [(&str, u32, Flood); 12] = [
    ("rapid resets", 10_000, |round| {
        let stream = 2 * round + 1;
        let reset = frame(3, 0, stream, &8_u32.to_be_bytes());
        [headers(stream, REQUEST, END_HEADERS), reset].concat()
    }),
    ("resets of its own making", 10_000, |round| {
        // A window of 0 more is an error of the stream, which the other side resets.
        let stream = 2 * round + 1;
        let update = frame(8, 0, stream, &0_u32.to_be_bytes());
        [headers(stream, REQUEST, END_HEADERS), update].concat()
    }),
    ("streams left open", 2_000, |round| {
        headers(2 * round + 1, REQUEST, END_HEADERS)
    }),
    ("settings", 20_000, |round| {
        let window = (1_u32 << 16) + round;
        let setting = [&[0, 4], &window.to_be_bytes()[..]].concat();
        frame(4, 0, 0, &setting)
    }),
    ("empty settings", 20_000, |_| frame(4, 0, 0, b"")),
    ("pings", 20_000, |round| {
        frame(6, 0, 0, &u64::from(round).to_be_bytes())
    }),
    ("continuations", 2_000, |round| match round {
        0 => headers(1, REQUEST, 0),
        // A header of 1,000 bytes that is never indexed.
        _ => {
            let value = [b'v'; 1000];
            let header = [b"\x10\x01x\x7f\xe9\x06", &value[..]].concat();
            frame(9, 0, 1, &header)
        }
    }),
    ("empty continuations", 20_000, |round| match round {
        0 => headers(1, REQUEST, 0),
        _ => frame(9, 0, 1, b""),
    }),
    ("empty data", 20_000, |round| match round {
        0 => headers(1, REQUEST, END_HEADERS),
        _ => frame(0, 0, 1, b""),
    }),
    ("window updates", 20_000, |_| {
        frame(8, 0, 0, &1_u32.to_be_bytes())
    }),
    ("priorities", 20_000, |round| {
        frame(2, 0, 2 * round + 1, b"\0\0\0\0\x10")
    }),
    ("unknown frames", 2_000, |round| {
        frame(0xf0 | round as u8, 0xff, round, &[0; 1000])
    }),
];

/// None of them keeps the daemon from the next honest call, whether or not the
/// peer reads what it is answered.
pub fn floods() {
    let (running, _log) = serving(&[]);
    for (name, rounds, flood) in FLOODS {
        for reads in [true, false] {
            let mut peer = connect(&running.address);
            peer.set_write_timeout(Some(Duration::from_secs(5)))
                .unwrap();
            let reader = reads.then(|| reading(&peer));
            send(&mut peer, rounds, flood);
            call(&running.address);
            if let Some(reader) = reader {
                let _ = peer.shutdown(std::net::Shutdown::Write);
                reader.join().unwrap();
            }
            drop(peer);
        }
        call(&running.address);
        println!("  {name}");
    }
}

fn send(peer: &mut TcpStream, rounds: u32, flood: Flood) {
    let mut bytes = [PREFACE, &frame(4, 0, 0, b"")].concat();
    for round in 0..rounds {
        bytes.extend(flood(round));
        if bytes.len() > 16 << 10 || round + 1 == rounds {
            // The daemon may end the connection, or stop reading it.
            if peer.write_all(&bytes).is_err() {
                return;
            }
            bytes.clear();
        }
    }
}

fn reading(peer: &TcpStream) -> thread::JoinHandle<()> {
    let mut peer = peer.try_clone().unwrap();
    thread::spawn(move || ended(&mut peer))
}
