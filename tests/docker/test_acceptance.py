"""What the docker provider accepts at start, what it refuses, and what its containers look like to the engine."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import plimsoll_client as pc
import pytest
from docker_daemon import PROJECT_IMAGE, SNIPPET_IMAGE, Daemon, Refused
from docker_engine import Engine
from docker_registry import Registry

EXPIRES, OWNER = "io.plimsoll.expires", "io.plimsoll.owner"
MIB = 1 << 20


@pytest.fixture
def image(engine: Engine):
    """Makes images of a test's own; they go with it."""
    made: list[str] = []

    def build(name: str, *lines: str, base: str = PROJECT_IMAGE) -> str:
        tag = f"plimsoll/test-{name}:latest"
        engine.build(tag, base, *lines)
        made.append(tag)
        return tag

    yield build
    for tag in made:
        engine.call("DELETE", f"/images/{tag}", force=1)


def refused(start, *args: str, **more: str) -> Refused:
    with pytest.raises(Refused) as failure:
        start(*args, **more)
    assert failure.value.code != 0
    return failure.value


def during(daemon: Daemon, engine: Engine, run) -> dict:
    """Inspects the container of a call while it runs; the call is stopped afterwards."""
    handle = pc.CancelHandle()

    def body() -> None:
        try:
            run(handle)
        except pc.RequestCanceledError:
            pass

    thread = threading.Thread(target=body)
    thread.start()
    deadline = time.monotonic() + 30
    found: list[dict] = []
    while not found and time.monotonic() < deadline:
        found = [c for c in engine.containers(label=[EXPIRES]) if c["State"] == "running"]
        time.sleep(0.02)
    try:
        return engine.inspect(found[0]["Id"])
    finally:
        handle.cancel()
        thread.join(30)
        while engine.containers(label=[EXPIRES]) and time.monotonic() < deadline + 30:
            time.sleep(0.02)


@pytest.mark.parametrize("kind", ["snippet", "project"])
def test_every_option_of_a_running_container(daemon: Daemon, engine: Engine, runtime: str, kind: str):
    project = kind == "project"
    now = time.time()
    if project:
        seen = during(daemon, engine, lambda h: daemon.client.run_project({}, ["sleep 60"], timeout=60, cancel=h))
    else:
        seen = during(daemon, engine, lambda h: daemon.client.run_javascript("setInterval(()=>{},1e3)", timeout=30, cancel=h))
    config, host = seen["Config"], seen["HostConfig"]
    name = seen["Name"].lstrip("/")
    assert name.startswith("crsbx-") and len(name) == len("crsbx-") + 16 and int(name[6:], 16) >= 0
    assert seen["Image"] == config["Image"] == engine.image(PROJECT_IMAGE if project else SNIPPET_IMAGE)["Id"]
    assert config["Entrypoint"] == ["/usr/bin/env"] and config["Cmd"][0] == "-i"
    assert (config["User"], config["WorkingDir"]) == ("61000:61000", "/work" if project else "/")
    assert not config["Env"] and config["Healthcheck"] == {"Test": ["NONE"]}
    assert not config["Tty"] and config["OpenStdin"] and config["StdinOnce"] and config["AttachStdin"]
    assert not config.get("ExposedPorts") and not config.get("Volumes")
    budget = 60 + 5 if project else 30
    assert now + 1 <= int(config["Labels"][EXPIRES]) <= now + budget + 300
    owner = Path(config["Labels"][OWNER])
    assert owner.name == "alive.sock" and owner.is_socket() and owner.parent.name.startswith("plimsoll-docker-config-")
    assert owner.parent.stat().st_mode & 0o777 == 0o700

    expected = {
        "NetworkMode": "none", "Runtime": runtime, "Memory": 256 * MIB, "MemorySwap": 256 * MIB, "NanoCpus": 10**9, "PidsLimit": 256,
        "ReadonlyRootfs": True, "Privileged": False, "CapDrop": ["ALL"], "IpcMode": "private", "AutoRemove": False,
        "PublishAllPorts": False,
    }
    assert {key: host[key] for key in expected} == expected
    assert host["LogConfig"]["Type"] == "none"
    for empty in ["CapAdd", "Devices", "DeviceRequests", "ExtraHosts", "Dns", "DnsSearch", "DnsOptions", "Binds", "VolumesFrom", "PortBindings", "GroupAdd", "Links"]:
        assert not host.get(empty), empty
    assert (host["PidMode"], host["UTSMode"], host["UsernsMode"]) == ("", "", "")
    disks = {"/tmp": "rw,noexec,nosuid,size=16m", "/dev/shm": "rw,noexec,nosuid,size=16m"}
    if project:
        disks["/work"] = "rw,noexec,nosuid,size=128m,mode=1777"
    assert host["Tmpfs"] == disks
    security = host["SecurityOpt"]
    assert "no-new-privileges" in security
    assert len([s for s in security if s.startswith("seccomp=")]) == (1 if runtime == "runc" else 0)
    assert not [s for s in security if "unconfined" in s]
    limits = {u["Name"]: (u["Soft"], u["Hard"]) for u in host["Ulimits"]}
    assert limits["core"] == (0, 0) and limits["nofile"] == (4096, 4096)
    (mount,) = seen["Mounts"]
    assert (mount["Type"], mount["Destination"], mount["RW"]) == ("bind", "/etc/resolv.conf", False)
    resolver = Path(mount["Source"])
    assert list(seen["NetworkSettings"]["Networks"]) == ["none"]
    assert resolver.read_bytes() == b"nameserver 127.0.0.1\n" and resolver.stat().st_mode & 0o777 == 0o444


