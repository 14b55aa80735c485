use std::time::Duration;

use plimsoll_wire::{
    Rule,
    proto::{JavaScriptRun, ModuleRow, ModuleRun, SoftwareRule},
};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use super::fake_engine::{FakeEngine, IMAGE, SECRET, Wrong};
use super::*;
use crate::{
    admission::{Limiter, Limits},
    log::{Format, test_support},
    provider::{ScriptOutput, Teardown},
};

struct Rig {
    engine: FakeEngine,
    docker: Docker,
    limiter: Arc<Limiter>,
}

fn settings(engine: &FakeEngine) -> DockerSettings {
    DockerSettings {
        image: "snippets:1".to_owned(),
        project_image: "snippets:1".to_owned(),
        runtime: String::new(),
        seccomp: Seccomp::Own,
        guest_uid: 61000,
        pinned: false,
        open_runner_fds: false,
        fresh_pool: 0,
        client: ClientSettings {
            host: format!("unix://{}", engine.socket().display()),
            ..ClientSettings::default()
        },
    }
}

fn rig_with(change: impl FnOnce(&mut DockerSettings, &FakeEngine)) -> Rig {
    let engine = FakeEngine::start();
    let mut settings = settings(&engine);
    change(&mut settings, &engine);
    let (log, _) = test_support::log(Format::Json);
    Rig {
        docker: Docker::new(settings, Resources::default(), log),
        engine,
        limiter: Limiter::new(Limits {
            max_concurrent: 8,
            per_key: 0,
            rate_per_min: 0,
            burst: 0,
        }),
    }
}

fn rig() -> Rig {
    rig_with(|_, _| {})
}

impl Rig {
    fn context(&self) -> RunContext {
        RunContext {
            deadline: Instant::now() + Duration::from_secs(60),
            caller_gone: CancellationToken::new(),
            capacity: self.limiter.admit(&Arc::from("a"), Instant::now()).unwrap(),
            grant: None,
            teardown: Teardown::default(),
        }
    }

    async fn run(&self, code: &str) -> Answer<RunOutput> {
        self.docker.run(snippet(code), self.context()).await
    }

