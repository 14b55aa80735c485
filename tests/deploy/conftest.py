"""The engine that the container tests share."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/docker"))

from docker_engine import Engine  # noqa: E402


@pytest.fixture(scope="session")
def engine():
    """The engine that scripts/test.sh prepared, or one for this session alone."""
    if "PLIMSOLL_ENGINE_DIR" in os.environ:
        yield Engine()
        return
    script = str(ROOT / "scripts/engine.sh")
    text = subprocess.run([script, "prepare"], check=True, stdout=subprocess.PIPE, text=True).stdout
    found = dict(re.findall(r"^export (\w+)=(.*)$", text, re.M))
    os.environ.update(found)
    yield Engine()
    subprocess.run([script, "stop"], check=True)
