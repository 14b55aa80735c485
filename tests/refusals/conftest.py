"""The helpers of the other suites."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
for folder in ("cli", "second_opinion"):
    sys.path.insert(0, str(ROOT / "tests" / folder))
sys.path.insert(0, str(Path(__file__).parent))

from cli_fixtures import cli  # noqa: E402, F401
