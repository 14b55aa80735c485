"""`sign-statement`: what is signed to the byte, what is refused before any key is read, and which key signs."""

from __future__ import annotations

import base64
import json
import os
import stat

import pytest
from cli_sign import STATEMENT
from cli_tool import OWN, OWN_ID, OWN_KEY, OWN_PUB, VECTORS, guard_key

CASES = json.loads((VECTORS / "statement-cases.json").read_bytes())
INPUT = CASES["input"]
TYPE = INPUT["type"]
WANTED = CASES["envelope"].encode() + b"\n"
ZEROS = "0" * 64
NOWHERE = ("--key", "/nowhere/no.key")
"""A key that is never read, because something else is refused first."""


@pytest.fixture
def key(cli):
    """The vectors' key, as a key file must be."""
    file = cli.folder / "k.key"
    file.write_bytes(OWN_KEY.read_bytes())
    file.chmod(0o600)
    return file


def whole(**change) -> dict:
    """A statement that may be signed; `None` leaves a member out."""
    subject = [{"name": "a", "digest": {"sha256": ZEROS}}]
    members = {"_type": STATEMENT, "subject": subject, "predicateType": TYPE, "predicate": {"a": 1}, **change}
    return {name: value for name, value in members.items() if value is not None}


def payload(envelope: bytes) -> bytes:
    return base64.b64decode(json.loads(envelope)["payload"])


def opened(cli, envelope: bytes, kind: str = TYPE) -> bytes:
    """The payload, by the command that opens it."""
    found = cli("open-statement", "--pub", OWN_PUB, "--type", kind, "-", stdin=envelope, raw=True)
    assert found.code == 0, found.text
    return found.out


# The exact bytes.


def test_the_vector_from_parts(cli, key):
    (cli.cwd / "p.json").write_text(INPUT["predicate_text"])
    subjects = [word for name, digest in INPUT["subjects"] for word in ("--subject", f"{name}=sha256:{digest}")]
    short = [word.replace("sha256:", "") for word in subjects]
    for named in (subjects, short):
        found = cli("sign-statement", "--key", key, "--type", TYPE, *named, "--predicate", "p.json")
        assert (found.code, found.out) == (0, WANTED)
    found = cli("sign-statement", "--key", key, "--type", TYPE, *subjects, "--predicate", "-", stdin=INPUT["predicate_text"].encode())
    assert found.out == WANTED
    assert payload(found.out) == CASES["payload"].encode() == opened(cli, found.out)
    for said in (OWN_ID, TYPE, "payload SHA-256", "open-statement --pub", f"--type {TYPE}"):
        assert said in found.prose


def test_the_vector_about_checked_runs(cli, key):
    (cli.cwd / "p.json").write_text(INPUT["predicate_text"])
    about = ("sign-statement", "--key", key, "--type", TYPE, "--about", OWN, "--pub", OWN_PUB, "--predicate", "p.json")
    assert cli(*about, "--line", "1", "--line", "2").out == WANTED
    # A line given twice is one subject.
    assert cli(*about, "--line", "1", "--line", "2", "--line", "1").out == WANTED
    every = json.loads(payload(cli(*about, "--all-runs").out))
    records = [json.loads(base64.b64decode(json.loads(line)["envelope"]["payload"])) for line in OWN.read_bytes().splitlines() if b'"request"' in line]
    assert [each["digest"]["sha256"] for each in every["subject"]] == [each["predicate"]["record_sha256"] for each in records]
    assert len(every["subject"]) == 7 and {each["name"] for each in every["subject"]} == {"run-record"}


