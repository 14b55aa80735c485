//! Runs that are dispatched: answers, records, failures, capacity.

use std::{sync::Arc, time::Duration};

use plimsoll_record::{check, request_digest};
use plimsoll_wire::{
    Code, Kind as PayloadKind, Reason, Tier,
    proto::{
        DescribeRequest, ModuleRow, ModuleRun, ProjectOutcome, ProjectRun,
        run_response::Result as Wire,
    },
};

use super::fake::{Fake, Rig, answering, call, output, received, request, script, snippet};
use crate::{
    admission::Limits,
    call::Service,
    provider::{
        Artifact, Disabled, Environment, ModuleOutput, Output, ProjectOutput, ProviderError,
        Resources, RowOutput, ScriptOutput, StepOutput, Stream,
    },
};

#[tokio::test]
async fn a_result_with_any_exit_code_is_an_answer() {
    let fake = Fake {
        behaviour: answering(|| {
            Ok(script(ScriptOutput {
                stdout: Stream::capped(vec![b'x'; 70_000], Stream::CAP),
                stderr: Stream::capped(vec![0xff, 0xfe], Stream::CAP),
                exit_code: 3,
                timed_out: false,
            }))
        }),
        ..Fake::default()
    };
    let rig = Rig::new(fake);
    let sent = snippet("process.exit(3)");
    let response = rig
        .service
        .run(call(Some("a")), sent.clone())
        .await
        .unwrap();
    let Some(Wire::Javascript(result)) = &response.result else {
        panic!("another kind")
    };
    assert_eq!(result.exit_code, 3);
    assert_eq!(result.stdout, vec![b'x'; 65_536]);
    assert!(result.stdout_truncated && !result.stderr_truncated);
    assert_eq!(result.stderr, [0xff, 0xfe]);
    assert_eq!(
        (&*response.sandbox, &*response.isolation),
        ("docker", "container")
    );

    let record = response.record.as_option().unwrap();
    assert_eq!(record.version, 2);
    assert_eq!(record.request_sha256, request_digest(&sent).to_hex());
    assert_eq!(record.started_unix_ms, crate::time::unix_ms(received()));
    assert!(record.ended_unix_ms >= record.started_unix_ms);
    check::single_run(&sent, &response).expect("the record checks");
}

#[tokio::test]
async fn text_is_repaired_and_nans_are_canonical_before_the_record() {
    let fake = Fake {
        behaviour: Box::new(|spec, _| {
            let made = match spec.payload.kind() {
                PayloadKind::Project => Output::Project(ProjectOutput {
                    outcome: ProjectOutcome::PROJECT_OUTCOME_PROTOCOL_ERROR,
                    outcome_detail: b"bad \xff\xfe\xff end".to_vec(),
                    steps: vec![StepOutput {
                        command: b"echo \xff".to_vec(),
                        script: ScriptOutput::default(),
                        duration_ms: 4,
                    }],
                    artifacts: vec![Artifact {
                        path: b"a\xff".to_vec(),
                        content: vec![0xff],
                    }],
                    artifacts_truncated: true,
                }),
                _ => Output::Module(ModuleOutput {
                    outcome: ProjectOutcome::PROJECT_OUTCOME_COMPLETED,
                    outcome_detail: Vec::new(),
                    runs: vec![RowOutput {
                        status: 1,
                        outputs: vec![-0.0, f64::from_bits(0xfff8_0000_0000_0001), f64::INFINITY],
                    }],
                    width: 3,
                    stdout: Vec::new(),
                    stderr: Vec::new(),
                }),
            };
            Box::pin(async move { Ok(output(made)) })
        }),
        ..Fake::default()
    };
    let rig = Rig::new(fake);
    let sent = request(ProjectRun {
        steps: vec!["x".into()],
        ..Default::default()
    });
    let response = rig.service.run(call(None), sent.clone()).await.unwrap();
    check::single_run(&sent, &response).expect("the record checks");
    let Some(Wire::Project(project)) = response.result else {
        panic!("another kind")
    };
    assert_eq!(project.outcome_detail, "bad \u{fffd} end");
    assert_eq!(project.steps[0].command, "echo \u{fffd}");
    assert_eq!(project.artifacts[0].path, "a\u{fffd}");
    assert_eq!(project.artifacts[0].content, [0xff]);

    let sent = request(ModuleRun {
        model: "m".into(),
        rows: vec![ModuleRow { values: vec![1.0] }],
        end_time: 1.0,
        step: 1.0,
    });
    let response = rig.service.run(call(None), sent.clone()).await.unwrap();
    check::single_run(&sent, &response).expect("the record checks");
    let whole = response.clone();
    let Some(Wire::Module(module)) = response.result else {
        panic!("another kind")
    };
    let bits: Vec<u64> = module.runs[0].outputs.iter().map(|v| v.to_bits()).collect();
    assert_eq!(bits[0], 1 << 63);
    assert_eq!(bits[1], 0x7ff8_0000_0000_0000);

    // The record holds for what a caller reads from JSON, too.
    let text = plimsoll_wire::json::write(&whole).unwrap();
    let outputs: serde_json::Value = serde_json::from_str(&text).unwrap();
    let outputs = &outputs["module"]["runs"][0]["outputs"];
    assert_eq!(outputs[0].as_f64().map(f64::to_bits), Some(1 << 63));
    assert_eq!(
        (&outputs[1], &outputs[2]),
        (&"NaN".into(), &"Infinity".into())
    );
    let read = plimsoll_wire::json::read(text.as_bytes()).unwrap();
    check::single_run(&sent, &read).expect("the record checks");
}

