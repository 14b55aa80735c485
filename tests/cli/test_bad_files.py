"""Inputs that are no such files, not whole, too large, or still growing."""

from __future__ import annotations

import base64
import os
import socket
import threading
import time

import pytest
from cli_fake import closed_port
from cli_tool import BUNDLES, KEYS, OWN, OWN_KEY, OWN_PUB, VECTORS, guard_key

REQUEST = b'{"protocol":3,"javascript":{"code":"console.log(6*7)"}}'
CHECKPOINTS = (4, 11)


def places(cli) -> dict:
    """A way to name each kind of input, by command, in a form that stays local."""
    nowhere = closed_port()
    return {
        "bundle": lambda file: ("verify", "--pub", OWN_PUB, file),
        "entry": lambda file: ("verify-entry", "--pub", OWN_PUB, "--line", "2", file),
        "line": lambda file: ("digest", "line", file),
        "numbered line": lambda file: ("digest", "line", "--line", "2", file),
        "digest request": lambda file: ("digest", "request", file),
        "digest result": lambda file: ("digest", "result", file),
        "digest record": lambda file: ("digest", "record", file),
        "envelope": lambda file: ("open-statement", "--pub", OWN_PUB, "--any-type", file),
        "expect": lambda file: ("verify", "--pub", OWN_PUB, "--expect", file, OWN),
        "expect-request": lambda file: ("verify", "--pub", OWN_PUB, "--expect-request", file, OWN),
        "pub": lambda file: ("verify", "--pub", file, OWN),
        "key": lambda file: ("run", "--daemon", nowhere, "--key", file, "--js", "1"),
        "request": lambda file: ("run", "--daemon", nowhere, file),
        "file": lambda file: ("run", "--daemon", nowhere, "--file", file),
        "session": lambda file: ("run", "--daemon", nowhere, "--session", file),
        "ca-file": lambda file: ("run", "--daemon", nowhere, "--ca-file", file, "--js", "1"),
        "bundle of run": lambda file: ("run", "--daemon", nowhere, "--bundle", file, "--js", "1"),
        "software": lambda file: ("run", "--daemon", nowhere, "--js", "1", "--software", f"approved:{file}"),
    }


READ_FROM_PIPES = ("bundle", "entry", "line", "numbered line", "digest request", "digest result", "digest record", "envelope")
READ_FROM_PIPES += ("expect", "expect-request", "request", "file", "session")


def test_what_cannot_be_read(cli):
    (cli.cwd / "dangling").symlink_to("nowhere")
    (cli.cwd / "loop").symlink_to("loop")
    (cli.cwd / "f").write_bytes(b"x")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(cli.cwd / "socket"))
    for kind, make in places(cli).items():
        for name, words in (
            ("absent", "does not exist"),
            ("dangling", "does not exist"),
            ("loop", ""),
            (".", "is a directory"),
            ("f/below", "not a directory"),
            ("socket", ""),
            ("x" * 300, ""),
        ):
            if kind == "bundle of run" and name in ("absent", "dangling"):
                continue  # it is made
            found = cli.both(*make(name))
            assert found.code in ((1, 2) if kind == "bundle of run" else (2,)), f"{kind} {name}: {found.text}"
            assert found.cls in ("io", "bundle"), f"{kind} {name}: {found.text}"
            assert found.error["file"] == name, f"{kind} {name}: {found.text}"
            assert "os error" not in found.text, f"{kind} {name}: {found.text}"
            if kind not in ("key", "bundle of run"):
                assert words in found.prose, f"{kind} {name}: {found.text}"
    listener.close()


def test_devices_and_pipes_are_not_waited_for(cli):
    """A FIFO without a writer, a device without an end: refused where they are not read as a stream."""
    os.mkfifo(cli.cwd / "fifo")
    for kind, make in places(cli).items():
        if kind in READ_FROM_PIPES:
            continue
        for name in ("fifo", "/dev/zero", "/dev/null"):
            found = cli.both(*make(name), timeout=10)
            assert found.code in (1, 2) and found.cls in ("io", "bundle", "usage"), f"{kind} {name}: {found.text}"


