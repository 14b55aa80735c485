"""The registry of callers: each command, other writers, processes that are killed, tokens that must not leak."""

from __future__ import annotations

import hashlib
import json
import os
import re
import signal
import stat
import subprocess

import pytest
from cli_contract import COMMANDS
from cli_tool import BINARY, GROUPS, ROOT, SECRETS

TOKEN = b"imported-token-0123456789abcdef-0123456789"
OTHER = b"another-token-0123456789abcdef-0123456789~!"
CORPUS = ROOT / "testdata/clients"


def sha256(token: bytes) -> str:
    return hashlib.sha256(token).hexdigest()


class Registry:
    """A registry file, and the commands over it."""

    def __init__(self, cli) -> None:
        self.cli = cli
        self.path = cli.cwd / "clients.json"

    def __call__(self, command: str, *args, **options):
        found = self.cli("clients", command, "--file", self.path, *args, **options)
        assert TOKEN not in found.err and OTHER not in found.err and sha256(TOKEN).encode() not in found.out + found.err
        return found

    def made(self, command: str, *args) -> bytes:
        """A command that gives a token."""
        found = self(command, *args, "--token-stdout")
        assert found.code == 0, found.text
        assert re.fullmatch(rb"[0-9a-f]{64}\n", found.out), found.out
        token = found.out.strip()
        assert token not in found.err
        return token

    @property
    def callers(self) -> dict[str, dict]:
        content = json.loads(self.path.read_bytes())
        assert list(content) == ["clients"]
        return {caller["id"]: caller for caller in content["clients"]}

    @property
    def alone(self) -> bool:
        """Nothing else is left: no lock, no temporary file."""
        return os.listdir(self.cli.cwd) == [self.path.name]


@pytest.fixture
def registry(cli):
    yield Registry(cli)
    SECRETS.discard(TOKEN)


def test_create(registry):
    refused = registry("create", "--id", "gateway")
    assert (refused.code, refused.cls, refused.out) == (2, "usage", b"") and not os.listdir(registry.cli.cwd)
    token = registry.made("create", "--id", "gateway")
    assert registry.callers == {"gateway": {"id": "gateway", "token_sha256": sha256(token), "scopes": ["code:run"]}}
    assert stat.S_IMODE(registry.path.stat().st_mode) == 0o600 and registry.alone
    before = registry.path.read_bytes()
    assert before.decode() == json.dumps(json.loads(before), indent=2) + "\n"
    second = registry.made("create", "--id", " batch ", "--scope", "code:run", "--scope", "*", "--paid-seconds-per-day", "3600")
    assert second != token
    assert list(registry.callers) == ["gateway", "batch"]
    assert registry.callers["batch"]["scopes"] == ["code:run", "*"] and registry.callers["batch"]["paid_seconds_per_day"] == 3600
    refused = registry("create", "--id", "batch", "--token-stdout")
    assert (refused.code, refused.cls, refused.out) == (1, "registry", b"")
    for args in (("--id", "x"), ("--token-stdout",), ("--id", "x", "--token-stdout", "extra"), ("--id", "x", "--token-stdout", "--json")):
        found = registry("create", *args)
        assert (found.code, found.cls) == (2, "usage"), args
    assert registry("create", "--id", "*", "--token-stdout").code == 2
    assert len(registry.callers) == 2


def test_list_never_shows_a_fingerprint(registry):
    tokens = [registry.made("create", "--id", name) for name in ("zoë", "\u202egnp", "b", "A")]
    shown = registry("list")
    assert shown.code == 0 and shown.err == b""
    rows = shown.out.decode().splitlines()
    assert rows[0].split("  ")[0] == "CALLER" and "SCOPES" in rows[0] and rows[0].endswith("PAID SECONDS/DAY")
    assert [row.split()[0] for row in rows[1:]] == ["A", "b", "zoë", "\\u{202e}gnp"]
    script = registry("list", "--json")
    assert [caller["id"] for caller in script.json["clients"]] == ["A", "b", "zoë", "\u202egnp"]
    for found in (shown, script, registry("check"), registry("check", "--json")):
        assert not any(sha256(token).encode() in found.out or token in found.out for token in tokens)


