"""What the key's holder could do: contents changed and everything signed and linked again, from a seed.

Such a bundle may well verify, when what was changed is covered by no check. The two verifiers must say the same.
"""

from __future__ import annotations

import base64
import copy
import json
import random

from opinion_both import verify
from opinion_forge import (
    FINGERPRINT,
    KEY_ID,
    STRANGER,
    Forge,
    b64,
    compact,
    encode,
    envelope,
    predicate_of,
    seal,
    signature,
    statement,
)
from opinion_mutants import bases

ZERO = "0" * 64
WORDS = [
    "",
    "x",
    ZERO,
    FINGERPRINT,
    "kernel",
    "vm",
    "none",
    "exact",
    "approved",
    "internal",
    "ok",
    "docker",
    "é\u2028<",
    "\0",
    "a:1",
    "b:2",
]
NUMBERS = [0, 1, 2, 3, 4, -1, 2**31 - 1, 2**31, 2**32, 2**63 - 1, 2**63, 2**64 - 1, 2**64]


class Entry:
    """A line of a bundle as its parts: messages as bytes, the payload as text that will be signed."""

    def __init__(self, line: bytes):
        members = json.loads(line)
        self.messages = {name: base64.b64decode(members[name]) for name in ("request", "response") if name in members}
        self.payload = base64.b64decode(members["envelope"]["payload"]).decode() if "envelope" in members else ""
        self.link: dict = {}
        self.signatures = lambda payload: [signature(payload)]

    def decoded(self, name: str) -> dict:
        kind = "RunRequest" if name == "request" else "RunResponse"
        return verify.ProtobufReader(self.messages[name]).message(kind, verify.blank(kind))

    def store(self, name: str, value: dict) -> None:
        self.messages[name] = encode("RunRequest" if name == "request" else "RunResponse", value)


def entries_of(bundle: bytes) -> list[Entry]:
    return [Entry(line) for line in bundle.splitlines()]


def assembled(entries: list[Entry]) -> bytes:
    forge = Forge()
    for entry in entries:
        members = {name: b64(raw) for name, raw in entry.messages.items() if raw}
        if entry.payload:
            payload = entry.payload.encode()
            members["envelope"] = envelope(payload) | {"signatures": entry.signatures(payload)}
        forge.line(members, entry.link)
    return forge.bytes()


def other_value(value: object, rng: random.Random) -> object:
    """Another value, of the same type or nearly."""
    match value:
        case bool():
            return not value
        case int():
            return rng.choice([value + 1, value - 1, -value, *NUMBERS])
        case str():
            return rng.choice([value + "x", value[:-1], value.upper(), value[::-1], *WORDS])
        case bytes():
            return rng.choice([value + b"\xff", value[:-1], b"", value[::-1]])
    return value


def change_inside(message: dict, rng: random.Random) -> None:
    """One value somewhere inside a decoded message."""
    places: list[tuple[object, object]] = []

    def walk(value: object) -> None:
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(inner, (dict, list)):
                walk(inner)
            elif inner is not None and key != "oneof":
                places.append((value, key))

    walk(message)
    holder, key = rng.choice(places)
    value = other_value(holder[key], rng)
    if isinstance(value, bytes) and (key in ("end_time", "step") or isinstance(holder, list)):  # a double
        value = rng.choice([bytes(8), holder[key][::-1], rng.randbytes(8)])
    if isinstance(value, int) and not isinstance(value, bool):
        value = max(-(2**31), min(value, 2**31 - 1))  # what fits every integer type of the messages, as bits
    holder[key] = value


def calls(entries: list[Entry]) -> list[Entry]:
    return [entry for entry in entries if entry.messages]


