"""Ed25519 at its edges: what the published page says of each case, in every command and in the second verifier."""

from __future__ import annotations

import base64
import hashlib
import random

import pytest
from cli_fake import closed_port
from cli_tool import OWN_KEY, OWN_PUB, ROOT, VECTORS
from opinion_both import python_opinion, key_of, verify
from opinion_ed25519 import BASE, L, P, PUBLIC, SPELLINGS, crafted, encoded, pem, torsion
from opinion_forge import Forge, b64, compact, pae, predicate_of, record_of, request, response_to, statement

SEED = 20261130


def signatures(message: bytes) -> list[tuple[str, bytes, bool]]:
    """(name, signature, whether it verifies): 45 cases over one message, from a seed."""
    rng = random.Random(SEED)
    nonce = lambda: rng.randrange(1, L)
    good = crafted(message, nonce())
    s = int.from_bytes(good[32:], "little")
    multiples = [m for m in range(1, 16) if s + m * L < 1 << 256]
    cases = [(f"honest {n}", crafted(message, nonce()), True) for n in range(4)]
    cases += [(f"S + {m} L", good[:32] + (s + m * L).to_bytes(32, "little"), False) for m in multiples[:8]]
    cases += [
        ("S = 0", good[:32] + bytes(32), False),
        ("S = L", good[:32] + L.to_bytes(32, "little"), False),
        ("S = L - 1", good[:32] + (L - 1).to_bytes(32, "little"), False),
        ("S all ones", good[:32] + b"\xff" * 32, False),
        ("R and S zero", bytes(64), False),
        ("R no point", (2).to_bytes(32, "little") + good[32:], False),
        ("the sign of R flipped", good[:31] + bytes([good[31] ^ 0x80]) + good[32:], False),
    ]
    for n, point in enumerate(torsion()):
        cases.append((f"R of small order {n}", crafted(message, 0, extra=point), False))
        if n:
            cases.append((f"R of mixed order {n}", crafted(message, nonce(), extra=point), False))
    cases += [(f"R spelled {name}", crafted(message, 0, spelling), False) for name, spelling in SPELLINGS.items()]
    rest = [(f"a bit of R changed {n}", bytes([good[0] ^ 1 << n]) + good[1:], False) for n in range(8)]
    cases += rest[: 45 - len(cases)]
    assert len(cases) == 45
    return cases


def keys() -> list[tuple[str, bytes, bool]]:
    """(name, point, whether it is a key): 27 cases."""
    own = verify.point(PUBLIC)
    cases = [(f"small order {n}", encoded(point), False) for n, point in enumerate(torsion())]
    cases += [(f"mixed order {n}", encoded(verify.add(own, point)), False) for n, point in enumerate(torsion()) if n]
    cases += [(f"spelled {name}", spelling, False) for name, spelling in SPELLINGS.items()]
    no_point = next(y for n in range(2, 99) if verify.point(y := n.to_bytes(32, "little")) is None)
    cases += [("all ones", b"\xff" * 32, False), ("y = p + 4", (P + 4).to_bytes(32, "little"), False), ("no point", no_point, False)]
    cases += [("the key", PUBLIC, True), ("its negative", PUBLIC[:31] + bytes([PUBLIC[31] ^ 0x80]), True), ("the base point", encoded(BASE), True)]
    assert len(cases) == 27
    return cases


def call(signature: bytes) -> bytes:
    """A bundle of one call whose record's envelope has this signature."""
    payload, asked, answer = record()
    envelope = {"payloadType": "application/vnd.in-toto+json", "payload": b64(payload), "signatures": [{"keyid": verify.PublicKey(PUBLIC).id, "sig": b64(signature)}]}
    return Forge().call(asked, answer, envelope).sealed()


def record():
    asked = request()
    answer = response_to(asked)
    made = record_of(asked, answer)
    return compact(statement(verify.RECORD, predicate_of(made))), asked, answer | {"record": made}


