"""Callers of a registry, as the official client meets them: identities, scopes, limits of their own, a change of tokens."""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import threading
import urllib.request
from pathlib import Path

import plimsoll_client as pc
import pytest

BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", Path(__file__).resolve().parents[2] / "target/debug/plimsoll-attest"))
WASM = {"SANDBOX_PROVIDER": "wasm", "SANDBOX_RATE_PER_MIN": "0"}
SHARED = "shared-token-0123456789abcdef-0123456789"


class Registry:
    """A registry file that the tool edits."""

    def __init__(self, folder) -> None:
        self.path = folder / "clients.json"

    def run(self, command: str, *args: str) -> str:
        done = subprocess.run([BINARY, "clients", command, "--file", self.path, *args], env={"PATH": os.environ["PATH"]}, capture_output=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode().strip()

    def create(self, name: str, *flags: str) -> str:
        return self.run("create", "--id", name, "--token-stdout", *flags)


@pytest.fixture
def registry(tmp_path):
    return Registry(tmp_path)


def refused(client: pc.Client) -> pc.PlimsollError:
    """The refusal of a run and of a description; both say that nothing ran."""
    with pytest.raises(pc.PlimsollError) as run:
        client.run_javascript("1")
    with pytest.raises(pc.PlimsollError) as info:
        client.describe()
    for error in (run.value, info.value):
        assert error.not_dispatched == "permission", error
    assert run.value.code == info.value.code
    return run.value


def callers(daemon) -> list[str]:
    return [line["caller"] for line in daemon.lines if line["msg"].startswith("code run")]


def test_each_token_is_its_own_caller(start, registry):
    tokens = {
        "gateway": registry.create("gateway"),
        "admin": registry.create("admin", "--scope", "*"),
        "reader": registry.create("reader", "--scope", "code:read"),
    }
    daemon = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path), PLIMSOLL_TOKEN=SHARED)
    assert daemon.listening["auth"] is True
    assert [line["clients"] for line in daemon.lines if line["msg"] == "multi-client auth enabled"] == [3]
    for name in ("gateway", "admin"):
        client = pc.Client(daemon.url, token=tokens[name])
        assert client.describe().provider == "wasm"
        assert client.run_javascript("console.log(6*7)").stdout == b"42\n"
    assert refused(pc.Client(daemon.url, token=tokens["reader"])).code == "permission_denied"
    # The registry wins: the shared token is nobody's. Neither is a digest, nor a part of a token.
    digest = hashlib.sha256(tokens["gateway"].encode()).hexdigest()
    for token in (SHARED, digest, tokens["gateway"][:-1], tokens["gateway"] + "0", tokens["gateway"].upper()):
        assert refused(pc.Client(daemon.url, token=token)).code == "unauthenticated"
    assert refused(pc.Client(daemon.url)).code == "unauthenticated"
    assert daemon.stop() == 0
    assert callers(daemon) == ["gateway", "admin"]
    log = json.dumps(daemon.lines)
    for secret in (*tokens.values(), digest, SHARED):
        assert secret not in log


class Busy:
    """Runs that go on until their time is up, each known to be in flight before the next line runs."""

    def __init__(self, daemon) -> None:
        self.daemon = daemon
        self.answers: list[pc.JavaScriptResult] = []
        self.threads: list[threading.Thread] = []

    def inflight(self) -> int:
        with urllib.request.urlopen(f"http://{self.daemon.listening['metrics_addr']}/metrics", timeout=30) as page:
            assert page.headers["Content-Type"] == "text/plain; version=0.0.4"
            return int(re.search(rb"^plimsoll_inflight (\d+)$", page.read(), re.M)[1])

    def begin(self, client: pc.Client, seconds: int) -> None:
        before = self.inflight()
        thread = threading.Thread(target=lambda: self.answers.append(client.run_javascript("while (true) {}", timeout=seconds)))
        thread.start()
        self.threads.append(thread)
        while self.inflight() <= before:
            assert thread.is_alive(), "the run was refused"

    def end(self) -> list[pc.JavaScriptResult]:
        for thread in self.threads:
            thread.join()
        return self.answers


def test_limits_are_each_callers_own(start, registry):
    tokens = [registry.create(name) for name in ("a", "b", "c")]
    limits = {"SANDBOX_MAX_CONCURRENT": "2", "SANDBOX_PER_KEY_CONCURRENT": "1", "PLIMSOLL_METRICS_ADDR": "127.0.0.1:0"}
    daemon = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path), **limits)
    a, b, c = (pc.Client(daemon.url, token=token) for token in tokens)
    # The second run of one caller is refused while its first goes on, another caller's is not; a third finds the daemon full.
    busy = Busy(daemon)
    busy.begin(a, 20)
    with pytest.raises(pc.AtCapacityError) as own:
        a.run_javascript("1")
    busy.begin(b, 20)
    with pytest.raises(pc.AtCapacityError) as full:
        c.run_javascript("1")
    assert own.value.not_dispatched == "capacity" and "this caller" in str(own.value)
    assert full.value.not_dispatched == "capacity" and "at capacity" in str(full.value)
    # A description needs no slot.
    assert c.describe().provider == "wasm"
    assert all(result.timed_out for result in busy.end()) and len(busy.answers) == 2


