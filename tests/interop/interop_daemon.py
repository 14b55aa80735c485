"""A real daemon, on a loopback port of its own choosing."""

from __future__ import annotations

import json
import os
import queue
import signal
import subprocess
import threading
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", ROOT / "target/debug/plimsoll-attest"))
TOKEN = "interop-token-0123456789abcdef0123456789"


class Daemon:
    """`plimsoll-attest daemon` with a clean environment; its log is kept."""

    def __init__(self, **settings: str) -> None:
        env = {"PATH": os.environ["PATH"], "PLIMSOLL_ADDR": "127.0.0.1:0", "PLIMSOLL_METRICS_ADDR": "off"}
        env.update(settings)
        self.process = subprocess.Popen(
            [str(BINARY), "daemon"], env=env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )
        self.lines: list[dict] = []
        self._new: queue.Queue = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()
        self.listening = self.wait_for("plimsolld listening")
        self.address = self.listening["addr"]
        self.url = "http://" + self.address

    def _read(self) -> None:
        for raw in self.process.stderr:
            line = json.loads(raw)
            self.lines.append(line)
            self._new.put(line)
        self._new.put(None)

    def wait_for(self, message: str, seconds: float = 60) -> dict:
        while True:
            line = self._new.get(timeout=seconds)
            assert line is not None, f"the daemon ended: {self.lines}"
            if line["msg"] == message:
                return line

    def stop(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(timeout=60)
        return code
