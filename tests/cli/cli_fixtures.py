"""Fixtures of every suite that runs the binary; a suite's conftest names those it uses."""

from __future__ import annotations

import pytest
from cli_fake import Fake
from cli_tool import Cli


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
