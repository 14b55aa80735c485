"""Every reason the evidence can be refused for, in every command that can meet it: one class, one reason, one line, and never exit 0."""

from __future__ import annotations

import base64
import json

import pytest
from cli_fake import closed_port
from cli_tool import OWN_KEY, OWN_PUB, ROOT, VECTORS
from opinion_forge import Forge, compact, envelope
from refusal_cases import Case, cases, good, linked
from refusal_reasons import reasons, words_of

CASES = cases()
ANCHORS = ROOT / "testdata/anchors"
HERE = {(case.cls, case.reason) for case in CASES}

ELSEWHERE = {
    ("anchor", "behind"): "tests/cli/test_anchor.py",
    ("anchor", "differs"): "tests/cli/test_anchor.py",
    ("anchor", "format"): "tests/cli/test_anchor.py",
    ("anchor", "origin"): "tests/cli/test_anchor.py",
    ("anchor", "signature"): "tests/cli/test_anchor.py",
    ("expected", "count"): "test_expectations",
    ("expected", "not_a_digest"): "test_expectations",
    ("expected", "requests"): "test_expectations",
    ("line", "replaced"): "tests/cli/test_follow.py",
    ("line", "too_long"): "test_a_line_over_64_mib",
    ("link", "previous_form"): "test_a_line_alone",
    ("not_a_call", "checkpoint"): "test_a_line_alone",
    ("not_a_call", "close"): "test_a_line_alone",
    ("reserved", "asked"): "test_own_statements",
    ("reserved", "payload"): "test_own_statements",
    ("statement", "parse"): "test_own_statements",
    ("statement", "shape"): "test_own_statements",
    ("statement", "subject"): "test_own_statements",
    ("statement", "subject_absent"): "test_own_statements",
    ("statement", "too_large"): "test_own_statements",
    ("statement", "type"): "test_own_statements",
}

UNREACHABLE = {
    ("line", "too_deep"): "the members of a line are known by name and type, so nothing nests before it is refused as unknown or of another type",
    ("bundle", "chain"): "run signs what its client checked, which looks at the same place in the session first",
    ("bundle", "close"): "the client compares a close with its own chain before the harness is asked to sign it",
    ("bundle", "record"): "run signs what its client checked, by the same rules",
    ("bundle", "version"): "the client refuses a record of another version than the request's protocol",
    ("bundle", "poisoned"): "a command makes one append; it ends at the first write that fails",
    ("bundle", "too_long"): "the client reads at most 32 MiB of answer and a request has at most 8 MiB, which fits a line",
    ("bundle", "write"): "needs a disk that fails under an append: src/attest/tests/append.rs and tests/cli/test_bundle_files.py have one",
}
"""What no command line can provoke, and why."""


def test_every_reason_has_its_case():
    stated = HERE | ELSEWHERE.keys() | UNREACHABLE.keys()
    assert reasons() == stated, "a reason without a case, or a case without a reason"
    assert not HERE & ELSEWHERE.keys() and not UNREACHABLE.keys() & (HERE | ELSEWHERE.keys())


@pytest.fixture
def key(cli):
    file = cli.cwd / "own.key"
    file.write_bytes(OWN_KEY.read_bytes())
    file.chmod(0o600)
    return file


def refused(found, case: Case, line: int | None = None) -> None:
    """One refusal: class, reason and line are those of the fault."""
    place = case.at if line is None else line
    assert found.code == 1, found.args
    error = found.errors[0]
    assert (error["class"], error["reason"], error.get("line", 0)) == (case.cls, case.reason, place), found.args
    assert error["do"] and error["message"]


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_in_every_command(cli, key, case):
    bundle = cli.cwd / "b.jsonl"
    bundle.write_bytes(case.bundle)
    bundle.chmod(0o600)
    verify = ("verify", "--json", "--pub", OWN_PUB)
    refused(cli(*verify, bundle), case)
    refused(cli(*verify, "--state", "s", bundle), case)
    assert not (cli.cwd / "s").exists()
    refused(cli(*verify, "--explain", "--require-tier", "vm", "--anchor", ANCHORS / "own-mixed.anchor", bundle), case)
    followed = cli(*verify, "--follow", "--for", "0", bundle)
    if (case.cls, case.reason) == ("line", "no_newline"):
        # To one who follows, half a line is one that is still being written.
        assert (followed.code, followed.cls) == (1, "incomplete")
    else:
        refused(followed, case)
    refused(cli("inspect", "--json", "--pub", OWN_PUB, bundle), case)
    refused(cli("replay", "--json", "--daemon", closed_port(), "--pub", OWN_PUB, bundle), case)
    about = ("sign-statement", "--json", "--key", key, "--type", "https://example.com/v1", "--pub", OWN_PUB, "--about", bundle, "--out", "out")
    refused(cli(*about, "--all-runs"), case)
    before = bundle.read_bytes()
    if case.bundle:
        run = cli("run", "--json", "--daemon", closed_port(), "--key", key, "--bundle", bundle, "--js", "1")
        assert (run.code, run.cls, run.error["reason"], run.error["ran"]) == (1, "bundle", case.cls, "no")
    if case.alone:
        refused(cli("verify-entry", "--json", "--pub", OWN_PUB, "--line", case.at, bundle), case)
        refused(cli(*about, "--line", case.at), case)
    elif case.at:
        # The fault is in what stands around the line, which one line alone cannot show; it never says more than that.
        found = cli("verify-entry", "--json", "--pub", OWN_PUB, "--line", case.at, bundle)
        assert found.code == 1 or "chain_complete" in found.json["not_established"]
    assert bundle.read_bytes() == before and not (cli.cwd / "out").exists()
    human = cli("verify", "--pub", OWN_PUB, bundle)
    assert human.code == 1 and f"error[{case.cls}]" in human.text and "verified" not in human.out.decode().split("error")[0]


