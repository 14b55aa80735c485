"""Text that would repaint a verdict, hide a path or start a build service's command: shown, and inert.

That no output holds a control byte, a hidden character or a workflow command is checked of every result of
every test; these bring such text in by every way there is.
"""

from __future__ import annotations

import base64
import json
import os

import cli_proto
import cli_sign
import pytest
from cli_fake import Fake, good
from cli_tool import OWN, OWN_PUB, Cli

HOSTILE = "\x1b]8;;http://x\x07link\x1b[2J\u202egnp\u2066\u200b\r\n::error::owned\n##[group]x\x7f\x9b\ufeff\U000e0041\b\0"
ESCAPED = "\\u{1b}]8;;http://x\\u{7}link\\u{1b}[2J\\u{202e}gnp\\u{2066}\\u{200b}\\u{d}"
TIER = HOSTILE[:40]
"""A tier of at most 64 bytes is counted under its own name."""
GITHUB = {"GITHUB_ACTIONS": "true"}


def both_environments(cli: Cli, *args, **options):
    for env in ({}, GITHUB):
        yield cli(*args, env=env, **options)


def test_guest_output(cli):
    code = f"console.log({json.dumps(HOSTILE)}); console.error({json.dumps(HOSTILE)})"
    for found in both_environments(cli, "run", "--js", code):
        assert found.code == 0
        text = found.out.decode()
        assert text.count("| " + ESCAPED + "\n") == 2, text
        # Each line of the guest's is marked as one, so none can pass for ours.
        shown = text.split("stdout:\n", 1)[1].splitlines()
        assert all(line.startswith("| ") or line == "stderr:" for line in shown)
        assert text.count("| ::error::owned") + text.count("| \\::error::owned") == 2
    script = cli("run", "--js", code, "--json", env=GITHUB)
    assert base64.b64decode(script.json["result"]["stdout_base64"]).decode(errors="replace").startswith("\x1b]8;;")
    # A tab stays in a block; it moves nothing but itself.
    assert b"| a\tb\n" in cli("run", "--js", "console.log('a\\tb')").out


def test_forged_summary_lines(cli):
    forged = "ran on vm (vm): exit 0\nrecord " + "0" * 64 + " signed into x; request y"
    found = cli("run", "--js", f"console.log({json.dumps(forged)})")
    ours = [line for line in found.out.decode().splitlines() if not line.startswith("| ")]
    assert [line.split()[0] for line in ours] == ["ran", "record", "stdout:"]
    assert ours[0] == "ran on wasm (process): exit 0"


def hostile_answer(call):
    call.answer(cli_proto.snippet(call.request, provider=HOSTILE, isolation=TIER, environment=HOSTILE, record={"policy": HOSTILE}))


def test_what_a_daemon_says_of_itself(cli, fake):
    daemon = fake(hostile_answer)
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--js", "1"):
        assert found.code == 0 and found.out.decode().startswith(f"ran on {ESCAPED}")
        assert len(found.out.decode().splitlines()) == 4  # what it says stays on its line
    script = cli("run", "--daemon", daemon.url, "--js", "1", "--json", env=GITHUB)
    assert script.json["provider"] == HOSTILE
    for found in both_environments(cli, "verify-entry", "--own", "--line", "1", cli.bundle):
        assert found.code == 0 and f": {ESCAPED}" in found.out.decode()
        assert len(found.out.decode().splitlines()) == 3
    assert cli("verify-entry", "--own", "--line", "1", "--json", cli.bundle).json["record"]["policy"] == HOSTILE
    assert cli("verify", "--own", "--json", cli.bundle).json["bundles"][0]["tiers"] == {TIER: 3}
    for found in both_environments(cli, "verify", "--own", cli.bundle):
        assert found.code == 0


