//! A service that counts what reaches it and does as the request's code says.

use std::sync::{
    Mutex,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use plimsoll_daemon::call::{Answer, Call, CallError, Service};
use plimsoll_wire::{
    Code, Reason, Refusal,
    proto::{
        CloseSessionRequest, CloseSessionResponse, DescribeRequest, DescribeResponse, EnumValue,
        JavaScriptResult, OpenSessionRequest, OpenSessionResponse, RunRecord, RunRequest,
        RunResponse, SessionEnd, SessionEnded, SessionRunRequest, SessionRunResponse,
        run_request::Payload, run_response::Result as RunResult,
    },
};
use tokio::sync::watch;

/// What a panic says, and no answer may.
pub const SECRET: &str = "SECRET-of-the-panic";

/// What all methods but `Run` do, and `Run` with code `mode`.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Mode {
    #[default]
    Answer,
    Panic,
    Wait,
    Refuse,
}

pub struct Fake {
    pub mode: Mutex<Mode>,
    pub not_ready: AtomicBool,
    /// Calls that reached a handler.
    entered: watch::Sender<usize>,
    /// What calls that waited said of themselves.
    ends: watch::Sender<Vec<&'static str>>,
    /// Lets waiting calls go.
    release: watch::Sender<bool>,
    pub last: Mutex<Option<(Call, RunRequest)>>,
    pub ready_checks: AtomicUsize,
}

impl Default for Fake {
    fn default() -> Self {
        Fake {
            mode: Mutex::default(),
            not_ready: AtomicBool::new(false),
            entered: watch::channel(0).0,
            ends: watch::channel(Vec::new()).0,
            release: watch::channel(false).0,
            last: Mutex::default(),
            ready_checks: AtomicUsize::new(0),
        }
    }
}

impl Fake {
    /// How many calls reached a handler.
    pub fn entered(&self) -> usize {
        *self.entered.borrow()
    }

    /// Waits until so many calls have reached a handler.
    pub async fn until_entered(&self, count: usize) {
        let mut entered = self.entered.subscribe();
        super::in_time(entered.wait_for(|n| *n >= count))
            .await
            .unwrap();
    }

    /// Lets waiting calls finish with an answer.
    pub fn release(&self) {
        self.release.send_replace(true);
    }

    /// Forgets what calls said and holds the next ones back again.
    pub fn reset(&self) {
        self.release.send_replace(false);
        self.ends.send_modify(Vec::clear);
    }

    pub fn set(&self, mode: Mode) {
        *self.mode.lock().unwrap() = mode;
    }

    fn enter(&self) -> Mode {
        self.entered.send_modify(|n| *n += 1);
        *self.mode.lock().unwrap()
    }

    fn end(&self, how: &'static str) {
        self.ends.send_modify(|ends| ends.push(how));
    }

    /// Waits until a call has said this of itself.
    pub async fn until_ended(&self, how: &'static str) {
        let mut ends = self.ends.subscribe();
        let found = ends.wait_for(|ends| ends.contains(&how));
        super::in_time(found).await.unwrap();
    }

    pub fn ends(&self) -> Vec<&'static str> {
        self.ends.borrow().clone()
    }

    /// Waits for its release, its deadline or its caller's leaving.
    async fn wait(&self, call: &Call) -> Answer<()> {
        let released = || async {
            let mut release = self.release.subscribe();
            release.wait_for(|go| *go).await.map(drop)
        };
        let deadline = async {
            match call.deadline {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = released() => {
                self.end("released");
                Ok(())
            }
            () = deadline => {
                self.end("deadline");
                let text = "the deadline passed before the call finished";
                Err(CallError::failed(Code::DeadlineExceeded, text.into(), None))
            }
            () = call.caller_gone.cancelled() => {
                // It was told; whether it may go on from here is the question.
                self.end("told");
                let _ = released().await;
                self.end("ended after it was told");
                Err(CallError::failed(Code::Canceled, "gone".into(), None))
            }
        }
    }

    async fn obey(&self, mode: Mode, call: &Call) -> Answer<()> {
        match mode {
            Mode::Answer => Ok(()),
            Mode::Panic => panic!("{SECRET}"),
            Mode::Wait => self.wait(call).await,
            Mode::Refuse => Err(CallError::refused(&Refusal::new(
                Code::FailedPrecondition,
                Reason::Isolation,
                "the tier is below the floor",
            ))),
        }
    }
}

