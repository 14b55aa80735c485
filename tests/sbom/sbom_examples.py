"""The worked examples, and BOMs and bundles made from them without our own code."""

from __future__ import annotations

import base64
import hashlib
import json
import uuid
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FOLDER = Path(__file__).resolve().parents[2] / "testdata/sbom"
EXPECTED = json.loads((FOLDER / "expected.json").read_bytes())
PUB = FOLDER / "example.pub"
KEY_ID = EXPECTED["example.pub"]["keyid"]
SIGNER = Ed25519PrivateKey.from_private_bytes(bytes.fromhex(EXPECTED["example.pub"]["seed_hex"]))
SESSION = "5947d7c33d783f94b3b4c1a96ebc8991ed28f1b069b71e03376cba8caa98a720"
SINGLE, WHOLE_SESSION, RECEIPT = "1-single-run", "2-session", "3-pr-receipt"
NAMES = (SINGLE, WHOLE_SESSION, RECEIPT)
NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:plimsoll-attest:bom:1")


def bundle(name: str) -> Path:
    return FOLDER / f"{name}.bundle.jsonl"


def bom_file(name: str) -> Path:
    return FOLDER / f"{name}.cdx.json"


def bom(name: str) -> dict:
    return json.loads(bom_file(name).read_bytes())


def file_form(value: dict) -> bytes:
    """What this library's writer gives for the file form: sorted, two spaces, one final newline."""
    return (json.dumps(value, sort_keys=True, indent=2, ensure_ascii=False) + "\n").encode()


def compact(value: dict) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


def serial_of(value: dict) -> str:
    """The serial number a BOM's content gives."""
    rest = {name: member for name, member in value.items() if name != "serialNumber"}
    return f"urn:uuid:{uuid.uuid5(NAMESPACE, hashlib.sha256(compact(rest)).hexdigest())}"


def resealed(value: dict) -> bytes:
    return file_form({**value, "serialNumber": serial_of(value)})


def component(value: dict, reference: str) -> dict:
    return next(each for each in value["components"] if each["bom-ref"] == reference)


def attach(value: dict, reference: str, content: bytes) -> None:
    """Attaches other bytes, with the digest and size they have."""
    found = component(value, reference)
    found["data"][0]["contents"]["attachment"]["content"] = base64.b64encode(content).decode()
    found["hashes"][0]["content"] = hashlib.sha256(content).hexdigest()
    next(each for each in found["properties"] if each["name"] == "plimsoll:size")["value"] = str(len(content))


def attached(value: dict, reference: str) -> bytes:
    return base64.b64decode(component(value, reference)["data"][0]["contents"]["attachment"]["content"])


def signed(predicate_type: str, name: str, digest: str, predicate: dict) -> dict:
    """An envelope over a statement of one subject, signed with the examples' key."""
    subject = [{"name": name, "digest": {"sha256": digest}}]
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": subject, "predicateType": predicate_type, "predicate": predicate}
    payload = json.dumps(statement, separators=(",", ":")).encode()
    kind = "application/vnd.in-toto+json"
    pae = f"DSSEv1 {len(kind)} {kind} {len(payload)} ".encode() + payload
    signature = {"keyid": KEY_ID, "sig": base64.b64encode(SIGNER.sign(pae)).decode()}
    return {"payloadType": kind, "payload": base64.b64encode(payload).decode(), "signatures": [signature]}


def linked(lines: list[bytes]) -> bytes:
    """A bundle of these entries (lines without links) and a checkpoint."""
    out, previous = [], ""
    for index, entry in enumerate([*lines, b""], 1):
        content = hashlib.sha256(entry).hexdigest() if entry else ""
        predicate = {"index": index, "previous_sha256": previous, "entry_sha256": content, "checkpoint": not entry, "lines": 0 if entry else index - 1}
        link = json.dumps(signed("https://plimsollmark.github.io/plimsoll/bundle-link/v1", "bundle-line", content or previous, predicate), separators=(",", ":"))
        line = entry[:-1] + f',"link":{link}}}'.encode() if entry else f'{{"link":{link}}}'.encode()
        out.append(line + b"\n")
        previous = hashlib.sha256(line).hexdigest()
    return b"".join(out)


def entries(name: str) -> list[bytes]:
    """The lines of a bundle without their links and without checkpoints."""
    found = []
    for line in bundle(name).read_bytes().splitlines():
        head, _, _ = line.partition(b',"link":')
        if head != line:
            found.append(head + b"}")
    return found