def test_import(registry):
    for ending in (b"", b"\n", b"\r\n"):
        found = registry("import", "--id", f"n{len(ending)}", stdin=TOKEN[len(ending) :] + ending)
        assert found.code == 0 and found.out == b"", found.text
        assert registry.callers[f"n{len(ending)}"]["token_sha256"] == sha256(TOKEN[len(ending) :])
    before = registry.path.read_bytes()
    for token in (b"", b"\n", b"x" * 31, b"x" * 4097, b"x" * 100_000, TOKEN + b"\n\n", TOKEN + b" ", b" " + TOKEN, TOKEN + b"\xff", TOKEN + b"\0", TOKEN + b"\r", b"x y" * 20):
        found = registry("import", "--id", "bad", stdin=token)
        assert (found.code, found.cls) == (1, "registry"), token[:40]
        assert not token.strip() or token.strip()[:20] not in found.err
    assert registry("import", "--id", "max", stdin=b"x" * 4096 + b"\r\n").code == 0
    assert registry("revoke", "--id", "max").code == 0
    taken = registry("import", "--id", "same", stdin=TOKEN)
    assert (taken.code, taken.cls) == (1, "registry") and "another caller" in taken.prose
    assert registry.path.read_bytes() == before and registry.alone
    done = registry("import", "--id", "script", "--json", stdin=OTHER)
    assert done.json["id"] == "script" and done.json["change"] == "imported" and done.json["restart_needed"] is True


def test_rotate(registry):
    first = registry.made("create", "--id", "gateway", "--scope", "*", "--paid-seconds-per-day", "90")
    second = registry.made("rotate", "--id", "gateway")
    assert first != second and registry.callers["gateway"]["token_sha256"] == sha256(second)
    assert registry("rotate", "--id", "gateway", "--token-stdin", stdin=TOKEN + b"\n").code == 0
    assert registry.callers["gateway"] == {"id": "gateway", "token_sha256": sha256(TOKEN), "scopes": ["*"], "paid_seconds_per_day": 90}
    same = registry("rotate", "--id", "gateway", "--token-stdin", stdin=TOKEN)
    assert (same.code, same.cls) == (1, "registry") and "already" in same.prose
    registry.made("create", "--id", "other")
    taken = registry("rotate", "--id", "other", "--token-stdin", stdin=TOKEN)
    assert (taken.code, taken.cls) == (1, "registry")
    assert registry("rotate", "--id", "nobody", "--token-stdout").code == 1
    assert registry("rotate", "--id", "other", "--token-stdin", "--json", stdin=OTHER).json["change"] == "rotated"


def test_limit_and_revoke(registry):
    registry.made("create", "--id", "a")
    small = registry("limit", "--id", "a", "--paid-seconds-per-day", "59")
    assert small.code == 0 and "fresh day" in small.prose and "33 s" in small.prose and "warning" in small.prose
    assert registry.callers["a"]["paid_seconds_per_day"] == 59
    enough = registry("limit", "--id", "a", "--paid-seconds-per-day", "60")
    assert "warning" not in enough.prose and "not active until every daemon" in enough.prose
    assert registry("limit", "--id", "a", "--paid-seconds-per-day", "9223372036854775807", "--json").json["change"] == "limit_set"
    assert registry("list", "--json").json["clients"][0]["paid_seconds_per_day"] == "9223372036854775807"
    assert registry("limit", "--id", "a", "--paid-seconds-per-day", "9223372036854775808").code == 2
    registry("limit", "--id", "a", "--paid-seconds-per-day", "0")
    assert "paid_seconds_per_day" not in registry.callers["a"]
    gone = registry("revoke", "--id", "a", "--quiet")
    assert gone.code == 0 and "empty now" in gone.prose, "a warning is no note"
    assert registry.callers == {} and registry("check").code == 1 and registry("list").code == 0
    assert registry("revoke", "--id", "a").code == 1
    registry.made("create", "--id", "again")


def test_check_says_what_a_daemon_would(registry):
    for path in sorted(CORPUS.glob("*.json")):
        found = registry.cli("clients", "check", "--file", path)
        assert found.code == (0 if path.stem in ("good", "upper-case", "no-scopes") else 1), path.name
        daemon = registry.cli.popen("daemon", env={"PLIMSOLL_CLIENTS_FILE": str(path), "PLIMSOLL_ADDR": "127.0.0.1:0", "PLIMSOLL_METRICS_ADDR": "off", "PLIMSOLL_EMBEDDED": "1"})
        _, log = daemon.communicate(timeout=60)
        assert daemon.returncode == (0 if found.code == 0 else 2), path.name
        assert found.code == 0 or b"PLIMSOLL_CLIENTS_FILE" in log
        for secret in (sha256(b"a" * 32).encode(), b"a-raw-token-where-its-digest-belongs"):
            assert secret not in log and secret not in found.out + found.err
    registry.made("create", "--id", "idle", "--scope", "code:read")
    os.chmod(registry.path, 0o662)
    warned = registry("check", "--json")
    assert warned.code == 0 and len(warned.json["warnings"]) == 2 and "idle" in warned.json["warnings"][1]


