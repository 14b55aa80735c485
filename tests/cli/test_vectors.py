"""Every published and own vector, through the command that a person would use."""

from __future__ import annotations

import base64
import hashlib
import json
import struct

import cli_proto
import pytest
from cli_tool import BUNDLES, KEYS, OWN, OWN_ID, OWN_PUB, VECTORS
from google.protobuf import json_format

GOLDEN = json.loads((VECTORS / "golden.json").read_bytes())
FLOATS = json.loads((VECTORS / "float-vectors.json").read_bytes())
CASES = json.loads((VECTORS / "bundle-cases.json").read_bytes())["cases"]
CALLS = (1, 2, 3, 5, 7, 8, 10)
"""The lines of own-mixed.jsonl that hold a call."""


def own_lines() -> list[bytes]:
    return OWN.read_bytes().splitlines(keepends=True)


def predicate(envelope: dict) -> dict:
    return json.loads(base64.b64decode(envelope["payload"]))["predicate"]


def test_no_vector_was_dropped():
    assert (len(GOLDEN["requests"]), len(GOLDEN["results"]), len(GOLDEN["records"])) == (7, 4, 2)
    assert (len(FLOATS["results"]), len(FLOATS["requests"])) == (26, 21)
    assert len(CASES) == 84


# Digests.


@pytest.mark.parametrize("kind", ["request", "result", "record"])
def test_golden_digests(cli, kind):
    pb = cli_proto.messages()
    types = {"request": pb.RunRequest, "result": pb.RunResponse, "record": pb.RunRecord}
    members = {"request": "request", "result": "response", "record": "record"}
    for vector in GOLDEN[kind + "s"]:
        # A session call's ID is in no digest, and no member of a single run's request.
        value = {name: inner for name, inner in vector[members[kind]].items() if name != "sessionId"}
        text, binary = cli.cwd / "v.json", cli.cwd / "v.bin"
        text.write_text(json.dumps(value))
        binary.write_bytes(json_format.ParseDict(value, types[kind]()).SerializeToString())
        for found in (cli("digest", kind, text), cli("digest", kind, "--binary", binary), cli("digest", kind, "-", stdin=text.read_bytes())):
            assert (found.code, found.out) == (0, f"{vector['sha256']}  {kind}\n".encode()), vector["name"]
        script = cli("digest", kind, text, "--json", "--fields").json
        assert (script["kind"], script["sha256"]) == (kind, vector["sha256"])
        assert digest_of(script["fields"]) == vector["sha256"], vector["name"]


def digest_of(fields: list[dict]) -> str:
    """The digest by hand: each name and content behind its length in eight bytes."""
    encoding = b""
    for field in fields:
        for part in ([field["name"].encode()] if field["name"] != "(domain)" else []) + [bytes.fromhex(field["hex"])]:
            encoding += struct.pack(">Q", len(part)) + part
        assert field["length"] == len(field["hex"]) // 2
    return hashlib.sha256(encoding).hexdigest()


def test_records_that_state_their_digest(cli):
    for vector in GOLDEN["records"]:
        file = cli.cwd / "r.json"
        file.write_text(json.dumps({**vector["record"], "recordSha256": vector["sha256"]}))
        script = cli.both("digest", "record", file).json
        assert (script["stated"], script["equal"]) == (vector["sha256"], True)
        file.write_text(json.dumps({**vector["record"], "recordSha256": "0" * 64}))
        refused = cli.both("digest", "record", file)
        assert (refused.code, refused.cls) == (1, "stored")
        assert (refused.error["expected"], refused.error["found"]) == (vector["sha256"], "0" * 64)
        file.write_text(json.dumps({**vector["record"], "version": 4}))
        assert cli.both("digest", "record", file).cls == "stored"


def test_predicates_of_signed_records(cli):
    for number in CALLS:
        signed = predicate(json.loads(own_lines()[number - 1])["envelope"])
        file = cli.cwd / "r.json"
        file.write_text(json.dumps(signed))
        script = cli.both("digest", "record", file).json
        assert (script["sha256"], script["equal"]) == (signed["record_sha256"], True)


def doubles(bits: list[str]) -> bytes:
    """A packed field's content: these doubles, bit for bit."""
    return b"".join(bytes.fromhex(each)[::-1] for each in bits)


