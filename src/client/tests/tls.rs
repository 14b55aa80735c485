//! TLS: nothing leaves over a connection that is not trusted.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::{sync::Arc, time::Duration};

use exchanges::all;
use fake::{Fake, Reply};
use plimsoll_client::{
    BaseUrl, CallFailure, CallOptions, CancelToken, Class, Client, Options, Ran, Stage, Trust,
};
use plimsoll_wire::{Code, Reason, json, proto::RunRequest};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::Notify,
};

fn request() -> RunRequest {
    json::read(all()["03"].request.body.as_bytes()).unwrap()
}

/// Accepts, and never says a word.
async fn hold(stream: tokio::net::TcpStream) {
    let _held = stream;
    std::future::pending::<()>().await;
}

fn nothing_left(failure: &CallFailure) {
    assert_eq!(
        failure.ran,
        Ran::No {
            reason: Reason::Environment
        },
        "{failure:?}"
    );
    assert_eq!(failure.stage, Stage::Unreachable);
}

fn may_have_run(failure: &CallFailure, code: Code) {
    assert_eq!(
        (failure.ran, failure.code),
        (Ran::Maybe, code),
        "{failure:?}"
    );
    assert_eq!(failure.stage, Stage::NoAnswer);
}

fn within(milliseconds: u64) -> CallOptions {
    CallOptions {
        timeout: Some(Duration::from_millis(milliseconds)),
        cancel: None,
    }
}

fn https(port: u16, trust: Trust) -> Client {
    let mut options = Options::new(BaseUrl::parse(&format!("https://localhost:{port}")).unwrap());
    options.trust = trust;
    Client::new(options).unwrap()
}

/// A self-signed certificate for localhost: its PEM, and a server's setup.
fn certificate() -> (Vec<u8>, tokio_rustls::TlsAcceptor) {
    use tokio_rustls::rustls::{ServerConfig, crypto::ring, pki_types::PrivatePkcs8KeyDer};
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).unwrap();
    let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key.into())
        .unwrap();
    let acceptor = tokio_rustls::TlsAcceptor::from(Arc::new(config));
    (made.cert.pem().into_bytes(), acceptor)
}

#[tokio::test]
async fn tls_that_cannot_be_trusted() {
    let (pem, acceptor) = certificate();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let mut requests = Vec::new();
        for _ in 0..3 {
            let (stream, _) = listener.accept().await.unwrap();
            if let Ok(mut stream) = acceptor.accept(stream).await {
                let mut bytes = [0; 1024];
                let read = stream.read(&mut bytes).await.unwrap_or(0);
                requests.push(bytes[..read].to_vec());
            }
        }
        requests
    });
    // Another authority, and another name than the certificate's.
    let (other, _) = certificate();
    let failure = https(port, Trust::Pem(other))
        .run(&request())
        .await
        .unwrap_err();
    nothing_left(&failure);
    let mut options = Options::new(BaseUrl::parse(&format!("https://127.0.0.1:{port}")).unwrap());
    options.trust = Trust::Pem(pem.clone());
    let failure = Client::new(options)
        .unwrap()
        .run(&request())
        .await
        .unwrap_err();
    nothing_left(&failure);
    // The right one: the request arrives, and the connection closes after it.
    let failure = https(port, Trust::Pem(pem))
        .run(&request())
        .await
        .unwrap_err();
    may_have_run(&failure, Code::Unavailable);
    let requests = server.await.unwrap();
    let requests: Vec<_> = requests.iter().filter(|bytes| !bytes.is_empty()).collect();
    assert_eq!(
        requests.len(),
        1,
        "0 bytes of a request over a connection that is not trusted"
    );
    assert!(requests[0].starts_with(b"POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\n"));
}

#[tokio::test]
async fn an_exchange_over_tls() {
    let (pem, acceptor) = certificate();
    let reply = all()["03"].reply();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut stream = acceptor.accept(stream).await.unwrap();
        let mut text = Vec::new();
        while !String::from_utf8_lossy(&text).contains("console.log(6*7)") {
            stream.read_buf(&mut text).await.unwrap();
        }
        let text = String::from_utf8_lossy(&text).into_owned();
        let id = text.split("plimsoll-request-id: ").nth(1).unwrap()[..32].to_owned();
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-type: application/proto\r\ncontent-length: {}\r\nplimsoll-request-id: {id}\r\n\r\n",
            reply.body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&reply.body).await.unwrap();
        stream.shutdown().await.unwrap();
    });
    https(port, Trust::Pem(pem)).run(&request()).await.unwrap();
}

#[tokio::test]
async fn slow_or_missing_tls() {
    let (pem, _) = certificate();
    let silent = Fake::raw(hold).await;
    let failure = https(silent.port, Trust::Pem(pem.clone()))
        .run_with(&request(), &within(200))
        .await
        .unwrap_err();
    nothing_left(&failure);
    assert_eq!(
        (failure.code, failure.class),
        (Code::DeadlineExceeded, Class::TimedOut)
    );
    let cleartext = Fake::start(|_| Reply::error(400, "")).await;
    let client = https(cleartext.port, Trust::Pem(pem));
    // The fake waits for the end of a request that never comes.
    let failure = client.run_with(&request(), &within(300)).await.unwrap_err();
    nothing_left(&failure);
    let talks = Fake::raw(|mut stream| async move {
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    })
    .await;
    let client = https(talks.port, Trust::Platform);
    let failure = client.run(&request()).await.unwrap_err();
    nothing_left(&failure);
    assert_eq!(failure.code, Code::Unavailable);
}

#[tokio::test]
async fn cancelled_during_the_handshake() {
    let (pem, _) = certificate();
    let arrived = Arc::new(Notify::new());
    let silent = Fake::raw({
        let arrived = Arc::clone(&arrived);
        move |stream| {
            arrived.notify_one();
            hold(stream)
        }
    })
    .await;
    let cancel = CancelToken::new();
    let options = CallOptions {
        timeout: None,
        cancel: Some(cancel.clone()),
    };
    let client = https(silent.port, Trust::Pem(pem));
    let call = tokio::spawn(async move { client.run_with(&request(), &options).await });
    arrived.notified().await;
    cancel.cancel();
    let failure = call.await.unwrap().unwrap_err();
    assert_eq!(failure.not_dispatched(), Some(Reason::Request));
    assert_eq!(failure.stage, Stage::Local);
}