    /// Nothing is left: no container, no slot.
    async fn clean(&self) {
        self.docker.state.living.settled().await;
        assert_eq!(self.engine.names(), Vec::<String>::new());
        assert_eq!(self.limiter.inflight(), 0);
    }
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

fn script(output: RunOutput) -> ScriptOutput {
    match output.output {
        Output::Javascript(script) => script,
        other => panic!("{other:?}"),
    }
}

/// No word of the engine reaches a caller.
fn is_private(error: &ProviderError) {
    assert!(!error.to_string().contains(SECRET), "{error}");
    assert!(!error.to_string().contains("/tmp"), "{error}");
}

#[tokio::test]
async fn a_snippet_runs_and_leaves_nothing() {
    let rig = rig();
    let output = rig
        .run("echo $FROM_IMAGE; echo oops >&2; exit 3")
        .await
        .unwrap();
    assert_eq!(output.environment, format!("docker-image:{IMAGE}"));
    assert_eq!(output.software_identity, "", "API 1.41 states none");
    assert_eq!(output.tier, Some(Tier::Container));
    let script = script(output);
    assert_eq!(script.stdout.bytes, b"yes\n");
    assert_eq!(script.stderr.bytes, b"oops\n");
    assert_eq!((script.exit_code, script.timed_out), (3, false));
    rig.clean().await;
}

#[tokio::test]
async fn a_budget_that_ends_kills_and_keeps_the_output() {
    let rig = rig();
    let spec = RunSpec {
        timeout: Some(Duration::from_millis(300)),
        ..snippet("echo before; sleep 60")
    };
    let output = rig.docker.run(spec, rig.context()).await.unwrap();
    assert_eq!(
        rig.engine.names(),
        Vec::<String>::new(),
        "gone before the answer"
    );
    let script = script(output);
    assert_eq!((script.exit_code, script.timed_out), (124, true));
    assert_eq!(script.stdout.bytes, b"before\n");
    rig.clean().await;
}

#[tokio::test]
async fn a_flood_is_cut_and_does_not_block() {
    let rig = rig();
    let output = rig
        .run("head -c 300000 /dev/zero; echo end >&2")
        .await
        .unwrap();
    let script = script(output);
    assert_eq!(
        (script.stdout.bytes.len(), script.stdout.truncated),
        (65_536, true)
    );
    assert_eq!(
        (script.stderr.bytes.as_slice(), script.stderr.truncated),
        (&b"end\n"[..], false)
    );
    rig.clean().await;
}

#[tokio::test]
async fn faults_before_the_code_is_fed_say_that_nothing_ran() {
    for route in ["create", "inspect", "attach", "start"] {
        for wrong in [
            Wrong::Status(500),
            Wrong::Close,
            Wrong::Status(404),
            Wrong::Status(409),
        ] {
            let rig = rig();
            rig.docker.preflight().await.unwrap();
            rig.engine.wrong(route, wrong.clone());
            let error = rig.run("echo ran >/dev/null").await.unwrap_err();
            assert_eq!(error.kind(), Kind::Internal, "{route} {wrong:?}");
            assert_eq!(error.mark(), Some(Reason::Environment), "{route} {wrong:?}");
            is_private(&error);
            rig.clean().await;
        }
    }
}

#[tokio::test]
async fn answers_that_cannot_be_read_are_faults() {
    for route in ["inspect", "create"] {
        for wrong in [Wrong::Garbage, Wrong::Huge] {
            let rig = rig();
            rig.docker.preflight().await.unwrap();
            rig.engine.wrong(route, wrong.clone());
            let error = rig.run("echo 1").await.unwrap_err();
            assert_eq!(error.mark(), Some(Reason::Environment), "{route} {wrong:?}");
            is_private(&error);
            rig.clean().await;
        }
    }
}

#[tokio::test]
async fn faults_after_the_start_may_have_run() {
    for wrong in [Wrong::Status(500), Wrong::Close, Wrong::Garbage] {
        let rig = rig();
        rig.docker.preflight().await.unwrap();
        rig.engine.wrong("wait", wrong);
        let error = rig.run("echo 1").await.unwrap_err();
        assert_eq!((error.kind(), error.mark()), (Kind::Internal, None));
        is_private(&error);
        rig.clean().await;
    }
}

#[tokio::test]
async fn a_stream_that_ends_before_its_container_is_no_result() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    let run = rig
        .docker
        .run(snippet("echo begun; sleep 60"), rig.context());
    let (answer, ()) = tokio::join!(run, async {
        rig.engine.asked("start").await;
        rig.engine.cut();
    });
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.mark()), (Kind::Internal, None));
    is_private(&error);
    rig.clean().await;
}

#[tokio::test]
async fn a_guest_may_close_its_own_streams() {
    let rig = rig();
    let output = rig.run("echo a; exec >&- 2>&-; sleep 0.3; exit 4").await;
    let script = script(output.unwrap());
    assert_eq!(
        (script.stdout.bytes.as_slice(), script.exit_code),
        (&b"a\n"[..], 4)
    );
    rig.clean().await;
}

#[tokio::test]
async fn a_container_that_is_not_as_requested_never_starts() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.engine
        .change("inspect", "/HostConfig/Privileged", json!(true));
    let error = rig.run("echo 1").await.unwrap_err();
    assert_eq!(error.mark(), Some(Reason::Environment));
    assert!(
        error.full_text().contains("HostConfig.Privileged"),
        "{}",
        error.full_text()
    );
    assert!(!rig.engine.was_asked("start"));
    rig.clean().await;
}

#[tokio::test]
async fn memory_is_told_from_other_kills() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.engine
        .change("inspect", "/State/OOMKilled", json!(true));
    let context = rig.context();
    let teardown = context.teardown.clone();
    let run = rig.docker.run(snippet("kill -9 $$"), context);
    assert_eq!(script(run.await.unwrap()).exit_code, 137);
    assert_eq!(teardown.memory_limit_hit(), Some(256));
    let context = rig.context();
    let teardown = context.teardown.clone();
    rig.engine
        .change("inspect", "/State/OOMKilled", json!(false));
    let run = rig.docker.run(snippet("kill -9 $$"), context);
    assert_eq!(script(run.await.unwrap()).exit_code, 137);
    assert_eq!(teardown.memory_limit_hit(), None);
    rig.clean().await;
}

