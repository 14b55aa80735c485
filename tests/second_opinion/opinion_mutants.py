"""What anyone can do to a bundle without the key: bytes, base64 and lines changed, from a seed."""

from __future__ import annotations

import base64
import hashlib
import json
import random
import re
from typing import Callable

from opinion_both import ROOT, VECTORS, key_of, python_opinion
from opinion_forge import FINGERPRINT, Forge, message, predicate_of, record_of, request, response_to

ALPHABET = b"ABCDwxyz0189+/=-_"
EXTRAS = [b" ", b"\n", b"\r", b"\t", b"\0", b"\xff", b"\\u0041", b"\\/", b"\xef\xbb\xbf", b",", b'"', b"{}", b"null", b"\xc3\xa9"]
BASE64 = re.compile(rb'"(?:request|response|payload|sig)":"([A-Za-z0-9+/=]+)"')
MEMBERS = [b'"request":', b'"response":', b'"envelope":', b'"link":', b'"payload":', b'"signatures":', b'"keyid":', b'"sig":']


def bases() -> dict[str, bytes]:
    """Whole bundles, small ones, so that thousands of changed copies are quickly asked about."""
    cases = {case["name"]: case for case in json.loads((VECTORS / "bundle-cases.json").read_text())["cases"]}
    names = [
        "whole bundle of two single runs",
        "a record envelope with a useless extra signature before the good one",
        "no floor and an unknown tier",
        "an unanswered call and its close",
        "resumed bundle: two checkpoints",
    ]
    found = {name: cases[name]["bundle"].encode() for name in names}
    found["own-mixed to its first checkpoint"] = (ROOT / "testdata/bundles/cut-to-first-checkpoint.jsonl").read_bytes()
    found["two sessions and a rule"] = two_sessions_and_a_rule()
    return found


def two_sessions_and_a_rule() -> bytes:
    forge, other = Forge(), hashlib.sha256(b"another").hexdigest()
    first = forge.honest(FINGERPRINT, 1)
    alone = forge.honest(other, 1)
    second = forge.honest(FINGERPRINT, 2, first["record_sha256"])
    rule = message("SoftwareRule", mode="approved", identities=["a:1", "b:2"])
    asked = request(software_rule=rule, minimum_isolation="container")
    answer = response_to(asked, software_identity="b:2", environment="e")
    record = record_of(asked, answer)
    forge.call(asked, answer | {"record": record}, predicate_of(record))
    forge.close({"session": other, "calls": 1, "last_record_sha256": alone["record_sha256"]})
    forge.close({"session": FINGERPRINT, "calls": 2, "last_record_sha256": second["record_sha256"]})
    return forge.sealed()


def whole_cuts(bundle: bytes) -> set[bytes]:
    """The bundle and its cuts that a writer once left whole: none of them is a change that must show."""
    key, found, prefix = key_of("own-mixed"), set(), b""
    for line in bundle.splitlines(keepends=True):
        prefix += line
        if python_opinion(prefix, key).cls == "ok":
            found.add(prefix)
    return found


def byte_set(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    bundle[rng.randrange(len(bundle))] = rng.randrange(256)
    return bundle


def bit_flipped(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    bundle[rng.randrange(len(bundle))] ^= 1 << rng.randrange(8)
    return bundle


def byte_removed(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    del bundle[rng.randrange(len(bundle))]
    return bundle


def bytes_added(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    at = rng.randrange(len(bundle) + 1)
    bundle[at:at] = rng.choice(EXTRAS)
    return bundle


def character_changed(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """One character of the base64 alphabets for another, mostly inside base64."""
    start, end = rng.choice([match.span(1) for match in BASE64.finditer(bundle)])
    bundle[rng.randrange(start, end)] = rng.choice(ALPHABET)
    return bundle


def bit_flipped_inside(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """One bit of decoded base64, encoded again."""
    start, end = rng.choice([match.span(1) for match in BASE64.finditer(bundle)])
    raw = bytearray(base64.b64decode(bundle[start:end]))
    raw[rng.randrange(len(raw))] ^= 1 << rng.randrange(8)
    bundle[start:end] = base64.b64encode(raw)
    return bundle


def cut(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """Cut anywhere, as often as not between two lines."""
    ends = [0] + [at + 1 for at, byte in enumerate(bundle[:-1]) if byte == ord("\n")]
    return bundle[: rng.choice([rng.randrange(len(bundle)), rng.choice(ends)])]


def stretch_copied(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    length = rng.randint(1, 40)
    source, target = (rng.randrange(len(bundle) - length) for _ in range(2))
    bundle[target : target + length] = bundle[source : source + length]
    return bundle


def lines_changed(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """Lines swapped, doubled, removed, moved, cut from one end, or taken from another bundle."""
    lines = bytes(bundle).splitlines(keepends=True)
    a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
    match rng.randrange(7):
        case 0:
            lines[a], lines[b] = lines[b], lines[a]
        case 1:
            lines.insert(b, lines[a])
        case 2:
            del lines[a]
        case 3:
            lines.insert(b, lines.pop(a))
        case 4:
            lines = lines[a:]
        case 5:
            lines[a] = rng.choice(other.splitlines(keepends=True))
        case 6:
            lines.insert(a, rng.choice(other.splitlines(keepends=True)))
    return b"".join(lines)


def parts_exchanged(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """The head of one line with the tail of another."""
    lines = bytes(bundle).splitlines(keepends=True)
    a, b, name = rng.randrange(len(lines)), rng.randrange(len(lines)), rng.choice(MEMBERS)
    lines[a] = lines[a].split(name)[0] + name + lines[b].split(name)[-1]
    return b"".join(lines)


def member_changed(bundle: bytearray, rng: random.Random, other: bytes) -> bytes:
    """A member's name re-cased, escaped, doubled, or its value replaced."""
    name = rng.choice([name for name in MEMBERS if name in bundle])
    at = rng.choice([match.start() for match in re.finditer(re.escape(name), bundle)])
    new = rng.choice(
        [
            name.upper(),
            name.replace(b'"', b'"\\u00%02x' % name[1], 1).replace(b"%c" % name[1], b"", 1),
            name + b"null,",
            name + b'"",' + name,
            name.replace(b":", b" :"),
            b'"x":0,' + name,
        ]
    )
    bundle[at : at + len(name)] = new
    return bundle


WAYS: list[Callable[[bytearray, random.Random, bytes], bytes]] = [
    byte_set,
    bit_flipped,
    byte_removed,
    bytes_added,
    character_changed,
    bit_flipped_inside,
    cut,
    stretch_copied,
    lines_changed,
    parts_exchanged,
    member_changed,
]


def mutants(count: int, seed: int) -> list[tuple[str, bytes]]:
    """That many changed bundles, each with the name of what was done to which."""
    rng, found = random.Random(seed), bases()
    whole = set().union(*(whole_cuts(bundle) for bundle in found.values()))
    made: list[tuple[str, bytes]] = []
    while len(made) < count:
        name, way = rng.choice(list(found)), rng.choice(WAYS)
        changed = bytes(way(bytearray(found[name]), rng, found[rng.choice(list(found))]))
        if changed not in whole:
            made.append((f"{len(made)} {way.__name__} of {name}", changed))
    return made
