"""A daemon that answers as a test says: rightly, wrongly, or not at all."""

from __future__ import annotations

import base64
import json
import socket
import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import cli_proto

REASONS = {"request": 1, "permission": 2, "protocol": 3, "unsupported": 4, "isolation": 5, "capacity": 6, "environment": 7}


@dataclass
class Call:
    """One call as it came; the answer is up to the test."""

    path: str
    headers: dict[str, str]
    body: bytes
    handler: BaseHTTPRequestHandler

    @property
    def id(self) -> str:
        return self.headers["plimsoll-request-id"]

    @property
    def procedure(self) -> str:
        return self.path.rsplit("/", 1)[1]

    @property
    def request(self):
        return cli_proto.messages().RunRequest.FromString(self.body)

    def send(self, body: bytes, status: int = 200, content_type: str = "application/proto", **headers: str | None) -> None:
        """An answer bound to the call; a header of `None` is left out."""
        values: dict[str, str | None] = {"content-type": content_type, "plimsoll-request-id": self.id, "content-length": str(len(body))}
        values.update({name.replace("_", "-"): value for name, value in headers.items()})
        self.handler.send_response(status)
        for name, value in values.items():
            if value is not None:
                self.handler.send_header(name, value)
        self.handler.end_headers()
        self.handler.wfile.write(body)

    def answer(self, response, **options) -> None:
        self.send(response.SerializeToString(), **options)

    def error(self, status: int, code: str, message: str = "no", reason: int | None = None, header: str | None = None, **options) -> None:
        """A Connect error; `reason` marks it in the body, `header` in the head."""
        details = []
        if reason is not None:
            value = cli_proto.messages().NotDispatched(reason=reason).SerializeToString()
            details = [{"type": "plimsoll.v1.NotDispatched", "value": base64.b64encode(value).rstrip(b"=").decode()}]
        body = json.dumps({"code": code, "message": message, "details": details}).encode()
        self.send(body, status, "application/json", plimsoll_not_dispatched=header, **options)

    def raw(self, data: bytes) -> None:
        """Bytes as they are, then the end of the connection."""
        self.handler.wfile.write(data)
        self.drop()

    def drop(self) -> None:
        """Ends the connection without an answer."""
        self.handler.close_connection = True
        self.handler.wfile.flush()
        self.handler.connection.shutdown(socket.SHUT_RDWR)


class Fake:
    """A daemon on a loopback port of its own choosing."""

    def __init__(self, answer) -> None:
        self.calls: list[Call] = []
        self.reached = threading.Event()
        """Set once a whole call has come."""
        self.released = threading.Event()
        """Set when the fake stops: what a call that is never answered waits for."""
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                call = Call(self.path, {name.lower(): value for name, value in self.headers.items()}, body, self)
                fake.calls.append(call)
                fake.reached.set()
                try:
                    answer(call)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def do_GET(self) -> None:
                self.do_POST()

            def log_message(self, *_) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True

            def handle_error(self, request, address) -> None:
                pass

        self.server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def hang(self, _call) -> None:
        """An answer that never comes."""
        self.released.wait()

    def stop(self) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def good(call: Call) -> None:
    """Answers a snippet rightly."""
    call.answer(cli_proto.snippet(call.request))


def closed_port() -> str:
    """The URL of a loopback port nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    return f"http://127.0.0.1:{port}"
