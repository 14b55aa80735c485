"""Repositories with a pull request, and the answers a sandbox gives to it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from pathlib import Path

import cli_proto
from cli_tool import ROOT

ADDER = ROOT / "testdata/projects/adder"
EXAMPLE = ROOT / "testdata/receipts"
HEAD = "242085db39798080553c88a7f6e0b887ba5e33dc"
BASE = "19683cb0da16ed7d25edb0cca77be90b2bbfa720"
STEP = "node --test --test-reporter=junit --test-reporter-destination=plimsoll-report.xml"
REPORT = "junit:artifact:plimsoll-report.xml"
GOOD = b'<?xml version="1.0" encoding="utf-8"?>\n<testsuites>\n\t<testcase name="adds" time="0.000812" classname="test"/>\n\t<testcase name="adds zero" time="0.000103" classname="test"/>\n</testsuites>\n'
BAD = GOOD.replace(b'classname="test"/>\n\t', b'classname="test">\n\t\t<failure message="x">no</failure>\n\t</testcase>\n\t', 1)
WORKFLOW = ".github/workflows/plimsoll-receipt.yml"


class Repo:
    """A git repository; every commit has fixed names and times."""

    def __init__(self, path: Path, *options: str) -> None:
        self.path = path
        path.mkdir(parents=True)
        self.git("init", "-q", "-b", "main", *options)
        for file in sorted(ADDER.rglob("*")):
            if file.is_file():
                self.write(str(file.relative_to(ADDER)), file.read_bytes())
        self.write(WORKFLOW, b"name: plimsoll receipt\n")
        self.base = self.commit("start")

    def git(self, *args: str, input: bytes = b"", ok: bool = True) -> str:
        who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Example Bot"), ("EMAIL", "bot@example.com"), ("DATE", "1792310000 +0000"))}
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "HOME": str(self.path), **who}
        done = subprocess.run(["git", "-C", str(self.path), *args], input=input, capture_output=True, env=env)
        assert done.returncode == 0 or not ok, (args, done.stderr)
        return done.stdout.decode().strip()

    def write(self, path: str, content: bytes) -> None:
        file = self.path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)

    def commit(self, message: str) -> str:
        self.git("add", "-A")
        self.git("commit", "-q", "--allow-empty", "-m", message)
        return self.git("rev-parse", "HEAD")

    def change(self, path: str = "lib.js", content: bytes = b"module.exports = (a, b) => b + a;\n") -> str:
        """The pull request's commit."""
        self.write(path, content)
        return self.commit("change")

    def event(self, head: str, base: str | None = None, **members) -> Path:
        """The event file of the pull request."""
        pull = {
            "number": 7,
            "head": {"sha": head, "ref": "$(touch pwned) `x`", "repo": {"html_url": "https://github.com/example-fork/adder"}},
            "base": {"sha": base or self.base, "ref": "main"},
            "title": "::error::x",
        }
        file = self.path.parent / "event.json"
        file.write_text(json.dumps({"repository": {"full_name": "example-org/adder"}, "pull_request": {**pull, **members}}))
        return file


def environment(event: Path, name: str = "pull_request") -> dict[str, str]:
    """What GitHub Actions sets in a job."""
    return {
        "GITHUB_EVENT_NAME": name,
        "GITHUB_EVENT_PATH": str(event),
        "GITHUB_SERVER_URL": "https://github.com",
        "GITHUB_WORKFLOW_REF": f"example-org/adder/{WORKFLOW}@refs/pull/7/merge",
        "GITHUB_RUN_ID": "1234567890",
        "GITHUB_RUN_ATTEMPT": "1",
        "GITHUB_ACTIONS": "true",
    }


def answering(report: bytes | None = GOOD, codes: tuple[int, ...] | None = None, **options):
    """A sandbox whose project runs give this report."""

    def answer(call) -> None:
        artifacts = {} if report is None else {"plimsoll-report.xml": report}
        call.answer(cli_proto.project(call.request, artifacts, codes, **options))

    return answer


def example(path: Path) -> Path:
    """The repository of the published example, from its objects."""
    objects = json.loads((EXAMPLE / "git-objects.json").read_text())
    path.mkdir()

    def git(*args: str, input: bytes = b"") -> str:
        env = {"PATH": os.environ["PATH"], "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1"}
        return subprocess.run(["git", "-C", str(path), *args], input=input, capture_output=True, check=True, env=env).stdout.decode().strip()

    git("init", "-q", "-b", "main")
    lib = git("hash-object", "-w", "--stdin", input=base64.b64decode(objects["base_lib_js_base64"]))
    for which in ("base", "head"):
        git("read-tree", "--empty")
        for name, file in objects["head_files"].items():
            blob = git("hash-object", "-w", "--stdin", input=base64.b64decode(file["content_base64"]))
            blob = lib if which == "base" and name == "lib.js" else blob
            git("update-index", "--add", "--cacheinfo", f"{file['mode']},{blob},{name}")
        assert git("write-tree") == objects[f"{which}_tree"]
        commit = objects[f"{which}_commit"]
        assert git("hash-object", "-w", "-t", "commit", "--stdin", input=commit["raw"].encode()) == commit["sha1"]
    git("read-tree", "--empty")
    return path
