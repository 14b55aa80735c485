"""Daemons that die, callers that go, signals at bad moments: no container and no directory stays."""

from __future__ import annotations

import glob
import os
import signal
import subprocess
import tempfile
import threading
import time

import plimsoll_client as pc
import pytest
from docker_daemon import BINARY, Daemon, settings
from docker_engine import Engine
from test_faults import EXPIRES, SLEEPER, Call, nothing_left, running

MANY = 20


def directories() -> set[str]:
    return set(glob.glob(os.path.join(tempfile.gettempdir(), "plimsoll-docker-config-*")))


def test_a_daemon_killed_amid_twenty_runs(engine: Engine, runtime: str):
    before = directories()
    env = settings(runtime, SANDBOX_MAX_CONCURRENT="32", SANDBOX_PER_KEY_CONCURRENT="0", SANDBOX_MEMORY_MB="128")
    first = Daemon(env)
    code = "console.log('started'); setInterval(() => {}, 1000)"
    calls = [Call(first, code, 30) for _ in range(MANY)]
    # Some run, some are being made: whatever each is at, it must go.
    running(engine, MANY // 2, 120)
    first.kill()
    for call in calls:
        assert call.ended().error is not None
    assert engine.containers(label=[EXPIRES]) != []
    second = Daemon(env)
    # The engine may still end a creation that the dead daemon began; the next sweep has it.
    left = [c for c in engine.containers(label=[EXPIRES]) if c["State"] == "running"]
    assert left == [], "gone before the next daemon listens"
    nothing_left(engine, 100)
    assert second.client.run_javascript("console.log(1)").stdout == b"1\n"
    assert second.stop() == 0
    nothing_left(engine, 15)
    assert directories() - before == set()


def test_a_living_daemon_keeps_its_containers(engine: Engine):
    living = Daemon(settings())
    dying = Daemon(settings())
    kept = Call(living, "setTimeout(() => console.log('ended'), 15000)", 25)
    running(engine, 1)
    lost = Call(dying, SLEEPER)
    running(engine, 2)
    dying.kill()
    assert lost.ended().error is not None
    third = Daemon(settings())
    assert len(running(engine, 1)) == 1
    assert kept.ended().result.stdout == b"ended\n"
    assert (living.stop(), third.stop()) == (0, 0)
    nothing_left(engine, 15)


def test_a_caller_that_goes_takes_its_container_along(daemon: Daemon, engine: Engine):
    handle = pc.CancelHandle()
    gone: list[Exception] = []

    def body() -> None:
        try:
            daemon.client.run_javascript(SLEEPER, timeout=25, cancel=handle)
        except pc.PlimsollError as error:
            gone.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    running(engine)
    handle.cancel()
    thread.join(60)
    assert len(gone) == 1
    nothing_left(engine, 15)


def test_a_signal_during_the_start(engine: Engine):
    before = directories()
    process = subprocess.Popen(
        [str(BINARY), "daemon"], env=settings(), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    ends = time.monotonic() + 60
    while not engine.containers(label=[EXPIRES]):
        assert time.monotonic() < ends and process.poll() is None
        time.sleep(0.02)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=120) == 0
    nothing_left(engine, 5)
    assert directories() - before == set()


@pytest.mark.parametrize("signals", [1, 2])
def test_a_run_command_that_is_stopped(engine: Engine, signals: int, tmp_path):
    """Its own daemon removes the container, however often the signal comes."""
    env = {name: value for name, value in settings().items() if not name.startswith("PLIMSOLL_")}
    env["HOME"] = str(tmp_path)
    process = subprocess.Popen(
        [str(BINARY), "run", "--provider", "docker", "--timeout", "25s", "--js", SLEEPER],
        env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
    )
    ends = time.monotonic() + 90
    while not any(c["State"] == "running" and "smoke" not in c["Names"][0] for c in engine.containers(label=[EXPIRES])):
        assert time.monotonic() < ends and process.poll() is None, process.stderr.read()
        time.sleep(0.02)
    for _ in range(signals):
        # As a terminal does: to the whole group, the embedded daemon too.
        os.killpg(process.pid, signal.SIGTERM)
        time.sleep(0.2)
    process.wait(timeout=120)
    nothing_left(engine, 30)


def test_a_run_command_that_is_killed(engine: Engine, tmp_path):
    env = {name: value for name, value in settings().items() if not name.startswith("PLIMSOLL_")}
    env["HOME"] = str(tmp_path)
    process = subprocess.Popen(
        [str(BINARY), "run", "--provider", "docker", "--timeout", "25s", "--js", SLEEPER],
        env=env, cwd=tmp_path, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )
    ends = time.monotonic() + 90
    while not any(c["State"] == "running" and "smoke" not in c["Names"][0] for c in engine.containers(label=[EXPIRES])):
        assert time.monotonic() < ends and process.poll() is None
        time.sleep(0.02)
    process.kill()
    process.wait(timeout=30)
    # End of standard input tells its daemon; the caller's connection is gone as well.
    nothing_left(engine, 60)


def test_members_of_a_pool_whose_daemon_was_killed(engine: Engine):
    dead = Daemon(settings(SANDBOX_DOCKER_FRESH_POOL="1"))
    ids = {c["Id"] for c in running(engine, 2, 120)}
    dead.kill()
    after = Daemon(settings())
    assert {c["Id"] for c in engine.containers()} & ids == set()
    assert after.stop() == 0
    nothing_left(engine, 15)