def test_endless_streams_end(cli):
    for kind, make in places(cli).items():
        if kind in READ_FROM_PIPES:
            found, peak = cli.measured(*make("/dev/zero"))
            assert found.code in (1, 2) and found.cls in ("io", "line", "request"), f"{kind}: {found.text}"
            assert peak < 600 << 20, f"{kind}: {peak}"
            found = cli.both(*make("/dev/null"))
            assert found.code in (1, 2), f"{kind}: {found.text}"


def test_three_gigabytes_of_nothing(cli):
    """A sparse file of zeros: refused at once, in bounded memory."""
    huge = cli.cwd / "huge"
    with open(huge, "wb") as file:
        file.truncate(3 << 30)
    for kind, make in places(cli).items():
        started = time.monotonic()
        found, peak = cli.measured(*make(huge))
        assert found.code in (1, 2) and found.cls in ("io", "line", "bundle", "usage", "key"), f"{kind}: {found.text}"
        # A line may have 64 MiB; everything else is refused for its size before it is read.
        line = kind in ("bundle", "entry", "numbered line", "bundle of run")
        assert peak < (256 << 20 if line else 64 << 20), f"{kind}: {peak >> 20} MiB"
        assert time.monotonic() - started < 20, kind


def test_a_fifo_is_read_like_a_stream(cli):
    fifo = cli.cwd / "fifo"
    os.mkfifo(fifo)
    for content, args, code in (
        (OWN.read_bytes(), ("verify", "--pub", OWN_PUB, "fifo"), 0),
        (OWN.read_bytes()[:-1], ("verify", "--pub", OWN_PUB, "fifo"), 1),
        (OWN.read_bytes(), ("verify-entry", "--pub", OWN_PUB, "--line", "3", "fifo"), 0),
        ((VECTORS / "own-mixed.expect").read_bytes(), ("verify", "--pub", OWN_PUB, "--expect", "fifo", OWN), 0),
        (REQUEST, ("digest", "request", "fifo"), 0),
    ):
        def feed(content=content):
            try:
                fifo.write_bytes(content)
            except BrokenPipeError:
                pass  # it had read enough

        writer = threading.Thread(target=feed)
        writer.start()
        assert cli(*args).code == code
        writer.join()


def test_cut_at_many_places(cli):
    content = OWN.read_bytes()
    ends = [at + 1 for at, byte in enumerate(content) if byte == 0x0A]
    cuts = {*range(0, len(content), 211), *(end + d for end in ends for d in (-2, -1, 0, 1) if end + d <= len(content))}
    file = cli.cwd / "cut.jsonl"
    for cut in sorted(cuts):
        file.write_bytes(content[:cut])
        found = cli("verify", "--pub", OWN_PUB, "--json", file)
        whole = cut in (ends[number - 1] for number in CHECKPOINTS)
        assert found.code == (0 if whole else 1), cut
        if whole:
            continue
        assert found.cls == ("incomplete" if cut in (0, *ends) else "line"), cut
        if cut:
            assert found.error["line"] == content[:cut].rstrip(b"\n").count(b"\n") + 1
        # The line to cut back to, when there is one.
        back = [number for number in CHECKPOINTS if ends[number - 1] <= cut]
        says = f"cut it back to line {back[-1]}" if back else "no checkpoint to go back to"
        assert cut == 0 or says in found.error["do"], cut


def test_changed_bytes(cli):
    content = OWN.read_bytes()
    file = cli.cwd / "changed.jsonl"
    for at in range(7, len(content), 509):
        for byte in (content[at] ^ 0x01, 0x0A, 0x00, 0xFF):
            file.write_bytes(content[:at] + bytes([byte]) + content[at + 1 :])
            found = cli("verify", "--pub", OWN_PUB, "--json", file)
            assert found.code == 1, (at, byte)
            assert found.error["line"] >= 1


