"""`open-statement`: statements of a caller's own type, and everything that must not pass for one."""

from __future__ import annotations

import base64
import json

import pytest
from cli_sign import STATEMENT, encode, sign
from cli_tool import KEYS, OWN_ID, OWN_KEY, OWN_PUB, VECTORS, guard_key

CASES = json.loads((VECTORS / "statement-cases.json").read_bytes())
TYPE = CASES["input"]["type"]
GOOD = CASES["envelope"].encode()
PAYLOAD = CASES["payload"].encode()
SUBJECT = "sha256:" + CASES["input"]["subjects"][0][1]


def opened(cli, *flags, envelope: bytes = GOOD, script: bool = False, **options):
    flags = (*flags, "--json") if script else flags
    return cli("open-statement", "--pub", OWN_PUB, *flags, "-", stdin=envelope, raw=not script, **options)


def test_cases(cli):
    assert len(CASES["cases"]) == 23
    for case in CASES["cases"]:
        envelope = case["envelope"].encode()
        human = opened(cli, "--type", case["type"], envelope=envelope)
        script = opened(cli, "--type", case["type"], envelope=envelope, script=True)
        if case["expect"] == "ok":
            payload = base64.b64decode(json.loads(envelope)["payload"])
            assert (human.code, human.out) == (0, payload), case["name"]
            assert base64.b64decode(script.json["payload_base64"]) == payload
        else:
            assert (human.code, human.out, human.cls) == (1, b"", case["expect"]), case["name"]
            assert (script.code, script.cls) == (1, case["expect"]), case["name"]


def test_exact_payload_and_what_is_said(cli):
    for form in ("-", cli.cwd / "s.json"):
        (cli.cwd / "s.json").write_bytes(GOOD)
        found = cli("open-statement", "--pub", OWN_PUB, "--type", TYPE, form, stdin=GOOD, raw=True)
        assert (found.code, found.out) == (0, PAYLOAD)
        for said in (OWN_ID, TYPE, "no run was checked"):
            assert said in found.prose
        assert "URL-safe" not in found.prose
    script = opened(cli, "--type", TYPE, script=True).json
    assert script["base64"] == "standard" and script["run_checked"] is False
    assert [(each["name"], each["digest"]["sha256"]) for each in script["subjects"]] == [tuple(each) for each in CASES["input"]["subjects"]]
    # Member order and number text of the predicate are the signer's.
    assert list(script["predicate"]) == ["verdict", "score", "runs", "z", "a"]
    assert b'"score":1.50' in opened(cli, "--type", TYPE, script=True).out


def test_predicate_only(cli):
    found = opened(cli, "--type", TYPE, "--predicate-only")
    assert found.out == PAYLOAD[PAYLOAD.index(b'"predicate":') + len(b'"predicate":') : -1]


def recoded(change) -> bytes:
    envelope = json.loads(GOOD)
    envelope["payload"] = change(envelope["payload"])
    return json.dumps(envelope).encode()


def url_safe(text: str) -> str:
    return text.replace("+", "-").replace("/", "_")


def varied() -> dict:
    """An envelope whose payload and signature both use characters that the two alphabets write differently."""
    for filler in range(1000):
        predicate = {"text": "~~~???" + "x" * (filler % 3), "n": filler}
        subject = [{"name": "s", "digest": {"sha256": "0" * 64}}]
        envelope = sign(encode({"_type": STATEMENT, "subject": subject, "predicateType": TYPE, "predicate": predicate}))
        payload, signature = envelope["payload"], envelope["signatures"][0]["sig"]
        if all(any(c in text for c in "+/") for text in (payload, signature)) and payload.endswith("="):
            return envelope
    raise AssertionError("no such envelope")


