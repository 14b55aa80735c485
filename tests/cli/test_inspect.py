"""`inspect`: every file is shown as far as it can be read, and nothing is claimed without a key."""

from __future__ import annotations

import base64
import json

import cli_proto
import cli_sign
import pytest
from cli_tool import BUNDLES, OWN, OWN_ID, OWN_PUB, VECTORS

NOT_VERIFIED = "not verified: what follows is what the file says"
CASES = json.loads((VECTORS / "bundle-cases.json").read_bytes())["cases"]
KINDS = ["call", "call", "call", "checkpoint", "call", "close", "unanswered call", "call", "close", "call", "checkpoint"]


def shown(found) -> list[str]:
    """The kinds of the lines, as a person sees them."""
    lines = found.out.decode().splitlines()
    return [line.split(": ", 1)[1] for line in lines if line.startswith("line ")]


def rows(found, name: str) -> list[str]:
    """Every value of a row."""
    return [line[12:] for line in found.out.decode().splitlines() if line.startswith(f"  {name:<10}")]


def test_old_bundles_without_links(cli):
    old = VECTORS / "sessions-v1.jsonl"
    found = cli("inspect", old)
    assert found.code == 0 and found.out.decode().startswith(NOT_VERIFIED + "\n")
    assert shown(found) == ["call"] * 5 + ["close"]
    assert rows(found, "link") == ["no link"] * 6
    refused = cli("inspect", "--pub", VECTORS / "sessions-v1.pub", old)
    assert (refused.code, refused.cls) == (1, "link") and "line 1" in refused.error["message"]
    assert refused.out == found.out, "the content is shown all the same, below the same line"
    script = cli("inspect", "--pub", VECTORS / "sessions-v1.pub", old, "--json")
    assert (script.cls, script.json["verified"], len(script.json["lines"])) == ("link", False, 6)
    assert not any(line["linked"] for line in script.json["lines"])


def test_every_kind(cli):
    found = cli("inspect", OWN)
    assert found.code == 0 and found.out.decode().splitlines()[0] == NOT_VERIFIED
    assert shown(found) == KINDS
    assert rows(found, "key") == [OWN_ID] * 11
    script = cli("inspect", OWN, "--json").json
    assert [line["kind"] for line in script["lines"]] == KINDS and script["verified"] is False
    for number, (line, raw) in enumerate(zip(script["lines"], OWN.read_bytes().splitlines()), 1):
        stored = json.loads(raw)
        assert (line["line"], line["index"], line["key_ids"], line["linked"]) == (number, number, [OWN_ID], True)
        if "request" in stored:
            record = json.loads(base64.b64decode(stored["envelope"]["payload"]))["predicate"]
            assert line["record"] == record
            assert line["request_sha256"] == record["request_sha256"]
            assert line.get("result_sha256", "") == record["result_sha256"]
            assert ("result" in line) is (line["kind"] == "call")
    text = found.out.decode()
    for said in (
        "2026-10-26T07:33:20.000Z to 2026-10-26T07:33:20.100Z",
        "docker (kernel), stated by the daemon; not hardware attestation",
        "javascript, protocol 3, floor kernel, timeout 5000 ms",
        "a/b.txt (9 bytes)",
        "session   5947d7c33d78…, call 2",
        "no answer (deadline_exceeded)",
        "setup_failed, 0 steps",
        "position 11, after 10 lines",
        "5947d7c33d78…, 3 calls",
    ):
        assert said in text
    assert text.count("not hardware attestation") == 1


def test_below_the_verdict(cli):
    verdict = cli("verify", "--pub", OWN_PUB, OWN).out
    plain = cli("inspect", OWN).out.split(b"\n", 1)[1]
    for source in (OWN, "-"):
        found = cli("inspect", "--pub", OWN_PUB, source, stdin=OWN.read_bytes())
        assert (found.code, found.out) == (0, verdict + plain)
        assert cli("inspect", "--pub", OWN_PUB, source, "--json", stdin=OWN.read_bytes()).json["verified"] is True
    assert cli("inspect", "-", stdin=OWN.read_bytes()).out == cli("inspect", OWN).out
    # Two keys, the right one second.
    two = cli("inspect", "--pub", VECTORS / "sessions-linked.pub", "--pub", OWN_PUB, OWN)
    assert two.out == verdict + plain
    other = cli("inspect", "--pub", VECTORS / "sessions-linked.pub", OWN)
    assert (other.code, other.cls) == (1, "signature") and other.out == cli("inspect", OWN).out
    one = cli("inspect", "--pub", OWN_PUB, "--line", "4", OWN)
    assert one.out.startswith(verdict) and shown(one) == ["checkpoint"]
    flipped = bytearray(OWN.read_bytes())
    flipped[-300] ^= 1
    late = cli("inspect", "--pub", OWN_PUB, "--line", "1", "-", stdin=bytes(flipped))
    assert late.code == 1 and shown(late) == ["call"], "the whole file is verified, whatever is shown"


