//! Ten thousand bodies that are nearly messages.

use std::{io::Write, net::TcpStream};

use plimsoll_wire::proto::{
    JavaScriptRun, Message, ModuleRow, ModuleRun, ProjectFile, ProjectRun, RunRequest,
    run_request::Payload,
};

use crate::{
    child::TOKEN,
    honest::{answer, call, connect, request},
    random::Random,
    serving,
};

const SEED: u64 = 0x706c_696d_736f_6c6c;
const BODIES: usize = 10_000;

const JSON: [&str; 6] = [
    r#"{"protocol":3,"javascript":{"code":"1","grantProfile":"x"},"timeoutMs":1000}"#,
    r#"{"protocol":3,"project":{"files":[{"path":"a/b","content":"x"}],"steps":["true"],"artifacts":["a"]}}"#,
    r#"{"protocol":3,"module":{"model":"m","rows":[{"values":[1,-0,1e9]}],"endTime":1,"step":0.1}}"#,
    r#"{"protocol":3,"minimumIsolation":"process","softwareRule":{"mode":"exact","identities":["a:1"]},"javascript":{"code":"\ud83d\ude00"}}"#,
    r#"{"protocol":3,"traceId":"a-b.c","unknown":{"deep":[[[[[[1,2],null]]]]]},"javascript":{"code":"\u0031"}}"#,
    r#"{"protocol":"3","minimum_isolation":"","javascript":{}}"#,
];

/// Each is refused or run; none is a fault of the daemon, and none ends it.
pub fn ten_thousand() {
    let (running, log) = serving(&[]);
    let mut random = Random(SEED);
    let binary = messages();
    let mut peer: Option<TcpStream> = None;
    for number in 0..BODIES {
        let (content_type, seeds): (_, Vec<&[u8]>) = match number % 4 {
            0 | 1 => (
                "application/json",
                JSON.iter().map(|j| j.as_bytes()).collect(),
            ),
            2 => (
                "application/proto",
                binary.iter().map(Vec::as_slice).collect(),
            ),
            _ => (
                "application/grpc-web+proto",
                binary.iter().map(Vec::as_slice).collect(),
            ),
        };
        let mut body = mutated(&seeds, &mut random);
        if number % 4 == 3 {
            body = framed(&body, &mut random);
        }
        let stream = peer.get_or_insert_with(|| connect(&running.address));
        stream
            .write_all(&request(TOKEN, content_type, &body))
            .unwrap();
        let answer =
            answer(stream).unwrap_or_else(|| panic!("no answer to body {number}: {body:02x?}"));
        let fault = answer.status >= 500 && answer.status != 501;
        assert!(!fault, "{} to body {number}: {body:02x?}", answer.status);
        if answer.closes() {
            peer = None;
        }
        if number % 1000 == 999 {
            call(&running.address);
        }
    }
    call(&running.address);
    let text = log.text();
    assert!(!text.contains("internal"), "{text}");
}

fn messages() -> Vec<Vec<u8>> {
    let run = |payload| RunRequest {
        protocol: 3,
        trace_id: "trace".into(),
        timeout_ms: 1000,
        payload: Some(payload),
        ..RunRequest::default()
    };
    let javascript = Payload::Javascript(Box::new(JavaScriptRun {
        code: "1".into(),
        ..JavaScriptRun::default()
    }));
    let project = Payload::Project(Box::new(ProjectRun {
        files: vec![ProjectFile {
            path: "a/b".into(),
            content: "x".into(),
        }],
        steps: vec!["true".into()],
        artifacts: vec!["a".into()],
        ..ProjectRun::default()
    }));
    let module = Payload::Module(Box::new(ModuleRun {
        model: "m".into(),
        rows: vec![ModuleRow {
            values: vec![1.0, f64::NAN, -0.0],
        }],
        end_time: 1.0,
        step: 0.1,
    }));
    [javascript, project, module]
        .map(|payload| run(payload).encode_to_vec())
        .into()
}

/// One to four changes of one of the seeds.
fn mutated(seeds: &[&[u8]], random: &mut Random) -> Vec<u8> {
    let mut body = seeds[random.below(seeds.len())].to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(body.len() + 1);
        let next = body.len().min(at + 1 + random.below(8));
        match random.below(8) {
            0 if at < body.len() => body[at] ^= 1 << random.below(8),
            1 if at < body.len() => body[at] = random.byte(),
            2 => body.truncate(at),
            3 => drop(body.drain(at..next)),
            4 => {
                let piece = body[at..next].repeat(1 + random.below(40));
                drop(body.splice(at..at, piece));
            }
            5 => {
                let other = seeds[random.below(seeds.len())];
                let from = random.below(other.len());
                body.truncate(at);
                body.extend_from_slice(&other[from..]);
            }
            6 => {
                let piece = [b'[', b'{', b'"', 0xff, 0x80, 0x0a][random.below(6)];
                drop(body.splice(at..at, vec![piece; 1 + random.below(2000)]));
            }
            _ => {
                let noise: Vec<u8> = (0..random.below(64)).map(|_| random.byte()).collect();
                drop(body.splice(at..at, noise));
            }
        }
    }
    body
}

/// A frame whose flag and length are sometimes wrong.
fn framed(message: &[u8], random: &mut Random) -> Vec<u8> {
    let flag = if random.below(4) == 0 {
        random.byte()
    } else {
        0
    };
    let length = match random.below(4) {
        0 => random.next() as u32,
        _ => message.len() as u32,
    };
    [&[flag], &length.to_be_bytes()[..], message].concat()
}
