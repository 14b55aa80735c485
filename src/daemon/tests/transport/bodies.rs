//! Bodies nobody reads: the answer comes at once and the connection ends.

use std::{net::SocketAddr, time::Duration};

use tokio::task::JoinSet;

use crate::support::{
    Daemon, REQUEST_ID, TOKEN,
    client::Wire,
    raw::{Raw, head, json, path},
    settings,
};

/// Withheld bodies as the rest of a head and the first bytes after it.
const WITHHELD: [(&str, &str); 3] = [
    ("Content-Length: 100\r\n", "{}"),
    ("Transfer-Encoding: chunked\r\n", "2\r\n{}\r\n"),
    ("Content-Length: 8388609\r\n", ""),
];

/// Sends a request that withholds its body and checks the refusal.
async fn refused_at_once(address: SocketAddr, request: String, status: u16) {
    let mut raw = Raw::connect(address).await;
    raw.send(&request).await;
    let (answer, time) = raw.answer_in_time().await;
    assert_eq!(answer.status, status, "{request}");
    assert!(answer.closes(), "{request}");
    // Far below the linger, so nothing waited for the body. 50 ms on an idle
    // machine; this allows for a busy one.
    assert!(time < Duration::from_millis(400), "{time:?} {request}");
    let closed = raw.closed().await;
    assert!(closed < Duration::from_secs(3), "{closed:?} {request}");
}

#[tokio::test]
async fn refusals_do_not_wait_for_a_body() {
    let daemon = Daemon::start().await;
    let mut checks = JoinSet::new();
    for (length, body) in WITHHELD {
        let usual = head("Run", length) + body;
        let token = format!("Bearer {TOKEN}");
        for (request, status) in [
            (usual.replace(&token, ""), 401),
            (usual.replace(&token, "Bearer x"), 401),
            (usual.replace(&token, "Bearer noscope"), 403),
            (usual.replace(&path("Run"), &path("Nope")), 403),
            (usual.replace(&path("Run"), "/nowhere"), 404),
            (
                usual.replace(&format!("POST {}", path("Run")), "GET /healthz"),
                200,
            ),
            (
                usual.replace(&format!("POST {}", path("Run")), "OPTIONS *"),
                404,
            ),
        ] {
            checks.spawn(refused_at_once(daemon.address, request, status));
        }
    }
    for (length, body) in &WITHHELD[..2] {
        let usual = head("Run", length) + body;
        for (request, status) in [
            (usual.replace("POST", "PUT"), 405),
            (usual.replace("application/json", "text/plain"), 415),
            (usual.replace("application/json", "application/grpc"), 505),
            (
                head("Run", &format!("Content-Encoding: br\r\n{length}")) + body,
                501,
            ),
            (
                head("Run", &format!("Connect-Timeout-Ms: x\r\n{length}")) + body,
                400,
            ),
        ] {
            checks.spawn(refused_at_once(daemon.address, request, status));
        }
    }
    let (length, body) = WITHHELD[2];
    let request = head("Run", length) + body;
    checks.spawn(refused_at_once(daemon.address, request, 429));
    // All at once: each lingers for half a second.
    checks.join_all().await;
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn a_declared_length_over_the_limit_takes_no_slot() {
    let mut settings = settings();
    settings.decode_slots = 1;
    let daemon = Daemon::tuned(settings).await;
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", "Content-Length: 8388609\r\n") + "{}")
        .await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.mark()), (429, "request"));
    assert_eq!(
        answer.text(),
        r#"{"code":"resource_exhausted","message":"the declared body is over the limit","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAE"}]}"#
    );
    // While that connection still lingers, another call is served.
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &[])
        .await;
    assert_eq!(outcome.http, 200);
}

#[tokio::test]
async fn a_body_read_to_its_end_keeps_its_connection() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let chunked = head("Run", "Transfer-Encoding: chunked\r\n") + "1\r\n{\r\n1\r\n}\r\n0\r\n\r\n";
    let with_trailer = head("Run", "Transfer-Encoding: chunked\r\nTrailer: x\r\n")
        + "2\r\n{}\r\n0\r\nX: y\r\n\r\n";
    for (request, status) in [
        (json("Run", "{}"), 200),
        (chunked, 200),
        (with_trailer, 200),
        (json("Run", "{"), 400),
        (json("Run", ""), 400),
        ("GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 200),
        ("GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 404),
        (
            format!(
                "POST {} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
                path("Run")
            ),
            401,
        ),
        (json("Run", "{}"), 200),
    ] {
        raw.send(&request).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, status, "{request}");
        assert!(!answer.closes(), "{request}");
    }
}