@pytest.mark.parametrize("marked", [True, False])
def test_what_a_daemon_says_when_it_refuses(cli, fake, marked):
    def refuse(call):
        call.error(400, "invalid_argument", HOSTILE * 50, reason=1 if marked else None)

    daemon = fake(refuse)
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--js", "1"):
        assert found.code == (4 if marked else 3) and "\\u{1b}]8;;" in found.err.decode()
        assert len(found.err) < 20_000
    script = cli("run", "--daemon", daemon.url, "--js", "1", "--json")
    assert script.code == (4 if marked else 3) and HOSTILE in script.error["message"]


def test_bundles_of_a_hostile_key_holder(cli):
    pb = cli_proto.messages()
    requests = [pb.RunRequest(protocol=3, trace_id=HOSTILE + str(n), javascript=pb.JavaScriptRun(code=str(n))) for n in range(30)]
    exchanges = [(request, cli_proto.snippet(request, provider=HOSTILE, isolation=TIER, stdout=HOSTILE.encode())) for request in requests]
    file = cli.cwd / "b.jsonl"
    file.write_bytes(cli_sign.bundle(*exchanges))
    found = cli.both("verify", "--pub", OWN_PUB, file)
    assert found.code == 0 and found.json["bundles"][0]["tiers"] == {TIER: 30}
    empty = cli.cwd / "expect"
    empty.write_text("")
    for found in both_environments(cli, "verify", "--pub", OWN_PUB, "--expect", empty, file):
        assert (found.code, found.cls) == (1, "expected")
    script = cli("verify", "--pub", OWN_PUB, "--expect", empty, "--json", file, env=GITHUB)
    assert len(script.json["bundles"][0]["unexpected"]) == 30
    for found in both_environments(cli, "verify-entry", "--pub", OWN_PUB, "--line", "7", file):
        assert found.code == 0
    for found in both_environments(cli, "digest", "line", "--line", "7", file):
        assert found.code == 0
    for member in ("request", "response"):
        message = cli.cwd / member
        message.write_bytes(base64.b64decode(json.loads(file.read_bytes().splitlines()[0])[member]))
        kind = "request" if member == "request" else "result"
        for found in both_environments(cli, "digest", kind, "--binary", "--fields", message):
            assert found.code == 0
    # An expected request's own text is data as well.
    empty.write_text(HOSTILE)
    for found in both_environments(cli, "verify", "--pub", OWN_PUB, "--expect", empty, file):
        assert (found.code, found.cls) == (1, "expected")


def test_the_own_vector_s_policy(cli):
    script = cli.both("verify-entry", "--pub", OWN_PUB, "--line", "2", OWN)
    assert script.json["record"]["policy"] == 'p<a&b>\u2028\u2029"\\\t\x01\x7fé'
    for found in both_environments(cli, "verify-entry", "--pub", OWN_PUB, "--line", "2", OWN):
        assert found.code == 0


NAMES = [
    b"\x1b[31mred\x1b[0m",
    b"::error::x",
    b"a\n::error::b",
    b"\xe2\x80\xaejpg.exe",
    b"not-\xff\xfe-utf-8",
    b"##[error]x",
    b"tab\there\r",
    b"back\\slash",
    b"-leading",
    b"sp ace",
    b"x" * 200,
]


