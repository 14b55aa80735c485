"""A bench for the runner, its work directory empty before each test."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import pytest
from runner_process import Bench


@pytest.fixture(scope="session")
def workshop():
    # Not pytest's own temporary directory: the guest must be able to enter it.
    home = Path(tempfile.mkdtemp(prefix="plimsoll-runner-"))
    yield Bench(home)
    shutil.rmtree(home)


@pytest.fixture
def bench(workshop: Bench) -> Bench:
    workshop.fresh()
    return workshop
