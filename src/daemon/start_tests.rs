use std::{
    sync::{Arc, Mutex, atomic::Ordering::SeqCst},
    time::Duration,
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    sync::{Notify, oneshot},
    task::JoinHandle,
};

use super::*;
use crate::{
    log::{
        Format,
        test_support::{self, Kept},
    },
    provider::{ProviderError, ScriptOutput},
    service::fake::{Fake, script},
    transport::Server,
};

pub(super) const TOKEN: &str = "CANARY-token-0123456789abcdef-0123456789";

pub(super) fn settings(variables: &[(&str, &str)]) -> Settings {
    let mut all = vec![
        ("PLIMSOLL_ADDR", "127.0.0.1:0"),
        ("PLIMSOLL_METRICS_ADDR", "127.0.0.1:0"),
    ];
    all.extend_from_slice(variables);
    let all = all.into_iter().map(|(n, v)| (n.into(), v.into()));
    Settings::read(&Environment::new(all)).unwrap()
}

/// A daemon that is serving.
pub(super) struct Serving {
    pub(super) fake: Arc<Fake>,
    pub(super) address: String,
    metrics: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<Exit, StartError>>,
    log: Kept,
}

pub(super) async fn serving(variables: &[(&str, &str)], fake: Fake) -> Serving {
    let (log, kept) = test_support::log(Format::Json);
    let (stop, stopped) = oneshot::channel();
    let settings = settings(variables);
    let fake = Arc::new(fake);
    let provider = Arc::clone(&fake) as Arc<dyn Provider>;
    let task = tokio::spawn(async move {
        let stop = |_| {
            Ok(async {
                let _ = stopped.await;
            })
        };
        run_with(settings, provider, &log, stop).await
    });
    let line = loop {
        assert!(!task.is_finished(), "it ended: {}", kept.text());
        let lines = kept.lines();
        match lines
            .into_iter()
            .find(|l| l.contains("plimsolld listening"))
        {
            Some(line) => break line,
            None => tokio::task::yield_now().await,
        }
    };
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    Serving {
        fake,
        address: line["addr"].as_str().unwrap().to_owned(),
        metrics: line["metrics_addr"].as_str().unwrap().to_owned(),
        stop,
        task,
        log: kept,
    }
}

/// One exchange on a connection of its own: the status and the body.
async fn exchange(address: &str, request: String) -> (u16, String) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let status = answer.split(' ').nth(1).unwrap().parse().unwrap();
    let (_, body) = answer.split_once("\r\n\r\n").unwrap();
    (status, body.to_owned())
}

async fn get(address: &str, path: &str) -> (u16, String) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
    exchange(address, request).await
}

async fn post(address: &str, token: &str, body: &str) -> (u16, String) {
    let request = format!(
        "POST /plimsoll.v1.SandboxService/Run HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\
         Content-Type: application/json\r\nAuthorization: Bearer {token}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    exchange(address, request).await
}

const SNIPPET: &str = r#"{"protocol":3,"javascript":{"code":"CANARY"}}"#;

#[tokio::test]
async fn serves_and_stops() {
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], Fake::default()).await;
    assert_eq!(get(&daemon.address, "/healthz").await, (200, "ok\n".into()));
    assert_eq!(
        get(&daemon.address, "/readyz").await,
        (200, "ready\n".into())
    );
    assert_eq!(get(&daemon.address, "/metrics").await.0, 404);
    let (status, body) = post(&daemon.address, TOKEN, SNIPPET).await;
    assert_eq!(status, 200, "{body}");
    assert!(
        body.contains("\"sandbox\":\"docker\"") && body.contains("recordSha256"),
        "{body}"
    );
    assert_eq!(post(&daemon.address, &TOKEN[1..], SNIPPET).await.0, 401);
    let (status, body) = post(&daemon.address, TOKEN, r#"{"protocol":2,"javascript":{}}"#).await;
    assert_eq!(status, 501, "{body}");
    assert!(body.contains("CAM"), "{body}");
    daemon.stop.send(()).unwrap();
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Ok);
    assert_eq!(daemon.fake.drains.load(SeqCst), 1);

    let text = daemon.log.text();
    assert!(!text.contains("CANARY"), "{text}");
    let messages: Vec<String> = daemon
        .log
        .lines()
        .iter()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap()["msg"].to_string())
        .collect();
    assert_eq!(
        messages,
        [
            "\"sandbox provider ready\"",
            "\"containers share this host's kernel: use gVisor (SANDBOX_DOCKER_RUNTIME=runsc) for hostile code\"",
            "\"plimsolld listening\"",
            "\"code run\"",
            "\"shutdown signal received; draining in-flight runs\"",
            "\"credentials refused\"",
            "\"plimsolld stopped\"",
        ]
    );
    let listening = &daemon.log.lines()[2];
    let (_, after) = listening.split_once("\"addr\":").unwrap();
    let (_, after) = after.split_once(',').unwrap();
    let (before, cap) = after.rsplit_once(':').unwrap();
    assert_eq!(
        before.replace(&daemon.metrics, "127.0.0.1:PORT"),
        concat!(
            r#""provider":"docker","isolation":"container","auth":true,"max_concurrent":8,"#,
            r#""per_key_concurrent":4,"rate_per_min":30,"rate_burst":30,"mem_mb":128,"cpus":0,"#,
            r#""pids":0,"disk_mb":0,"tls":false,"metrics_addr":"127.0.0.1:PORT","guard_addr":"none","#,
            r#""max_connections""#
        )
    );
    assert!(cap.trim_end_matches('}').parse::<u64>().is_ok());
}

