"""Fixtures of the tests of BOMs."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from cli_tool import Cli  # noqa: E402


@pytest.fixture
def cli(tmp_path) -> Cli:
    """The binary with an empty home and an empty directory to work in."""
    return Cli(tmp_path)