@pytest.mark.parametrize("name", sorted(path.name for path in BUNDLES.glob("*.jsonl")))
def test_broken_bundles_have_their_cure(cli, name):
    whole = name == "cut-to-first-checkpoint.jsonl"
    found = cli.both("verify", "--pub", OWN_PUB, BUNDLES / name)
    assert found.code == (0 if whole else 1)
    cures = {
        "crlf.jsonl": "*.jsonl -text",
        "truncated.jsonl": "cut it back to line 4",
        "no-checkpoint.jsonl": "verify-entry",
        "blank-line.jsonl": "no blank lines",
        "url-safe-base64.jsonl": "URL-safe alphabet",
        "signature-encoded-twice.jsonl": "encoded it twice",
        "checkpoint-only.jsonl": "--allow-empty",
    }
    if name in cures:
        assert cures[name] in found.error["do"]
    # The same bytes as a bundle to append to: refused, nothing sent, nothing changed.
    copy = cli.cwd / "copy.jsonl"
    copy.write_bytes((BUNDLES / name).read_bytes())
    copy.chmod(0o600)
    before = copy.read_bytes()
    refused = cli.both("run", "--daemon", closed_port(), "--key", own_key(cli), "--bundle", copy, "--js", "1")
    if name in ("empty.jsonl", "checkpoint-only.jsonl", "cut-to-first-checkpoint.jsonl"):
        assert (refused.code, refused.cls) == (4, "unreachable")
    else:
        assert (refused.code, refused.cls, refused.json["ran"]) == (1, "bundle", "no")
        assert "nothing was run" in refused.error["message"] and "--bundle" in refused.error["do"]
        assert refused.error["reason"] == found.cls
    assert copy.read_bytes() == before


def own_key(cli):
    key = cli.cwd / "own.key"
    if not key.exists():
        key.write_bytes(OWN_KEY.read_bytes())
        key.chmod(0o600)
    return key


def test_a_bundle_that_grows_while_it_is_read(cli):
    """Whatever moment a reader comes at, it sees a whole bundle or one that is still being written."""
    key = own_key(cli)
    grown = cli.cwd / "grown.jsonl"
    assert cli("keygen", "--out", "k").code == 0
    for code in ("1", "2", "3", "4"):
        assert cli("run", "--key", key, "--bundle", grown, "--js", code).code == 0
    content = grown.read_bytes()
    growing = cli.cwd / "growing.jsonl"
    growing.write_bytes(b"")
    done = threading.Event()

    def grow():
        with open(growing, "ab", buffering=0) as file:
            for at in range(0, len(content), 100):
                file.write(content[at : at + 100])
                stepped.wait()
                stepped.clear()
        done.set()

    stepped = threading.Event()
    writer = threading.Thread(target=grow)
    writer.start()
    seen = set()
    while not done.is_set():
        process = cli.popen("verify", "--pub", OWN_PUB, growing)
        stepped.set()
        out, err = process.communicate(timeout=30)
        found = cli.result(("verify",), process.returncode, out, err)
        assert found.code == 0 or found.cls in ("line", "incomplete"), found.text
        seen.add(found.code)
    writer.join()
    assert seen == {0, 1}
    assert cli("verify", "--pub", OWN_PUB, "--expect-count", "4", growing).code == 0


# Keys.


PUBLIC = {
    "der.pub": "binary DER",
    "empty.pub": "empty",
    "encrypted.key": "private key where a public one belongs",
    "openssh.pub": "OpenSSH",
    "p256.pub": "elliptic-curve",
    "rsa.pub": "RSA",
    "small-order.pub": "weak or malformed",
    "text.pub": "no PEM block",
    "truncated.pub": "cut off",
    "two-blocks.pub": "more than one",
}


def leaks(content: bytes, found) -> bool:
    """Whether any 12 bytes of a key's body show in an output."""
    body = b"".join(line for line in content.splitlines() if not line.startswith(b"-----")) or content
    return any(body[at : at + 12] in found.out + found.err for at in range(0, max(1, len(body) - 12)) if body)


