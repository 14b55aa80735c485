//! A recorded session, and a daemon that gives or does not give its results
//! again.
#![allow(dead_code)]

use std::sync::{Arc, Mutex};

use plimsoll_attestation::{
    SigningKey,
    bundle::{Entry, Options, append, disk::OsDisk},
};
use plimsoll_record::{Chain, make, request_digest};
use plimsoll_wire::{
    Code, Reason, Rule, detail, ids,
    proto::{
        CloseSessionResponse, EnumValue, JavaScriptResult, MessageField, OpenSessionResponse,
        RunRequest, RunResponse, SessionEnd, SessionRunRequest, SessionRunResponse, UnansweredCall,
        run_response::Result as RunResult,
    },
};

use super::{
    fake::{Fake, Reply, Seen},
    support::{answer_with, snippet},
};

pub const RECORDED: &str = "00112233445566778899aabbccddeeff";

pub fn output(length: usize) -> RunResult {
    RunResult::Javascript(Box::new(JavaScriptResult {
        stdout: vec![b'x'; length],
        ..Default::default()
    }))
}

fn facts<T>(request: &RunRequest, chain: &Chain, f: impl FnOnce(&make::Facts<'_>) -> T) -> T {
    f(&make::Facts {
        request: request_digest(request),
        rule: &Rule::default(),
        policy: "",
        started_unix_ms: 1,
        ended_unix_ms: 2,
        chain: Some(chain),
    })
}

fn in_session(request: &RunRequest, chain: &mut Chain, result: RunResult) -> RunResponse {
    let mut response = RunResponse {
        sandbox: "docker".into(),
        isolation: "kernel".into(),
        result: Some(result),
        ..Default::default()
    };
    let record = facts(request, chain, |facts| make::answered(facts, &response));
    chain.advance(&record).unwrap();
    response.record = Some(record).into();
    response
}

/// A bundle: a single run on line 1, a session of three calls on lines 2, 3 and
/// 5 whose second one may have no answer, a single run on line 4, the close on
/// line 6, a checkpoint. The n-th call of the session put out n characters.
pub fn bundle(unanswered: bool) -> (tempfile::TempDir, SigningKey) {
    let folder = tempfile::tempdir().unwrap();
    let key = SigningKey::generate().unwrap();
    let mut chain = Chain::of_session_id(RECORDED);
    let mut entries = Vec::new();
    let single = |code: &str| {
        let request = snippet(code);
        Entry::answered(&request, &answer_with(&request, output(7))).unwrap()
    };
    entries.push(single("first"));
    for n in 1..=3 {
        let request = snippet(&format!("call {n}"));
        if n == 2 && unanswered {
            let record = facts(&request, &chain, |facts| {
                make::unanswered(facts, &stated(), Code::DeadlineExceeded)
            });
            chain.advance(&record).unwrap();
            entries.push(Entry::unanswered(&request, &record).unwrap());
        } else {
            let response = in_session(&request, &mut chain, output(n));
            entries.push(Entry::answered(&request, &response).unwrap());
        }
        if n == 2 {
            entries.push(single("last"));
        }
    }
    entries.push(Entry::close(&chain, chain.calls(), chain.last()).unwrap());
    let signed: Vec<_> = entries.iter().map(|entry| entry.sign(&key)).collect();
    let path = folder.path().join("b");
    append(&OsDisk, &path, &key, &signed, Options::default(), &mut ()).unwrap();
    (folder, key)
}

fn stated() -> make::Stated {
    make::Stated {
        provider: "docker".into(),
        isolation: "kernel".into(),
        ..Default::default()
    }
}

/// A daemon whose n-th call of a session puts out n characters, and whose single
/// runs put out seven.
pub struct Daemon {
    pub chain: Mutex<Option<Chain>>,
    opened: Mutex<u32>,
}

impl Daemon {
    pub fn start() -> Arc<Daemon> {
        Arc::new(Daemon {
            chain: Mutex::new(None),
            opened: Mutex::new(0),
        })
    }

    pub fn reply(&self, seen: &Seen) -> Reply {
        match seen.procedure() {
            "Run" => Reply::proto(&answer_with(&seen.message(), output(7))),
            "OpenSession" => {
                let mut opened = self.opened.lock().unwrap();
                *opened += 1;
                let id = format!("{:032x}", *opened);
                *self.chain.lock().unwrap() = Some(Chain::of_session_id(&id));
                Reply::proto(&OpenSessionResponse {
                    session: ids::session_fingerprint(&id),
                    session_id: id,
                    sandbox: "docker".into(),
                    isolation: "kernel".into(),
                    ..Default::default()
                })
            }
            "SessionRun" => self.answer(seen, None),
            "CloseSession" => {
                let chain = self.chain.lock().unwrap().take().unwrap();
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

    pub fn answer(&self, seen: &Seen, length: Option<usize>) -> Reply {
        let mut chain = self.chain.lock().unwrap();
        let chain = chain.as_mut().unwrap();
        let call: RunRequest = seen.message::<SessionRunRequest>().into();
        let length = length.unwrap_or(chain.calls() as usize + 1);
        Reply::proto(&SessionRunResponse {
            run: Some(in_session(&call, chain, output(length))).into(),
            ..Default::default()
        })
    }

    /// An error with a checked record of a call without an answer.
    pub fn no_answer(&self, seen: &Seen) -> Reply {
        let mut chain = self.chain.lock().unwrap();
        let chain = chain.as_mut().unwrap();
        let call: RunRequest = seen.message::<SessionRunRequest>().into();
        let record = facts(&call, chain, |facts| {
            make::unanswered(facts, &stated(), Code::Internal)
        });
        chain.advance(&record).unwrap();
        let value = detail::to_base64(&UnansweredCall {
            record: MessageField::some(record),
        });
        Reply::error(
            500,
            &format!(
                r#"{{"code":"internal","details":[{{"type":"plimsoll.v1.UnansweredCall","value":"{value}"}}]}}"#
            ),
        )
    }
}

pub fn refused(reason: Reason) -> Reply {
    Reply::error(503, r#"{"code":"unavailable","message":"no"}"#)
        .header("plimsoll-not-dispatched", reason.name())
}

pub async fn honest() -> Fake {
    let daemon = Daemon::start();
    Fake::start(move |seen| daemon.reply(seen)).await
}

/// An honest daemon, but for the n-th call of a session.
pub async fn odd(n: u64, odd: impl Fn(&Daemon, &Seen) -> Reply + Send + Sync + 'static) -> Fake {
    let daemon = Daemon::start();
    Fake::start(move |seen| {
        let calls = daemon.chain.lock().unwrap().as_ref().map(Chain::calls);
        if seen.procedure() == "SessionRun" && calls == Some(n - 1) {
            return odd(&daemon, seen);
        }
        daemon.reply(seen)
    })
    .await
}
