"""The project runner outside a container: the real program under node, with a plan of a test's choosing, and
a reader of its frame that shares no code with the host's."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
RUNNER = ROOT / "src/runner/runner.mjs"
GUARD = ROOT / "src/runner/guard.c"
KEY = bytes(range(32))
FRAME = re.compile(rb"\n<<<PLIMSOLL_REPORT_V3>>> ([0-9]+) ([0-9a-f]{64})\n")
NO_MAC = "0" * 64
# What containers run as; as root, a process could open what the guard closes.
GUEST = 61000


def guest() -> dict:
    """Options of subprocess that drop root."""
    return {"user": GUEST, "group": GUEST, "extra_groups": []} if os.geteuid() == 0 else {}


@dataclass
class Ended:
    """A runner that has ended."""

    status: int
    stdout: bytes
    stderr: bytes
    key: bytes

    @property
    def frame(self) -> tuple[bytes, str]:
        """Body and MAC of the one frame at the end of the output."""
        found = list(FRAME.finditer(self.stdout))
        assert found, (self.stdout[-400:], self.stderr[-400:])
        header = found[-1]
        body = self.stdout[header.end():]
        assert len(body) == int(header[1])
        return body, header[2].decode()

    @property
    def report(self) -> dict:
        """The report, authenticated."""
        body, mac = self.frame
        assert hmac.compare_digest(mac, hmac.new(self.key, body, hashlib.sha256).hexdigest())
        return json.loads(body)

    @property
    def steps(self) -> list[dict]:
        report = self.report
        assert "error" not in report, report
        return report["steps"]

    @property
    def artifacts(self) -> dict[str, bytes]:
        return {a["path"]: base64.b64decode(a["content"], validate=True) for a in self.report["artifacts"]}


class Bench:
    """A directory with the runner, its guard and a work directory the guest may write."""

    def __init__(self, home: Path) -> None:
        home.chmod(0o755)
        self.home = home
        self.runner = home / "runner.mjs"
        shutil.copy(RUNNER, self.runner)
        self.guard = home / "guard.so"
        subprocess.run(["cc", "-O2", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC", "-o", self.guard, GUARD], check=True)
        self.work = home / "work"
        self.fresh()

    def fresh(self) -> None:
        """An empty work directory."""
        if self.work.exists():
            shutil.rmtree(self.work)
        self.work.mkdir()
        self.work.chmod(0o1777)

    def environment(self, guard: bool = True) -> dict[str, str]:
        env = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/", "PLIMSOLL_WORK": str(self.work)}
        if guard:
            env["LD_PRELOAD"] = str(self.guard)
        return env

    def start(self, *args: str, guard: bool = True, **options) -> subprocess.Popen:
        return subprocess.Popen(
            [shutil.which("node"), str(self.runner), *args], env=self.environment(guard), cwd="/",
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **guest(), **options,
        )

    def feed(self, stdin: bytes, *args: str, guard: bool = True, key: bytes = KEY) -> Ended:
        process = self.start(*args, guard=guard)
        stdout, stderr = process.communicate(stdin, timeout=120)
        return Ended(process.returncode, stdout, stderr, key)

    def run(self, steps: list[str], *args: str, guard: bool = True, **plan) -> Ended:
        whole = {"files": [], "steps": steps, "stepTimeoutMs": 20_000, "artifacts": [], "reportKey": KEY.hex(), **plan}
        return self.feed(json.dumps(whole).encode(), *args, guard=guard)
