#!/usr/bin/env python3
"""Verifies a bundle of signed run records: an example for whoever writes a verifier of their own.

    python3 verify.py --pub KEY.pub BUNDLE.jsonl

Written from docs/evidence-format.md alone; numbers in comments are its sections. Needs Python 3.11 and the package
`cryptography`. It holds one line at a time and a few words a session, so the size of a bundle does not matter.

It prints `ok …`, or the refusal as `class line N: reason`, and exits with 0 (every bundle verifies), 1 (one is
refused) or 2 (a file or the key cannot be used; nothing was decided).

What ok does not say: that the file was not cut back to an earlier checkpoint, that every call is in it, or that the
machine that ran the code told the truth. See section 10.
"""

from __future__ import annotations

import argparse
import base64
import binascii
import collections
import hashlib
import itertools
import re
import sys
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

MAX_LINE = 64 << 20  # bytes, its newline included
MAX_SIGNATURES = 64  # of one envelope
MAX_JSON_DEPTH = 64
MAX_OPEN_MESSAGES = 100  # protobuf messages and groups inside each other
MAX_KEY_FILE = 64 << 10
HEX_DIGEST = re.compile("[0-9a-f]{64}")


class Refusal(Exception):
    """The bundle does not verify: a class of section 9.2 and a reason for people."""

    def __init__(self, cls: str, reason: str):
        super().__init__(cls, reason)
        self.cls, self.reason, self.line = cls, reason, 0  # 0: no line

    def __str__(self) -> str:
        return f"{self.cls}{f' line {self.line}' if self.line else ''}: {self.reason}"


class BadKey(Exception):
    """The key file cannot be used. No verdict on any bundle."""


class Broken(Exception):
    """A message or a JSON text that does not read."""


def require(condition: Any, cls: str, reason: str) -> None:
    if not condition:
        raise Refusal(cls, reason)


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def unbase64(text: str) -> bytes | None:
    """Canonical base64 or nothing: decode, encode again, compare."""
    try:
        data = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return None
    return data if base64.b64encode(data).decode() == text else None


# ---------------------------------------------------------------- digests (2)

# The fields of each digest in order. `a{b_c b_d}` is a group: the count of list a, then b_c and b_d of each element,
# which are the element's c and d, or the element itself.
STREAMS = "exit_code timed_out stdout stderr stdout_truncated stderr_truncated"
STEP = " ".join("step_" + name for name in ["command", *STREAMS.split()])
FILES = "files{file_path file_content}"
REQUEST_FORMS = {
    "": "",
    "javascript": "code grant_profile",
    "project": f"grant_profile {FILES} steps{{step_command}} artifacts{{artifact_path}}",
    "module": "model end_time step rows{row_values}",
    "cell": f"language code {FILES}",
}
RESULT_FORMS = {
    "": "",
    "javascript": STREAMS,
    "project": f"outcome outcome_detail artifacts_truncated steps{{{STEP}}} artifacts{{artifact_path artifact_content}}",
    "module": "outcome outcome_detail width stdout stderr runs{run_status run_outputs}",
    "cell": f"{STREAMS} interpreter_started interpreter_ended",
}
RECORD_V1 = """request_sha256 result_sha256 provider isolation environment policy
    started_unix_ms ended_unix_ms session sequence previous_sha256"""
RECORD_V2 = RECORD_V1.replace("policy", "policy software_identity software_rule_id")
RECORD_V3 = RECORD_V2.replace("result_sha256", "result_sha256 unanswered")
RECORD_FORMS = {1: RECORD_V1, 2: RECORD_V2, 3: RECORD_V3}


def fields(form: str, message: dict) -> Iterator[tuple[str, Any]]:
    for name, group in re.findall(r"(\w+)(?:{(.*?)})?", form):
        yield name, len(message[name]) if group else message[name]
        for element in message[name] if group else []:
            for field in group.split():
                yield field, element[field.split("_", 1)[1]] if isinstance(element, dict) else element


def digest(domain: str, *parts: Iterable[tuple[str, Any]]) -> str:
    """SHA-256 over the length-prefixed encoding of 2.1. A double is here the 8 bytes of its bits."""
    hashed = hashlib.sha256()
    for value in itertools.chain([domain], *itertools.chain(*parts)):
        if isinstance(value, list):  # of doubles
            value = b"".join(value)
        if isinstance(value, bool):
            value = str(value).lower()
        if not isinstance(value, bytes):
            value = str(value).encode()
        hashed.update(len(value).to_bytes(8, "big") + value)
    return hashed.hexdigest()


