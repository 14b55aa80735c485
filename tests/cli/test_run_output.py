"""What a recorded run shows and states, for every kind of outcome; a guest's exit code is never ours."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
import shutil
import stat

import cli_proto
import pytest
from cli_fake import Call, good
from cli_proto import project, snippet

RECORDED = re.compile(
    r"ran on (?P<provider>\S+) \((?P<tier>\S+)\): (?P<summary>.+)\n"
    r"record (?P<record>[0-9a-f]{64}) signed into (?P<bundle>.+); request (?P<request>[0-9a-f]{64}) \(the line for verify --expect\)\n"
    r"(?P<rest>(?s:.*))"
)


def recorded(found) -> re.Match:
    """The two fixed lines and what follows them."""
    match = RECORDED.fullmatch(found.out.decode())
    assert match, found.text
    assert "stated by the daemon; not hardware attestation" in found.prose
    return match


def streams(found) -> tuple[bytes, bytes]:
    result = found.json["result"]
    return base64.b64decode(result["stdout_base64"]), base64.b64decode(result["stderr_base64"])


# Exit codes.


@pytest.mark.parametrize("code", [0, 1, 2, 3, 4, 5, 70, 101, 124, 137, 255, -1, 2147483647])
def test_a_guest_s_exit_code_never_becomes_ours(cli, fake, code):
    daemon = fake(lambda call: call.answer(snippet(call.request, exit_code=code)))
    run = ("run", "--daemon", daemon.url, "--js", "1")
    assert recorded(cli(*run))["summary"] == f"exit {code}"
    script = cli(*run, "--json").json
    assert (script["result"]["exit_code"], script["success"], script["ran"]) == (code, code == 0, "yes")
    found = cli.both(*run, "--require-success")
    if code:
        assert (found.code, found.cls, found.json["ran"]) == (5, "not_success", "yes")
        assert "is recorded" in found.error["message"] and f"exit {code}" in found.error["message"]
        assert found.json["line"] and found.json["record_sha256"]
    else:
        assert found.code == 0
    # Kept all the same.
    assert cli("verify", "--own", "--expect-count", "4", cli.bundle).code == 0


def test_failing_snippets_on_the_embedded_daemon(cli):
    for code, exit_code in (("throw new Error('boom')", 1), ("process.exit(3)", None), ("syntax error here", 1), ("null.x", 1), ("Promise.reject(1)", None)):
        found = cli("run", "--js", code, "--json")
        assert found.code == 0 and (exit_code is None or found.json["result"]["exit_code"] == exit_code), code
        assert found.json["success"] is (found.json["result"]["exit_code"] == 0)
    assert cli("run", "--js", "throw 1", "--require-success").code == 5
    assert b"Error: boom" in cli("run", "--js", "throw new Error('boom')").out


def test_time_outs(cli):
    found = cli("run", "--js", "console.log('before'); while (true) {}", "--timeout", "300ms", "--json")
    assert found.code == 0 and found.json["result"]["timed_out"] and not found.json["success"]
    assert streams(found)[0] == b"before\n"
    human = cli("run", "--js", "while (true) {}", "--timeout", "300ms", "--require-success")
    assert human.code == 5 and re.match(r"ran on wasm \(process\): exit \d+, timed out\n", human.out.decode())


def test_code_that_looks_like_flags(cli):
    for code in ("console.log('--json')", "'--json'", "-1", "--x", "+1", "//", " 1", "=1", "console.log(`a\nb`)"):
        if code in ("--x", "=1"):
            continue
        assert cli("run", "--js", code).code == 0, code
    found = cli("run", "--js=--json")
    assert found.code == 0 and not found.out.startswith(b"{")  # it ran, and failed as a program
    # `-` is the code, not standard input.
    found = cli("run", "--js", "-", stdin=b"console.log('stdin')", raw=False)
    assert found.code == 0 and b"stdin" not in found.out.replace(b"stdin:", b"")
    (cli.cwd / "f.js").write_text("console.log('file')")
    assert b"| file\n" in cli("run", "--file", "f.js").out
    assert b"| in\n" in cli("run", "--file", "-", stdin=b"console.log('in')").out
    request = b'{"protocol":3,"javascript":{"code":"console.log(\'json\')"}}'
    assert b"| json\n" in cli("run", "-", stdin=request).out


# The guest's output.


def shown(rest: str) -> dict[str, str]:
    """The blocks of a snippet's output by their heading."""
    blocks: dict[str, str] = {}
    for line in rest.splitlines(keepends=True):
        if re.fullmatch(r"(stdout|stderr):\n", line):
            blocks[name := line[:-2]] = ""
        elif line.startswith("| "):
            blocks[name] += line[2:]
        else:
            blocks.setdefault("other", "")
            blocks["other"] += line
    return blocks


