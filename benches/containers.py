#!/usr/bin/env python3
"""What the docker provider adds to the engine, as ratios against the bare Engine API in the same run.

    benches/containers.py [--quick] [--check] [--rounds N] [--runtime runc|runsc|both]

cold    one snippet in a container of its own, against create, start, wait, remove of the same image
pooled  one snippet in a container made ahead, against an exec in a container that runs

Each of ours is followed by its floor, so that both see the same machine. Needs an engine (`eval "$(scripts/engine.sh prepare)"`)
and the binary (PLIMSOLL_ATTEST, else target/release/plimsoll-attest). --check fails above the bounds; --quick only shows that it runs.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import sys
import time
import urllib.parse
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
RELEASE = ROOT / "target/release/plimsoll-attest"
if "PLIMSOLL_ATTEST" not in os.environ and RELEASE.exists():
    os.environ["PLIMSOLL_ATTEST"] = str(RELEASE)
sys.path.insert(0, str(ROOT / "tests/docker"))

from docker_daemon import SNIPPET_IMAGE, TOKEN, Daemon, settings  # noqa: E402
from docker_engine import Engine, _Connection  # noqa: E402

CODE = "console.log(6*7)"
EXPIRES = "io.plimsoll.expires"
BOUNDS = {("cold", "runc"): 1.10, ("cold", "runsc"): 1.15, ("pooled", "runc"): 1.20, ("pooled", "runsc"): 1.20}
POOL = 3


class Caller:
    """Runs snippets over one connection, as a caller in a loop does."""

    def __init__(self, daemon: Daemon) -> None:
        where = urllib.parse.urlsplit(daemon.url)
        self._connection = http.client.HTTPConnection(where.hostname, where.port, timeout=120)
        self._headers = {"Content-Type": "application/json", "Authorization": f"Bearer {TOKEN}"}
        self._body = json.dumps({"protocol": 3, "javascript": {"code": CODE}})

    def run(self) -> float:
        begun = time.perf_counter()
        self._connection.request("POST", "/plimsoll.v1.SandboxService/Run", self._body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read()
        took = time.perf_counter() - begun
        assert answer.status == 200, text
        result = json.loads(text)
        assert result["javascript"]["stdout"] == "NDIK", result
        return took


class Bare:
    """The Engine API over one connection, without anything around it."""

    def __init__(self, engine: Engine, runtime: str) -> None:
        self._engine = engine
        self._connection = _Connection(engine.socket, 120)
        self._body = {
            "Image": engine.image(SNIPPET_IMAGE)["Id"],
            "Cmd": ["node", "-e", CODE],
            "HostConfig": {"NetworkMode": "none", "Runtime": runtime},
        }
        self._running: str | None = None

    def _call(self, method: str, path: str, body: object = None) -> dict:
        data = json.dumps(body) if body is not None else None
        self._connection.request(method, f"/v1.41{path}", data, {"Content-Type": "application/json"} if data else {})
        answer = self._connection.getresponse()
        text = answer.read()
        assert answer.status < 400, text
        return json.loads(text) if text else {}

    def cold(self) -> float:
        begun = time.perf_counter()
        made = self._call("POST", "/containers/create", self._body)["Id"]
        self._call("POST", f"/containers/{made}/start")
        assert self._call("POST", f"/containers/{made}/wait")["StatusCode"] == 0
        self._call("DELETE", f"/containers/{made}?force=1")
        return time.perf_counter() - begun

    def execute(self) -> float:
        if self._running is None:
            body = {**self._body, "Cmd": ["sleep", "100000"]}
            self._running = self._call("POST", "/containers/create", body)["Id"]
            self._call("POST", f"/containers/{self._running}/start")
        begun = time.perf_counter()
        ask = {"Cmd": ["node", "-e", CODE], "AttachStdout": True, "AttachStderr": True}
        made = self._call("POST", f"/containers/{self._running}/exec", ask)["Id"]
        other = _Connection(self._engine.socket, 120)
        other.request("POST", f"/v1.41/exec/{made}/start", json.dumps({"Detach": False}), {"Content-Type": "application/json"})
        answer = other.getresponse()
        assert answer.read().endswith(b"42\n")
        other.close()
        seen = self._call("GET", f"/exec/{made}/json")
        took = time.perf_counter() - begun
        assert seen["ExitCode"] == 0, seen
        return took

    def close(self) -> None:
        if self._running is not None:
            self._call("DELETE", f"/containers/{self._running}?force=1")


def settled(engine: Engine, members: int) -> float:
    """Waits until only a full pool is left and nothing is being made or removed; how long that took."""
    begun = time.perf_counter()
    while True:
        found = engine.containers(label=[EXPIRES])
        if len(found) == members and all(c["State"] == "running" for c in found):
            return time.perf_counter() - begun
        assert time.perf_counter() - begun < 120, found
        time.sleep(0.005)


def quantile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def row(kind: str, runtime: str, ours: list[float], floor: list[float], note: str = "") -> float:
    ratio = quantile(ours, 0.5) / quantile(floor, 0.5)
    tail = quantile(ours, 0.95) / quantile(floor, 0.95)
    times = [f"{1000 * quantile(of, share):8.1f}" for of in (ours, floor) for share in (0.5, 0.95)]
    print(f"{kind:18} {runtime:6} {' '.join(times)}   {ratio:6.2f} {tail:6.2f}   {note}", flush=True)
    return ratio


def measure(engine: Engine, runtime: str, rounds: int) -> list[str]:
    """Both kinds under one runtime; what is above its bound."""
    above: list[str] = []
    bare = Bare(engine, runtime)
    for kind, pool in (("cold", 0), ("pooled", POOL)):
        daemon = Daemon(settings(runtime, SANDBOX_DOCKER_FRESH_POOL=str(pool)))
        try:
            caller = Caller(daemon)
            floor_of = bare.cold if kind == "cold" else bare.execute
            ours, gone, floor = [], [], []
            settled(engine, 2 * pool)
            for warm in range(rounds + 2):
                took = caller.run()
                until_gone = took + settled(engine, 2 * pool)
                under = floor_of()
                if warm >= 2:
                    ours.append(took)
                    gone.append(until_gone)
                    floor.append(under)
            bound = BOUNDS[(kind, runtime)]
            ratio = row(kind, runtime, ours, floor, f"bound {bound:.2f}")
            if kind == "cold":
                row("cold, until gone", runtime, gone, floor)
            if ratio > bound:
                above.append(f"{kind} under {runtime}: {ratio:.2f} > {bound:.2f}")
        finally:
            assert daemon.stop() == 0
    bare.close()
    return above


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="two rounds: shows that it runs, measures nothing")
    parser.add_argument("--check", action="store_true", help="fail when a median ratio is above its bound")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--runtime", choices=["runc", "runsc", "both"], default="both")
    asked = parser.parse_args()
    rounds = 2 if asked.quick else asked.rounds
    engine = Engine()
    print(f"rounds {rounds}; milliseconds; ours and floor each p50 p95; ratio of p50 and of p95")
    print(f"{'':25} {'ours':>8} {'':8} {'floor':>8} {'':8}   {'ratio':>6}")
    above: list[str] = []
    for runtime in ("runc", "runsc") if asked.runtime == "both" else (asked.runtime,):
        above += measure(engine, runtime, rounds)
    for line in above:
        print(f"above its bound: {line}")
    return 1 if asked.check and above else 0


if __name__ == "__main__":
    sys.exit(main())
