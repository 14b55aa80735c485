//! Credentials and scopes: who is refused, and what of it is told.

use std::time::Duration;

use plimsoll_daemon::transport::{Auth, SharedToken};
use plimsoll_wire::{Code, Reason};

use crate::support::{
    Daemon, REQUEST_ID, TOKEN,
    client::Wire,
    in_time,
    raw::{Raw, head},
    settings,
};

#[tokio::test]
async fn credentials() {
    let daemon = Daemon::start().await;
    for (value, code, reason, message) in [
        (
            "",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "missing bearer token",
        ),
        (
            "Bearer",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "missing bearer token",
        ),
        (
            "Basic x",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "missing bearer token",
        ),
        (
            "Bearer bob bob",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "missing bearer token",
        ),
        (
            "bearer x",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "invalid or expired token",
        ),
        (
            "Bearer star",
            Code::Unauthenticated,
            Some(Reason::Permission),
            "the token has no stable identity",
        ),
        (
            "Bearer noscope",
            Code::PermissionDenied,
            Some(Reason::Permission),
            "the token lacks scope code:run",
        ),
        (
            "Bearer broken",
            Code::Unavailable,
            None,
            "the credential cannot be checked now",
        ),
    ] {
        for wire in Wire::ALL {
            let more = [("authorization", value)];
            let outcome = wire.call(daemon.address, wire.run("1"), &more).await;
            assert_eq!(outcome.code, Some(code), "{value} {wire:?}");
            assert_eq!(outcome.details.not_dispatched, reason, "{value} {wire:?}");
            assert_eq!(outcome.message, message, "{value} {wire:?}");
            assert_eq!(outcome.header("plimsoll-request-id"), REQUEST_ID);
            let mark = if wire.framed() { "" } else { "request" };
            assert_eq!(outcome.mark(), mark, "{value} {wire:?}");
        }
    }
    assert_eq!(daemon.fake.entered(), 0);
    for (value, caller) in [("bearer bob", "bob"), ("BEARER \t bob ", "bob")] {
        let more = [("authorization", value)];
        let outcome = Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &more)
            .await;
        assert_eq!(outcome.http, 200, "{value}");
        let call = daemon.fake.last.lock().unwrap().take().unwrap().0;
        assert_eq!(call.principal.key(), caller);
    }
}

#[tokio::test]
async fn two_authorization_headers_are_none() {
    let daemon = Daemon::start().await;
    let mut raw = Raw::connect(daemon.address).await;
    let more = format!("Authorization: Bearer {TOKEN}\r\nContent-Length: 2\r\n");
    raw.send(head("Run", &more) + "{}").await;
    let answer = raw.answer().await;
    assert_eq!((answer.status, answer.mark()), (401, "request"));
    assert_eq!(
        answer.text(),
        r#"{"code":"unauthenticated","message":"missing bearer token","details":[{"type":"plimsoll.v1.NotDispatched","value":"CAI"}]}"#
    );
    assert_eq!(daemon.fake.entered(), 0);
}

#[tokio::test]
async fn a_shared_token_is_one_caller_and_none_is_anonymous() {
    let token = SharedToken::new(TOKEN.to_owned().into());
    let daemon = Daemon::with(settings(), Auth::Shared(token), None).await;
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &[])
        .await;
    assert_eq!(outcome.http, 200);
    let call = daemon.fake.last.lock().unwrap().take().unwrap().0;
    assert_eq!(call.principal.key(), "static");
    let more = [("authorization", "Bearer example-token")];
    let outcome = Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &more)
        .await;
    assert_eq!(outcome.http, 401);

    let daemon = Daemon::open().await;
    for value in ["", "Basic x", "Bearer whatever"] {
        let more = [("authorization", value)];
        let outcome = Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &more)
            .await;
        assert_eq!(outcome.http, 200, "{value}");
        let call = daemon.fake.last.lock().unwrap().take().unwrap().0;
        assert_eq!(call.principal.id, None);
        assert_eq!(call.principal.key(), "anon");
    }
}

#[tokio::test]
async fn refused_credentials_are_counted_once_per_window() {
    let mut settings = settings();
    settings.refusal_window = Duration::from_millis(300);
    let mut daemon = Daemon::tuned(settings).await;
    for token in ["", "Bearer x", "Bearer star"] {
        let more = [("authorization", token)];
        Wire::Json
            .call(daemon.address, Wire::Json.run("1"), &more)
            .await;
    }
    // A missing scope is no refused credential.
    let more = [("authorization", "Bearer noscope")];
    Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &more)
        .await;
    let count = in_time(daemon.refused.recv()).await;
    assert_eq!(count, Some(3));
    assert!(daemon.refused.try_recv().is_err());
    // The listener's end reports what is open.
    let more = [("authorization", "Bearer x")];
    Wire::Json
        .call(daemon.address, Wire::Json.run("1"), &more)
        .await;
    daemon.stop();
    assert_eq!(in_time(daemon.refused.recv()).await, Some(1));
}
