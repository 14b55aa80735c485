"""Appending to a bundle: it is afterwards whole, or as before; what ran is never lost without a word."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import re
import resource
import stat
import threading

import pytest
from cli_fake import closed_port, good
from cli_sign import PAYLOAD
from cli_tool import OWN_PUB
from cryptography.hazmat.primitives.serialization import load_pem_public_key

JS = ("--js", "console.log(6*7)")


def mode(path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def side_files(cli) -> list:
    return [path for path in cli.cwd.iterdir() if ".unsealed-" in path.name]


def check_side_file(cli, path) -> None:
    """The signed entry without a link, private, and good evidence by itself."""
    assert re.fullmatch(r".+\.unsealed-\d{8}T\d{6}Z-[0-9a-f]{8}\.jsonl", path.name)
    assert mode(path) == 0o600
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 and lines[0].endswith(b"\n")
    entry = json.loads(lines[0])
    assert list(entry) == ["request", "response", "envelope"]
    envelope = entry["envelope"]
    payload = base64.b64decode(envelope["payload"])
    signed = b"DSSEv1 %d %s %d %s" % (len(PAYLOAD), PAYLOAD.encode(), len(payload), payload)
    load_pem_public_key(cli.default_pub.read_bytes()).verify(base64.b64decode(envelope["signatures"][0]["sig"]), signed)


def not_kept(cli, found, reason: str | None = None) -> None:
    """Exit 3: it ran, and where its record is now."""
    assert (found.code, found.cls) == (3, "not_kept"), found.text
    (side,) = side_files(cli)
    assert side.name in found.text and "it ran" in found.prose
    check_side_file(cli, side)
    if found.json:
        assert found.json["ran"] == found.error["ran"] == "yes" and found.json["unsealed"] == str(side.relative_to(cli.cwd))
        assert len(found.json["record_sha256"]) == 64 and found.json["result"]["exit_code"] == 0
        assert reason is None or found.error["reason"] == reason
    side.unlink()


def limited(size: int):
    """No file may grow beyond this: the disk is full there, in effect."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


@pytest.mark.parametrize("script", [False, True])
def test_a_disk_that_is_full_at_any_byte(cli, fake, script):
    daemon = fake(good)
    run = ("run", "--daemon", daemon.url, *JS, *(("--json",) if script else ()))
    for _ in range(3):
        assert cli(*run).code == 0
    before = cli.bundle.read_bytes()
    entry, checkpoint = (len(line) for line in before.splitlines(keepends=True)[-2:])
    for room in (0, 1, 100, entry - 1, entry, entry + 1, entry + checkpoint - 1):
        found = cli(*run, preexec_fn=limited(len(before) + room))
        assert cli.bundle.read_bytes() == before, f"{room}: the bundle is not as before"
        assert "File too large" in found.prose
        not_kept(cli, found)
    # With room for all of it, it is kept; and after any of those failures the next run is.
    assert cli(*run, preexec_fn=limited(len(before) + 2 * (entry + checkpoint))).code == 0
    assert cli("verify", "--own", "--expect-count", "4", cli.bundle).code == 0


def test_a_disk_that_takes_nothing(cli, fake):
    """Neither the bundle nor the side file: both failures are told, and that it ran."""
    daemon = fake(good)
    assert cli("run", "--daemon", daemon.url, "--bundle", "other", *JS).code == 0
    for flags in ((), ("--json",)):
        found = cli("run", "--daemon", daemon.url, *JS, *flags, preexec_fn=limited(10))
        assert (found.code, found.cls) == (3, "not_kept")
        assert "it ran" in found.prose and "could not be kept either" in found.prose
        assert cli.bundle.stat().st_size == 0
        for side in side_files(cli):
            side.unlink()
    assert cli("run", "--daemon", daemon.url, *JS).code == 0