def test_limits_are_what_the_settings_say(start, engine: Engine):
    daemon = start(SANDBOX_MEMORY_MB="128", SANDBOX_CPUS="0.5", SANDBOX_PIDS="100", SANDBOX_DISK_MB="64", SANDBOX_GUEST_UID="4242")
    info = daemon.client.describe()
    assert (info.resources.memory_mb, info.resources.cpus, info.resources.pids, info.resources.disk_mb) == (128, 0.5, 100, 64)
    seen = during(daemon, engine, lambda h: daemon.client.run_project({}, ["sleep 60"], timeout=60, cancel=h))["HostConfig"]
    assert (seen["Memory"], seen["MemorySwap"], seen["NanoCpus"], seen["PidsLimit"]) == (128 * MIB, 128 * MIB, 5 * 10**8, 100)
    assert "size=32m" in seen["Tmpfs"]["/work"]
    result = daemon.client.run_project({}, ["id -u; dd if=/dev/zero of=/work/f bs=1M count=99 2>/dev/null; wc -c < /work/f; cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null"])
    assert result.steps[0].stdout.split() == [b"4242", str(32 * MIB).encode(), b"100"]


def test_two_daemons_do_not_touch_each_other(start, engine: Engine):
    first = start()
    ended: list = []
    thread = threading.Thread(target=lambda: ended.append(first.client.run_project({}, ["sleep 5; echo done"], timeout=60)))
    thread.start()
    deadline = time.monotonic() + 30
    while not engine.containers(label=[EXPIRES]) and time.monotonic() < deadline:
        time.sleep(0.02)
    second = start()
    assert second.client.run_javascript("console.log(1)").stdout == b"1\n"
    assert second.stop() == 0
    thread.join(60)
    assert ended[0].outcome == "completed" and ended[0].steps[0].stdout == b"done\n"


def test_an_image_with_a_volume(start, image):
    assert "/data" in refused(start, SANDBOX_DOCKER_PROJECT_IMAGE=image("volume", "VOLUME /data /also")).text


@pytest.mark.parametrize("variable", ["LD_PRELOAD=/x", "LD_LIBRARY_PATH=/work", "GLIBC_TUNABLES=a=b", "GCONV_PATH=/work"])
def test_an_image_whose_variable_the_loader_reads(start, image, variable: str):
    assert variable.split("=")[0] in refused(start, SANDBOX_DOCKER_IMAGE=image("loader", f"ENV {variable}", base=SNIPPET_IMAGE)).text


