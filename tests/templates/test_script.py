"""The script for other CI systems: what it hands on, what it refuses, and that a stranger's text stays text."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "examples/ci/receipt.sh"
STUB = """#!/usr/bin/env python3
import json, os, sys, time
if sys.argv[1:] == ["daemon"]:
    names = sorted(name for name in os.environ if name.startswith(("PLIMSOLL_", "SANDBOX_")))
    with open(os.environ["STUB_OUT"] + ".daemon", "w") as out:
        json.dump({name: os.environ[name] for name in names}, out)
    print("::error::from a guest ##[error]x", flush=True)
    sys.exit(4)
with open(os.environ["STUB_OUT"], "w") as out:
    json.dump({"argv": sys.argv[1:], "token": os.environ.get("PLIMSOLL_CALLER_TOKEN")}, out)
sys.exit(int(os.environ.get("STUB_EXIT", "0")))
"""
FACTS = {
    "RECEIPT_REPOSITORY": "https://git.example.org/team/project",
    "RECEIPT_PR": "7",
    "RECEIPT_HEAD": "a" * 40,
    "RECEIPT_BASE": "b" * 40,
    "RECEIPT_BASE_REF": "main",
}


@pytest.fixture
def run(tmp_path):
    """Runs the script with a program that only notes what it was given."""
    stub = tmp_path / "attest"
    stub.write_text(STUB, "utf-8")
    stub.chmod(0o755)

    def go(**extra):
        env = {"PATH": os.environ["PATH"], "PLIMSOLL_ATTEST": str(stub), "STUB_OUT": str(tmp_path / "seen"), **extra}
        return subprocess.run(["bash", SCRIPT], env=env, cwd=tmp_path, capture_output=True, timeout=120, check=False)

    go.seen = lambda name="seen": json.loads((tmp_path / name).read_text("utf-8"))
    go.directory = tmp_path
    return go


@pytest.mark.parametrize("missing", FACTS)
def test_a_missing_fact_is_named_and_nothing_runs(run, missing):
    facts = {name: value for name, value in FACTS.items() if name != missing}
    done = run(PLIMSOLL_DAEMON_URL="http://127.0.0.1:1", **facts)
    assert done.returncode == 2
    assert done.stderr.decode().startswith(f"{missing} is not set")
    assert not (run.directory / "seen").exists()


def test_facts_are_handed_on_as_they_are(run):
    done = run(PLIMSOLL_DAEMON_URL="http://127.0.0.1:1", PLIMSOLL_CALLER_TOKEN="t", RECEIPT_SOFTWARE="oci-manifest:linux/amd64@sha256:x", **FACTS)
    assert done.returncode == 0
    argv = run.seen()["argv"]
    assert argv[:2] == ["pr-receipt", "run"]
    for wanted in ("--repository=https://git.example.org/team/project", "--pr=7", f"--head={'a' * 40}", f"--base={'b' * 40}", "--base-ref=main"):
        assert wanted in argv
    assert "--head-repository=https://git.example.org/team/project" in argv
    assert "--software=exact:oci-manifest:linux/amd64@sha256:x" in argv
    assert argv[argv.index("--floor") + 1] == "kernel"
    assert run.seen()["token"] == "t"


@pytest.mark.parametrize("text", ["$(touch pwned)", "`touch pwned`", "; touch pwned", "a b\nc", "--help", "* ?", "'\"\\", "${IFS}touch"])
def test_hostile_text_is_one_argument_and_never_an_option(run, text):
    done = run(PLIMSOLL_DAEMON_URL="http://127.0.0.1:1", **{**FACTS, "RECEIPT_BASE_REF": text, "RECEIPT_HEAD_REPOSITORY": text})
    assert done.returncode == 0
    argv = run.seen()["argv"]
    assert f"--base-ref={text}" in argv and f"--head-repository={text}" in argv
    assert not (run.directory / "pwned").exists()


def test_with_an_event_file_no_fact_is_asked_for(run):
    done = run(PLIMSOLL_DAEMON_URL="http://127.0.0.1:1", GITHUB_EVENT_PATH="/nowhere")
    assert done.returncode == 0
    assert not any(word.startswith("--pr") for word in run.seen()["argv"][2:])


@pytest.mark.parametrize("code", [0, 1, 3, 4, 5])
def test_the_exit_code_is_the_verdict(run, code):
    assert run(PLIMSOLL_DAEMON_URL="http://127.0.0.1:1", STUB_EXIT=str(code), **FACTS).returncode == code


def test_without_image_or_daemon_nothing_starts(run):
    done = run(**FACTS)
    assert done.returncode == 2
    assert done.stderr.decode().startswith("GUEST_IMAGE is not set")


def test_a_daemon_that_does_not_start_means_that_nothing_ran(run):
    done = run(GUEST_IMAGE="example.org/node@sha256:" + "0" * 64, PLIMSOLL_ADDR="127.0.0.1:1", **FACTS)
    assert done.returncode == 4
    settings = run.seen("seen.daemon")
    assert len(settings["PLIMSOLL_TOKEN"]) == 64
    assert settings["SANDBOX_PROVIDER"] == "docker" and settings["SANDBOX_DOCKER_RUNTIME"] == "runsc"
    assert settings["SANDBOX_REQUIRE_PINNED_IMAGES"] == "true"
    said = done.stderr.decode()
    assert "nothing ran" in said
    assert settings["PLIMSOLL_TOKEN"] not in said
    # Words that a CI system would take for commands are broken.
    assert "\n::" not in said and "##[error]" not in said and "| :\\:error" in said
    assert not (run.directory / "seen").exists()
