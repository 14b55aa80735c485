"""Anchors: a file cut back or exchanged is refused, an anchor never goes backwards, and nobody waits in silence."""

from __future__ import annotations

import base64
import fcntl
import hashlib
import os
import signal
import stat

import pytest
from cli_fake import good
from cli_tool import BUNDLES, KEYS, OWN, OWN_ID, OWN_KEY, OWN_PUB, ROOT

ANCHORS = ROOT / "testdata/anchors"
CUT = BUNDLES / "cut-to-first-checkpoint.jsonl"
SHA256 = "33e10248dfef01c5367b833f7b4fc426ad115b5b40b2d65ada1b4586b2f1b84a"


@pytest.fixture
def key(cli):
    """The published key as a private file."""
    file = cli.cwd / "own.key"
    file.write_bytes(OWN_KEY.read_bytes())
    file.chmod(0o600)
    return file


def write(cli, key, bundle=OWN, anchor="a", *args, **options):
    return cli.both("verify", "--pub", OWN_PUB, "--write-anchor", anchor, "--key", key, *args, bundle, **options)


def test_the_published_example_is_written_byte_for_byte(cli, key):
    found = cli("verify", "--pub", OWN_PUB, "--write-anchor", "a", "--key", key, OWN)
    assert found.code == 0 and "anchor a: made at line 11" in found.text and "no anchor was kept yet" in found.text
    note = (cli.cwd / "a").read_bytes()
    assert len(note) == 452 and hashlib.sha256(note).hexdigest() == SHA256
    assert note == (ANCHORS / "own-mixed.anchor").read_bytes()
    assert stat.S_IMODE((cli.cwd / "a").stat().st_mode) == 0o644
    assert sorted(os.listdir(cli.cwd)) == ["a", "a.lock", "own.key"]
    assert (cli.cwd / "a.lock").read_bytes() == b""


def test_a_lock_that_cannot_be_taken_is_named_and_no_anchor_was_made(cli, key):
    (cli.cwd / "a.lock").mkdir()
    found = write(cli, key)
    assert found.code == 2 and found.cls == "io" and "a.lock" in found.text
    assert "was made" not in found.text and "is made" not in found.text
    assert not (cli.cwd / "a").exists()


@pytest.mark.parametrize("what", ["a directory", "a link"])
def test_an_anchor_that_could_not_be_locked_is_found_before_the_run(cli, key, what):
    lock = cli.cwd / "a.lock"
    if what == "a directory":
        lock.mkdir()
    else:
        lock.symlink_to("elsewhere")
    before = sorted(os.listdir(cli.cwd))
    found = cli.both("run", "--js", "1", "--key", key, "--bundle", "r.jsonl", "--anchor", "a")
    assert (found.code, found.cls, found.error["ran"]) == (2, "io", "no"), found.text
    assert "a.lock" in found.text and "nothing was run" in found.text
    assert sorted(os.listdir(cli.cwd)) == before, "nothing ran and nothing was made"


def test_the_files_that_are_written_are_apart(cli, key):
    (cli.cwd / "link").symlink_to(".")
    for state, anchor in (("s", "s"), ("s", "./s"), ("link/s", "s"), ("s.lock", "s")):
        found = write(cli, key, OWN, anchor, "--state", state)
        assert found.code == 2 and found.cls == "usage", (state, anchor)
    for anchor in ("./r.jsonl", "link/r.jsonl", cli.cwd / "r.jsonl"):
        found = cli.both("run", "--js", "1", "--key", key, "--bundle", "r.jsonl", "--anchor", anchor)
        assert found.code == 2 and found.cls == "usage", anchor
    found = cli.both("run", "--js", "1", "--key", key, "--bundle", "r.lock", "--anchor", "link/r")
    assert found.code == 2 and found.cls == "usage"
    assert sorted(os.listdir(cli.cwd)) == ["link", "own.key"], "nothing ran and nothing was made"


