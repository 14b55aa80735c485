"""The published and own vectors: one verdict, class and line from both verifiers, and the digests from the example."""

from __future__ import annotations

import base64
import json
import struct
import subprocess
import sys

import pytest

from opinion_both import BINARY, ROOT, VECTORS, both_opinions, key_of, verify


def case_file(name: str) -> dict:
    return json.loads((VECTORS / name).read_text())


def test_every_bundle_case_has_its_verdict_class_and_line(agree):
    cases = case_file("bundle-cases.json")["cases"]
    assert len(cases) == 84
    agree([(case["name"], case["bundle"].encode(), case["expect"], case["line"]) for case in cases])


@pytest.mark.parametrize(
    ("name", "cls", "found"),
    [
        ("own-mixed", "ok", (11, 7, 4, [3, 0])),
        ("sessions-linked", "ok", (7, 5, 0, [5])),
        ("sessions-v1", "link", None),
    ],
)
def test_whole_vectors(name, cls, found, tmp_path):
    bundle = (VECTORS / f"{name}.jsonl").read_bytes()
    [(rust, python)] = both_opinions([bundle], name, tmp_path)
    assert rust == python
    assert python.cls == cls and python.line == (0 if cls == "ok" else 1)
    if found:
        lines, records, runs, _, sessions = python.found
        assert (lines, records, runs, [calls for _, calls in sessions]) == found


# testdata/bundles: verdict by file name.
BROKEN = {
    "blank-line": ("line", 3),
    "byte-order-mark": ("line", 1),
    "changed-byte": ("link", 1),
    "checkpoint-only": ("ok", 0),
    "crlf": ("line", 1),
    "cut-to-first-checkpoint": ("ok", 0),
    "empty": ("incomplete", 0),
    "missing-line": ("link", 2),
    "no-checkpoint": ("incomplete", 7),
    "not-json": ("line", 1),
    "not-utf8": ("line", 1),
    "repeated-line": ("link", 2),
    "signature-encoded-twice": ("signature", 1),
    "swapped-lines": ("link", 1),
    "truncated": ("line", 11),
    "url-safe-base64": ("line", 1),
}


def test_broken_bundles(agree):
    files = sorted((ROOT / "testdata/bundles").glob("*.jsonl"))
    assert {file.stem for file in files} == set(BROKEN)
    agree([(file.stem, file.read_bytes(), *BROKEN[file.stem]) for file in files])


