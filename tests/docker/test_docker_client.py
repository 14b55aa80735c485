"""The official Python client and its CodeExecutor against the docker provider, at both tiers."""

from __future__ import annotations

import asyncio
import threading
import time

import plimsoll_client as pc
import pytest
from docker_daemon import PROJECT_IMAGE, SNIPPET_IMAGE, TIERS, TOKEN, Daemon
from docker_engine import Engine
from plimsoll_client.execution import CodeExecutor


@pytest.fixture(scope="module")
def executor(daemon: Daemon, runtime: str) -> CodeExecutor:
    return CodeExecutor(daemon.client, minimum_isolation=TIERS[runtime])


def test_describe(daemon: Daemon, engine: Engine, runtime: str):
    info = daemon.client.describe()
    assert (info.provider, info.isolation, info.protocol) == ("docker", TIERS[runtime], 3)
    assert info.supports_project and not info.supports_module
    assert info.javascript_environment.identity == "docker-image:" + engine.image(SNIPPET_IMAGE)["Id"]
    assert info.project_environment.identity == "docker-image:" + engine.image(PROJECT_IMAGE)["Id"]
    assert (info.javascript_environment.max_timeout_ms, info.project_environment.max_timeout_ms) == (30_000, 120_000)
    assert list(info.project_environment.languages) == ["javascript", "python"]
    assert info.resources.memory_mb in (0, 256)


def test_a_snippet_and_its_record(daemon: Daemon, engine: Engine, runtime: str):
    result = daemon.client.run_javascript("console.log(6*7)", minimum_isolation=TIERS[runtime])
    assert (result.exit_code, result.stdout, result.stderr, result.timed_out) == (0, b"42\n", b"", False)
    assert (result.provider, result.isolation) == ("docker", TIERS[runtime])
    assert result.record.environment == result.environment == "docker-image:" + engine.image(SNIPPET_IMAGE)["Id"]
    assert result.record.isolation == TIERS[runtime] and result.record.provider == "docker"


def test_endings_of_a_snippet(daemon: Daemon):
    assert daemon.client.run_javascript("process.exit(3)").exit_code == 3
    thrown = daemon.client.run_javascript("throw new Error('boom')")
    assert thrown.exit_code == 1 and b"boom" in thrown.stderr
    killed = daemon.client.run_javascript("require('child_process').execSync('exit 5')")
    assert killed.exit_code == 1
    endless = daemon.client.run_javascript("console.log('before');while(true){}", timeout=1)
    assert (endless.timed_out, endless.exit_code, endless.stdout) == (True, 124, b"before\n")
    syntax = daemon.client.run_javascript("this is no script")
    assert syntax.exit_code == 1 and b"SyntaxError" in syntax.stderr


def test_output_at_and_past_the_cap(daemon: Daemon):
    exact = daemon.client.run_javascript("process.stdout.write('x'.repeat(65536))")
    assert exact.stdout == b"x" * 65536 and not exact.stdout_truncated
    more = daemon.client.run_javascript("process.stdout.write('x'.repeat(65537));process.stderr.write('y'.repeat(70000))")
    assert more.stdout == b"x" * 65536 and more.stdout_truncated
    assert more.stderr == b"y" * 65536 and more.stderr_truncated and more.exit_code == 0


def test_no_run_sees_another(daemon: Daemon):
    daemon.client.run_javascript("require('fs').writeFileSync('/tmp/left','x')")
    seen = daemon.client.run_javascript("console.log(require('fs').existsSync('/tmp/left'))")
    assert seen.stdout == b"false\n"
    daemon.client.run_project({"a": "1"}, ["touch left /tmp/left /dev/shm/left"])
    # By name: this gVisor cannot always list a directory.
    looked = daemon.client.run_project({}, ["for f in a left /tmp/left /dev/shm/left; do [ ! -e $f ] || echo $f; done"])
    assert (looked.steps[0].exit_code, looked.steps[0].stdout) == (0, b"")


def test_a_project(daemon: Daemon, runtime: str):
    result = daemon.client.run_project(
        {"src/a.js": "console.log('hi')\n", "README": "demo é\n"}, ["node src/a.js", "cp README out.txt"], ["out.txt", "missing.bin"],
        minimum_isolation=TIERS[runtime],
    )
    assert (result.outcome, result.detail, result.isolation) == ("completed", "", TIERS[runtime])
    assert [(s.command, s.exit_code) for s in result.steps] == [("node src/a.js", 0), ("cp README out.txt", 0)]
    assert result.steps[0].stdout == b"hi\n"
    assert {a.path: a.content for a in result.artifacts} == {"out.txt": "demo é\n".encode()}
    assert result.record.environment.startswith("docker-image:sha256:")