/// Status and encoded mark of refusals, through every layer.
#[tokio::test]
async fn refusals_on_the_wire() {
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], Fake::default()).await;
    for (body, status, mark) in [
        (r#"{"javascript":{"code":"1"}}"#, 400, "CAM"),
        (r#"{"protocol":4,"minimumIsolation":"x"}"#, 501, "CAM"),
        (r#"{"protocol":3,"javascript":{}}"#, 400, "CAE"),
        (r#"{"protocol":3}"#, 400, "CAE"),
        (
            r#"{"protocol":3,"cell":{"language":"python","code":"1"}}"#,
            400,
            "CAE",
        ),
        (
            r#"{"protocol":3,"minimumIsolation":"none","javascript":{"code":"1"}}"#,
            400,
            "CAE",
        ),
        (
            r#"{"protocol":3,"minimumIsolation":"vm","javascript":{"code":"1"}}"#,
            400,
            "CAU",
        ),
        (
            r#"{"protocol":3,"softwareRule":{"mode":"exact","identities":["a:1"]},"javascript":{"code":"1"}}"#,
            400,
            "CAc",
        ),
        (
            r#"{"protocol":3,"javascript":{"code":"1","grantProfile":"billing"}}"#,
            403,
            "CAI",
        ),
        (
            r#"{"protocol":3,"project":{"files":[{"path":"../x","content":""}],"steps":["true"]}}"#,
            400,
            "CAE",
        ),
    ] {
        let (seen, answer) = post(&daemon.address, TOKEN, body).await;
        assert_eq!(seen, status, "{body}: {answer}");
        let answer: serde_json::Value = serde_json::from_str(&answer).unwrap();
        let details = answer["details"].as_array().unwrap();
        assert_eq!(details.len(), 1, "{body}");
        assert_eq!(details[0]["type"], "plimsoll.v1.NotDispatched");
        assert_eq!(details[0]["value"], mark, "{body}");
    }
    assert_eq!(daemon.fake.calls(), 0);
}

#[tokio::test]
async fn a_run_in_flight_finishes_before_the_end() {
    let (fake, running, release) = waiting();
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], fake).await;
    let address = daemon.address.clone();
    let call = tokio::spawn(async move { post(&address, TOKEN, SNIPPET).await });
    running.await.unwrap();
    daemon.stop.send(()).unwrap();
    // The listener closes before the run ends: a new connection is refused.
    while TcpStream::connect(&daemon.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(daemon.fake.drains.load(SeqCst), 0);
    release.notify_one();
    assert_eq!(call.await.unwrap().0, 200);
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Ok);
    assert_eq!(daemon.fake.drains.load(SeqCst), 1);
}

#[tokio::test]
async fn readiness_fails_without_words() {
    let daemon = serving(&[], Fake::default()).await;
    *daemon.fake.preflight.lock().unwrap() = Some(ProviderError::internal("SECRET"));
    assert_eq!(
        get(&daemon.address, "/readyz").await,
        (503, "not ready\n".into())
    );
    assert_eq!(get(&daemon.address, "/healthz").await.0, 200);
}

fn never_stopped(_: bool) -> io::Result<std::future::Pending<()>> {
    Ok(std::future::pending())
}

/// A poller that hangs up must not cut a check short and so lower the tier.
#[tokio::test]
async fn a_poller_that_leaves_does_not_end_the_check() {
    let release = Arc::new(Notify::new());
    let daemon = serving(&[], Fake::default()).await;
    *daemon.fake.preflight_gate.lock().unwrap() = Some(Arc::clone(&release));
    *daemon.fake.tier.lock().unwrap() = None;
    let before = daemon.fake.preflights.load(SeqCst);
    let mut poller = TcpStream::connect(&daemon.address).await.unwrap();
    let poll = b"GET /readyz HTTP/1.1\r\nHost: x\r\n\r\n";
    poller.write_all(poll).await.unwrap();
    while daemon.fake.preflights.load(SeqCst) == before {
        tokio::task::yield_now().await;
    }
    drop(poller);
    assert_eq!(get(&daemon.address, "/healthz").await.0, 200);
    release.notify_one();
    while daemon.fake.tier.lock().unwrap().is_none() {
        tokio::task::yield_now().await;
    }
}

pub(super) async fn refused(variables: &[(&str, &str)], fake: Arc<Fake>) -> StartError {
    let (log, _) = test_support::log(Format::Json);
    run_with(settings(variables), fake, &log, never_stopped)
        .await
        .unwrap_err()
}

#[tokio::test]
async fn a_failing_smoke_test_is_never_served() {
    let fake = Arc::new(Fake {
        smoke: Some(ProviderError::internal("the root is writable")),
        ..Fake::default()
    });
    let drained = Arc::clone(&fake);
    let error = refused(&[], fake).await;
    assert_eq!(error.exit(), Exit::Environment);
    assert!(error.to_string().contains("the root is writable"));
    // What a failed start may have made is removed.
    assert_eq!(drained.drains.load(SeqCst), 1);
}

/// Who connects before the provider is proven waits, and gets no byte when it
/// never is.
#[tokio::test]
async fn nothing_is_answered_before_the_provider_is_proven() {
    let release = Arc::new(Notify::new());
    let fake = Arc::new(Fake {
        smoke: Some(ProviderError::internal("the root is writable")),
        smoke_gate: Some(Arc::clone(&release)),
        ..Fake::default()
    });
    let (log, _kept) = test_support::log(Format::Json);
    let (rpc, metrics) = (listener().await, listener().await);
    let addresses = [rpc.local_addr().unwrap(), metrics.local_addr().unwrap()];
    let bound = Bound {
        rpc: Server::new(rpc).unwrap(),
        metrics: Some(Server::new(metrics).unwrap()),
    };
    let provider = Arc::clone(&fake) as Arc<dyn Provider>;
    let settings = settings(&[]);
    let task = tokio::spawn(async move {
        run_bound(settings, provider, &log, never_stopped, None, bound).await
    });
    while fake.preflights.load(SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    let mut early = Vec::new();
    for address in addresses {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
        stream.write_all(request).await.unwrap();
        early.push(stream);
    }
    assert!(!task.is_finished());
    release.notify_one();
    assert!(matches!(
        task.await.unwrap(),
        Err(StartError::NotReady { .. })
    ));
    for mut stream in early {
        let mut seen = Vec::new();
        // The end may be a reset, since the request was never read.
        let _ = stream.read_to_end(&mut seen).await;
        assert_eq!(seen, b"");
    }
}

#[tokio::test]
async fn an_address_in_use_fails_before_preflight() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    for address in [address.as_str(), "127.0.0.1", "127.0.0.1:70000", ":x", ""] {
        let fake = Arc::new(Fake::default());
        let mut settings = settings(&[]);
        address.clone_into(&mut settings.address);
        let (log, _) = test_support::log(Format::Json);
        let provider = Arc::clone(&fake) as Arc<dyn Provider>;
        let error = run_with(settings, provider, &log, never_stopped)
            .await
            .unwrap_err();
        assert_eq!(error.exit(), Exit::Environment, "{address}");
        assert!(error.to_string().contains("PLIMSOLL_ADDR"), "{error}");
        assert_eq!(fake.preflights.load(SeqCst), 0);
    }
}

#[tokio::test]
async fn the_operators_floor_is_compared_with_what_was_proven() {
    let error = refused(
        &[("SANDBOX_MIN_ISOLATION", "vm")],
        Arc::new(Fake::default()),
    )
    .await;
    assert_eq!(error.exit(), Exit::Environment);
    assert_eq!(
        error.to_string(),
        "SANDBOX_MIN_ISOLATION=vm: the provider docker proved container"
    );
    let daemon = serving(&[("SANDBOX_MIN_ISOLATION", "container")], Fake::default()).await;
    drop(daemon.stop);
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Ok);
}

