//! The callers: HTTP/1.1 by hand, so that little of the machine goes to them.

use std::time::{Duration, Instant};

use plimsoll_wire::proto::{
    JavaScriptRun, Message, RunRequest, RunResponse, run_request::Payload, run_response,
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
};

use crate::CODE;

/// What a caller waits after it was shed; it doubles, up to 64 times this, until
/// a call runs again. Callers that come back at once would leave the machine
/// no time for anything but refusals.
const PAUSE: Duration = Duration::from_millis(10);
/// Doublings at most.
const DOUBLINGS: u32 = 6;
/// Every so many answers of a caller the record is recomputed.
const CHECK_EVERY: usize = 50;
/// Faults that are kept in full.
const KEEP: usize = 5;

/// What became of the calls.
#[derive(Default)]
pub struct Seen {
    /// Times of the calls that ran.
    pub latencies: Vec<Duration>,
    /// Refusals for want of capacity, marked as not dispatched.
    pub shed: usize,
    /// Records that were recomputed.
    pub checked: usize,
    /// Everything that should not have happened.
    pub errors: Vec<String>,
}

/// Every caller, until this moment.
pub async fn all(address: String, tokens: Vec<String>, until: Instant) -> Seen {
    let mut tasks = JoinSet::new();
    for (number, token) in tokens.into_iter().enumerate() {
        let address = address.clone();
        tasks.spawn(async move {
            let mut seen = Seen::default();
            if let Err(error) = calls(&address, &token, number, until, &mut seen).await {
                seen.errors.push(error);
            }
            seen
        });
    }
    let mut all = Seen::default();
    while let Some(one) = tasks.join_next().await {
        match one {
            Ok(one) => {
                all.latencies.extend(one.latencies);
                all.shed += one.shed;
                all.checked += one.checked;
                let room = KEEP.saturating_sub(all.errors.len());
                all.errors.extend(one.errors.into_iter().take(room));
            }
            Err(lost) => all.errors.push(lost.to_string()),
        }
    }
    all
}

async fn calls(
    address: &str,
    token: &str,
    number: usize,
    until: Instant,
    seen: &mut Seen,
) -> Result<(), String> {
    let request = RunRequest {
        protocol: 3,
        payload: Some(Payload::Javascript(Box::new(JavaScriptRun {
            code: CODE.into(),
            ..JavaScriptRun::default()
        }))),
        ..RunRequest::default()
    };
    let body = request.encode_to_vec();
    let mut stream = TcpStream::connect(address)
        .await
        .map_err(|error| format!("connect: {error}"))?;
    stream
        .set_nodelay(true)
        .map_err(|error| error.to_string())?;
    let mut buffer = Vec::new();
    let mut call = 0_usize;
    let mut shed_in_a_row = 0_u32;
    while Instant::now() < until {
        call += 1;
        let id = format!("{number:016x}{call:016x}");
        let head = format!(
            "POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\
             Content-Type: application/proto\r\nPlimsoll-Request-Id: {id}\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let begun = Instant::now();
        stream
            .write_all(&[head.as_bytes(), &body].concat())
            .await
            .map_err(|error| format!("send: {error}"))?;
        let answer = answer(&mut stream, &mut buffer).await?;
        let time = begun.elapsed();
        if !answer.head.contains(&id) {
            return Err(format!("another call's answer: {}", answer.head));
        }
        match answer.status {
            200 => {
                seen.latencies.push(time);
                shed_in_a_row = 0;
                if call % CHECK_EVERY == 1 {
                    check(&request, &answer.body)?;
                    seen.checked += 1;
                }
            }
            // The detail: not dispatched, for want of capacity.
            429 if answer.text().contains("\"CAY\"") => {
                seen.shed += 1;
                // Not all of them in step.
                let apart = Duration::from_millis((number % 16) as u64);
                tokio::time::sleep(PAUSE * (1 << shed_in_a_row) + apart).await;
                shed_in_a_row = (shed_in_a_row + 1).min(DOUBLINGS);
            }
            _ => return Err(format!("{}: {}", answer.status, answer.text())),
        }
    }
    Ok(())
}

fn check(request: &RunRequest, body: &[u8]) -> Result<(), String> {
    let response = RunResponse::decode_from_slice(body).map_err(|error| error.to_string())?;
    plimsoll_record::check::single_run(request, &response).map_err(|error| error.to_string())?;
    match &response.result {
        Some(run_response::Result::Javascript(result)) if result.stdout == b"42\n" => Ok(()),
        _ => Err("another result".into()),
    }
}

struct Answer {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// Reads one answer; its bytes leave the buffer.
async fn answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<Answer, String> {
    buffer.clear();
    let end = loop {
        if let Some(at) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
            break at + 4;
        }
        more(stream, buffer).await?;
    };
    let head = String::from_utf8_lossy(&buffer[..end]).to_ascii_lowercase();
    let status = head.get(9..12).and_then(|status| status.parse().ok());
    let status = status.ok_or("no status")?;
    let length = head
        .split("\r\n")
        .find_map(|line| line.strip_prefix("content-length: "))
        .and_then(|length| length.parse::<usize>().ok());
    let length = length.ok_or("no length")?;
    while buffer.len() < end + length {
        more(stream, buffer).await?;
    }
    Ok(Answer {
        status,
        head,
        body: buffer[end..end + length].to_vec(),
    })
}

async fn more(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Result<(), String> {
    match stream.read_buf(buffer).await {
        Ok(0) => Err("the connection ended".into()),
        Ok(_) => Ok(()),
        Err(error) => Err(format!("receive: {error}")),
    }
}