@pytest.mark.parametrize("name", NAMES, ids=[ascii(name[:20]) for name in NAMES])
def test_file_names(cli, name, fake):
    folder = os.fsencode(cli.cwd)
    path = os.path.join(folder, name)
    for relative in (False, True):
        file = name if relative else path
        if relative and name.startswith(b"-"):
            continue
        for found in both_environments(cli, "verify", "--pub", OWN_PUB, file):
            assert (found.code, found.cls) == (2, "io")
        for found in both_environments(cli, "verify", "--pub", OWN_PUB, OWN, file):
            assert found.code == 2
        for found in both_environments(cli, "verify", "--pub", file, OWN):
            assert (found.code, found.cls) == (2, "io")
        for command in (("digest", "request"), ("digest", "line"), ("run", "--daemon", "http://127.0.0.1:1"), ("run", "--daemon", "http://127.0.0.1:1", "--file")):
            for found in both_environments(cli, *command, file):
                assert found.code == 2
    with open(path, "wb") as file:
        file.write(OWN.read_bytes())
    for found in both_environments(cli, "verify", "--pub", OWN_PUB, path, OWN):
        assert found.code == 0 and len(found.out.splitlines()) == 2
    script = cli("verify", "--pub", OWN_PUB, path, "--json", env=GITHUB)
    assert script.code == 0
    if name.isascii():
        assert script.json["bundles"][0]["file"] == os.fsdecode(path)
    with open(path, "wb") as file:
        file.write(b"{}\n")
    for found in both_environments(cli, "verify", "--pub", OWN_PUB, path):
        assert (found.code, found.cls) == (1, "link")
    os.remove(path)
    # Names of what is made: a key, a bundle, pages, a folder of artifacts.
    for found in both_environments(cli, "keygen", "--out", os.path.join(folder, b"k" + name[:150])):
        assert found.code in (0, 2)
    daemon = fake(good)
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--bundle", path, "--js", "1"):
        assert found.code == 0
    # "name: verified …" would begin with the name.
    made = name if not name.startswith(b"-") else path
    for found in both_environments(cli, "verify", "--own", made, made):
        assert found.code == 0
    os.mkdir(path + b".d")
    for found in both_environments(cli, "man", "--out", path + b".d"):
        assert found.code == 0
    with open(os.path.join(path + b".d", b"f"), "wb") as file:
        file.write(b"\xff")
    os.symlink("/etc/passwd", os.path.join(path + b".d", name))
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--project", path + b".d", "--step", "true"):
        assert (found.code, found.cls) == (1, "request")
        # What was left out is named before anything is decided by it.
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--project", path + b".d", "--step", "true", "--skip-binary", "--exclude", "*.1"):
        assert found.code in (1, 3) and b"warning: left out" in found.err


def test_a_hostile_home_and_environment(tmp_path):
    cli = Cli(tmp_path)
    cli.home = tmp_path / "h\x1b[31m\n::error::home"
    cli.home.mkdir()
    for n, env in enumerate(({}, {"XDG_CONFIG_HOME": str(cli.home / "x\u202e")}, {"SANDBOX_PROVIDER": HOSTILE.replace("\0", "")})):
        found = cli("run", "--bundle", f"{n}.jsonl", "--js", "1", env={**env, **GITHUB})
        assert found.code == 0 and b"note:" in found.err
    for env in ({"PLIMSOLL_ATTEST_KEY": HOSTILE.replace("\0", ""), **GITHUB}, {"PLIMSOLL_CALLER_TOKEN": HOSTILE.replace("\0", ""), **GITHUB}):
        found = cli("run", "--daemon", "http://127.0.0.1:1", "--js", "1", env=env)
        assert found.code == 2 and "http://x" not in found.text


def test_hostile_words(cli):
    hostile = HOSTILE.replace("\0", "")
    for args in ((hostile,), ("verify", f"--{hostile}"), ("digest", hostile, "x"), ("help", hostile), ("man", hostile), ("completions", hostile)):
        for found in both_environments(cli, *args):
            assert (found.code, found.cls) == (2, "usage"), args
    for flags in (("--trace-id", hostile), ("--grant-profile", hostile), ("--floor", hostile), ("--software", f"exact:{hostile}"), ("--daemon", hostile)):
        for found in both_environments(cli, "run", "--js", "1", *flags):
            assert found.code in (1, 2, 4), flags


def test_artifacts_and_steps(cli, fake):
    """A step's own text, and what an answer says of it."""

    def answer(call):
        call.answer(cli_proto.project(call.request))

    daemon: Fake = fake(answer)
    (cli.cwd / "p").mkdir()
    (cli.cwd / "p/a").write_text("x")
    step = HOSTILE.replace("\0", "")
    for found in both_environments(cli, "run", "--daemon", daemon.url, "--project", "p", "--step", step):
        assert found.code == 0 and "step 1: " + ESCAPED in found.out.decode()
    script = cli("run", "--daemon", daemon.url, "--project", "p", "--step", step, "--json")
    assert script.json["result"]["steps"][0]["command"] == step
