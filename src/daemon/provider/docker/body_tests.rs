use super::*;
use bollard::models::ContainerInspectResponse;
use serde_json::{Value, json};

use crate::provider::docker::readback::{Asked, differences};

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

fn image() -> Image {
    Image {
        reference: "r:1".to_owned(),
        id: "sha256:00".to_owned(),
        environment: vec!["PATH=/bin".to_owned(), "A=b".to_owned()],
        software: String::new(),
    }
}

fn body() -> ContainerCreateBody {
    let arguments = ["/usr/bin/env", "-i", "true"].map(str::to_owned);
    lockdown().body(&Container {
        image: &image(),
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

/// What an engine answers for a container made by exactly this body: what was
/// asked, the image's own, and what engines write where nothing was asked.
fn inspected() -> Value {
    let mut config = serde_json::to_value(body()).unwrap();
    let mut host = config
        .as_object_mut()
        .unwrap()
        .remove("HostConfig")
        .unwrap();
    let filled_in = [
        json!({
            "Binds": null, "ContainerIDFile": "", "PortBindings": {}, "RestartPolicy": {"Name": "no", "MaximumRetryCount": 0},
            "VolumeDriver": "", "VolumesFrom": null, "CapAdd": null, "CgroupnsMode": "private", "Dns": [], "DnsOptions": [],
            "DnsSearch": [], "ExtraHosts": null, "GroupAdd": null, "Cgroup": "", "Links": null, "OomScoreAdj": 0, "PidMode": "",
            "Privileged": false, "PublishAllPorts": false, "UTSMode": "", "UsernsMode": "", "ShmSize": 67_108_864,
            "ConsoleSize": [0, 0], "Isolation": "", "CpuShares": 0, "CgroupParent": "", "BlkioWeight": 0, "BlkioWeightDevice": [],
        }),
        json!({
            "BlkioDeviceReadBps": null, "CpuPeriod": 0, "CpuQuota": 0, "CpusetCpus": "", "Devices": [], "DeviceCgroupRules": null,
            "DeviceRequests": null, "MemoryReservation": 0, "MemorySwappiness": null, "OomKillDisable": false, "CpuCount": 0,
            "MaskedPaths": ["/proc/asound", "/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware"],
            "ReadonlyPaths": ["/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger"],
        }),
    ];
    for settings in filled_in {
        let settings = settings.as_object().unwrap().clone();
        host.as_object_mut().unwrap().extend(settings);
    }
    config["Hostname"] = json!("0123456789ab");
    config["Domainname"] = json!("");
    config["Env"] = json!(image().environment);
    config["ExposedPorts"] = json!({"80/tcp": {}});
    config["StopSignal"] = json!("SIGQUIT");
    config["OnBuild"] = json!(null);
    config["Labels"]["of.the.image"] = json!("1");
    config["Healthcheck"]["Interval"] = json!(1_000_000_000);
    json!({
        "Id": "0123456789abcdef", "Image": "sha256:00", "Path": "/usr/bin/env", "Args": ["-i", "true"], "AppArmorProfile": "",
        "Config": config, "HostConfig": host, "NetworkSettings": {"Networks": {"none": {}}},
        "Mounts": [{
            "Type": "bind", "Source": "/tmp/plimsoll-docker-config-x/resolv.conf", "Destination": "/etc/resolv.conf",
            "Mode": "", "RW": false, "Propagation": "rprivate",
        }],
    })
}

fn asked(body: ContainerCreateBody) -> Asked {
    Asked {
        body,
        environment: image().environment,
        runtime: "runsc".to_owned(),
    }
}

fn seen(value: Value) -> Vec<String> {
    let seen: ContainerInspectResponse = serde_json::from_value(value).unwrap();
    let mut body = body();
    // The labels hold the time of the making.
    body.labels = seen.config.as_ref().and_then(|c| c.labels.clone());
    differences(&asked(body), &seen)
}

#[test]
fn a_container_as_requested_has_no_difference() {
    assert_eq!(seen(inspected()), Vec::<String>::new());
}

#[test]
fn a_runtime_that_was_not_named_is_the_engine_s_own() {
    let mut lockdown = lockdown();
    lockdown.runtime = String::new();
    let body = lockdown.body(&Container {
        image: &image(),
        arguments: &["/bin/true".to_owned()],
        storage: Storage::Scratch,
        lifetime: Duration::from_secs(60),
        socket: None,
        attached: true,
    });
    assert_eq!(body.host_config.as_ref().unwrap().runtime, None);
    let mut asked = asked(body);
    asked.runtime = "runc".to_owned();
    for (told, fits) in [("runc", true), ("crun", false), ("", false)] {
        let host_config = Some(HostConfig {
            runtime: Some(told.to_owned()),
            ..asked.body.host_config.clone().unwrap()
        });
        let seen = ContainerInspectResponse {
            host_config,
            ..ContainerInspectResponse::default()
        };
        let found = differences(&asked, &seen);
        assert_eq!(
            !found.contains(&"HostConfig.Runtime".to_owned()),
            fits,
            "{told}"
        );
    }
}

#[test]
fn the_order_of_mounts_and_of_variables_says_nothing() {
    let with_socket = Container {
        image: &image(),
        arguments: &["/bin/true".to_owned()],
        storage: Storage::Scratch,
        lifetime: Duration::from_secs(60),
        socket: Some("/run//./s".into()),
        attached: true,
    };
    let body = lockdown().body(&with_socket);
    let mut whole = inspected();
    whole["HostConfig"]["Mounts"] =
        serde_json::to_value(body.host_config.as_ref().unwrap().mounts.as_ref().unwrap()).unwrap();
    let point = json!({"Type": "bind", "Source": "/run/s", "Destination": "/run/host-api.sock", "RW": false});
    whole["Mounts"].as_array_mut().unwrap().insert(0, point);
    whole["HostConfig"]["Mounts"]
        .as_array_mut()
        .unwrap()
        .reverse();
    whole["Config"]["Env"].as_array_mut().unwrap().reverse();
    let seen: ContainerInspectResponse = serde_json::from_value(whole).unwrap();
    let found = differences(&asked(body), &seen);
    for what in ["Mounts", "HostConfig.Mounts", "Config.Env"] {
        assert!(!found.contains(&what.to_owned()), "{what}");
    }
}

#[test]
fn any_change_to_what_was_asked_is_seen() {
    let point = |change: Value| {
        let mut point = inspected()["Mounts"][0].clone();
        let change = change.as_object().unwrap().clone();
        point.as_object_mut().unwrap().extend(change);
        point
    };
    let resolver = point(json!({}));
    let volume = json!({"Type": "volume", "Name": "v", "Source": "/var/lib/docker/volumes/v/_data", "Destination": "/data", "RW": true});
    let changes = [
        ("/Image", json!("sha256:11")),
        ("/Config/User", json!("0:0")),
        ("/Config/Entrypoint", json!(["/bin/sh"])),
        ("/Config/Cmd", json!(["-c"])),
        ("/Config/WorkingDir", json!("/root")),
        ("/Config/Tty", json!(true)),
        ("/Config/OpenStdin", json!(false)),
        ("/Config/Healthcheck", json!({"Test": ["CMD", "x"]})),
        ("/Config/Volumes", json!({"/data": {}})),
        ("/NetworkSettings/Networks", json!({"bridge": {}})),
        ("/HostConfig/NetworkMode", json!("bridge")),
        ("/HostConfig/Runtime", json!("runc")),
        ("/HostConfig/Memory", json!(0)),
        ("/HostConfig/MemorySwap", json!(-1)),
        ("/HostConfig/NanoCpus", json!(0)),
        ("/HostConfig/PidsLimit", json!(null)),
        ("/HostConfig/ReadonlyRootfs", json!(false)),
        ("/HostConfig/Tmpfs", json!({"/tmp": "rw,exec,size=16m"})),
        ("/HostConfig/CapDrop", json!([])),
        ("/HostConfig/SecurityOpt", json!(["no-new-privileges"])),
        ("/HostConfig/Ulimits", json!([])),
        ("/HostConfig/IpcMode", json!("host")),
        ("/HostConfig/LogConfig", json!({"Type": "json-file"})),
        ("/HostConfig/AutoRemove", json!(true)),
        ("/HostConfig/Mounts", json!([])),
        ("/HostConfig/Binds", json!(["/:/host"])),
        ("/HostConfig/VolumesFrom", json!(["x"])),
        ("/HostConfig/Privileged", json!(true)),
        ("/HostConfig/CapAdd", json!(["SYS_ADMIN"])),
        ("/HostConfig/Devices", json!([{"PathOnHost": "/dev/kvm"}])),
        ("/HostConfig/DeviceCgroupRules", json!(["a *:* rwm"])),
        ("/HostConfig/GroupAdd", json!(["0"])),
        ("/HostConfig/ExtraHosts", json!(["a:1.2.3.4"])),
        ("/HostConfig/Sysctls", json!({"net.x": "1"})),
        ("/HostConfig/PidMode", json!("host")),
        ("/HostConfig/UTSMode", json!("host")),
        ("/HostConfig/UsernsMode", json!("host")),
        ("/HostConfig/OomKillDisable", json!(true)),
        ("/HostConfig/OomScoreAdj", json!(-999)),
        ("/HostConfig/MemorySwappiness", json!(100)),
        ("/HostConfig/CgroupParent", json!("/other")),
        (
            "/HostConfig/RestartPolicy",
            json!({"Name": "always", "MaximumRetryCount": 0}),
        ),
        ("/HostConfig/MaskedPaths", json!([])),
        (
            "/HostConfig/ReadonlyPaths",
            json!(["/proc/bus", "/proc/fs"]),
        ),
        ("/Config/Env", json!(["A=b", "LD_PRELOAD=/x.so"])),
        ("/AppArmorProfile", json!("unconfined")),
        ("/Config/Image", json!("other")),
        ("/Config/AttachStdin", json!(false)),
        ("/Config/StdinOnce", json!(false)),
        ("/Config/Hostname", json!("a-host")),
        ("/Config/Domainname", json!("corp.example")),
        (
            "/Config/Env",
            json!(["PATH=/bin", "A=b", "HTTPS_PROXY=http://user:word@proxy"]),
        ),
        ("/Config/Env", json!(["PATH=/bin", "A=b", "A=b"])),
        ("/Config/Env", json!(["PATH=/bin", "A=c"])),
        ("/Config/Env", json!(["PATH=/bin"])),
        ("/Config/Env", json!(null)),
        ("/Config/StopTimeout", json!(100)),
        ("/Config/NetworkDisabled", json!(true)),
        ("/Path", json!("/sbin/docker-init")),
        ("/Args", json!(["--", "true"])),
        ("/Mounts", json!([])),
        ("/Mounts", json!([resolver, volume])),
        ("/Mounts", json!([point(json!({"RW": true}))])),
        (
            "/Mounts",
            json!([point(json!({"Source": "/etc/resolv.conf"}))]),
        ),
        (
            "/Mounts",
            json!([point(json!({"Destination": "/etc/hosts"}))]),
        ),
        ("/Mounts", json!([point(json!({"Type": "volume"}))])),
        ("/HostConfig/Mounts", json!(null)),
        ("/HostConfig/Runtime", json!("")),
        ("/HostConfig/Runtime", json!(null)),
        ("/HostConfig/Init", json!(true)),
        (
            "/HostConfig/DeviceRequests",
            json!([{"Driver": "nvidia", "Count": -1}]),
        ),
        (
            "/HostConfig/PortBindings",
            json!({"80/tcp": [{"HostIp": "", "HostPort": ""}]}),
        ),
        ("/HostConfig/PublishAllPorts", json!(true)),
        ("/HostConfig/Links", json!(["db:db"])),
        ("/HostConfig/Dns", json!(["10.0.0.1"])),
        ("/HostConfig/DnsSearch", json!(["corp.example"])),
        ("/HostConfig/Cgroup", json!("container:x")),
        ("/HostConfig/VolumeDriver", json!("remote")),
        ("/HostConfig/StorageOpt", json!({"size": "100G"})),
        (
            "/HostConfig/Annotations",
            json!({"dev.gvisor.spec.mount.x.type": "bind"}),
        ),
        ("/HostConfig/CpusetCpus", json!("0")),
        ("/HostConfig/CpuQuota", json!(-1)),
        ("/HostConfig/CpuShares", json!(2)),
        ("/HostConfig/MemoryReservation", json!(1)),
        ("/HostConfig/CapDrop", json!(null)),
        (
            "/HostConfig/SecurityOpt",
            json!(["no-new-privileges", "seccomp={}", "apparmor=unconfined"]),
        ),
    ];
    for (pointer, value) in changes {
        let mut whole = inspected();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        whole.pointer_mut(parent).unwrap()[key] = value.clone();
        let what = pointer.trim_start_matches('/').replace('/', ".");
        let what = if what == "Args" { "Path" } else { &what };
        assert_eq!(seen(whole), [what], "{pointer} {value}");
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
