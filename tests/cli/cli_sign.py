"""A key holder that signs whatever a test wants: statements, records and bundles, made from their format alone."""

from __future__ import annotations

import base64
import hashlib
import json

from cli_tool import OWN_ID, OWN_KEY
from cryptography.hazmat.primitives.serialization import load_pem_private_key

KEY = load_pem_private_key(OWN_KEY.read_bytes(), None)
STATEMENT = "https://in-toto.io/Statement/v1"
PAYLOAD = "application/vnd.in-toto+json"
OURS = "https://plimsollmark.github.io/plimsoll/"


def encode(value) -> bytes:
    """JSON as the format's encoder writes it."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text.encode()


def sign(payload: bytes) -> dict:
    """A DSSE envelope over a statement's bytes."""
    kind = PAYLOAD.encode()
    signed = b"DSSEv1 %d %s %d %s" % (len(kind), kind, len(payload), payload)
    signature = {"keyid": OWN_ID, "sig": base64.b64encode(KEY.sign(signed)).decode()}
    return {"payloadType": PAYLOAD, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}


def statement(kind: str, name: str, digest: str, predicate: dict) -> dict:
    subject = [{"name": name, "digest": {"sha256": digest}}]
    return sign(encode({"_type": STATEMENT, "subject": subject, "predicateType": OURS + kind, "predicate": predicate}))


def record_envelope(record) -> dict:
    """The envelope over a record as it stands in an answer."""
    names = ("version", "request_sha256", "result_sha256", "provider", "isolation", "environment", "software_identity", "software_rule_id")
    names += ("policy", "started_unix_ms", "ended_unix_ms", "session", "sequence", "previous_sha256", "unanswered", "record_sha256")
    predicate = {name: getattr(record, name) for name in names}
    for name in ("software_identity", "software_rule_id", "unanswered"):
        if not predicate[name]:
            del predicate[name]
    return statement("run-record/v1", "run-record", record.record_sha256, predicate)


def bundle(*exchanges) -> bytes:
    """A whole bundle of these (request, response) pairs and a checkpoint."""
    lines: list[bytes] = []
    previous = ""
    for request, response in exchanges:
        entry = {name: base64.b64encode(message.SerializeToString()).decode() for name, message in (("request", request), ("response", response))}
        entry["envelope"] = record_envelope(response.record)
        digest = hashlib.sha256(encode(entry)).hexdigest()
        link = {"index": len(lines) + 1, "previous_sha256": previous, "entry_sha256": digest}
        lines.append(encode({**entry, "link": statement("bundle-link/v1", "bundle-line", digest, link)}))
        previous = hashlib.sha256(lines[-1]).hexdigest()
    link = {"index": len(lines) + 1, "previous_sha256": previous, "checkpoint": True}
    if lines:
        link["lines"] = len(lines)
    lines.append(encode({"link": statement("bundle-link/v1", "bundle-line", previous, link)}))
    return b"\n".join(lines) + b"\n"
