//! A runtime that is not the one the smoke test ran on, and containers that an
//! engine made otherwise than it was asked to.

use serde_json::{Value, json};

use super::*;

/// A rig whose runtime is gVisor, registered as this file.
async fn proven(program: &std::path::Path) -> Rig {
    let rig = rig_with(|settings, engine| {
        settings.runtime = "runsc".to_owned();
        engine.change("info", "/Runtimes/runsc", registered(program, &[]));
    });
    rig.docker.preflight().await.unwrap();
    let state = &rig.docker.state;
    state.prove(&state.ready().unwrap(), Vec::new());
    assert_eq!(rig.docker.tier(), Some(Tier::Kernel));
    rig
}

fn registered(program: &std::path::Path, arguments: &[&str]) -> Value {
    json!({"path": program, "runtimeArgs": arguments})
}

impl Rig {
    async fn refuses(&self, words: &str) {
        self.docker.state.forget_freshness();
        let floored = RunSpec {
            floor: Some(Tier::Kernel),
            ..snippet("echo 1")
        };
        for spec in [floored, snippet("echo 1")] {
            let error = self.docker.run(spec, self.context()).await.unwrap_err();
            assert_eq!(error.mark(), Some(Reason::Environment));
            assert!(error.full_text().contains(words), "{}", error.full_text());
            is_private(&error);
            assert!(!error.to_string().contains("runsc"), "{error}");
        }
        assert_eq!(self.docker.tier(), Some(Tier::Container));
        assert_eq!(
            self.docker.environment(PayloadKind::Javascript).identity,
            ""
        );
        assert_eq!(self.engine.made(), 0);
    }

    async fn accepts(&self) {
        self.docker.state.forget_freshness();
        self.docker.preflight().await.unwrap();
        assert_eq!(self.docker.tier(), Some(Tier::Kernel));
    }
}

#[tokio::test]
async fn a_program_that_was_exchanged_after_the_proof_is_not_gvisor() {
    let directory = tempfile::tempdir().unwrap();
    let (program, kept, other) = (
        directory.path().join("runsc"),
        directory.path().join("kept"),
        directory.path().join("other"),
    );
    std::fs::write(&program, "proven").unwrap();
    std::fs::write(&other, "other!").unwrap();
    let rig = proven(&program).await;
    rig.accepts().await;
    std::fs::rename(&program, &kept).unwrap();
    rig.refuses("the file").await;
    std::fs::rename(&other, &program).unwrap();
    rig.refuses("another one or has changed").await;
    // It is proven anew by a start.
    let fresh = proven(&program).await;
    fresh.accepts().await;
    // The very file that was proven needs no new proof.
    std::fs::rename(&kept, &program).unwrap();
    rig.accepts().await;
    fresh.refuses("another one").await;
}

#[tokio::test]
async fn an_entry_that_was_changed_after_the_proof_is_not_gvisor() {
    let directory = tempfile::tempdir().unwrap();
    let program = directory.path().join("runsc");
    std::fs::write(&program, "proven").unwrap();
    std::fs::create_dir(directory.path().join("b")).unwrap();
    let copy = directory.path().join("b/runsc");
    std::fs::hard_link(&program, &copy).unwrap();
    let none = json!({"runc": {"path": "runc"}});
    for (pointer, entry, words) in [
        (
            "/Runtimes/runsc",
            registered(&copy, &[]),
            "it is the program",
        ),
        (
            "/Runtimes/runsc",
            registered(&program, &["--network=host"]),
            "other arguments",
        ),
        (
            "/Runtimes/runsc",
            registered("/usr/bin/runc".as_ref(), &[]),
            "not one named runsc",
        ),
        ("/Runtimes", none, "no runtime \"runsc\""),
    ] {
        let rig = proven(&program).await;
        rig.engine.change("info", pointer, entry);
        rig.refuses(words).await;
        let again = registered(&program, &[]);
        rig.engine.change("info", "/Runtimes/runsc", again);
        rig.accepts().await;
    }
}

#[tokio::test]
async fn another_default_runtime_needs_a_proof_too() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    let state = &rig.docker.state;
    state.prove(&state.ready().unwrap(), Vec::new());
    rig.engine.change("info", "/DefaultRuntime", json!("crun"));
    rig.refuses("the engine's own runtime is \"crun\" now")
        .await;
}

#[tokio::test]
async fn what_an_engine_did_otherwise_never_starts() {
    let cases = [
        ("/HostConfig/Runtime", json!("crun")),
        ("/HostConfig/Init", json!(true)),
        ("/HostConfig/Binds", json!(["/:/host"])),
        ("/HostConfig/CapAdd", json!(["SYS_ADMIN"])),
        ("/HostConfig/Devices", json!([{"PathOnHost": "/dev/kvm"}])),
        (
            "/Config/Env",
            json!(["PATH=/usr/bin:/bin", "FROM_IMAGE=yes", "PROXY=user:word"]),
        ),
        (
            "/Mounts",
            json!([{"Type": "volume", "Destination": "/data", "RW": true}]),
        ),
    ];
    for (pointer, value) in cases {
        let rig = rig();
        rig.docker.preflight().await.unwrap();
        rig.engine.change("inspect", pointer, value);
        let error = rig.run("echo 1").await.unwrap_err();
        assert_eq!(error.mark(), Some(Reason::Environment), "{pointer}");
        let name = pointer.trim_start_matches('/').replace('/', ".");
        assert!(error.full_text().ends_with(&name), "{}", error.full_text());
        is_private(&error);
        assert!(!rig.engine.was_asked("start"), "{pointer}");
        rig.clean().await;
    }
}