OUTPUTS = {
    "nothing": (b"", b"", {}),
    "a line": (b"a\n", b"", {"stdout": "a\n"}),
    "no newline": (b"a", b"", {"stdout": "a∎\n"}),
    "both streams": (b"o\n", b"e\n", {"stdout": "o\n", "stderr": "e\n"}),
    "errors alone": (b"", b"e\n", {"stderr": "e\n"}),
    "empty lines": (b"\n\n", b"", {"stdout": "\n\n"}),
    "a backslash": (b"\\n\n", b"", {"stdout": "\\\\n\n"}),
    "not UTF-8": (b"\xff\xfe\x80a\n", b"", {"stdout": "\\xff\\xfe\\x80a\n"}),
    "NUL": (b"a\0b\n", b"", {"stdout": "a\\u{0}b\n"}),
    "carriage returns": (b"50%\r100%\r\n", b"", {"stdout": "50%\\u{d}100%\\u{d}\n"}),
    "tabs": (b"a\tb\n", b"", {"stdout": "a\tb\n"}),
    "other scripts": ("é ∎ 漢 🙂\n".encode(), b"", {"stdout": "é ∎ 漢 🙂\n"}),
    "a cut character": ("é".encode()[:1], b"", {"stdout": "\\xc3∎\n"}),
    "our own headings": (b"stderr:\n| x\n", b"", {"stdout": "stderr:\n| x\n"}),
}


@pytest.mark.parametrize("kind", OUTPUTS)
def test_output_of_every_kind(cli, fake, kind):
    stdout, stderr, blocks = OUTPUTS[kind]
    daemon = fake(lambda call: call.answer(snippet(call.request, stdout=stdout, stderr=stderr)))
    run = ("run", "--daemon", daemon.url, "--js", "1")
    found = shown(recorded(cli(*run))["rest"])
    assert found == blocks
    assert streams(cli(*run, "--json")) == (stdout, stderr)
    assert recorded(cli(*run, "--print", "none"))["rest"] == ""
    assert recorded(cli(*run, "--print", "escaped"))["rest"] == recorded(cli(*run))["rest"]
    # Raw: the guest's bytes on their streams, ours beside them.
    raw = cli(*run, "--print", "raw", raw=True)
    assert raw.out == stdout and raw.code == 0
    ours, theirs = raw.err.split(b"the line for verify --expect)\n", 1)
    assert ours.startswith(b"ran on docker (kernel): exit 0\nrecord ") and theirs.startswith(stderr)
    # With --json the object is all there is, whatever --print says.
    assert streams(cli(*run, "--print", "raw", "--json")) == (stdout, stderr)


def test_much_output(cli, fake):
    large = b"".join(b"%06d\n" % n for n in range(40_000))
    daemon = fake(lambda call: call.answer(snippet(call.request, stdout=large, stderr=b"x" * 100_000)))
    run = ("run", "--daemon", daemon.url, "--js", "1")
    found = cli(*run)
    assert len(found.out) < 300_000 and found.out.count(b" more bytes)") == 2
    assert f"({len(large) - 65536} more bytes)" in found.prose
    assert streams(cli(*run, "--json")) == (large, b"x" * 100_000)
    assert cli(*run, "--print", "raw", raw=True).out == large


def test_output_that_the_daemon_cut(cli, fake):
    found = cli("run", "--js", "console.log('x'.repeat(70 * 1024))")
    assert b"stdout was truncated by the daemon\n" in found.out
    script = cli("run", "--js", "console.log('x'.repeat(70 * 1024))", "--json").json
    assert script["result"]["stdout_truncated"] and not script["result"]["stderr_truncated"] and script["success"]
    daemon = fake(lambda call: call.answer(snippet(call.request, stdout=b"", stderr=b"e", stderr_truncated=True)))
    assert b"stderr was truncated by the daemon\n" in cli("run", "--daemon", daemon.url, "--js", "1").out