def test_modes(cli, fake):
    daemon = fake(good)
    run = ("run", "--daemon", daemon.url, *JS)
    assert cli(*run, umask=0o022).code == 0 and mode(cli.bundle) == 0o600
    before = cli.bundle.read_bytes()
    for bits in (0o640, 0o604, 0o660, 0o644, 0o610, 0o666):
        cli.bundle.chmod(bits)
        found = cli.both(*run)
        assert (found.code, found.cls, found.error["reason"]) == (1, "bundle", "permissions")
        assert "nothing was run" in found.error["message"] and "--shared-bundle" in found.error["do"] and "chmod 600" in found.error["do"]
        assert mode(cli.bundle) == bits
    assert len(daemon.calls) == 1 and cli.bundle.read_bytes() == before
    cli.bundle.chmod(0o640)
    assert cli(*run, "--shared-bundle").code == 0
    assert mode(cli.bundle) == 0o640 and cli("verify", "--own", "--expect-count", "2", cli.bundle).code == 0
    # Verifying is anyone's right.
    assert cli("verify", "--own", cli.bundle).code == 0


def test_places_for_a_bundle(cli, fake):
    daemon = fake(good)
    run = ("run", "--daemon", daemon.url, *JS, "--bundle")
    os.mkfifo(cli.cwd / "fifo", 0o600)
    (cli.cwd / "dangling").symlink_to("made/by/none")
    for place in (".", "fifo", "/dev/null", "/dev/full", "absent/b", "dangling", "x" * 256):
        found = cli.both(*run, place, timeout=10)
        assert found.code in (1, 2) and found.cls in ("bundle", "io"), (place, found.text)
        assert "nothing was run" in found.error["message"], (place, found.text)
    assert daemon.calls == []
    # An empty file and a link to a bundle are bundles.
    (cli.cwd / "empty").touch(mode=0o600)
    (cli.cwd / "link").symlink_to("empty")
    assert cli(*run, "empty").code == 0
    assert cli(*run, "link").code == 0
    assert cli("verify", "--own", "--expect-count", "2", "empty").code == 0 and (cli.cwd / "link").is_symlink()


def test_bundles_that_cannot_be_continued(cli, fake):
    daemon = fake(good)
    run = ("run", "--daemon", daemon.url, *JS)
    for _ in range(2):
        assert cli(*run).code == 0
    whole = cli.bundle.read_bytes()
    lines = whole.splitlines(keepends=True)
    assert cli("keygen", "--out", "other").code == 0
    cases = {
        "line": [whole[:-1], whole[:-100], whole + b"{", whole + b"\n", whole.replace(b"\n", b"\r\n")],
        "incomplete": [b"".join(lines[:3])],
        "link": [b"".join(lines[1:]), b"".join(lines[:1] + lines[2:]), b"".join(lines + lines[-1:])],
        "signature": [],
    }
    for reason, contents in cases.items():
        for content in contents:
            cli.bundle.write_bytes(content)
            found = cli.both(*run)
            assert (found.code, found.cls, found.error["reason"]) == (1, "bundle", reason), found.text
            assert "nothing was run" in found.error["message"] and "line" in found.error
            assert cli.bundle.read_bytes() == content
    # Cut back to its last checkpoint, as the message says, it goes on.
    cli.bundle.write_bytes(b"".join(lines[:3]))
    assert "line 2" in cli.both(*run).error["do"]
    cli.bundle.write_bytes(b"".join(lines[:2]))
    assert cli(*run).code == 0
    found = cli.both(*run, "--key", "other.key")
    assert (found.code, found.error["reason"]) == (1, "signature")
    assert len(daemon.calls) == 3


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda path: path.chmod(0o640), "permissions"),
        (lambda path: path.write_bytes(b"torn"), "line"),
        (lambda path: path.write_bytes(path.read_bytes()[:-1]), "line"),
        (lambda path: (path.unlink(), path.mkdir()), None),
        (lambda path: (path.unlink(), os.mkfifo(path, 0o600)), None),
    ],
    ids=["mode", "content", "cut", "a directory", "a FIFO"],
)
def test_a_bundle_changed_while_the_code_ran(cli, fake, change, reason):
    """What was good before the run is looked at again under the lock."""

    def answer(call):
        change(cli.bundle)
        good(call)

    assert cli("run", *JS).code == 0
    found = cli("run", "--daemon", fake(answer).url, *JS, "--json", timeout=20)
    not_kept(cli, found, reason)


def test_a_bundle_that_others_moved_on_meanwhile(cli, fake):
    def append(call):
        assert cli("run", *JS).code == 0
        good(call)

    for count in (2, 4):
        assert cli("run", "--daemon", fake(append).url, *JS).code == 0
        assert cli("verify", "--own", "--expect-count", count, cli.bundle).code == 0