def test_the_note_checks_with_an_independent_verifier(cli, key):
    """The signature of a C2SP note, from its text alone."""
    from cryptography.hazmat.primitives.serialization import load_pem_public_key

    write(cli, key)
    text, signatures = (cli.cwd / "a").read_bytes().split(b"\n\n")
    dash, name, blob = signatures.rstrip(b"\n").split(b" ")
    raw = load_pem_public_key(OWN_PUB.read_bytes()).public_bytes_raw()
    blob = base64.b64decode(blob, validate=True)
    assert dash == "—".encode() and name == text.split(b"\n")[0]
    assert blob[:4] == hashlib.sha256(name + b"\n\x01" + raw).digest()[:4]
    load_pem_public_key(OWN_PUB.read_bytes()).verify(blob[4:], text + b"\n")


def test_an_anchor_moves_forward_and_never_back(cli, key):
    assert write(cli, key, CUT).json["bundles"][0]["anchor"] == "met", "the second of both found it there"
    old = (cli.cwd / "a").read_bytes()
    assert old == (ANCHORS / "first-checkpoint.anchor").read_bytes()
    found = cli("verify", "--json", "--pub", OWN_PUB, "--write-anchor", "a", "--key", key, OWN)
    assert found.json["bundles"][0]["anchor"] == "written"
    moved = (cli.cwd / "a").read_bytes()
    assert hashlib.sha256(moved).hexdigest() == SHA256
    before = (cli.cwd / "a").stat()
    found = write(cli, key)
    assert found.code == 0 and found.json["bundles"][0]["anchor"] == "met"
    assert (cli.cwd / "a").stat() == before, "left byte for byte"
    found = write(cli, key, CUT)
    assert (found.code, found.cls, found.error["reason"]) == (1, "anchor", "behind")
    assert found.json["bundles"][0]["anchor"] == "failed"
    assert (cli.cwd / "a").read_bytes() == moved


def test_an_anchor_is_written_only_when_all_else_is_met(cli, key):
    for args, code in ((("--require-tier", "vm"), 5), (("--expect-count", "6"), 1), (("--anchor", ANCHORS / "stranger.anchor"), 1), (("--anchor", "absent"), 2)):
        found = write(cli, key, OWN, "a", *args)
        assert found.code == code and not (cli.cwd / "a").exists(), args
    assert write(cli, key, BUNDLES / "checkpoint-only.jsonl").cls == "empty"
    assert not (cli.cwd / "a").exists()


def test_both_flags_may_name_one_anchor(cli, key):
    (cli.cwd / "a").write_bytes((ANCHORS / "first-checkpoint.anchor").read_bytes())
    found = write(cli, key, OWN, "a", "--anchor", "a")
    assert found.code == 0 and hashlib.sha256((cli.cwd / "a").read_bytes()).hexdigest() == SHA256
    (cli.cwd / "a").write_bytes((ANCHORS / "own-mixed.anchor").read_bytes())
    found = write(cli, key, CUT, "a", "--anchor", "a")
    assert (found.code, found.cls) == (1, "anchor"), "one refusal, not two"


def test_a_verifier_keeps_an_anchor_with_a_key_of_its_own(cli):
    made = cli("keygen", "--out", "mine")
    assert made.code == 0
    args = ("--pub", OWN_PUB, "--write-anchor", "a", "--key", "mine.key")
    found = cli("verify", *args, OWN)
    assert found.code == 0 and "none of --pub and --anchor-pub" in found.prose
    found = cli.both("verify", "--pub", OWN_PUB, "--anchor", "a", OWN)
    assert (found.cls, found.error["reason"]) == ("anchor", "signature") and "--anchor-pub" in found.error["do"]
    assert cli.both("verify", "--pub", OWN_PUB, "--anchor", "a", "--anchor-pub", "mine.pub", OWN).code == 0
    assert cli.both("verify", *args, "--anchor-pub", "mine.pub", OWN).code == 0
    # The bundle itself needs its own key all the same.
    found = cli.both("verify", "--pub", "mine.pub", "--anchor", "a", OWN)
    assert found.cls == "signature"


