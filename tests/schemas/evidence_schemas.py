"""What the evidence schemas say of a bundle, a statement or a request."""

from __future__ import annotations

import base64
import binascii
import functools
import json
from pathlib import Path

import jsonschema
from referencing import Registry, Resource

FOLDER = Path(__file__).resolve().parents[2] / "schemas/evidence"


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    found = {path.name: json.loads(path.read_bytes()) for path in FOLDER.glob("*.schema.json")}
    for schema in found.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in found.items())
    return jsonschema.Draft202012Validator(found[f"{name}.v1.schema.json"], registry=registry)


def fault(name: str, value: object) -> str:
    """What a schema has against a value; empty when nothing."""
    error = next(validator(name).iter_errors(value), None)
    return "" if error is None else f"{name}: {error.json_path}: {error.message[:200]}"


def fault_of_line(line: bytes) -> str:
    """What the schemas have against a line, its envelopes and their statements. What is no JSON is no matter of theirs."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return ""
    found = fault("bundle-line", value)
    if found:
        return found
    for member in ("envelope", "link"):
        if member in value:
            try:
                payload = json.loads(base64.b64decode(value[member]["payload"], validate=True))
            except (ValueError, binascii.Error, RecursionError):
                continue
            found = fault("statement", payload)
            if found:
                return f"{member} {found}"
    return ""


def fault_of_bundle(bundle: bytes) -> str:
    for number, line in enumerate(bundle.splitlines(), 1):
        found = fault_of_line(line)
        if found:
            return f"line {number}: {found}"
    return ""