def test_a_line_over_64_mib(cli):
    bundle = cli.cwd / "b.jsonl"
    with open(bundle, "wb") as file:
        file.write(good())
        file.truncate(len(good()) + (64 << 20) + 1)
    for command in (("verify",), ("verify", "--follow", "--for", "1m"), ("inspect",), ("verify-entry", "--line", "4")):
        found = cli(command[0], "--json", "--pub", OWN_PUB, *command[1:], bundle)
        assert found.code == 1 and (found.errors[0]["class"], found.errors[0]["reason"]) == ("line", "too_long"), command


def test_expectations(cli):
    bundle, listed = VECTORS / "own-mixed.jsonl", VECTORS / "own-mixed.expect"
    (cli.cwd / "none").write_text("x\n")
    (cli.cwd / "one").write_bytes(listed.read_bytes().splitlines(keepends=True)[0])
    for args, reason in ((("--expect-count", "6"), "count"), (("--expect", "none"), "not_a_digest"), (("--expect", "one"), "requests"), (("--expect", listed, "--expect-count", "6"), "count")):
        found = cli.both("verify", "--pub", OWN_PUB, *args, bundle)
        assert (found.code, found.cls, found.error["reason"]) == (1, "expected", reason)


def test_a_line_alone(cli):
    bundle = VECTORS / "own-mixed.jsonl"
    for line, cls, reason in ((4, "not_a_call", "checkpoint"), (9, "not_a_call", "close")):
        found = cli.both("verify-entry", "--pub", OWN_PUB, "--line", line, bundle)
        assert (found.code, found.cls, found.error["reason"], found.error["line"]) == (1, cls, reason, line)
    found = cli.both("verify-entry", "--pub", OWN_PUB, "--line", 99, bundle)
    assert (found.code, found.cls) == (1, "no_line")
    (cli.cwd / "b").write_bytes(linked(previous_sha256="x"))
    found = cli.both("verify-entry", "--pub", OWN_PUB, "--line", 1, "b")
    assert (found.code, found.cls, found.error["reason"]) == (1, "link", "previous_form")


STATEMENT = {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "a", "digest": {"sha256": "0" * 64}}], "predicateType": "https://example.com/v1", "predicate": {}}


def test_own_statements(cli, key):
    def opened(value, *args):
        payload = value if isinstance(value, bytes) else compact(value)
        (cli.cwd / "e.json").write_bytes(compact(envelope(payload)))
        return cli("open-statement", "--json", "--pub", OWN_PUB, *(args or ("--any-type",)), "e.json")

    def signed(text: bytes):
        (cli.cwd / "s.json").write_bytes(text)
        return cli("sign-statement", "--json", "--key", key, "--out", "out", "s.json")

    assert opened(STATEMENT).code == 0
    record = json.loads(good().splitlines()[0])["envelope"]
    run_record = "https://plimsollmark.github.io/plimsoll/run-record/v1"
    told = [
        (signed(b"{"), "statement", "parse"),
        (opened(STATEMENT | {"predicate": 1}), "statement", "shape"),
        (opened(STATEMENT | {"subject": []}), "statement", "subject"),
        (opened(STATEMENT | {"predicateType": "no uri"}), "statement", "type"),
        (opened(STATEMENT, "--any-type", "--subject", "sha256:" + "1" * 64), "statement", "subject_absent"),
        (opened(STATEMENT, "--type", run_record), "reserved", "asked"),
        (opened(base64.b64decode(record["payload"])), "reserved", "payload"),
        (opened(STATEMENT | {"predicate": {"x": "y" * (16 << 20)}}), "statement", "too_large"),
    ]
    for found, cls, reason in told:
        assert (found.code, found.cls, found.error.get("reason")) == (1, cls, reason), found.json
    assert not (cli.cwd / "out").exists()