def test_every_kind_of_wrong_key(cli):
    assert PUBLIC.keys() | {"second.pub", "README.md"} == {path.name for path in KEYS.iterdir()}
    sentences = set()
    for name, words in PUBLIC.items():
        copy = cli.cwd / name
        copy.write_bytes((KEYS / name).read_bytes())
        copy.chmod(0o600)
        for args in (("verify", "--pub", copy, OWN), ("verify-entry", "--pub", copy, "--line", "1", OWN), ("verify", "--pub", OWN_PUB, "--pub", copy, OWN)):
            found = cli.both(*args)
            assert (found.code, found.cls) == (2, "key") and words in found.error["message"], name
            assert not leaks(copy.read_bytes(), found), name
            sentences.add((name, found.error["message"]))
        found = cli.both("run", "--daemon", closed_port(), "--key", copy, "--js", "1")
        assert (found.code, found.cls, found.json["error"]["ran"]) == (2, "key", "no"), name
        assert "nothing was run" in found.error["message"] and not leaks(copy.read_bytes(), found)
    assert len({text for _, text in sentences}) == len(PUBLIC)


def test_the_other_half_and_other_forms(cli):
    key = own_key(cli)
    found = cli.both("verify", "--pub", key, OWN)
    assert (found.code, found.cls) == (2, "key") and "do not pass it on" in found.error["do"]
    copy = cli.cwd / "pub"
    copy.write_bytes(OWN_PUB.read_bytes())
    copy.chmod(0o600)
    found = cli.both("run", "--daemon", closed_port(), "--key", copy, "--js", "1")
    assert (found.code, found.cls) == (2, "key") and "public key" in found.error["message"]
    der = base64.b64decode(b"".join(OWN_KEY.read_bytes().splitlines()[1:-1]))
    forms = {
        "pkcs8.der": der,
        "truncated.key": OWN_KEY.read_bytes()[:60],
        "text": b"x" * (64 << 10),
        "large": b"x" * (10 << 20),
        "binary": bytes(range(256)) * 16,
        "other block": b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "bad base64": b"-----BEGIN PRIVATE KEY-----\n!!!!\n-----END PRIVATE KEY-----\n",
        "short": b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n",
    }
    guard_key(OWN_KEY.read_bytes())
    for name, content in forms.items():
        file = cli.cwd / "form"
        file.write_bytes(content)
        file.chmod(0o600)
        for args in (("verify", "--pub", file, OWN), ("run", "--daemon", closed_port(), "--key", file, "--js", "1")):
            found = cli.both(*args)
            assert found.code == 2 and found.cls in ("key", "io"), f"{name}: {found.text}"
            # A key's own file name is no leak of its content.
            assert len(content) < 12 or content[:12] not in found.out + found.err, name


def test_dashes(cli):
    content = OWN.read_bytes()
    assert cli.both("verify", "--pub", OWN_PUB, "-", stdin=content).json["bundles"][0]["file"] == "-"
    refused = cli("verify", "--pub", OWN_PUB, "-", stdin=content[:-1])
    assert "standard input line 11" in refused.err.decode()
    # Read twice, locked or secret: never from standard input.
    for args in (
        ("verify", "--pub", "-", OWN),
        ("verify-entry", "--pub", "-", "--line", "1", OWN),
        ("open-statement", "--pub", "-", "--any-type", OWN),
        ("run", "--daemon", closed_port(), "--key", "-", "--js", "1"),
        ("run", "--daemon", closed_port(), "--bundle", "-", "--js", "1"),
        ("run", "--daemon", closed_port(), "--ca-file", "-", "--js", "1"),
        ("keygen", "--out", "-"),
    ):
        found = cli.both(*args, stdin=content)
        assert (found.code, found.cls) == (2, "usage"), f"{args}: {found.text}"
        assert not (cli.cwd / "-").exists() and not (cli.cwd / "-.key").exists()
    # Standard input is one input.
    request = b'{"protocol":3,"javascript":{"code":"1"}}'
    for args, given in (
        (("verify", "--pub", OWN_PUB, "-", "-"), content),
        (("verify", "--pub", OWN_PUB, "--expect", "-", "-"), (VECTORS / "own-mixed.expect").read_bytes()),
        (("verify", "--pub", OWN_PUB, "--expect-request", "-", "--expect-request", "-", OWN), request),
        (("verify", "--pub", OWN_PUB, "--expect-request", "-", "-"), request),
    ):
        found = cli.both(*args, stdin=given)
        assert (found.code, found.errors[-1]["class"]) == (2, "usage"), f"{args}: {found.text}"
