"""Fixtures of the command-line tests."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from cli_fake import Fake  # noqa: E402
from cli_tool import Cli  # noqa: E402


@pytest.fixture
def cli(tmp_path) -> Cli:
    """The binary with an empty home and an empty directory to work in."""
    return Cli(tmp_path)


@pytest.fixture
def fake():
    """Makes fake daemons that end with the test."""
    running: list[Fake] = []

    def begin(answer) -> Fake:
        running.append(Fake(answer))
        return running[-1]

    yield begin
    for each in running:
        each.stop()
