"""`--follow`: each call once, whole only at a checkpoint, and an end that says what is not there."""

from __future__ import annotations

import json
import os
import signal
import time

import pytest
from cli_tool import BUNDLES, OWN, OWN_KEY, OWN_PUB, ROOT

LINES = OWN.read_bytes().splitlines(keepends=True)
CALLS = [1, 2, 3, 5, 7, 8, 10]
TIER = "the tier is stated by the daemon; not hardware attestation\n"


class Followed:
    """A followed bundle, its output read line by line."""

    def __init__(self, cli, *args, bundle=None) -> None:
        self.bundle = bundle or cli.cwd / "growing.jsonl"
        if not self.bundle.exists():
            self.bundle.write_bytes(b"")
        self.process = cli.popen("verify", "--pub", OWN_PUB, "--follow", *args, self.bundle)
        self.cli, self.args, self.out = cli, args, ""

    def append(self, data: bytes) -> None:
        with open(self.bundle, "ab") as file:
            file.write(data)

    def until(self, text: str) -> None:
        """Reads on until a line begins so."""
        while True:
            line = self.process.stdout.readline().decode()
            assert line, f"{text} never came: {self.out}{self.process.stderr.read().decode()}"
            self.out += line
            if line.startswith(text):
                return

    def end(self, number=None):
        if number is not None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=60)
        self.out += out.decode()
        return self.process.returncode, self.out, err.decode()


def calls_in(text: str) -> list[int]:
    return [int(line.split()[1].rstrip(":")) for line in text.splitlines() if line.startswith("line ") and ", record " in line]


