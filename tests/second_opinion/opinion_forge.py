"""Bundles that a key's holder could write: any content, signed and linked with the published test key."""

from __future__ import annotations

import base64
import hashlib
import json

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from opinion_both import VECTORS, verify

KEY = serialization.load_pem_private_key((VECTORS / "own-mixed.key").read_bytes(), None)
STRANGER = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
FINGERPRINT = hashlib.sha256(b"00112233445566778899aabbccddeeff").hexdigest()


def key_id(key: Ed25519PrivateKey) -> str:
    der = key.public_key().public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(der).hexdigest()


KEY_ID = key_id(KEY)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def compact(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def signature(payload: bytes, payload_type: str = PAYLOAD_TYPE, key: Ed25519PrivateKey = KEY) -> dict:
    return {"keyid": key_id(key), "sig": b64(key.sign(pae(payload, payload_type)))}


def envelope(payload: bytes, payload_type: str = PAYLOAD_TYPE, key: Ed25519PrivateKey = KEY) -> dict:
    return {"payloadType": payload_type, "payload": b64(payload), "signatures": [signature(payload, payload_type, key)]}


def statement(kind: str, predicate: dict) -> dict:
    """The statement of a predicate, consistent in its subject."""
    name, _ = verify.PREDICATES[kind]
    if kind == verify.RECORD:
        digest = predicate.get("record_sha256", "")
    elif kind == verify.CLOSE:
        digest = predicate.get("session", "")
    else:
        digest = predicate.get("previous_sha256" if predicate.get("checkpoint") else "entry_sha256", "")
    subject = [{"name": name, "digest": {"sha256": digest}}]
    return {"_type": STATEMENT, "subject": subject, "predicateType": kind, "predicate": predicate}


def wire(number: int, kind: int, content: bytes) -> bytes:
    """A protobuf field from its parts; a length is added for wire type 2."""
    head = varint(number << 3 | kind)
    return head + (varint(len(content)) if kind == 2 else b"") + content


def varint(value: int, size: int = 0) -> bytes:
    """A varint, in `size` bytes if that is more than it needs."""
    out = bytearray()
    while value > 0x7F or len(out) + 1 < size:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def encode(name: str, message: dict) -> bytes:
    """A message as the system's own writers encode it: ascending numbers, packed doubles, no zero values."""
    out = b""
    for number, (field, kind, many, _) in verify.MESSAGES[name].items():
        value = message.get(field)
        if many and kind == "double":
            out += wire(number, 2, b"".join(bits[::-1] for bits in value)) if value else b""
            continue
        for element in value if many else [value]:
            if not many and (element is None or (element == verify.ZERO.get(kind, 0) and kind not in verify.MESSAGES)):
                continue
            if kind in verify.MESSAGES:
                out += wire(number, 2, encode(kind, element))
            elif kind in ("string", "bytes"):
                out += wire(number, 2, element.encode() if kind == "string" else element)
            elif kind == "double":
                out += wire(number, 1, element[::-1])
            else:
                out += wire(number, 0, varint(int(element) & (1 << 64) - 1))
    return out


def message(name: str, **fields: object) -> dict:
    return verify.blank(name) | fields


def request(**fields: object) -> dict:
    """A snippet's request."""
    run = message("RunRequest", protocol=3, trace_id="t", oneof="javascript", javascript=message("JavaScriptRun", code="1"))
    return run | fields


def response_to(asked: dict, **fields: object) -> dict:
    """An answer without its record."""
    result = message("JavaScriptResult", stdout=b"1\n")
    return message("RunResponse", sandbox="docker", isolation="kernel", oneof="javascript", javascript=result) | fields


def record_of(asked: dict, answer: dict | None, **fields: object) -> dict:
    """The record an honest daemon makes, and `fields` over it, sealed."""
    record = message("RunRecord", version=2, started_unix_ms=1793000000000, ended_unix_ms=1793000000100)
    record["request_sha256"] = verify.request_digest(asked)
    record["software_rule_id"] = verify.read_rule(asked["software_rule"])[1]
    if answer is None:
        record |= {"version": 3, "unanswered": "internal", "provider": "docker", "isolation": "kernel"}
    else:
        record["result_sha256"] = verify.result_digest(answer)
        record |= {name: answer[name] for name in ("isolation", "environment", "software_identity")}
        record["provider"] = answer["sandbox"]
    return seal(record | fields)


def seal(record: dict) -> dict:
    version = record["version"] if record["version"] in verify.RECORD_FORMS else 2
    return record | {"record_sha256": verify.record_digest(record | {"version": version})}


def predicate_of(record: dict) -> dict:
    """A record as the predicate of its statement."""
    optional = ("software_identity", "software_rule_id", "unanswered")
    names = [field for field, *_ in verify.MESSAGES["RunRecord"].values()]
    return {name: record[name] for name in names if record[name] or name not in optional}


class Forge:
    """A bundle in the making. Every line is linked; what is wrong is what the caller makes so."""

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def line(self, members: dict, link_changes: dict | None = None, link_payload: bytes | None = None) -> Forge:
        """Links the members, which may be none, and adds the line. `None` in the changes removes a member."""
        content = {"entry_sha256": hashlib.sha256(compact(members)).hexdigest()} if members else {"checkpoint": True}
        previous = hashlib.sha256(self.lines[-1]).hexdigest() if self.lines else ""
        predicate = {"index": len(self.lines) + 1, "previous_sha256": previous} | content
        if not members and self.lines:
            predicate["lines"] = len(self.lines)
        for name, value in (link_changes or {}).items():
            predicate[name] = value
            if value is None:
                del predicate[name]
        payload = link_payload or compact(statement(verify.LINK, predicate))
        return self.raw(compact(members | {"link": envelope(payload)}))

    def raw(self, line: bytes) -> Forge:
        self.lines.append(line)
        return self

    def call(self, asked: dict | bytes, answer: dict | bytes | None, payload: bytes | dict, **link_changes: object) -> Forge:
        """A call from messages, or their bytes, and the record's predicate, payload or envelope."""
        members: dict = {}
        for name, kind, value in (("request", "RunRequest", asked), ("response", "RunResponse", answer)):
            if value is not None:
                members[name] = b64(value if isinstance(value, bytes) else encode(kind, value))
        return self.line(members | {"envelope": as_envelope(payload, verify.RECORD)}, link_changes)

    def close(self, predicate: dict | bytes, extra: dict | None = None) -> Forge:
        return self.line((extra or {}) | {"envelope": as_envelope(predicate, verify.CLOSE)})

    def honest(self, session: str = "", sequence: int = 0, previous: str = "", **fields: object) -> dict:
        """Adds an honest call; gives its record."""
        asked = request(**fields)
        answer = response_to(asked)
        record = record_of(asked, answer, session=session, sequence=sequence, previous_sha256=previous)
        self.call(asked, answer | {"record": record}, predicate_of(record))
        return record

    def sealed(self) -> bytes:
        """The bundle with a checkpoint at its end."""
        self.line({})
        return self.bytes()

    def bytes(self) -> bytes:
        return b"".join(line + b"\n" for line in self.lines)


def as_envelope(payload: bytes | dict, kind: str) -> dict:
    """An envelope as it is, a payload signed, a predicate in its statement and signed."""
    if isinstance(payload, bytes):
        return envelope(payload)
    return payload if "payloadType" in payload else envelope(compact(statement(kind, payload)))
