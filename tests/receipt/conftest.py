"""Fixtures of the receipt tests: the binary, fake daemons, and pull requests to be tested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

from cli_fake import Fake  # noqa: E402
from cli_tool import Cli  # noqa: E402
from receipt_repo import Repo  # noqa: E402


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


@pytest.fixture
def repo(tmp_path) -> Repo:
    """A repository with the small project as its base and a pull request on top."""
    return Repo(tmp_path / "repo")
