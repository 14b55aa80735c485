use super::*;
use bollard::models::ContainerInspectResponse;
use serde_json::{Value, json};

use crate::provider::docker::readback::differences;

fn lockdown() -> Lockdown {
    Lockdown {
        runtime: "runsc".to_owned(),
        seccomp: Some("{}".into()),
        uid: 61000,
        memory_mb: 256,
        cpus: 1.5,
        pids: 128,
        resolver: "/tmp/plimsoll-docker-config-x/resolv.conf".into(),
        owner: "/tmp/plimsoll-docker-config-x/alive.sock".into(),
    }
}

fn body() -> ContainerCreateBody {
    let arguments = ["/usr/bin/env", "-i", "true"].map(str::to_owned);
    lockdown().body(&Container {
        image: "sha256:00",
        arguments: &arguments,
        storage: Storage::Work(128),
        lifetime: Duration::from_secs(60),
        socket: None,
        attached: true,
    })
}

#[test]
fn every_row_of_the_lockdown() {
    let mut sent = serde_json::to_value(body()).unwrap();
    let expires = sent["Labels"]
        .as_object_mut()
        .unwrap()
        .remove(EXPIRES)
        .unwrap();
    let expires: u64 = expires.as_str().unwrap().parse().unwrap();
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap()
        .as_secs();
    assert!((now + 50..now + 70).contains(&expires));
    assert_eq!(
        sent,
        json!({
            "Image": "sha256:00",
            "Entrypoint": ["/usr/bin/env"],
            "Cmd": ["-i", "true"],
            "User": "61000:61000",
            "WorkingDir": "/work",
            "Healthcheck": {"Test": ["NONE"]},
            "Labels": {OWNER: "/tmp/plimsoll-docker-config-x/alive.sock"},
            "AttachStdin": true, "AttachStdout": true, "AttachStderr": true,
            "OpenStdin": true, "StdinOnce": true, "Tty": false,
            "HostConfig": {
                "NetworkMode": "none",
                "Runtime": "runsc",
                "Memory": 268_435_456, "MemorySwap": 268_435_456,
                "NanoCpus": 1_500_000_000,
                "PidsLimit": 128,
                "ReadonlyRootfs": true,
                "Tmpfs": {
                    "/tmp": "rw,noexec,nosuid,size=16m",
                    "/dev/shm": "rw,noexec,nosuid,size=16m",
                    "/work": "rw,noexec,nosuid,size=128m,mode=1777",
                },
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges", "seccomp={}"],
                "Ulimits": [
                    {"Name": "core", "Soft": 0, "Hard": 0},
                    {"Name": "nofile", "Soft": 4096, "Hard": 4096},
                    {"Name": "msgqueue", "Soft": 0, "Hard": 0},
                ],
                "IpcMode": "private",
                "LogConfig": {"Type": "none"},
                "AutoRemove": false,
                "Mounts": [{
                    "Type": "bind", "ReadOnly": true,
                    "Source": "/tmp/plimsoll-docker-config-x/resolv.conf",
                    "Target": "/etc/resolv.conf",
                }],
            },
        })
    );
}

/// What an engine answers for a container made by exactly this body.
fn inspected() -> Value {
    let body = serde_json::to_value(body()).unwrap();
    let mut config = body.clone();
    let host = config
        .as_object_mut()
        .unwrap()
        .remove("HostConfig")
        .unwrap();
    json!({"Id": "1", "Image": "sha256:00", "Config": config, "HostConfig": host,
           "NetworkSettings": {"Networks": {"none": {}}}})
}

fn seen(value: Value) -> Vec<&'static str> {
    let seen: ContainerInspectResponse = serde_json::from_value(value).unwrap();
    let mut asked = body();
    // The labels hold the time of the making.
    asked.labels = seen.config.as_ref().and_then(|c| c.labels.clone());
    differences(&asked, &seen)
}

#[test]
fn a_container_as_requested_has_no_difference() {
    assert_eq!(seen(inspected()), Vec::<&str>::new());
}

#[test]
fn the_order_of_mounts_says_nothing() {
    let arguments = ["/bin/true".to_owned()];
    let with_socket = Container {
        image: "sha256:00",
        arguments: &arguments,
        storage: Storage::Scratch,
        lifetime: Duration::from_secs(60),
        socket: Some("/run/s".into()),
        attached: true,
    };
    let asked = lockdown().body(&with_socket);
    let mut host = asked.host_config.clone().unwrap();
    host.mounts.as_mut().unwrap().reverse();
    assert!(
        super::super::readback::differences(
            &asked,
            &ContainerInspectResponse {
                host_config: Some(host),
                ..ContainerInspectResponse::default()
            }
        )
        .iter()
        .all(|what| *what != "mounts")
    );
}