#[tokio::test]
async fn memory_that_only_an_event_tells_of() {
    let rig = rig();
    for (change, status, limit) in [
        (("/Action", json!("oom")), 137, Some(256)),
        (("/Actor/ID", json!("another")), 137, None),
        (("/Actor/ID", json!(null)), 3, None),
    ] {
        rig.engine.change("events", change.0, change.1);
        let context = rig.context();
        let teardown = context.teardown.clone();
        let code = if status == 137 {
            "kill -9 $$"
        } else {
            "exit 3"
        };
        let run = rig.docker.run(snippet(code), context);
        assert_eq!(script(run.await.unwrap()).exit_code, status);
        assert_eq!(teardown.memory_limit_hit(), limit);
    }
    for wrong in [Wrong::Status(500), Wrong::Close, Wrong::Garbage] {
        rig.engine.wrong("events", wrong);
        let run = rig.docker.run(snippet("kill -9 $$"), rig.context());
        assert_eq!(script(run.await.unwrap()).exit_code, 137);
    }
    rig.clean().await;
}

#[tokio::test]
async fn a_caller_that_goes_takes_its_container_along() {
    let rig = rig();
    let context = rig.context();
    let gone = context.caller_gone.clone();
    let run = rig.docker.run(snippet("sleep 60"), context);
    let (answer, ()) = tokio::join!(run, async {
        rig.engine.asked("start").await;
        // Until its marker is surely there; one that is not is no other answer.
        tokio::time::sleep(Duration::from_millis(500)).await;
        gone.cancel();
    });
    let error = answer.unwrap_err();
    assert_eq!((error.kind(), error.mark()), (Kind::Canceled, None));
    rig.clean().await;
}

#[tokio::test]
async fn a_container_in_the_making_goes_when_its_caller_does() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.engine.wrong("create", Wrong::Held);
    let context = rig.context();
    let gone = context.caller_gone.clone();
    let run = rig.docker.run(snippet("echo 1"), context);
    let (answer, ()) = tokio::join!(run, async {
        rig.engine.asked("create").await;
        gone.cancel();
    });
    let error = answer.unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Canceled, Some(Reason::Capacity))
    );
    // The engine goes on with the creation; the removal comes behind it.
    rig.engine.go_on();
    rig.clean().await;
    assert_eq!(rig.engine.made(), 1);
}

#[tokio::test]
async fn a_removal_that_fails_is_left_to_the_sweep() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.engine.wrong("remove", Wrong::Status(500));
    let mut context = rig.context();
    let teardown = context.teardown.clone();
    context.deadline = Instant::now() + Duration::from_secs(60);
    let spec = RunSpec {
        timeout: Some(Duration::from_millis(200)),
        ..snippet("sleep 60")
    };
    assert!(script(rig.docker.run(spec, context).await.unwrap()).timed_out);
    assert!(teardown.gave_up());
    assert_eq!(rig.engine.names().len(), 1);
    rig.engine.right("remove");
    assert_eq!(rig.docker.reconcile_orphans().await.unwrap(), 1);
    rig.clean().await;
}

#[tokio::test]
async fn a_removal_that_was_given_up_is_tried_again() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.engine.wrong("remove", Wrong::Status(500));
    let context = rig.context();
    let teardown = context.teardown.clone();
    let spec = RunSpec {
        timeout: Some(Duration::from_millis(200)),
        ..snippet("sleep 60")
    };
    assert!(script(rig.docker.run(spec, context).await.unwrap()).timed_out);
    assert!(teardown.gave_up());
    rig.engine.right("remove");
    // No sweep is asked for.
    rig.engine.emptied().await;
    rig.clean().await;
}