#[tokio::test]
async fn an_unloadable_tls_pair_is_a_configuration_failure() {
    let files = [
        ("PLIMSOLL_TLS_CERT", "/nonexistent/cert.pem"),
        ("PLIMSOLL_TLS_KEY", "/nonexistent/key.pem"),
    ];
    let fake = Arc::new(Fake::default());
    let error = refused(&files, Arc::clone(&fake)).await;
    assert_eq!(error.exit(), Exit::Configuration);
    assert_eq!(fake.preflights.load(SeqCst), 0);
}

#[tokio::test(start_paused = true)]
async fn upkeep_is_made_every_minute() {
    let daemon = serving(&[], Fake::default()).await;
    let before = daemon.fake.preflights.load(SeqCst);
    *daemon.fake.tier.lock().unwrap() = None;
    tokio::time::sleep(Duration::from_secs(61)).await;
    assert_eq!(daemon.fake.preflights.load(SeqCst), before + 1);
}

#[tokio::test]
async fn metrics_have_a_listener_of_their_own() {
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], Fake::default()).await;
    assert_eq!(post(&daemon.address, TOKEN, SNIPPET).await.0, 200);
    let (status, body) = get(&daemon.metrics, "/metrics").await;
    assert_eq!(status, 200);
    assert!(body.contains("\nplimsoll_runs_total 1\n"), "{body}");
    assert_eq!(body.matches("plimsoll_shed_total{").count(), 5);
    assert!(
        !body.contains("CANARY") && !body.contains("static"),
        "{body}"
    );
    for path in ["/healthz", "/readyz", "/", "/metrics/", "//metrics"] {
        assert_eq!(get(&daemon.metrics, path).await.0, 404, "{path}");
    }
    assert_eq!(post(&daemon.metrics, TOKEN, SNIPPET).await.0, 404);
    let put = "PUT /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\nx".to_owned();
    assert_eq!(exchange(&daemon.metrics, put).await.0, 405);
    assert_eq!(get(&daemon.address, "/metrics").await.0, 404);
}

