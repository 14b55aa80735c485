"""The official client behind something that changes this daemon's answers: each change breaks the record."""

from __future__ import annotations

import base64
import http.client
import http.server
import json
import threading
from collections.abc import Callable

import plimsoll_client as pc
import pytest
from interop_daemon import TOKEN


class Between:
    """A proxy for one daemon that passes every answer through `change`."""

    def __init__(self, address: str) -> None:
        self.change: Callable[[dict], None] = lambda answer: None
        between = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                behind = http.client.HTTPConnection(address, timeout=60)
                kept = {name: value for name, value in self.headers.items() if name.lower() not in ("host", "connection")}
                behind.request("POST", self.path, body, kept)
                got = behind.getresponse()
                answer = json.loads(got.read())
                behind.close()
                between.change(answer)
                text = json.dumps(answer).encode()
                self.send_response(got.status)
                for name in ("Content-Type", "Plimsoll-Request-Id"):
                    self.send_header(name, got.headers[name])
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def log_message(self, *_: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        self.client = pc.Client(f"http://127.0.0.1:{self.server.server_port}", token=TOKEN)


@pytest.fixture
def between(daemon):
    proxy = Between(daemon.address)
    yield proxy
    proxy.server.shutdown()
    proxy.server.server_close()


def stdout(answer: dict) -> None:
    answer["javascript"]["stdout"] = base64.b64encode(b"43\n").decode()


def setting(*path: str, value: object) -> Callable[[dict], None]:
    def change(answer: dict) -> None:
        for name in path[:-1]:
            answer = answer[name]
        assert answer.get(path[-1]) != value
        answer[path[-1]] = value

    return change


def test_what_passes_unchanged_checks(between):
    result = between.client.run_javascript("console.log(6*7)", minimum_isolation="process")
    assert result.stdout == b"42\n" and result.record is not None


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(stdout, id="stdout"),
        pytest.param(setting("javascript", "exitCode", value=1), id="exit code"),
        pytest.param(setting("javascript", "stdoutTruncated", value=True), id="truncation"),
        pytest.param(setting("isolation", value="vm"), id="isolation"),
        pytest.param(setting("sandbox", value="docker"), id="provider"),
        pytest.param(setting("environment", value="quickjs-wasm:sha256:" + "0" * 64), id="environment"),
        pytest.param(setting("record", "startedUnixMs", value="1766000000000"), id="time"),
        pytest.param(setting("record", "requestSha256", value="0" * 64), id="request digest"),
        pytest.param(setting("record", "recordSha256", value="0" * 64), id="record digest"),
    ],
)
def test_a_changed_answer_is_no_evidence(between, change):
    between.change = change
    with pytest.raises(pc.RecordMismatchError) as lost:
        between.client.run_javascript("console.log(6*7)")
    assert lost.value.code == "data_loss" and not lost.value.not_dispatched
    # What came back is there, without a record.
    assert lost.value.result.record is None
    assert lost.value.result.stdout == (b"43\n" if change is stdout else b"42\n")
