//! What the test files share. Each uses a part of it.
#![allow(dead_code, clippy::unwrap_used)]

use std::sync::{Arc, LazyLock, Mutex};
use std::time::{Duration, Instant};

use plimsoll_quickjs::{
    CancelToken, Grant, HostCalls, HostRequest, HostResponse, Interpreter, Outcome, Settings,
};

/// One interpreter a test binary, with room for tests that run side by side.
pub static INTERPRETER: LazyLock<Interpreter> = LazyLock::new(|| {
    Interpreter::new(Settings {
        memory_mb: 256,
        max_instances: 64,
    })
    .unwrap()
});

pub const SECOND: Duration = Duration::from_secs(1);

/// Runs a snippet that has all the time a run can have.
pub fn run(code: &str) -> Outcome {
    run_for(code, Duration::from_secs(30))
}

pub fn run_for(code: &str, timeout: Duration) -> Outcome {
    INTERPRETER
        .run(code, timeout, &CancelToken::new(), None)
        .unwrap()
}

/// Standard output of a snippet that must end well.
pub fn output(code: &str) -> String {
    let outcome = run(code);
    assert_eq!(
        (outcome.exit_code, stderr(&outcome).as_str()),
        (0, ""),
        "{code}"
    );
    String::from_utf8(outcome.stdout).unwrap()
}

/// Standard error of a snippet that must end with an uncaught fault.
pub fn fault(code: &str) -> String {
    let outcome = run(code);
    assert_eq!(outcome.exit_code, 1, "{code}: {}", stderr(&outcome));
    stderr(&outcome)
}

pub fn stderr(outcome: &Outcome) -> String {
    String::from_utf8(outcome.stderr.clone()).unwrap()
}

/// A call as a fake host saw it: method, path, body.
pub type Seen = (String, String, Option<String>);

/// A host that notes every call and answers with a function.
pub struct Fake<F> {
    pub seen: Mutex<Vec<Seen>>,
    answer: F,
}

impl<F: Fn(HostRequest<'_>, Instant) -> (u16, String) + Send + Sync + 'static> Fake<F> {
    pub fn new(answer: F) -> Arc<Self> {
        Arc::new(Self {
            seen: Mutex::default(),
            answer,
        })
    }
}

impl<F: Fn(HostRequest<'_>, Instant) -> (u16, String) + Send + Sync> HostCalls for Fake<F> {
    fn call(&self, request: HostRequest<'_>, deadline: Instant) -> HostResponse {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let seen = (
            request.method.into(),
            request.path.into(),
            request.body.map(text),
        );
        self.seen.lock().unwrap().push(seen);
        let (status, body) = (self.answer)(request, deadline);
        HostResponse {
            status,
            body: body.into(),
        }
    }
}

pub fn grant(allow: &[&str], calls: Arc<dyn HostCalls>) -> Grant {
    let allow = allow.iter().map(ToString::to_string).collect();
    Grant {
        global: "host".into(),
        allow,
        preamble: String::new(),
        calls,
    }
}

pub fn run_granted(code: &str, grant: &Grant) -> Outcome {
    INTERPRETER
        .run(
            code,
            Duration::from_secs(30),
            &CancelToken::new(),
            Some(grant),
        )
        .unwrap()
}
