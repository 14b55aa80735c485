"""Fixtures of the command-line tests."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from cli_fixtures import cli, fake  # noqa: E402, F401