def request_digest(request: dict) -> str:
    form, version = "protocol minimum_isolation timeout_ms", 1
    if request["protocol"] >= 2:
        form, version = form + " software_mode software_identities{software_identity}", 2
    rule = request["software_rule"] or blank("SoftwareRule")
    head = request | {"software_mode": rule["mode"], "software_identities": rule["identities"]}
    return digest(f"plimsoll.run-request.v{version}", fields(form, head), payload_fields(REQUEST_FORMS, request))


def result_digest(response: dict) -> str:
    return digest("plimsoll.run-result.v1", payload_fields(RESULT_FORMS, response))


def payload_fields(forms: dict[str, str], message: dict) -> Iterator[tuple[str, Any]]:
    kind = message["oneof"]
    yield "kind", kind
    yield from fields(forms[kind], message.get(kind, {}))


def record_digest(record: dict) -> str:
    version = record["version"]
    return digest(f"plimsoll.run-record.v{version}", fields(RECORD_FORMS[version], record))


# ---------------------------------------------------------------- stored messages (3)

SCHEMA = """
RunRequest: 1 protocol uint32, 2 minimum_isolation string, 3 trace_id string, 4 timeout_ms int32,
  5 software_rule SoftwareRule | 10 javascript JavaScriptRun, 11 project ProjectRun, 12 module ModuleRun, 13 cell CellRun
SoftwareRule: 1 mode string, 2 identities string[]
JavaScriptRun: 1 code string, 2 grant_profile string
ProjectFile: 1 path string, 2 content string
ProjectRun: 1 files ProjectFile[], 2 steps string[], 4 artifacts string[], 5 grant_profile string
ModuleRow: 1 values double[]
ModuleRun: 1 model string, 2 rows ModuleRow[], 3 end_time double, 4 step double
CellRun: 1 language string, 2 code string, 3 files ProjectFile[]
RunResponse: 1 sandbox string, 2 isolation string, 3 duration_ms int64, 4 record RunRecord, 5 software_identity string,
  6 environment string | 10 javascript JavaScriptResult, 11 project ProjectResult, 12 module ModuleResult,
  13 cell CellResult
RunRecord: 1 version uint32, 2 request_sha256 string, 3 result_sha256 string, 4 provider string, 5 isolation string,
  6 environment string, 7 policy string, 8 started_unix_ms int64, 9 ended_unix_ms int64, 10 session string,
  11 sequence uint64, 12 previous_sha256 string, 13 record_sha256 string, 14 software_identity string,
  15 software_rule_id string, 16 unanswered string
JavaScriptResult: 1 stdout bytes, 2 stderr bytes, 3 exit_code int32, 4 timed_out bool, 8 stdout_truncated bool,
  9 stderr_truncated bool, 10 advice AdviceFinding[]
StepResult: 1 command string, 2 stdout bytes, 3 stderr bytes, 4 exit_code int32, 5 timed_out bool, 6 duration_ms int64,
  7 stdout_truncated bool, 8 stderr_truncated bool
Artifact: 1 path string, 2 content bytes
ProjectResult: 1 steps StepResult[], 3 outcome enum, 4 artifacts Artifact[], 6 outcome_detail string,
  7 artifacts_truncated bool, 8 advice AdviceFinding[]
ModuleRowResult: 1 status int32, 2 outputs double[]
ModuleResult: 1 runs ModuleRowResult[], 2 width int32, 5 outcome enum, 6 outcome_detail string, 7 stdout bytes,
  8 stderr bytes
CellResult: 1 stdout bytes, 2 stderr bytes, 3 exit_code int32, 4 timed_out bool, 5 stdout_truncated bool,
  6 stderr_truncated bool, 7 interpreter_started bool, 8 interpreter_ended bool
AdviceFinding: 1 pattern string, 2 severity string, 3 remedy string, 4 method string, 5 route string, 6 detail string,
  7 suggested_method string, 8 suggested_route string, 9 extra_calls int32, 10 added_latency_ms int64, 11 bytes_moved int64
"""


