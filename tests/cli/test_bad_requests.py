"""Request files that are not what they should be: named, explained, and nothing is sent."""

from __future__ import annotations

import json

import pytest
from cli_fake import closed_port, good

GOOD = {"protocol": 3, "javascript": {"code": "console.log(6*7)"}}

WRONG = {
    "no object": (b"", None),
    "white space": (b" \n", None),
    "not JSON": (b"{protocol:3}", None),
    "a list": (b"[]", None),
    "a text": (b'"x"', None),
    "null": (b"null", None),
    "two objects": (json.dumps(GOOD).encode() * 2, None),
    "trailing text": (json.dumps(GOOD).encode() + b"x", None),
    "trailing comma": (b'{"protocol":3,"javascript":{"code":"1"},}', None),
    "a comment": (b'{"protocol":3,/**/"javascript":{"code":"1"}}', None),
    "cut": (json.dumps(GOOD).encode()[:-1], None),
    "not UTF-8": (b'{"protocol":3,"javascript":{"code":"\xff"}}', None),
    "a byte-order mark": (b"\xef\xbb\xbf" + json.dumps(GOOD).encode(), None),
    "a lone surrogate": (b'{"protocol":3,"javascript":{"code":"\\ud800"}}', None),
    "a raw control character": (b'{"protocol":3,"javascript":{"code":"a\x1bb"}}', None),
    "a raw newline": (b'{"protocol":3,"javascript":{"code":"a\nb"}}', None),
    "unknown member": (b'{"protocol":3,"javascript":{"code":"1"},"minimum":"vm"}', "minimum"),
    "unknown member below": (b'{"protocol":3,"javascript":{"code":"1","grant":"x"}}', "javascript.grant"),
    "unknown member in a list": (b'{"protocol":3,"project":{"steps":["a"],"files":[{"path":"a","mode":1}]}}', "project.files[0].mode"),
    "a member in another case": (b'{"protocol":3,"JavaScript":{"code":"1"}}', "JavaScript"),
    "a hostile member": (b'{"protocol":3,"\\u001b[31m\\n::error::\\u202e":1}', None),
    "a repeated member": (b'{"protocol":3,"protocol":3,"javascript":{"code":"1"}}', None),
    "a repeated member below": (b'{"protocol":3,"javascript":{"code":"1","code":"2"}}', None),
    "a repeated member by escape": (b'{"protocol":3,"javascript":{"code":"1","\\u0063ode":"2"}}', None),
    "both spellings of a member": (b'{"protocol":3,"minimumIsolation":"vm","minimum_isolation":"process","javascript":{"code":"1"}}', None),
    "two payloads": (b'{"protocol":3,"javascript":{"code":"1"},"project":{"steps":["x"]}}', None),
    "a number for a text": (b'{"protocol":3,"javascript":{"code":1}}', None),
    "a text for an object": (b'{"protocol":3,"javascript":"1"}', None),
    "an empty list for an object": (b'{"protocol":3,"javascript":[]}', None),
    "a list for an object": (b'{"protocol":3,"javascript":["console.log(6*7)"]}', None),
    "lists for objects": (b'{"protocol":3,"project":{"steps":["a"],"files":[["a","b"]]}}', None),
    "a list for a rule": (b'{"protocol":3,"softwareRule":["exact",["a:1"]],"javascript":{"code":"1"}}', None),
    "an object for a list": (b'{"protocol":3,"project":{"steps":{"0":"x"}}}', None),
    "a fraction": (b'{"protocol":3.5,"javascript":{"code":"1"}}', None),
    "a negative protocol": (b'{"protocol":-3,"javascript":{"code":"1"}}', None),
    "a number too large": (b'{"protocol":4294967296,"javascript":{"code":"1"}}', None),
    "a number of a thousand digits": (b'{"protocol":' + b"1" * 1000 + b',"javascript":{"code":"1"}}', None),
    "a boolean": (b'{"protocol":true,"javascript":{"code":"1"}}', None),
    "deep nesting": (b'{"protocol":3,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}", None),
    "deep objects": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, None),
    "never closed": (b'{"a":[' * 50_000, None),
    "no payload": (b'{"protocol":3}', ""),
    "an empty object": (b"{}", None),
    "no code": (b'{"protocol":3,"javascript":{}}', "javascript.code"),
    "an unknown floor": (b'{"protocol":3,"minimumIsolation":"KERNEL","javascript":{"code":"1"}}', "minimumIsolation"),
    "a bad trace": (b'{"protocol":3,"traceId":"a b","javascript":{"code":"1"}}', "traceId"),
    "a cell": (b'{"protocol":3,"cell":{"language":"python","code":"1"}}', None),
    "an unsafe path": (b'{"protocol":3,"project":{"steps":["x"],"files":[{"path":"../a","content":"x"}]}}', "project.files[0].path"),
    "a module of NaN": (b'{"protocol":3,"module":{"model":"m","rows":[{"values":["NaN"]}],"endTime":1,"step":0.1}}', None),
    "a rule without identities": (b'{"protocol":3,"softwareRule":{"mode":"exact"},"javascript":{"code":"1"}}', None),
}


@pytest.mark.parametrize("kind", WRONG)
def test_wrong_request_files(cli, fake, kind):
    content, member = WRONG[kind]
    daemon = fake(good)
    file = cli.cwd / "r.json"
    file.write_bytes(content)
    for args, given in (((file,), None), (("-",), content)):
        found = cli.both("run", "--daemon", daemon.url, *args, stdin=given, env={"GITHUB_ACTIONS": "true"})
        assert (found.code, found.cls) == (1, "request"), found.text
        assert "nothing was run" in found.error["message"]
        assert member is None or found.error.get("member", "") == member, found.text
        assert len(found.text) < 6000
    assert daemon.calls == [] and not cli.bundle.exists()