#[tokio::test]
async fn identities_reported_and_stated() {
    let stated = Environment {
        identity: "oci-index@sha256:stated".into(),
        software_identity: "oci-manifest:stated".into(),
        ..Environment::default()
    };
    let rig = Rig::new(Fake {
        environments: [("javascript", stated)].into(),
        ..Fake::default()
    });
    let response = rig.service.run(call(None), snippet("1")).await.unwrap();
    assert_eq!(response.environment, "oci-index@sha256:stated");
    assert_eq!(response.software_identity, "", "never what Describe said");
}

#[tokio::test]
async fn timeouts_are_clamped_and_the_digest_covers_what_was_sent() {
    let rig = Rig::new(Fake::default());
    for (sent, seen) in [
        (0, None),
        (-1, None),
        (1500, Some(Duration::from_millis(1500))),
        (400_000, Some(Duration::from_secs(300))),
        (i32::MAX, Some(Duration::from_secs(300))),
    ] {
        let mut request = snippet("1");
        request.timeout_ms = sent;
        let digest = request_digest(&request).to_hex();
        let response = rig.service.run(call(None), request).await.unwrap();
        let spec = rig.fake.specs.lock().unwrap().pop().unwrap();
        assert_eq!(spec.timeout, seen, "{sent}");
        assert_eq!(response.record.as_option().unwrap().request_sha256, digest);
    }
}

#[tokio::test]
async fn describe_states_the_provider() {
    let environment = Environment {
        identity: "oci-index@sha256:aa".into(),
        software_identity: "oci-manifest:linux/amd64@sha256:bb".into(),
        ceiling: Duration::from_secs(30),
        languages: vec!["javascript".into()],
    };
    let long = Environment {
        ceiling: Duration::from_secs(3000),
        ..Environment::default()
    };
    let rig = Rig::new(Fake {
        environments: [("javascript", environment), ("project", long)].into(),
        ..Fake::default()
    });
    *rig.fake.tier.lock().unwrap() = None;
    let stated = rig
        .service
        .describe(call(None), DescribeRequest {})
        .await
        .unwrap();
    assert_eq!(
        (&*stated.sandbox, &*stated.isolation),
        ("docker", "unknown")
    );
    assert_eq!(stated.protocol, 3);
    assert!(stated.supports_project && stated.supports_module && !stated.supports_sessions);
    let javascript = stated.javascript_environment.as_option().unwrap();
    assert_eq!(javascript.max_timeout_ms, 30_000);
    assert_eq!(javascript.languages, ["javascript"]);
    assert_eq!(
        stated
            .project_environment
            .as_option()
            .unwrap()
            .max_timeout_ms,
        300_000
    );
    assert!(stated.module_environment.is_set());
    assert_eq!(stated.resources.as_option().unwrap().memory_mb, 128);
    assert!(stated.session_environment.is_unset());
}

#[tokio::test]
async fn a_disabled_daemon_refuses() {
    let (log, _) = crate::log::test_support::log(crate::log::Format::Json);
    let limiter = crate::admission::Limiter::new(Limits {
        max_concurrent: 1,
        per_key: 0,
        rate_per_min: 0,
        burst: 0,
    });
    let provider = Arc::new(Disabled::new(Resources::default()));
    let service = super::RunService::new(provider, limiter, log, Some(Tier::None));
    let error = service.run(call(None), snippet("1")).await.unwrap_err();
    assert_eq!(error.code(), Code::FailedPrecondition);
    assert_eq!(error.not_dispatched(), Some(Reason::Unsupported));
    assert!(service.ready().await);
    let stated = service
        .describe(call(None), DescribeRequest {})
        .await
        .unwrap();
    assert_eq!((&*stated.sandbox, &*stated.isolation), ("disabled", "none"));
}

#[tokio::test]
async fn readiness_never_says_why_and_logs_once() {
    let rig = Rig::new(Fake::default());
    assert!(rig.service.ready().await);
    *rig.fake.preflight.lock().unwrap() = Some(ProviderError::internal("dial /run/docker.sock"));
    for _ in 0..100 {
        assert!(!rig.service.ready().await);
    }
    let lines = rig.log.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert!(
        lines[0].contains(r#""msg":"readiness check failed","provider":"docker","error":"dial"#)
    );
}

#[tokio::test]
async fn upkeep_proves_a_lapsed_tier_again() {
    let rig = Rig::new(Fake::default());
    rig.service.upkeep().await;
    assert_eq!(
        rig.fake
            .preflights
            .load(std::sync::atomic::Ordering::SeqCst),
        0
    );
    *rig.fake.tier.lock().unwrap() = None;
    rig.service.upkeep().await;
    assert_eq!(*rig.fake.tier.lock().unwrap(), Some(Tier::Container));
    assert_eq!(rig.log.text(), "");

    *rig.fake.tier.lock().unwrap() = Some(Tier::Process);
    *rig.fake.preflight.lock().unwrap() = Some(ProviderError::internal("gone"));
    *rig.fake.orphans.lock().unwrap() = Ok(2);
    rig.service.upkeep().await;
    let lines = rig.log.lines();
    assert!(lines[0].contains(
        r#""provider":"docker","isolation":"process","proven":"container","error":"gone""#
    ));
    assert!(lines[1].contains(r#""count":2"#));
}