# {message: {number: (name, type, repeated, in the oneof)}}
MESSAGES = {
    name: {
        int(number): (field, kind, bool(many), in_oneof)
        for part, in_oneof in zip(body.split("|"), (False, True))
        for number, field, kind, many in re.findall(r"(\d+) (\w+) (\w+)(\[\])?", part)
    }
    for name, body in re.findall(r"^(\w+): (.*(?:\n  .*)*)", SCHEMA, re.MULTILINE)
}
ZERO = {"string": "", "bytes": b"", "bool": False, "double": bytes(8)}


def blank(name: str) -> dict:
    """A message of zero values. `oneof` names the member that is set; doubles are their 8 bytes, big-endian."""
    message: dict = {"oneof": ""}
    for field, kind, many, in_oneof in MESSAGES[name].values():
        if not in_oneof:
            message[field] = [] if many else None if kind in MESSAGES else ZERO.get(kind, 0)
    return message


class ProtobufReader:
    """Reads one message, which may be inside others, by the rules of section 3."""

    def __init__(self, data: bytes, depth: int = 0):
        self.data, self.at, self.depth = data, 0, depth

    def message(self, name: str, message: dict) -> dict:
        """Reads all of the data into `message`, over what it holds already."""
        while self.at < len(self.data):
            number, wire = self.tag()
            if number in MESSAGES[name]:
                self.field(message, *MESSAGES[name][number], wire)
            else:
                self.skip(number, wire, self.depth)
        return message

    def field(self, message: dict, name: str, kind: str, many: bool, in_oneof: bool, wire: int) -> None:
        if many and kind == "double" and wire == 2:  # packed
            packed = self.chunk()
            if len(packed) % 8:
                raise Broken("packed doubles are cut")
            message[name] += [packed[at : at + 8][::-1] for at in range(0, len(packed), 8)]
            return
        if wire != (1 if kind == "double" else 2 if kind in ("string", "bytes", *MESSAGES) else 0):
            raise Broken(f"{name} has wire type {wire}")
        if kind in MESSAGES:
            if in_oneof and message["oneof"] != name:
                message.pop(message["oneof"], None)
                message["oneof"] = name
            into = None if many else message.get(name)
            value = ProtobufReader(self.chunk(), self.depth + 1).message(kind, into or blank(kind))
        elif kind == "string":
            value = self.chunk().decode("utf-8")
        elif kind == "bytes":
            value = self.chunk()
        elif kind == "double":
            value = self.take(8)[::-1]
        else:
            value = narrowed(kind, self.varint())
        if many:
            message[name].append(value)
        else:
            message[name] = value

    def tag(self) -> tuple[int, int]:
        value = self.varint()
        if value >= 1 << 32 or value < 8 or value & 7 > 5:
            raise Broken("a tag is not valid")
        return value >> 3, value & 7

    def varint(self) -> int:
        value = 0
        for n in range(10):
            byte = self.take(1)[0]
            if n == 9 and byte > 1:
                raise Broken("a varint is too long")
            value |= (byte & 0x7F) << (7 * n)
            if byte < 0x80:
                break
        return value

    def take(self, length: int) -> bytes:
        if length > len(self.data) - self.at:
            raise Broken("a value is cut")
        self.at += length
        return self.data[self.at - length : self.at]

    def chunk(self) -> bytes:
        return self.take(self.varint())

    def skip(self, number: int, wire: int, depth: int) -> None:
        """Steps over a field that the schema does not have."""
        if wire == 0:
            self.varint()
        elif wire == 2:
            self.chunk()
        elif wire in (1, 5):
            self.take(8 if wire == 1 else 4)
        else:
            inner = (number, wire)
            while wire == 3 and depth < MAX_OPEN_MESSAGES and (inner := self.tag())[1] != 4:
                self.skip(*inner, depth + 1)
            if wire == 4 or inner != (number, 4):
                raise Broken("groups nest too deep, or one ends that was not begun")


def narrowed(kind: str, bits: int) -> int | bool:
    if kind == "bool":
        return bits != 0
    size = 8 if kind.endswith("64") else 4
    low = (bits & ((1 << 8 * size) - 1)).to_bytes(size, "big")
    return int.from_bytes(low, "big", signed=not kind.startswith("u"))


def stored(name: str, data: bytes, member: str) -> dict:
    require(data, "stored", f"no {member} is stored")
    try:
        return ProtobufReader(data).message(name, blank(name))
    except (Broken, UnicodeDecodeError) as error:
        raise Refusal("stored", f"the {member} does not read: {error}") from None


# ---------------------------------------------------------------- checks on a record (4)

