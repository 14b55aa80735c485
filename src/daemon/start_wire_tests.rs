//! The published refusals and their texts, byte for byte where they are
//! published so, through every layer and in both encodings.

use plimsoll_wire::{
    json,
    proto::{
        CloseSessionRequest, Message, OpenSessionRequest, RunRequest, RunResponse,
        SessionRunRequest, decode,
    },
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use super::tests::{TOKEN, serving};
use crate::service::fake::Fake;

const REQUEST_ID: &str = "00112233445566778899aabbccddeeff";

/// An answer: status, lower-case head, body.
struct Seen {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Seen {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    fn has(&self, header: &str) -> bool {
        self.head.contains(&format!("\r\n{header}\r\n"))
    }
}

/// One call with this content type.
async fn call(address: &str, method: &str, kind: &str, token: &str, body: &[u8]) -> Seen {
    let head = format!(
        "POST /plimsoll.v1.SandboxService/{method} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Plimsoll-Request-Id: {REQUEST_ID}\r\nContent-Type: {kind}\r\n\
         Authorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = [head.as_bytes(), body].concat();
    stream.write_all(&request).await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    let end = answer.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    let head = String::from_utf8(answer[..end + 2].to_vec()).unwrap();
    Seen {
        status: head[9..12].parse().unwrap(),
        head: head.to_ascii_lowercase(),
        body: answer[end + 4..].to_vec(),
    }
}

/// The same message in the other encoding.
fn binary(method: &str, text: &str) -> Vec<u8> {
    let text = text.as_bytes();
    match method {
        "Run" => json::read::<RunRequest>(text).unwrap().encode_to_vec(),
        "OpenSession" => json::read::<OpenSessionRequest>(text)
            .unwrap()
            .encode_to_vec(),
        "SessionRun" => json::read::<SessionRunRequest>(text)
            .unwrap()
            .encode_to_vec(),
        _ => json::read::<CloseSessionRequest>(text)
            .unwrap()
            .encode_to_vec(),
    }
}

const NO_SESSION: &str = concat!(
    r#"{"code":"not_found","message":"no such session for this caller","details":["#,
    r#"{"type":"plimsoll.v1.NotDispatched","value":"CAE"},"#,
    r#"{"type":"plimsoll.v1.SessionEnded","value":"CAkSH25vIHN1Y2ggc2Vzc2lvbiBmb3IgdGhpcyBjYWxsZXI"}]}"#
);

/// Method, message, status, code, mark.
const REFUSALS: [(&str, &str, u16, &str, &str); 19] = [
    (
        "Run",
        r#"{"javascript":{"code":"1"}}"#,
        400,
        "invalid_argument",
        "CAM",
    ),
    (
        "Run",
        r#"{"protocol":4,"javascript":{"code":"1"}}"#,
        501,
        "unimplemented",
        "CAM",
    ),
    (
        "Run",
        r#"{"protocol":2,"javascript":{"code":"1"}}"#,
        501,
        "unimplemented",
        "CAM",
    ),
    (
        "Run",
        r#"{"protocol":3,"javascript":{}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    ("Run", r#"{"protocol":3}"#, 400, "invalid_argument", "CAE"),
    (
        "Run",
        r#"{"protocol":3,"cell":{"language":"python","code":"1"}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "Run",
        r#"{"protocol":3,"minimumIsolation":"none","javascript":{"code":"1"}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "Run",
        r#"{"protocol":3,"minimumIsolation":"vm","javascript":{"code":"1"}}"#,
        400,
        "failed_precondition",
        "CAU",
    ),
    (
        "Run",
        r#"{"protocol":3,"softwareRule":{"mode":"exact","identities":["oci-manifest:linux/arm64@sha256:6e39086d3f9591de3f3c253612c4a997e4d7fcd2e632c615d8c481573c627a19"]},"javascript":{"code":"1"}}"#,
        400,
        "failed_precondition",
        "CAc",
    ),
    (
        "Run",
        r#"{"protocol":3,"softwareRule":{"mode":"best","identities":["a"]},"javascript":{"code":"1"}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "Run",
        r#"{"protocol":3,"javascript":{"code":"1","grantProfile":"billing"}}"#,
        403,
        "permission_denied",
        "CAI",
    ),
    (
        "Run",
        r#"{"protocol":3,"project":{"files":[{"path":"../x","content":""}],"steps":["true"]}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "Run",
        r#"{"protocol":3,"module":{"model":"m","rows":[{"values":[1]}],"endTime":2000000,"step":1}}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "OpenSession",
        r#"{"languages":["ruby"]}"#,
        400,
        "invalid_argument",
        "CAM",
    ),
    (
        "OpenSession",
        r#"{"protocol":3,"minimumIsolation":"VM"}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "OpenSession",
        r#"{"protocol":3}"#,
        501,
        "unimplemented",
        "CAQ",
    ),
    (
        "SessionRun",
        r#"{"protocol":2,"sessionId":"x"}"#,
        501,
        "unimplemented",
        "CAM",
    ),
    (
        "SessionRun",
        r#"{"protocol":3,"minimumIsolation":"VM","sessionId":"x"}"#,
        400,
        "invalid_argument",
        "CAE",
    ),
    (
        "CloseSession",
        r#"{"sessionId":"x"}"#,
        400,
        "invalid_argument",
        "CAM",
    ),
];

#[tokio::test]
async fn published_refusals_in_both_encodings() {
    let rate = [
        ("PLIMSOLL_TOKEN", TOKEN),
        ("SANDBOX_RATE_PER_MIN", "1"),
        ("SANDBOX_RATE_BURST", "1"),
    ];
    let daemon = serving(&rate, Fake::default()).await;
    for (method, text, status, code, mark) in REFUSALS {
        for (kind, body) in [
            ("application/json", text.as_bytes().to_vec()),
            ("application/proto", binary(method, text)),
        ] {
            let seen = call(&daemon.address, method, kind, TOKEN, &body).await;
            assert_eq!(seen.status, status, "{text} {kind}: {}", seen.text());
            let answer: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
            assert_eq!(answer["code"], code, "{text}");
            let detail = serde_json::json!([{"type": "plimsoll.v1.NotDispatched", "value": mark}]);
            assert_eq!(answer["details"], detail, "{text}");
            assert!(seen.has("content-type: application/json"), "{}", seen.head);
            assert!(seen.has(&format!("plimsoll-request-id: {REQUEST_ID}")));
            // The handler was reached, so only the detail speaks.
            assert!(!seen.head.contains("not-dispatched:"), "{text}");
        }
    }
    for method in ["SessionRun", "CloseSession"] {
        for id in ["00000000000000000000000000000000", "ABC", ""] {
            let text = format!(r#"{{"protocol":3,"sessionId":"{id}"}}"#);
            for (kind, body) in [
                ("application/json", text.as_bytes().to_vec()),
                ("application/proto", binary(method, &text)),
            ] {
                let seen = call(&daemon.address, method, kind, TOKEN, &body).await;
                assert_eq!((seen.status, seen.text()), (404, NO_SESSION));
                assert!(!seen.head.contains("not-dispatched:"), "{text}");
            }
        }
    }
    assert_eq!(daemon.fake.calls(), 0);
    // None of them spent the only start of the minute; the next one is shed.
    let good = br#"{"protocol":3,"javascript":{"code":"1"}}"#;
    let json = "application/json";
    let ran = call(&daemon.address, "Run", json, TOKEN, good).await;
    assert_eq!(ran.status, 200, "{}", ran.text());
    let shed = call(&daemon.address, "Run", json, TOKEN, good).await;
    assert_eq!(
        (shed.status, shed.text()),
        (
            429,
            r#"{"code":"resource_exhausted","message":"this caller starts runs faster than its rate allows","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAY"}]}"#
        )
    );
    assert!(shed.has(&format!("plimsoll-request-id: {REQUEST_ID}")));
    assert!(!shed.head.contains("not-dispatched:"));
    assert_eq!(daemon.fake.calls(), 1);
}

/// Fields this program does not know change neither what runs nor its digest.
#[tokio::test]
async fn unknown_fields_are_no_part_of_a_request() {
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], Fake::default()).await;
    // Numbers 99 to 103, in every wire type, one of them inside the snippet.
    let unknown: [&[u8]; 6] = [
        b"",
        b"\x98\x06\x01",
        b"\x99\x06ABCDEFGH",
        b"\x9a\x06\x02\xff\xfe",
        b"\x9d\x06ABCD",
        b"\xa3\x06\x98\x06\x01\xa4\x06",
    ];
    let mut digests = Vec::new();
    for more in unknown {
        let length = u8::try_from(3 + more.len()).unwrap();
        let inside = [&[0x52, length, 0x0a, 1, b'1'][..], more].concat();
        let body = [&[8, 3][..], more, &inside, more].concat();
        let seen = call(&daemon.address, "Run", "application/proto", TOKEN, &body).await;
        assert_eq!(seen.status, 200, "{more:02x?}: {}", seen.text());
        let answer = decode::<RunResponse>(&seen.body).unwrap();
        let record = answer.record.as_option().unwrap();
        digests.push(record.request_sha256.clone());
    }
    for body in [
        r#"{"protocol":3,"javascript":{"code":"1"}}"#,
        r#"{"protocol":3,"x":{"y":[{"z":null}]},"javascript":{"code":"1","code2":["1"],"Code":"2"}}"#,
        r#"{"protocol":3,"Protocol":4,"javascript":{"code":"1"},"softwareRule":{"future":1},"project":null}"#,
        r#"{"protocol":3,"javascript":{"code":"1"},"languages":["x"],"sessionId":"x","":0}"#,
    ] {
        let json = "application/json";
        let seen = call(&daemon.address, "Run", json, TOKEN, body.as_bytes()).await;
        assert_eq!(seen.status, 200, "{body}: {}", seen.text());
        let answer: serde_json::Value = serde_json::from_slice(&seen.body).unwrap();
        // A snippet that wrote nothing and ended with 0 is there all the same.
        assert_eq!(answer["javascript"], serde_json::json!({}));
        digests.push(
            answer["record"]["requestSha256"]
                .as_str()
                .unwrap()
                .to_owned(),
        );
    }
    assert_eq!(
        digests[0],
        "c9a463395a2017bfa080ffbd378847d82239b590c7f71127554d2a5ae4be1c5c"
    );
    digests.dedup();
    assert_eq!(digests.len(), 1, "{digests:?}");
}
