"""One bundle for each reason a line can be refused for: the fault stands alone, everything else is right."""

from __future__ import annotations

import base64
import json

from cli_tool import VECTORS
from opinion_both import verify
from opinion_forge import (
    FINGERPRINT,
    KEY_ID,
    Forge,
    b64,
    compact,
    encode,
    envelope,
    message,
    predicate_of,
    record_of,
    request,
    response_to,
    statement,
)

ZERO = "0" * 64


class Case:
    """A bundle and the refusal it gets. `at` is its line; `alone` says that the line refuses itself, whatever stands around it."""

    def __init__(self, cls: str, reason: str, bundle: bytes, at: int = 1, alone: bool = True):
        self.cls, self.reason, self.bundle, self.at, self.alone = cls, reason, bundle, at, alone

    def __repr__(self) -> str:
        return f"{self.cls}-{self.reason}"


def good() -> bytes:
    forge = Forge()
    forge.honest()
    forge.honest(trace_id="u")
    return forge.sealed()


def edited(old: bytes, new: bytes, line: int = 1) -> bytes:
    lines = good().splitlines(keepends=True)
    assert old in lines[line - 1], old
    lines[line - 1] = lines[line - 1].replace(old, new, 1)
    return b"".join(lines)


def exchange(asked=None, answer=None, inner=None, raw_request=None, raw_response=None, **fields) -> bytes:
    asked = asked or request()
    answer = answer or response_to(asked)
    record = record_of(asked, answer, **fields)
    answer = answer | {"record": record | (inner or {})}
    stored = (raw_request or (lambda raw: raw))(encode("RunRequest", asked)), (raw_response or (lambda raw: raw))(encode("RunResponse", answer))
    return Forge().call(stored[0] or None, stored[1] or None, predicate_of(record)).sealed()


def other_record() -> bytes:
    """The record in the stored answer is another one, whole in itself."""
    asked = request()
    answer = response_to(asked)
    return exchange(asked, answer, inner=record_of(asked, answer, policy="x"))


def unanswered(answer: bytes | None = None, close: bool = True, **fields) -> bytes:
    asked = request()
    record = record_of(asked, None, **({"session": FINGERPRINT, "sequence": 1} | fields))
    forge = Forge().call(asked, answer, predicate_of(record))
    if close:
        forge.close({"session": FINGERPRINT, "calls": 1, "last_record_sha256": record["record_sha256"]})
    return forge.sealed()


def session(*calls: tuple[int, int], close: dict | None = None, after: bool = False, twice: bool = False) -> bytes:
    forge, digests = Forge(), []
    for sequence, before in calls:
        digests.append(forge.honest(FINGERPRINT, sequence, digests[before] if before >= 0 else "")["record_sha256"])
    if close is not None:
        said = {"session": FINGERPRINT, "calls": len(calls), "last_record_sha256": digests[-1] if digests else ""} | close
        forge.close(said)
        if twice:
            forge.close(said)
    if after:
        forge.honest(FINGERPRINT, len(calls) + 1, digests[-1])
    return forge.sealed()


def payload(change) -> bytes:
    """A call whose signed statement is changed as an object."""
    asked = request()
    answer = response_to(asked)
    record = record_of(asked, answer)
    whole = statement(verify.RECORD, predicate_of(record))
    return Forge().call(asked, answer | {"record": record}, envelope(compact(change(whole) or whole))).sealed()


def spelled(change) -> bytes:
    """A call whose signed statement is changed as text."""
    asked = request()
    answer = response_to(asked)
    record = record_of(asked, answer)
    text = compact(statement(verify.RECORD, predicate_of(record)))
    changed = change(text)
    assert changed != text
    return Forge().call(asked, answer | {"record": record}, envelope(changed)).sealed()


def with_envelope(change) -> bytes:
    """A call whose envelope is changed; its link covers it as it is."""
    asked = request()
    answer = response_to(asked)
    record = record_of(asked, answer)
    whole = envelope(compact(statement(verify.RECORD, predicate_of(record))))
    return Forge().call(asked, answer | {"record": record}, change(whole)).sealed()


def put(name: str, value):
    def change(whole: dict) -> None:
        whole[name] = value

    return change


def in_predicate(name: str, value):
    def change(whole: dict) -> None:
        whole["predicate"][name] = value

    return change


def in_subject(name: str, value):
    def change(whole: dict) -> None:
        whole["subject"][0][name] = value

    return change