def test_a_whole_statement_is_signed_as_it_stands(cli, key):
    for text in (
        json.dumps(whole(), indent=2).encode() + b"\n",
        json.dumps(whole(predicate=None)).encode(),
        json.dumps(whole(predicate={"n": 9007199254740993, "t": "é<>&\u2028"}), ensure_ascii=False).encode(),
        b" " + json.dumps(whole(subject=[{"digest": {"gitCommit": "a" * 40, "sha1": "b" * 40}}])).encode(),
    ):
        (cli.cwd / "s.json").write_bytes(text)
        found = cli("sign-statement", "--key", key, "s.json")
        assert found.code == 0 and found.out.count(b"\n") == 1
        assert payload(found.out) == text == opened(cli, found.out)
        assert cli("sign-statement", "--key", key, "-", stdin=text).out == found.out


def test_other_algorithms(cli, key):
    named = ("--subject", "r=gitCommit:" + "a" * 40, "--subject", 'x="<\u2028=sha512:' + "b" * 128, "--subject", "r=" + ZEROS)
    found = cli("sign-statement", "--key", key, "--type", TYPE, *named)
    assert payload(found.out) == (
        f'{{"_type":"{STATEMENT}","subject":[{{"name":"r","digest":{{"gitCommit":"{"a" * 40}"}}}},'
        f'{{"name":"x=\\"\\u003c\\u2028","digest":{{"sha512":"{"b" * 128}"}}}},'
        f'{{"name":"r","digest":{{"sha256":"{ZEROS}"}}}}],"predicateType":"{TYPE}"}}'
    ).encode()
    assert opened(cli, found.out) == payload(found.out)


def test_canonical(cli, key):
    def signed(text: str):
        return cli("sign-statement", "--key", key, "--canonical", "-", stdin=text.encode())

    head = f'"_type":"{STATEMENT}",'
    tail = f'"predicateType":"{TYPE}","subject":[{{"digest":{{"sha256":"{ZEROS}"}},"name":"a"}}]}}'
    subject = f'"subject":[{{"name":"a","digest":{{"sha256":"{ZEROS}"}}}}]'
    for predicate, form in (
        ('{"b":1.50, "a":[1e21,-0,2E-7,1e20], "\\u00e9":"\\u000f\\/<"}', '{"a":[1e+21,0,2e-7,100000000000000000000],"b":1.5,"é":"\\u000f/<"}'),
        ('{"\ufb33":1,"\U0001f600":2,"\u20ac":3,"1":4}', '{"1":4,"\u20ac":3,"\U0001f600":2,"\ufb33":1}'),
        ("{}", "{}"),
    ):
        found = signed(f'{{"predicate":{predicate},{head}{subject},"predicateType":"{TYPE}"}}')
        form = f'{{{head}"predicate":{form},{tail}'
        assert payload(found.out).decode() == form
        # It is its own canonical form.
        assert payload(signed(form).out).decode() == form
    for number in ("9007199254740993", "1e400", "1e-400", "0.12345678901234567890", "12345678901234567890"):
        refused = signed(f'{{"predicate":{{"n":{number}}},{head}{subject},"predicateType":"{TYPE}"}}')
        assert (refused.code, refused.cls, refused.out) == (1, "statement", b"") and number in refused.prose
    # Without it the number stands as it was written.
    text = f'{{"predicate":{{"n":9007199254740993}},{head}{subject},"predicateType":"{TYPE}"}}'
    assert payload(cli("sign-statement", "--key", key, "-", stdin=text.encode()).out) == text.encode()


# Refused before any key is read.


def test_reserved_types(cli):
    for case in CASES["sign_refused"]:
        found = cli("sign-statement", *NOWHERE, "--type", case["type"], "--subject", "a=" + ZEROS)
        if case["type"] == "":
            assert (found.code, found.cls) == (2, "usage")
            continue
        assert (found.code, found.out) == (1, b"")
        assert found.cls == ("reserved" if case["type"].startswith("https") else "statement"), case
        (cli.cwd / "s.json").write_text(json.dumps(whole(predicateType=case["type"])))
        assert cli("sign-statement", *NOWHERE, "s.json").cls == found.cls
        about = cli("sign-statement", *NOWHERE, "--type", case["type"], "--about", OWN, "--pub", OWN_PUB, "--all-runs")
        assert (about.code, about.cls) == (1, found.cls)
    for kind in ("urn:plimsoll-attest:x", "HTTP://plimsollmark.github.io:80/x/../%70limsoll/y", "https://plimsollmark.github.io:00000443/plimsoll/run-record/v1", "URN:Plimsoll-Attest:x"):
        found = cli.both("sign-statement", *NOWHERE, "--out", "o", "--type", kind, "--subject", "a=" + ZEROS)
        assert (found.code, found.cls) == (1, "reserved")
    text = json.dumps(whole()).replace(TYPE, "https://plimsollmark.github.io/plimsoll/\\u0072un-record/v1")
    assert cli("sign-statement", *NOWHERE, "-", stdin=text.encode()).cls == "reserved"


