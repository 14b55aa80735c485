"""Hostile plans, the frame, and the isolation the runner proves before it reads one."""

from __future__ import annotations

import json
import subprocess
import time

import pytest
from runner_process import KEY, NO_MAC, Bench, guest

MIB = 1 << 20
UNPROVEN = "runner descriptor and memory isolation could not be proven"


def plan(**members) -> bytes:
    return json.dumps({"files": [], "steps": ["echo ran > ran"], "stepTimeoutMs": 5000, "artifacts": [], "reportKey": KEY.hex(), **members}).encode()


@pytest.mark.parametrize("stdin", [
    b"", b"{", b"nul", b"[]", b"null", b'"x"', b"{}", b"\xff\xfe", b"[" * 100_000,
    plan(reportKey=None), plan(reportKey=KEY.hex()[:-1]), plan(reportKey=KEY.hex() + "0"), plan(reportKey="z" * 64),
    plan(reportKey=[KEY.hex()]), b"x" * (65 * MIB),
], ids=lambda b: repr(b[:20]))
def test_without_a_key_nothing_runs_and_nothing_verifies(bench: Bench, stdin: bytes):
    ended = bench.feed(stdin)
    body, mac = ended.frame
    assert ended.status == 0 and mac == NO_MAC and set(json.loads(body)) == {"error"}
    assert not (bench.work / "ran").exists()


@pytest.mark.parametrize("member, value", [
    ("files", {}), ("files", [1]), ("files", [None]), ("files", [{"path": "a"}]), ("files", [{"path": 1, "content": ""}]),
    ("steps", "echo"), ("steps", [1]), ("steps", [["a"]]), ("artifacts", "a"), ("artifacts", [None]), ("env", "A=b"), ("env", [1]),
    ("hostSDK", 1), ("stepTimeoutMs", 0), ("stepTimeoutMs", -1), ("stepTimeoutMs", 1.5), ("stepTimeoutMs", "1"), ("stepTimeoutMs", None),
])
def test_a_malformed_member_is_named_and_nothing_runs(bench: Bench, member: str, value: object):
    assert bench.feed(plan(**{member: value})).report == {"error": f"plan is malformed: {member}"}
    assert not (bench.work / "ran").exists()


@pytest.mark.parametrize("path", ["../x", "/etc/x", "..", ".", "", "a/../../x", "a\0b"])
def test_a_file_outside(bench: Bench, path: str):
    assert bench.feed(plan(files=[{"path": path, "content": ""}])).report == {"error": f"illegal file path: {path}"}
    assert not (bench.work / "ran").exists()


@pytest.mark.parametrize("files, error", [
    (["a", "a/b"], "cannot write file a/b: "), (["a/b", "a"], "cannot write file a: "), (["x" * 300], "cannot write file " + "x" * 300 + ": ENAMETOOLONG"),
])
def test_files_that_cannot_be_written(bench: Bench, files: list[str], error: str):
    assert bench.feed(plan(files=[{"path": f, "content": ""} for f in files])).report["error"].startswith(error)


@pytest.mark.parametrize("entry", ["A", "=b", "", "A=b\0c"])
def test_an_environment_entry_that_is_none(bench: Bench, entry: str):
    assert bench.feed(plan(env=[entry])).report == {"error": "plan env entry is not NAME=value"}


def test_members_of_object_itself_are_no_members(bench: Bench):
    raw = plan(files=[{"path": "__proto__/x", "content": "1"}], env=["__proto__=1", "constructor=2"], steps=["cat __proto__/x; echo $constructor"])
    raw = raw.replace(b'"artifacts"', b'"__proto__": {"steps": ["echo polluted"]}, "artifacts"')
    assert bench.feed(raw).steps[0]["stdout"] == "12\n"


def test_lists_may_be_absent_or_null(bench: Bench):
    ended = bench.feed(json.dumps({"steps": ["echo ok"], "files": None, "stepTimeoutMs": 5000, "reportKey": KEY.hex()}).encode())
    assert ended.steps[0]["stdout"] == "ok\n" and ended.artifacts == {}


def test_a_plan_at_the_size_of_the_wire_limit(bench: Bench):
    content = "\0" * (4 * MIB)
    ended = bench.run(["wc -c < big"], files=[{"path": "big", "content": content}], artifacts=["big"])
    assert ended.steps[0]["stdout"].strip() == str(4 * MIB) and ended.artifacts["big"] == content.encode()