def test_image_variables_reach_steps_and_not_the_runner(start, image):
    daemon = start(SANDBOX_DOCKER_PROJECT_IMAGE=image("variables", "ENV NODE_OPTIONS=--require=/work/x.js SECRET_OF_IMAGE=s"))
    result = daemon.client.run_project({"x.js": "console.log('required')"}, ["echo $NODE_OPTIONS $SECRET_OF_IMAGE; node -e 1"])
    assert result.outcome == "completed", result.detail
    assert result.steps[0].stdout == b"--require=/work/x.js s\nrequired\n"


def test_what_an_image_would_start_is_not_started(start, image, engine: Engine):
    daemon = start(SANDBOX_DOCKER_PROJECT_IMAGE=image("starts", "HEALTHCHECK --interval=1s CMD touch /work/health", "USER root", "WORKDIR /tmp", 'ENTRYPOINT ["/bin/false"]'))
    result = daemon.client.run_project({}, ["id -u; pwd; sleep 2.5; ls -A /work"], timeout=30)
    assert result.steps[0].stdout.split() == [b"61000", b"/work"]


def test_an_image_without_a_work_directory_anyone_may_write(start, image):
    name = image("closed", "RUN chmod 0755 /work")
    assert name.split(":")[0] in refused(start, SANDBOX_DOCKER_PROJECT_IMAGE=name).text


def test_an_image_without_the_runner(start, image):
    name = image("bare", "RUN rm /runner.mjs")
    assert name.split(":")[0] in refused(start, SANDBOX_DOCKER_PROJECT_IMAGE=name).text


def test_an_image_that_is_not_there_is_not_pulled(start):
    assert "plimsoll/absent" in refused(start, SANDBOX_DOCKER_IMAGE="plimsoll/absent:latest").text


def test_a_tag_that_moves_after_start(start, image, engine: Engine):
    name = image("moving", "LABEL version=1", base=SNIPPET_IMAGE)
    daemon = start(SANDBOX_DOCKER_IMAGE=name)
    assert daemon.client.run_javascript("console.log(1)").stdout == b"1\n"
    engine.build(name, SNIPPET_IMAGE, "LABEL version=2")
    deadline = time.monotonic() + 20
    while daemon.get("/readyz")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert daemon.get("/readyz")[0] == 503
    with pytest.raises(pc.PlimsollError) as moved:
        daemon.client.run_javascript("console.log(1)")
    assert moved.value.not_dispatched == "environment"
    assert engine.containers(label=[EXPIRES]) == []


@pytest.mark.parametrize("harm", ["removed", "edited", "replaced"])
def test_a_resolver_file_that_was_touched(start, engine: Engine, harm: str):
    daemon = start()
    seen = during(daemon, engine, lambda h: daemon.client.run_javascript("setInterval(()=>{},1e3)", timeout=30, cancel=h))
    resolver = Path(seen["Mounts"][0]["Source"])
    original = resolver.read_bytes()
    assert daemon.get("/readyz")[0] == 200
    if harm == "edited":
        os.chmod(resolver, 0o644)
        resolver.write_bytes(b"nameserver 10.0.0.1\n")
    else:
        resolver.unlink()
        if harm == "replaced":
            resolver.symlink_to("/etc/resolv.conf")
    deadline = time.monotonic() + 20
    while daemon.get("/readyz")[0] == 200 and time.monotonic() < deadline:
        time.sleep(0.1)
    assert daemon.get("/readyz")[0] == 503
    with pytest.raises(pc.PlimsollError) as touched:
        daemon.client.run_javascript("console.log(1)")
    assert touched.value.not_dispatched == "environment"
    assert str(resolver) not in str(touched.value) and "nameserver" not in str(touched.value)
    # Putting it back is no repair that could be trusted.
    resolver.unlink(missing_ok=True)
    resolver.write_bytes(original)
    time.sleep(5.5)
    assert daemon.get("/readyz")[0] == 503


@pytest.mark.parametrize("uid", ["0", "60100", "60705", "61183", "65533", "-1", "x", "4294967296"])
def test_guest_numbers_that_could_be_somebody(start, uid: str):
    assert "SANDBOX_GUEST_UID" in refused(start, SANDBOX_GUEST_UID=uid).text