#[tokio::test]
async fn metrics_outlive_the_runs() {
    let (fake, running, release) = waiting();
    let daemon = serving(&[("PLIMSOLL_TOKEN", TOKEN)], fake).await;
    let address = daemon.address.clone();
    let call = tokio::spawn(async move { post(&address, TOKEN, SNIPPET).await });
    running.await.unwrap();
    daemon.stop.send(()).unwrap();
    while TcpStream::connect(&daemon.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    let (_, body) = get(&daemon.metrics, "/metrics").await;
    assert!(body.contains("\nplimsoll_inflight 1\n"), "{body}");
    release.notify_one();
    assert_eq!(call.await.unwrap().0, 200);
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Ok);
    assert!(TcpStream::connect(&daemon.metrics).await.is_err());
}

#[tokio::test]
async fn two_listeners_cannot_share_an_address() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap().to_string();
    drop(free);
    let fake = Arc::new(Fake::default());
    let same = [
        ("PLIMSOLL_ADDR", address.as_str()),
        ("PLIMSOLL_METRICS_ADDR", address.as_str()),
    ];
    let error = refused(&same, Arc::clone(&fake)).await;
    assert_eq!(error.exit(), Exit::Environment);
    assert!(
        error.to_string().contains("PLIMSOLL_METRICS_ADDR"),
        "{error}"
    );
    assert_eq!(fake.preflights.load(SeqCst), 0);
}