#[tokio::test]
async fn a_sweep_touches_only_what_nobody_answers_for() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    let dead = std::env::temp_dir().join("plimsoll-docker-config-nobody/alive.sock");
    rig.engine.leave(
        "crsbx-dead",
        json!({"io.plimsoll.expires": (now + 60).to_string(), "io.plimsoll.owner": dead}),
    );
    rig.engine.leave(
        "crsbx-old",
        json!({"io.plimsoll.expires": (now - 400).to_string()}),
    );
    rig.engine
        .leave("crsbx-odd", json!({"io.plimsoll.expires": "soon"}));
    rig.engine.leave(
        "crsbx-new",
        json!({"io.plimsoll.expires": (now + 60).to_string()}),
    );
    assert_eq!(rig.docker.reconcile_orphans().await.unwrap(), 2);
    let mut names = rig.engine.names();
    names.sort();
    assert_eq!(names, ["crsbx-new", "crsbx-odd"]);
}

#[tokio::test]
async fn an_engine_that_is_not_there_is_refused_before_anything_runs() {
    let rig = rig_with(|settings, engine| {
        settings.client.host = format!("unix://{}", engine.gone().display());
    });
    let error = rig.run("echo 1").await.unwrap_err();
    assert_eq!(error.mark(), Some(Reason::Environment));
    assert!(error.full_text().contains("nothing is at its socket"));
    is_private(&error);
    assert_eq!(rig.docker.tier(), Some(Tier::Container));
}

#[tokio::test]
async fn a_remote_engine_is_refused_before_any_connection() {
    let rig = rig_with(|settings, _| settings.client.host = "tcp://127.0.0.1:2375".to_owned());
    let error = rig.docker.preflight().await.unwrap_err();
    assert!(
        error.full_text().contains("local Unix socket"),
        "{}",
        error.full_text()
    );
}

#[tokio::test]
async fn the_kernel_tier_needs_the_runtime_that_was_verified() {
    let gvisor = |settings: &mut DockerSettings, _: &FakeEngine| {
        settings.runtime = "runsc".to_owned();
    };
    let rig = rig_with(gvisor);
    assert_eq!(
        rig.docker.tier(),
        Some(Tier::Container),
        "nothing is proven yet"
    );
    rig.docker.preflight().await.unwrap();
    assert_eq!(rig.docker.tier(), Some(Tier::Kernel));

    for (pointer, value) in [
        ("/Runtimes/runsc", json!(null)),
        ("/Runtimes", json!({"runc": {"path": "runc"}})),
        ("/Runtimes/runsc", json!({"path": "/usr/bin/runc"})),
    ] {
        let rig = rig_with(gvisor);
        rig.engine.change("info", pointer, value);
        rig.docker.preflight().await.unwrap_err();
        assert_eq!(rig.docker.tier(), Some(Tier::Container));
    }
}

#[tokio::test]
async fn images_are_judged_by_their_content() {
    for (pointer, value, words) in [
        ("/Config/Volumes", json!({"/data": {}}), "VOLUME /data"),
        ("/Config/Env", json!(["LD_PRELOAD=/x"]), "LD_PRELOAD"),
        ("/Id", json!("md5:1"), "sha256"),
    ] {
        let rig = rig();
        rig.engine.change("image", pointer, value);
        let error = rig.docker.preflight().await.unwrap_err();
        assert!(error.full_text().contains(words), "{}", error.full_text());
    }
    let rig = rig();
    rig.engine.wrong("image", Wrong::Status(404));
    let error = rig.docker.preflight().await.unwrap_err();
    assert!(
        error
            .full_text()
            .contains("\"snippets:1\" is not on the engine")
    );
}

#[tokio::test]
async fn content_that_was_proven_is_the_only_content() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    rig.docker
        .state
        .prove(&rig.docker.state.ready().unwrap(), Vec::new());
    let other = format!("sha256:{}", "2".repeat(64));
    rig.engine.change("image", "/Id", json!(other));
    rig.docker.state.forget_freshness();
    let error = rig.run("echo 1").await.unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Software, Some(Reason::Environment))
    );
    assert!(error.full_text().contains(
        "docker image \"snippets:1\" now names sha256:222222222222, not sha256:111111111111, the content the smoke test proved"
    ));
    assert!(!error.to_string().contains("snippets:1"));
    assert_eq!(rig.docker.environment(PayloadKind::Javascript).identity, "");
    rig.engine
        .leave("crsbx-old", json!({"io.plimsoll.expires": "1"}));
    assert_eq!(rig.docker.reconcile_orphans().await.unwrap(), 1);
    rig.clean().await;
}