def test_input_rules(cli):
    one = {"name": "a", "digest": {"sha256": ZEROS}}
    deep = b'{"a":' * 70 + b"1" + b"}" * 70
    good = json.dumps(whole())
    for text, reason in (
        (b"", "parse"),
        (b"\xff", "parse"),
        (b"\xef\xbb\xbf" + good.encode(), "parse"),
        (b"[]", "shape"),
        (good.encode() + b"x", "parse"),
        (good.encode() * 2, "parse"),
        (good.replace('"a": 1', '"a":1,"\\u0061":2').encode(), "parse"),
        (good.encode().replace(b'{"a": 1}', deep), "parse"),
        (good.encode() + b" " * (16 << 20), "parse"),
        (json.dumps(whole(extra=1)).encode(), "shape"),
        (json.dumps(whole(predicate=[])).encode(), "shape"),
        (json.dumps(whole(predicateType=None)).encode(), "shape"),
        (json.dumps(whole(subject=[{**one, "uri": "x"}])).encode(), "shape"),
        (json.dumps(whole(_type="https://in-toto.io/Statement/v0.1")).encode(), "type"),
        (json.dumps(whole(_type=None)).encode(), "type"),
        (json.dumps(whole(predicateType="no uri")).encode(), "type"),
        (json.dumps(whole(subject=[])).encode(), "subject"),
        (json.dumps(whole(subject=None)).encode(), "subject"),
        (json.dumps(whole(subject=[one, one])).encode(), "subject"),
        (json.dumps(whole(subject=[{"name": "a", "digest": {}}])).encode(), "subject"),
        (json.dumps(whole(subject=[{"name": "a", "digest": {"sha256": "A" * 64}}])).encode(), "subject"),
        (json.dumps(whole(subject=[{"name": str(n), "digest": {"sha256": ZEROS}} for n in range(1025)])).encode(), "subject"),
    ):
        (cli.cwd / "s.json").write_bytes(text)
        for flags in ((), ("--canonical",)):
            found = cli("sign-statement", *NOWHERE, *flags, "--json", "--out", "o", "s.json")
            assert (found.code, found.cls, found.error["reason"]) == (1, "statement", reason), text[:200]
        assert os.listdir(cli.cwd) == ["s.json"]
    # Two subjects of one name are fine.
    two = [one, {"name": "a", "digest": {"sha256": "1" * 64}}]
    (cli.cwd / "s.json").write_text(json.dumps(whole(subject=two)))
    assert cli("sign-statement", *NOWHERE, "s.json").cls == "io", "then the key is what is missing"


def test_parts_that_are_refused(cli):
    for digest in ("sha256:" + "A" * 64, "sha256:00", "00", "sha1:" + ZEROS, "gitCommit:x", ":" + ZEROS, "SHA256:" + ZEROS + "\x01"):
        found = cli("sign-statement", *NOWHERE, "--json", "--out", "o", "--type", TYPE, "--subject", f"a={digest}")
        assert (found.code, found.cls, found.error["reason"]) == (1, "statement", "subject"), digest
    for subject in ("a", "=" + ZEROS, ZEROS):
        assert cli("sign-statement", *NOWHERE, "--type", TYPE, "--subject", subject).cls == "usage"
    for predicate in (b"", b"[]", b"1", b"{}{}", b'{"a":1,"a":2}', b'{"a":01}', b"\xff"):
        found = cli("sign-statement", *NOWHERE, "--type", TYPE, "--subject", "a=" + ZEROS, "--predicate", "-", stdin=predicate)
        assert (found.code, found.cls) == (1, "statement"), predicate


