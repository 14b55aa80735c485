//! Request-ID binding: an answer counts only for the request it answers.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::sync::{Arc, Mutex};

use exchanges::all;
use fake::{Echo, Fake, Reply};
use plimsoll_client::{Class, Ran, Stage};
use plimsoll_wire::{Code, Reason, json, proto::RunRequest};

fn request() -> RunRequest {
    json::read(all()["03"].request.body.as_bytes()).unwrap()
}

fn refusal() -> Reply {
    Reply::error(
        429,
        r#"{"code":"resource_exhausted","message":"busy","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAY"}]}"#,
    )
}

/// A proxy that forwards every request and gives the first answer, echo and
/// all, to every one.
async fn replaying(answer: Reply) -> Fake {
    let first: Arc<Mutex<Option<String>>> = Arc::default();
    Fake::start(move |seen| {
        let mut first = first.lock().unwrap();
        let id = first.get_or_insert_with(|| seen.request_id().to_owned());
        answer.clone().echo(Echo::Is(id.clone()))
    })
    .await
}

#[tokio::test]
async fn a_replayed_refusal_does_not_say_that_nothing_ran() {
    let proxy = replaying(refusal()).await;
    let first = proxy.client().run(&request()).await.unwrap_err();
    assert_eq!(
        first.ran,
        Ran::No {
            reason: Reason::Capacity
        }
    );
    assert_eq!(first.stage, Stage::Daemon);
    let second = proxy.client().run(&request()).await.unwrap_err();
    assert_eq!(
        (second.code, second.ran),
        (Code::ResourceExhausted, Ran::Maybe)
    );
    assert_eq!(second.stage, Stage::Unchecked);
    assert_eq!(second.message, "busy");
    let seen = proxy.seen();
    assert_ne!(seen[0].request_id(), seen[1].request_id());
}

#[tokio::test]
async fn a_replayed_success_is_believed_in_nothing() {
    let proxy = replaying(all()["03"].reply()).await;
    assert!(proxy.client().run(&request()).await.is_ok());
    let second = proxy.client().run(&request()).await.unwrap_err();
    assert_eq!(
        (second.code, second.class),
        (Code::DataLoss, Class::AnswerNotBound)
    );
    assert_eq!((second.ran, second.stage), (Ran::Maybe, Stage::Unchecked));
    assert!(second.unchecked.is_none(), "nothing of the body is used");
}

#[tokio::test]
async fn odd_echoes() {
    for echo in [
        Echo::None,
        Echo::Twice,
        Echo::Is("00112233445566778899aabbccddeeff".into()),
        Echo::Is(String::new()),
    ] {
        for good in [true, false] {
            let reply = if good { all()["03"].reply() } else { refusal() };
            let reply = reply.echo(echo.clone());
            let fake = Fake::start(move |_| reply.clone()).await;
            let failure = fake.client().run(&request()).await.unwrap_err();
            assert_eq!(
                (failure.ran, failure.stage),
                (Ran::Maybe, Stage::Unchecked),
                "{echo:?}"
            );
            if good {
                assert_eq!(failure.class, Class::AnswerNotBound);
            }
        }
    }
    // In upper case, or joined with a comma, it is another value.
    for change in [
        |id: &str| id.to_uppercase() + "A",
        |id: &str| format!("{id}, {id}"),
    ] {
        let fake = Fake::start(move |seen| {
            let id = change(seen.request_id());
            all()["03"].reply().echo(Echo::Is(id))
        })
        .await;
        let failure = fake.client().run(&request()).await.unwrap_err();
        assert_eq!(failure.class, Class::AnswerNotBound);
    }
}

#[tokio::test]
async fn pages_of_something_in_between() {
    let page = |status: u16| Reply {
        status,
        body: b"<html>nginx</html>".to_vec(),
        ..Default::default()
    };
    for (reply, code, ran) in [
        (
            page(404).header("plimsoll-not-dispatched", "unsupported"),
            Code::Unimplemented,
            Ran::No {
                reason: Reason::Unsupported,
            },
        ),
        (page(404), Code::Unimplemented, Ran::Maybe),
        (
            page(404)
                .echo(Echo::None)
                .header("plimsoll-not-dispatched", "unsupported"),
            Code::Unimplemented,
            Ran::Maybe,
        ),
        (
            page(503).header("plimsoll-not-dispatched", "nonsense"),
            Code::Unavailable,
            Ran::Maybe,
        ),
        (page(502), Code::Unavailable, Ran::Maybe),
        (
            page(302).header("location", "http://127.0.0.1:9/"),
            Code::Unknown,
            Ran::Maybe,
        ),
        (
            page(307).header("plimsoll-not-dispatched", "request"),
            Code::Unknown,
            Ran::No {
                reason: Reason::Request,
            },
        ),
        (page(204), Code::Unknown, Ran::Maybe),
        (page(201), Code::Unknown, Ran::Maybe),
    ] {
        let fake = Fake::start(move |_| reply.clone()).await;
        let failure = fake.client().run(&request()).await.unwrap_err();
        assert_eq!((failure.code, failure.ran), (code, ran));
        assert!(
            !failure.message.contains("nginx"),
            "a page's text is nobody's message"
        );
        assert_eq!(fake.connections(), 1, "no redirect and no second attempt");
    }
}

#[tokio::test]
async fn a_daemon_that_repeats_the_token_does_not_leak_it() {
    const CANARY: &str = "canary-token-0123456789";
    let fake = Fake::start(|seen| {
        let text = format!(
            r#"{{"code":"unauthenticated","message":"you sent {}"}}"#,
            seen.headers["authorization"]
        );
        Reply::error(401, &text)
    })
    .await;
    let mut options = fake.options();
    options.token = Some(plimsoll_client::Token::new(CANARY).unwrap());
    let client = plimsoll_client::Client::new(options).unwrap();
    let failure = client.run(&request()).await.unwrap_err();
    assert!(failure.message.contains("[redacted]"));
    assert!(!format!("{failure} {failure:?} {client:?}").contains(CANARY));
}