def test_key_files_are_taken_and_refused_alike(tmp_path):
    bundle = VECTORS / "own-mixed.jsonl"
    good = (VECTORS / "own-mixed.pub").read_bytes()
    private = (VECTORS / "own-mixed.key").read_bytes()
    made = {
        "text-around": (b"a comment\n" + good + b"more\n", True),
        "crlf": (good.replace(b"\n", b"\r\n"), True),
        "base64-in-pieces": (good.replace(b"MCow", b"MC ow\n"), True),
        "end-without-begin": (b"-----END X-----\n" + good, True),
        "certificate-after": (good + b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n", True),
        "certificate-first": (b"-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n" + good, False),
        "twice": (good * 2, False),
        "private": (private, False),
        "private-after": (good + private, False),
        "another-end": (good.replace(b"END PUBLIC", b"END PRIVATE"), False),
        "begun-twice": (good.replace(b"-----\nMCow", b"-----\n-----BEGIN PUBLIC KEY-----\nMCow"), False),
        "no-padding": (good.replace(b"=", b""), False),
        "too-long": (good + b" " * (64 << 10), False),
        "not-text": (b"\xff\n" + good, False),
        "indented": (b" " + good, False),
    }
    for name, (content, _) in made.items():
        (tmp_path / name).write_bytes(content)
    taken = {tmp_path / name: usable for name, (_, usable) in made.items()}
    taken |= {file: file.name == "second.pub" for file in (ROOT / "testdata/keys").glob("*.pub")}
    taken |= {VECTORS / "own-mixed.pub": True, VECTORS / "own-mixed.key": False}
    assert len(taken) >= 25
    for file, usable in taken.items():
        try:
            verify.PublicKey.from_pem(file.read_bytes())
            example = True
        except verify.BadKey:
            example = False
        done = subprocess.run([BINARY, "verify", "--pub", file, bundle], capture_output=True, timeout=60)
        assert (example, done.returncode != 2) == (usable, usable), (file.name, done.stderr)


def test_each_old_envelope_verifies_alone():
    key, kinds = key_of("sessions-v1"), []
    for line in (VECTORS / "sessions-v1.jsonl").read_bytes().splitlines():
        payload = verify.open_envelope(verify.Line(line).envelope, key)
        statement = verify.read_statement(payload)
        kinds.append(statement["predicateType"])
        value = verify.read_predicate(statement, statement["predicateType"])
        assert value.get("version", 1) == 1
        with pytest.raises(verify.Refusal):
            verify.open_envelope(verify.Line(line).envelope, key_of("own-mixed"))
    assert kinds == [verify.RECORD] * 5 + [verify.CLOSE]


OUTCOMES = ["UNSPECIFIED", "COMPLETED", "SETUP_FAILED", "TIMED_OUT", "PROTOCOL_ERROR"]


def from_json(name: str, value: dict) -> dict:
    """A message from proto3 JSON, as far as the golden vectors go."""
    message = verify.blank(name)

    def element(kind: str, found: object) -> object:
        if kind in verify.MESSAGES:
            return from_json(kind, found)
        if kind == "bytes":
            return base64.b64decode(found)
        if kind == "double":
            return struct.pack(">d", found)
        if kind == "enum":
            return OUTCOMES.index(found.removeprefix("PROJECT_OUTCOME_"))
        return int(found) if "int" in kind else found

    for field, kind, many, in_oneof in verify.MESSAGES[name].values():
        first, *rest = field.split("_")
        member = first + "".join(word.capitalize() for word in rest)
        if member in value:
            found = value[member]
            message[field] = [element(kind, one) for one in found] if many else element(kind, found)
            if in_oneof:
                message["oneof"] = field
    return message


def test_golden_digests():
    golden, checked = case_file("golden.json"), 0
    for case in golden["requests"]:
        assert verify.request_digest(from_json("RunRequest", case["request"])) == case["sha256"], case["name"]
        checked += 1
    for case in golden["results"]:
        assert verify.result_digest(from_json("RunResponse", case["response"])) == case["sha256"], case["name"]
        checked += 1
    for case in golden["records"]:
        assert verify.record_digest(from_json("RunRecord", case["record"])) == case["sha256"], case["name"]
        checked += 1
    for case in golden["sessionFingerprints"]:
        assert verify.sha256(case["sessionId"].encode()) == case["sha256"]
        checked += 1
    assert checked >= 14


def test_float_digests():
    vectors = case_file("float-vectors.json")
    doubles = lambda bits: [bytes.fromhex(each) for each in bits]
    for case in vectors["results"]:
        runs = [
            verify.blank("ModuleRowResult") | {"status": run["status"], "outputs": doubles(run["outputs_hex_bits"])}
            for run in case["runs"]
        ]
        result = verify.blank("ModuleResult") | {"outcome": 1, "width": case["width"], "runs": runs}
        response = verify.blank("RunResponse") | {"oneof": "module", "module": result}
        assert verify.result_digest(response) == case["sha256"], case["name"]
    for case in vectors["requests"]:
        rows = [verify.blank("ModuleRow") | {"values": doubles(row)} for row in case["rows_hex_bits"]]
        [end, step] = doubles([case["end_time_hex_bits"], case["step_hex_bits"]])
        module = verify.blank("ModuleRun") | {"model": case["model"], "rows": rows, "end_time": end, "step": step}
        request = verify.blank("RunRequest") | {"protocol": case["protocol"], "oneof": "module", "module": module}
        assert verify.request_digest(request) == case["sha256"], case["name"]
    assert len(vectors["results"]) + len(vectors["requests"]) >= 47


def example(*arguments: object) -> tuple[int, list[str], str]:
    command = [sys.executable, ROOT / "examples/verify.py", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_the_example_as_a_command(tmp_path):
    pub, bundle = VECTORS / "own-mixed.pub", VECTORS / "own-mixed.jsonl"
    code, [line], _ = example("--pub", pub, bundle)
    assert code == 0 and line.startswith("ok 11 lines (7 records) signed by key 06e3fd8f")
    code, [line], _ = example("--pub", pub, ROOT / "testdata/bundles/missing-line.jsonl")
    assert (code, line) == (1, "link line 2: the link names position 3")
    code, [line], _ = example("--pub", pub, ROOT / "testdata/bundles/empty.jsonl")
    assert code == 1 and line.startswith("incomplete: ")
    empty = ROOT / "testdata/bundles/checkpoint-only.jsonl"
    code, [line], _ = example("--pub", pub, empty)
    assert code == 1 and line.startswith("empty: ")
    code, lines, _ = example("--pub", pub, "--allow-empty", empty, bundle)
    assert code == 0 and [": ok " in line for line in lines] == [True, True]
    for arguments in (["--pub", pub, tmp_path / "absent"], ["--pub", VECTORS / "own-mixed.key", bundle], []):
        code, lines, error = example(*arguments)
        assert (code, lines) == (2, []) and error


def test_reading_ends_at_the_first_fault():
    line = (ROOT / "testdata/bundles/no-checkpoint.jsonl").read_bytes().splitlines(keepends=True)[0]

    class Source:
        lines = 0

        def readline(self, limit: int) -> bytes:
            assert limit == 64 << 20
            self.lines += 1
            return line

    source = Source()
    with pytest.raises(verify.Refusal) as refused:
        verify.Verification(key_of("own-mixed")).run(source)
    # The copy of line 1 is refused before a third line is read.
    assert (refused.value.cls, refused.value.line, source.lines) == ("link", 2, 2)
