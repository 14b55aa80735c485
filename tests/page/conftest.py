"""Fixtures of the page's tests: a browser, and pages as the binary writes them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from page_browser import Browser  # noqa: E402
from page_paths import ROOT  # noqa: E402


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """One browser for all tests."""
    running = Browser(tmp_path_factory.mktemp("browser"))
    yield running
    running.close()


@pytest.fixture
def tab(browser):
    """A fresh tab."""
    one = browser.tab()
    yield one
    one.close()


@pytest.fixture(scope="session")
def receipts(tmp_path_factory) -> Path:
    """A directory of receipts with their pages, each in a directory of its name."""
    out = tmp_path_factory.mktemp("receipts")
    made = ["cargo", "run", "--quiet", "--locked", "--package", "plimsoll-receipt", "--example", "receipt_pages", "--", out]
    subprocess.run(made, cwd=ROOT, check=True, timeout=1200)
    return out


@pytest.fixture(scope="session")
def example(receipts) -> str:
    """The page of the example receipt."""
    return (receipts / "example/report.html").read_text("utf-8")


@pytest.fixture
def opened(tab, tmp_path):
    """Opens a page given as text."""

    def open_text(page: str, name: str = "report.html"):
        file = tmp_path / name
        file.write_bytes(page.encode("utf-8"))
        return tab.open(file)

    return open_text
