//! Answers that do not check: each is refused, and none reaches the recorder.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "fake/exchanges.rs"]
mod exchanges;
mod fake;

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use exchanges::all;
use fake::{Fake, Reply};
use plimsoll_client::{CallFailure, Checked, Class, Client, Ran, Recorder, RecorderError, Stage};
use plimsoll_record::{make, record_digest, request_digest};
use plimsoll_wire::{
    Code, Rule, json,
    proto::{
        JavaScriptResult, Message, ModuleResult, ProjectResult, RunRecord, RunRequest, RunResponse,
        run_response::Result as RunResult,
    },
};

#[derive(Default)]
struct Log(Mutex<Vec<Checked>>);

impl Recorder for Log {
    fn answered(&self, call: &Checked) -> Result<(), RecorderError> {
        self.0.lock().unwrap().push(call.clone());
        Ok(())
    }
}

fn request_of(number: &str) -> RunRequest {
    json::read(all()[number].request.body.as_bytes()).unwrap()
}

fn response_of(number: &str) -> RunResponse {
    json::read(all()[number].answer.body.as_bytes()).unwrap()
}

/// Runs `request` against a daemon that answers `body`; the recorder must not
/// be called.
async fn refused(request: &RunRequest, body: Vec<u8>) -> Box<CallFailure> {
    let fake = Fake::start(move |_| Reply::bytes(body.clone())).await;
    let log = Arc::new(Log::default());
    let mut options = fake.options();
    options.recorder = Some(log.clone());
    let failure = Client::new(options)
        .unwrap()
        .run(request)
        .await
        .unwrap_err();
    assert!(
        log.0.lock().unwrap().is_empty(),
        "an answer that failed a check is not recorded"
    );
    assert_eq!(failure.ran, Ran::Maybe);
    assert_eq!(failure.stage, Stage::Unchecked);
    failure
}

fn seal(response: &mut RunResponse) {
    let digest = record_digest(&response.record).unwrap().to_hex();
    response.record.as_option_mut().unwrap().record_sha256 = digest;
}

/// An answer with a record that fits it, as an honest daemon makes one.
fn honest(request: &RunRequest, mut response: RunResponse) -> RunResponse {
    let rule = Rule::parse(request.software_rule.as_option()).unwrap();
    let facts = make::Facts {
        request: request_digest(request),
        rule: &rule,
        policy: "",
        started_unix_ms: 1,
        ended_unix_ms: 2,
        chain: None,
    };
    response.record = Some(make::answered(&facts, &response)).into();
    response
}

