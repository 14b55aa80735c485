"""The project runner inside containers, under runc and under gVisor, without any daemon."""

from __future__ import annotations

from docker_engine import Engine
from docker_runner import FRAME, MIB, project

UNPROVEN = {"error": "runner descriptor and memory isolation could not be proven"}


def test_both_languages(engine: Engine, runtime: str):
    ended = project(
        engine, runtime, ["node a.js", "python3 b.py", "cat out.txt"],
        files=[{"path": "a.js", "content": "console.log(6*7)"}, {"path": "b.py", "content": "open('out.txt','w').write('é')"}],
        artifacts=["out.txt", "absent"],
    )
    assert ended.done.status == 0 and ended.done.stderr == b""
    assert [s["stdout"] for s in ended.steps] == ["42\n", "", "é"]
    assert ended.artifacts == {"out.txt": "é".encode()}


def test_what_a_step_is(engine: Engine, runtime: str):
    ended = project(engine, runtime, ["id -u; id -g; pwd; echo $PLIMSOLL_RUNNER_PID; env | cut -d= -f1 | sort | tr '\\n' ' '"])
    uid, gid, cwd, pid, names = ended.steps[0]["stdout"].split("\n")
    assert (uid, gid, cwd, pid) == ("61000", "61000", "/work", "1")
    assert set(names.split()) == {"HOME", "PATH", "PLIMSOLL_RUNNER_PID", "PWD"}


def test_the_strict_check_is_what_tells_the_kernels_apart(engine: Engine, runtime: str):
    ended = project(engine, runtime, ["echo ok"], open_descriptors=False)
    if runtime == "runc":
        assert ended.steps[0]["stdout"] == "ok\n"
    else:
        # Should a newer gVisor hide descriptors, this fails and the setting for old ones can go.
        assert ended.report == UNPROVEN


def test_without_the_guard_nothing_runs_under_runc(engine: Engine):
    assert project(engine, "runc", ["echo ran"], guard=False).report == UNPROVEN
    assert project(engine, "runc", ["echo ran"], guard=False, open_descriptors=True).report == UNPROVEN


def test_no_step_reads_the_runner_s_memory(engine: Engine, runtime: str):
    steps = ["cat /proc/1/mem 2>&1 | head -c 300; true", "(: >> /proc/1/mem) 2>&1; true"]
    for step in project(engine, runtime, steps).steps:
        assert "Permission denied" in step["stdout"]


INSPECT = """
const net = require('net');
process.kill(+process.env.PLIMSOLL_RUNNER_PID, 'SIGUSR1');
let left = 20;
const look = () => net.connect(9229, '127.0.0.1')
  .on('connect', () => { console.log('open'); process.exit(); })
  .on('error', (error) => { if (left-- > 0) setTimeout(look, 100); else console.log(error.code); });
look();
"""


def test_no_step_opens_the_runner_s_inspector(engine: Engine, runtime: str):
    # The engine's own seccomp profile and gVisor both let a step use the loopback interface.
    ended = project(engine, runtime, ["node a.js", "echo on"], files=[{"path": "a.js", "content": INSPECT}])
    assert [s["stdout"] for s in ended.steps] == ["ECONNREFUSED\n", "on\n"]
    assert ended.done.stderr == b""


def test_a_forged_frame_is_passed_over(engine: Engine, runtime: str):
    forged = "printf '\\n<<<PLIMSOLL_REPORT_V3>>> 12 %064d\\n{\"steps\":[]}' 0"
    ended = project(engine, runtime, [f"({forged} >> /proc/1/fd/1) 2>/dev/null; {forged}"])
    assert ended.steps[0]["stdout"].count("PLIMSOLL_REPORT_V3") == 1

    assert len(FRAME.findall(ended.done.stdout)) == (1 if runtime == "runc" else 2)


def test_budget_flood_and_background(engine: Engine, runtime: str):
    (late,) = project(engine, runtime, ["trap '' TERM; sleep 60 & wait"], stepTimeoutMs=1500).steps
    assert (late["exitCode"], late["timedOut"]) == (124, True)
    (flood,) = project(engine, runtime, ["yes"]).steps
    assert len(flood["stdout"]) == MIB and flood["stdoutTruncated"] and flood["exitCode"] == -1
    (left,) = project(engine, runtime, ["setsid yes & exit 0"]).steps
    assert left["stdoutTruncated"] and left["exitCode"] != 0


def test_artifacts_that_are_none(engine: Engine, runtime: str):
    ended = project(
        engine, runtime,
        ["ln -s /etc/passwd link; ln -s /etc dir; mkfifo fifo; mknod dev c 1 5 2>/dev/null; mknod null b 8 0 2>/dev/null; truncate -s 1T sparse; echo ok > ok"],
        artifacts=["link", "dir/passwd", "fifo", "dev", "null", "/etc/passwd", "../etc/passwd", "/proc/1/environ", "ok", "sparse", "ok2"],
    )
    assert ended.artifacts == {"ok": b"ok\n"} and ended.report["artifactsTruncated"] is True


def test_disks_are_small_and_filling_them_is_a_result(engine: Engine, runtime: str):
    for place, most in [("/work", 128), ("/tmp", 16), ("/dev/shm", 16)]:
        (step,) = project(engine, runtime, [f"dd if=/dev/zero of={place}/f bs=1M count=200 2>/dev/null; wc -c < {place}/f"], memory=512 * MIB).steps
        assert int(step["stdout"]) == most * MIB, place


def test_a_memory_bomb_is_the_step_s_own_or_ends_the_runner(engine: Engine, runtime: str):
    bomb = "node -e 'const a=[];for(;;)a.push(Buffer.alloc(1<<24,1))'"
    ended = project(engine, runtime, [bomb, "echo never"])
    if ended.reports:
        assert ended.steps[0]["exitCode"] != 0 and len(ended.steps) == 1
    else:
        assert ended.done.status == 137


def test_a_fork_bomb_ends_with_its_budget(engine: Engine, runtime: str):
    ended = project(engine, runtime, ["b() { b | b & }; b; sleep 60"], stepTimeoutMs=3000)
    if ended.reports:
        assert ended.steps[0]["exitCode"] != 0 or ended.steps[0]["timedOut"]
