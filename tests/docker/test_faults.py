"""The engine slow, failing, cut off, stopped and killed while code runs: the right class of error, nothing left."""

from __future__ import annotations

import re
import tempfile
import threading
import time
from pathlib import Path

import plimsoll_client as pc
import pytest
from docker_daemon import SNIPPET_IMAGE, Daemon, settings
from docker_engine import Engine
from docker_own_engine import OwnEngine
from docker_proxy import SECRET, Proxy

EXPIRES = "io.plimsoll.expires"
SLEEPER = "console.log('started'); setTimeout(() => console.log('ended'), 20000)"


@pytest.fixture
def proxy(engine: Engine):
    with tempfile.TemporaryDirectory(prefix="px") as directory:
        yield Proxy(engine.socket, Path(directory))


@pytest.fixture
def proxied(proxy: Proxy, runtime: str):
    """A daemon whose engine is behind the proxy."""
    running = Daemon(settings(runtime, DOCKER_HOST=proxy.host))
    yield running
    proxy.mend()
    assert running.stop() == 0


@pytest.fixture(scope="module")
def own(engine: Engine):
    directory = Path(tempfile.mkdtemp(prefix="own"))
    made = OwnEngine(directory, engine)
    yield made
    made.close()


class Call:
    """A snippet in flight."""

    def __init__(self, daemon: Daemon, code: str, timeout: float = 25) -> None:
        self.result = self.error = None
        self._thread = threading.Thread(target=self._run, args=(daemon, code, timeout))
        self._thread.start()

    def _run(self, daemon: Daemon, code: str, timeout: float) -> None:
        try:
            self.result = daemon.client.run_javascript(code, timeout=timeout)
        except pc.PlimsollError as error:
            self.error = error

    def ended(self, seconds: float = 120):
        self._thread.join(seconds)
        assert not self._thread.is_alive()
        return self


def running(engine: Engine, count: int = 1, seconds: float = 60) -> list[dict]:
    """Waits until so many containers of runs are running."""
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        found = [c for c in engine.containers(label=[EXPIRES]) if c["State"] == "running"]
        if len(found) >= count:
            return found
        time.sleep(0.05)
    raise AssertionError(f"not {count} running: {engine.names()}")


def nothing_left(engine: Engine, seconds: float) -> None:
    ends = time.monotonic() + seconds
    while engine.containers(label=[EXPIRES]):
        assert time.monotonic() < ends, engine.names()
        time.sleep(0.2)


TICKING = "setInterval(() => console.log('tick'), 50); setTimeout(() => process.exit(), 60000)"


def has_its_code(engine: Engine) -> None:
    """Waits until the guest of the one container there is has its code, which ticks: from then on a fault is no
    longer one before anything ran."""
    with engine.attach(running(engine)[0]["Id"], stdin=False) as stream:
        stream.settimeout(60)
        seen = b""
        while b"tick" not in seen:
            piece = stream.recv(4096)
            assert piece, seen
            seen += piece


def is_internal_and_private(error: pc.PlimsollError) -> None:
    """Nothing of the engine's words, nor of its socket, in what a caller sees."""
    assert re.search(r"internal error [0-9a-f]{16}", str(error)), error
    for word in (SECRET, "/tmp", "sock", "500", "docker"):
        assert word not in str(error), error


@pytest.mark.parametrize("route", ["create", "inspect", "attach", "start"])
def test_an_error_before_the_code_is_fed(proxied: Daemon, proxy: Proxy, engine: Engine, route: str):
    proxied.client.run_javascript("1")
    proxy.fail(route, 1)
    with pytest.raises(pc.PlimsollError) as failure:
        proxied.client.run_javascript("console.log('ran')")
    assert failure.value.not_dispatched == "environment"
    is_internal_and_private(failure.value)
    assert SECRET in proxied.wait_for("code run failed", 30)["error"], "the log has what callers do not see"
    nothing_left(engine, 15)
    assert proxied.client.run_javascript("console.log(1)").stdout == b"1\n"


def test_an_error_in_mid_run(proxied: Daemon, proxy: Proxy, engine: Engine):
    proxy.fail("wait", 1)
    with pytest.raises(pc.PlimsollError) as failure:
        proxied.client.run_javascript("console.log('ran')")
    assert failure.value.not_dispatched is None, "the code may have run, and did"
    is_internal_and_private(failure.value)
    nothing_left(engine, 15)


def test_a_removal_that_fails_twice(proxied: Daemon, proxy: Proxy, engine: Engine):
    proxy.fail("remove", 2)
    result = proxied.client.run_javascript("while(true){}", timeout=0.5)
    assert (result.timed_out, result.exit_code) == (True, 124)
    assert engine.containers(label=[EXPIRES]) == []


def test_a_slow_engine_does_not_eat_the_budget(proxied: Daemon, proxy: Proxy):
    proxy.delay = 0.7
    result = proxied.client.run_javascript("console.log(6*7)", timeout=3)
    assert (result.stdout, result.timed_out) == (b"42\n", False)


