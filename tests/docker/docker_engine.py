"""The Engine API over its Unix socket: enough to start containers, talk to them and see what is left."""

from __future__ import annotations

import http.client
import json
import os
import socket
import struct
import time
import urllib.parse
from dataclasses import dataclass


class EngineError(Exception):
    """The engine refused a call."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(f"{status}: {text}")
        self.status = status


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("engine", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


@dataclass
class Done:
    """A container that has ended and is gone."""

    status: int
    stdout: bytes
    stderr: bytes


class Engine:
    """The engine at `DOCKER_HOST`."""

    def __init__(self, host: str | None = None) -> None:
        self.host = host or os.environ["DOCKER_HOST"]
        assert self.host.startswith("unix://")
        self.socket = self.host.removeprefix("unix://")

    def call(self, method: str, path: str, body: object = None, timeout: float = 60, **query: object) -> object:
        """One call; its JSON answer, or None."""
        connection = _Connection(self.socket, timeout)
        try:
            where = f"/v1.41{path}" + ("?" + urllib.parse.urlencode(query) if query else "")
            data = body if isinstance(body, bytes) else json.dumps(body).encode() if body is not None else None
            kind = "application/x-tar" if isinstance(body, bytes) else "application/json"
            connection.request(method, where, data, {"Content-Type": kind} if data is not None else {})
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        if answer.status >= 400:
            raise EngineError(answer.status, text.decode(errors="replace"))
        try:
            return json.loads(text) if text.strip() else None
        except ValueError:
            return text

    def containers(self, **filters: list[str]) -> list[dict]:
        """All containers, stopped ones too."""
        return self.call("GET", "/containers/json", all=1, filters=json.dumps(filters))

    def names(self) -> list[str]:
        return sorted(name.lstrip("/") for c in self.containers() for name in c["Names"])

    def inspect(self, name: str) -> dict:
        return self.call("GET", f"/containers/{name}/json")

    def image(self, reference: str) -> dict:
        return self.call("GET", f"/images/{reference}/json")

    def remove(self, name: str) -> None:
        try:
            self.call("DELETE", f"/containers/{name}", force=1, v=1)
        except EngineError as refused:
            if refused.status not in (404, 409):
                raise

    def build(self, tag: str, base: str, *lines: str) -> str:
        """An image with instructions on top of one that is there; its id. The engine needs no registry for it."""
        import io
        import tarfile

        text = "\n".join([f"FROM {base}", *lines]).encode()
        context = io.BytesIO()
        with tarfile.open(fileobj=context, mode="w") as tar:
            entry = tarfile.TarInfo("Dockerfile")
            entry.size = len(text)
            tar.addfile(entry, io.BytesIO(text))
        answer = self.call("POST", "/build", context.getvalue(), timeout=180, t=tag, networkmode="none", forcerm=1)
        assert b'"errorDetail"' not in (answer if isinstance(answer, bytes) else json.dumps(answer).encode()), answer
        return self.image(tag)["Id"]

    def run(self, body: dict, stdin: bytes = b"", seconds: float = 120) -> Done:
        """Creates, feeds, waits for and removes a container."""
        made = self.call("POST", "/containers/create", body)["Id"]
        try:
            stream = self.attach(made)
            self.call("POST", f"/containers/{made}/start")
            stream.sendall(stdin)
            stream.shutdown(socket.SHUT_WR)
            stdout, stderr = demultiplex(stream, seconds)
            status = self.call("POST", f"/containers/{made}/wait", timeout=seconds)["StatusCode"]
            return Done(status, stdout, stderr)
        finally:
            self.remove(made)

    def attach(self, name: str, stdin: bool = True) -> socket.socket:
        """The container's streams from now on; before its start, all of them."""
        stream = socket.socket(socket.AF_UNIX)
        stream.settimeout(30)
        stream.connect(self.socket)
        stream.sendall(
            f"POST /v1.41/containers/{name}/attach?stream=1&stdin={int(stdin)}&stdout=1&stderr=1 HTTP/1.1\r\nHost: engine\r\n"
            "Connection: Upgrade\r\nUpgrade: tcp\r\nContent-Length: 0\r\n\r\n".encode()
        )
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            byte = stream.recv(1)
            assert byte, head
            head += byte
        assert head.startswith(b"HTTP/1.1 101"), head
        return stream


def demultiplex(stream: socket.socket, seconds: float) -> tuple[bytes, bytes]:
    """Both output streams, read to their end."""
    out = {1: bytearray(), 2: bytearray()}
    file = stream.makefile("rb")
    stream.settimeout(seconds)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        head = file.read(8)
        if len(head) < 8:
            break
        kind, size = struct.unpack(">BxxxL", head)
        out[kind] += file.read(size)
    stream.close()
    return bytes(out[1]), bytes(out[2])
