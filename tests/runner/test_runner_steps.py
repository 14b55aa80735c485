"""Steps: order, environment, budgets, output, what is left behind."""

from __future__ import annotations

import json
import time

from runner_process import Bench

MIB = 1 << 20


def test_files_steps_and_artifacts(bench: Bench):
    ended = bench.run(
        ["node src/a.js", "cat README > out.txt; printf oops >&2"],
        files=[{"path": "src/a.js", "content": "console.log(6*7)\n"}, {"path": "README", "content": "demo é\u2028\0\n"}],
        artifacts=["out.txt", "missing.bin", "src/a.js"],
    )
    assert ended.status == 0 and ended.stderr == b""
    first, second = ended.steps
    assert first == {
        "command": "node src/a.js", "stdout": "42\n", "stderr": "", "stdoutTruncated": False, "stderrTruncated": False,
        "exitCode": 0, "timedOut": False, "durationMs": first["durationMs"],
    }
    assert isinstance(first["durationMs"], int) and first["durationMs"] >= 0
    assert second["stderr"] == "oops"
    assert ended.artifacts == {"out.txt": "demo é\u2028\0\n".encode(), "src/a.js": b"console.log(6*7)\n"}
    assert list(ended.artifacts) == ["out.txt", "src/a.js"]
    assert ended.report["artifactsTruncated"] is False


def test_a_failing_step_is_the_last(bench: Bench):
    ended = bench.run(["echo kept > a", "exit 3", "echo never > b"], artifacts=["a", "b"])
    assert [s["exitCode"] for s in ended.steps] == [0, 3]
    assert ended.artifacts == {"a": b"kept\n"}


def test_no_steps_and_an_empty_step(bench: Bench):
    assert bench.run([]).steps == []
    assert bench.run([""]).steps[0]["exitCode"] == 0


def test_a_step_past_its_budget(bench: Bench):
    began = time.monotonic()
    ended = bench.run(["echo before; sleep 60", "echo never"], stepTimeoutMs=500)
    (step,) = ended.steps
    assert (step["exitCode"], step["timedOut"], step["stdout"]) == (124, True, "before\n")
    assert 500 <= step["durationMs"] and time.monotonic() - began < 30


def test_a_step_that_ignores_every_signal_it_can(bench: Bench):
    (step,) = bench.run(["trap '' TERM INT HUP; while :; do sleep 1; done"], stepTimeoutMs=500).steps
    assert (step["exitCode"], step["timedOut"]) == (124, True)


def test_what_a_step_leaves_in_its_group_dies_with_its_budget(bench: Bench):
    ended = bench.run(["sh -c 'echo $$ > pid; exec sleep 300' & wait"], stepTimeoutMs=500, artifacts=["pid"])
    pid = int(ended.artifacts["pid"])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            state = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()[0]
        except OSError:
            return
        if state == "Z":
            return
        time.sleep(0.01)
    raise AssertionError(f"process {pid} outlived its step")


def test_a_process_that_left_its_group_cannot_hold_the_report(bench: Bench):
    # It keeps both streams open for ten minutes; only our own ends can be closed.
    (step,) = bench.run(["setsid sleep 600 & echo on"], stepTimeoutMs=700).steps
    assert (step["exitCode"], step["timedOut"], step["stdout"]) == (124, True, "on\n")


def test_a_background_process_with_its_own_output_lives_on(bench: Bench):
    ended = bench.run(["(sleep 0.3; echo late > late) >/dev/null 2>&1 &", "while [ ! -e late ]; do sleep 0.05; done; cat late"])
    assert [s["stdout"] for s in ended.steps] == ["", "late\n"]


def test_a_step_ended_by_a_signal_has_no_status(bench: Bench):
    (step,) = bench.run(["kill -9 $$"]).steps
    assert (step["exitCode"], step["timedOut"]) == (-1, False)


def test_output_up_to_the_cap_is_whole(bench: Bench):
    (step,) = bench.run([f"head -c {MIB} /dev/zero | tr '\\0' x; head -c {MIB} /dev/zero | tr '\\0' y >&2"]).steps
    assert step["exitCode"] == 0
    assert (step["stdout"], step["stderr"]) == ("x" * MIB, "y" * MIB)
    assert not step["stdoutTruncated"] and not step["stderrTruncated"]