@pytest.mark.parametrize("name, reason", [("carriage-returns", "format"), ("leading-zero", "format"), ("call-line", "differs"), ("other-bundle", "origin"), ("stranger", "signature"), ("bad-signature", "signature")])
def test_a_bad_anchor_is_refused_and_never_replaced(cli, key, name, reason):
    bad = (ANCHORS / f"{name}.anchor").read_bytes()
    (cli.cwd / "a").write_bytes(bad)
    for found in (cli.both("verify", "--pub", OWN_PUB, "--anchor", "a", OWN), write(cli, key)):
        assert (found.code, found.cls, found.error["reason"]) == (1, "anchor", reason)
    assert (cli.cwd / "a").read_bytes() == bad
    found = cli.both("run", "--js", "1", "--key", key, "--bundle", "b.jsonl", "--anchor", "a")
    assert (found.code, found.cls) == (1, "anchor") and "nothing was run" in found.error["message"]
    assert not (cli.cwd / "b.jsonl").exists() and (cli.cwd / "a").read_bytes() == bad


def test_links_and_other_files_are_left_alone(cli, key):
    (cli.cwd / "real").write_bytes((ANCHORS / "first-checkpoint.anchor").read_bytes())
    (cli.cwd / "a").symlink_to("real")
    found = write(cli, key)
    assert (found.code, found.cls, found.error["reason"]) == (2, "io", "link")
    assert (cli.cwd / "real").read_bytes() == (ANCHORS / "first-checkpoint.anchor").read_bytes()
    found = cli.both("run", "--js", "1", "--key", key, "--anchor", "a")
    assert found.code == 2 and "nothing was run" in found.error["message"] and not cli.bundle.exists()
    for place in ("absent/a", "real/a"):
        found = cli.both("run", "--js", "1", "--key", key, "--anchor", place)
        assert (found.code, found.cls) == (2, "io") and not cli.bundle.exists(), place


def test_an_anchor_is_no_other_file(cli, key):
    found = cli.both("run", "--js", "1", "--key", key, "--bundle", "b", "--anchor", "b")
    assert (found.code, found.cls) == (2, "usage") and not (cli.cwd / "b").exists()
    bundle = cli.cwd / "copy.jsonl"
    bundle.write_bytes(OWN.read_bytes())
    for other in (bundle, key):
        before = other.read_bytes()
        found = write(cli, key, bundle, other)
        assert (found.code, found.error["reason"]) == (1, "format") and other.read_bytes() == before


def test_run_keeps_an_anchor(cli, key):
    run = ("run", "--js", "1", "--key", key, "--anchor", "a")
    first = cli(*run, "--json")
    assert first.code == 0 and first.json["anchor"] == "a" and b"no anchor was kept yet" in first.err
    old = cli.bundle.read_bytes()
    second = cli(*run)
    assert second.code == 0 and b"no anchor" not in second.err
    verify = ("verify", "--pub", OWN_PUB, "--anchor", "a", cli.bundle)
    assert cli.both(*verify).code == 0
    # Cut back to its first checkpoint it is whole, and the anchor knows better.
    kept = (cli.cwd / "a").read_bytes()
    cli.bundle.write_bytes(old)
    assert cli.both("verify", "--pub", OWN_PUB, cli.bundle).code == 0
    found = cli.both(*verify)
    assert (found.code, found.cls, found.error["reason"]) == (1, "anchor", "behind")
    found = cli.both(*run)
    assert (found.code, found.cls, found.error["reason"], found.error["ran"]) == (1, "anchor", "behind", "no")
    assert "nothing was run" in found.error["message"]
    # A bundle begun anew is no continuation either.
    cli.bundle.unlink()
    assert cli.both(*run).error["reason"] == "behind" and not cli.bundle.exists()
    assert (cli.cwd / "a").read_bytes() == kept


def test_an_anchor_that_cannot_be_written_after_the_run_is_told_with_the_command(cli, key, fake):
    def answer(call):
        # Between the check and the append the anchor's folder goes away.
        (cli.cwd / "kept").rename(cli.cwd / "gone")
        good(call)

    (cli.cwd / "kept").mkdir()
    args = ("run", "--daemon", fake(answer).url, "--js", "1", "--key", key, "--anchor", "kept/a", "--json")
    found = cli(*args)
    assert (found.code, found.cls, found.error["reason"], found.error["ran"]) == (3, "not_kept", "anchor", "yes")
    assert "No anchor was kept yet" in found.error["do"] and "verify --pub FILE --write-anchor kept/a" in found.error["do"]
    assert "anchor" not in found.json and found.json["line"] == 1
    assert cli.both("verify", "--pub", OWN_PUB, cli.bundle).code == 0, "it is recorded"