def test_a_token_that_is_not_delivered(registry):
    registry.made("create", "--id", "first")
    with open("/dev/full", "wb") as full:
        lost = registry("create", "--id", "second", "--token-stdout", stdout=full)
    with registry.cli.broken_pipe() as pipe:
        gone = registry("create", "--id", "third", "--token-stdout", stdout=pipe)
        again = registry("rotate", "--id", "first", "--token-stdout", stdout=pipe)
    for found, name in ((lost, "second"), (gone, "third"), (again, "first")):
        assert found.code == 1 and "clients rotate" in found.prose and f'"{name}"' in found.prose, found.text
        assert found.prose.count("error[") == 1
    assert list(registry.callers) == ["first", "second", "third"] and registry.alone


def test_a_token_that_nothing_would_take(registry):
    registry.made("create", "--id", "first")
    before = registry.path.read_bytes()
    for options in ({"stdout": None, "preexec_fn": lambda: os.close(1)}, {"stdout": subprocess.DEVNULL}):
        for command, name in (("create", "second"), ("rotate", "first")):
            refused = registry(command, "--id", name, "--token-stdout", **options)
            assert (refused.code, refused.cls) == (1, "io") and "nothing was changed" in refused.prose, refused.text
    assert registry.path.read_bytes() == before and registry.alone
    # Without a token to give there is nothing to lose.
    assert registry("rotate", "--id", "first", "--token-stdin", stdin=TOKEN, stdout=subprocess.DEVNULL).code == 0


def test_symbolic_links_and_locks(registry):
    registry.made("create", "--id", "a")
    before = registry.path.read_bytes()
    link = registry.cli.cwd / "link.json"
    link.symlink_to(registry.path)
    for args in (("create", "--id", "x", "--token-stdout"), ("revoke", "--id", "a"), ("list",)):
        found = registry.cli("clients", args[0], "--file", link, *args[1:])
        assert (found.code, found.cls) == (1, "registry"), found.text
    assert link.is_symlink() and registry.path.read_bytes() == before
    assert registry.cli("clients", "check", "--file", link).code == 0
    link.unlink()
    lock = registry.path.with_name("clients.json.lock")
    lock.mkdir()
    for args in (("create", "--id", "x", "--token-stdout"), ("import", "--id", "y"), ("limit", "--id", "a", "--paid-seconds-per-day", "1"), ("rotate", "--id", "a", "--token-stdout"), ("revoke", "--id", "a")):
        found = registry(*args, **({"stdin": TOKEN} if args[0] == "import" else {}))
        assert (found.code, found.cls) == (1, "registry") and "rmdir" in found.prose and found.out == b"", found.text
    assert lock.is_dir() and registry.path.read_bytes() == before
    # Reading needs no lock.
    assert registry("list").code == 0 and registry("check").code == 0
    lock.rmdir()
    registry.made("rotate", "--id", "a")


def test_edits_of_many_processes(registry):
    """Every edit that says it was saved is in the file; every other one says the lock was held."""
    registry.made("create", "--id", "first")
    saved: dict[str, bytes] = {}
    refused = 0
    for round_ in range(4):
        names = [f"n{round_}-{n}" for n in range(6)]
        running = [(name, registry.cli.popen("clients", "create", "--file", registry.path, "--id", name, "--token-stdout")) for name in names]
        for name, process in running:
            out, err = process.communicate(timeout=60)
            if process.returncode == 0:
                saved[name] = out.strip()
            else:
                refused += 1
                assert process.returncode == 1 and b"lock" in err and out == b"", err
    callers = registry.callers
    assert set(callers) == {"first", *saved} and len(saved) + refused == 24 and saved
    assert all(callers[name]["token_sha256"] == sha256(token) for name, token in saved.items())
    assert registry.alone


CALLS = [
    ("mkdir", 1, "old"),  # the lock itself
    ("fsync", 1, "old"),  # the temporary file
    ("rename", 1, "old"),
    ("fsync", 2, "new"),  # the directory
    ("rmdir", 1, "new"),
]