#[tokio::test]
async fn software_is_stated_and_bound_by_rules() {
    let rig = rig();
    rig.engine.change("version", "/ApiVersion", json!("1.49"));
    rig.docker.preflight().await.unwrap();
    let stated = format!("oci-manifest:linux/amd64@{IMAGE}");
    assert_eq!(
        rig.docker
            .environment(PayloadKind::Javascript)
            .software_identity,
        stated
    );
    let ruled = |identity: &str| RunSpec {
        rule: Rule::parse(Some(&SoftwareRule {
            mode: "exact".to_owned(),
            identities: vec![identity.to_owned()],
        }))
        .unwrap(),
        ..snippet("echo 1")
    };
    let output = rig.docker.run(ruled(&stated), rig.context()).await.unwrap();
    assert_eq!(output.software_identity, stated);
    let error = rig
        .docker
        .run(ruled("oci-manifest:other"), rig.context())
        .await
        .unwrap_err();
    assert_eq!(
        (error.kind(), error.mark()),
        (Kind::Software, Some(Reason::Environment))
    );
    rig.clean().await;
    assert_eq!(rig.engine.made(), 1);
}

#[tokio::test]
async fn a_store_that_must_answer_by_platform_is_not_excused() {
    let rig = rig();
    rig.engine.change(
        "info",
        "/DriverStatus",
        json!([["driver-type", "io.containerd.snapshotter.v1"]]),
    );
    assert!(
        rig.docker.preflight().await.is_err(),
        "API 1.41 does not answer"
    );
    let rig = rig_with(|settings, _| settings.client.platform = "linux/arm64".to_owned());
    assert!(
        rig.docker.preflight().await.is_err(),
        "a platform was asked for"
    );
}

#[tokio::test]
async fn what_is_refused_without_a_container() {
    let rig = rig();
    let bad = rig.run("").await.unwrap_err();
    assert_eq!(
        (bad.kind(), bad.mark()),
        (Kind::InvalidRequest, Some(Reason::Request))
    );
    let module = RunSpec {
        payload: Payload::Module(Box::new(ModuleRun {
            model: "m".to_owned(),
            rows: vec![ModuleRow { values: vec![1.0] }],
            end_time: 1.0,
            step: 1.0,
        })),
        ..snippet("1")
    };
    let module = rig.docker.run(module, rig.context()).await.unwrap_err();
    assert_eq!(
        (module.kind(), module.mark()),
        (Kind::Unsupported, Some(Reason::Unsupported))
    );
    let floor = RunSpec {
        floor: Some(Tier::Kernel),
        ..snippet("echo 1")
    };
    let floor = rig.docker.run(floor, rig.context()).await.unwrap_err();
    assert_eq!(
        (floor.kind(), floor.mark()),
        (Kind::Isolation, Some(Reason::Isolation))
    );
    let context = rig.context();
    context.caller_gone.cancel();
    let gone = rig
        .docker
        .run(snippet("echo 1"), context)
        .await
        .unwrap_err();
    assert_eq!(
        (gone.kind(), gone.mark()),
        (Kind::Canceled, Some(Reason::Capacity))
    );
    assert_eq!(rig.engine.made(), 0);
}

#[tokio::test]
async fn a_resolver_file_that_was_changed_stops_runs_for_good() {
    let rig = rig();
    rig.docker.preflight().await.unwrap();
    let resolver = rig.docker.state.ground().unwrap().host.resolver();
    std::fs::remove_file(&resolver).unwrap();
    std::fs::write(&resolver, b"nameserver 10.0.0.1\n").unwrap();
    rig.docker.state.forget_freshness();
    let error = rig.run("echo 1").await.unwrap_err();
    assert_eq!(error.mark(), Some(Reason::Environment));
    assert!(
        error
            .full_text()
            .contains("resolv.conf was changed or removed")
    );
    std::fs::write(&resolver, host_dir::RESOLVER).unwrap();
    rig.docker.state.forget_freshness();
    assert!(rig.docker.preflight().await.is_err());
}