/// A signal while the provider is proven: the smoke test is let end, so that
/// its sandbox goes, then the provider drains.
#[tokio::test]
async fn a_stop_during_the_start_waits_for_the_smoke_test() {
    let release = Arc::new(Notify::new());
    let fake = Arc::new(Fake {
        smoke_gate: Some(Arc::clone(&release)),
        ..Fake::default()
    });
    let (log, kept) = test_support::log(Format::Json);
    let provider = Arc::clone(&fake) as Arc<dyn Provider>;
    let stop = |_| Ok(std::future::ready(()));
    let settings = settings(&[]);
    let task = tokio::spawn(async move { run_with(settings, provider, &log, stop).await });
    while !kept.text().contains("draining in-flight runs") {
        tokio::task::yield_now().await;
    }
    assert_eq!(fake.drains.load(SeqCst), 0);
    assert!(!task.is_finished());
    release.notify_one();
    assert_eq!(task.await.unwrap().unwrap(), Exit::Ok);
    assert_eq!(fake.drains.load(SeqCst), 1);
    let text = kept.text();
    assert!(
        text.contains("plimsolld stopped") && !text.contains("listening"),
        "{text}"
    );
}

/// The early pass comes before anything is bound or proven.
#[tokio::test]
async fn the_production_policy_comes_before_the_provider() {
    let fake = Arc::new(Fake::default());
    let error = refused(
        &[("PLIMSOLL_HARDENED", "1"), ("PLIMSOLL_INSECURE", "1")],
        Arc::clone(&fake),
    )
    .await;
    assert_eq!(error.exit(), Exit::Configuration);
    let text = error.to_string();
    assert!(
        text.contains("PLIMSOLL_INSECURE") && text.contains("PLIMSOLL_CLIENTS_FILE"),
        "{text}"
    );
    assert_eq!(fake.preflights.load(SeqCst), 0);
}

/// A provider whose one run waits until it is released, and what tells that it
/// has begun.
fn waiting() -> (Fake, oneshot::Receiver<()>, Arc<Notify>) {
    let (begun, running) = oneshot::channel();
    let (release, begun) = (Arc::new(Notify::new()), Mutex::new(Some(begun)));
    let gate = Arc::clone(&release);
    let fake = Fake {
        behaviour: Box::new(move |_, _| {
            let begun = begun.lock().unwrap().take().unwrap();
            let gate = Arc::clone(&gate);
            Box::pin(async move {
                begun.send(()).unwrap();
                gate.notified().await;
                Ok(script(ScriptOutput::default()))
            })
        }),
        ..Fake::default()
    };
    (fake, running, release)
}

/// Whichever listener dies, the run in flight is answered, the provider drains
/// and the status says that the environment failed.
#[tokio::test]
async fn a_listener_that_dies_ends_the_daemon_in_good_order() {
    for metrics_dies in [false, true] {
        let (fake, running, release) = waiting();
        let fake = Arc::new(fake);
        let (log, kept) = test_support::log(Format::Json);
        let settings = settings(&[("PLIMSOLL_TOKEN", TOKEN)]);
        let (rpc, metrics) = (listener().await, listener().await);
        let address = rpc.local_addr().unwrap().to_string();
        // Both are one socket.
        let dies = rustix::io::dup(if metrics_dies { &metrics } else { &rpc }).unwrap();
        let bound = Bound {
            rpc: Server::new(rpc).unwrap(),
            metrics: Some(Server::new(metrics).unwrap()),
        };
        let provider = Arc::clone(&fake) as Arc<dyn Provider>;
        let task = tokio::spawn(async move {
            run_bound(settings, provider, &log, never_stopped, None, bound).await
        });
        let call = tokio::spawn(async move { post(&address, TOKEN, SNIPPET).await });
        running.await.unwrap();
        rustix::net::shutdown(&dies, rustix::net::Shutdown::Both).unwrap();
        let name = if metrics_dies { "metrics" } else { "RPC" };
        let line = format!("the {name} listener failed; draining in-flight runs");
        while !kept.text().contains(&line) {
            assert!(!task.is_finished(), "{}", kept.text());
            tokio::task::yield_now().await;
        }
        assert_eq!(fake.drains.load(SeqCst), 0);
        release.notify_one();
        assert_eq!(call.await.unwrap().0, 200);
        assert_eq!(task.await.unwrap().unwrap(), Exit::Environment);
        assert_eq!(fake.drains.load(SeqCst), 1);
        assert!(kept.text().contains("plimsolld stopped"));
    }
}

