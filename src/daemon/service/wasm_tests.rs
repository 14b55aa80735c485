//! The service over the real interpreter.

use std::sync::Arc;

use plimsoll_record::check;
use plimsoll_wire::{
    Code, Reason,
    proto::{DescribeRequest, ProjectRun, RunRequest, run_response::Result as Wire},
};

use super::{
    RunService,
    fake::{call, request, snippet},
};
use crate::{
    admission::{Limiter, Limits},
    call::Service,
    log::{
        Format,
        test_support::{self, Kept},
    },
    provider::{Provider, Resources, Wasm},
};

fn service() -> (RunService, Kept) {
    let (log, kept) = test_support::log(Format::Json);
    let provider = Arc::new(Wasm::new(Resources::default(), 2));
    let limiter = Limiter::new(Limits {
        max_concurrent: 2,
        per_key: 0,
        rate_per_min: 0,
        burst: 0,
    });
    let tier = provider.tier();
    (RunService::new(provider, limiter, log, tier), kept)
}

#[tokio::test]
async fn describes_the_embedded_interpreter() {
    let (service, _) = service();
    let stated = service
        .describe(call(None), DescribeRequest {})
        .await
        .unwrap();
    assert_eq!((&*stated.sandbox, &*stated.isolation), ("wasm", "process"));
    assert!(stated.supports_javascript_grants && !stated.supports_project);
    let javascript = stated.javascript_environment.as_option().unwrap();
    assert_eq!(javascript.max_timeout_ms, 30_000);
    let digest = javascript
        .identity
        .strip_prefix("quickjs-wasm:sha256:")
        .unwrap();
    assert_eq!(digest.len(), 64);
    assert!(javascript.software_identity.is_empty() && javascript.languages.is_empty());
    let project = stated.project_environment.as_option().unwrap();
    assert_eq!((&*project.identity, project.max_timeout_ms), ("", 0));
}

#[tokio::test]
async fn runs_are_recorded() {
    let (service, kept) = service();
    let sent = snippet("console.log('x'.repeat(70_000)); throw new Error('CANARY')");
    let response = service.run(call(Some("a")), sent.clone()).await.unwrap();
    check::single_run(&sent, &response).expect("the record checks");
    let Some(Wire::Javascript(result)) = &response.result else {
        panic!("another kind")
    };
    assert_eq!((result.exit_code, result.stdout.len()), (1, 65_536));
    assert!(result.stdout_truncated);
    assert!(!kept.text().contains("CANARY"));
}

#[tokio::test]
async fn refusals_name_the_first_fault() {
    let (service, _) = service();
    let project = |floor: &str| RunRequest {
        minimum_isolation: floor.to_owned(),
        ..request(ProjectRun {
            steps: vec!["x".into()],
            ..Default::default()
        })
    };
    let vm = service.run(call(None), project("vm")).await.unwrap_err();
    assert_eq!(vm.not_dispatched(), Some(Reason::Isolation));
    let none = service.run(call(None), project("")).await.unwrap_err();
    assert_eq!(none.code(), Code::Unimplemented);
    assert_eq!(none.not_dispatched(), Some(Reason::Unsupported));
}