def packed(field: int, content: bytes) -> bytes:
    size, head = len(content), b""
    while size > 0x7F:
        head, size = head + bytes([size & 0x7F | 0x80]), size >> 7
    return bytes([field << 3 | 2]) + head + bytes([size]) + content


def value_of(bits: str) -> float:
    return struct.unpack(">d", bytes.fromhex(bits))[0]


def carried_by_json(bits: str) -> bool:
    """JSON has one NaN, and no bits of it."""
    value = value_of(bits)
    return value == value or bits == "7ff8000000000000"


def test_float_results(cli):
    pb = cli_proto.messages()
    for vector in FLOATS["results"]:
        # Built from wire bytes: a NaN's payload survives no detour over a float.
        runs = [pb.ModuleRowResult.FromString(packed(2, doubles(run["outputs_hex_bits"]))) for run in vector["runs"]]
        for run, stated in zip(runs, vector["runs"]):
            run.status = stated["status"]
        response = pb.RunResponse(module=pb.ModuleResult(outcome=1, width=vector["width"], runs=runs))
        binary = cli.cwd / "v.bin"
        binary.write_bytes(response.SerializeToString())
        for run in vector["runs"]:
            assert doubles(run["outputs_hex_bits"]) in binary.read_bytes()
        assert cli("digest", "result", "--binary", binary).out == f"{vector['sha256']}  result\n".encode(), vector["name"]
        if all(carried_by_json(bits) for run in vector["runs"] for bits in run["outputs_hex_bits"]):
            text = json_format.MessageToJson(response).encode()
            assert cli("digest", "result", "-", stdin=text).out.decode().split()[0] == vector["sha256"], vector["name"]


def test_float_requests(cli):
    pb = cli_proto.messages()
    written = 0
    for vector in FLOATS["requests"]:
        rows = [pb.ModuleRow.FromString(packed(1, doubles(row))) for row in vector["rows_hex_bits"]]
        module = pb.ModuleRun(model=vector["model"], rows=rows, end_time=value_of(vector["end_time_hex_bits"]), step=value_of(vector["step_hex_bits"]))
        request = pb.RunRequest(protocol=vector["protocol"], module=module)
        binary = cli.cwd / "v.bin"
        binary.write_bytes(request.SerializeToString())
        assert cli("digest", "request", "--binary", binary).out == f"{vector['sha256']}  request\n".encode(), vector["name"]
        if all(carried_by_json(bits) for row in vector["rows_hex_bits"] for bits in row):
            text = json_format.MessageToJson(request).encode()
            assert cli("digest", "request", "-", stdin=text).out.decode().split()[0] == vector["sha256"], vector["name"]
            written += 1
    assert written > 10


def test_line_digests_chain(cli):
    lines = own_lines()
    for number, line in enumerate(lines, 1):
        object_ = json.loads(line)
        script = cli("digest", "line", "--line", number, OWN, "--json").json
        assert script["sha256"] == hashlib.sha256(line[:-1]).hexdigest()
        link = predicate(object_["link"])
        assert script.get("content_sha256") == link.get("entry_sha256")
        if number < len(lines):
            # What the next line's signed link says came before it.
            assert script["sha256"] == predicate(json.loads(lines[number])["link"])["previous_sha256"]
        if number in CALLS:
            signed = predicate(object_["envelope"])
            assert script["request_sha256"] == signed["request_sha256"]
            assert script.get("result_sha256", "") == signed["result_sha256"]
        one = cli.cwd / "one.jsonl"
        for content in (line, line[:-1]):
            one.write_bytes(content)
            assert cli("digest", "line", one, "--json").json["sha256"] == script["sha256"]
            assert cli("digest", "line", "-", "--json", stdin=content).json["sha256"] == script["sha256"]


# Bundles.


@pytest.mark.parametrize("source", ["file", "stdin"])
def test_bundle_cases(cli, source):
    for case in CASES:
        content = case["bundle"].encode()
        file = cli.cwd / "case.jsonl"
        file.write_bytes(content)
        # Empty alone is no fault of the evidence.
        flags = ("verify", "--pub", OWN_PUB, "--allow-empty")
        found = cli.both(*flags, file) if source == "file" else cli.both(*flags, "-", stdin=content)
        (bundle,) = found.json["bundles"]
        if case["expect"] == "ok":
            assert (found.code, bundle["ok"], bundle["key_id"]) == (0, True, OWN_ID), case["name"]
            assert bundle["lines"] == content.count(b"\n")
        else:
            assert (found.code, found.cls) == (1, case["expect"]), f"{case['name']}: {found.text}"
            assert found.error.get("line", 0) == case["line"], f"{case['name']}: {found.text}"
            assert bundle["error"] == found.error and not bundle["ok"]