def message_byte(entries: list[Entry], rng: random.Random) -> None:
    """A byte of a stored message."""
    entry = rng.choice(calls(entries))
    name = rng.choice(list(entry.messages))
    raw = bytearray(entry.messages[name])
    at = rng.randrange(len(raw))
    match rng.randrange(4):
        case 0:
            raw[at] = rng.randrange(256)
        case 1:
            del raw[at]
        case 2:
            raw.insert(at, rng.randrange(256))
        case 3:
            raw += rng.randbytes(rng.randint(1, 6))
    entry.messages[name] = bytes(raw)


def message_value(entries: list[Entry], rng: random.Random) -> None:
    """A value of a stored message, and as much of what depends on it as chance decides."""
    entry = rng.choice(calls(entries))
    name = rng.choice(list(entry.messages))
    value = entry.decoded(name)
    change_inside(value, rng)
    entry.store(name, value)
    repair(entry, rng)


def repair(entry: Entry, rng: random.Random) -> None:
    whole = json.loads(entry.payload)
    asked = entry.decoded("request")
    answer = entry.decoded("response") if "response" in entry.messages else None
    record = verify.blank("RunRecord") | whole["predicate"]
    if rng.random() < 0.8:
        record["request_sha256"] = verify.request_digest(asked)
    if answer and rng.random() < 0.8:
        record["result_sha256"] = verify.result_digest(answer)
    if answer and rng.random() < 0.6:
        record |= {field: answer[field] for field in ("isolation", "environment", "software_identity")}
        record["provider"] = answer["sandbox"]
    if rng.random() < 0.9:
        record = seal(record)
    if answer and answer["record"] and rng.random() < 0.8:
        entry.store("response", answer | {"record": record})
    entry.payload = compact(statement(verify.RECORD, predicate_of(record))).decode()


def predicate_value(entries: list[Entry], rng: random.Random) -> None:
    """A member of a signed predicate: another value, none, or one too many."""
    entry = rng.choice([entry for entry in entries if entry.payload])
    whole = json.loads(entry.payload)
    predicate = whole["predicate"]
    name = rng.choice(list(predicate))
    match rng.randrange(8):
        case 0:
            del predicate[name]
        case 1:
            predicate[rng.choice(["x", name.upper(), name + " "])] = predicate[name]
        case 2:
            predicate[name] = rng.choice([None, [], {}, 1.5, str(predicate[name]), True])
        case _:
            predicate[name] = other_value(predicate[name], rng)
    if rng.random() < 0.7 and type(predicate.get("version")) is int:
        typed_rightly = all(type(value) is type(verify.blank("RunRecord").get(field)) for field, value in predicate.items())
        if typed_rightly:
            predicate["record_sha256"] = seal(verify.blank("RunRecord") | predicate)["record_sha256"]
    if rng.random() < 0.8:
        whole["subject"] = statement(whole["predicateType"], predicate)["subject"]
    entry.payload = compact(whole).decode()
    if entry.messages.get("response") and rng.random() < 0.6:
        answer = entry.decoded("response")
        inner = answer["record"] | {k: v for k, v in predicate.items() if type(v) is type(answer["record"].get(k))}
        if all(not isinstance(v, int) or -(2**63) <= v < 2**64 for v in inner.values()):
            entry.store("response", answer | {"record": inner})


def payload_spelling(entries: list[Entry], rng: random.Random) -> None:
    """The same statement in another spelling, or nearly the same."""
    entry = rng.choice([entry for entry in entries if entry.payload])
    text = entry.payload
    at = rng.choice([n for n, sign in enumerate(text) if sign in '{}[],:"'])
    match rng.randrange(6):
        case 0:
            text = json.dumps(json.loads(text), indent=rng.randrange(3))
        case 1:
            text = json.dumps(json.loads(text), sort_keys=True)
        case 2:
            text = text[:at] + rng.choice([" ", "\n", "\u00a0", "\f", ","]) + text[at:]
        case 3:
            letter = rng.choice([n for n, sign in enumerate(text) if sign.isalpha()])
            text = text[:letter] + rng.choice(["\\u%04x", "\\u%04X", "\\x%02x"]) % ord(text[letter]) + text[letter + 1 :]
        case 4:
            text += rng.choice([" ", "\n", "x", "{}", "\0"])
        case 5:
            text = text[:at] + text[at + 1 :]
    entry.payload = text


