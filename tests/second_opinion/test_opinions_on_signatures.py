"""Envelopes and Ed25519 at its edges: the tables of sections 5 and 6 of the page, case by case."""

from __future__ import annotations

import subprocess

from cryptography.exceptions import InvalidSignature

from opinion_both import BINARY, VECTORS, verify
from opinion_ed25519 import BASE, L, P, PUBLIC, SECRET, SPELLINGS, crafted, encoded, pem, torsion
from opinion_forge import (
    FINGERPRINT,
    KEY,
    KEY_ID,
    PAYLOAD_TYPE,
    STRANGER,
    Forge,
    b64,
    compact,
    envelope,
    pae,
    signature,
    statement,
)

# A bundle of one checkpoint, whose only signature is replaced.
CHECKPOINT = compact(statement(verify.LINK, {"index": 1, "previous_sha256": "", "checkpoint": True}))
MESSAGE = pae(CHECKPOINT)
GOOD = KEY.sign(MESSAGE)


def signed_with(*signatures: dict) -> bytes:
    link = {"payloadType": PAYLOAD_TYPE, "payload": b64(CHECKPOINT), "signatures": list(signatures)}
    return compact({"link": link}) + b"\n"


def by(raw: bytes, keyid: str = KEY_ID) -> dict:
    return {"keyid": keyid, "sig": b64(raw)}


def test_the_crafting_is_right():
    assert verify.multiply(SECRET, BASE) == verify.point(PUBLIC)
    points = torsion()
    assert len(set(points)) == 8 and all(verify.multiply(8, point) == (0, 1) for point in points)
    assert {y for _, y in points} == verify.SMALL_ORDER_Y
    KEY.public_key().verify(crafted(MESSAGE, 77), MESSAGE)
    # What makes the strictness matter: the library alone takes an R of small order.
    KEY.public_key().verify(crafted(MESSAGE, 0), MESSAGE)


def test_edges_of_ed25519(agree):
    s = int.from_bytes(GOOD[32:], "little")
    order_8 = torsion()[1]
    cases = [
        ("as signed", GOOD, "ok"),
        ("signed with another nonce", crafted(MESSAGE, 77), "ok"),
        ("S = 0 under a wrong R", GOOD[:32] + bytes(32), "signature"),
        ("S + L", GOOD[:32] + (s + L).to_bytes(32, "little"), "signature"),
        ("S + 8L", GOOD[:32] + (s + 8 * L).to_bytes(32, "little"), "signature"),
        ("S = L, R the identity", encoded((0, 1)) + L.to_bytes(32, "little"), "signature"),
        ("highest bits of S set", GOOD[:63] + bytes([GOOD[63] | 0xE0]), "signature"),
        ("sign bit of R flipped", GOOD[:31] + bytes([GOOD[31] ^ 0x80]) + GOOD[32:], "signature"),
        ("R is no point", crafted(MESSAGE, 0, (2).to_bytes(32, "little")), "signature"),
        ("R all ones", crafted(MESSAGE, 0, b"\xff" * 32), "signature"),
        ("all zero", bytes(64), "signature"),
        ("another message", KEY.sign(MESSAGE + b" "), "signature"),
        ("the payload without its encoding", KEY.sign(CHECKPOINT), "signature"),
        ("one byte short", GOOD[:63], "signature"),
        ("one byte long", GOOD + b"\0", "signature"),
        ("empty", b"", "signature"),
    ]
    for n, point in enumerate(torsion()):
        cases.append((f"R of small order {n}", crafted(MESSAGE, 0, encoded(point)), "signature"))
        cases.append((f"R of small order {n}, solved with it", crafted(MESSAGE, 0, extra=point), "signature"))
        if n:
            cases.append((f"R of mixed order {n}", crafted(MESSAGE, 77, extra=point), "signature"))
    for name, spelling in SPELLINGS.items():
        cases.append((f"R is {name}", crafted(MESSAGE, 0, spelling), "signature"))
    # Only multiplied by 8 does the equation hold: R off by a point of order 8, hashed as it stands.
    mixed = encoded(verify.add(verify.multiply(77, BASE), order_8))
    cases.append(("only the equation with cofactor holds", crafted(MESSAGE, 77, mixed), "signature"))
    agree([(name, signed_with(by(raw)), cls) for name, raw, cls in cases])


def test_edges_of_keys(tmp_path):
    points = {f"small order {n}": encoded(point) for n, point in enumerate(torsion())}
    own = verify.point(PUBLIC)
    points |= {f"mixed order {n}": encoded(verify.add(own, point)) for n, point in enumerate(torsion()) if n}
    points |= {f"spelled {name}": spelling for name, spelling in SPELLINGS.items()}
    points |= {"all ones": b"\xff" * 32, "y = p + 4": (P + 4).to_bytes(32, "little")}
    points |= {"no point": next(y for n in range(2, 99) if verify.point(y := n.to_bytes(32, "little")) is None)}
    taken = {"the key": PUBLIC, "its negative": PUBLIC[:31] + bytes([PUBLIC[31] ^ 0x80]), "the base point": encoded(BASE)}
    for name, raw in (points | taken).items():
        file = tmp_path / "edge.pub"
        file.write_bytes(pem(raw))
        done = subprocess.run([BINARY, "verify", "--pub", file, VECTORS / "own-mixed.jsonl"], capture_output=True, timeout=60)
        try:
            verify.PublicKey.from_pem(file.read_bytes())
            example = "taken"
        except verify.BadKey:
            example = "refused"
        rust = "refused" if done.returncode == 2 else "taken"
        assert (rust, example) == ("taken" if name in taken else "refused",) * 2, (name, done.stderr)


