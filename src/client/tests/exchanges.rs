//! Every example exchange: each success is accepted, each refusal has its class.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::fs;

use exchanges::{Exchange, all, folder};
use fake::{Fake, Reply};
use plimsoll_client::{CallFailure, CallOptions, Class, Client, OpenSession, Ran, Stage, Token};
use plimsoll_record::request_digest;
use plimsoll_wire::{
    Code, Reason, json,
    proto::{Message, RunRequest},
};

const TOKEN: &str = "example-token-0123456789abcdef0123456789";

fn options() -> CallOptions {
    CallOptions::default()
}

fn snippet() -> RunRequest {
    json::read(br#"{"protocol":3,"javascript":{"code":"1"}}"#).unwrap()
}

fn client(fake: &Fake) -> Client {
    let mut options = fake.options();
    options.token = Some(Token::new(TOKEN).unwrap());
    Client::new(options).unwrap()
}

#[tokio::test]
async fn every_single_success_is_accepted() {
    let all = all();
    assert_eq!(all.len(), 50);
    assert!(
        all.values()
            .all(|e| !e.origin.is_empty() && !e.what.is_empty())
    );
    let mut runs = 0;
    for (number, exchange) in &all {
        if exchange.answer.status != 200 {
            continue;
        }
        let reply = exchange.reply();
        let fake = Fake::start(move |_| reply.clone()).await;
        match exchange.procedure.as_str() {
            "Run" => {
                let request: RunRequest = json::read(exchange.request.body.as_bytes()).unwrap();
                let checked = client(&fake).run(&request).await;
                let checked = checked.unwrap_or_else(|e| panic!("{number}: {e}"));
                let seen = &fake.seen()[0];
                assert_eq!(
                    seen.body,
                    request.encode_to_vec(),
                    "{number}: sent as given"
                );
                assert_eq!(checked.request, request);
                let shown = json::write(&checked.response).unwrap();
                let expected: serde_json::Value =
                    serde_json::from_str(&exchange.answer.body).unwrap();
                let shown: serde_json::Value = serde_json::from_str(&shown).unwrap();
                assert_eq!(shown, expected, "{number}: unchanged through the wire");
                runs += 1;
            }
            "Describe" => {
                let described = client(&fake).describe(&options()).await.unwrap();
                assert_eq!(described.protocol, plimsoll_wire::PROTOCOL);
                assert_eq!(described.encode_to_vec(), exchange.reply().body);
            }
            _ => {}
        }
    }
    assert_eq!(runs, 8);
}

#[tokio::test]
async fn what_is_sent() {
    let reply = all()["03"].reply();
    let fake = Fake::start(move |_| reply.clone()).await;
    let request: RunRequest = json::read(all()["03"].request.body.as_bytes()).unwrap();
    for _ in 0..2 {
        client(&fake).run(&request).await.unwrap();
    }
    let seen = fake.seen();
    let first = &seen[0];
    assert_eq!(first.method, "POST");
    assert_eq!(first.path, "/plimsoll.v1.SandboxService/Run");
    for (name, value) in [
        ("content-type", "application/proto"),
        ("connect-protocol-version", "1"),
        ("accept-encoding", "identity"),
        ("authorization", &format!("Bearer {TOKEN}")),
        ("host", &format!("127.0.0.1:{}", fake.port)),
    ] {
        assert_eq!(first.headers[name], value, "{name}");
    }
    assert!(first.headers["user-agent"].starts_with("plimsoll-attest/"));
    assert!(plimsoll_wire::ids::is_request_id(
        first.request_id().as_bytes()
    ));
    assert_ne!(first.request_id(), seen[1].request_id());
    assert_eq!(fake.connections(), 2, "one connection a call");
}

#[tokio::test]
async fn every_refusal_has_its_class() {
    use Reason::*;
    let no = |reason| Ran::No { reason };
    let table: &[(&str, Code, Class, Ran)] = &[
        (
            "11",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Protocol),
        ),
        (
            "12",
            Code::Unimplemented,
            Class::ProtocolMismatch,
            no(Protocol),
        ),
        (
            "13",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "14",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "15",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "16",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "17",
            Code::FailedPrecondition,
            Class::InsufficientIsolation,
            no(Isolation),
        ),
        (
            "18",
            Code::FailedPrecondition,
            Class::SoftwareMismatch,
            no(Environment),
        ),
        ("19", Code::PermissionDenied, Class::Generic, no(Permission)),
        (
            "20",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "21",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "22",
            Code::ResourceExhausted,
            Class::AtCapacity,
            no(Capacity),
        ),
        (
            "23",
            Code::FailedPrecondition,
            Class::Disabled,
            no(Unsupported),
        ),
        (
            "24",
            Code::Unimplemented,
            Class::Unsupported,
            no(Unsupported),
        ),
        ("25", Code::Unauthenticated, Class::Generic, no(Permission)),
        ("26", Code::PermissionDenied, Class::Generic, no(Permission)),
        (
            "27",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "28",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "29",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        ("30", Code::Internal, Class::Generic, Ran::Maybe),
        ("31", Code::DeadlineExceeded, Class::Generic, Ran::Maybe),
        (
            "33",
            Code::Unimplemented,
            Class::Unsupported,
            no(Unsupported),
        ),
        (
            "34",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "35",
            Code::InvalidArgument,
            Class::InvalidRequest,
            no(Request),
        ),
        (
            "46a",
            Code::Unimplemented,
            Class::Unsupported,
            no(Unsupported),
        ),
        ("46b", Code::Unknown, Class::Generic, no(Request)),
        ("46c", Code::Unknown, Class::Generic, no(Request)),
        ("46d", Code::Unimplemented, Class::Unsupported, no(Request)),
        (
            "46e",
            Code::ResourceExhausted,
            Class::InvalidRequest,
            no(Request),
        ),
    ];
    let all = all();
    let single = |e: &&Exchange| {
        e.answer.status != 200 && !matches!(e.procedure.as_str(), "SessionRun" | "CloseSession")
    };
    assert_eq!(all.values().filter(single).count(), table.len());
    for (number, code, class, ran) in table {
        let exchange = &all[*number];
        let reply = exchange.reply();
        let fake = Fake::start(move |_| reply.clone()).await;
        let client = client(&fake);
        let failure: Box<CallFailure> = match exchange.procedure.as_str() {
            "OpenSession" => {
                let open = OpenSession::default();
                client.open_session(&open, &options()).await.unwrap_err()
            }
            "Describe" => client.describe(&options()).await.unwrap_err(),
            _ => client.run(&snippet()).await.unwrap_err(),
        };
        assert_eq!(
            (failure.code, failure.class, failure.ran, failure.stage),
            (*code, *class, *ran, Stage::Daemon),
            "{number}"
        );
    }
}

#[tokio::test]
async fn what_the_daemon_would_refuse_is_refused_here() {
    let fake = Fake::start(|_| Reply::hang()).await;
    for number in ["13", "14", "15", "16", "20", "21"] {
        let request: RunRequest = json::read(all()[number].request.body.as_bytes()).unwrap();
        let failure = client(&fake).run(&request).await.unwrap_err();
        assert_eq!(failure.code, Code::InvalidArgument, "{number}");
        assert_eq!(failure.not_dispatched(), Some(Reason::Request), "{number}");
        assert_eq!(failure.stage, Stage::Local, "{number}");
    }
    let ruby = OpenSession {
        languages: vec!["ruby".into()],
        ..Default::default()
    };
    let nobody = OpenSession {
        owner: Some(String::new()),
        ..Default::default()
    };
    for open in [ruby, nobody] {
        let failure = client(&fake)
            .open_session(&open, &options())
            .await
            .unwrap_err();
        assert_eq!(failure.class, Class::InvalidRequest);
    }
    assert_eq!(fake.connections(), 0);
}

#[test]
fn equivalent_spellings_are_one_request() {
    let text = fs::read(folder().join("47-equivalent-spellings.json")).unwrap();
    let spellings: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let requests = spellings["requests"].as_array().unwrap();
    assert_eq!(requests.len(), 4);
    for request in requests {
        let text = request.as_str().unwrap();
        let request: RunRequest = json::read(text.as_bytes()).unwrap();
        assert!(request_digest(&request).is(spellings["request_sha256"].as_str().unwrap()));
    }
}
