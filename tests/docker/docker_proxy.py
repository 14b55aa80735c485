"""A relay in front of the engine's socket that can be slow, refuse, answer errors or lose connections."""

from __future__ import annotations

import json
import os
import re
import socket
import threading
import time
from pathlib import Path

SECRET = "SECRET-WORDS-OF-THE-ENGINE"
ROUTES = {
    "create": r"POST \S*/containers/create",
    "inspect": r"GET \S*/containers/[0-9a-f]+/json",
    "attach": r"POST \S*/containers/\w+/attach",
    "start": r"POST \S*/containers/\w+/start",
    "wait": r"POST \S*/containers/\w+/wait",
    "remove": r"DELETE \S*/containers/",
    "info": r"GET \S*/info",
}


class Proxy:
    """Listens on a socket of its own. What it does to a request is decided by the request's first line."""

    def __init__(self, engine_socket: str, directory: Path) -> None:
        self.engine_socket = engine_socket
        self.path = directory / "proxy.sock"
        self.host = f"unix://{self.path}"
        self.delay = 0.0
        self.seen: list[str] = []
        self._errors: dict[str, int] = {}
        self._pairs: dict[tuple[socket.socket, socket.socket], str] = {}
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._listener: socket.socket | None = None
        self.restore()

    def fail(self, route: str, times: int = 1 << 30) -> None:
        """From now on this route answers 500, so many times."""
        with self._lock:
            self._errors[route] = times

    def mend(self) -> None:
        with self._lock:
            self._errors.clear()
        self.delay = 0.0

    def cut(self) -> None:
        """Every connection breaks and new ones are refused."""
        listener, self._listener = self._listener, None
        if listener is not None:
            listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        with self._lock:
            pairs = list(self._pairs)
        _end(pairs)

    def end(self, route: str) -> None:
        """The connections of a route end, as if either side had closed them."""
        with self._lock:
            pairs = [pair for pair, line in self._pairs.items() if re.match(ROUTES[route], line)]
        assert pairs, f"no connection of {route}"
        _end(pairs)

    def restore(self) -> None:
        """Listens again, on a socket of the same name."""
        self.path.unlink(missing_ok=True)
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.path))
        os.chmod(self.path, 0o600)
        listener.listen(128)
        self._listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()

    def wait_for(self, route: str, times: int = 1, seconds: float = 60) -> None:
        """Waits until a route was asked so often."""
        asked = lambda: sum(1 for line in self.seen if re.match(ROUTES[route], line)) >= times  # noqa: E731
        with self._changed:
            assert self._changed.wait_for(asked, seconds), (route, self.seen)

    def _accept(self, listener: socket.socket) -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        head = b""
        while b"\r\n\r\n" not in head:
            data = near.recv(65536)
            if not data:
                near.close()
                return
            head += data
        line = head.split(b"\r\n", 1)[0].decode()
        with self._changed:
            self.seen.append(line)
            self._changed.notify_all()
        if self._refuses(line):
            near.sendall(_response(b"500 Internal Server Error", {"message": SECRET}))
            near.close()
            return
        if self.delay:
            time.sleep(self.delay)
        far = socket.socket(socket.AF_UNIX)
        try:
            far.connect(self.engine_socket)
            far.sendall(head)
        except OSError:
            near.close()
            return
        pair = (near, far)
        with self._lock:
            self._pairs[pair] = line
        back = threading.Thread(target=_relay, args=(far, near), daemon=True)
        back.start()
        _relay(near, far)
        back.join()
        with self._lock:
            self._pairs.pop(pair, None)
        near.close()
        far.close()

    def _refuses(self, line: str) -> bool:
        with self._lock:
            for route, left in self._errors.items():
                if left > 0 and re.match(ROUTES[route], line):
                    self._errors[route] = left - 1
                    return True
        return False


def _response(status: bytes, content: object) -> bytes:
    body = json.dumps(content).encode()
    length = str(len(body)).encode()
    return b"HTTP/1.1 " + status + b"\r\nContent-Type: application/json\r\nContent-Length: " + length + b"\r\nConnection: close\r\n\r\n" + body


def _end(pairs: list[tuple[socket.socket, socket.socket]]) -> None:
    for pair in pairs:
        for end in pair:
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


def _relay(source: socket.socket, target: socket.socket) -> None:
    """One direction, to its end; a half-close goes on as one."""
    try:
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(socket.SHUT_WR)
    except OSError:
        pass
