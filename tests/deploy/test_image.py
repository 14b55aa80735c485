"""The image recipe: its last stage is built over a base that is at hand, and run as the page says."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
import threading
import time
import urllib.request
from pathlib import Path

import plimsoll_client as pc
import pytest

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "docs/deploy"
BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", ROOT / "target/debug/plimsoll-attest"))
BASE = "plimsoll/sandbox:latest"
IMAGE = "plimsoll/deployed:latest"
TOKEN = "deploy-token-0123456789abcdef0123456789abcd"
FROM_BUILD = "COPY --from=build /src/target/release/plimsoll-attest /usr/local/bin/plimsoll-attest"


def last_stage() -> list[str]:
    """What follows the second FROM, with the program taken from the context and the base that needs no registry."""
    lines = [line for line in (DEPLOY / "Containerfile").read_text().splitlines() if line and not line.startswith("#")]
    stages = [i for i, line in enumerate(lines) if line.startswith("FROM ")]
    assert len(stages) == 2 and lines[stages[1]] == "FROM docker.io/library/debian:12-slim"
    rest = lines[stages[1] + 1 :]
    assert rest.count(FROM_BUILD) == 1
    return [f"FROM {BASE}", *("COPY plimsoll-attest /usr/local/bin/plimsoll-attest" if line == FROM_BUILD else line for line in rest)]


@pytest.fixture(scope="module")
def image(engine, tmp_path_factory):
    stripped = tmp_path_factory.mktemp("image") / "plimsoll-attest"
    if shutil.which("strip"):
        subprocess.run(["strip", "-o", stripped, BINARY], check=True)
    else:
        shutil.copy(BINARY, stripped)
    context = io.BytesIO()
    with tarfile.open(fileobj=context, mode="w") as tar:
        text = "\n".join(last_stage()).encode()
        entry = tarfile.TarInfo("Dockerfile")
        entry.size = len(text)
        tar.addfile(entry, io.BytesIO(text))
        tar.add(stripped, "plimsoll-attest")
    answer = engine.call("POST", "/build", context.getvalue(), timeout=180, t=IMAGE, networkmode="none", forcerm=1)
    assert b'"errorDetail"' not in (answer if isinstance(answer, bytes) else json.dumps(answer).encode()), answer
    yield IMAGE
    engine.call("DELETE", f"/images/{IMAGE}", force=1)


class Container:
    """A container of the image with the settings of the example, but for its addresses."""

    def __init__(self, engine, folder: Path) -> None:
        self.engine = engine
        registry = folder / "clients.json"
        caller = {"id": "gateway", "token_sha256": hashlib.sha256(TOKEN.encode()).hexdigest(), "scopes": ["code:run"]}
        registry.write_text(json.dumps({"clients": [caller]}))
        registry.chmod(0o644)
        example = [line for line in (DEPLOY / "daemon.env.example").read_text().splitlines() if not line.startswith("#")]
        settings = dict(line.split("=", 1) for line in example)
        # The engine of the tests has no network of its own, so the ports are the host's.
        settings |= {"PLIMSOLL_ADDR": "127.0.0.1:0", "PLIMSOLL_METRICS_ADDR": "127.0.0.1:0"}
        self.id = engine.call(
            "POST",
            "/containers/create",
            {
                "Image": IMAGE,
                "Env": [f"{name}={value}" for name, value in settings.items()],
                "HostConfig": {
                    "ReadonlyRootfs": True,
                    "CapDrop": ["ALL"],
                    "SecurityOpt": ["no-new-privileges"],
                    "NetworkMode": "host",
                    "Binds": [f"{registry}:{settings['PLIMSOLL_CLIENTS_FILE']}:ro"],
                },
            },
        )["Id"]
        engine.call("POST", f"/containers/{self.id}/start")

    def log(self) -> list[dict]:
        raw = self.engine.call("GET", f"/containers/{self.id}/logs", stderr=1)
        text, at = b"", 0
        raw = raw if isinstance(raw, bytes) else b""
        while at < len(raw):
            size = int.from_bytes(raw[at + 4 : at + 8], "big")
            text += raw[at + 8 : at + 8 + size]
            at += 8 + size
        return [json.loads(line) for line in text.splitlines()]

    def wait_for(self, message: str) -> dict:
        ends = time.monotonic() + 120
        while time.monotonic() < ends:
            for line in self.log():
                if line["msg"] == message:
                    return line
            assert self.engine.inspect(self.id)["State"]["Running"], self.log()
            time.sleep(0.1)
        raise AssertionError(f"no {message}: {self.log()}")


@pytest.fixture
def container(engine, image, tmp_path):
    # The engine binds the file for another user.
    tmp_path.chmod(0o755)
    running = Container(engine, tmp_path)
    yield running
    engine.remove(running.id)


def get(address: str, path: str) -> str:
    with urllib.request.urlopen(f"http://{address}{path}", timeout=60) as answer:
        return answer.read().decode()


def test_the_image_serves_and_stops(engine, container):
    """Not root, nothing to write, no capability; a stop waits for the run in flight and is a clean end."""
    listening = container.wait_for("plimsolld listening")
    assert (listening["provider"], listening["isolation"], listening["auth"]) == ("wasm", "process", True)
    assert get(listening["addr"], "/healthz") == "ok\n" and get(listening["addr"], "/readyz") == "ready\n"
    client = pc.Client("http://" + listening["addr"], token=TOKEN)
    result = client.run_javascript("console.log(6*7)", minimum_isolation="process")
    assert result.stdout == b"42\n" and result.record is not None
    state = engine.inspect(container.id)
    assert state["Config"]["User"] == "65532:65532" and state["Config"]["StopSignal"] == "SIGTERM"
    status = Path(f"/proc/{state['State']['Pid']}/status").read_text()
    assert re.search(r"^Uid:\t65532\t65532\t65532\t65532$", status, re.M) and re.search(r"^CapEff:\t0+$", status, re.M)

    answers: list[pc.JavaScriptResult] = []
    call = threading.Thread(target=lambda: answers.append(client.run_javascript("while (true) {}", timeout=10)))
    call.start()
    while "\nplimsoll_inflight 1\n" not in get(listening["metrics_addr"], "/metrics"):
        assert call.is_alive(), "the run was refused"
    engine.call("POST", f"/containers/{container.id}/stop", timeout=120, t=90)
    call.join()
    assert [answer.timed_out for answer in answers] == [True]
    assert engine.inspect(container.id)["State"]["ExitCode"] == 0
    log = container.log()
    assert log[-1]["msg"] == "plimsolld stopped" and TOKEN not in json.dumps(log)
    # The example warns of nothing.
    assert {line["level"] for line in log} == {"INFO"}, log


def test_a_second_signal_ends_the_first_process_at_once(engine, container):
    """It is the container's first process, which no signal ends by itself."""
    listening = container.wait_for("plimsolld listening")
    client = pc.Client("http://" + listening["addr"], token=TOKEN)

    def runs() -> None:
        with pytest.raises(pc.PlimsollError):
            client.run_javascript("while (true) {}", timeout=30)

    call = threading.Thread(target=runs)
    call.start()
    while "\nplimsoll_inflight 1\n" not in get(listening["metrics_addr"], "/metrics"):
        assert call.is_alive(), "the run was refused"
    engine.call("POST", f"/containers/{container.id}/kill", signal="SIGTERM")
    container.wait_for("shutdown signal received; draining in-flight runs")
    engine.call("POST", f"/containers/{container.id}/kill", signal="SIGTERM")
    assert engine.call("POST", f"/containers/{container.id}/wait", timeout=60)["StatusCode"] == 143
    call.join()