def linked(**changes) -> bytes:
    """A bundle of one call whose link states something else."""
    asked = request()
    answer = response_to(asked)
    record = record_of(asked, answer)
    return Forge().call(asked, answer | {"record": record}, predicate_of(record), **changes).sealed()


def out_of_place() -> bytes:
    """A second call whose link names another line before it."""
    forge = Forge()
    forge.honest()
    asked = request()
    answer = response_to(asked)
    record = record_of(asked, answer)
    return forge.call(asked, answer | {"record": record}, predicate_of(record), previous_sha256=ZERO).sealed()


def checkpoint(members: dict | None = None, **changes) -> bytes:
    forge = Forge()
    forge.honest()
    base = {"checkpoint": True, "lines": 1, "entry_sha256": None} if members else {}
    return forge.line(members or {}, base | changes).bytes()


def second_signature() -> bytes:
    line = json.loads(good().splitlines()[0])
    line["link"]["signatures"] *= 2
    return compact(line) + b"\n" + b"".join(good().splitlines(keepends=True)[1:])


def link_signature(change) -> bytes:
    lines = good().splitlines(keepends=True)
    line = json.loads(lines[0])
    line["link"]["signatures"][0] = change(line["link"]["signatures"][0])
    return b"".join([compact(line) + b"\n", *lines[1:]])


