//! Peers that connect and do not get to a request.

use std::{
    io::Write,
    net::{Shutdown, TcpStream},
    time::Duration,
};

use crate::{
    honest::{call, connect, ended, get},
    serving,
};

/// Heads that begin and never end are cut; nobody waits for them.
pub fn slow_heads() {
    let (running, _log) = serving(&[]);
    let mut peers: Vec<TcpStream> = (0..200)
        .map(|number| {
            let mut peer = connect(&running.address);
            let begun = [
                "G",
                "POST / HTTP/1.1\r\n",
                "GET /healthz HTTP/1.1\r\nX: a",
                "PRI * HT",
            ];
            peer.write_all(begun[number % begun.len()].as_bytes())
                .unwrap();
            peer
        })
        .collect();
    call(&running.address);
    // One byte now and then does not win time either.
    for peer in &mut peers {
        let _ = peer.write_all(b"a");
    }
    peers.iter_mut().for_each(ended);
    call(&running.address);
}

/// Half-open connections: nothing is ever sent, or the sending side is closed.
pub fn silent_connections() {
    let (running, _log) = serving(&[]);
    let mut peers: Vec<TcpStream> = (0..500).map(|_| connect(&running.address)).collect();
    for peer in peers.iter().step_by(2) {
        peer.shutdown(Shutdown::Write).unwrap();
    }
    call(&running.address);
    peers.iter_mut().for_each(ended);
    call(&running.address);
}

/// Connects that end at once, most of them with a reset.
pub fn ten_thousand_connects() {
    let (running, log) = serving(&[]);
    for round in 0..40 {
        let peers: Vec<TcpStream> = (0..250).map(|_| connect(&running.address)).collect();
        for (number, mut peer) in peers.into_iter().enumerate() {
            if number % 3 == 0 {
                let _ = peer.write_all(b"\x16\x03\x01 not HTTP\r\n\r\n");
            }
            // A reset leaves no port waiting on this side.
            if number % 16 != 0 {
                rustix::net::sockopt::set_socket_linger(&peer, Some(Duration::ZERO)).unwrap();
            }
        }
        if round % 10 == 0 {
            call(&running.address);
        }
    }
    call(&running.address);
    // Nothing a stranger does without a request is worth a line.
    let noise = log
        .text()
        .lines()
        .filter(|line| line.contains("\"WARN\""))
        .count();
    assert_eq!(noise, 0, "{}", log.text());
}

/// All 64 places of the metrics listener taken: the next scrape is served when
/// the silent ones are cut, and calls do not notice.
pub fn crowded_metrics() {
    let (running, _log) = serving(&[("PLIMSOLL_METRICS_ADDR", "127.0.0.1:0")]);
    let crowd: Vec<TcpStream> = (0..64).map(|_| connect(&running.metrics)).collect();
    call(&running.address);
    let page = get(&running.metrics, "/metrics");
    assert_eq!(page.status, 200);
    assert!(page.text().contains("plimsoll_shed_total"));
    drop(crowd);
}