@pytest.mark.parametrize("file", sorted(BUNDLES.glob("*.jsonl")), ids=lambda file: file.stem)
def test_broken_files(cli, file):
    content = file.read_bytes()
    count = content.count(b"\n") + (not content.endswith(b"\n") and content != b"")
    found = cli("inspect", file)
    assert len(shown(found)) == count, "no line hides another"
    assert found.code == (1 if "broken" in shown(found) else 0)
    if found.code:
        assert found.cls == "line"
        assert f"line {shown(found).index('broken') + 1}" in found.error["message"]
    script = cli("inspect", file, "--json")
    assert [line["kind"] for line in script.json["lines"]] == shown(found)
    verdict, below = cli("verify", "--pub", OWN_PUB, file), cli("inspect", "--pub", OWN_PUB, file)
    assert (below.code, [e["class"] for e in below.errors]) == (verdict.code, [e["class"] for e in verdict.errors])
    if verdict.code and verdict.cls != "empty":
        assert below.err == verdict.err, "the refusal is that of verify"
    assert below.out.split(b"\n", 1)[1] == found.out.split(b"\n", 1)[1]


def test_a_cut_file_names_where_it_could_be_cut(cli):
    found = cli("inspect", BUNDLES / "truncated.jsonl")
    assert found.code == 1 and "checkpoint is 4" in found.prose


def test_bundle_cases(cli):
    for case in CASES:
        bundle = cli.cwd / "b"
        bundle.write_text(case["bundle"])
        plain = cli("inspect", bundle)
        assert plain.code in (0, 1) and plain.out.decode().startswith(NOT_VERIFIED)
        verdict, below = cli("verify", "--pub", OWN_PUB, bundle), cli("inspect", "--pub", OWN_PUB, bundle)
        assert (below.code, [e["class"] for e in below.errors]) == (verdict.code, [e["class"] for e in verdict.errors]), case["name"]
        assert below.out.split(b"\n", 1)[1] == plain.out.split(b"\n", 1)[1]


def bundle_of(request, response, cli):
    (cli.cwd / "b").write_bytes(cli_sign.bundle((request, response)))
    return cli.cwd / "b"


def test_one_line_with_its_content(cli):
    pb = cli_proto.messages()
    big = "x" * (64 << 10) + "é\n"
    files = [pb.ProjectFile(path="a/é.txt", content="one\ntwo\tthree"), pb.ProjectFile(path="big", content=big), pb.ProjectFile(path="none", content="")]
    files += [pb.ProjectFile(path=f"f{n}", content="1") for n in range(20)]
    request = pb.RunRequest(protocol=3, project=pb.ProjectRun(files=files, steps=["echo 1", "false"], artifacts=["out"]))
    bundle = bundle_of(request, cli_proto.project(request, artifacts={"out": b"\xff\x00x"}, codes=(0, 3)), cli)
    found = cli("inspect", "--line", "1", bundle)
    text = found.out.decode()
    for said in (
        "file a/é.txt:\n| one\n| two\tthree∎\n",
        "step 1:\n| echo 1∎\n",
        "step 1 stdout:\n| out of echo 1\n",
        "step 2: exit 3; stdout 13 bytes",
        "artifact out:\n| \\xff\\u{0}x∎\n",
        "… (3 more bytes)\n",
        "  f19 (1 bytes)".strip(),
    ):
        assert said in text, said
    assert "file none:" not in text
    assert "and 15 more" in cli("inspect", bundle).out.decode()
    full = cli("inspect", "--line", "1", "--full", bundle).out.decode()
    assert "x" * (64 << 10) + "é\n" in full and "more bytes" not in full
    script = cli("inspect", "--line", "1", bundle, "--json").json["lines"][0]
    assert base64.b64decode(script["request"]["files"][1]["content_base64"]).decode() == big
    assert base64.b64decode(script["result"]["artifacts"][0]["content_base64"]) == b"\xff\x00x"
    assert "content_base64" not in cli("inspect", bundle, "--json").json["lines"][0]["request"]["files"][1]
    assert shown(cli("inspect", "--line", "2", bundle)) == ["checkpoint"]
    absent = cli.both("inspect", "--line", "3", bundle)
    assert (absent.code, absent.cls, absent.error["line"]) == (1, "no_line", 3)
    assert cli("inspect", "--full", bundle).cls == "usage"