TIERS = ["none", "process", "container", "kernel", "vm"]
CODES = set(
    "canceled unknown invalid_argument deadline_exceeded not_found already_exists permission_denied resource_exhausted "
    "failed_precondition aborted out_of_range unimplemented internal unavailable data_loss unauthenticated".split()
)


def read_rule(message: dict | None) -> tuple[list[str], str]:
    """The identities of a valid software rule (4.1), none for no rule, and the rule's ID."""
    mode, identities = (message["mode"], message["identities"]) if message else ("", [])
    most = {"": 0, "exact": 1, "approved": 32}.get(mode, -1)
    well_formed = all(re.fullmatch(r"[A-Za-z0-9._:/@+-]{1,256}", identity) for identity in identities)
    once = len(set(identities)) == len(identities)
    valid = min(most, 1) <= len(identities) <= most and well_formed and once
    require(valid, "stored", "the request's software rule is not valid")
    several = "approved:sha256:" + sha256("\0".join(sorted(identities)).encode())
    return identities, "" if not identities else several if len(identities) > 1 else "exact:" + identities[0]


def same(record: dict, field: str, value: Any) -> None:
    require(record[field] == value, "stored", f"the record's {field} is not that of the stored messages")


def check_answered(request: dict, response: dict) -> dict:
    """4.3; gives the response's record."""
    require(request["oneof"] == response["oneof"] != "", "stored", "the result is of another kind than the request")
    rule, record = read_rule(request["software_rule"]), response["record"]
    require(record is not None, "stored", "the response has no record")
    version = record["version"]
    require(version in (1, 2), "stored", "the response's record has another version")
    require(version == 2 or request["protocol"] < 2, "stored", "a version 1 record for a later protocol")
    if version == 1:
        same(record, "software_identity", "")
        same(record, "software_rule_id", "")
    same(record, "unanswered", "")
    same(record, "request_sha256", request_digest(request))
    same(record, "result_sha256", result_digest(response))
    same(record, "provider", response["sandbox"])
    same(record, "isolation", response["isolation"])
    if version == 2:
        same(record, "environment", response["environment"])
        same(record, "software_identity", response["software_identity"])
        check_software(record, *rule)
    check_own(record, request)
    return record


def check_unanswered(request: dict, record: dict) -> None:
    """4.4."""
    same(record, "result_sha256", "")
    require(record["unanswered"] in CODES, "stored", "unanswered is no status code")
    same(record, "request_sha256", request_digest(request))
    check_software(record, *read_rule(request["software_rule"]))
    check_own(record, request)


def check_software(record: dict, identities: list[str], rule_id: str) -> None:
    same(record, "software_rule_id", rule_id)
    allowed = not identities or record["software_identity"] in identities
    require(allowed, "stored", "the rule does not allow the software")


def check_own(record: dict, request: dict) -> None:
    same(record, "record_sha256", record_digest(record))
    tier, floor = record["isolation"], request["minimum_isolation"]
    met = floor == "" or (floor in TIERS and tier in TIERS[TIERS.index(floor) :])
    require(met, "stored", "the tier does not meet the floor")


# ---------------------------------------------------------------- keys and signatures (5)

P = 2**255 - 19
L = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, -1, P) % P
SMALL_ORDER_8 = 0x05FC536D880238B13933C6D305ACDFD5F098EFF289F4C345B027B2C28F95E826
SMALL_ORDER_Y = {0, 1, P - 1, SMALL_ORDER_8, P - SMALL_ORDER_8}
PUBLIC_DER = bytes.fromhex("302a300506032b6570032100")


