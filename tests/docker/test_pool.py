"""Containers made ahead: verified, each used for one run, never left behind."""

from __future__ import annotations

import time

import pytest
from docker_daemon import TIERS, Daemon, Refused, settings
from docker_engine import Engine, EngineError
from test_faults import EXPIRES, running

LOOK = "const fs=require('fs');console.log(require('os').hostname(), fs.readdirSync('/tmp').length);fs.writeFileSync('/tmp/mine','x')"


@pytest.fixture(scope="module")
def pooled(engine: Engine, daemon: Daemon, runtime: str):
    """After the daemon without a pool, so that it goes before it."""
    made = Daemon(settings(runtime, SANDBOX_DOCKER_FRESH_POOL="2"))
    yield made
    assert made.stop() == 0
    assert engine.containers(label=[EXPIRES]) == [], "members go with their daemon"


def members(engine: Engine, count: int = 4) -> set[str]:
    """Waits for a full pool: two of each kind."""
    return {c["Id"][:12] for c in running(engine, count, 120)}


def test_each_member_is_used_once(pooled: Daemon, engine: Engine, runtime: str):
    used = []
    for _ in range(5):
        ready = members(engine)
        result = pooled.client.run_javascript(LOOK)
        host, files = result.stdout.decode().split()
        assert host in ready, "a container that was made ahead"
        assert files == "0", "nothing of a run before"
        assert (result.isolation, result.provider) == (TIERS[runtime], "docker")
        used.append(host)
    assert len(set(used)) == 5
    ends = time.monotonic() + 30
    while any(c["Id"][:12] in used for c in engine.containers()):
        assert time.monotonic() < ends, "a used container stays"
        time.sleep(0.1)


def test_results_are_those_of_a_fresh_container(pooled: Daemon, daemon: Daemon, engine: Engine):
    members(engine)
    for code, timeout in [
        ("process.exit(3)", None),
        ("console.error('e');process.stdout.write(Buffer.from([255,0]))", None),
        ("process.stdout.write('x'.repeat(70000))", None),
        ("console.log(1);while(true){}", 1.0),
    ]:
        ours = pooled.client.run_javascript(code, timeout=timeout)
        theirs = daemon.client.run_javascript(code, timeout=timeout)
        for name in ("stdout", "stderr", "exit_code", "timed_out", "stdout_truncated", "environment", "isolation"):
            assert getattr(ours, name) == getattr(theirs, name), (code, name)
    files, steps, artifacts = {"a.txt": "hi"}, ["cat a.txt; pwd; cp a.txt b", "exit 2", "echo never"], ["b"]
    ours = pooled.client.run_project(files, steps, artifacts)
    theirs = daemon.client.run_project(files, steps, artifacts)
    seen = lambda r: (r.outcome, [(s.stdout, s.exit_code) for s in r.steps], [(a.path, a.content) for a in r.artifacts])  # noqa: E731
    assert seen(ours) == seen(theirs)
    assert ours.outcome == "completed" and len(ours.steps) == 2


@pytest.mark.parametrize("harm", ["kill", "pause", "restart?t=0"])
def test_a_member_that_was_touched_is_not_used(pooled: Daemon, engine: Engine, runtime: str, harm: str):
    if (harm, runtime) == ("pause", "runsc"):
        harm = "kill"
    touched = members(engine)
    for name in touched:
        try:
            engine.call("POST", f"/containers/{name}/{harm}")
        except EngineError as fault:
            # It was replaced in the meantime, which is harm enough.
            if fault.status not in (404, 409):
                raise
    result = pooled.client.run_javascript("console.log(require('os').hostname())")
    assert result.stdout.decode().strip() not in touched
    result = pooled.client.run_project({}, ["hostname || cat /etc/hostname"])
    assert result.steps[0].stdout.decode().strip() not in touched
    ends = time.monotonic() + 60
    while {c["Id"][:12] for c in engine.containers()} & touched:
        assert time.monotonic() < ends, "a member that was touched stays"
        time.sleep(0.1)


def test_members_count_against_the_memory_of_the_host(start):
    with pytest.raises(Refused) as refused:
        start(SANDBOX_DOCKER_FRESH_POOL="2", SANDBOX_TOTAL_MEMORY_MB="1024")
    assert refused.value.code == 2
    assert "SANDBOX_TOTAL_MEMORY_MB" in refused.value.text
