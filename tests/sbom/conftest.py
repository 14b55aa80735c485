"""Fixtures of the tests of BOMs."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "cli"))

from cli_fixtures import cli  # noqa: E402, F401