def test_each_call_once_and_whole_at_each_checkpoint(cli):
    followed = Followed(cli, "--for", "30s")
    for number, line in enumerate(LINES, 1):
        # Half a line is no line.
        followed.append(line[: len(line) // 2])
        followed.append(line[len(line) // 2 :])
        if number in CALLS:
            followed.until(f"line {number}: ")
        if number in (4, 11):
            followed.until(f"verified {number} entries")
    code, out, err = followed.end(signal.SIGINT)
    assert code == -signal.SIGINT and err == ""
    assert calls_in(out) == CALLS
    assert out.count("verified ") == 2 and out.count(TIER) == 1
    assert out.index("line 3: ") < out.index("verified 4 entries") < out.index("line 5: ")


def test_its_end_is_the_verdict(cli):
    for data, code in ((b"".join(LINES), 0), (b"".join(LINES[:4]), 0), (b"".join(LINES[:3]), 1), (b"".join(LINES[:4]) + LINES[4][:9], 1), (b"".join(LINES[:5]), 1), (b"", 1)):
        (cli.cwd / "growing.jsonl").write_bytes(data)
        found = cli.both("verify", "--pub", OWN_PUB, "--follow", "--for", "0", "growing.jsonl")
        assert found.code == code, data[-40:]
        if code:
            assert found.cls in ("incomplete", "chain")


def test_a_signal_says_what_is_missing_first(cli):
    followed = Followed(cli)
    followed.append(b"".join(LINES[:5]))
    followed.until("line 5: ")
    code, out, err = followed.end(signal.SIGTERM)
    assert code == -signal.SIGTERM and "error[incomplete]" in err and "verified" not in out


@pytest.mark.parametrize("kind", ["cut", "exchanged", "rewritten", "removed"])
def test_a_file_that_shrinks_or_is_replaced_ends_it(cli, kind):
    followed = Followed(cli)
    followed.append(b"".join(LINES))
    followed.until("verified 11 entries")
    other = cli.cwd / "other"
    other.write_bytes(b"".join(LINES))
    if kind == "cut":
        os.truncate(followed.bundle, 100)
    elif kind == "exchanged":
        other.rename(followed.bundle)
    elif kind == "removed":
        followed.bundle.unlink()
    else:
        with open(followed.bundle, "r+b") as file:
            file.seek(len(b"".join(LINES)) - 5)
            file.write(b"?")
    code, out, err = followed.end()
    assert code == 1 and "error[line]" in err and "cut or replaced" in err


def test_no_anchor_is_made_of_a_file_that_was_changed_behind(cli):
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    followed = Followed(cli, "--write-anchor", "kept.anchor", "--key", key)
    followed.append(b"".join(LINES[:4]))
    followed.until("verified 4 entries")
    with open(followed.bundle, "r+b") as file:
        file.seek(100)
        file.write(b"ZZZZ")
    followed.append(b"".join(LINES[4:]))
    followed.until("verified 11 entries")
    code, out, err = followed.end(signal.SIGTERM)
    assert code == -signal.SIGTERM and "error[line]" in err and "cut or replaced" in err
    assert "anchor" not in out and not (cli.cwd / "kept.anchor").exists()


def test_a_fault_ends_it_with_its_code(cli):
    followed = Followed(cli)
    followed.append(LINES[0])
    followed.until("line 1: ")
    followed.append(LINES[2])
    code, out, err = followed.end()
    assert code == 1 and "error[link]" in err and calls_in(out) == [1]


def test_json_is_one_object_at_the_end(cli):
    (cli.cwd / "growing.jsonl").write_bytes(b"".join(LINES))
    found = cli("verify", "--json", "--pub", OWN_PUB, "--follow", "--for", "0", "--explain", "growing.jsonl")
    plain = cli("verify", "--json", "--pub", OWN_PUB, "--explain", "growing.jsonl")
    assert found.json == plain.json
    followed = Followed(cli, "--json")
    code, out, err = followed.end(signal.SIGINT)
    # Whether the signal came before the bundle was read or after it: one object or none.
    assert code == -signal.SIGINT and out.count("\n") <= 1
    for line in out.splitlines():
        assert json.loads(line)["bundles"][0]["lines"] == 11


def test_the_age_counts_from_each_call_and_not_from_the_start(cli):
    """A call that ends after the following began is not one from the future."""
    key = cli.cwd / "own.key"
    key.write_bytes((ROOT / "testdata/vectors/own-mixed.key").read_bytes())
    key.chmod(0o600)
    assert cli("run", "--js", "1", "--key", key).code == 0
    followed = Followed(cli, "--for", "40s", "--max-age", "30s", bundle=cli.bundle)
    followed.until("verified 2 entries")
    began = time.time()
    assert cli("run", "--js", "2", "--key", key).code == 0
    followed.until("verified 4 entries")
    followed.process.send_signal(signal.SIGINT)
    code, out, err = followed.end()
    assert code == -signal.SIGINT and "policy_time" not in err and time.time() >= began
    found = cli.both("verify", "--pub", OWN_PUB, "--follow", "--for", "0", "--max-age", "1ms", OWN)
    assert found.code == 5 and found.cls == "policy_time"


def test_a_policy_that_is_not_met_is_told_at_once(cli):
    followed = Followed(cli, "--require-provider", "wasm")
    followed.append(LINES[0])
    assert b"does not meet --require-provider" in followed.process.stderr.readline()
    followed.append(b"".join(LINES[1:]))
    followed.until("verified 11 entries")
    code, out, err = followed.end(signal.SIGINT)
    assert code == -signal.SIGINT and "error[policy_provider]" in err and err.count("does not meet --require") == 0


def test_anchors_are_judged_at_the_end(cli):
    for anchor, code in (("own-mixed", 0), ("first-checkpoint", 0), ("call-line", 1), ("other-bundle", 1)):
        found = cli.both("verify", "--pub", OWN_PUB, "--follow", "--for", "0", "--anchor", ROOT / f"testdata/anchors/{anchor}.anchor", OWN)
        assert found.code == code, anchor
    for bundle, classes in (("checkpoint-only", ["empty", "anchor"]), ("cut-to-first-checkpoint", ["anchor"])):
        found = cli.both("verify", "--pub", OWN_PUB, "--follow", "--for", "0", "--anchor", ROOT / "testdata/anchors/own-mixed.anchor", BUNDLES / f"{bundle}.jsonl")
        assert [error["class"] for error in found.errors] == classes


def test_what_is_no_file_is_not_followed(cli):
    fifo = cli.cwd / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, cli.cwd, cli.cwd / "absent", "/dev/zero"):
        found = cli.both("verify", "--pub", OWN_PUB, "--follow", "--for", "1s", path)
        assert (found.code, found.cls) == (2, "io"), path