def call_signed(*signatures: dict, kind: str = PAYLOAD_TYPE) -> bytes:
    """A whole bundle of a session's close, whose envelope has these signatures."""
    members = {"payloadType": kind, "payload": b64(CLOSE), "signatures": list(signatures)}
    return Forge().line({"envelope": members}).sealed()


CLOSE = compact(statement(verify.CLOSE, {"session": FINGERPRINT, "calls": 0, "last_record_sha256": ""}))


def test_which_signatures_count(agree):
    good, foreign = signature(CLOSE), signature(CLOSE, key=STRANGER)
    unnamed = good | {"keyid": ""}
    broken = good | {"sig": b64(bytes(64))}
    twice = good | {"sig": b64(good["sig"].encode())}
    url = good | {"sig": good["sig"].replace("+", "-").replace("/", "_")}
    if url == good:  # base64 of 64 bytes without + or /: make one that has them
        raise AssertionError("choose another payload")
    spaced = good | {"sig": good["sig"][:10] + "\n" + good["sig"][10:]}
    bits = good | {"sig": good["sig"][:-3] + chr(ord(good["sig"][-3]) + 1) + "=="}
    other_type = signature(CLOSE, "text/plain")
    cases = [
        ("one", call_signed(good), "ok"),
        ("one without a key ID", call_signed(unnamed), "ok"),
        ("a foreign one before it", call_signed(foreign, good), "ok"),
        ("a broken one before it", call_signed(broken, good), "ok"),
        ("a broken one after it", call_signed(good, broken), "ok"),
        ("one that is not base64 before it", call_signed(good | {"sig": "*"}, good), "ok"),
        ("an empty one before it", call_signed(good | {"sig": ""}, good), "ok"),
        ("64 of them", call_signed(*[foreign] * 63, good), "ok"),
        ("65 of them", call_signed(*[foreign] * 64, good), "signature"),
        ("65 good ones", call_signed(*[good] * 65), "signature"),
        ("none", call_signed(), "signature"),
        ("a foreign one", call_signed(foreign), "signature"),
        ("a foreign one without a key ID", call_signed(foreign | {"keyid": ""}), "signature"),
        ("a foreign one under our key ID", call_signed(foreign | {"keyid": KEY_ID}), "signature"),
        ("ours under a foreign key ID", call_signed(good | {"keyid": foreign["keyid"]}), "signature"),
        ("our key ID in upper case", call_signed(good | {"keyid": KEY_ID.upper()}), "signature"),
        ("our key ID and a space", call_signed(good | {"keyid": KEY_ID + " "}), "signature"),
        ("encoded twice", call_signed(twice), "signature"),
        ("URL-safe", call_signed(url), "signature"),
        ("a line break in it", call_signed(spaced), "signature"),
        ("unused bits set", call_signed(bits), "signature"),
        ("no padding", call_signed(good | {"sig": good["sig"].rstrip("=")}), "signature"),
        ("another payload type, signed", call_signed(other_type, kind="text/plain"), "statement"),
        ("another payload type, not signed", call_signed(good, kind="text/plain"), "signature"),
        ("an empty payload type, signed", call_signed(signature(CLOSE, ""), kind=""), "statement"),
        (
            "the payload type in another case, signed",
            call_signed(signature(CLOSE, PAYLOAD_TYPE.upper()), kind=PAYLOAD_TYPE.upper()),
            "statement",
        ),
    ]
    agree(cases)


def test_a_link_has_one_signature_that_names_the_key(agree):
    good, foreign = signature(CHECKPOINT), signature(CHECKPOINT, key=STRANGER)
    unnamed, broken = good | {"keyid": ""}, good | {"sig": b64(bytes(64))}
    cases = [
        ("one", signed_with(good), "ok"),
        ("none", signed_with(), "signature"),
        ("without a key ID", signed_with(unnamed), "statement"),
        ("broken, without a key ID", signed_with(broken | {"keyid": ""}), "signature"),
        ("twice", signed_with(good, good), "statement"),
        ("and a foreign one", signed_with(good, foreign), "statement"),
        ("after a foreign one", signed_with(foreign, good), "statement"),
        ("and a broken one", signed_with(good, broken), "statement"),
        ("a foreign one alone", signed_with(foreign), "signature"),
        ("two that do not verify", signed_with(foreign, broken), "signature"),
        ("65", signed_with(*[good] * 65), "signature"),
        ("64", signed_with(*[good] * 64), "statement"),
    ]
    null = compact({"link": {"payloadType": PAYLOAD_TYPE, "payload": b64(CHECKPOINT), "signatures": None}}) + b"\n"
    other = compact({"link": envelope(CHECKPOINT, "text/plain")}) + b"\n"
    text = compact({"link": envelope(CHECKPOINT) | {"payload": b64(CHECKPOINT)[:-2]}}) + b"\n"
    cases += [("null", null, "signature"), ("another payload type", other, "statement"), ("payload cut", text, "statement")]
    agree(cases)


def test_libraries_differ_where_the_page_decides():
    """The rows that a verifier gets wrong when it leaves them to this library."""
    small = crafted(MESSAGE, 0)
    key = verify.PublicKey(PUBLIC)
    KEY.public_key().verify(small, MESSAGE)
    assert not key.verifies(MESSAGE, small) and key.verifies(MESSAGE, GOOD)
    try:
        KEY.public_key().verify(GOOD[:32] + (int.from_bytes(GOOD[32:], "little") + L).to_bytes(32, "little"), MESSAGE)
    except InvalidSignature:
        return
    raise AssertionError("the library takes S + L: say so on the page")
