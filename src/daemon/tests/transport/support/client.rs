//! One client for the four spellings of a call.

use std::net::SocketAddr;

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version};
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use plimsoll_wire::{
    Code,
    detail::Details,
    json,
    proto::{self, JavaScriptRun, Message, RunRequest, RunResponse, run_request::Payload},
};
use tokio::net::TcpStream;

use super::{REQUEST_ID, TOKEN, in_time, raw::path};

/// Protocol and encoding of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Json,
    Proto,
    Grpc,
    GrpcJson,
    GrpcWeb,
    GrpcWebJson,
}

/// An answer, whatever the protocol said it in.
#[derive(Debug)]
pub struct Outcome {
    pub http: u16,
    pub headers: HeaderMap,
    /// `None` is success.
    pub code: Option<Code>,
    pub message: String,
    pub details: Details,
    /// The message of a success.
    pub payload: Bytes,
}

impl Wire {
    pub const ALL: [Wire; 6] = [
        Wire::Json,
        Wire::Proto,
        Wire::Grpc,
        Wire::GrpcJson,
        Wire::GrpcWeb,
        Wire::GrpcWebJson,
    ];

    pub fn content_type(self) -> &'static str {
        match self {
            Wire::Json => "application/json",
            Wire::Proto => "application/proto",
            Wire::Grpc => "application/grpc",
            Wire::GrpcJson => "application/grpc+json",
            Wire::GrpcWeb => "application/grpc-web+proto",
            Wire::GrpcWebJson => "application/grpc-web+json",
        }
    }

    pub fn http2(self) -> bool {
        matches!(self, Wire::Grpc | Wire::GrpcJson)
    }

    pub fn is_json(self) -> bool {
        matches!(self, Wire::Json | Wire::GrpcJson | Wire::GrpcWebJson)
    }

    pub fn framed(self) -> bool {
        !matches!(self, Wire::Json | Wire::Proto)
    }

    /// Puts a message into the shape of the protocol.
    pub fn frame(self, message: &[u8]) -> Bytes {
        if self.framed() {
            frame(0, message)
        } else {
            Bytes::copy_from_slice(message)
        }
    }

    /// A `Run` of this code as a body.
    pub fn run(self, code: &str) -> Bytes {
        let request = RunRequest {
            protocol: 3,
            payload: Some(Payload::Javascript(Box::new(JavaScriptRun {
                code: code.into(),
                ..JavaScriptRun::default()
            }))),
            ..RunRequest::default()
        };
        let message = if self.is_json() {
            json::write(&request).unwrap().into_bytes()
        } else {
            request.encode_to_vec()
        };
        self.frame(&message)
    }

    /// Sends a `Run` with more headers.
    pub async fn call(self, to: SocketAddr, body: Bytes, more: &[(&str, &str)]) -> Outcome {
        self.call_method(to, "Run", body, more).await
    }

    pub async fn call_method(
        self,
        to: SocketAddr,
        method: &str,
        body: Bytes,
        more: &[(&str, &str)],
    ) -> Outcome {
        let answer = self.send(to, self.request(method, body, more)).await;
        self.read(answer)
    }

    /// The usual request. A header in `more` replaces the usual one; an empty
    /// value takes it away.
    pub fn request(self, method: &str, body: Bytes, more: &[(&str, &str)]) -> Request<Full<Bytes>> {
        let mut request = Request::builder()
            .method(Method::POST)
            .uri(format!("http://test{}", path(method)))
            .header("host", "test")
            .header("content-type", self.content_type())
            .header("authorization", format!("Bearer {TOKEN}"))
            .header("plimsoll-request-id", REQUEST_ID)
            .body(Full::new(body))
            .unwrap();
        if self.http2() {
            *request.version_mut() = Version::HTTP_2;
            request.headers_mut().remove("host");
            let trailers = HeaderValue::from_static("trailers");
            request.headers_mut().insert("te", trailers);
        } else {
            *request.uri_mut() = path(method).parse().unwrap();
        }
        for (name, value) in more {
            let name: HeaderName = name.parse().unwrap();
            request.headers_mut().remove(&name);
            if !value.is_empty() {
                request.headers_mut().insert(name, value.parse().unwrap());
            }
        }
        request
    }

    /// Sends over a connection of its own and collects the answer; trailers
    /// join the headers, which is how a reader of gRPC treats them.
    pub async fn send(self, to: SocketAddr, request: Request<Full<Bytes>>) -> Collected {
        let io = TokioIo::new(TcpStream::connect(to).await.unwrap());
        let answer = if self.http2() {
            let (mut send, connection) =
                hyper::client::conn::http2::handshake(TokioExecutor::new(), io)
                    .await
                    .unwrap();
            tokio::spawn(connection);
            in_time(send.send_request(request)).await.unwrap()
        } else {
            let (mut send, connection) = hyper::client::conn::http1::handshake(io).await.unwrap();
            tokio::spawn(connection);
            in_time(send.send_request(request)).await.unwrap()
        };
        let (head, body) = answer.into_parts();
        let body = in_time(body.collect()).await.unwrap();
        let trailers = body.trailers().cloned().unwrap_or_default();
        Collected {
            http: head.status.as_u16(),
            headers: head.headers,
            trailers,
            body: body.to_bytes(),
        }
    }

    /// Reads an answer of this protocol.
    pub fn read(self, answer: Collected) -> Outcome {
        let mut outcome = Outcome {
            http: answer.http,
            headers: answer.headers,
            code: None,
            message: String::new(),
            details: Details::default(),
            payload: Bytes::new(),
        };
        if !self.framed() || outcome.http != 200 {
            if outcome.http == 200 {
                outcome.payload = answer.body;
            } else {
                outcome.connect_error(&answer.body);
            }
            return outcome;
        }
        let mut status = answer.trailers;
        let mut rest = answer.body;
        while rest.len() >= 5 {
            let flag = rest[0];
            let length = u32::from_be_bytes(rest[1..5].try_into().unwrap()) as usize;
            let message = rest.slice(5..5 + length);
            rest = rest.slice(5 + length..);
            if flag & 0x80 == 0 {
                outcome.payload = message;
            } else {
                for line in std::str::from_utf8(&message).unwrap().trim().lines() {
                    let (name, value) = line.split_once(':').unwrap();
                    status.insert(
                        HeaderName::from_bytes(name.trim().as_bytes()).unwrap(),
                        value.trim().parse().unwrap(),
                    );
                }
            }
        }
        outcome.grpc_status(&status);
        outcome
    }
}