# Projects and modules.


@pytest.fixture
def folder(cli):
    (cli.cwd / "p/sub").mkdir(parents=True)
    (cli.cwd / "p/a.js").write_text("1")
    (cli.cwd / "p/sub/b.txt").write_text("é")
    (cli.cwd / "p/.git").mkdir()
    (cli.cwd / "p/.git/config").write_text("secret")
    return cli.cwd / "p"


def test_a_project(cli, fake, folder):
    daemon = fake(lambda call: call.answer(project(call.request, artifacts={"out.txt": b"\x00\xff", "d/e": b""})))
    run = ("run", "--daemon", daemon.url, "--project", folder, "--step", "one", "--step", "two", "--artifact", "out.txt", "--artifact", "d/e")
    found = recorded(cli(*run))
    assert found["summary"] == "completed, 2 steps"
    assert "step 1: one (exit 0)\nstdout:\n| out of one\nstep 2: two (exit 0)\n" in found["rest"]
    script = cli(*run, "--json").json
    assert script["kind"] == "project" and script["result"]["outcome"] == "completed"
    expected = [(path, len(content), hashlib.sha256(content).hexdigest()) for path, content in (("out.txt", b"\x00\xff"), ("d/e", b""))]
    assert [(each["path"], each["bytes"], each["sha256"]) for each in script["result"]["artifacts"]] == expected
    request = daemon.calls[0].request.project
    assert [(file.path, file.content) for file in request.files] == [("a.js", "1"), ("sub/b.txt", "é")]
    assert (list(request.steps), list(request.artifacts)) == (["one", "two"], ["out.txt", "d/e"])


def test_projects_that_are_no_success(cli, fake, folder):
    pb = cli_proto.messages()
    for options, summary in (
        ({"codes": (1,)}, "completed, 1 steps, step 1 exit 1"),
        ({"codes": (0,), "outcome": pb.PROJECT_OUTCOME_TIMED_OUT}, "timed_out, 1 steps"),
        ({"codes": (), "outcome": pb.PROJECT_OUTCOME_SETUP_FAILED}, "setup_failed, 0 steps"),
        ({"codes": (), "outcome": pb.PROJECT_OUTCOME_COMPLETED}, "completed, 0 steps"),
    ):
        daemon = fake(lambda call, options=options: call.answer(project(call.request, **options)))
        run = ("run", "--daemon", daemon.url, "--project", folder, "--step", "one", "--step", "two")
        assert recorded(cli(*run))["summary"] == summary
        found = cli.both(*run, "--require-success")
        assert (found.code, found.cls, found.json["success"]) == (5, "not_success", False)


def test_what_a_project_sends(cli, fake, folder):
    daemon = fake(lambda call: call.answer(project(call.request)))
    run = ("run", "--daemon", daemon.url, "--project", folder, "--step", "x")
    (folder / "binary").write_bytes(b"\xff")
    refused = cli.both(*run)
    assert (refused.code, refused.cls) == (1, "request") and refused.error["file"].endswith("binary")
    assert "--skip-binary" in refused.error["do"] and daemon.calls == []
    found = cli(*run, "--skip-binary")
    assert found.code == 0 and "left out binary: a file that is not UTF-8" in found.prose
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "dirlink").symlink_to("/etc")
    (folder / "-rf").write_text("x")
    found = cli(*run, "--skip-binary", timeout=20)
    assert found.code == 0
    for said in ("left out fifo: a FIFO", "left out link: a symbolic link", "left out dirlink: a symbolic link"):
        assert said in found.prose
    assert [file.path for file in daemon.calls[-1].request.project.files] == ["-rf", "a.js", "sub/b.txt"]
    found = cli(*run, "--exclude", "binary", "--exclude", "sub/**", "--exclude", "*rf")
    assert [file.path for file in daemon.calls[-1].request.project.files] == ["a.js"]
    # A star stays in its folder, two cross.
    found = cli(*run, "--skip-binary", "--exclude", "*.txt")
    assert "sub/b.txt" in [file.path for file in daemon.calls[-1].request.project.files]
    found = cli(*run, "--skip-binary", "--exclude", "**/*.txt")
    assert "sub/b.txt" not in [file.path for file in daemon.calls[-1].request.project.files]
    (folder / "new\nline").write_text("x")
    refused = cli.both(*run, "--skip-binary")
    assert (refused.code, refused.cls) == (1, "request")


