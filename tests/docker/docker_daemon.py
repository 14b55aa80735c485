"""The real daemon with the docker provider, and what a test expects of it."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
import urllib.error
import urllib.request
from pathlib import Path

from plimsoll_client import Client

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", ROOT / "target/debug/plimsoll-attest"))
TOKEN = "docker-token-0123456789abcdef0123456789abcd"
SNIPPET_IMAGE = "plimsoll/sandbox:latest"
PROJECT_IMAGE = "plimsoll/sandbox-python:latest"
RUNTIMES = ["runc", "runsc"]
TIERS = {"runc": "container", "runsc": "kernel"}


def settings(runtime: str = "runc", **more: str) -> dict[str, str]:
    """A daemon's environment for one runtime. Under the gVisor of Debian 12 the runner's descriptors are open
    to its steps, so projects need the setting that says so."""
    env = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "DOCKER_HOST": os.environ["DOCKER_HOST"],
        "SANDBOX_PROVIDER": "docker",
        "SANDBOX_DOCKER_IMAGE": SNIPPET_IMAGE,
        "SANDBOX_DOCKER_PROJECT_IMAGE": PROJECT_IMAGE,
        "SANDBOX_RATE_PER_MIN": "0",
        "PLIMSOLL_TOKEN": TOKEN,
        "PLIMSOLL_ADDR": "127.0.0.1:0",
        "PLIMSOLL_METRICS_ADDR": "off",
    }
    if "TMPDIR" in os.environ:
        env["TMPDIR"] = os.environ["TMPDIR"]
    if runtime != "runc":
        env["SANDBOX_DOCKER_RUNTIME"] = runtime
        env["SANDBOX_DOCKER_ALLOW_OPEN_RUNNER_FDS"] = "1"
    env.update(more)
    return {name: value for name, value in env.items() if value is not None}


class Refused(Exception):
    """The daemon did not start; its log and exit code."""

    def __init__(self, lines: list[dict], code: int) -> None:
        super().__init__(f"exit {code}: {lines}")
        self.lines = lines
        self.code = code

    @property
    def text(self) -> str:
        return json.dumps(self.lines)


class Daemon:
    """`plimsoll-attest daemon`; its log is kept. Raises `Refused` when it ends before it listens."""

    def __init__(self, env: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            [str(BINARY), "daemon"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.lines: list[dict] = []
        self._new: queue.Queue = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        listening = self.wait_for("plimsolld listening")
        self.url = "http://" + listening["addr"]
        self.client = Client(self.url, token=TOKEN)

    def _read(self) -> None:
        for raw in self.process.stderr:
            try:
                line = json.loads(raw)
            except ValueError:
                line = {"msg": raw.decode(errors="replace")}
            self.lines.append(line)
            self._new.put(line)
        self._new.put(None)

    def wait_for(self, message: str, seconds: float = 180) -> dict:
        while True:
            line = self._new.get(timeout=seconds)
            if line is None:
                raise Refused(self.lines, self.process.wait(timeout=60))
            if line["msg"] == message:
                return line

    @property
    def log(self) -> str:
        return json.dumps(self.lines)

    def get(self, path: str, seconds: float = 30) -> tuple[int, str]:
        """A plain GET: status and text."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=seconds) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            return refused.code, refused.read().decode()

    def kill(self) -> None:
        """SIGKILL: no cleanup of its own."""
        self.process.kill()
        self.process.wait(timeout=60)

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout=90)
