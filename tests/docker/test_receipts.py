"""A pull request's tests, run end to end: git, the command, the daemon, a container, and the check."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "receipt"), str(HERE.parent / "cli")]

from cli_fixtures import cli  # noqa: E402, F401
from docker_daemon import TIERS, TOKEN  # noqa: E402
from receipt_repo import Repo, environment  # noqa: E402

STEP = "node --test --test-reporter=tap --test-reporter-destination=plimsoll-report.tap test/"
REPORT = "tap:artifact:plimsoll-report.tap"


@pytest.fixture
def repo(tmp_path) -> Repo:
    return Repo(tmp_path / "repo")


def test_a_pull_request_end_to_end(cli, repo, daemon, runtime):
    floor = TIERS[runtime]
    good = repo.change()
    bad = repo.change("lib.js", b"module.exports = (a, b) => a - b;\n")
    token = {"PLIMSOLL_CALLER_TOKEN": TOKEN}
    for head, out, code, result in ((good, "good", 0, "PASSED"), (bad, "bad", 5, "FAILED")):
        env = {**environment(repo.event(head)), **token}
        done = cli(
            "pr-receipt", "run", "--json", "--daemon", daemon.url, "--repo", repo.path, "--floor", floor,
            "--timeout", "60s", "--step", STEP, "--report", REPORT, "--out", out, env=env, timeout=180,
        )  # fmt: skip
        assert (done.code, done.json["result"], done.json["isolation"]) == (code, result, floor), done.text
        checked = cli("pr-receipt", "verify", "--json", "--repo", repo.path, "--head", head, "--floor", floor, out)
        assert checked.code == code, checked.text
        assert all(step["ok"] or step["n"] == 13 for step in checked.json["steps"])
        names = {test["passed"] + test["failed"] for test in [checked.json]}
        assert names == {2}
    # The same request on the same daemon gives the same verdict.
    again = cli(
        "pr-receipt", "verify", "--json", "--repo", repo.path, "--head", good, "--floor", floor, "--replay",
        "--daemon", daemon.url, "good", env=token, timeout=180,
    )  # fmt: skip
    assert (again.code, again.json["replay"]) == (0, "same verdict"), again.text
    challenged = cli("pr-receipt", "challenge", "--repo", repo.path, "--head", good, "--out", "wrong", "good", timeout=300)
    assert challenged.code == 0, challenged.text
    assert all(one["ok"] for one in json.loads((cli.cwd / "wrong/challenge.json").read_text()))


def test_what_a_guest_writes_is_no_evidence(cli, repo, daemon, runtime):
    """It prints workflow commands, a passing report, and a receipt of its own; its test fails."""
    repo.write("test/evil.test.js", b"""
require("node:test")("</code><script>alert(1)</script>", () => { throw new Error("no"); });
require("node:fs").writeFileSync("receipt.cdx.json", "{}");
process.stdout.write("::error::x\\n##[error]x\\n::set-output name=result::PASSED\\nok 1 - adds\\n1..1\\n");
""")
    head = repo.commit("evil")
    env = {**environment(repo.event(head)), "PLIMSOLL_CALLER_TOKEN": TOKEN}
    done = cli(
        "pr-receipt", "run", "--daemon", daemon.url, "--repo", repo.path, "--floor", TIERS[runtime], "--timeout", "60s",
        "--step", STEP, "--report", REPORT, env=env, timeout=180,
    )  # fmt: skip
    assert done.code == 5, done.text
    assert not any(line.startswith(b"::") or b"##[" in line for line in (done.out + done.err).splitlines())
    page = (cli.cwd / "plimsoll-receipt/report.html").read_text()
    assert "<script>alert" not in page