def point(encoded: bytes) -> tuple[int, int] | None:
    """The point of a canonical encoding; nothing for any other 32 bytes."""
    number = int.from_bytes(encoded, "little")
    sign, y = number >> 255, number & ((1 << 255) - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, -1, P) % P  # D·y² + 1 is never 0: −D⁻¹ is no square
    x = pow(square, (P + 3) // 8, P)
    if x * x % P != square:
        x = x * pow(2, (P - 1) // 4, P) % P
    if x * x % P != square or (x == 0 and sign):
        return None
    return (P - x if x & 1 != sign else x, y)


def add(a: tuple[int, int], b: tuple[int, int]) -> tuple[int, int]:
    (x1, y1), (x2, y2) = a, b
    t = D * x1 * x2 * y1 * y2
    return (x1 * y2 + x2 * y1) * pow(1 + t, -1, P) % P, (y1 * y2 + x1 * x2) * pow(1 - t, -1, P) % P


def multiply(factor: int, a: tuple[int, int]) -> tuple[int, int]:
    result = (0, 1)
    while factor:
        if factor & 1:
            result = add(result, a)
        a, factor = add(a, a), factor >> 1
    return result


class PublicKey:
    """A key that signatures are checked under: a canonical point of order L."""

    def __init__(self, raw: bytes):
        a = point(raw) if len(raw) == 32 else None
        if a is None or a == (0, 1) or multiply(L, a) != (0, 1):
            raise BadKey("the public key is a weak or malformed point")
        self.id = sha256(PUBLIC_DER + raw)
        self._key = Ed25519PublicKey.from_public_bytes(raw)

    @classmethod
    def from_pem(cls, file: bytes) -> PublicKey:
        try:
            text = file.decode("utf-8") if len(file) <= MAX_KEY_FILE else ""
        except UnicodeDecodeError:
            text = ""
        begun = re.findall(r"^-----BEGIN .*-----\s*$", text, re.MULTILINE)
        blocks = re.findall(r"^-----BEGIN (.*)-----\s*$(.*?)^-----END \1-----\s*$", text, re.MULTILINE | re.DOTALL)
        labels = [label for label, _ in blocks]
        if any(label.endswith("PRIVATE KEY") for label in labels):
            raise BadKey("the file holds a private key where a public one belongs")
        if len(begun) != len(blocks) or labels[:1] != ["PUBLIC KEY"] or labels.count("PUBLIC KEY") != 1:
            raise BadKey("the key file does not hold exactly one whole PUBLIC KEY block, first")
        der = unbase64("".join(blocks[0][1].split()))
        if der is None or len(der) != 44 or not der.startswith(PUBLIC_DER):
            raise BadKey("the PEM block does not hold an Ed25519 key")
        return cls(der[12:])

    def verifies(self, message: bytes, signature: bytes) -> bool:
        """The table of section 5. The library compares encodings of S·B − k·A, but takes any R for that."""
        y = int.from_bytes(signature[:32], "little") & ((1 << 255) - 1)
        s = int.from_bytes(signature[32:], "little")
        try:
            self._key.verify(signature, message)
        except InvalidSignature:
            return False
        return s < L and y < P and y not in SMALL_ORDER_Y


# ---------------------------------------------------------------- JSON (7.1, 7.2)

TOKEN = re.compile(
    r"""[ \t\n\r]*(?:
      (?P<sign>[][{}:,]) | (?P<word>true|false|null)
    | (?P<integer>0|-?[1-9][0-9]{0,19})(?![0-9.eE])
    | (?P<number>-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | "(?P<string>[^"\\\x00-\x1f]*(?:\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4})[^"\\\x00-\x1f]*)*)"
    )[ \t\n\r]*""",
    re.VERBOSE,
)
SHORT = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
WORDS = {"true": True, "false": False, "null": None}


class JsonReader:
    """Members stand once, no escape is half a surrogate pair, depth is bounded, nothing follows the value."""

    def __init__(self, text: str):
        self.text, self.at = text, 0

    def document(self) -> Any:
        value = self.value(*self.token(), 1)
        if self.at != len(self.text):
            raise Broken("data follows the value")
        return value

    def token(self) -> tuple[str, str]:
        token = TOKEN.match(self.text, self.at)
        if token is None:
            raise Broken(f"not JSON at character {self.at}")
        self.at = token.end()
        return token.lastgroup, token[token.lastgroup]

    def value(self, kind: str, text: str, depth: int) -> Any:
        if kind != "sign":
            # No member may be a number that is no plain integer, so such a one needs no value.
            return {"string": unescaped, "integer": int, "number": lambda _: None, "word": WORDS.get}[kind](text)
        if depth > MAX_JSON_DEPTH or text not in "{[":
            raise Broken("values nest too deep, or one is missing")
        found: Any = {} if text == "{" else []
        end = ("sign", "}" if text == "{" else "]")
        token = self.token()
        while token != end:
            if found:
                if token != ("sign", ","):
                    raise Broken("a comma is missing")
                token = self.token()
            if isinstance(found, list):
                found.append(self.value(*token, depth + 1))
            else:
                name = unescaped(token[1])
                if token[0] != "string" or name in found or self.token() != ("sign", ":"):
                    raise Broken("a member has no name, or is repeated")
                found[name] = self.value(*self.token(), depth + 1)
            token = self.token()
        return found


def unescaped(text: str) -> str:
    if "\\" not in text:
        return text
    text = re.sub(r"\\(?:u(....)|(.))", lambda m: chr(int(m[1], 16)) if m[1] else SHORT.get(m[2], m[2]), text)
    try:  # joins surrogate pairs and refuses halves
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        raise Broken("an escape stands for half a surrogate pair") from None


MUST_ESCAPE = re.compile('["\\\\<>&\u2028\u2029\x00-\x1f]')
ESCAPED = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}


def quoted(text: str) -> str:
    """A string as statements and lines write it (7.1)."""
    return '"' + MUST_ESCAPE.sub(lambda m: ESCAPED.get(m[0]) or f"\\u{ord(m[0]):04x}", text) + '"'


# ---------------------------------------------------------------- envelopes (6)


def open_envelope(envelope: dict, key: PublicKey, is_link: bool = False) -> bytes:
    """Checks an envelope as a line holds it and gives its payload."""
    payload = unbase64(envelope["payload"])
    require(payload is not None, "statement", "the payload is not canonical base64")
    kind = envelope["payloadType"].encode()
    pae = b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)
    signatures = envelope["signatures"] or []
    require(any(counts(signature, key, pae) for signature in signatures), "signature", "no signature by the key verifies")
    require(envelope["payloadType"] == "application/vnd.in-toto+json", "statement", "the payload type is another")
    if is_link:
        one = len(signatures) == 1 and signatures[0]["keyid"] == key.id
        require(one, "statement", "a link has not exactly one signature that names the key")
    return payload