@pytest.mark.parametrize(("call", "when", "left"), CALLS, ids=[f"{call}-{when}" for call, when, _ in CALLS])
def test_killed_at_a_system_call(registry, call, when, left):
    """SIGKILL in the middle of an edit leaves the old registry or the new one, whole, and at most a lock and a temporary file."""
    registry.made("create", "--id", "a")
    old = registry.path.read_bytes()
    trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EIO:signal=KILL:when={when}"]
    run = [BINARY, "clients", "limit", "--file", registry.path, "--id", "a", "--paid-seconds-per-day", "77"]
    done = subprocess.run([*trace, *map(str, run)], env=registry.cli.env(), cwd=registry.cli.cwd, capture_output=True, timeout=60)
    assert done.returncode in (-signal.SIGKILL, 128 + signal.SIGKILL), done
    content = registry.path.read_bytes()
    assert (content == old) is (left == "old")
    assert registry("check").code == 0
    lock = registry.path.with_name("clients.json.lock")
    if lock.exists():
        blocked = registry("revoke", "--id", "a")
        assert (blocked.code, blocked.cls) == (1, "registry") and "rmdir" in blocked.prose
        lock.rmdir()
    assert registry("limit", "--id", "a", "--paid-seconds-per-day", "5").code == 0
    assert registry.callers["a"]["paid_seconds_per_day"] == 5
    leftover = [name for name in os.listdir(registry.cli.cwd) if name != registry.path.name]
    assert all(re.fullmatch(r"clients\.json\.new-[0-9a-f]{16}", name) for name in leftover), leftover


@pytest.mark.parametrize(("call", "when", "left"), [("mkdir", 1, "old"), ("fsync", 1, "old"), ("rename", 1, "old"), ("fsync", 2, "new"), ("rmdir", 1, "new")])
def test_a_system_call_that_fails(registry, call, when, left):
    """Before the rename the old file is there; after it the command says that the registry was replaced."""
    registry.made("create", "--id", "a")
    old = registry.path.read_bytes()
    run = [BINARY, "clients", "rotate", "--file", registry.path, "--id", "a", "--token-stdout"]
    trace = ["strace", "-f", "-qq", "-o", "/dev/null", "-e", f"inject={call}:error=EIO:when={when}"]
    done = subprocess.run([*trace, *map(str, run)], env=registry.cli.env(), cwd=registry.cli.cwd, capture_output=True, timeout=60)
    text = " ".join(done.stderr.decode().split())
    assert done.returncode == (2 if call == "mkdir" else 1) and done.stdout == b"", text
    assert (registry.path.read_bytes() == old) is (left == "old")
    assert ("the registry was replaced, but completion failed" in text) is (left == "new"), text
    assert ("othing was changed" in text) is (left == "old"), text
    if call != "rmdir":
        assert registry.alone
    else:
        registry.path.with_name("clients.json.lock").rmdir()
    registry.made("rotate", "--id", "a")


def test_no_token_is_in_a_process_list_or_a_core(registry):
    """The token comes by standard input alone, and no core file can hold it."""
    process = registry.cli.popen("clients", "import", "--file", registry.path, "--id", "a", stdin=subprocess.PIPE)
    process.stdin.write(TOKEN)
    process.stdin.flush()
    try:
        # Its limit is lowered before it reads, and it reads until its input ends.
        limits = ""
        while "Max core file size        0                    0" not in limits:
            assert process.poll() is None
            with open(f"/proc/{process.pid}/limits") as file:
                limits = file.read()
        for name in ("cmdline", "environ"):
            with open(f"/proc/{process.pid}/{name}", "rb") as file:
                assert TOKEN not in file.read()
    finally:
        _, err = process.communicate(timeout=60)
    assert process.returncode == 0 and TOKEN not in err


def test_the_operators_page_names_every_command_and_only_flags_there_are(registry):
    page = (ROOT / "docs/operator.md").read_text().split("\n## Callers\n")[1].split("\n## ")[0]
    lines = re.findall(r"`(clients [a-z]+ --[^`]*)`", page)
    assert {line.split()[1] for line in lines} == set(GROUPS["clients"])
    for line in lines:
        known = COMMANDS[" ".join(line.split()[:2])]
        assert set(re.findall(r"--([a-z-]+)", line)) <= set(known), line
    # The example is a registry but for its digest.
    example = re.search(r"```json\n(.*?)```", page, re.S)[1].replace("<64 hex>", "ab" * 32)
    registry.path.write_text(example)
    assert registry("check").code == 0