def test_projects_that_are_too_large(cli, fake, folder):
    daemon = fake(lambda call: call.answer(project(call.request)))
    run = ("run", "--daemon", daemon.url, "--project", folder, "--step", "x")
    for n in range(198):
        (folder / f"f{n}").write_text(str(n))
    assert cli(*run).code == 0 and len(daemon.calls[-1].request.project.files) == 200
    (folder / "one-more").write_text("x")
    refused = cli.both(*run)
    assert (refused.code, refused.cls) == (1, "request") and "--exclude" in refused.error["do"] and "201 files" in refused.error["message"]
    for n in range(198):
        (folder / f"f{n}").unlink()
    (folder / "large").write_text("x" * (4 * 1024 * 1024 + 1))
    refused = cli.both(*run)
    assert (refused.code, refused.cls) == (1, "request") and "large (4194305 bytes)" in refused.error["do"]
    assert len(daemon.calls) == 1
    for bad in ("absent", "p/a.js", "/dev/null"):
        refused = cli.both("run", "--daemon", daemon.url, "--project", bad, "--step", "x")
        assert (refused.code, refused.cls) == (2, "io"), refused.text


def test_a_module(cli, fake):
    pb = cli_proto.messages()

    def answer(call: Call) -> None:
        rows = [pb.ModuleRowResult(status=2, outputs=[1.0, float("inf")]), pb.ModuleRowResult(status=-3)]
        call.answer(cli_proto.answer(call.request, module=pb.ModuleResult(runs=rows, width=2, outcome=1, stdout=b"rows\n")))

    daemon = fake(answer)
    request = {"protocol": 3, "module": {"model": "m", "rows": [{"values": [1, -0.0]}], "endTime": 1, "step": 0.1}}
    (cli.cwd / "r.json").write_text(json.dumps(request))
    found = recorded(cli("run", "--daemon", daemon.url, "r.json"))
    assert found["summary"] == "completed, 2 rows" and "| rows" in found["rest"]
    script = cli("run", "--daemon", daemon.url, "r.json", "--json").json
    assert script["result"] == {"outcome": "completed", "width": 2, "rows": 2} and script["success"] is False
    assert cli("verify", "--own", "--expect-request", "r.json", cli.bundle).code == 0


def test_other_kinds_on_wasm(cli, folder):
    (cli.cwd / "m.json").write_text('{"protocol":3,"module":{"model":"m","rows":[{"values":[1]}],"endTime":1,"step":0.1}}')
    for args in (("--project", folder, "--step", "true"), ("m.json",)):
        found = cli.both("run", *args)
        assert (found.code, found.cls, found.error["reason"]) == (4, "not_dispatched", "unsupported")
        assert "--daemon" in found.error["do"] and "--provider docker" in found.error["do"] and not cli.bundle.exists()
    found = cli.both("run", "--js", "1", "--floor", "container")
    assert (found.code, found.error["reason"]) == (4, "isolation")
    found = cli.both("run", "--js", "1", "--software", "exact:a:1")
    assert (found.code, found.error["reason"]) == (4, "environment")
    assert cli("run", "--js", "1", "--floor", "process").code == 0


# Artifacts.


def artifacts(cli, fake, files: dict[str, bytes]):
    daemon = fake(lambda call: call.answer(project(call.request, artifacts=files)))
    (cli.cwd / "p").mkdir(exist_ok=True)
    (cli.cwd / "p/f").write_text("x")
    asked = [arg for path in files for arg in ("--artifact", path)]
    return daemon, ("run", "--daemon", daemon.url, "--project", "p", "--step", "x", *asked)