def statement_frame(entries: list[Entry], rng: random.Random) -> None:
    """A part of the frame around a predicate."""
    entry = rng.choice([entry for entry in entries if entry.payload])
    whole = json.loads(entry.payload)
    subject = whole["subject"][0]
    match rng.randrange(7):
        case 0:
            whole["predicateType"] = rng.choice([verify.RECORD, verify.CLOSE, verify.LINK, "https://example.com/v1"])
        case 1:
            whole["_type"] = other_value(whole["_type"], rng)
        case 2:
            whole["subject"].append(copy.deepcopy(subject))
        case 3:
            subject["name"] = rng.choice(["run-record", "session", "bundle-line", ""])
        case 4:
            subject["digest"][rng.choice(["sha256", "sha1"])] = rng.choice(WORDS)
        case 5:
            whole[rng.choice(["x", "Subject"])] = 1
        case 6:
            del whole[rng.choice(list(whole))]
    entry.payload = compact(whole).decode()


def order_of_entries(entries: list[Entry], rng: random.Random) -> None:
    """Entries in another order, one missing, one twice; all linked as if it were right."""
    a, b = rng.randrange(len(entries)), rng.randrange(len(entries))
    match rng.randrange(4):
        case 0:
            entries[a], entries[b] = entries[b], entries[a]
        case 1:
            del entries[a]
        case 2:
            entries.insert(b, copy.copy(entries[a]))
        case 3:
            entries.insert(b, entries.pop(a))


def link_value(entries: list[Entry], rng: random.Random) -> None:
    """A member of a signed link."""
    entry = rng.choice(entries)
    name = rng.choice(["index", "previous_sha256", "entry_sha256", "checkpoint", "lines", "x"])
    value = {"index": NUMBERS, "lines": NUMBERS, "checkpoint": [True, False, 1, None], "x": [1]}.get(name, WORDS[:4])
    entry.link = {name: rng.choice([None, *value]) if name != "x" else 1}


def envelope_signatures(entries: list[Entry], rng: random.Random) -> None:
    """Which signatures an entry's envelope carries."""
    entry = rng.choice([entry for entry in entries if entry.payload])
    ways = [
        lambda payload: [],
        lambda payload: [signature(payload, key=STRANGER)],
        lambda payload: [signature(payload, key=STRANGER), signature(payload)],
        lambda payload: [signature(payload, key=STRANGER) | {"keyid": KEY_ID}, signature(payload)],
        lambda payload: [signature(payload) | {"keyid": ""}],
        lambda payload: [signature(payload) | {"keyid": ZERO}],
        lambda payload: [signature(payload + b" ")],
        lambda payload: [signature(payload, "text/plain")],
        lambda payload: [signature(payload) | {"sig": signature(payload)["sig"][:-1]}],
    ]
    entry.signatures = rng.choice(ways)


# In an order in which a later one can still read what an earlier one left.
WAYS = [
    message_value,
    predicate_value,
    statement_frame,
    envelope_signatures,
    link_value,
    order_of_entries,
    message_byte,
    payload_spelling,
]
OFTEN = [message_value, predicate_value]


def forgeries(count: int, seed: int) -> list[tuple[str, bytes]]:
    """That many signed bundles, each with the name of what was done to which; one in ten has two changes."""
    rng, found = random.Random(seed), bases()
    made: list[tuple[str, bytes]] = []
    while len(made) < count:
        name = rng.choice(list(found))
        entries = entries_of(found[name])
        ways = {rng.choice(WAYS + OFTEN) for _ in range(1 if rng.random() < 0.9 else 2)}
        for way in sorted(ways, key=WAYS.index):
            if calls(entries):
                way(entries, rng)
        made.append((f"{len(made)} {', '.join(way.__name__ for way in ways)} of {name}", assembled(entries)))
    return made