OWN = compact({"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "a", "digest": {"sha256": "0" * 64}}], "predicateType": "https://example.com/v1", "predicate": {}})


def test_signatures_in_every_command(cli):
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    note = (ROOT / "testdata/anchors/own-mixed.anchor").read_bytes()
    text = note.split(b"\n\n")[0] + b"\n"
    name = text.split(b"\n")[0]
    key_hash = hashlib.sha256(name + b"\n\x01" + PUBLIC).digest()[:4]
    for (case, over_record, counts), (_, over_own, _), (_, over_anchor, _) in zip(signatures(pae(record()[0])), signatures(pae(OWN)), signatures(text), strict=True):
        bundle = cli.cwd / "b.jsonl"
        bundle.write_bytes(call(over_record))
        bundle.chmod(0o600)
        own = {"payloadType": "application/vnd.in-toto+json", "payload": b64(OWN), "signatures": [{"keyid": "", "sig": b64(over_own)}]}
        (cli.cwd / "own.json").write_bytes(compact(own))
        (cli.cwd / "a").write_bytes(text + b"\n" + "— ".encode() + name + b" " + base64.b64encode(key_hash + over_anchor) + b"\n")
        assert python_opinion(bundle.read_bytes(), key_of("own-mixed")).cls == ("ok" if counts else "signature"), case
        evidence = [
            ("verify", "--pub", OWN_PUB, bundle),
            ("verify-entry", "--pub", OWN_PUB, "--line", "1", bundle),
            ("inspect", "--pub", OWN_PUB, bundle),
            ("sign-statement", "--key", key, "--type", "https://example.com/v1", "--about", bundle, "--pub", OWN_PUB, "--all-runs", "--out", f"out {case}"),
            ("open-statement", "--pub", OWN_PUB, "--any-type", "own.json"),
        ]
        for command in evidence:
            found = cli(command[0], "--json", *command[1:])
            if counts:
                assert found.code == 0, (case, command, found.text)
            else:
                assert (found.code, found.cls) == (1, "signature"), (case, command)
        found = cli("replay", "--json", "--daemon", closed_port(), "--pub", OWN_PUB, bundle)
        assert (found.code, found.errors[0]["class"]) == ((4, "unreachable") if counts else (1, "signature")), case
        found = cli("verify", "--json", "--pub", OWN_PUB, "--anchor", "a", VECTORS / "own-mixed.jsonl")
        assert (found.code == 0) is counts and (counts or found.error["reason"] == "signature"), case
        if not counts:
            found = cli("run", "--json", "--daemon", closed_port(), "--key", key, "--bundle", bundle, "--js", "1")
            assert (found.cls, found.error["reason"]) == ("bundle", "signature"), case


@pytest.mark.parametrize("case, point, taken", keys(), ids=[name for name, *_ in keys()])
def test_keys_in_every_command(cli, case, point, taken):
    file = cli.cwd / "edge.pub"
    file.write_bytes(pem(point))
    (cli.cwd / "own.key").write_bytes(OWN_KEY.read_bytes())
    (cli.cwd / "own.key").chmod(0o600)
    bundle = VECTORS / "own-mixed.jsonl"
    for command in (
        ("verify", "--pub", file, bundle),
        ("verify", "--pub", OWN_PUB, "--anchor", ROOT / "testdata/anchors/own-mixed.anchor", "--anchor-pub", file, bundle),
        ("verify-entry", "--pub", file, "--line", "1", bundle),
        ("inspect", "--pub", file, bundle),
        ("replay", "--daemon", closed_port(), "--pub", file, bundle),
        ("open-statement", "--pub", file, "--any-type", bundle),
        ("sign-statement", "--key", "own.key", "--type", "https://example.com/v1", "--about", bundle, "--pub", file, "--all-runs", "--out", "out"),
    ):
        found = cli(command[0], "--json", *command[1:])
        weak = bool(found.errors) and found.errors[0].get("reason") == "weak_point"
        assert weak is not taken, (command, found.text)
        assert taken or (found.code, found.cls) == (2, "key")
    try:
        verify.PublicKey.from_pem(file.read_bytes())
    except verify.BadKey:
        assert not taken
    else:
        assert taken


def test_the_page_states_each_rule():
    page = (ROOT / "docs/evidence-format.md").read_text()
    for rule in ("key: small order", "key: mixed order", "R: small order", "R: mixed order", "S ≥ L", "S = 0", "x = 0 with the sign bit"):
        assert rule in page, rule
