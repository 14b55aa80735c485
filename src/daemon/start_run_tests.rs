//! From variables to the exit status, with the provider they choose.

use super::{Exit, run};
use crate::{
    config::Environment,
    log::{
        Format,
        test_support::{self, Kept},
    },
};

/// The whole of [`run`], with the provider the variables choose.
async fn run_from(variables: &[(&str, &str)]) -> (Exit, Kept) {
    let (log, kept) = test_support::log(Format::Json);
    let metrics = [("PLIMSOLL_METRICS_ADDR", "127.0.0.1:0")];
    let variables = metrics.iter().chain(variables);
    let variables = variables.map(|(n, v)| (n.into(), v.into()));
    // It is told to stop as soon as it serves.
    let seen = kept.clone();
    let stop = |_| {
        Ok(async move {
            while !seen.text().contains("plimsolld listening") {
                tokio::task::yield_now().await;
            }
        })
    };
    let exit = run(Environment::new(variables), log, stop).await;
    (exit, kept)
}

#[tokio::test]
async fn refused_settings_are_one_error_line() {
    let (exit, log) = run_from(&[("SANDBOX_PROVIDER", "dokcer")]).await;
    assert_eq!(exit, Exit::Configuration);
    let lines = log.lines();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].contains(r#""level":"ERROR","msg":"plimsolld could not start","error":"#));
    assert!(lines[0].contains("agentsandbox"), "{}", lines[0]);
}

#[tokio::test]
async fn warnings_come_first_and_hold_names_only() {
    let (exit, log) = run_from(&[
        ("PLIMSOLL_ADDR", "127.0.0.1:0"),
        ("SANDBOX_MAX_CONCRURENT", "CANARY"),
        ("SANDBOX_DOCKER_IMAGE", "CANARY"),
        ("SANDBOX_TOTAL_MEMORY_MB", "1024"),
    ])
    .await;
    assert_eq!(exit, Exit::Ok);
    let lines = log.lines();
    assert!(lines[0].contains(
        r#""level":"WARN","msg":"unknown variable ignored: this plimsolld has no such setting","name":"SANDBOX_MAX_CONCRURENT"}"#
    ));
    assert!(lines[1].contains(r#""name":"SANDBOX_DOCKER_IMAGE","provider":"disabled"}"#));
    assert!(lines[2].contains(r#""max_concurrent":8,"fit":4}"#));
    assert!(lines[3].contains("no authentication"));
    assert!(
        lines[5].contains(
            r#""provider":"disabled","isolation":"none","auth":false,"max_concurrent":4"#
        )
    );
    assert!(!log.text().contains("CANARY"));
}

#[tokio::test]
async fn a_loadable_tls_pair_is_served() {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = (folder.path().join("c.pem"), folder.path().join("k.pem"));
    std::fs::write(&certificate, made.cert.pem()).unwrap();
    std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
    let (exit, log) = run_from(&[
        ("PLIMSOLL_ADDR", "127.0.0.1:0"),
        ("PLIMSOLL_TLS_CERT", certificate.to_str().unwrap()),
        ("PLIMSOLL_TLS_KEY", key.to_str().unwrap()),
    ])
    .await;
    assert_eq!(exit, Exit::Ok, "{}", log.text());
    assert!(log.text().contains(r#""tls":true,"#));
    assert!(!log.text().contains("PRIVATE"));
}

#[cfg(feature = "wasm")]
#[tokio::test(flavor = "multi_thread")]
async fn wasm_starts_and_describes_itself() {
    let wasm = [
        ("PLIMSOLL_ADDR", "127.0.0.1:0"),
        ("SANDBOX_PROVIDER", " WASM "),
        ("PLIMSOLL_INSECURE", "1"),
        ("SANDBOX_MIN_ISOLATION", "process"),
    ];
    let (exit, log) = run_from(&wasm).await;
    assert_eq!(exit, Exit::Ok, "{}", log.text());
    assert!(
        log.text()
            .contains(r#""provider":"wasm","isolation":"process","auth":false"#)
    );
    let (exit, _) = run_from(&[&wasm[..3], &[("SANDBOX_MIN_ISOLATION", "vm")]].concat()).await;
    assert_eq!(exit, Exit::Environment);
    let (exit, log) = run_from(&[&wasm[..3], &[("SANDBOX_MEMORY_MB", "1")]].concat()).await;
    assert_eq!(exit, Exit::Configuration);
    let last = log.lines().pop().unwrap();
    assert!(
        last.contains("SANDBOX_MEMORY_MB") && last.contains("a memory cap of 1 MiB"),
        "{last}"
    );
}
