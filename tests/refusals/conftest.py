"""The helpers of the other suites."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("cli", "second_opinion"):
    sys.path.insert(0, str(ROOT / "tests" / folder))
sys.path.insert(0, str(Path(__file__).parent))

import pytest  # noqa: E402
from cli_tool import Cli  # noqa: E402


@pytest.fixture
def cli(tmp_path) -> Cli:
    """The binary with an empty home and an empty directory to work in."""
    return Cli(tmp_path)
