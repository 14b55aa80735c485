"""A project container as provider-independent as it gets: the lockdown written out once more, the runner from
the image, a plan on its standard input."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import os
import re

from docker_daemon import PROJECT_IMAGE
from docker_engine import Done, Engine

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
GUARD = "LD_PRELOAD=/usr/local/lib/plimsoll-runner-guard.so"
FRAME = re.compile(rb"\n<<<PLIMSOLL_REPORT_V3>>> ([0-9]+) ([0-9a-f]{64})\n")
MIB = 1 << 20


def lockdown(runtime: str, command: list[str], image: str = PROJECT_IMAGE, memory: int = 256 * MIB, pids: int = 256) -> dict:
    """The body of a container's creation. The engine's own seccomp profile, so that what holds here does not
    hang on ours."""
    return {
        "Image": image, "Entrypoint": command[:1], "Cmd": command[1:], "User": "61000:61000", "WorkingDir": "/work",
        "AttachStdin": True, "AttachStdout": True, "AttachStderr": True, "OpenStdin": True, "StdinOnce": True,
        "HostConfig": {
            "Runtime": runtime, "NetworkMode": "none", "Memory": memory, "MemorySwap": memory, "NanoCpus": 10**9, "PidsLimit": pids,
            "ReadonlyRootfs": True, "CapDrop": ["ALL"], "SecurityOpt": ["no-new-privileges"], "IpcMode": "private",
            "LogConfig": {"Type": "none"},
            "Tmpfs": {"/tmp": "rw,noexec,nosuid,size=16m", "/dev/shm": "rw,noexec,nosuid,size=16m", "/work": "rw,noexec,nosuid,size=128m,mode=1777"},
        },
    }


class Result:
    """One project's end, its frame read without the host's code."""

    def __init__(self, done: Done, key: bytes) -> None:
        self.done = done
        self.reports = []
        for header in FRAME.finditer(done.stdout):
            body = done.stdout[header.end():header.end() + int(header[1])]
            if hmac.compare_digest(header[2].decode(), hmac.new(key, body, hashlib.sha256).hexdigest()):
                self.reports.append(json.loads(body))

    @property
    def report(self) -> dict:
        assert len(self.reports) == 1, (self.done.status, self.done.stdout[-300:], self.done.stderr[-300:])
        return self.reports[0]

    @property
    def steps(self) -> list[dict]:
        assert "error" not in self.report, self.report
        return self.report["steps"]

    @property
    def artifacts(self) -> dict[str, bytes]:
        return {a["path"]: base64.b64decode(a["content"]) for a in self.report["artifacts"]}


def project(engine: Engine, runtime: str, steps: list[str], *, open_descriptors: bool | None = None, guard: bool = True, memory: int = 256 * MIB, **plan) -> Result:
    """Runs a plan. Under gVisor descriptors are open by default here, as this release of it needs."""
    key = os.urandom(32)
    command = ["/usr/bin/env", "-i", PATH, "HOME=/", *([GUARD] if guard else []), "node", "/runner.mjs"]
    if open_descriptors if open_descriptors is not None else runtime == "runsc":
        command.append("--open-descriptors")
    whole = {"files": [], "steps": steps, "stepTimeoutMs": 30_000, "artifacts": [], "reportKey": key.hex(), **plan}
    return Result(engine.run(lockdown(runtime, command, memory=memory), json.dumps(whole).encode()), key)