def hold(path):
    """Holds an anchor's lock as another process would."""
    file = open(path, "w")
    fcntl.flock(file, fcntl.LOCK_EX)
    return file


def told(process) -> str:
    """Standard error up to the line that tells of the lock."""
    text = ""
    while "waiting for the anchor's lock" not in text:
        line = process.stderr.readline().decode()
        assert line, text
        text += line
    return text


def test_a_wait_for_the_lock_is_told_and_ends_with_the_lock(cli, key):
    with hold(cli.cwd / "a.lock"):
        process = cli.popen("verify", "--pub", OWN_PUB, "--write-anchor", "a", "--key", key, OWN)
        told(process)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0 and b"made at line 11" in out
    assert b"waiting" not in err, "once"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_ends_the_wait(cli, key, fake, number):
    with hold(cli.cwd / "a.lock"):
        process = cli.popen("verify", "--pub", OWN_PUB, "--write-anchor", "a", "--key", key, OWN)
        told(process)
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == -number
        process = cli.popen("run", "--daemon", fake(good).url, "--js", "1", "--key", key, "--anchor", "a", "--json")
        told(process)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == -number and b'"reason":"anchor"' in out and b'"ran":"yes"' in out
    assert cli.both("verify", "--pub", OWN_PUB, cli.bundle).code == 0
    assert not (cli.cwd / "a").exists()


def test_a_session_keeps_an_anchor(cli, key, fake):
    from test_sessions import CALLS, Sessions
    import json

    calls = cli.cwd / "calls.jsonl"
    calls.write_text("".join(json.dumps(call) + "\n" for call in CALLS))
    found = cli("run", "--daemon", fake(Sessions()).url, "--session", calls, "--key", key, "--anchor", "a", "--json")
    assert found.code == 0 and found.json["anchor"] == "a"
    found = cli.both("verify", "--pub", OWN_PUB, "--anchor", "a", "--explain", cli.bundle)
    assert found.code == 0
    facts = {fact["fact"]: fact for fact in found.json["explain"]["established"]}
    assert facts["not_cut_back"]["lines"] == [5] and "anchor a" in facts["not_cut_back"]["by"]


def test_unfinished_files_do_not_outlive_a_signal(cli, key, tmp_path):
    """A disk that hangs while the anchor is synced: SIGTERM leaves no half-written file."""
    source = tmp_path / "slow.c"
    source.write_text(
        '#define _GNU_SOURCE\n#include <dlfcn.h>\n#include <unistd.h>\n#include <sys/stat.h>\n'
        "/* The first file that is synced is the anchor's new one: say so and wait for the signal. */\n"
        'int fsync(int fd) { write(2, "syncing\\n", 8); for (;;) pause(); }\n'
    )
    library = tmp_path / "slow.so"
    import subprocess

    subprocess.run(["cc", "-shared", "-fPIC", "-o", library, source], check=True)
    for args in (("--write-anchor", "a", "--key", key), ("--state", "s")):
        process = cli.popen("verify", "--quiet", "--pub", OWN_PUB, *args, OWN, env={"LD_PRELOAD": str(library)})
        assert process.stderr.readline() == b"syncing\n"
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == -signal.SIGTERM
        left = [name for folder, _, files in os.walk(cli.folder) for name in files if ".new-" in name]
        assert left == [], args


def test_keys_that_cannot_be_used(cli, key):
    for bad in ("p256", "rsa", "two-blocks", "text", "small-order"):
        found = cli.both("verify", "--pub", OWN_PUB, "--anchor", ANCHORS / "own-mixed.anchor", "--anchor-pub", KEYS / f"{bad}.pub", OWN)
        assert (found.code, found.cls) == (2, "key")
    found = cli.both("verify", "--pub", OWN_PUB, "--write-anchor", "a", OWN)
    assert (found.code, found.cls) == (2, "key") and "no anchor was written" in found.error["message"]
    found = cli.both("verify", "--pub", OWN_PUB, "--write-anchor", "a", OWN, env={"PLIMSOLL_ATTEST_KEY": OWN_KEY.read_text()})
    assert found.code == 0 and found.json["bundles"][0]["key_id"] == OWN_ID