@pytest.mark.parametrize("name, value", [
    ("DOCKER_HOST", "tcp://127.0.0.1:2375"), ("DOCKER_HOST", "ssh://host"), ("DOCKER_HOST", "http://127.0.0.1"), ("DOCKER_HOST", "somewhere"),
    ("SANDBOX_DOCKER_IMAGE", "-v"), ("SANDBOX_DOCKER_IMAGE", "a b"), ("SANDBOX_MEMORY_MB", "-1"), ("SANDBOX_CPUS", "NaN"), ("SANDBOX_PIDS", "many"),
    ("SANDBOX_DISK_MB", "32"), ("SANDBOX_DISK_MB", "-5"), ("SANDBOX_REQUIRE_PINNED_IMAGES", "1"), ("SANDBOX_REQUIRE_PINNED_IMAGES", "maybe"),
    ("SANDBOX_DOCKER_SECCOMP", "/nonexistent/profile.json"), ("SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS", "1"),
])
def test_settings_that_are_refused(start, name: str, value: str):
    failure = refused(start, **{name: value})
    assert name in failure.text or value in failure.text, failure.text


def test_images_named_by_digest(start, engine: Engine):
    registry = Registry()
    pinned = registry.push(engine, SNIPPET_IMAGE, "plimsoll/pinned")
    try:
        daemon = start(SANDBOX_REQUIRE_PINNED_IMAGES="1", SANDBOX_DOCKER_IMAGE=pinned, SANDBOX_DOCKER_PROJECT_IMAGE=pinned)
        result = daemon.client.run_javascript("console.log(1)")
        assert result.stdout == b"1\n"
        assert result.environment == "docker-image:" + engine.image(SNIPPET_IMAGE)["Id"]
        assert daemon.client.run_project({}, ["echo 2"]).steps[0].stdout == b"2\n"
        by_tag = refused(start, SANDBOX_REQUIRE_PINNED_IMAGES="1", SANDBOX_DOCKER_IMAGE=pinned, SANDBOX_DOCKER_PROJECT_IMAGE=pinned.split("@")[0] + ":pushed")
        assert ":pushed" in by_tag.text
        other = pinned[:-64] + "0" * 64
        assert other in refused(start, SANDBOX_REQUIRE_PINNED_IMAGES="1", SANDBOX_DOCKER_IMAGE=other, SANDBOX_DOCKER_PROJECT_IMAGE=pinned).text
    finally:
        registry.close()
        engine.call("DELETE", f"/images/{pinned.split('@')[0]}:pushed")


def test_an_engine_that_is_not_there(start, tmp_path):
    assert "docker" in refused(start, DOCKER_HOST=f"unix://{tmp_path}/none.sock").text.lower()


def test_a_runtime_that_is_not_registered(start):
    assert "runsc-of-nobody" in refused(start, "runsc-of-nobody", SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS=None).text


def test_gvisor_that_cannot_reach_host_sockets(start):
    assert "--host-uds=open" in refused(start, "runsc-closed", SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS=None).text


def test_old_gvisor_needs_the_operator_s_word(start):
    failure = refused(start, "runsc", SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS=None)
    assert "runner" in failure.text and "descriptor" in failure.text


def test_a_failed_start_leaves_nothing(start, engine: Engine, image):
    name = image("bare", "RUN rm /runner.mjs")
    refused(start, SANDBOX_DOCKER_PROJECT_IMAGE=name)
    assert engine.containers(label=[EXPIRES]) == []
    assert not [n for n in engine.names() if n.startswith("crsbx-")]


def test_no_guest_text_in_the_log(start):
    daemon = start()
    secret = "GUEST-WORDS-4711"
    daemon.client.run_javascript(f"console.log('{secret}');console.error('{secret}');process.exit(2)")
    daemon.client.run_project({"f": secret}, [f"echo {secret}; cat f >&2; exit 3"])
    assert daemon.stop() == 0
    assert secret not in daemon.log