def test_runs_that_do_not_verify(cli):
    base = ("sign-statement", *NOWHERE, "--type", TYPE)
    flipped = bytearray(OWN.read_bytes())
    flipped[len(flipped) // 3] ^= 1
    (cli.cwd / "flipped").write_bytes(flipped)
    (cli.cwd / "cut").write_bytes(b"".join(OWN.read_bytes().splitlines(keepends=True)[:3]))
    for bundle, runs, cls in (
        ("flipped", ("--all-runs",), None),
        ("cut", ("--all-runs",), "incomplete"),
        (OWN, ("--line", "4"), "not_a_call"),
        (OWN, ("--line", "1", "--line", "6"), "not_a_call"),
        (OWN, ("--line", "12"), "no_line"),
        (VECTORS.parent / "bundles/checkpoint-only.jsonl", ("--all-runs",), "empty"),
        (VECTORS / "sessions-v1.jsonl", ("--line", "1"), "link"),
        (VECTORS / "sessions-linked.jsonl", ("--line", "1"), "signature"),
        (VECTORS / "sessions-linked.jsonl", ("--all-runs",), "signature"),
    ):
        found = cli.both(*base, "--out", "o", "--about", bundle, "--pub", OWN_PUB, *runs)
        assert found.code == 1 and cls in (None, found.cls), (bundle, runs, found.text)
        assert not (cli.cwd / "o").exists()
    # One line of a file that is still written can be spoken of.
    assert cli(*base, "--about", "cut", "--pub", OWN_PUB, "--line", "3").cls == "io"
    assert cli(*base, "--about", "-", "--pub", OWN_PUB, "--all-runs", stdin=OWN.read_bytes()).cls == "usage"


def test_forms_do_not_mix(cli):
    subject = ("--subject", "a=" + ZEROS)
    about = ("--about", OWN, "--pub", OWN_PUB)
    for args in (
        (),
        ("--canonical",),
        ("--type", TYPE),
        subject,
        about,
        ("--type", TYPE, *subject, "s.json"),
        ("--type", TYPE, "s.json"),
        ("--predicate", "p", "s.json"),
        (*about, "s.json"),
        ("--own", "s.json"),
        ("--type", TYPE, *subject, "--canonical"),
        ("--type", TYPE, *subject, *about, "--all-runs"),
        ("--type", TYPE, *subject, "--all-runs"),
        ("--type", TYPE, *subject, "--line", "1"),
        ("--type", TYPE, *subject, "--pub", OWN_PUB),
        ("--type", TYPE, *about),
        ("--type", TYPE, *about, "--all-runs", "--line", "1"),
        ("--type", TYPE, "--about", OWN, "--all-runs"),
        ("--type", TYPE, "--about", OWN, "--all-runs", "--own"),
        ("--type", TYPE, *about, "--line", "0"),
        ("--key", "-", "s.json"),
        ("a.json", "b.json"),
    ):
        found = cli.both("sign-statement", "--out", "o", *args)
        assert (found.code, found.cls) == (2, "usage"), args
    assert os.listdir(cli.cwd) == []


# The key, and where the envelope goes.


def test_which_key_signs(cli, key):
    base = ("sign-statement", "--type", TYPE, "--subject", "a=" + ZEROS)
    text = OWN_KEY.read_text()
    named = cli(*base, "--key", key).out
    assert cli(*base, env={"PLIMSOLL_ATTEST_KEY": text}).out == named
    # The flag is stronger than the variable, and an empty variable is none.
    assert cli(*base, "--key", key, env={"PLIMSOLL_ATTEST_KEY": "x"}).out == named
    for variable in (None, ""):
        absent = cli(*base, env={"PLIMSOLL_ATTEST_KEY": variable})
        assert (absent.code, absent.cls) == (2, "key") and "nothing was signed" in absent.prose
        assert os.listdir(cli.home) == [], "the default key is not made here"
    assert cli(*base, env={"PLIMSOLL_ATTEST_KEY": "x"}).cls == "key"
    assert cli(*base, env={"HOME": None}).cls == "key"
    assert cli("run", "--js", "1").code == 0
    guard_key(cli.default_key.read_bytes())
    found = cli(*base)
    assert found.code == 0 and str(cli.default_pub) in found.prose.replace(" ", "").replace("\n", "")
    assert cli("open-statement", "--pub", cli.default_pub, "--type", TYPE, "-", stdin=found.out, raw=True).code == 0
    about = cli(*base[:3], "--about", cli.bundle, "--own", "--all-runs")
    assert about.code == 0 and json.loads(payload(about.out))["subject"][0]["name"] == "run-record"
    cli.default_key.chmod(0o640)
    assert cli(*base).cls == "key"
    key.chmod(0o644)
    refused = cli.both(*base, "--out", "o", "--key", key)
    assert (refused.code, refused.cls) == (2, "key") and "chmod 600" in refused.error["do"]
    assert cli(*base, "--key", OWN_PUB).cls == "key"
    assert cli(*base, "--key", "absent").cls == "io"


def test_the_envelope_is_a_new_file(cli, key):
    base = ("sign-statement", "--key", key, "--type", TYPE, "--subject", "a=" + ZEROS)
    wanted = cli(*base).out
    found = cli(*base, "--out", "o")
    assert (found.code, found.out) == (0, b"") and (cli.cwd / "o").read_bytes() == wanted
    assert stat.S_IMODE((cli.cwd / "o").stat().st_mode) == 0o644
    script = cli(*base, "-o", "o2", "--json").json
    assert (script["key_id"], script["type"], script["out"]) == (OWN_ID, TYPE, "o2")
    assert script["subjects"] == [{"name": "a", "digest": {"sha256": ZEROS}}]
    (cli.cwd / "link").symlink_to("elsewhere")
    for out in ("o", "link", "."):
        refused = cli.both(*base, "--out", out)
        assert (refused.code, refused.cls) == (2, "exists"), out
    assert cli.both(*base, "--out", "no/where").cls == "io"
    assert (cli.cwd / "o").read_bytes() == wanted and not (cli.cwd / "elsewhere").exists()
    for flags in (("--json",), ("--json", "--out", "-")):
        assert cli(*base, *flags).cls == "usage"
    quiet = cli(*base, "--quiet")
    assert (quiet.out, quiet.err) == (wanted, b"")


def test_a_product_that_nobody_reads(cli, key):
    base = ("sign-statement", "--key", key, "--type", TYPE, "--subject", "a=" + ZEROS)
    with cli.broken_pipe() as closed:
        found = cli(*base, stdout=closed)
    assert (found.code, found.cls) == (1, "io")
    with open("/dev/full", "wb") as full:
        found = cli(*base, stdout=full)
    assert (found.code, found.cls) == (1, "io")


def test_hostile_text(cli, key):
    hostile = "\x1b]8;;http://x\x07\u202e::error::\n##[x"
    github = {"GITHUB_ACTIONS": "true"}
    found = cli("sign-statement", "--key", key, "--type", TYPE, "--subject", f"{hostile}={ZEROS}", "--json", "--out", "o", env=github)
    assert found.json["subjects"][0]["name"] == hostile
    for kind in (hostile, "https://e/::error::x##[y]"):
        found = cli("sign-statement", *NOWHERE, "--type", kind, "--subject", "a=" + ZEROS, env=github)
        assert found.code in (1, 2)
    assert cli("sign-statement", "--key", key, "--type", "https://e/'$(x)'", "--subject", "a=" + ZEROS, "--out", "o2").code == 0