def counts(signature: dict, key: PublicKey, pae: bytes) -> bool:
    if signature["keyid"] not in ("", key.id):
        return False
    raw = unbase64(signature["sig"])
    return raw is not None and len(raw) == 64 and key.verifies(pae, raw)


# ---------------------------------------------------------------- statements (7)

TYPES = "https://plimsollmark.github.io/plimsoll/"
RECORD, CLOSE, LINK = TYPES + "run-record/v1", TYPES + "session-close/v1", TYPES + "bundle-link/v1"
U32, U64, I64 = range(1 << 32), range(1 << 64), range(-(1 << 63), 1 << 63)
RECORD_TYPES = {field: str for field, *_ in MESSAGES["RunRecord"].values()}
RECORD_TYPES |= {"version": U32, "started_unix_ms": I64, "ended_unix_ms": I64, "sequence": U64}
CLOSE_TYPES = {"session": str, "calls": U64, "last_record_sha256": str}
LINK_TYPES = {"index": U64, "previous_sha256": str, "entry_sha256": str, "checkpoint": bool, "lines": U64}
PREDICATES = {RECORD: ("run-record", RECORD_TYPES), CLOSE: ("session", CLOSE_TYPES), LINK: ("bundle-line", LINK_TYPES)}


def typed(members: Any, types: dict[str, Any], where: str) -> dict:
    """An object with no other members than `types` names, those that are absent with their zero values."""
    require(type(members) is dict, "statement", f"{where} is not an object")
    values = {}
    for name, kind in types.items():
        is_number = isinstance(kind, range)
        value = members.get(name, 0 if is_number else kind())
        fits = type(value) is int and value in kind if is_number else type(value) is kind
        require(fits, "statement", f"{where}.{name} is of another type or out of range")
        values[name] = value
    unknown = members.keys() - types.keys()
    require(not unknown, "statement", f"{where} has the unknown member {ascii(min(unknown, default=''))}")
    return values


def read_statement(payload: bytes) -> dict:
    try:
        tree = JsonReader(payload.decode("utf-8")).document()
    except (UnicodeDecodeError, Broken) as error:
        raise Refusal("statement", f"the payload is not strict JSON: {error}") from None
    predicate = tree.pop("predicate", {}) if type(tree) is dict else None
    statement = typed(tree, {"_type": str, "subject": list, "predicateType": str}, "payload")
    statement["subject"] = [typed(s, {"name": str, "digest": dict}, "subject") for s in statement["subject"]]
    return statement | {"predicate": predicate}