def cases() -> list[Case]:
    first = good().splitlines(keepends=True)[0]
    sig = json.loads(first)["envelope"]["signatures"][0]["sig"]
    made = [
        Case("line", "base64", edited(b'"request":"', b'"request":"*')),
        Case("line", "blank", b"\n" + good()),
        Case("line", "byte_order_mark", b"\xef\xbb\xbf" + good()),
        Case("line", "carriage_return", good().replace(b"\n", b"\r\n")),
        Case("line", "control_character", edited(b'"payloadType":"', b'"payloadType":"\x01')),
        Case("line", "empty_member", edited(first, b'{"request":""' + first[first.index(b',"response"') :])),
        Case("line", "member_order", edited(first, b'{"response":"AAAA","request":"AAAA"' + first[first.index(b',"envelope"') :])),
        Case("line", "missing_member", edited(f'"keyid":"{KEY_ID}",'.encode(), b"")),
        Case("line", "no_newline", good()[:-1], 3),
        Case("line", "not_exact", edited(b"application/", b"application\\/")),
        Case("line", "not_utf8", edited(b'"payloadType":"', b'"payloadType":"\xff')),
        Case("line", "repeated_member", edited(b'"payloadType":', b'"payloadType":"x","payloadType":')),
        Case("line", "space", edited(b'"envelope":', b'"envelope": ')),
        Case("line", "syntax", edited(b',"response"', b';"response"')),
        Case("line", "trailing_data", edited(b"\n", b"{}\n")),
        Case("line", "unknown_member", edited(b'{"request"', b'{"x":1,"request"')),
        Case("line", "url_safe", edited(b'"request":"', b'"request":"__--')),
        Case("line", "wrong_type", edited(b'"payloadType":"', b'"payloadType":7,"x":"')),
        Case("link", "checkpoint_entry", checkpoint(entry_sha256=ZERO), 2),
        Case("link", "checkpoint_lines", checkpoint(lines=5), 2),
        Case("link", "checkpoint_not_alone", checkpoint({"envelope": json.loads(first)["envelope"]}), 2),
        Case("link", "content", linked(entry_sha256=ZERO)),
        Case("link", "index", linked(index=7)),
        Case("link", "lines_on_entry", linked(lines=1)),
        Case("link", "missing", (VECTORS / "sessions-v1.jsonl").read_bytes()),
        Case("link", "previous", out_of_place(), 2, False),
        Case("signature", "encoded_twice", link_signature(lambda s: s | {"sig": b64(s["sig"].encode())})),
        Case("signature", "encoding", link_signature(lambda s: s | {"sig": s["sig"][:-4]})),
        Case("signature", "mismatch", link_signature(lambda s: s | {"sig": sig})),
        Case("signature", "none", with_envelope(lambda e: e | {"signatures": []})),
        Case("signature", "other_key", with_envelope(lambda e: e | {"signatures": [e["signatures"][0] | {"keyid": ZERO}]})),
        Case("signature", "too_many", with_envelope(lambda e: e | {"signatures": e["signatures"] * 65})),
        Case("signature", "url_safe", link_signature(lambda s: s | {"sig": "-_" + s["sig"][2:].replace("+", "-").replace("/", "_")})),
        Case("statement", "empty_key_id", link_signature(lambda s: s | {"keyid": ""})),
        Case("statement", "json", spelled(lambda t: b"\xff" + t)),
        Case("statement", "many_signatures", second_signature()),
        Case("statement", "not_integer", payload(in_predicate("started_unix_ms", 1.5))),
        Case("statement", "payload_base64", with_envelope(lambda e: e | {"payload": e["payload"] + "*"})),
        Case("statement", "payload_type", with_envelope(lambda e: envelope(base64.b64decode(e["payload"]), "text/plain"))),
        Case("statement", "payload_url_safe", with_envelope(lambda e: e | {"payload": "-_" + e["payload"][2:]})),
        Case("statement", "predicate_type", payload(put("predicateType", "https://example.com/v1"))),
        Case("statement", "record_digest", payload(in_predicate("policy", "x"))),
        Case("statement", "repeated_member", spelled(lambda t: t.replace(b'"_type":', b'"_type":"x","_type":'))),
        Case("statement", "session", Forge().close({"session": "x", "calls": 0, "last_record_sha256": ""}).sealed(), alone=False),
        Case("statement", "software_on_old", exchange(request(protocol=1), version=1, software_identity="x")),
        Case("statement", "statement_type", payload(put("_type", "x"))),
        Case("statement", "subject_count", payload(lambda w: w["subject"].append(w["subject"][0]))),
        Case("statement", "subject_digest", payload(in_subject("digest", {"sha256": ZERO}))),
        Case("statement", "subject_name", payload(in_subject("name", "x"))),
        Case("statement", "too_deep", payload(put("predicate", json.loads("[" * 70 + "]" * 70)))),
        Case("statement", "trailing_data", spelled(lambda t: t + b"{}")),
        Case("statement", "unanswered", exchange(unanswered="internal")),
        Case("statement", "unknown_member", payload(put("x", 1))),
        Case("statement", "version", exchange(version=4)),
        Case("statement", "wrong_type", payload(in_predicate("policy", 1))),
        Case("stored", "close_with_messages", Forge().close({"session": FINGERPRINT, "calls": 0, "last_record_sha256": ""}, {"request": b64(encode("RunRequest", request()))}).sealed(), alone=False),
        Case("stored", "isolation", exchange(request(minimum_isolation="vm"))),
        Case("stored", "mismatch", exchange(request_sha256=ZERO)),
        Case("stored", "no_record", exchange(raw_response=lambda raw: encode("RunResponse", response_to(request())))),
        Case("stored", "old_record", exchange(request(protocol=1), version=1)),
        Case("stored", "record_differs", other_record()),
        Case("stored", "request_decode", exchange(raw_request=lambda raw: raw[:-1])),
        Case("stored", "request_missing", exchange(raw_request=lambda raw: b"")),
        Case("stored", "response_decode", exchange(raw_response=lambda raw: raw + b"\0")),
        Case("stored", "response_missing", exchange(raw_response=lambda raw: b"")),
        Case("stored", "response_on_unanswered", unanswered(encode("RunResponse", response_to(request())))),
        Case("stored", "result_kind", exchange(request(), message("RunResponse", sandbox="docker", isolation="kernel", oneof="cell", cell=message("CellResult")))),
        Case("stored", "version", exchange(inner={"version": 3})),
        Case("chain", "calls", session((1, -1), close={"calls": 2}), 2, False),
        Case("chain", "closed", session((1, -1), close={}, after=True), 3, False),
        Case("chain", "empty", session(close={"calls": 1}), 1, False),
        Case("chain", "last", session((1, -1), close={"last_record_sha256": ZERO}), 2, False),
        Case("chain", "not_closed", session((1, -1)), 2, False),
        Case("chain", "previous", session((1, -1), (2, -1), close={}), 2, False),
        Case("chain", "second_close", session((1, -1), close={}, twice=True), 3, False),
        Case("chain", "sequence", session((1, -1), (3, 0), close={}), 2, False),
        Case("chain", "session", exchange(session="x", sequence=1)),
        Case("chain", "single_run", exchange(sequence=1)),
        Case("chain", "unanswered", unanswered(session="", sequence=0, close=False)),
        Case("incomplete", "empty", b"", 0, False),
        Case("incomplete", "no_checkpoint", b"".join(good().splitlines(keepends=True)[:2]), 2, False),
    ]
    return made
