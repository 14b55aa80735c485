//! The bytes a runner is given.
#![allow(clippy::unwrap_used)]

use std::time::Duration;

use plimsoll_runner::{File, Plan, ReportKey};

#[test]
fn a_plan_has_the_members_a_runner_reads() {
    let key = ReportKey::from_bytes([0xab; 32]);
    let files = [File {
        path: "src/é.js".to_owned(),
        content: "a\0\u{2028}\"".to_owned(),
    }];
    let steps = ["node src/é.js".to_owned()];
    let artifacts = ["out".to_owned()];
    let plan = Plan {
        files: &files,
        steps: &steps,
        step_timeout: Duration::from_millis(1500),
        artifacts: &artifacts,
        host_client: None,
        env: &[],
        key: &key,
    };
    assert_eq!(
        std::str::from_utf8(&plan.to_json().unwrap()).unwrap(),
        format!(
            "{{\"files\":[{{\"path\":\"src/é.js\",\"content\":\"a\\u0000\u{2028}\\\"\"}}],\"steps\":[\"node src/é.js\"],\
             \"stepTimeoutMs\":1500,\"artifacts\":[\"out\"],\"reportKey\":\"{}\"}}",
            "ab".repeat(32)
        )
    );
    let env = ["A=b".to_owned()];
    let more = Plan {
        host_client: Some("x"),
        env: &env,
        step_timeout: Duration::ZERO,
        ..plan
    };
    let value: serde_json::Value = serde_json::from_slice(&more.to_json().unwrap()).unwrap();
    assert_eq!(value["hostSDK"], "x");
    assert_eq!(value["env"][0], "A=b");
    assert_eq!(
        value["stepTimeoutMs"], 1,
        "a budget of nothing would be refused"
    );
}

#[test]
fn a_key_is_fresh_and_says_nothing() {
    let (one, other) = (ReportKey::fresh().unwrap(), ReportKey::fresh().unwrap());
    let text = |key| {
        let plan = Plan {
            files: &[],
            steps: &[],
            step_timeout: Duration::from_secs(1),
            artifacts: &[],
            host_client: None,
            env: &[],
            key,
        };
        plan.to_json().unwrap()
    };
    assert_ne!(text(&one), text(&other));
    assert_eq!(format!("{one:?}"), "ReportKey(..)");
}