def test_a_project_that_fails_and_one_that_is_late(daemon: Daemon):
    failed = daemon.client.run_project({}, ["true", "exit 7", "touch never"], ["never"])
    assert failed.outcome == "completed" and [s.exit_code for s in failed.steps] == [0, 7] and failed.artifacts == ()
    late = daemon.client.run_project({}, ["echo before; sleep 60"], timeout=2)
    assert (late.outcome, late.detail) == ("timed_out", "step 1 exceeded its time budget")
    assert late.steps[0].exit_code == 124 and late.steps[0].stdout == b"before\n"
    whole = daemon.client.run_project({}, ["sleep 2.5"] * 8, timeout=3)
    assert (whole.outcome, whole.detail, whole.steps) == ("timed_out", "run exceeded the time budget", ())
    clash = daemon.client.run_project({"a": "1", "a/b": "2"}, ["true"])
    assert clash.outcome == "setup_failed" and clash.detail.startswith("cannot write file a/b: ") and not clash.steps


def test_the_executor_in_both_languages(executor: CodeExecutor, runtime: str):
    python = executor.execute_code("import helper, sys\nprint(helper.answer(), sys.version_info[0])", files={"helper.py": "def answer(): return 42"})
    assert (python.outcome, python.steps[0].stdout, python.isolation) == ("completed", b"42 3\n", TIERS[runtime])
    module = "import fs from 'node:fs';const x = await Promise.resolve(6*7);fs.writeFileSync('out.json', JSON.stringify({x}));console.log(x)"
    script = executor.execute_code(module, language="javascript", artifacts=["out.json"])
    assert script.steps[0].stdout == b"42\n" and script.artifacts[0].content == b'{"x":42}'
    assert script.record is not None and script.record.isolation == TIERS[runtime]


def test_the_executor_s_failures_are_results(executor: CodeExecutor):
    raised = executor.execute_code("raise ValueError('boom')")
    assert raised.steps[0].exit_code == 1 and b"ValueError: boom" in raised.steps[0].stderr
    left = executor.execute_code("import sys; sys.exit(9)")
    assert left.steps[0].exit_code == 9
    late = CodeExecutor(executor.client, minimum_isolation="container", timeout=2).execute_code("while True: pass")
    assert late.outcome == "timed_out" and late.steps[0].timed_out


def test_the_executor_s_floor(daemon: Daemon, runtime: str):
    with pytest.raises(pc.InsufficientIsolationError) as refused:
        CodeExecutor(daemon.client, minimum_isolation="vm").execute_code("print(1)")
    assert refused.value.not_dispatched == "isolation"
    if runtime == "runc":
        with pytest.raises(pc.InsufficientIsolationError):
            CodeExecutor(daemon.client).execute_code("print(1)")
    else:
        assert CodeExecutor(daemon.client).execute_code("print(1)").steps[0].stdout == b"1\n"


def test_a_software_rule_without_an_identity_is_refused(daemon: Daemon):
    # The classic image store names no platform manifest: nothing can be claimed, so nothing is dispatched.
    rule = pc.SoftwareRule.exact("oci-manifest:linux/amd64@sha256:" + "1" * 64)
    with pytest.raises(pc.SoftwareMismatchError) as refused:
        daemon.client.run_project({}, ["true"], software=rule)
    assert refused.value.not_dispatched == "environment"


def test_a_module_is_unsupported(daemon: Daemon):
    with pytest.raises(pc.UnsupportedError) as refused:
        daemon.client.run_module("m", [[1.0]], end_time=1.0, step=1.0)
    assert refused.value.not_dispatched == "unsupported"


def test_a_caller_that_leaves(daemon: Daemon, engine: Engine):
    handle = pc.CancelHandle()
    ended: list[BaseException] = []

    def run() -> None:
        try:
            daemon.client.run_project({}, ["sleep 100"], timeout=100, cancel=handle)
        except pc.RequestCanceledError as canceled:
            ended.append(canceled)

    thread = threading.Thread(target=run)
    thread.start()
    deadline = time.monotonic() + 30
    while not [c for c in engine.containers(label=["io.plimsoll.expires"]) if c["State"] == "running"] and time.monotonic() < deadline:
        time.sleep(0.02)
    handle.cancel()
    thread.join(30)
    assert len(ended) == 1 and ended[0].not_dispatched is None
    while engine.containers(label=["io.plimsoll.expires"]) and time.monotonic() < deadline + 30:
        time.sleep(0.02)
    assert engine.containers(label=["io.plimsoll.expires"]) == []


def test_many_at_once_are_each_their_own(daemon: Daemon, engine: Engine):
    async def many() -> list:
        client = pc.AsyncClient(daemon.url, token=TOKEN)
        return await asyncio.gather(*(client.run_javascript(f"console.log({n})", timeout=25) for n in range(4)))

    assert [r.stdout for r in asyncio.run(many())] == [f"{n}\n".encode() for n in range(4)]