#[tokio::test]
async fn a_drain_leaves_nothing_on_the_host() {
    let rig = rig();
    rig.run("echo 1").await.unwrap();
    let directory = rig.docker.state.ground().unwrap().host.path().to_owned();
    assert!(directory.exists());
    rig.docker
        .drain(Instant::now() + Duration::from_secs(30))
        .await
        .unwrap();
    rig.clean().await;
    assert!(!directory.exists());
}

mod pooled {
    use super::*;

    async fn filled() -> Rig {
        let rig = rig_with(|settings, _| settings.fresh_pool = 1);
        rig.docker.preflight().await.unwrap();
        let pool = Arc::clone(&rig.docker.pool);
        tokio::spawn(pool.fill(Arc::clone(&rig.docker.state), rig.docker.log.clone()));
        full(&rig).await;
        rig
    }

    async fn full(rig: &Rig) {
        let mut seen = rig.engine.seen.clone();
        tokio::time::timeout(Duration::from_secs(20), async {
            while rig.docker.pool.len(Role::Snippet) < 1 || rig.docker.pool.len(Role::Project) < 1 {
                let _ = tokio::time::timeout(Duration::from_millis(50), seen.changed()).await;
            }
        })
        .await
        .expect("the pool never filled");
    }

    #[tokio::test]
    async fn a_member_is_used_once() {
        let rig = filled().await;
        let before: Vec<String> = rig.engine.names();
        assert_eq!(before.len(), 2);
        let output = rig.run("echo $FROM_IMAGE; cat").await.unwrap();
        assert_eq!(script(output).stdout.bytes, b"yes\n");
        rig.docker.state.living.settled().await;
        full(&rig).await;
        let after = rig.engine.names();
        assert_eq!(after.len(), 2);
        assert_eq!(
            after.iter().filter(|name| before.contains(name)).count(),
            1,
            "the project's"
        );
        assert_eq!(rig.engine.made(), 3);
        rig.docker
            .drain(Instant::now() + Duration::from_secs(30))
            .await
            .unwrap();
        rig.clean().await;
    }

    #[tokio::test]
    async fn a_member_that_is_not_as_it_was_made_is_not_used() {
        let rig = filled().await;
        rig.engine.change("inspect", "/State/Running", json!(false));
        let output = rig.run("echo fresh").await.unwrap();
        assert_eq!(script(output).stdout.bytes, b"fresh\n");
        assert_eq!(rig.engine.made(), 3, "one of its own");
        rig.docker
            .drain(Instant::now() + Duration::from_secs(30))
            .await
            .unwrap();
        rig.clean().await;
    }

    #[tokio::test]
    async fn a_member_that_was_started_again_is_not_used() {
        for (member, value) in [
            ("/State/StartedAt", json!("2026-01-01T00:00:09Z")),
            ("/State/Pid", json!(1)),
        ] {
            let rig = filled().await;
            rig.engine.change("inspect", member, value);
            let output = rig.run("echo fresh").await.unwrap();
            assert_eq!(script(output).stdout.bytes, b"fresh\n");
            assert_eq!(rig.engine.made(), 3, "one of its own");
            rig.docker
                .drain(Instant::now() + Duration::from_secs(30))
                .await
                .unwrap();
            rig.clean().await;
        }
    }

    #[tokio::test]
    async fn a_member_of_another_state_is_not_used() {
        let rig = filled().await;
        let other = format!("sha256:{}", "3".repeat(64));
        rig.engine.change("image", "/Id", json!(other));
        rig.docker.state.forget_freshness();
        let output = rig.run("echo fresh").await.unwrap();
        assert_eq!(output.environment, format!("docker-image:{other}"));
        assert_eq!(rig.engine.made(), 3);
        rig.docker
            .drain(Instant::now() + Duration::from_secs(30))
            .await
            .unwrap();
        rig.clean().await;
    }
}

#[path = "proof_tests.rs"]
mod proof;
