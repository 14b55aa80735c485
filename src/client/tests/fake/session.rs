//! A daemon of one session, and a recorder that keeps a log.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};

use plimsoll_client::{
    CallOptions, Checked, Client, OpenSession, Recorder, RecorderError, Session, session::Closed,
};
use plimsoll_record::{Chain, make, request_digest};
use plimsoll_wire::{
    Code, Rule, detail, ids,
    proto::{
        CloseSessionResponse, EnumValue, JavaScriptRun, MessageField, OpenSessionResponse,
        RunRecord, RunRequest, RunResponse, SessionEnd, SessionRunRequest, SessionRunResponse,
        UnansweredCall, run_request::Payload, run_response::Result as RunResult,
    },
};

use super::fake::{Fake, Reply, Seen};

pub const ID: &str = "3f0c9a52d1e84b7796c4a5b80e1d2f36";

/// An unmarked error with this record.
pub fn unanswered_error(record: &RunRecord) -> Reply {
    let call = UnansweredCall {
        record: MessageField::some(record.clone()),
    };
    Reply::error(
        500,
        &format!(
            r#"{{"code":"internal","details":[{{"type":"plimsoll.v1.UnansweredCall","value":"{}"}}]}}"#,
            detail::to_base64(&call)
        ),
    )
}

pub fn none() -> CallOptions {
    CallOptions::default()
}

pub fn snippet(code: &str) -> RunRequest {
    RunRequest {
        protocol: 3,
        payload: Some(Payload::Javascript(Box::new(JavaScriptRun {
            code: code.into(),
            ..Default::default()
        }))),
        ..Default::default()
    }
}

pub fn opened() -> OpenSessionResponse {
    OpenSessionResponse {
        session_id: ID.into(),
        session: ids::session_fingerprint(ID),
        sandbox: "docker".into(),
        isolation: "kernel".into(),
        software_identity: "image:1".into(),
        ..Default::default()
    }
}

/// A daemon of one session: answers calls honestly and keeps its chain.
pub struct Daemon(pub Mutex<Chain>);

impl Daemon {
    pub fn new() -> Arc<Daemon> {
        Arc::new(Daemon(Mutex::new(Chain::of_session_id(ID))))
    }

    pub fn facts<T>(&self, call: &RunRequest, f: impl FnOnce(&make::Facts<'_>) -> T) -> T {
        let chain = self.0.lock().unwrap();
        let rule = Rule::parse(call.software_rule.as_option()).unwrap();
        f(&make::Facts {
            request: request_digest(call),
            rule: &rule,
            policy: "",
            started_unix_ms: 1,
            ended_unix_ms: 2,
            chain: Some(&chain),
        })
    }

    pub fn answer(&self, call: &RunRequest) -> RunResponse {
        let mut response = RunResponse {
            sandbox: "docker".into(),
            isolation: "kernel".into(),
            software_identity: "image:1".into(),
            result: Some(RunResult::Javascript(Box::default())),
            ..Default::default()
        };
        response.record = Some(self.facts(call, |facts| make::answered(facts, &response))).into();
        self.0.lock().unwrap().advance(&response.record).unwrap();
        response
    }

    pub fn unanswered(&self, call: &RunRequest) -> RunRecord {
        let stated = make::Stated {
            provider: "docker".into(),
            isolation: "kernel".into(),
            environment: "anything".into(),
            software_identity: "image:1".into(),
        };
        self.facts(call, |facts| {
            make::unanswered(facts, &stated, Code::Internal)
        })
    }

    pub fn reply(&self, seen: &Seen) -> Reply {
        match seen.procedure() {
            "OpenSession" => Reply::proto(&opened()),
            "SessionRun" => {
                let call: SessionRunRequest = seen.message();
                Reply::proto(&SessionRunResponse {
                    run: Some(self.answer(&call.into())).into(),
                    ..Default::default()
                })
            }
            "CloseSession" => {
                let chain = self.0.lock().unwrap();
                Reply::proto(&CloseSessionResponse {
                    session: chain.fingerprint().into(),
                    calls: chain.calls(),
                    last_record_sha256: chain.last().into(),
                    ended: EnumValue::from(SessionEnd::SESSION_END_CLOSED),
                })
            }
            other => panic!("{other}"),
        }
    }
}

pub async fn honest() -> Fake {
    let daemon = Daemon::new();
    Fake::start(move |seen| daemon.reply(seen)).await
}

/// An honest daemon, but the calls from the second on are answered by `odd`.
pub async fn odd_second(
    odd: impl Fn(&Daemon, &RunRequest) -> Reply + Send + Sync + 'static,
) -> Fake {
    let daemon = Daemon::new();
    Fake::start(move |seen| {
        if seen.procedure() == "SessionRun" && seen.number == 2 {
            let call: SessionRunRequest = seen.message();
            return odd(&daemon, &call.into());
        }
        daemon.reply(seen)
    })
    .await
}

pub async fn open(client: &Client) -> Session {
    client
        .open_session(&OpenSession::default(), &none())
        .await
        .unwrap()
}

#[derive(Default)]
pub struct Log(pub Mutex<Vec<String>>);

impl Recorder for Log {
    fn keeps_sessions(&self) -> bool {
        true
    }

    fn answered(&self, call: &Checked) -> Result<(), RecorderError> {
        self.0
            .lock()
            .unwrap()
            .push(format!("call {}", call.record().sequence));
        Ok(())
    }

    fn unanswered(&self, request: &RunRequest, record: &RunRecord) -> Result<(), RecorderError> {
        assert!(request_digest(request).is(&record.request_sha256));
        self.0
            .lock()
            .unwrap()
            .push(format!("unanswered {}", record.sequence));
        Ok(())
    }

    fn closed(&self, close: &Closed) -> Result<(), RecorderError> {
        self.0
            .lock()
            .unwrap()
            .push(format!("close {}", close.calls));
        Ok(())
    }
}