impl Service for Fake {
    async fn run(&self, call: Call, request: RunRequest) -> Answer<RunResponse> {
        let mode = self.enter();
        *self.last.lock().unwrap() = Some((call.clone(), request.clone()));
        let code = match request.payload {
            Some(Payload::Javascript(run)) => run.code,
            _ => String::new(),
        };
        match code.as_str() {
            "panic" => self.obey(Mode::Panic, &call).await?,
            "wait" => self.wait(&call).await?,
            "refuse" => self.obey(Mode::Refuse, &call).await?,
            // Sleeps on whatever happens, as a provider that ignores its caller.
            "stubborn" => {
                let mut release = self.release.subscribe();
                let _ = release.wait_for(|go| *go).await.map(drop);
                self.end("released");
            }
            "not found" => {
                let refusal = Refusal::new(Code::NotFound, Reason::Request, "no such session");
                return Err(
                    CallError::refused(&refusal).with_session_ended(SessionEnded {
                        reason: EnumValue::from(SessionEnd::SESSION_END_NOT_FOUND),
                        detail: "gone".into(),
                    }),
                );
            }
            "unanswered" => {
                return Err(CallError::failed(Code::Internal, "lost é%\n".into(), None)
                    .with_unanswered(RunRecord {
                        version: 3,
                        sequence: 7,
                        ..RunRecord::default()
                    }));
            }
            _ => self.obey(mode, &call).await?,
        }
        let stdout = match code.strip_prefix("bytes ").and_then(|n| n.parse().ok()) {
            Some(length) => vec![b'x'; length],
            None => code.into_bytes(),
        };
        Ok(RunResponse {
            sandbox: "fake".into(),
            result: Some(RunResult::Javascript(Box::new(JavaScriptResult {
                stdout,
                ..JavaScriptResult::default()
            }))),
            ..RunResponse::default()
        })
    }

    async fn describe(&self, call: Call, _: DescribeRequest) -> Answer<DescribeResponse> {
        let mode = self.enter();
        self.obey(mode, &call).await?;
        Ok(DescribeResponse {
            sandbox: "fake".into(),
            ..DescribeResponse::default()
        })
    }

    async fn open_session(&self, call: Call, _: OpenSessionRequest) -> Answer<OpenSessionResponse> {
        let mode = self.enter();
        self.obey(mode, &call).await?;
        Ok(OpenSessionResponse::default())
    }

    async fn session_run(&self, call: Call, _: SessionRunRequest) -> Answer<SessionRunResponse> {
        let mode = self.enter();
        self.obey(mode, &call).await?;
        Ok(SessionRunResponse::default())
    }

    async fn close_session(
        &self,
        call: Call,
        _: CloseSessionRequest,
    ) -> Answer<CloseSessionResponse> {
        let mode = self.enter();
        self.obey(mode, &call).await?;
        Ok(CloseSessionResponse::default())
    }

    async fn ready(&self) -> bool {
        self.ready_checks.fetch_add(1, Ordering::SeqCst);
        !self.not_ready.load(Ordering::SeqCst)
    }

    fn internal_error(&self, detail: &str) -> CallError {
        // A formatted panic may quote the request: not even the log gets it.
        assert!(detail.starts_with("panic"), "{detail}");
        assert!(!detail.contains(SECRET), "{detail}");
        let text = "internal error 0123456789abcdef".to_owned();
        CallError::failed(Code::Internal, text, None)
    }
}
