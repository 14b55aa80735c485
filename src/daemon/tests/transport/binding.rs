//! The request-ID echo: on everything, or not at all.

use crate::support::{
    Daemon, REQUEST_ID,
    client::Wire,
    raw::{Raw, json, path},
};

#[tokio::test]
async fn one_well_formed_id_comes_back_on_every_answer() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    for (request, status) in [
        (json("Run", "{}"), 200),
        (json("Run", "{"), 400),
        (json("Run", "{\"javascript\":{\"code\":\"refuse\"}}"), 400),
        (json("Run", "{\"javascript\":{\"code\":\"panic\"}}"), 500),
        (json("Run", "{}").replace("Bearer ex", "Bearer x"), 401),
        (json("Nope", "{}"), 403),
        (json("Run", "{}").replace("application/json", "text/x"), 415),
        (json("Run", "{}").replace("POST ", "PUT "), 405),
        (json("Run", "{}").replace(&path("Run"), "/other"), 404),
        (json("Run", "{}").replace(&path("Run"), "/healthz"), 405),
        (
            json("Run", "{}").replace("POST /plimsoll.v1.SandboxService/Run", "GET /healthz"),
            200,
        ),
        (
            json("Run", "{}").replace("POST /plimsoll.v1.SandboxService/Run", "GET /readyz"),
            200,
        ),
    ] {
        raw.send(&request).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, status, "{request}");
        assert_eq!(answer.all("plimsoll-request-id"), [REQUEST_ID], "{request}");
        if answer.closes() {
            raw = Raw::connect(daemon.address).await;
        }
    }
}

#[tokio::test]
async fn anything_else_is_not_echoed_and_not_refused() {
    let daemon = Daemon::start().await;
    let usual = format!("Plimsoll-Request-Id: {REQUEST_ID}\r\n");
    let mut raw = Raw::connect(daemon.address).await;
    let mut runs = 0;
    for header in [
        String::new(),
        usual.repeat(2),
        format!("Plimsoll-Request-Id: {REQUEST_ID},{REQUEST_ID}\r\n"),
        "Plimsoll-Request-Id: \r\n".to_owned(),
        usual.replace("ff\r", "f\r"),
        usual.replace("ff\r", "fff\r"),
        usual.replace("aabb", "AABB"),
        usual.replace("ff\r", "fg\r"),
        usual.replace("ff\r", "f\u{e9}\r"),
    ] {
        raw.send(json("Run", "{}").replace(&usual, &header)).await;
        let answer = raw.answer().await;
        assert_eq!(answer.status, 200, "{header}");
        assert_eq!(answer.all("plimsoll-request-id"), [""; 0], "{header}");
        runs += 1;
        assert_eq!(daemon.fake.entered(), runs);
    }
    raw.send(json("Run", "{").replace(&usual, "")).await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.mark()), (400, "request"));
    assert_eq!(answer.all("plimsoll-request-id"), [""; 0]);
}

#[tokio::test]
async fn the_echo_is_a_header_in_grpc_also_without_a_message() {
    let daemon = Daemon::start().await;
    for wire in [Wire::Grpc, Wire::GrpcWeb] {
        for (code, token) in [("1", ""), ("refuse", ""), ("panic", ""), ("1", "Bearer x")] {
            let more = [("authorization", token)];
            let more = if token.is_empty() { &[][..] } else { &more };
            let request = wire.request("Run", wire.run(code), more);
            let answer = wire.send(daemon.address, request).await;
            assert_eq!(answer.headers["plimsoll-request-id"], REQUEST_ID);
            assert!(!answer.trailers.contains_key("plimsoll-request-id"));
        }
    }
}
