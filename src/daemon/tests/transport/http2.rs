//! HTTP/2: other protocols on it, streams that stop, streams that are reset.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::Bytes;
use http::{Request, Version};
use http_body_util::BodyExt;
use hyper::{
    body::{Body, Frame},
    client::conn::http2::SendRequest,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::support::{Daemon, TOKEN, client::Wire, in_time, raw::path, settings, timed};

/// A body of these bytes that then ends, or never does.
struct Slow {
    first: Option<Bytes>,
    ends: bool,
}

impl Body for Slow {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(Frame::data(first)))),
            None if self.ends => Poll::Ready(None),
            None => Poll::Pending,
        }
    }
}

async fn connect(daemon: &Daemon) -> SendRequest<Slow> {
    let io = TokioIo::new(TcpStream::connect(daemon.address).await.unwrap());
    let (send, connection) = hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
        .await
        .unwrap();
    tokio::spawn(connection);
    send
}

fn request(token: &str, first: &'static [u8], ends: bool) -> Request<Slow> {
    Request::post(format!("http://test{}", path("Run")))
        .version(Version::HTTP_2)
        .header("content-type", "application/json")
        .header("authorization", format!("Bearer {token}"))
        .body(Slow {
            first: Some(Bytes::from_static(first)),
            ends,
        })
        .unwrap()
}

#[tokio::test]
async fn connect_and_grpc_web_work_on_it_too() {
    let daemon = Daemon::start().await;
    let mut send = connect(&daemon).await;
    for wire in [Wire::Json, Wire::Proto, Wire::GrpcWeb, Wire::GrpcWebJson] {
        let mut request = request(TOKEN, b"", true);
        let content = wire.content_type().parse().unwrap();
        request.headers_mut().insert("content-type", content);
        request.body_mut().first = Some(wire.run("1+1"));
        let (head, body) = in_time(send.send_request(request))
            .await
            .unwrap()
            .into_parts();
        let outcome = wire.read(crate::support::client::Collected {
            http: head.status.as_u16(),
            headers: head.headers,
            trailers: http::HeaderMap::new(),
            body: in_time(body.collect()).await.unwrap().to_bytes(),
        });
        assert_eq!(outcome.stdout(wire), b"1+1", "{wire:?}");
    }
}

#[tokio::test]
async fn a_refusal_does_not_wait_for_the_body_and_keeps_the_connection() {
    let daemon = Daemon::start().await;
    let mut send = connect(&daemon).await;
    for _ in 0..3 {
        let refused = send.send_request(request("x", b"{", false));
        let (answer, time) = timed(refused).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), 401);
        assert!(!answer.headers().contains_key("connection"));
        assert!(time < Duration::from_secs(2), "{time:?}");
        let good = in_time(send.send_request(request(TOKEN, b"{}", true))).await;
        assert_eq!(good.unwrap().status(), 200);
    }
    assert_eq!(daemon.fake.entered(), 3);
}

#[tokio::test]
async fn a_body_that_stops_ends_alone() {
    let mut settings = settings();
    settings.request = Duration::from_millis(300);
    settings.decode_slots = 2;
    let daemon = Daemon::tuned(settings).await;
    let mut send = connect(&daemon).await;
    let slow = tokio::spawn(send.send_request(request(TOKEN, b"{", false)));
    let good = send.send_request(request("bob", b"{}", true));
    assert_eq!(in_time(good).await.unwrap().status(), 200);
    let slow = in_time(slow).await.unwrap().unwrap();
    assert_eq!(slow.status(), 504);
    assert_eq!(slow.headers()["plimsoll-not-dispatched"], "request");
    let again = send.send_request(request(TOKEN, b"{}", true));
    assert_eq!(in_time(again).await.unwrap().status(), 200);
    assert_eq!(daemon.fake.entered(), 2);
}

#[tokio::test]
async fn a_stream_of_resets_ends_the_connection() {
    let daemon = Daemon::start().await;
    let mut io = TcpStream::connect(daemon.address).await.unwrap();
    io.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0")
        .await
        .unwrap();
    // :method POST, :scheme http, :path / and :authority a, then a reset.
    let block = b"\x83\x86\x84\x41\x01a";
    let mut flood = Vec::new();
    for stream in (1_u32..4001).step_by(2) {
        flood.extend([0, 0, block.len() as u8, 1, 4]);
        flood.extend(stream.to_be_bytes());
        flood.extend(block);
        flood.extend([0, 0, 4, 3, 0]);
        flood.extend(stream.to_be_bytes());
        flood.extend(8_u32.to_be_bytes());
    }
    // The server may end it before all is written.
    let _ = io.write_all(&flood).await;
    let mut seen = Vec::new();
    let _ = in_time(io.read_to_end(&mut seen)).await;
    // GOAWAY with ENHANCE_YOUR_CALM.
    let goaway = seen.windows(4).any(|w| w == [0, 0, 0, 11]);
    assert!(goaway || seen.is_empty(), "{} bytes", seen.len());
    let outcome = Wire::Grpc
        .call(daemon.address, Wire::Grpc.run("1"), &[])
        .await;
    assert_eq!(outcome.code, None);
    assert_eq!(daemon.fake.entered(), 1);
}
