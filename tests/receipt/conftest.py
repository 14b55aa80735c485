"""Fixtures of the receipt tests: the binary, fake daemons, and pull requests to be tested."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "cli")]

from cli_fixtures import cli, fake  # noqa: E402, F401
from receipt_repo import Repo  # noqa: E402


@pytest.fixture
def repo(tmp_path) -> Repo:
    """A repository with the small project as its base and a pull request on top."""
    return Repo(tmp_path / "repo")
