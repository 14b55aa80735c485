"""An engine for every test here, a daemon for each runtime, and a look at what is left behind."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from docker_daemon import RUNTIMES, ROOT, Daemon, settings  # noqa: E402
from docker_engine import Engine  # noqa: E402


@pytest.fixture(scope="session", autouse=True)
def engine_settings():
    """Uses the engine that scripts/test.sh prepared, or prepares one for this session alone."""
    if "PLIMSOLL_ENGINE_DIR" in os.environ:
        yield
        return
    script = str(ROOT / "scripts/engine.sh")
    text = subprocess.run([script, "prepare"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = dict(re.findall(r"^export (\w+)=(.*)$", text, re.M))
    os.environ.update(found)
    yield
    subprocess.run([script, "stop"], check=True)


@pytest.fixture(scope="session")
def engine(engine_settings) -> Engine:
    return Engine()


@pytest.fixture(scope="module", params=RUNTIMES)
def runtime(request) -> str:
    """runc, then gVisor."""
    return request.param


@pytest.fixture(scope="module")
def daemon(engine: Engine, runtime: str):
    """One daemon for a module and runtime. It stops cleanly and leaves no container."""
    running = Daemon(settings(runtime))
    yield running
    assert running.stop() == 0
    assert engine.containers(label=["io.plimsoll.expires"]) == []


@pytest.fixture
def start(engine: Engine):
    """Starts daemons with settings of a test's own."""
    running: list[Daemon] = []

    def begin(runtime: str = "runc", **more: str) -> Daemon:
        running.append(Daemon(settings(runtime, **more)))
        return running[-1]

    yield begin
    for each in running:
        each.stop()