def test_unknown_fields_are_said(cli):
    pb = cli_proto.messages()
    request = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="1"))
    request.MergeFromString(b"\x98\x06\x01")  # field 99, a varint
    request.javascript.MergeFromString(b"\x3a\x01x")  # field 7, text
    response = cli_proto.snippet(request)
    response.record.MergeFromString(b"\x8a\x01\x01x")  # field 17 belongs to a later protocol
    bundle = bundle_of(request, response, cli)
    assert cli("verify", "--pub", OWN_PUB, bundle).code == 0, "no digest covers them"
    named = ["request.99", "request.javascript.7", "response.record.17"]
    assert cli("inspect", bundle, "--json").json["lines"][0]["unknown_fields"] == named
    text = cli("inspect", bundle).out.decode()
    assert all(f"field {name}, which no digest covers" in text for name in named)
    assert "unknown_fields" not in cli("inspect", OWN, "--json").json["lines"][0]


def test_stored_messages_of_another_record(cli):
    pb = cli_proto.messages()
    request = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="1"))
    response = cli_proto.snippet(request)
    other = pb.RunRequest(protocol=3, javascript=pb.JavaScriptRun(code="2"))
    found = cli("inspect", bundle_of(other, response, cli))
    assert found.code == 0 and f"the stored request has {cli_proto.request_digest(other)}" in found.out.decode()
    assert cli("inspect", "--pub", OWN_PUB, cli.cwd / "b").cls == "stored"


def test_hostile_text(cli):
    pb = cli_proto.messages()
    hostile = "\x1b]8;;http://x\x07\u202e\n::error::x ##[y] " + "z" * 10_000
    request = pb.RunRequest(protocol=3, trace_id=hostile, minimum_isolation=hostile)
    request.project.CopyFrom(pb.ProjectRun(files=[pb.ProjectFile(path=hostile, content=hostile)], steps=[hostile], artifacts=[hostile], grant_profile=hostile))
    response = cli_proto.project(request, artifacts={hostile: hostile.encode()}, provider=hostile, isolation=hostile, environment=hostile)
    response.project.outcome_detail = hostile
    bundle = bundle_of(request, response, cli)
    for args in ((), ("--line", "1"), ("--line", "1", "--full"), ("--json",), ("--json", "--line", "1"), ("--pub", OWN_PUB)):
        # No control byte, no hidden character, no workflow command: checked of every result.
        found = cli("inspect", *args, bundle, env={"GITHUB_ACTIONS": "true"})
        assert found.code == (1 if "--pub" in args else 0)
    for line in cli("inspect", bundle).out.decode().splitlines():
        assert len(line) < 450


def test_files_that_are_none(cli):
    for args, cls in (((".",), "io"), (("absent",), "io"), (("--pub", OWN, OWN), "key"), (("--own", OWN), "usage"), ((), "usage"), ((OWN, OWN), "usage")):
        found = cli.both("inspect", *args)
        assert (found.code, found.cls) == (2, cls), args
    empty = cli("inspect", "-", stdin=b"")
    assert (empty.code, empty.out.decode()) == (0, f"{NOT_VERIFIED}\nthe file has no lines\n")
    assert cli("inspect", "--pub", OWN_PUB, "-", stdin=b"").cls == "incomplete"
    for text in (b"{}\n", b'{"link":null}\n', b"\n\n", b"[" * 1000 + b"\n", b"\x00\n", b'{"envelope":{"payloadType":"","payload":"","signatures":null}}\n'):
        found = cli("inspect", "-", stdin=text)
        assert (found.code, found.cls) == (1, "line") and set(shown(found)) == {"broken"}, text


def test_a_reader_that_goes_away(cli):
    with cli.broken_pipe() as closed:
        assert cli("inspect", OWN, stdout=closed).code == 0
    with cli.broken_pipe() as closed:
        found = cli("inspect", "--pub", VECTORS / "sessions-v1.pub", OWN, stdout=closed)
        assert found.code == 1, "a refusal stays one"
    with open("/dev/full", "wb") as full:
        assert cli("inspect", OWN, stdout=full).code == 1


def test_memory_is_that_of_a_line(cli):
    line = OWN.read_bytes().splitlines(keepends=True)[0]
    small, large = cli.cwd / "small", cli.cwd / "large"
    small.write_bytes(line * 20)
    large.write_bytes(line * 8000)
    for flags in ((), ("--pub", OWN_PUB)):
        _, least = cli.measured("inspect", *flags, small)
        found, most = cli.measured("inspect", *flags, large)
        assert len(shown(found)) == 8000
        assert most < least + (8 << 20), (flags, least, most)