def read_predicate(statement: dict, expected: str) -> dict:
    """The predicate of one of the three statements, with everything that section 7.3 checks."""
    subject_name, types = PREDICATES[expected]
    require(statement["_type"] == "https://in-toto.io/Statement/v1", "statement", "the statement type is another")
    require(statement["predicateType"] == expected, "statement", "the predicate type is another")
    require(len(statement["subject"]) == 1, "statement", "the statement has not exactly one subject")
    subject = statement["subject"][0]
    require(subject["name"] == subject_name, "statement", "the subject's name is another")
    subject_digest = subject["digest"].get("sha256")
    alone = type(subject_digest) is str and len(subject["digest"]) == 1
    require(alone, "statement", "the subject has not the sha256 digest alone")
    value = typed(statement["predicate"], types, "predicate")
    if expected == RECORD:
        version, own = value["version"], value["record_sha256"]
        require(version in RECORD_FORMS, "statement", "the record version is unknown")
        require((value["unanswered"] != "") == (version == 3), "statement", "unanswered does not fit the version")
        no_software = value["software_identity"] == value["software_rule_id"] == ""
        require(version != 1 or no_software, "statement", "a version 1 record states software")
        require(own == record_digest(value), "statement", "the record's digest is not that of its fields")
    elif expected == CLOSE:
        own = value["session"]
        require(HEX_DIGEST.fullmatch(own), "statement", "the session is not a hex digest")
    else:
        own = value["previous_sha256"] if value["checkpoint"] else value["entry_sha256"]
    require(subject_digest == own, "statement", "the subject's digest is another")
    return value


# ---------------------------------------------------------------- lines (8)


class Line:
    """A line in its exact encoding: its messages, envelopes and digests."""

    def __init__(self, data: bytes):
        try:
            text = data.decode("utf-8")
            members = JsonReader(text).document()
        except (UnicodeDecodeError, Broken) as error:
            raise Refusal("line", f"not strict JSON in UTF-8: {error}") from None
        in_order(members, "request", "response", "envelope", "link", some=True)
        for name in members.keys() & {"request", "response"}:
            value = members[name]
            require(type(value) is str and value != "", "line", f"{name} is no text or empty")
            require(unbase64(value) is not None, "line", f"{name} is not canonical base64")
        envelopes = [members[name] for name in ("envelope", "link") if name in members]
        for envelope in envelopes:
            in_order(envelope, "payloadType", "payload", "signatures")
            require(type(envelope["signatures"]) in (list, type(None)), "line", "an envelope has no list of signatures")
            for signature in envelope["signatures"] or []:
                in_order(signature, "keyid", "sig")
            texts = [envelope["payloadType"], envelope["payload"]]
            texts += [value for signature in envelope["signatures"] or [] for value in signature.values()]
            require(all(type(value) is str for value in texts), "line", "an envelope has a member of another type")
        require(written(members) == text, "line", "the line is not in its exact encoding")
        many = any(len(envelope["signatures"] or []) > MAX_SIGNATURES for envelope in envelopes)
        require(not many, "signature", "an envelope has more than 64 signatures")

        self.request, self.response = (name in members and unbase64(members[name]) for name in ("request", "response"))
        self.envelope, self.link = members.get("envelope"), members.pop("link", None)
        self.digest = sha256(data)
        self.content_digest = sha256(written(members).encode()) if members else None


def in_order(value: Any, *names: str, some: bool = False) -> None:
    """The value is an object of these members in this order, all of them or only some."""
    wanted = [name for name in names if type(value) is dict and (name in value or not some)]
    require(type(value) is dict and list(value) == wanted, "line", "an object has not the members of its form, in order")