#[tokio::test]
async fn any_altered_field_is_refused_with_the_result() {
    type Alter = fn(&mut RunResponse);
    fn js(response: &mut RunResponse) -> &mut JavaScriptResult {
        match response.result.as_mut().unwrap() {
            RunResult::Javascript(result) => result,
            _ => panic!("not a snippet"),
        }
    }
    fn record(response: &mut RunResponse) -> &mut RunRecord {
        response.record.as_option_mut().unwrap()
    }
    fn flip(text: &mut String) {
        let last = text.pop().unwrap();
        text.push(if last == '0' { '1' } else { '0' });
    }
    let alterations: [(&str, Alter); 18] = [
        ("stdout", |r| js(r).stdout.push(b'!')),
        ("stderr", |r| js(r).stderr.push(b'!')),
        ("exit code", |r| js(r).exit_code ^= 1),
        ("timed out", |r| js(r).timed_out = true),
        ("stdout truncated", |r| js(r).stdout_truncated = true),
        ("stderr truncated", |r| js(r).stderr_truncated = true),
        ("sandbox", |r| r.sandbox.push('x')),
        ("isolation", |r| r.isolation = "vm".into()),
        ("environment", |r| flip(&mut r.environment)),
        ("software identity", |r| flip(&mut r.software_identity)),
        ("request digest", |r| flip(&mut record(r).request_sha256)),
        ("result digest", |r| flip(&mut record(r).result_sha256)),
        ("record digest", |r| flip(&mut record(r).record_sha256)),
        ("start", |r| record(r).started_unix_ms += 1),
        ("end", |r| record(r).ended_unix_ms += 1),
        ("policy", |r| record(r).policy = "p".into()),
        ("rule", |r| record(r).software_rule_id = "exact:x".into()),
        ("unanswered", |r| record(r).unanswered = "internal".into()),
    ];
    let request = request_of("03");
    for (what, alter) in alterations {
        let mut response = response_of("03");
        alter(&mut response);
        let failure = refused(&request, response.encode_to_vec()).await;
        assert_eq!(
            (failure.code, failure.class),
            (Code::DataLoss, Class::RecordRefused),
            "{what}"
        );
        let result = failure.unchecked.expect(what);
        assert!(
            result.record.as_option().is_none(),
            "{what}: its record is not handed out"
        );
        assert_eq!(result.result, response.result, "{what}");
        assert!(failure.record_error.is_some(), "{what}");
    }
    // Fields of a session on a single run, sealed, and versions.
    let sealed: [(&str, Alter); 6] = [
        ("session", |r| record(r).session = "s".into()),
        ("sequence", |r| record(r).sequence = 1),
        ("previous", |r| record(r).previous_sha256 = "p".into()),
        ("version 1", |r| record(r).version = 1),
        ("version 3", |r| record(r).version = 3),
        ("provider", |r| record(r).provider = "vm".into()),
    ];
    for (what, alter) in sealed {
        let mut response = response_of("03");
        alter(&mut response);
        seal(&mut response);
        let failure = refused(&request, response.encode_to_vec()).await;
        assert_eq!(failure.class, Class::RecordRefused, "{what}");
    }
    let mut unknown = response_of("03");
    record(&mut unknown).version = 4;
    let mut none = response_of("03");
    none.record = Default::default();
    for response in [unknown, none] {
        let failure = refused(&request, response.encode_to_vec()).await;
        assert_eq!(failure.class, Class::RecordRefused);
    }
}

#[tokio::test]
async fn wrong_kinds() {
    let request = request_of("03");
    let with = |result| {
        let mut response = response_of("03");
        response.result = result;
        honest(&request, response)
    };
    let project = with(Some(RunResult::Project(Box::<ProjectResult>::default())));
    for (response, says) in [(project, "project"), (with(None), "no result")] {
        let failure = refused(&request, response.encode_to_vec()).await;
        assert_eq!(
            (failure.code, failure.class),
            (Code::DataLoss, Class::ResultKind)
        );
        assert!(failure.message.contains(says), "{}", failure.message);
    }
    let second = RunResponse {
        result: Some(RunResult::Module(Box::<ModuleResult>::default())),
        ..Default::default()
    };
    for order in [
        [second.encode_to_vec(), response_of("03").encode_to_vec()],
        [response_of("03").encode_to_vec(), second.encode_to_vec()],
    ] {
        let failure = refused(&request, order.concat()).await;
        assert_eq!(
            (failure.code, failure.class),
            (Code::Internal, Class::AnswerMalformed)
        );
    }
}

#[tokio::test]
async fn a_tier_below_the_floor_is_no_refusal() {
    let mut request = request_of("03");
    request.minimum_isolation = "vm".into();
    let response = honest(&request, response_of("03"));
    assert_eq!(response.isolation, "kernel");
    let failure = refused(&request, response.encode_to_vec()).await;
    assert_eq!(
        (failure.code, failure.class),
        (Code::DataLoss, Class::IsolationEvidence)
    );
    let mut unknown = response_of("03");
    unknown.isolation = "unknown".into();
    let failure = refused(&request, honest(&request, unknown).encode_to_vec()).await;
    assert_eq!(failure.class, Class::IsolationEvidence);
}

#[tokio::test]
async fn software_outside_the_rule() {
    let mut request = request_of("05");
    request
        .software_rule
        .as_option_mut()
        .unwrap()
        .identities
        .pop();
    request.software_rule.as_option_mut().unwrap().mode = "exact".into();
    for identity in [response_of("05").software_identity, String::new()] {
        let mut response = response_of("05");
        response.software_identity = identity;
        let failure = refused(&request, honest(&request, response).encode_to_vec()).await;
        assert_eq!(failure.class, Class::RecordRefused);
    }
}

