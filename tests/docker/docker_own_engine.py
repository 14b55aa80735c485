"""A second engine that a test may stop and kill: its own dockerd with the image copied from the shared one, and a
gVisor whose program a test may exchange."""

from __future__ import annotations

import http.client
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

from docker_daemon import SNIPPET_IMAGE
from docker_engine import Engine, EngineError, _Connection

READY = 60.0


class OwnEngine(Engine):
    """A dockerd below `directory`, without network."""

    def __init__(self, directory: Path, shared: Engine) -> None:
        super().__init__(f"unix://{directory}/e.sock")
        self.directory = directory
        self.process: subprocess.Popen | None = None
        self.exchange_gvisor("first")
        self.start()
        self._copy(shared)

    def exchange_gvisor(self, word: str) -> None:
        """Puts another program where gVisor is registered: it does the same and is not the same file."""
        new = self.directory / "runsc.new"
        gvisor = shutil.which("runsc")
        new.write_text(f'#!/bin/sh\n# {word}\nexec {gvisor} --network=none --platform=ptrace --host-uds=open "$@"\n')
        new.chmod(0o755)
        new.rename(self.directory / "runsc")

    def start(self) -> None:
        (self.directory / "dockerd.pid").unlink(missing_ok=True)
        path = os.environ["PATH"] + ":/usr/sbin:/sbin"
        log = open(self.directory / "dockerd.log", "ab")
        self.process = subprocess.Popen(
            [
                shutil.which("dockerd", path=path), "--host", self.host, "--data-root", self.directory / "data",
                "--exec-root", self.directory / "exec", "--pidfile", self.directory / "dockerd.pid", "--bridge", "none",
                "--add-runtime", f"runsc={self.directory}/runsc", "--iptables=false", "--ip-forward=false", "--ip-masq=false", "--userland-proxy=false",
            ],
            env={**os.environ, "PATH": path}, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
        )
        ends = time.monotonic() + READY
        while time.monotonic() < ends:
            assert self.process.poll() is None, (self.directory / "dockerd.log").read_text()[-2000:]
            try:
                self.call("GET", "/_ping", timeout=5)
                return
            except (OSError, EngineError, http.client.HTTPException):
                time.sleep(0.1)
        raise AssertionError("the engine did not start")

    def stop(self) -> None:
        """As an operator stops it: it ends its containers first."""
        self.process.send_signal(signal.SIGTERM)
        self.process.wait(timeout=90)

    def kill(self) -> None:
        """Without a chance to do anything; what supervises its containers lives on until it starts again."""
        self.process.kill()
        self.process.wait(timeout=30)

    def close(self) -> None:
        if self.process.poll() is not None:
            self.start()
        for name in self.names():
            self.remove(name)
        self.stop()
        subprocess.run(["umount", "--recursive", "--lazy", "--quiet", self.directory / "data/overlay2"], check=False)
        shutil.rmtree(self.directory, ignore_errors=True)

    def _copy(self, shared: Engine) -> None:
        source, target = _Connection(shared.socket, 120), _Connection(self.socket, 120)
        source.request("GET", f"/v1.41/images/{SNIPPET_IMAGE}/get")
        answer = source.getresponse()
        assert answer.status == 200, answer.read()
        target.request(
            "POST", "/v1.41/images/load", iter(lambda: answer.read(1 << 20), b""),
            {"Content-Type": "application/x-tar", "Transfer-Encoding": "chunked"}, encode_chunked=True,
        )
        loaded = target.getresponse()
        assert loaded.status == 200, loaded.read()
        loaded.read()
        source.close()
        target.close()