def test_both_alphabets_and_no_others(cli):
    good = varied()
    payload = base64.b64decode(good["payload"])

    def envelope(text: str, signature: str | None = None) -> bytes:
        one = {**good["signatures"][0], "sig": signature or good["signatures"][0]["sig"]}
        return json.dumps({**good, "payload": text, "signatures": [one]}).encode()

    text, signature = good["payload"], good["signatures"][0]["sig"]
    for accepted, alphabet in (
        (envelope(text), "standard"),
        (envelope(url_safe(text)), "url"),
        (envelope(url_safe(text), url_safe(signature)), "url"),
    ):
        found = opened(cli, "--type", TYPE, envelope=accepted)
        assert (found.code, found.out) == (0, payload)
        assert ("URL-safe" in found.prose) is (alphabet == "url")
        assert opened(cli, "--type", TYPE, envelope=accepted, script=True).json["base64"] == alphabet
    at = next(i for i, c in enumerate(text) if c in "+/")
    one_other = text[:at] + url_safe(text[at]) + text[at + 1 :]
    last = text.rstrip("=")[-1]
    stray = text.rstrip("=")[:-1] + chr(ord(last) + 1) + "=" * (len(text) - len(text.rstrip("=")))
    if one_other == url_safe(text):
        one_other = "-" + text[1:] + "+"
    for broken in (one_other, text.rstrip("="), stray, text[:8] + "\n" + text[8:], text + " ", text + "====", ""):
        refused = opened(cli, "--type", TYPE, envelope=envelope(broken))
        assert (refused.code, refused.out) == (1, b""), broken
        assert refused.cls in ("statement", "signature")
    for broken in (signature.rstrip("="), base64.b64encode(signature.encode()).decode(), signature[:-2], "A" * 88):
        refused = opened(cli, "--type", TYPE, envelope=envelope(text, broken))
        assert (refused.code, refused.out) == (1, b"")
    assert "encoded it twice" in opened(cli, "--type", TYPE, envelope=envelope(text, base64.b64encode(signature.encode()).decode())).prose


def test_a_type_must_be_asked_for(cli):
    for flags, said in (((), "--any-type"), (("--type", TYPE, "--any-type"), "exclude each other")):
        refused = opened(cli, *flags)
        assert (refused.code, refused.cls) == (2, "usage") and said in refused.prose
        assert opened(cli, *flags, script=True).cls == "usage"
    assert opened(cli, "--type=").cls == "usage"
    assert cli("open-statement", "--type", TYPE, "-", stdin=GOOD).cls == "usage"
    found = opened(cli, "--any-type")
    assert (found.code, found.out) == (0, PAYLOAD) and TYPE in found.prose
    for wanted in ("https://example.com/review/v1/", "https://EXAMPLE.com/review/v1", TYPE[:-1], "x"):
        refused = opened(cli, "--type", wanted)
        assert (refused.code, refused.cls, refused.out) == (1, "statement", b""), wanted


def test_reserved_types_open_under_no_flag(cli):
    for number in (1, 6, 4):
        line = json.loads((VECTORS / "own-mixed.jsonl").read_bytes().splitlines()[number - 1])
        for member in ("envelope", "link"):
            if member in line:
                envelope = json.dumps(line[member]).encode()
                for flags in (("--any-type",), ("--type", TYPE)):
                    refused = opened(cli, *flags, envelope=envelope)
                    assert (refused.code, refused.cls, refused.out) == (1, "reserved", b"")
    for case in CASES["sign_refused"]:
        if case["type"]:
            refused = opened(cli, "--type", case["type"])
            assert refused.code == 1 and refused.out == b""
            assert refused.cls == ("reserved" if case["type"].startswith("https") else "statement"), case


def test_subjects(cli):
    second = "sha256:" + CASES["input"]["subjects"][1][1]
    assert opened(cli, "--type", TYPE, "--subject", SUBJECT, "--subject", second).out == PAYLOAD
    refused = opened(cli, "--type", TYPE, "--subject", SUBJECT, "--subject", "sha256:" + "0" * 64)
    assert (refused.code, refused.cls, refused.out) == (1, "statement", b"")
    assert opened(cli, "--type", TYPE, "--subject", "sha512:" + SUBJECT[7:]).code in (1, 2)
    for malformed in ("sha256", "sha256:", SUBJECT[:-1], SUBJECT.upper(), SUBJECT + "0", ":" + SUBJECT[7:], "\x1b[31m:00"):
        assert opened(cli, "--type", TYPE, "--subject", malformed).cls == "usage", malformed


