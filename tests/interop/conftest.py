"""A real daemon for each test module, on a loopback port of its own choosing."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from interop_daemon import TOKEN, Daemon  # noqa: E402


@pytest.fixture(scope="module")
def daemon():
    running = Daemon(SANDBOX_PROVIDER="wasm", PLIMSOLL_TOKEN=TOKEN, SANDBOX_RATE_PER_MIN="0")
    yield running
    assert running.stop() == 0


@pytest.fixture
def start():
    """Starts daemons with settings of a test's own."""
    running: list[Daemon] = []

    def begin(**settings: str) -> Daemon:
        running.append(Daemon(**settings))
        return running[-1]

    yield begin
    for each in running:
        each.stop()