WELL_FORMED_ALL_THE_SAME = ("no payload", "an empty object", "no code", "an unknown floor", "a bad trace")
WELL_FORMED_ALL_THE_SAME += ("a cell", "an unsafe path", "a module of NaN", "a rule without identities")


def test_the_same_files_by_digest_and_expectation(cli):
    """No text passes for a message elsewhere either; one that a daemon would refuse has a digest, with a warning."""
    file = cli.cwd / "r.json"
    for kind, (content, _) in WRONG.items():
        file.write_bytes(content)
        found = cli("digest", "request", "--json", file)
        assert found.code == (0 if kind in WELL_FORMED_ALL_THE_SAME else 1), (kind, found.text)
        if found.code == 0:
            assert b"a daemon would refuse" in found.err, kind
        else:
            assert found.cls == "request", (kind, found.text)
    for content in (b"\x0a\xff", b"\x08", b"\xff" * 9, b"\x52\x05\x0a\x03a\xffb"):
        file.write_bytes(content)
        assert cli.both("digest", "request", "--binary", file).cls == "request"


def test_places_are_named(cli):
    file = cli.cwd / "r.json"
    file.write_bytes(b'{"protocol":3,\n"javascript":{"code":"1"},\n}')
    found = cli.both("run", "--daemon", closed_port(), file)
    assert "offset" in found.error or found.error.get("line") == 3
    file.write_bytes(b'{"protocol":3,\n\n"javascript":{"code":1}}')
    assert cli.both("run", "--daemon", closed_port(), file).error["line"] == 3


def test_seventeen_megabytes(cli, fake):
    daemon = fake(good)
    file = cli.cwd / "r.json"
    for content in (b'{"protocol":3,"javascript":{"code":"' + b"x" * (17 << 20) + b'"}}', b" " * (17 << 20), b"[" * (17 << 20)):
        file.write_bytes(content)
        found = cli.both("run", "--daemon", daemon.url, file)
        assert (found.code, found.cls) == (2, "io") and "16777216" in found.error["message"]
        _, peak = cli.measured("run", "--daemon", daemon.url, file)
        assert peak < 64 << 20
        # A stream has no size to look at; it is read to its bound and no further.
        found = cli.both("run", "--daemon", daemon.url, "-", stdin=content)
        assert (found.code, found.cls) == (2, "io")
    file.write_bytes(b'{"protocol":3,"javascript":{"code":"' + b"x" * (15 << 20) + b'"}}')
    assert cli.both("run", "--daemon", daemon.url, file).cls == "request"
    assert daemon.calls == []


def test_a_request_is_sent_exactly_as_given(cli, fake):
    """No protocol number, floor or trace ID is filled in, and the line printed is the one `--expect` takes."""
    import cli_proto
    from google.protobuf import json_format

    daemon = fake(good)
    pb = cli_proto.messages()
    given = {**GOOD, "traceId": "job-7", "timeoutMs": 5, "minimumIsolation": "container"}
    file = cli.cwd / "r.json"
    none = json.dumps({"javascript": GOOD["javascript"]})
    for text in (json.dumps(given), json.dumps({**GOOD, "minimum_isolation": "vm"}), none, json.dumps(GOOD)):
        file.write_text(text)
        found = cli("run", "--daemon", daemon.url, "--json", file)
        sent = json_format.Parse(text, pb.RunRequest())
        assert daemon.calls[-1].request == sent
        if "vm" in text:
            assert found.cls == "unchecked"  # the fake answers from a kernel
            continue
        assert found.code == 0
        digest = cli("digest", "request", file).out.decode().split()[0]
        assert found.json["request_sha256"] == digest == cli_proto.request_digest(sent)
        expect = cli.cwd / "expect"
        expect.write_text(f"{digest} a label\n")
        assert cli("verify", "--own", "--expect", expect, cli.bundle).code == (0 if text == json.dumps(given) else 1)
        assert cli("verify", "--own", "--expect-request", file, cli.bundle).code == 0


def test_session_files(cli, fake):
    daemon = fake(good)
    call = json.dumps(GOOD).encode()
    file = cli.cwd / "s.jsonl"
    for content, line in (
        (b"", None),
        (b"\n", None),
        (call + b"\n\n" + call, 2),
        (call + b"\n{", 2),
        (call + b'\n{"protocol":3,"javascript":{"code":"1"},"x":1}', 2),
        (call + b'\n{"protocol":3,"module":{"model":"m"}}', 2),
        (call + b'\n{"protocol":2,"javascript":{"code":"1"}}', 2),
        (call + b"\r\n" + call[:-1], 2),
        ((call + b"\n") * 1001, None),
        (call + b'\n{"protocol":3,"minimumIsolation":"x","javascript":{"code":"1"}}', 2),
        (call + b"\n" + b'{"protocol":3,"javascript":{"code":"' + b"x" * (17 << 20) + b'"}}', 2),
    ):
        file.write_bytes(content)
        found = cli.both("run", "--daemon", daemon.url, "--session", file)
        assert (found.code, found.cls) == (1, "request"), found.text[:3000]
        assert found.error.get("line") == line and "nothing was run" in found.error["message"]
    assert daemon.calls == [] and not cli.bundle.exists()