def test_a_bundle_without_calls(cli):
    (case,) = [case for case in CASES if case["name"].startswith("a checkpoint alone")]
    file = cli.cwd / "case.jsonl"
    file.write_text(case["bundle"])
    refused = cli.both("verify", "--pub", OWN_PUB, file)
    assert (refused.code, refused.cls) == (1, "empty")
    for flags in (["--allow-empty"], ["--expect-count", "0"]):
        assert "(0 records)" in cli("verify", "--pub", OWN_PUB, *flags, file).out.decode()
        assert cli.both("verify", "--pub", OWN_PUB, *flags, BUNDLES / "empty.jsonl").cls == "incomplete"
    assert cli.both("verify", "--pub", OWN_PUB, "--expect-count", "-1", file).cls == "empty"


def test_sessions_linked(cli):
    found = cli.both("verify", "--pub", VECTORS / "sessions-linked.pub", VECTORS / "sessions-linked.jsonl")
    (bundle,) = found.json["bundles"]
    session = "c92f06904dda"
    assert (bundle["lines"], bundle["records"], bundle["runs"], bundle["calls"]) == (7, 5, 0, 5)
    assert [(each["session"][:12], each["calls"], each["unanswered"]) for each in bundle["sessions"]] == [(session, 5, 0)]
    human = cli("verify", "--pub", VECTORS / "sessions-linked.pub", VECTORS / "sessions-linked.jsonl").out.decode()
    key = "84338813b9ce78aa6c11cf59c1b5ef11f73971080b04c256a226fdded0afac50"
    assert human == (
        f"verified 7 entries (5 records) signed by key {key}, whole to its last checkpoint: 0 single runs; session {session}…, 5 calls, chain closed\n"
    )


def test_sessions_v1(cli):
    refused = cli.both("verify", "--pub", VECTORS / "sessions-v1.pub", VECTORS / "sessions-v1.jsonl")
    assert (refused.code, refused.cls, refused.error["line"]) == (1, "link", 1)
    assert "old or foreign bundle" in refused.error["do"]


def test_own_mixed_with_every_expectation(cli):
    request = cli.cwd / "request.json"
    pb = cli_proto.messages()
    stored = pb.RunRequest.FromString(base64.b64decode(json.loads(own_lines()[1])["request"]))
    request.write_text(json_format.MessageToJson(stored))
    flags = ["--expect", VECTORS / "own-mixed.expect", "--expect-count", "7", "--expect-request", request]
    found = cli.both("verify", "--pub", OWN_PUB, *flags, OWN)
    (bundle,) = found.json["bundles"]
    assert (found.code, bundle["expected"], bundle["checkpoints"], bundle["runs"]) == (0, "met", [4, 11], 4)
    assert [(each["calls"], each["unanswered"]) for each in bundle["sessions"]] == [(3, 1), (0, 0)]
    assert bundle["tiers"] == {"container": 1, "kernel": 5, "vm": 1}

    listed = (VECTORS / "own-mixed.expect").read_text().splitlines(keepends=True)
    expect = cli.cwd / "expect"
    for text, member in (("".join(listed[1:]), "unexpected"), ("".join(listed + listed[:1]), "missing"), ("", "unexpected")):
        expect.write_text(text)
        refused = cli.both("verify", "--pub", OWN_PUB, "--expect", expect, OWN)
        assert (refused.code, refused.cls) == (1, "expected") and member in refused.json["bundles"][0]
        # The empty list expects no call, and a bundle that holds some is not it.
        assert refused.json["bundles"][0]["expected"] == "failed"
    for count in ("6", "8", "0"):
        refused = cli.both("verify", "--pub", OWN_PUB, "--expect-count", count, OWN)
        assert (refused.code, refused.cls) == (1, "expected")
        assert (refused.error["expected"], refused.error["found"]) == (count, "7")
    stored.javascript.code = "another"
    request.write_text(json_format.MessageToJson(stored))
    refused = cli.both("verify", "--pub", OWN_PUB, "--expect-request", request, OWN)
    assert (refused.code, refused.cls) == (1, "expected")
    # Labels and blank lines are no part of a list; order is none either.
    expect.write_text("\n\n".join(line.split()[0] + "\tany label" for line in reversed(listed)))
    assert cli.both("verify", "--pub", OWN_PUB, "--expect", expect, OWN).code == 0