def test_rate_is_each_callers_own(start, registry):
    tokens = [registry.create(name) for name in ("a", "b")]
    daemon = start(SANDBOX_PROVIDER="wasm", PLIMSOLL_CLIENTS_FILE=str(registry.path), SANDBOX_RATE_PER_MIN="1", SANDBOX_RATE_BURST="1")
    for token in tokens:
        client = pc.Client(daemon.url, token=token)
        client.run_javascript("1")
        with pytest.raises(pc.AtCapacityError) as fast:
            client.run_javascript("1")
        assert fast.value.not_dispatched == "capacity" and "rate" in str(fast.value)
        client.describe()


def test_a_change_of_tokens_without_a_gap(start, registry):
    """Two callers and two daemons: at every moment some token is good, and what runs is not cut."""
    old = registry.create("gateway")
    first = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path), PLIMSOLL_METRICS_ADDR="127.0.0.1:0")
    before = pc.Client(first.url, token=old)
    before.run_javascript("1")
    # The second caller is nobody to the daemon that runs, and somebody to the next one, which knows the first as well.
    new = registry.create("gateway-2")
    assert refused(pc.Client(first.url, token=new)).code == "unauthenticated"
    second = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path))
    for url, token in ((first.url, old), (second.url, old), (second.url, new)):
        assert pc.Client(url, token=token).run_javascript("console.log(1)").stdout == b"1\n"
    # A run in flight on the first daemon is answered while it stops.
    busy = Busy(first)
    busy.begin(before, 3)
    assert first.stop() == 0
    assert [answer.timed_out for answer in busy.end()] == [True]
    # The first caller is revoked; the daemon that runs has read its file and goes on until it is restarted.
    registry.run("revoke", "--id", "gateway")
    pc.Client(second.url, token=old).run_javascript("1")
    third = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path))
    assert refused(pc.Client(third.url, token=old)).code == "unauthenticated"
    pc.Client(third.url, token=new).run_javascript("1")


def test_rotation_is_a_cutover_at_the_restart(start, registry):
    old = registry.create("gateway")
    first = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path))
    new = registry.run("rotate", "--id", "gateway", "--token-stdout")
    pc.Client(first.url, token=old).run_javascript("1")
    refused(pc.Client(first.url, token=new))
    assert first.stop() == 0
    second = start(**WASM, PLIMSOLL_CLIENTS_FILE=str(registry.path))
    refused(pc.Client(second.url, token=old))
    pc.Client(second.url, token=new).run_javascript("1")
    assert second.stop() == 0
    assert callers(first) == callers(second) == ["gateway"]


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ('{"clients":[]}', "empty"),
        ('{"clients":null}', "/clients: must be an array"),
        ('{"clients":[{"id":"a","token_sha256":"CANARY-0123456789","scopes":["code:run"]}]}', "64 hex digits"),
        ('{"clients":[],"clients":[]}', "duplicate field"),
        ("CANARY", "not"),
    ],
)
def test_a_registry_that_is_refused_ends_the_start(registry, content, words):
    registry.path.write_text(content)
    env = {"PATH": os.environ["PATH"], "PLIMSOLL_ADDR": "127.0.0.1:0", "PLIMSOLL_METRICS_ADDR": "off", "SANDBOX_PROVIDER": "wasm"}
    done = subprocess.run([BINARY, "daemon"], env={**env, "PLIMSOLL_CLIENTS_FILE": str(registry.path)}, capture_output=True, timeout=60)
    line = json.loads(done.stderr.splitlines()[-1])
    assert done.returncode == 2 and "PLIMSOLL_CLIENTS_FILE" in line["error"] and words in line["error"], line
    assert b"CANARY" not in done.stderr


def test_a_registry_that_is_not_there_ends_the_start(tmp_path):
    env = {"PATH": os.environ["PATH"], "PLIMSOLL_ADDR": "127.0.0.1:0", "PLIMSOLL_METRICS_ADDR": "off"}
    for path in (tmp_path / "absent.json", tmp_path, "/dev/zero"):
        done = subprocess.run([BINARY, "daemon"], env={**env, "PLIMSOLL_CLIENTS_FILE": str(path)}, capture_output=True, timeout=60)
        assert done.returncode == 2 and b"PLIMSOLL_CLIENTS_FILE" in done.stderr