def test_connections_lost_in_mid_run(proxied: Daemon, proxy: Proxy, engine: Engine):
    call = Call(proxied, TICKING)
    has_its_code(engine)
    proxy.cut()
    time.sleep(0.5)
    proxy.restore()
    error = call.ended().error
    assert error is not None and error.not_dispatched is None
    is_internal_and_private(error)
    nothing_left(engine, 30)
    assert proxied.client.run_javascript("console.log(1)").stdout == b"1\n"


def test_a_guest_that_closes_its_own_streams(proxied: Daemon):
    code = "const fs=require('fs');fs.writeSync(1,'a');fs.closeSync(1);fs.closeSync(2);setTimeout(()=>process.exit(4),1500)"
    result = proxied.client.run_javascript(code, timeout=25)
    assert (result.stdout, result.exit_code, result.timed_out) == (b"a", 4, False)


def test_a_stream_that_ends_before_its_container(proxied: Daemon, proxy: Proxy, engine: Engine):
    call = Call(proxied, TICKING)
    has_its_code(engine)
    proxy.end("attach")
    error = call.ended().error
    assert error is not None and error.not_dispatched is None, call.result
    is_internal_and_private(error)
    nothing_left(engine, 30)


def test_an_engine_that_is_away(proxied: Daemon, proxy: Proxy, engine: Engine, runtime: str):
    proxied.client.run_javascript("1")
    proxy.cut()
    status, body = wait_for_status(proxied, 503)
    assert body == "not ready\n"
    with pytest.raises(pc.PlimsollError) as failure:
        proxied.client.run_javascript("1", minimum_isolation="kernel" if runtime == "runsc" else None)
    assert failure.value.not_dispatched == ("isolation" if runtime == "runsc" else "environment")
    assert proxied.get("/healthz") == (200, "ok\n")
    proxy.restore()
    wait_for_status(proxied, 200)
    floor = "kernel" if runtime == "runsc" else "container"
    assert proxied.client.run_javascript("console.log(1)", minimum_isolation=floor).stdout == b"1\n"


def wait_for_status(daemon: Daemon, status: int, seconds: float = 30) -> tuple[int, str]:
    """Polls readiness; a good answer stands for a few seconds."""
    ends = time.monotonic() + seconds
    while True:
        answer = daemon.get("/readyz")
        if answer[0] == status:
            return answer
        assert time.monotonic() < ends, answer
        time.sleep(0.2)


@pytest.mark.parametrize("harm", ["stop", "kill"])
def test_the_engine_itself_stopped_in_mid_run(own: OwnEngine, harm: str):
    env = settings("runc", DOCKER_HOST=own.host, SANDBOX_DOCKER_PROJECT_IMAGE=SNIPPET_IMAGE)
    daemon = Daemon(env)
    try:
        call = Call(daemon, SLEEPER)
        running(own)
        getattr(own, harm)()
        error = call.ended().error
        assert error is not None, f"the engine's own signal read as the guest's end: {call.result}"
        assert error.not_dispatched is None
        is_internal_and_private(error)
        with pytest.raises(pc.PlimsollError) as refused:
            daemon.client.run_javascript("1")
        assert refused.value.not_dispatched == "environment"
        own.start()
        wait_for_status(daemon, 200)
        assert daemon.client.run_javascript("console.log(1)").stdout == b"1\n"
        # The daemon could not remove it while the engine was away: it does now that it is back.
        nothing_left(own, 45)
    finally:
        assert daemon.stop() == 0
        if own.process.poll() is not None:
            own.start()


def test_a_gvisor_that_is_exchanged_under_its_name(own: OwnEngine):
    """The tier is that of the program the start proved, not of whatever has its name later."""
    env = settings("runsc", DOCKER_HOST=own.host, SANDBOX_DOCKER_PROJECT_IMAGE=SNIPPET_IMAGE)
    first = Daemon(env)
    try:
        result = first.client.run_javascript("console.log(1)", minimum_isolation="kernel")
        assert (result.stdout, result.isolation) == (b"1\n", "kernel")
        own.exchange_gvisor("second")
        wait_for_status(first, 503)
        assert first.client.describe().isolation == "container"
        for floor, reason in [("kernel", "isolation"), ("container", "environment")]:
            with pytest.raises(pc.PlimsollError) as refused:
                first.client.run_javascript("console.log(1)", minimum_isolation=floor)
            assert refused.value.not_dispatched == reason
            assert "runsc" not in str(refused.value)
        assert own.containers(label=[EXPIRES]) == []
        second = Daemon(env)
        try:
            result = second.client.run_javascript("console.log(2)", minimum_isolation="kernel")
            assert (result.stdout, result.isolation) == (b"2\n", "kernel")
            assert first.get("/readyz")[0] == 503, "another daemon's proof is not this one's"
        finally:
            assert second.stop() == 0
    finally:
        assert first.stop() == 0