def test_verify_entry_on_every_line(cli):
    lines = own_lines()
    for number in range(1, len(lines) + 2):
        found = cli.both("verify-entry", "--pub", OWN_PUB, "--line", number, OWN)
        if number in CALLS:
            signed = predicate(json.loads(lines[number - 1])["envelope"])
            shown = found.json["record"]
            # Exactly as signed: members that a record leaves out are left out.
            assert shown == signed
            assert (found.json["key_id"], found.json["line"]) == (OWN_ID, number)
            assert found.json["not_established"] == ["file_whole", "neighbours", "chain_complete", "session_closed"]
            human = cli("verify-entry", "--pub", OWN_PUB, "--line", number, OWN).out.decode()
            assert "does not show that the rest of the file is whole" in human
            assert "stated by the daemon; not hardware attestation" in human
        else:
            assert (found.code, found.cls) == (1, "no_line" if number > len(lines) else "not_a_call")
    # A file that is still being written.
    cut = cli.cwd / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:7]))
    assert cli.both("verify-entry", "--pub", OWN_PUB, "--line", 7, cut).code == 0
    cut.write_bytes(b"".join(lines[:7])[:-1])
    refused = cli.both("verify-entry", "--pub", OWN_PUB, "--line", 7, cut)
    assert (refused.code, refused.cls) == (1, "line")
    # Lines before it are not looked at; its own place is.
    cut.write_bytes(b"x\n" * 6 + lines[6])
    assert cli.both("verify-entry", "--pub", OWN_PUB, "--line", 7, cut).code == 0
    cut.write_bytes(b"".join(lines[1:7]))
    assert cli.both("verify-entry", "--pub", OWN_PUB, "--line", 6, cut).cls == "link"


def test_both_spellings(cli):
    first = cli("verify-entry", "-pub", OWN_PUB, "-line", "1", OWN)
    forms = [
        ("--pub", OWN_PUB, "--line", "1", OWN),
        (f"-pub={OWN_PUB}", "-line=1", OWN),
        (f"--pub={OWN_PUB}", "--line=1", "--", OWN),
        (OWN, "--line", "1", "-pub", OWN_PUB),
    ]
    for form in forms:
        assert cli("verify-entry", *form).out == first.out
    assert first.code == 0


def test_several_keys_and_bundles(cli):
    other = KEYS / "second.pub"
    assert cli.both("verify", "--pub", other, "--pub", OWN_PUB, OWN).json["bundles"][0]["key_id"] == OWN_ID
    assert cli.both("verify", "--pub", OWN_PUB, "--pub", OWN_PUB, OWN).code == 0
    refused = cli.both("verify", "--pub", other, "--pub", VECTORS / "sessions-v1.pub", OWN)
    assert (refused.code, refused.cls, refused.error["found"]) == (1, "signature", OWN_ID)
    # Each bundle under its own key, in one go; the same file twice is two bundles.
    linked = VECTORS / "sessions-linked.jsonl"
    found = cli.both("verify", "--pub", OWN_PUB, "--pub", VECTORS / "sessions-linked.pub", OWN, linked, OWN)
    assert [bundle["ok"] for bundle in found.json["bundles"]] == [True] * 3
    # What is worse news decides, and everything is shown.
    bad, absent = BUNDLES / "missing-line.jsonl", cli.cwd / "absent"
    for files, code, classes in (
        ([OWN, bad], 1, ["link"]),
        ([bad, absent], 1, ["link", "io"]),
        ([absent, bad, OWN], 1, ["io", "link"]),
        ([OWN, absent], 2, ["io"]),
        ([absent, cli.cwd], 2, ["io", "io"]),
    ):
        found = cli.both("verify", "--pub", OWN_PUB, *files)
        assert (found.code, [error["class"] for error in found.errors]) == (code, classes)
        assert [bundle["ok"] for bundle in found.json["bundles"]] == [file is OWN for file in files]
