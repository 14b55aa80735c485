//! Secrets that must not leave the daemon.

use std::{fs, io::Write, os::unix::process::ExitStatusExt, process::Command};

use crate::{
    child::{Running, TOKEN},
    honest::{answer, call, connect, get, request},
    serving,
};

/// Planted in settings, credentials, code, output, a refused trace ID and
/// malformed requests; looked for in log, refusals, metrics and process list.
pub fn planted() {
    let (mut running, log) = serving(&[
        ("PLIMSOLL_METRICS_ADDR", "127.0.0.1:0"),
        ("PLIMSOLL_NO_SUCH_SETTING", "CANARY-unknown"),
        ("E2B_API_KEY", "CANARY-e2b"),
        ("DOCKER_SBX_TOKEN", "CANARY-sbx"),
        ("SANDBOX_DOCKERCLOUD_IMAGE", "CANARY-image"),
    ]);
    let send = |token: &str, content_type: &str, body: &[u8]| {
        let mut peer = connect(&running.address);
        peer.write_all(&request(token, content_type, body)).unwrap();
        answer(&mut peer).unwrap()
    };
    let json = "application/json";
    // The guest's own output is its caller's; only the log must not have it.
    let code = r#"{"protocol":3,"traceId":"/CANARY-trace","javascript":{"code":"console.log('CANARY-code'); throw new Error('CANARY-thrown')"}}"#;
    let ran = send(TOKEN, json, code.as_bytes());
    if cfg!(feature = "wasm") {
        assert_eq!(ran.status, 200, "{}", ran.text());
    }
    let mut refusals = vec![
        send("CANARY-wrong-0123456789abcdef-0123456789", json, b"{}"),
        send(TOKEN, json, br#"{"protocol":3,"CANARY-key":1,"CANARY-key":2}"#),
        send(TOKEN, json, br#"{"protocol":3,"javascript":"CANARY-value"}"#),
        send(TOKEN, json, br#"{"protocol":"CANARY-number"}"#),
        send(TOKEN, json, br#"{"protocol":3,"minimumIsolation":"vm","javascript":{"code":"CANARY"}}"#),
        send(TOKEN, json, br#"{"protocol":3,"project":{"files":[{"path":"CANARY","content":"CANARY"}],"steps":["CANARY"]}}"#),
        send(TOKEN, "application/proto", b"\x0a\xffCANARY"),
        send(TOKEN, "text/CANARY", b"{}"),
        get(&running.address, "/CANARY"),
        get(&running.address, "/healthz"),
        get(&running.address, "/readyz"),
    ];
    let metrics = get(&running.metrics, "/metrics");
    assert_eq!(metrics.status, 200);
    refusals.push(metrics);
    refusals.push(get(&running.metrics, "/CANARY"));
    for answer in refusals {
        let whole = format!("{}{}", answer.head, answer.text());
        assert!(!whole.contains("CANARY"), "{whole}");
    }
    call(&running.address);
    let line = fs::read(format!("/proc/{}/cmdline", running.child.id())).unwrap();
    let line = String::from_utf8_lossy(&line);
    assert!(
        line.contains("daemon") && !line.contains("CANARY"),
        "{line}"
    );
    running.signal("TERM");
    assert_eq!(running.child.wait().unwrap().code(), Some(0));
    let text = log.whole();
    assert!(!text.contains("CANARY"), "{text}");
    assert!(text.contains("PLIMSOLL_NO_SUCH_SETTING"), "{text}");
    assert!(
        !cfg!(feature = "wasm") || text.contains("\"trace_id_rejected\":true"),
        "{text}"
    );
}

/// A daemon that is made to crash leaves no image of its memory, even where
/// core files are allowed.
pub fn no_core() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new("/bin/sh");
    command
        .env_clear()
        .env("PLIMSOLL_ADDR", "127.0.0.1:0")
        .env("PLIMSOLL_METRICS_ADDR", "off")
        .env("PLIMSOLL_TOKEN", TOKEN)
        .current_dir(folder.path())
        // Where the hard limit forbids raising it there is none to begin with.
        .args(["-c", "ulimit -c unlimited 2>/dev/null; exec \"$0\" daemon"])
        .arg(std::env::current_exe().unwrap());
    let mut running = Running::of(&mut command);
    running.signal("ABRT");
    let status = running.child.wait().unwrap();
    assert_eq!(status.signal(), Some(6));
    assert!(!status.core_dumped());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}