def removed(path) -> None:
    path.unlink()


def cut(path) -> None:
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))


@pytest.mark.parametrize("change", [removed, cut])
def test_a_bundle_that_lost_lines_meanwhile(cli, fake, change):
    """To begin anew in its place, or to go on from an earlier checkpoint, would hide that lines were lost."""

    def answer(call):
        change(cli.bundle)
        good(call)

    for _ in range(2):
        assert cli("run", *JS).code == 0
    not_kept(cli, cli("run", "--daemon", fake(answer).url, *JS, "--json"))


def test_no_lock_is_held_while_code_runs(cli, fake):
    def answer(call):
        with open(cli.bundle, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        good(call)

    assert cli("run", *JS).code == 0
    assert cli("run", "--daemon", fake(answer).url, *JS).code == 0


def test_the_lock_is_waited_for(cli, fake):
    answered = threading.Event()

    def answer(call):
        good(call)
        answered.set()

    assert cli("run", *JS).code == 0
    before = cli.bundle.read_bytes()
    with open(cli.bundle, "rb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        process = cli.popen("run", "--daemon", fake(answer).url, *JS)
        assert answered.wait(30)
        # It tries the lock again and again; the file it opens shows that it has come there.
        opened = f"/proc/{process.pid}/fd"
        while not any(os.path.realpath(f"{opened}/{fd}") == str(cli.bundle.resolve()) for fd in os.listdir(opened)):
            assert process.poll() is None
        assert cli.bundle.read_bytes() == before and process.poll() is None
    out, err = process.communicate(timeout=30)
    assert cli.result(("run",), process.returncode, out, err).code == 0
    assert cli("verify", "--own", "--expect-count", "2", cli.bundle).code == 0


def test_eight_at_once(cli):
    assert cli("run", *JS).code == 0
    processes = [cli.popen("run", *JS) for _ in range(8)]
    ends = [(process, *process.communicate(timeout=120)) for process in processes]
    for process, out, err in ends:
        assert cli.result(("run",), process.returncode, out, err).code == 0
    assert cli("verify", "--own", "--expect-count", "9", cli.bundle).code == 0
    assert side_files(cli) == []


def test_killed_while_others_append(cli, fake):
    """kill -9 at some moment of an append: the bundle is whole, or refused and named; never silently short."""
    for delay in range(12):
        seen = threading.Event()

        def answer(call, seen=seen):
            good(call)
            seen.set()

        process = cli.popen("run", "--daemon", fake(answer).url, *JS)
        assert seen.wait(30)
        for _ in range(delay * 40):
            os.stat(cli.home)  # some microseconds, another number each time
        process.kill()
        process.communicate()
        if not cli.bundle.exists() or cli.bundle.stat().st_size == 0:
            continue
        found = cli("verify", "--own", "--json", cli.bundle)
        if found.code:
            assert found.cls in ("line", "incomplete")
            assert cli("run", "--daemon", closed_port(), *JS).cls == "bundle"
            cli.bundle.unlink()
        for side in side_files(cli):
            side.unlink()
    # The dead hold no lock.
    assert cli("run", *JS, timeout=30).code in (0, 1)


def test_lines_and_digests_of_a_run(cli, fake):
    daemon = fake(good)
    for n in (1, 2, 3):
        found = cli("run", "--daemon", daemon.url, *JS, "--json")
        assert found.json["line"] == 2 * n - 1 and found.json["bundle"] == "plimsoll-runs.jsonl"
        entry = cli("verify-entry", "--own", "--line", found.json["line"], "--json", cli.bundle)
        assert entry.json["record"]["record_sha256"] == found.json["record_sha256"]
        line = cli("digest", "line", "--line", found.json["line"], "--json", cli.bundle)
        assert (line.json["request_sha256"], line.json["record_sha256"]) == (found.json["request_sha256"], found.json["record_sha256"])
    human = cli("run", "--daemon", daemon.url, *JS)
    digest = re.search(r"request ([0-9a-f]{64}) \(the line for verify --expect\)", human.out.decode())[1]
    assert digest == found.json["request_sha256"]
    assert cli("verify", "--pub", OWN_PUB, cli.bundle).cls == "signature"