def test_key_files(cli):
    """Every reason a public key can have, the same in every command."""
    import cli_tool

    known = words_of("src/attest/key/fault.rs", "KeyFault")
    assert {"algorithm", "weak_point", "too_large"} <= known
    (cli.cwd / "private").write_bytes(OWN_KEY.read_bytes())
    (cli.cwd / "large").write_bytes(OWN_PUB.read_bytes() + b"\n" * (64 << 10))
    (cli.cwd / "huge").write_bytes(OWN_PUB.read_bytes() + b"\n" * (1 << 20))
    (cli.cwd / "other").write_bytes(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n")
    (cli.cwd / "der-less").write_bytes(b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n")
    files = {
        "algorithm": cli_tool.KEYS / "rsa.pub",
        "der": cli_tool.KEYS / "der.pub",
        "empty": cli_tool.KEYS / "empty.pub",
        "malformed": cli.cwd / "der-less",
        "no_block": cli_tool.KEYS / "text.pub",
        "openssh": cli_tool.KEYS / "openssh.pub",
        "other_block": cli.cwd / "other",
        "private_given": cli.cwd / "private",
        "truncated": cli_tool.KEYS / "truncated.pub",
        "two_keys": cli_tool.KEYS / "two-blocks.pub",
        "weak_point": cli_tool.KEYS / "small-order.pub",
        "too_large": cli.cwd / "large",
    }
    signing = {"encrypted", "public_given", "entropy"}
    assert known == files.keys() | signing, "a reason without a file"
    bundle = VECTORS / "own-mixed.jsonl"
    files["too_large "] = cli.cwd / "huge"
    for reason, file in files.items():
        for command in (
            ("verify", "--pub", file, bundle),
            ("verify", "--pub", OWN_PUB, "--anchor", ANCHORS / "own-mixed.anchor", "--anchor-pub", file, bundle),
            ("verify-entry", "--pub", file, "--line", 1, bundle),
            ("inspect", "--pub", file, bundle),
            ("replay", "--daemon", "http://127.0.0.1:1", "--pub", file, bundle),
            ("open-statement", "--pub", file, "--any-type", bundle),
            ("sign-statement", "--type", "https://example.com/v1", "--about", bundle, "--pub", file, "--all-runs", "--out", "out"),
        ):
            found = cli(command[0], "--json", *command[1:])
            if command[0] == "sign-statement" and found.cls == "key" and "default key" in found.error["message"]:
                continue
            assert (found.code, found.cls, found.error.get("reason")) == (2, "key", reason.strip()), (command, found.error)
    for reason, content in (("public_given", OWN_PUB.read_bytes()), ("encrypted", (cli_tool.KEYS / "encrypted.key").read_bytes()), ("too_large", b"x" * (1 << 20))):
        (cli.cwd / "k").write_bytes(content)
        (cli.cwd / "k").chmod(0o600)
        for command in (("run", "--js", "1"), ("verify", "--pub", OWN_PUB, "--write-anchor", "a", bundle), ("sign-statement", "--out", "out", "--type", "https://example.com/v1", "--subject", f"a={'0' * 64}")):
            found = cli(command[0], "--json", "--key", "k", *command[1:])
            assert (found.code, found.cls, found.error.get("reason")) == (2, "key", reason), (command, found.error)


NOTHING = [b"", Forge().sealed(), Forge().close({"session": "0" * 64, "calls": 0, "last_record_sha256": ""}).sealed()]


def test_nothing_checked_is_never_success(cli, key):
    """No call, no line, no key, no record of the kind asked for: no command ends with 0."""
    for number, content in enumerate(NOTHING):
        bundle = cli.cwd / f"{number}.jsonl"
        bundle.write_bytes(content)
        bundle.chmod(0o600)
        commands = [
            ("verify", "--pub", OWN_PUB, bundle),
            ("verify", "--pub", OWN_PUB, "--state", "s", bundle),
            ("verify", "--pub", OWN_PUB, "--follow", "--for", "0", bundle),
            ("verify", "--pub", OWN_PUB, "--require-tier", "process", bundle),
            ("verify", "--pub", OWN_PUB, "--require-outcome", "success", "--max-age", "1h", bundle),
            ("verify", "--pub", OWN_PUB, "--expect-count", "1", bundle),
            ("verify", "--pub", OWN_PUB, "--explain", bundle),
            ("verify", "--pub", OWN_PUB, "--write-anchor", "a", "--key", key, bundle),
            ("verify-entry", "--pub", OWN_PUB, "--line", "1", bundle),
            ("replay", "--daemon", closed_port(), "--pub", OWN_PUB, bundle),
            ("sign-statement", "--key", key, "--type", "https://example.com/v1", "--about", bundle, "--pub", OWN_PUB, "--all-runs", "--out", "out"),
        ]
        for command in commands:
            found = cli(command[0], "--json", *command[1:])
            assert found.code not in (0, 5), (number, command)
        assert not any((cli.cwd / name).exists() for name in ("s", "a", "out"))
    assert cli("verify", "--pub", OWN_PUB).code == 2 and cli("verify", VECTORS / "own-mixed.jsonl").code == 2
    one_bad = cli("verify", "--json", "--pub", OWN_PUB, VECTORS / "own-mixed.jsonl", cli.cwd / "1.jsonl")
    assert one_bad.code == 1


