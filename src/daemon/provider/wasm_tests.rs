use super::*;
use crate::{
    admission::{Capacity, Limiter, Limits},
    provider::{HostAnswer, Teardown},
};
use plimsoll_wire::{
    Rule,
    proto::{JavaScriptRun, ProjectRun, SoftwareRule},
};
use tokio_util::sync::CancellationToken;

fn wasm() -> Wasm {
    Wasm::new(Resources::default(), 2)
}

fn snippet(code: &str) -> RunSpec {
    RunSpec {
        payload: Payload::Javascript(Box::new(JavaScriptRun {
            code: code.to_owned(),
            ..Default::default()
        })),
        timeout: None,
        floor: None,
        rule: Rule::default(),
    }
}

fn project(steps: &[&str]) -> RunSpec {
    RunSpec {
        payload: Payload::Project(Box::new(ProjectRun {
            steps: steps.iter().map(|&s| s.to_owned()).collect(),
            ..Default::default()
        })),
        ..snippet("1")
    }
}

fn slot() -> Capacity {
    let limiter = Limiter::new(Limits {
        max_concurrent: 1,
        per_key: 0,
        rate_per_min: 0,
        burst: 0,
    });
    limiter.admit(&Arc::from("a"), Instant::now()).unwrap()
}

fn context() -> RunContext {
    RunContext {
        deadline: Instant::now() + Duration::from_secs(60),
        caller_gone: CancellationToken::new(),
        capacity: slot(),
        grant: None,
        teardown: Teardown::default(),
    }
}

fn script(output: RunOutput) -> ScriptOutput {
    match output.output {
        Output::Javascript(script) => script,
        other => panic!("another kind: {other:?}"),
    }
}

#[tokio::test]
async fn a_snippet_runs() {
    let wasm = wasm();
    wasm.preflight().await.unwrap();
    let output = wasm
        .run(snippet("console.log('wasm', 6*7)"), context())
        .await
        .unwrap();
    assert_eq!(output.tier, Some(Tier::Process));
    assert!(output.environment.starts_with("quickjs-wasm:sha256:"));
    assert_eq!(output.software_identity, "");
    let script = script(output);
    assert_eq!(
        (script.stdout.bytes.as_slice(), script.exit_code),
        (&b"wasm 42\n"[..], 0)
    );
}

#[tokio::test]
async fn refusals_in_order_and_marked() {
    let wasm = wasm();
    let floored = |spec: RunSpec| RunSpec {
        floor: Some(Tier::Kernel),
        ..spec
    };
    let rule = Rule::parse(Some(&SoftwareRule {
        mode: "exact".into(),
        identities: vec!["a:1".into()],
    }))
    .unwrap();
    for (spec, kind, reason) in [
        (floored(snippet("")), Kind::InvalidRequest, Reason::Request),
        (floored(project(&[])), Kind::InvalidRequest, Reason::Request),
        (floored(snippet("1")), Kind::Isolation, Reason::Isolation),
        (floored(project(&["x"])), Kind::Isolation, Reason::Isolation),
        (project(&["x"]), Kind::Unsupported, Reason::Unsupported),
        (
            RunSpec {
                rule,
                ..snippet("1")
            },
            Kind::Software,
            Reason::Environment,
        ),
    ] {
        let error = wasm.run(spec, context()).await.unwrap_err();
        assert_eq!((error.kind(), error.mark()), (kind, Some(reason)));
    }
}

#[tokio::test]
async fn the_budget_ends_a_run_as_a_result() {
    let spec = RunSpec {
        timeout: Some(Duration::from_millis(50)),
        ..snippet("console.log('before'); for(;;);")
    };
    let script = script(wasm().run(spec, context()).await.unwrap());
    assert!(script.timed_out);
    assert_eq!(
        (script.exit_code, script.stdout.bytes.as_slice()),
        (124, &b"before\n"[..])
    );
}

#[tokio::test]
async fn the_calls_deadline_ends_a_run_as_an_error() {
    let wasm = wasm();
    wasm.preflight().await.unwrap();
    let soon = RunContext {
        deadline: Instant::now() + Duration::from_millis(50),
        ..context()
    };
    let error = wasm.run(snippet("for(;;);"), soon).await.unwrap_err();
    assert_eq!((error.kind(), error.mark()), (Kind::Deadline, None));
    let past = RunContext {
        deadline: Instant::now(),
        ..context()
    };
    let error = wasm.run(snippet("1"), past).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Deadline, Some(Reason::Capacity))
    );
}

#[tokio::test]
async fn a_caller_that_goes_ends_the_run() {
    let wasm = wasm();
    wasm.preflight().await.unwrap();
    let context = context();
    let gone = context.caller_gone.clone();
    let run = wasm.run(snippet("for(;;);"), context);
    let ((), answer) = tokio::join!(
        async {
            tokio::task::yield_now().await;
            gone.cancel();
        },
        run
    );
    assert_eq!(answer.unwrap_err().kind(), Kind::Canceled);

    let context = self::context();
    context.caller_gone.cancel();
    let error = wasm.run(snippet("1"), context).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Canceled, Some(Reason::Capacity))
    );
}

#[tokio::test]
async fn an_interpreter_that_cannot_start_fails_preflight_and_runs() {
    let tiny = Wasm::new(
        Resources {
            memory_mb: 1,
            ..Resources::default()
        },
        1,
    );
    let error = tiny.preflight().await.unwrap_err();
    assert_eq!(error.setting(), Some("SANDBOX_MEMORY_MB"));
    assert!(error.full_text().contains("1 MiB"), "{}", error.full_text());
    let error = tiny.run(snippet("1"), context()).await.unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Internal, Some(Reason::Environment))
    );
}

struct Echo;

impl HostApi for Echo {
    fn global(&self) -> &str {
        "api"
    }

    fn routes(&self) -> &[String] {
        static ROUTES: OnceLock<[String; 1]> = OnceLock::new();
        ROUTES.get_or_init(|| ["GET /things".to_owned()])
    }

    fn preamble(&self) -> &str {
        ""
    }

    fn call(&self, call: HostCall) -> BoxFuture<'_, HostAnswer> {
        Box::pin(async move {
            HostAnswer {
                status: 200,
                body: format!("\"{} {}\"", call.method, call.path).into_bytes(),
            }
        })
    }

    fn end(&self) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lent_host_api_is_called() {
    let granted = RunContext {
        grant: Some(Arc::new(Echo)),
        ..context()
    };
    let code = "console.log(await api.get('/things'))";
    let script = script(wasm().run(snippet(code), granted).await.unwrap());
    assert_eq!(
        String::from_utf8_lossy(&script.stdout.bytes),
        "GET /things\n",
        "{}",
        String::from_utf8_lossy(&script.stderr.bytes)
    );
}