def test_wrong_keys(cli):
    refused = cli("open-statement", "--pub", KEYS / "second.pub", "--type", TYPE, "-", stdin=GOOD)
    assert (refused.code, refused.cls) == (1, "signature")
    guard_key(OWN_KEY.read_bytes())
    assert cli("open-statement", "--pub", OWN_KEY, "--type", TYPE, "-", stdin=GOOD).cls == "key"
    # It takes one key: several would leave open which of them vouches for it.
    assert cli("open-statement", "--pub", OWN_PUB, "--pub", OWN_PUB, "--type", TYPE, "-", stdin=GOOD).cls == "usage"


@pytest.mark.parametrize("space", [b"\n", b"\r\n", b"\t", b"  "])
def test_white_space_of_a_payload_stays_out_of_the_object(cli, space):
    subject = b'[{"name":"a","digest":{"sha256":"%s"}}]' % (b"0" * 64)
    payload = b'{%s"_type":"%s","subject":%s,"predicateType":"%s","predicate":{%s"a":[1,%s2],"b":"x\\n"}}%s'
    payload %= (space, STATEMENT.encode(), subject, TYPE.encode(), space, space, space)
    envelope = encode(sign(payload))
    assert opened(cli, "--type", TYPE, envelope=envelope).out == payload
    script = opened(cli, "--type", TYPE, envelope=envelope, script=True)
    assert script.json["predicate"] == {"a": [1, 2], "b": "x\n"}


def test_hostile_text_in_a_statement(cli):
    hostile = "\x1b]8;;http://x\x07\u202e::error::\n##[x"
    subject = [{"name": hostile, "digest": {"sha256": "0" * 64}}]
    envelope = encode(sign(encode({"_type": STATEMENT, "subject": subject, "predicateType": TYPE, "predicate": {"a": hostile}})))
    found = cli(
        "open-statement", "--pub", OWN_PUB, "--type", TYPE, "--subject", "sha256:" + "0" * 64, "--json", "-", stdin=envelope, env={"GITHUB_ACTIONS": "true"}
    )
    assert found.json["predicate"] == {"a": hostile} and found.json["subjects"][0]["name"] == hostile
    human = opened(cli, "--type", TYPE, "--subject", "sha256:" + "0" * 64, envelope=envelope)
    assert not set(human.err) & (set(range(0x20)) - {0x0A}) and "\u202e" not in human.err.decode()


def test_envelopes_that_are_none(cli):
    for text in (b"", b"\n", b"{}", b"[]", b"null", b"\xff", b"{" * 1000, GOOD + b"x", b"\xef\xbb\xbf" + GOOD, GOOD[: len(GOOD) // 2], GOOD * 2):
        refused = opened(cli, "--type", TYPE, envelope=text)
        assert (refused.code, refused.out, refused.cls) == (1, b"", "statement"), text[:40]
    assert opened(cli, "--type", TYPE, envelope=GOOD + b"\n").code == 0


def test_a_product_that_nobody_reads(cli):
    for sink, reason in (("closed", 1), ("full", 1)):
        if sink == "full":
            with open("/dev/full", "wb") as full:
                found = cli("open-statement", "--pub", OWN_PUB, "--type", TYPE, VECTORS / "x", stdout=full)
                assert found.code == 2
                (cli.cwd / "s.json").write_bytes(GOOD)
                found = cli("open-statement", "--pub", OWN_PUB, "--type", TYPE, cli.cwd / "s.json", stdout=full)
        else:
            (cli.cwd / "s.json").write_bytes(GOOD)
            with cli.broken_pipe() as pipe:
                found = cli("open-statement", "--pub", OWN_PUB, "--type", TYPE, cli.cwd / "s.json", stdout=pipe)
        assert (found.code, found.cls) == (reason, "io")
