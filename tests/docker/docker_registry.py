"""A registry on loopback that takes what an engine pushes and keeps digests alone: an engine knows an image by digest
only once a registry has taken it."""

from __future__ import annotations

import base64
import hashlib
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from docker_engine import Engine, _Connection


class Registry(ThreadingHTTPServer):
    """Listens until it is closed. Blobs are hashed and dropped; it can be pushed to and not pulled from."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.blobs: dict[str, int] = {}
        self.uploads: dict[str, tuple] = {}
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def push(self, engine: Engine, image: str, name: str) -> str:
        """Has the engine push an image; the reference by digest that it knows it under from then on."""
        repository = f"127.0.0.1:{self.server_port}/{name}"
        engine.call("POST", f"/images/{image}/tag", repo=repository, tag="pushed")
        connection = _Connection(engine.socket, 300)
        nobody = base64.urlsafe_b64encode(b"{}").decode()
        connection.request("POST", f"/v1.41/images/{repository}/push?tag=pushed", headers={"X-Registry-Auth": nobody, "Content-Length": "0"})
        said = connection.getresponse().read()
        connection.close()
        assert b'"errorDetail"' not in said, said[-500:]
        (reference,) = [r for r in engine.image(f"{repository}:pushed")["RepoDigests"] if r.startswith(repository + "@")]
        return reference

    def close(self) -> None:
        self.shutdown()
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Registry

    def log_message(self, *_: object) -> None:
        pass

    def _body(self):
        """The request's body in pieces, of a known length or chunked."""
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                yield self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        elif size := int(self.headers.get("Content-Length") or 0):
            yield self.rfile.read(size)

    def _answer(self, status: int, **headers: object) -> None:
        self.send_response(status)
        for name, value in {"Content_Length": 0, **headers}.items():
            self.send_header(name.replace("_", "-"), str(value))
        self.end_headers()

    def do_GET(self) -> None:
        self._answer(200 if self.path == "/v2/" else 404)

    def do_HEAD(self) -> None:
        size = self.server.blobs.get(self.path.rsplit("/", 1)[1])
        self._answer(404) if size is None else self._answer(200, Content_Length=size)

    def do_POST(self) -> None:
        for _ in self._body():
            pass
        upload = f"{self.path.partition('?')[0]}{len(self.server.uploads)}"
        self.server.uploads[upload] = (hashlib.sha256(), [0])
        self._answer(202, Location=upload, Range="0-0", Docker_Upload_UUID=upload.rsplit("/", 1)[1])

    def _take(self, upload: str) -> tuple[str, int]:
        digest, size = self.server.uploads[upload]
        for piece in self._body():
            digest.update(piece)
            size[0] += len(piece)
        return "sha256:" + digest.hexdigest(), size[0]

    def do_PATCH(self) -> None:
        upload = self.path.partition("?")[0]
        _, size = self._take(upload)
        self._answer(202, Location=upload, Range=f"0-{size - 1}")

    def do_PUT(self) -> None:
        path = self.path.partition("?")[0]
        if "/manifests/" in path:
            manifest = b"".join(self._body())
            json.loads(manifest)
            self._answer(201, Docker_Content_Digest="sha256:" + hashlib.sha256(manifest).hexdigest())
            return
        digest, size = self._take(path)
        self.server.blobs[digest] = size
        self._answer(201, Docker_Content_Digest=digest, Location=path)
