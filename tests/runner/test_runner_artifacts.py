"""Artifacts: only regular files inside the work directory, within their budget."""

from __future__ import annotations

import base64
import os

from runner_process import Bench

MIB = 1 << 20


def test_names_that_are_no_artifact(bench: Bench):
    names = [
        "../etc/passwd", "/etc/passwd", "dir", "fifo", "socket", "out-link", "dir-link/passwd", "chain", "loop", "dangling",
        "absent", "", ".", "..", "*", "a\0b", "dir/../../../etc/passwd", "/proc/self/environ", "zero",
    ]
    ended = bench.run(
        [
            "mkdir dir; mkfifo fifo; ln -s /etc/passwd out-link; ln -s /etc dir-link; ln -s out-link chain; ln -s loop loop;"
            "ln -s nothing dangling; ln -s /dev/zero zero;"
            "node -e \"require('net').createServer().listen('socket', () => process.exit())\"; true",
        ],
        artifacts=names,
    )
    assert ended.steps[0]["exitCode"] == 0
    assert ended.artifacts == {} and ended.report["artifactsTruncated"] is False


def test_a_pattern_is_a_name_and_nothing_more(bench: Bench):
    ended = bench.run(["echo a > a.txt; echo star > '*.txt'"], artifacts=["*.txt", "?.txt", "a.*"])
    assert ended.artifacts == {"*.txt": b"star\n"}


def test_links_that_stay_inside(bench: Bench):
    ended = bench.run(
        ["mkdir d; echo in > d/f; ln -s d/f link; ln -s d way; ln d/f hard; ln -s $PWD/d/f absolute"],
        artifacts=["link", "way/f", "hard", "absolute", "d/../d/f"],
    )
    assert set(ended.artifacts.values()) == {b"in\n"} and len(ended.artifacts) == 5


def test_bytes_come_back_as_they_are(bench: Bench):
    ended = bench.run(["head -c 100000 /dev/urandom > r; sha256sum r | cut -c1-64; : > empty"], artifacts=["r", "empty"])
    import hashlib

    assert hashlib.sha256(ended.artifacts["r"]).hexdigest() == ended.steps[0]["stdout"].strip()
    assert ended.artifacts["empty"] == b""


def test_the_budget_is_exact_and_the_first_past_it_is_the_last(bench: Bench):
    ended = bench.run([f"head -c {8 * MIB - 1} /dev/zero > big; printf x > one; printf y > two"], artifacts=["big", "one", "two"])
    assert [len(c) for c in ended.artifacts.values()] == [8 * MIB - 1, 1]
    assert ended.report["artifactsTruncated"] is True
    ended = bench.run([f"head -c {8 * MIB} /dev/zero > big; : > none"], artifacts=["big", "none"])
    assert [len(c) for c in ended.artifacts.values()] == [8 * MIB, 0] and ended.report["artifactsTruncated"] is False


def test_files_larger_than_any_memory(bench: Bench):
    ended = bench.run(["echo first > a; truncate -s 1T sparse; echo last > z"], artifacts=["a", "sparse", "z"])
    assert ended.artifacts == {"a": b"first\n"} and ended.report["artifactsTruncated"] is True


def test_after_a_failed_and_after_a_late_step(bench: Bench):
    assert bench.run(["echo kept > k; exit 1"], artifacts=["k"]).artifacts == {"k": b"kept\n"}
    bench.fresh()
    assert bench.run(["echo kept > k; sleep 60"], stepTimeoutMs=400, artifacts=["k"]).artifacts == {"k": b"kept\n"}


def test_a_file_no_one_may_read(bench: Bench):
    ended = bench.run(["echo secret > s; chmod 0 s; echo ok > t"], artifacts=["s", "t"])
    assert ended.artifacts == {"t": b"ok\n"}


def test_a_directory_swapped_for_a_link_while_it_is_read(bench: Bench):
    # A process that survives its step turns d into a link to /etc and back as fast as it can.
    swap = (
        "const fs=require('fs');fs.mkdirSync('d');fs.writeFileSync('d/passwd','mine');fs.symlinkSync('/etc','l');"
        "fs.writeFileSync('ready','');for(;;){fs.renameSync('d','e');fs.renameSync('l','d');fs.renameSync('d','l');fs.renameSync('e','d')}"
    )
    names = ["d/passwd"] + ["d/../d/passwd" for _ in range(99)]
    for _ in range(5):
        bench.fresh()
        process = bench.run(
            ["setsid node swap.js >/dev/null 2>&1 & echo $! > pid; while [ ! -e ready ]; do sleep 0.01; done", "cat pid"],
            files=[{"path": "swap.js", "content": swap}], artifacts=names,
        )
        os.kill(int(process.steps[1]["stdout"]), 9)
        for artifact in process.report["artifacts"]:
            assert base64.b64decode(artifact["content"]) == b"mine", "a file from outside the work directory"


def test_a_work_directory_that_is_gone(bench: Bench):
    ended = bench.run(["mkdir sub; cd sub; echo x > a; chmod 0 ../sub"], artifacts=["sub/a"])
    assert ended.artifacts == {}