/// An answer with nothing read into it.
#[derive(Debug)]
pub struct Collected {
    pub http: u16,
    pub headers: HeaderMap,
    pub trailers: HeaderMap,
    pub body: Bytes,
}

/// One frame with this flag byte.
pub fn frame(flag: u8, message: &[u8]) -> Bytes {
    let length = u32::try_from(message.len()).unwrap();
    [&[flag], &length.to_be_bytes()[..], message]
        .concat()
        .into()
}

impl Outcome {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |v| v.to_str().unwrap())
    }

    pub fn mark(&self) -> &str {
        self.header("plimsoll-not-dispatched")
    }

    /// What a successful `Run` printed.
    pub fn stdout(&self, wire: Wire) -> Vec<u8> {
        assert_eq!(self.code, None, "{self:?}");
        let response: RunResponse = if wire.is_json() {
            json::read(&self.payload).unwrap()
        } else {
            proto::decode(&self.payload).unwrap()
        };
        match response.result {
            Some(proto::run_response::Result::Javascript(result)) => result.stdout,
            other => panic!("{other:?}"),
        }
    }

    fn connect_error(&mut self, body: &[u8]) {
        if self.header("content-type") != "application/json" {
            return;
        }
        let error: serde_json::Value = serde_json::from_slice(body).unwrap();
        let members: Vec<_> = error.as_object().unwrap().keys().cloned().collect();
        for member in members {
            assert!(
                ["code", "message", "details"].contains(&member.as_str()),
                "{member}"
            );
        }
        self.code = Code::parse(error["code"].as_str().unwrap());
        self.message = error["message"].as_str().unwrap_or("").to_owned();
        for detail in error["details"].as_array().into_iter().flatten() {
            assert_eq!(detail.get("debug"), None);
            let name = detail["type"].as_str().unwrap();
            assert!(name.starts_with("plimsoll.v1."), "{name}");
            self.details
                .take_base64(name, detail["value"].as_str().unwrap());
        }
    }

    fn grpc_status(&mut self, status: &HeaderMap) {
        let number: u32 = status["grpc-status"].to_str().unwrap().parse().unwrap();
        self.code = Code::ALL.into_iter().find(|c| c.grpc_number() == number);
        assert_eq!(self.code.is_none(), number == 0, "{number}");
        if let Some(details) = status.get("grpc-status-details-bin") {
            let bytes = STANDARD_NO_PAD.decode(details.as_bytes()).unwrap();
            for (field, value) in fields(&bytes) {
                match field {
                    2 => self.message = String::from_utf8(value.to_vec()).unwrap(),
                    3 => {
                        let any = fields(value);
                        let name = std::str::from_utf8(any[0].1).unwrap();
                        assert!(
                            name.starts_with("type.googleapis.com/plimsoll.v1."),
                            "{name}"
                        );
                        self.details.take(name, any.get(1).map_or(&[], |f| f.1));
                    }
                    _ => {}
                }
            }
        }
    }
}

/// The length-delimited fields of a message; its varints are skipped.
fn fields(mut bytes: &[u8]) -> Vec<(u64, &[u8])> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut out = 0;
        for shift in (0..).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            out |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        out
    }
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = varint(&mut bytes);
        if tag & 7 == 2 {
            let (field, rest) = bytes.split_at(value as usize);
            out.push((tag >> 3, field));
            bytes = rest;
        }
    }
    out
}