def test_a_flood_is_cut_flagged_and_ended(bench: Bench):
    (step,) = bench.run(["yes", "echo never"], stepTimeoutMs=60_000).steps
    assert step["stdout"] == "y\n" * (MIB // 2)
    assert step["stdoutTruncated"] and not step["stderrTruncated"] and not step["timedOut"]
    assert step["exitCode"] == -1
    (step,) = bench.run(["yes >&2"], stepTimeoutMs=60_000).steps
    assert step["stderrTruncated"] and not step["stdoutTruncated"] and step["exitCode"] != 0


def test_a_flood_by_what_a_step_left_behind(bench: Bench):
    (step,) = bench.run(["setsid yes & exit 0"], stepTimeoutMs=60_000).steps
    assert step["stdoutTruncated"] and step["exitCode"] != 0


def test_a_character_across_the_cut_is_left_out(bench: Bench):
    for lead in range(4):
        (step,) = bench.run([f"printf '%{lead}s' ''; yes 😀 | tr -d '\\n'"]).steps
        kept = step["stdout"].lstrip(" ")
        assert set(kept) == {"😀"} and MIB - 4 < len(step["stdout"].encode()) <= MIB


def test_bytes_that_are_no_text(bench: Bench):
    (step,) = bench.run([r"printf '\377\000\303A'"]).steps
    assert step["stdout"] == "\ufffd\0\ufffdA"
    assert step["exitCode"] == 0


def test_encoded_steps_have_a_budget_of_their_own(bench: Bench):
    # Control characters grow sixfold in JSON: the first step's two streams would take 12 MiB.
    ended = bench.run([r"head -c 1048576 /dev/zero | tr '\0' '\001'; head -c 1048576 /dev/zero | tr '\0' '\002' >&2", "echo more"])
    first, second = ended.steps
    size = len(json.dumps(ended.steps, separators=(",", ":"), ensure_ascii=False).encode())
    assert size <= 3 * MIB + 1000
    # Standard output goes first and may go wholly; what fits of standard error stays.
    assert first["stdout"] == "" and first["stdoutTruncated"] and first["stderrTruncated"]
    assert 3 * MIB - len(first["stderr"]) * 6 < 600
    assert (second["stdout"], second["stdoutTruncated"], second["exitCode"]) == ("", True, 0)


def test_the_newest_step_is_cut_to_what_fits(bench: Bench):
    steps = ["head -c 1000000 /dev/zero | tr '\\0' a"] * 3 + ["head -c 600000 /dev/zero | tr '\\0' b; echo err >&2"]
    *whole, last = bench.run(steps).steps
    assert all(len(s["stdout"]) == 1_000_000 and not s["stdoutTruncated"] for s in whole)
    assert 100_000 < len(last["stdout"]) < 3 * MIB - 3_000_000 and last["stdoutTruncated"]
    assert last["stderr"] == "err\n" and not last["stderrTruncated"]


def test_the_command_is_echoed_up_to_its_cap(bench: Bench):
    (step,) = bench.run([": " + "é" * 9000]).steps
    assert step["command"] == ": " + "é" * 8191
    assert step["exitCode"] == 0


def test_the_environment_of_steps(bench: Bench):
    (step,) = bench.run(
        ["echo $A/$B/$HOME; env | cut -d= -f1 | sort | tr '\\n' ' '"],
        env=["A=1", "B=x=y", "A=2", "HOME=/elsewhere", "EMPTY="],
    ).steps
    first, names = step["stdout"].split("\n", 1)
    assert first == "2/x=y//elsewhere"
    # PWD is the shell's own.
    assert set(names.split()) - {"PWD"} == {"A", "B", "EMPTY", "HOME", "PATH", "PLIMSOLL_RUNNER_PID", "PLIMSOLL_WORK"}
    assert "LD_PRELOAD" not in names and "reportKey" not in names


def test_an_image_variable_cannot_change_the_shell_or_the_runner(bench: Bench):
    (step,) = bench.run(["echo $0; node -p 1"], env=["PATH=/nowhere", "NODE_OPTIONS=--require=/nowhere.js"]).steps
    assert step["stdout"] == "/bin/sh\n" and step["exitCode"] == 127


def test_a_step_has_no_standard_input_and_no_descriptor_of_the_runner(bench: Bench):
    (step,) = bench.run(["cat; ls -l /proc/self/fd | sed -n 's/.* \\([0-9]*\\) -> /\\1 /p'"]).steps
    table = dict(line.split(" ", 1) for line in step["stdout"].splitlines())
    assert table.pop("0") == "/dev/null"
    assert set(table) == {"1", "2", "3"} and table["3"].startswith("/proc/")


def test_a_step_is_a_session_of_its_own(bench: Bench):
    (step,) = bench.run(["kill -TERM 0; echo unreachable", ]).steps
    assert step["exitCode"] == -1 and step["stdout"] == ""