#[test]
fn any_change_to_what_was_asked_is_seen() {
    let changes = [
        ("image", "/Image", json!("sha256:11")),
        ("user", "/Config/User", json!("0:0")),
        ("entrypoint", "/Config/Entrypoint", json!(["/bin/sh"])),
        ("command", "/Config/Cmd", json!(["-c"])),
        ("working directory", "/Config/WorkingDir", json!("/root")),
        ("terminal", "/Config/Tty", json!(true)),
        ("standard input", "/Config/OpenStdin", json!(false)),
        (
            "health check",
            "/Config/Healthcheck",
            json!({"Test": ["CMD", "x"]}),
        ),
        ("volumes", "/Config/Volumes", json!({"/data": {}})),
        (
            "networks",
            "/NetworkSettings/Networks",
            json!({"bridge": {}}),
        ),
        ("network mode", "/HostConfig/NetworkMode", json!("bridge")),
        ("runtime", "/HostConfig/Runtime", json!("runc")),
        ("memory", "/HostConfig/Memory", json!(0)),
        ("swap", "/HostConfig/MemorySwap", json!(-1)),
        ("cpus", "/HostConfig/NanoCpus", json!(0)),
        ("process limit", "/HostConfig/PidsLimit", json!(null)),
        ("read-only root", "/HostConfig/ReadonlyRootfs", json!(false)),
        (
            "tmpfs",
            "/HostConfig/Tmpfs",
            json!({"/tmp": "rw,exec,size=16m"}),
        ),
        ("capabilities", "/HostConfig/CapDrop", json!([])),
        (
            "security options",
            "/HostConfig/SecurityOpt",
            json!(["no-new-privileges"]),
        ),
        ("ulimits", "/HostConfig/Ulimits", json!([])),
        ("ipc mode", "/HostConfig/IpcMode", json!("host")),
        (
            "log driver",
            "/HostConfig/LogConfig",
            json!({"Type": "json-file"}),
        ),
        ("removal", "/HostConfig/AutoRemove", json!(true)),
        ("mounts", "/HostConfig/Mounts", json!([])),
        ("binds", "/HostConfig/Binds", json!(["/:/host"])),
        ("volumes from", "/HostConfig/VolumesFrom", json!(["x"])),
        ("privileged", "/HostConfig/Privileged", json!(true)),
        (
            "added capabilities",
            "/HostConfig/CapAdd",
            json!(["SYS_ADMIN"]),
        ),
        (
            "devices",
            "/HostConfig/Devices",
            json!([{"PathOnHost": "/dev/kvm"}]),
        ),
        (
            "device rules",
            "/HostConfig/DeviceCgroupRules",
            json!(["a *:* rwm"]),
        ),
        ("groups", "/HostConfig/GroupAdd", json!(["0"])),
        ("hosts", "/HostConfig/ExtraHosts", json!(["a:1.2.3.4"])),
        ("sysctls", "/HostConfig/Sysctls", json!({"net.x": "1"})),
        ("pid mode", "/HostConfig/PidMode", json!("host")),
        ("uts mode", "/HostConfig/UTSMode", json!("host")),
        ("user namespace", "/HostConfig/UsernsMode", json!("host")),
        ("oom killer", "/HostConfig/OomKillDisable", json!(true)),
        ("oom score", "/HostConfig/OomScoreAdj", json!(-999)),
        ("swappiness", "/HostConfig/MemorySwappiness", json!(100)),
        ("control group", "/HostConfig/CgroupParent", json!("/other")),
        (
            "restarts",
            "/HostConfig/RestartPolicy",
            json!({"Name": "always", "MaximumRetryCount": 0}),
        ),
        ("masked paths", "/HostConfig/MaskedPaths", json!([])),
        (
            "read-only paths",
            "/HostConfig/ReadonlyPaths",
            json!(["/proc/bus", "/proc/fs"]),
        ),
        (
            "environment",
            "/Config/Env",
            json!(["A=b", "LD_PRELOAD=/x.so"]),
        ),
        ("AppArmor profile", "/AppArmorProfile", json!("unconfined")),
    ];
    for (what, pointer, value) in changes {
        let mut whole = inspected();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        whole.pointer_mut(parent).unwrap()[key] = value;
        assert_eq!(seen(whole), [what]);
    }
}

#[test]
fn a_limit_is_never_sent_as_none() {
    for (cores, nano) in [
        (1.5, 1_500_000_000),
        (0.01, 10_000_000),
        (1e-10, 1),
        (0.0, 1),
        (9_223_372_036.0, 9_223_372_036_000_000_000),
    ] {
        assert_eq!(super::nano_cpus(cores), nano, "{cores}");
    }
}