async fn listener() -> tokio::net::TcpListener {
    tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap()
}

/// A daemon that meets the whole policy starts; one whose provider proves a
/// container only ends with the status of the environment.
#[tokio::test]
async fn the_production_policy_judges_the_tier_last() {
    let folder = tempfile::tempdir().unwrap();
    let clients = folder.path().join("clients.json");
    let hash = "ab".repeat(32);
    let registry =
        format!(r#"{{"clients":[{{"id":"a","token_sha256":"{hash}","scopes":["code:run"]}}]}}"#);
    std::fs::write(&clients, registry).unwrap();
    let compliant = [
        ("PLIMSOLL_HARDENED", "1"),
        ("PLIMSOLL_CLIENTS_FILE", clients.to_str().unwrap()),
        ("SANDBOX_REQUIRE_PINNED_IMAGES", "1"),
        ("SANDBOX_MEMORY_MB", "256"),
        ("SANDBOX_CPUS", "1"),
        ("SANDBOX_PIDS", "64"),
        ("SANDBOX_DISK_MB", "64"),
        ("SANDBOX_TOTAL_MEMORY_MB", "4096"),
    ];
    let fake = Arc::new(Fake::default());
    let error = refused(&compliant, Arc::clone(&fake)).await;
    assert_eq!(error.exit(), Exit::Environment);
    let text = error.to_string();
    assert!(
        text.contains("isolation is container") && !text.contains("(2)"),
        "{text}"
    );
    assert!(fake.preflights.load(SeqCst) > 0);

    let kernel = Fake {
        proves: plimsoll_wire::Tier::Kernel,
        ..Fake::default()
    };
    let daemon = serving(&compliant, kernel).await;
    assert!(daemon.log.text().contains("the production policy is met"));
    daemon.stop.send(()).unwrap();
    assert_eq!(daemon.task.await.unwrap().unwrap(), Exit::Ok);

    // Each other rule, broken alone: its name, and before the provider is asked.
    for (name, value) in [
        ("PLIMSOLL_CLIENTS_FILE", ""),
        ("PLIMSOLL_INSECURE", "0"),
        ("PLIMSOLL_ADDR", "0.0.0.0:0"),
        ("PLIMSOLL_METRICS_ADDR", ":0"),
        ("SANDBOX_REQUIRE_PINNED_IMAGES", "false"),
        ("SANDBOX_DOCKER_SECCOMP", "unconfined"),
        ("SANDBOX_MEMORY_MB", "0"),
        ("SANDBOX_CPUS", ""),
        ("SANDBOX_PIDS", ""),
        ("SANDBOX_DISK_MB", "0"),
        ("SANDBOX_TOTAL_MEMORY_MB", "0"),
        ("SANDBOX_RATE_PER_MIN", "0"),
        ("SANDBOX_RATE_BURST", "31"),
        ("SANDBOX_PER_KEY_CONCURRENT", "0"),
        ("SANDBOX_PER_KEY_CONCURRENT", "8"),
    ] {
        let fake = Arc::new(Fake::default());
        let changed = [&compliant[..], &[(name, value)]].concat();
        let error = refused(&changed, Arc::clone(&fake)).await;
        assert_eq!(error.exit(), Exit::Configuration, "{name}={value}");
        let text = error.to_string();
        assert!(
            text.contains(&format!("(1) {name} ")) && !text.contains("(2)"),
            "{text}"
        );
        assert_eq!(fake.preflights.load(SeqCst), 0, "{name}={value}");
    }
}
