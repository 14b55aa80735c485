//! The audit line, byte for byte, and what it never holds.

use std::time::Duration;

use plimsoll_wire::{
    Reason,
    proto::{JavaScriptRun, ModuleRow, ModuleRun, ProjectFile, ProjectOutcome, ProjectRun},
};

use super::fake::{Fake, Rig, answering, call, output, request, script, snippet};
use crate::{
    call::Service,
    provider::{
        Answer, Kind, Metering, ModuleOutput, Output, ProjectOutput, ProviderError, RowOutput,
        RunOutput, ScriptOutput, StepOutput, Stream,
    },
};

const HEAD: &str = r#"{"time":"2025-12-17T19:33:20.123+00:00","level":"#;

/// The lines of one run with the duration masked.
async fn lines(
    answer: impl Fn() -> Answer<RunOutput> + Send + Sync + 'static,
    caller: Option<&str>,
    request: plimsoll_wire::proto::RunRequest,
) -> Vec<String> {
    let rig = Rig::new(Fake {
        behaviour: answering(answer),
        ..Fake::default()
    });
    let _ = rig.service.run(call(caller), request).await;
    rig.log.lines().iter().map(|line| masked(line)).collect()
}

fn masked(line: &str) -> String {
    let line = line.strip_prefix(HEAD).expect("a head");
    let (before, after) = line.split_once(r#""duration_ms":"#).unwrap_or((line, ""));
    if after.is_empty() {
        return before.to_owned();
    }
    let rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    format!(r#"{before}"duration_ms":N{rest}"#)
}

fn project() -> ProjectRun {
    ProjectRun {
        files: vec![ProjectFile {
            path: "CANARY_NAME.py".into(),
            content: "CANARY_CONTENT".into(),
        }],
        steps: vec!["CANARY_STEP".into(), "b".into()],
        ..Default::default()
    }
}

fn module() -> ModuleRun {
    ModuleRun {
        model: "pump".into(),
        rows: vec![
            ModuleRow {
                values: vec![4.25, 2.0]
            };
            3
        ],
        end_time: 10.0,
        step: 4.0,
    }
}

#[tokio::test]
async fn snippet_lines() {
    let sent = request(JavaScriptRun {
        code: "CANARY_CODE".into(),
        ..Default::default()
    });
    let answer = || {
        Ok(script(ScriptOutput {
            stdout: Stream::capped(b"CANARY_OUT".to_vec(), Stream::CAP),
            exit_code: 124,
            timed_out: true,
            ..ScriptOutput::default()
        }))
    };
    assert_eq!(
        lines(answer, Some("gateway"), sent.clone()).await,
        [concat!(
            r#""INFO","msg":"code run","op":"javascript","caller":"gateway","code_bytes":11,"#,
            r#""grant_profile":"","sandbox":"docker","isolation":"container","#,
            r#""exit_code":124,"timed_out":true,"duration_ms":N}"#
        )]
    );
    let refuse = || {
        Err(ProviderError::new(Kind::Unsupported, "not here").not_dispatched(Reason::Unsupported))
    };
    let mut traced = sent;
    traced.trace_id = "req-7:a".into();
    assert_eq!(
        lines(refuse, None, traced).await,
        [concat!(
            r#""ERROR","msg":"code run failed","op":"javascript","caller":"anon","code_bytes":11,"#,
            r#""grant_profile":"","sandbox":"docker","isolation":"container","duration_ms":N,"#,
            r#""error":"not here","trace_id":"req-7:a"}"#
        )]
    );
}

#[tokio::test]
async fn project_lines() {
    let answer = || {
        Ok(output(Output::Project(ProjectOutput {
            outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED,
            outcome_detail: Vec::new(),
            steps: vec![StepOutput {
                command: b"CANARY_STEP".to_vec(),
                script: ScriptOutput {
                    stderr: Stream::capped(b"CANARY_ERR".to_vec(), Stream::CAP),
                    exit_code: 2,
                    ..ScriptOutput::default()
                },
                duration_ms: 3,
            }],
            artifacts: Vec::new(),
            artifacts_truncated: false,
        })))
    };
    assert_eq!(
        lines(answer, Some("a"), request(project())).await,
        [concat!(
            r#""INFO","msg":"project run","op":"project","caller":"a","files":1,"steps":2,"#,
            r#""total_bytes":14,"grant_profile":"","sandbox":"docker","isolation":"container","#,
            r#""outcome":"completed","outcome_detail":"","steps_ran":1,"exit_code":2,"#,
            r#""timed_out":false,"duration_ms":N}"#
        )]
    );
    let failed = lines(
        || Err(ProviderError::deadline()),
        Some("a"),
        request(project()),
    )
    .await;
    assert_eq!(
        failed,
        [concat!(
            r#""ERROR","msg":"project run failed","op":"project","caller":"a","files":1,"steps":2,"#,
            r#""total_bytes":14,"grant_profile":"","sandbox":"docker","isolation":"container","#,
            r#""duration_ms":N,"error":"the deadline passed before the call finished"}"#
        )]
    );
}

#[tokio::test]
async fn module_lines() {
    let answer = || {
        Ok(output(Output::Module(ModuleOutput {
            outcome: ProjectOutcome::PROJECT_OUTCOME_SETUP_FAILED,
            outcome_detail: b"unknown model".to_vec(),
            runs: vec![RowOutput::default()],
            width: 2,
            stdout: b"CANARY_OUT".to_vec(),
            stderr: Vec::new(),
        })))
    };
    assert_eq!(
        lines(answer, Some("a"), request(module())).await,
        [concat!(
            r#""INFO","msg":"module run","op":"module","caller":"a","model":"pump","rows":3,"#,
            r#""row_width":2,"max_steps":4,"sandbox":"docker","isolation":"container","#,
            r#""outcome":"setup_failed","outcome_detail":"unknown model","runs":1,"width":2,"#,
            r#""duration_ms":N}"#
        )]
    );
    let failed = lines(
        || Err(ProviderError::canceled()),
        Some("a"),
        request(module()),
    )
    .await;
    assert_eq!(
        failed,
        [concat!(
            r#""ERROR","msg":"module run failed","op":"module","caller":"a","model":"pump","rows":3,"#,
            r#""row_width":2,"max_steps":4,"sandbox":"docker","isolation":"container","#,
            r#""duration_ms":N,"error":"the call was canceled before it finished"}"#
        )]
    );
}

/// Of a project that ran no step there is no exit code to tell.
#[tokio::test]
async fn a_project_without_a_step() {
    let answer = || {
        Ok(output(Output::Project(ProjectOutput {
            outcome: ProjectOutcome::PROJECT_OUTCOME_TIMED_OUT,
            outcome_detail: b"the time was over".to_vec(),
            steps: Vec::new(),
            artifacts: Vec::new(),
            artifacts_truncated: false,
        })))
    };
    assert_eq!(
        lines(answer, Some("a"), request(project())).await,
        [concat!(
            r#""INFO","msg":"project run","op":"project","caller":"a","files":1,"steps":2,"#,
            r#""total_bytes":14,"grant_profile":"","sandbox":"docker","isolation":"container","#,
            r#""outcome":"timed_out","outcome_detail":"the time was over","steps_ran":0,"#,
            r#""exit_code":0,"timed_out":false,"duration_ms":N}"#
        )]
    );
}

/// On a provider billed by the second, with everything that can be said.
#[tokio::test]
async fn every_key_is_in_its_place() {
    let head = concat!(
        r#""op":"javascript","caller":"a","code_bytes":1,"grant_profile":"","paid_seconds":93,"#,
        r#""teardown_gave_up":true,"sandbox":"docker","isolation":"container","#,
    );
    for (fails, line) in [
        (
            false,
            r#""INFO","msg":"code run",HEAD"exit_code":0,"timed_out":false,"duration_ms":N,"trace_id_rejected":true}"#,
        ),
        (
            true,
            r#""ERROR","msg":"code run failed",HEAD"duration_ms":N,"error":"no claim is free","trace_id_rejected":true}"#,
        ),
    ] {
        let rig = Rig::new(Fake {
            metering: Some(Metering {
                teardown: Duration::from_secs(33),
                default_timeout: Duration::from_secs(30),
            }),
            behaviour: Box::new(move |_, context| {
                // The whole reservation is charged, whatever the run took.
                context.teardown.give_up();
                Box::pin(async move {
                    if fails {
                        return Err(ProviderError::new(Kind::AtCapacity, "no claim is free"));
                    }
                    Ok(script(ScriptOutput::default()))
                })
            }),
            ..Fake::default()
        });
        let mut sent = snippet("1");
        sent.timeout_ms = 60_000;
        sent.trace_id = "a/b".into();
        let answer = rig.service.run(call(Some("a")), sent).await;
        assert_eq!(answer.is_err(), fails);
        let seen: Vec<String> = rig.log.lines().iter().map(|line| masked(line)).collect();
        assert_eq!(seen, [line.replace("HEAD", head)]);
    }
}

#[tokio::test]
async fn a_teardown_given_up_is_said() {
    let rig = Rig::new(Fake {
        behaviour: Box::new(|_, context| {
            context.teardown.give_up();
            context.teardown.out_of_memory(256);
            Box::pin(async { Ok(script(ScriptOutput::default())) })
        }),
        ..Fake::default()
    });
    rig.service.run(call(None), snippet("1")).await.unwrap();
    assert!(
        rig.log
            .text()
            .contains(r#""grant_profile":"","teardown_gave_up":true,"oom":true,"oom_limit_mb":256,"sandbox":"docker""#)
    );
}

#[tokio::test]
async fn a_bad_trace_id_is_dropped_whole() {
    for id in ["/v1/users/42", &"t".repeat(65), "a\nb", "a b", "é"] {
        let rig = Rig::new(Fake::default());
        let mut sent = snippet("1");
        sent.trace_id = id.to_owned();
        rig.service
            .run(call(None), sent)
            .await
            .expect("the run happens");
        let text = rig.log.text();
        assert!(text.ends_with(",\"trace_id_rejected\":true}\n"), "{text}");
        assert!(
            !text.contains(&id[..2]) || id == "a b" || id == "a\nb",
            "{text}"
        );
        assert!(!text.contains("\"trace_id\""), "{text}");
    }
}

/// Nothing of a request or a result reaches any line, whatever happens.
#[tokio::test]
async fn no_canary_in_any_line() {
    let outcomes: [fn() -> Answer<RunOutput>; 4] = [
        || {
            Ok(script(ScriptOutput {
                stdout: Stream::capped(b"CANARY".to_vec(), Stream::CAP),
                ..ScriptOutput::default()
            }))
        },
        || Err(ProviderError::canceled()),
        || Err(ProviderError::internal("engine gone")),
        || panic!("choked on {}", std::hint::black_box("CANARY".to_owned())),
    ];
    let mut silent = snippet("CANARY");
    silent.trace_id = "CANARY/1".into();
    for outcome in outcomes {
        for sent in [silent.clone(), request(project()), request(module())] {
            for line in lines(outcome, Some("a"), sent).await {
                assert!(!line.contains("CANARY"), "{line}");
                assert!(!line.contains("4.25"), "{line}");
            }
        }
    }
}