def written(value: Any) -> str:
    """A line's object, or a value in it, as it must be written."""
    if isinstance(value, dict):
        return "{" + ",".join(f"{quoted(name)}:{written(member)}" for name, member in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",".join(written(element) for element in value) + "]"
    return "null" if value is None else quoted(value)


# ---------------------------------------------------------------- verification (9)


class Verification:
    """The pass of 9.1, and what it found."""

    def __init__(self, key: PublicKey):
        self.key = key
        self.lines = self.records = self.single_runs = 0
        self.last_digest, self.at_checkpoint = "", False
        self.sessions: dict[str, dict] = collections.defaultdict(lambda: {"calls": 0, "last": "", "closed": False})

    def run(self, file: BinaryIO) -> Verification:
        """Takes every line; gives itself as the report, or raises Refusal."""
        try:
            while raw := file.readline(MAX_LINE):
                self.lines += 1
                self.line(raw)
            require(self.at_checkpoint, "incomplete", "the bundle does not end with a checkpoint")
            for name, session in self.sessions.items():
                require(session["closed"], "chain", f"session {name[:12]}… has no close")
        except Refusal as refusal:
            refusal.line = self.lines
            raise
        return self

    def line(self, raw: bytes) -> None:
        require(raw.endswith(b"\n"), "line", "the line has no newline, or is over 64 MiB")
        line = Line(raw[:-1])
        require(line.link is not None, "link", "the line has no link")
        link = read_predicate(read_statement(open_envelope(line.link, self.key, is_link=True)), LINK)
        require(link["index"] == self.lines, "link", f"the link names position {link['index']}")
        require(link["previous_sha256"] == self.last_digest, "link", "the link does not follow the line before")
        if link["checkpoint"]:
            require(link["entry_sha256"] == "", "link", "a checkpoint states the digest of an entry")
            require(link["lines"] == self.lines - 1, "link", "a checkpoint states another number of lines")
            require(line.content_digest is None, "link", "a checkpoint is not alone on its line")
        else:
            require(link["lines"] == 0, "link", "an entry's link states a number of lines")
            require(line.content_digest == link["entry_sha256"], "link", "the content is not what the link signs")
            self.entry(line)
        self.last_digest, self.at_checkpoint = line.digest, link["checkpoint"]

    def entry(self, line: Line) -> None:
        require(line.envelope is not None, "signature", "the entry has no envelope")
        statement = read_statement(open_envelope(line.envelope, self.key))
        if statement["predicateType"] == CLOSE:
            close = read_predicate(statement, CLOSE)
            require(not line.request and not line.response, "stored", "a session close stores a message")
            session = self.sessions[close["session"]]
            require(not session["closed"], "chain", "the session is closed twice")
            require(close["calls"] == session["calls"], "chain", "the close states another number of calls")
            require(close["last_record_sha256"] == session["last"], "chain", "the close states another last record")
            session["closed"] = True
            return
        record = read_predicate(statement, RECORD)
        require(record["version"] != 1, "stored", "a version 1 record stands in a bundle")
        request = stored("RunRequest", line.request, "request")
        if record["version"] == 3:
            require(not line.response, "stored", "an unanswered call stores a response")
            check_unanswered(request, record)
        else:
            inner = check_answered(request, stored("RunResponse", line.response, "response"))
            for field in record:
                require(inner[field] == record[field], "stored", f"the stored record's {field} is not the signed one")
        self.chain(record)
        self.records += 1

    def chain(self, record: dict) -> None:
        sequence, previous = record["sequence"], record["previous_sha256"]
        if record["session"] == "":
            require(record["version"] != 3, "chain", "an unanswered call belongs to no session")
            require(sequence == 0 and previous == "", "chain", "a single run has a place in a chain")
            self.single_runs += 1
            return
        require(HEX_DIGEST.fullmatch(record["session"]), "chain", "the session is not a hex digest")
        session = self.sessions[record["session"]]
        require(not session["closed"], "chain", "a call stands after its session's close")
        require(sequence == session["calls"] + 1, "chain", "the record is not the session's next call")
        require(previous == session["last"], "chain", "the record does not follow the session's last one")
        session["calls"], session["last"] = sequence, record["record_sha256"]

    def __str__(self) -> str:
        sessions = "".join(f"; session {name[:12]}…, {s['calls']} calls, closed" for name, s in self.sessions.items())
        counts = f"{self.lines} lines ({self.records} records)"
        return f"{counts} signed by key {self.key.id}: {self.single_runs} single runs{sessions}"


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description="Verifies bundles of signed run records.")
    parser.add_argument("--pub", required=True, metavar="FILE", help="the public key, PEM")
    parser.add_argument("--allow-empty", action="store_true", help="accept a bundle that holds no call")
    parser.add_argument("bundle", nargs="+")
    options = parser.parse_args(arguments)
    exit_code = 0
    try:
        with open(options.pub, "rb") as file:
            key = PublicKey.from_pem(file.read(MAX_KEY_FILE + 1))
        for path in options.bundle:
            prefix = f"{path}: " if len(options.bundle) > 1 else ""
            with open(path, "rb") as file:
                try:
                    report = Verification(key).run(file)
                    require(report.records > 0 or options.allow_empty, "empty", "the bundle verifies and holds no call")
                    print(f"{prefix}ok {report}")
                except Refusal as refusal:
                    print(f"{prefix}{refusal}")
                    exit_code = 1
    except (OSError, BadKey) as error:
        print(f"cannot decide: {error}", file=sys.stderr)
        return 2
    return exit_code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