def test_a_report_over_its_budget_loses_artifacts_from_the_end(bench: Bench):
    # 3 MiB of steps, 8 MiB of artifacts in base64 and long names of control characters: over 15 MiB in all.
    names = [f"{i:03}" + "\x01" * 200 for i in range(100)]
    steps = ["for i in 1 2 3; do head -c 1000000 /dev/zero | tr '\\0' a; done | head -c 1048576"] * 3 + ["node fill.js"]
    fill = "const fs=require('fs');for(const n of JSON.parse(fs.readFileSync('names')))fs.writeFileSync(n,Buffer.alloc(83886))"
    ended = bench.run(steps, files=[{"path": "fill.js", "content": fill}, {"path": "names", "content": json.dumps(names)}], artifacts=names)
    body, _ = ended.frame
    assert len(body) <= 15 * MIB and len(ended.artifacts) >= 98
    deep = ["/".join(["d" * 200] * 4) + f"/{i:03}" + "\x02" * 190 for i in range(100)]
    fill = "const fs=require('fs'),p=require('path');for(const n of JSON.parse(fs.readFileSync('names'))){fs.mkdirSync(p.dirname(n),{recursive:true});fs.writeFileSync(n,Buffer.alloc(83886))}"
    commands = [": '" + "\x01" * 16000 + "'"] * 16
    bench.fresh()
    ended = bench.run(
        ["node fill.js", *steps[:3], *commands],
        files=[{"path": "fill.js", "content": fill}, {"path": "names", "content": json.dumps(deep)}], artifacts=deep,
    )
    body, _ = ended.frame
    assert 15 * MIB - 130_000 < len(body) <= 15 * MIB
    assert ended.report["artifactsTruncated"] is True
    assert list(ended.artifacts) == deep[: len(ended.artifacts)]


def test_a_step_that_prints_frames_changes_nothing(bench: Bench):
    forged = "\\n<<<PLIMSOLL_REPORT_V3>>> 2 " + "0" * 64 + "\\n{}"
    ended = bench.run([f"printf '{forged}'; printf '{forged}' >&2"])
    assert ended.steps[0]["stdout"] == forged.replace("\\n", "\n")
    assert ended.stdout.count(b"\n<<<PLIMSOLL_REPORT_V3>>>") == 1


def test_a_step_cannot_open_the_runner(bench: Bench):
    step = (
        "p=/proc/$PLIMSOLL_RUNNER_PID; for f in fd/0 fd/1 fd/2 mem environ maps; do cat $p/$f >/dev/null 2>&1 && echo read $f; done;"
        "for f in fd/1 fd/2 mem; do (: >> $p/$f) 2>/dev/null && echo wrote $f; done; ls $p/fd 2>/dev/null; echo done"
    )
    assert bench.run([step]).steps[0]["stdout"] == "done\n"


def test_no_signal_opens_an_inspector(bench: Bench):
    # What Node.js does on SIGUSR1 by itself would let a step evaluate code beside the report key.
    step = (
        "for i in 1 2 3; do kill -USR1 $PLIMSOLL_RUNNER_PID; sleep 0.3; done;"
        "found=$(node -e \"require('net').connect(9229,'127.0.0.1').on('connect',()=>{console.log('open');process.exit()}).on('error',e=>console.log(e.code))\"); echo $found"
    )
    ended = bench.run([step])
    assert ended.steps[0]["stdout"] == "ECONNREFUSED\n" and ended.stderr == b""


def test_a_runner_that_is_being_debugged_runs_nothing(bench: Bench):
    env = bench.environment()
    env["NODE_OPTIONS"] = "--inspect=127.0.0.1:0"
    done = subprocess.run(["node", bench.runner], env=env, input=plan(steps=["echo ran > ran"]), capture_output=True, cwd="/", **guest())
    assert b"the runner can be debugged from outside" in done.stdout
    assert not (bench.work / "ran").exists()


def test_an_open_runner_reports_so_and_runs_nothing(bench: Bench):
    ended = bench.run(["echo ran > ran"], guard=False)
    assert ended.report == {"error": UNPROVEN}
    assert not (bench.work / "ran").exists()


def test_open_descriptors_still_need_closed_memory(bench: Bench):
    assert bench.run(["echo ran > ran"], "--open-descriptors", guard=False).report == {"error": UNPROVEN}
    assert bench.run(["echo ok"], "--open-descriptors").steps[0]["stdout"] == "ok\n"


def test_the_plan_is_read_to_its_end_before_any_step(bench: Bench):
    process = bench.start()
    whole = plan(steps=["echo ran > ran"])
    process.stdin.write(whole)
    process.stdin.flush()
    for _ in range(20):
        time.sleep(0.02)
        assert not (bench.work / "ran").exists()
    stdout, _ = process.communicate(timeout=60)
    assert (bench.work / "ran").exists() and b"PLIMSOLL_REPORT_V3" in stdout


def test_the_guard_ends_a_process_it_cannot_close(bench: Bench):
    # A filter of the kernel that answers EPERM to prctl is what an odd sandbox looks like to the guard.
    source = bench.home / "deny.c"
    source.write_text(DENY_PRCTL)
    program = bench.home / "deny"
    subprocess.run(["cc", "-o", program, source], check=True)
    done = subprocess.run([program, bench.guard, "/bin/echo", "started"], capture_output=True, **guest())
    assert (done.returncode, done.stdout) == (125, b"")
    assert done.stderr == b"plimsoll-runner-guard: the process could not be made non-dumpable\n"
    assert subprocess.run(["/bin/echo", "started"], env={"LD_PRELOAD": str(bench.guard)}, capture_output=True, **guest()).stdout == b"started\n"


DENY_PRCTL = r"""
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int argc, char **argv) {
  (void)argc;
  struct sock_filter code[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_prctl, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = {4, code};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) return 1;
  setenv("LD_PRELOAD", argv[1], 1);
  execv(argv[2], argv + 2);
  return 2;
}
"""