@pytest.mark.parametrize("umask", [0o022, 0o000])
def test_artifacts_are_saved(cli, fake, umask):
    files = {"a": b"\x00\xff", "d/e/f": b"deep", "-rf": b"x", "d/g": b""}
    daemon, run = artifacts(cli, fake, files)
    (cli.cwd / "empty").mkdir()
    for target in ("new", "empty"):
        found = cli(*run, "--save-artifacts", target, umask=umask)
        assert found.code == 0 and "4 artifacts below" in found.prose
        for path, content in files.items():
            file = cli.cwd / target / path
            assert file.read_bytes() == content and stat.S_IMODE(file.stat().st_mode) == 0o600
        assert stat.S_IMODE((cli.cwd / target / "d").stat().st_mode) == 0o700
    assert cli(*run, "--save-artifacts", "json", "--json").code == 0 and (cli.cwd / "json/a").exists()


def test_folders_for_artifacts_are_looked_at_before_the_run(cli, fake):
    daemon, run = artifacts(cli, fake, {"a": b"1"})
    (cli.cwd / "full").mkdir()
    (cli.cwd / "full/x").write_text("kept")
    (cli.cwd / "file").write_text("kept")
    (cli.cwd / "elsewhere").mkdir()
    (cli.cwd / "link").symlink_to("elsewhere")
    for target in ("full", "file", "link", "absent/below", "file/below", "/proc/x"):
        found = cli.both(*run, "--save-artifacts", target)
        assert (found.code, found.cls) == (2, "io"), (target, found.text)
        assert "nothing was run" in found.error["message"] and found.error["file"] == target
    assert daemon.calls == [] and not cli.bundle.exists()
    assert os.listdir(cli.cwd / "elsewhere") == [] and (cli.cwd / "full/x").read_text() == "kept"


def returned(cli, fake, asked: list[str], files: dict[str, bytes]):
    """A run whose answer holds other artifacts than were asked for."""
    daemon = fake(lambda call: call.answer(project(call.request, artifacts=files)))
    (cli.cwd / "p").mkdir()
    (cli.cwd / "p/f").write_text("x")
    flags = [arg for path in asked for arg in ("--artifact", path)]
    return cli("run", "--daemon", daemon.url, "--project", "p", "--step", "x", *flags, "--save-artifacts", "out", "--json")


@pytest.mark.parametrize(
    "path", ["../a", "/etc/x", "a/../../b", "a//b", "./a", "a/", "", "a\\b", "a\nb", "\x1b[31m", "..", "x" * 1025, "not-asked", "dir/x"]
)
def test_artifact_paths_that_lead_elsewhere(cli, fake, path):
    """A daemon may return any path. It ran and is recorded; nothing of it is written anywhere."""
    before = set(os.listdir(cli.folder))
    found = returned(cli, fake, ["asked"], {path: b"owned"})
    assert (found.code, found.cls, found.error["reason"]) == (3, "not_kept", "artifacts"), found.text
    assert (found.json["ran"], found.json["line"]) == ("yes", 1)
    place = found.error.get("found", found.error.get("file", ""))
    assert path in place or len(path) > 1000
    assert cli("verify", "--own", "--expect-count", "1", cli.bundle).code == 0
    assert set(os.listdir(cli.folder)) == before and not os.path.exists("/etc/x")
    assert [file for file in cli.cwd.rglob("*") if file.is_file() and file.name not in ("f", "plimsoll-runs.jsonl")] == []


def test_artifacts_that_meet_each_other(cli, fake):
    for files in ({"a": b"1", "a/b": b"2"}, {"a/b": b"1", "a": b"2"}):
        cli.bundle.unlink(missing_ok=True)
        shutil.rmtree(cli.cwd / "p", ignore_errors=True)
        shutil.rmtree(cli.cwd / "out", ignore_errors=True)
        found = returned(cli, fake, list(files), files)
        assert (found.code, found.cls, found.error["reason"]) == (3, "not_kept", "artifacts"), found.text
        assert "it ran and is recorded" in found.error["message"] and not (cli.cwd / "out").exists()
        assert cli("verify", "--own", "--expect-count", "1", cli.bundle).code == 0


def test_artifacts_of_a_snippet_are_none(cli, fake):
    found = cli("run", "--daemon", fake(good).url, "--js", "1", "--save-artifacts", "out")
    assert found.code == 0 and os.listdir(cli.cwd / "out") == []