#[tokio::test]
async fn bodies_that_are_no_message() {
    let request = request_of("03");
    let good = response_of("03").encode_to_vec();
    let cut = good[..good.len() - 1].to_vec();
    for body in [
        cut,
        b"{}".to_vec(),
        vec![0x0a, 0x01, 0xff],
        vec![0x08, 0x01, 0x00],
    ] {
        let failure = refused(&request, body).await;
        assert_eq!(
            (failure.code, failure.class),
            (Code::Internal, Class::AnswerMalformed)
        );
    }
    let failure = refused(&request, Vec::new()).await;
    assert_eq!(
        failure.class,
        Class::ResultKind,
        "an empty message holds no result"
    );
    for (name, value) in [
        ("content-type", "application/json"),
        ("content-encoding", "gzip"),
    ] {
        let fake = Fake::start({
            let good = good.clone();
            move |_| {
                let mut reply = Reply::bytes(good.clone());
                if name == "content-type" {
                    reply.headers.clear();
                }
                reply.header(name, value)
            }
        })
        .await;
        let failure = fake.client().run(&request).await.unwrap_err();
        assert_eq!(
            (failure.code, failure.class),
            (Code::Internal, Class::AnswerMalformed)
        );
    }
}

#[tokio::test]
async fn an_answer_over_32_mib() {
    let request = request_of("03");
    let declared = Fake::start(|_| {
        Reply::bytes(Vec::new()).header("content-length", &(32 * 1024 * 1024 + 1).to_string())
    })
    .await;
    let failure = declared.client().run(&request).await.unwrap_err();
    assert_eq!(
        (failure.code, failure.class),
        (Code::ResourceExhausted, Class::AnswerTooLarge)
    );
    assert_eq!(failure.ran, Ran::Maybe);
    // A chunked answer states no length.
    let chunked = Fake::raw(|mut stream| async move {
            use tokio::io::AsyncWriteExt;
            let seen = fake::read_request(&mut stream).await.unwrap();
            let head = format!(
                "HTTP/1.1 200 X\r\ncontent-type: application/proto\r\nplimsoll-request-id: {}\r\ntransfer-encoding: chunked\r\n\r\n",
                seen.request_id()
            );
            let _ = stream.write_all(head.as_bytes()).await;
            let chunk = [b"100000\r\n".as_slice(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
            while stream.write_all(&chunk).await.is_ok() {}
    })
    .await;
    let failure = chunked.client().run(&request).await.unwrap_err();
    assert_eq!(failure.class, Class::AnswerTooLarge);
}

#[tokio::test]
async fn a_recorder_that_fails() {
    #[derive(Debug, thiserror::Error)]
    #[error("disk full")]
    struct DiskFull;
    #[derive(Default)]
    struct Broken(AtomicUsize);
    impl Recorder for Broken {
        fn answered(&self, _: &Checked) -> Result<(), RecorderError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Err(RecorderError::new(DiskFull))
        }
    }
    let reply = all()["03"].reply();
    let fake = Fake::start(move |_| reply.clone()).await;
    let broken = Arc::new(Broken::default());
    let mut options = fake.options();
    options.recorder = Some(broken.clone());
    let client = Client::new(options).unwrap();
    let failure = client.run(&request_of("03")).await.unwrap_err();
    assert_eq!(
        (failure.class, failure.stage),
        (Class::NotRecorded, Stage::NotKept)
    );
    assert_eq!(failure.ran, Ran::Yes);
    assert_eq!(failure.checked.unwrap().response, response_of("03"));
    assert!(
        failure
            .recorder_error
            .unwrap()
            .downcast::<DiskFull>()
            .is_some()
    );
    assert_eq!(broken.0.load(Ordering::SeqCst), 1);
    // A recorder of single runs cannot keep a session.
    let failure = client
        .open_session(&Default::default(), &Default::default())
        .await
        .unwrap_err();
    assert_eq!(
        (failure.stage, failure.code),
        (Stage::Local, Code::FailedPrecondition)
    );
    assert_eq!(fake.seen().len(), 1);
}
