"""Every program that is sent into a sandbox or baked into its image is run here, on a real engine.

A program without a test that runs it fails this file: text that no interpreter has seen is not tested.
"""

from __future__ import annotations

from docker_daemon import ROOT, Daemon
from docker_engine import Engine
from docker_runner import project

# A daemon that serves has run the smoke programs on each of its images: it refuses to start otherwise.
SMOKE = "the start-up smoke test"
PROGRAMS = {
    "src/runner/runner.mjs": "test_runner.py",
    "src/daemon/provider/docker/smoke_runner.js": SMOKE,
    "src/daemon/provider/docker/smoke_storage.js": SMOKE,
}
# Programs that never enter a container: the interpreter of the wasm provider and pages for browsers.
ELSEWHERE = ("src/quickjs/", "src/receipt/")


def test_each_program_is_known_to_a_test():
    found = {
        str(path.relative_to(ROOT))
        for folder in ["src", "cmd"]
        for kind in ["*.js", "*.mjs", "*.cjs", "*.py"]
        for path in (ROOT / folder).rglob(kind)
    }
    assert {path for path in found if not path.startswith(ELSEWHERE)} == set(PROGRAMS)


def test_the_image_has_this_tree_s_runner(engine: Engine, runtime: str):
    ended = project(engine, runtime, ["cat /runner.mjs", "sha256sum < /usr/local/lib/plimsoll-runner-guard.so"])
    assert ended.steps[0]["stdout"] == (ROOT / "src/runner/runner.mjs").read_text()
    assert ended.steps[1]["exitCode"] == 0


def test_the_smoke_programs_ran(daemon: Daemon):
    assert daemon.get("/readyz")[0] == 200
    described = daemon.client.describe()
    assert list(described.project_environment.languages) == ["javascript", "python"]