#[tokio::test]
async fn leftovers_are_thrown_away_while_the_caller_still_sends() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let request = head("Run", "Content-Length: 1000000\r\n").replace(TOKEN, "x");
    raw.send(&request).await;
    let answer = raw.answer().await;
    assert_eq!(answer.status, 401);
    // The rest can still be sent without a reset, then the end comes.
    raw.send(vec![b' '; 1_000_000]).await;
    raw.closed().await;
}

#[tokio::test]
async fn a_refusal_sends_no_100() {
    let daemon = Daemon::start().await;
    let more = "Content-Length: 100\r\nExpect: 100-continue\r\n";
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", more).replace(TOKEN, "x")).await;
    assert_eq!(raw.answer().await.status, 401);
    raw.closed().await;
    // An admitted one does.
    let mut raw = Raw::connect(daemon.address).await;
    raw.send(head("Run", "Content-Length: 2\r\nExpect: 100-continue\r\n"))
        .await;
    assert_eq!(raw.answer().await.status, 100);
    raw.send("{}").await;
    assert_eq!(raw.answer().await.status, 200);
}

/// The library hands on what is inside of the last coding, so it must be the
/// only one: what it hands on would else still be compressed or chunked.
#[tokio::test]
async fn chunked_once_is_the_only_transfer_coding() {
    let daemon = Daemon::start().await;
    let chunks = "2\r\n{}\r\n0\r\n\r\n";
    for (codings, status) in [
        (&["gzip, chunked"][..], 501),
        (&["gzip", "chunked"], 501),
        (&["identity, chunked"], 501),
        (&[", chunked"], 501),
        (&["chunked, chunked"], 400),
        (&["chunked,Chunked"], 400),
        (&["chunked", "chunked"], 400),
    ] {
        let more: String = codings
            .iter()
            .map(|coding| format!("Transfer-Encoding: {coding}\r\n"))
            .collect();
        for request in [
            head("Run", &more),
            head("Run", &more).replace(TOKEN, "x"),
            head("Run", &more).replace(&path("Run"), "/healthz"),
        ] {
            let mut raw = Raw::connect(daemon.address).await;
            raw.send(request + chunks).await;
            let answer = raw.answer().await;
            assert_eq!(answer.status, status, "{more}");
            assert_eq!(answer.mark(), "request", "{more}");
            assert_eq!(answer.header("plimsoll-request-id"), REQUEST_ID, "{more}");
            assert!(answer.closes(), "{more}");
            raw.closed().await;
        }
    }
    assert_eq!(daemon.fake.entered(), 0);
    for good in ["chunked", "Chunked"] {
        let mut raw = Raw::connect(daemon.address).await;
        let more = format!("Transfer-Encoding: {good}\r\n");
        raw.send(head("Run", &more) + chunks).await;
        assert_eq!(raw.answer().await.status, 200, "{good}");
    }
}

#[tokio::test]
async fn two_lengths_or_a_length_and_chunks() {
    let daemon = Daemon::start().await;
    for more in [
        "Content-Length: 2\r\nContent-Length: 3\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 4294967296000000000000\r\n",
        "Transfer-Encoding: gzip\r\n",
    ] {
        let mut raw = Raw::connect(daemon.address).await;
        raw.send(head("Run", more) + "{}").await;
        assert_eq!(raw.answer().await.status, 400, "{more}");
    }
    // Both: the length is ignored and the connection is not kept.
    let mut raw = Raw::connect(daemon.address).await;
    let more = "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n";
    raw.send(head("Run", more) + "2\r\n{}\r\n0\r\n\r\n").await;
    let answer = raw.answer().await;
    assert!(
        answer.status == 200 || answer.status == 400,
        "{}",
        answer.status
    );
    assert!(daemon.fake.entered() <= 1);
}
