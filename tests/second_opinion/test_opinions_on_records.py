"""Stored messages and their records: protobuf read alike, and every check of section 4."""

from __future__ import annotations

from opinion_both import verify
from opinion_forge import (
    FINGERPRINT,
    Forge,
    compact,
    encode,
    envelope,
    message,
    predicate_of,
    record_of,
    request,
    response_to,
    seal,
    statement,
    varint,
    wire,
)

ZERO = "0" * 64


def exchange(
    asked: dict | None = None,
    answer: dict | None = None,
    *,
    inner: dict | None = None,
    spoil_request=lambda raw: raw,
    spoil_response=lambda raw: raw,
    spoil_payload=lambda raw: raw,
    **fields: object,
) -> bytes:
    """A whole bundle of one answered call. `fields` go over the record before it is sealed, `inner` over the stored
    copy of it afterwards; the others change bytes that are then signed and linked as they are."""
    asked = asked or request()
    answer = answer or response_to(asked)
    record = record_of(asked, answer, **fields)
    answer = answer | {"record": record | (inner or {})}
    payload = spoil_payload(compact(statement(verify.RECORD, predicate_of(record))))
    raw = spoil_request(encode("RunRequest", asked)), spoil_response(encode("RunResponse", answer))
    return Forge().call(*raw, envelope(payload)).sealed()


def unanswered(asked: dict | None = None, answer: bytes | None = None, **fields: object) -> bytes:
    """A whole bundle of a session whose one call gave no answer, and its close."""
    asked = asked or request()
    record = record_of(asked, None, **({"session": FINGERPRINT, "sequence": 1} | fields))
    forge = Forge().call(asked, answer, predicate_of(record))
    return forge.close({"session": FINGERPRINT, "calls": 1, "last_record_sha256": record["record_sha256"]}).sealed()


def test_protobuf_is_read_alike(agree):
    group = lambda number, body: wire(number, 3, body) + wire(number, 4, b"")
    nested = lambda depth: b"".join(wire(9, 3, b"") for _ in range(depth)) + b"".join(wire(9, 4, b"") for _ in range(depth))
    huge_tag = varint((1 << 29) << 3)
    appended = {
        "nothing": (b"", "ok"),
        "an unknown varint": (wire(99, 0, b"\x01"), "ok"),
        "an unknown fixed64": (wire(99, 1, bytes(8)), "ok"),
        "an unknown fixed32": (wire(99, 5, bytes(4)), "ok"),
        "an unknown length": (wire(99, 2, b"\xff\xfe"), "ok"),
        "an unknown group": (group(99, wire(1, 2, b"x") + wire(5, 0, b"\x01")), "ok"),
        "the unknown number 6": (wire(6, 2, b"x"), "ok"),
        "the largest number": (wire((1 << 29) - 1, 0, b"\x00"), "ok"),
        "a number too large": (huge_tag + b"\x00", "stored"),
        "number 0": (wire(0, 0, b"\x01"), "stored"),
        "number 0, a length": (b"\x02\x00", "stored"),
        "wire type 6": (b"\xfe\x01\x00", "stored"),
        "wire type 7": (b"\xff\x01\x00", "stored"),
        "a group not ended": (wire(99, 3, b""), "stored"),
        "a group ended by another number": (wire(99, 3, b"") + wire(98, 4, b""), "stored"),
        "a group end alone": (wire(99, 4, b""), "stored"),
        "groups crossed": (wire(98, 3, b"") + wire(99, 3, b"") + wire(98, 4, b"") + wire(99, 4, b""), "stored"),
        "100 groups deep": (nested(100), "ok"),
        "101 groups deep": (nested(101), "stored"),
        "a long tag": (varint(99 << 3, 5) + b"\x01", "ok"),
        "a longest tag": (varint(99 << 3, 10) + b"\x01", "ok"),
        "a tag of 11 bytes": (varint(99 << 3, 11) + b"\x01", "stored"),
        "a longest varint": (wire(99, 0, b"\xff" * 9 + b"\x01"), "ok"),
        "a varint over 64 bits": (wire(99, 0, b"\xff" * 9 + b"\x02"), "stored"),
        "a varint of 11 bytes": (wire(99, 0, b"\x80" * 10 + b"\x00"), "stored"),
        "a cut varint": (wire(99, 0, b"\x80"), "stored"),
        "a cut tag": (b"\x80", "stored"),
        "a cut fixed64": (wire(99, 1, bytes(7)), "stored"),
        "a cut fixed32": (wire(99, 5, bytes(3)), "stored"),
        "a cut length": (b"\x9a\x06\x05abc", "stored"),
        "a length over 2^63": (b"\x9a\x06" + varint((1 << 64) - 1), "stored"),
        "protocol again": (wire(1, 0, b"\x03"), "ok"),
        "protocol again, another": (wire(1, 0, b"\x02"), "stored"),
        "protocol in ten bytes": (wire(1, 0, varint(3, 10)), "ok"),
        "protocol with high bits": (wire(1, 0, varint(3 | 1 << 40)), "ok"),
        "protocol as length": (wire(1, 2, b"x"), "stored"),
        "protocol as fixed32": (wire(1, 5, b"\x03\0\0\0"), "stored"),
        "protocol as group": (group(1, b""), "stored"),
        "a trace ID again": (wire(3, 2, b"u"), "ok"),
        "a trace ID not UTF-8": (wire(3, 2, b"\xff"), "stored"),
        "a trace ID with a surrogate": (wire(3, 2, b"\xed\xa0\x80"), "stored"),
        "a trace ID over-long": (wire(3, 2, b"\xc0\xaf"), "stored"),
        "a trace ID as varint": (wire(3, 0, b"\x01"), "stored"),
        "an empty rule": (wire(5, 2, b""), "ok"),
        "an empty rule, unknown inside": (wire(5, 2, wire(9, 0, b"\x01")), "ok"),
        "a rule as varint": (wire(5, 0, b"\x00"), "stored"),
        "a rule cut inside": (wire(5, 2, b"\x0a\x05x"), "stored"),
        "a rule that reads on past its end": (wire(5, 2, b"\x0a\x03x") + b"yz", "stored"),
        "a group in a rule that ends past it": (wire(5, 2, wire(9, 3, b"")) + wire(9, 4, b""), "stored"),
        "99 groups deep in a rule": (wire(5, 2, nested(99)), "ok"),
        "100 groups deep in a rule": (wire(5, 2, nested(100)), "stored"),
        "an empty snippet, merged": (wire(10, 2, b""), "ok"),
        "the same code, merged": (wire(10, 2, wire(1, 2, b"1")), "ok"),
        "other code, merged": (wire(10, 2, wire(1, 2, b"2")), "stored"),
        "a project instead": (wire(11, 2, b""), "stored"),
        "a project, then the snippet again": (wire(11, 2, b"") + wire(10, 2, wire(1, 2, b"1")), "ok"),
        "a project, then an empty snippet": (wire(11, 2, b"") + wire(10, 2, b""), "stored"),
        "a project that does not read, then the snippet": (wire(11, 2, b"\x80") + wire(10, 2, wire(1, 2, b"1")), "stored"),
        "packed doubles cut, then the snippet": (
            wire(12, 2, wire(2, 2, wire(1, 2, bytes(7)))) + wire(10, 2, wire(1, 2, b"1")),
            "stored",
        ),
        "no timeout, said": (wire(4, 0, b"\x00"), "ok"),
        "a timeout of 2^32": (wire(4, 0, varint(1 << 32)), "ok"),
        "a timeout of -1": (wire(4, 0, varint((1 << 64) - 1)), "stored"),
    }
    cases = [(name, exchange(spoil_request=lambda raw, a=add: raw + a), cls) for name, (add, cls) in appended.items()]
    response_part = wire(10, 2, wire(2, 2, b""))
    on_response = {
        "response, an unknown field": (wire(99, 2, b"x"), "ok"),
        "response, another duration": (wire(3, 0, varint((1 << 64) - 1)), "ok"),
        "response, advice": (wire(10, 2, wire(10, 2, wire(1, 2, b"a") + wire(9, 0, b"\x01"))), "ok"),
        "response, advice not UTF-8": (wire(10, 2, wire(10, 2, wire(8, 2, b"\xff"))), "stored"),
        "response, advice of another type": (wire(10, 2, wire(10, 0, b"\x01")), "stored"),
        "response, merged with nothing": (response_part, "ok"),
        "response, timed_out true in ten bytes": (wire(10, 2, wire(4, 0, b"\xff" * 9 + b"\x01")), "stored"),
        "response, timed_out false in ten bytes": (wire(10, 2, wire(4, 0, varint(0, 10))), "ok"),
        "response, timed_out 2^32": (wire(10, 2, wire(4, 0, varint(1 << 32))), "stored"),
        "response, exit code 2^32": (wire(10, 2, wire(3, 0, varint(1 << 32))), "ok"),
        "response, exit code 1": (wire(10, 2, wire(3, 0, b"\x01")), "stored"),
        "response, its record merged with nothing": (wire(4, 2, b""), "ok"),
        "response, an unknown field in its record": (wire(4, 2, wire(17, 2, b"x")), "ok"),
        "response, its record's policy": (wire(4, 2, wire(7, 2, b"x")), "stored"),
        "response, its record's version with high bits": (wire(4, 2, wire(1, 0, varint(2 | 1 << 33))), "ok"),
        "response, a project instead": (wire(11, 2, b""), "stored"),
    }
    cases += [(name, exchange(spoil_response=lambda raw, a=add: raw + a), cls) for name, (add, cls) in on_response.items()]
    spoilt = {
        "fields backwards": (lambda raw: b"".join(reversed(split(raw))), "ok"),
        "cut by one": (lambda raw: raw[:-1], "stored"),
        "a byte more": (lambda raw: raw + b"\0", "stored"),
        "not stored": (lambda raw: b"", "line"),
    }
    for name, (spoil, cls) in spoilt.items():
        cases.append((f"request {name}", exchange(spoil_request=spoil), cls))
        cases.append((f"response {name}", exchange(spoil_response=spoil), cls))
    agree(cases)


def split(raw: bytes) -> list[bytes]:
    """The fields of a message that has only varints and lengths."""
    reader, parts = verify.ProtobufReader(raw), []
    while reader.at < len(raw):
        start = reader.at
        reader.skip(*reader.tag(), 0)
        parts.append(raw[start : reader.at])
    return parts


def test_doubles_keep_their_bits(agree):
    bits = [
        "0000000000000000",
        "8000000000000000",
        "7ff8000000000000",
        "fff8000000000001",
        "7ff0000000000001",
        "7ff0000000000000",
        "0000000000000001",
        "3ff8000000000000",
    ]
    doubles = [bytes.fromhex(each) for each in bits]
    rows = [message("ModuleRow", values=doubles), message("ModuleRow"), message("ModuleRow", values=doubles[:1])]
    run = message("ModuleRun", model="m", rows=rows, end_time=doubles[1], step=doubles[4])
    asked = request(oneof="module", module=run)
    asked.pop("javascript")
    runs = [message("ModuleRowResult", status=-3, outputs=doubles), message("ModuleRowResult", status=2)]
    result = message("ModuleResult", runs=runs, width=-1, outcome=1, outcome_detail="d", stdout=b"\xff", stderr=b"e")
    answer = response_to(asked, oneof="module", module=result)
    answer.pop("javascript")

    def unpacked(raw: bytes) -> bytes:
        packed = wire(1, 2, b"".join(double[::-1] for double in doubles))
        single = b"".join(wire(1, 1, double[::-1]) for double in doubles[:3])
        mixed = single + wire(1, 2, b"".join(double[::-1] for double in doubles[3:])) + wire(1, 2, b"")
        assert packed in raw
        module = encode("ModuleRun", run)
        return raw.replace(wire(12, 2, module), wire(12, 2, module.replace(wire(1 + 1, 2, packed), wire(2, 2, mixed))))

    def with_row(row: bytes):
        return lambda raw: raw + wire(12, 2, wire(2, 2, row))

    first = encode("RunRequest", asked)
    assert unpacked(first) != first
    agree(
        [
            ("packed", exchange(asked, answer), "ok"),
            ("mixed", exchange(asked, answer, spoil_request=unpacked), "ok"),
            (
                "a sign of zero lost",
                exchange(asked, answer, spoil_request=lambda raw: raw.replace(doubles[1][::-1], doubles[0])),
                "stored",
            ),
            (
                "a NaN quieted",
                exchange(
                    asked, answer, spoil_request=lambda raw: raw.replace(doubles[4][::-1], bytes.fromhex("010000000000f87f"))
                ),
                "stored",
            ),
            ("a row more", exchange(asked, answer, spoil_request=with_row(b"")), "stored"),
            ("packed and cut", exchange(asked, answer, spoil_request=with_row(wire(1, 2, bytes(7)))), "stored"),
            ("doubles as varint", exchange(asked, answer, spoil_request=with_row(wire(1, 0, b"\x01"))), "stored"),
            ("doubles as fixed32", exchange(asked, answer, spoil_request=with_row(wire(1, 5, bytes(4)))), "stored"),
            (
                "an end time as length",
                exchange(asked, answer, spoil_request=lambda raw: raw + wire(12, 2, wire(3, 2, bytes(8)))),
                "stored",
            ),
            (
                "an outcome of 32 bits and more",
                exchange(asked, answer, spoil_response=lambda raw: raw + wire(12, 2, wire(5, 0, varint(1 | 1 << 35)))),
                "ok",
            ),
            (
                "another outcome",
                exchange(asked, answer, spoil_response=lambda raw: raw + wire(12, 2, wire(5, 0, b"\x02"))),
                "stored",
            ),
            ("outcome 99", exchange(asked, answer | {"module": result | {"outcome": 99}}), "ok"),
            ("outcome -1", exchange(asked, answer | {"module": result | {"outcome": -1}}), "ok"),
        ]
    )


def test_each_kind_and_none(agree):
    files = [message("ProjectFile", path="a", content="é\0"), message("ProjectFile")]
    project = message("ProjectRun", files=files, steps=["x", ""], artifacts=["a", "a"], grant_profile="g")
    step = message(
        "StepResult", command="x", stdout=b"\0\xff", exit_code=-9, timed_out=True, duration_ms=5, stderr_truncated=True
    )
    done = message(
        "ProjectResult",
        steps=[step, step],
        outcome=4,
        outcome_detail="d",
        artifacts=[message("Artifact", path="p", content=b"c")],
        artifacts_truncated=True,
    )
    cell = message("CellRun", language="python", code="1", files=files)
    told = message(
        "CellResult", stdout=b"1", exit_code=2**31 - 1, interpreter_started=True, interpreter_ended=True, stdout_truncated=True
    )
    plain = request()
    plain.pop("javascript")
    bare = response_to(plain)
    bare.pop("javascript")
    kinds = {
        "a project": (plain | {"oneof": "project", "project": project}, bare | {"oneof": "project", "project": done}),
        "a cell": (plain | {"oneof": "cell", "cell": cell}, bare | {"oneof": "cell", "cell": told}),
        "an empty module": (
            plain | {"oneof": "module", "module": message("ModuleRun")},
            bare | {"oneof": "module", "module": message("ModuleResult")},
        ),
        "everything negative": (request(timeout_ms=-(2**31)), response_to(plain, duration_ms=-1)),
        "protocol 0": (request(protocol=0), None),
        "protocol 1": (request(protocol=1), None),
        "protocol 2": (request(protocol=2), None),
        "protocol 2^32-1": (request(protocol=2**32 - 1), None),
    }
    cases = [(name, exchange(asked, answer), "ok") for name, (asked, answer) in kinds.items()]
    nothing, no_result = plain | {"oneof": ""}, bare | {"oneof": ""}
    mixed = {
        "neither payload nor result": (nothing, no_result),
        "no payload": (nothing, response_to(plain)),
        "no result": (request(), no_result),
        "a result of another kind": (request(), bare | {"oneof": "cell", "cell": told}),
        "a result of a third kind": kinds["a project"][:1] + kinds["an empty module"][1:],
    }
    cases += [(name, exchange(asked, answer), "stored") for name, (asked, answer) in mixed.items()]
    cases.append(("unanswered, no payload", unanswered(nothing), "ok"))
    agree(cases)


def test_many_elements_are_taken(agree):
    advice = [message("AdviceFinding")] * 100_000
    result = message("JavaScriptResult", stdout=b"1\n", advice=advice)
    rows = request(oneof="module", module=message("ModuleRun", rows=[message("ModuleRow")] * 100_000))
    rows.pop("javascript")
    table = response_to(rows, oneof="module", module=message("ModuleResult"))
    table.pop("javascript")
    agree(
        [
            ("100 000 findings", exchange(answer=response_to(request(), javascript=result)), "ok"),
            ("100 000 rows", exchange(rows, table), "ok"),
        ]
    )


def test_checks_on_an_answered_call(agree):
    rule = message("SoftwareRule", mode="exact", identities=["a:1"])
    approved = message("SoftwareRule", mode="approved", identities=["b:2", "a:1"])
    by_rule = lambda r, software, **f: exchange(request(software_rule=r), response_to(request(), software_identity=software), **f)
    with_floor = lambda floor, tier, **f: exchange(request(minimum_isolation=floor), response_to(request(), isolation=tier), **f)
    cases = [
        ("honest", exchange(), "ok"),
        ("times that make no sense", exchange(started_unix_ms=2**63 - 1, ended_unix_ms=-(2**63)), "ok"),
        ("any policy", exchange(policy='\x1b]8;;\n\u2028<&>\\"\x7f'), "ok"),
        (
            "no record in the answer",
            exchange(spoil_response=lambda raw: b"".join(part for part in split(raw) if part[0] != 0x22)),
            "stored",
        ),
        ("the request's digest", exchange(request_sha256=ZERO), "stored"),
        (
            "the request's digest in upper case",
            exchange(request_sha256=record_of(request(), None)["request_sha256"].upper()),
            "stored",
        ),
        ("the result's digest", exchange(result_sha256=ZERO), "stored"),
        ("another provider", exchange(provider="x"), "stored"),
        ("another tier", exchange(isolation="vm"), "stored"),
        ("another environment", exchange(environment="x"), "stored"),
        ("other software", exchange(software_identity="x"), "stored"),
        ("a rule ID without a rule", exchange(software_rule_id="exact:x"), "stored"),
        ("the record's digest", exchange(spoil_payload=lambda raw: raw.replace(b'"policy":""', b'"policy":"x"')), "statement"),
        ("version 0", exchange(version=0), "statement"),
        ("version 4", exchange(version=4), "statement"),
        ("version 2^31", exchange(version=2**31), "statement"),
        ("version 1 of protocol 3", exchange(version=1), "stored"),
        ("version 1 of protocol 1", exchange(request(protocol=1), version=1), "stored"),
        ("version 1 with software", exchange(request(protocol=1), version=1, software_identity="x"), "statement"),
        (
            "version 3 with an answer",
            exchange(version=3, unanswered="internal", result_sha256="", session=FINGERPRINT, sequence=1),
            "stored",
        ),
        ("unanswered in version 2", exchange(unanswered="internal"), "statement"),
        ("a rule met", by_rule(rule, "a:1"), "ok"),
        ("an approved rule met", by_rule(approved, "b:2"), "ok"),
        ("an approved rule of one", by_rule(approved | {"identities": ["a:1"]}, "a:1"), "ok"),
        ("a rule not met", by_rule(rule, "c:3"), "stored"),
        ("a rule and no software", by_rule(rule, ""), "stored"),
        (
            "a rule in protocol 1",
            exchange(request(protocol=1, software_rule=rule), response_to(request(), software_identity="a:1")),
            "ok",
        ),
        ("a rule not met in protocol 1", exchange(request(protocol=1, software_rule=rule)), "stored"),
        ("software without a rule", by_rule(None, "anything at all \x1b"), "ok"),
        ("an empty rule", by_rule(message("SoftwareRule"), "x"), "ok"),
        ("a tier under no floor", with_floor("", "hypervisor"), "ok"),
        ("no tier under no floor", with_floor("", ""), "ok"),
        *[(f"a record of version {n} inside", exchange(inner={"version": n}), "stored") for n in (0, 1, 3, 4, 2**32 - 1)],
        ("a record of version 4 inside, protocol 1", exchange(request(protocol=1), inner={"version": 4}), "stored"),
    ]
    tiers = ["none", "process", "container", "kernel", "vm"]
    for n, floor in enumerate(tiers):
        for m, tier in enumerate(tiers):
            cases.append((f"floor {floor}, tier {tier}", with_floor(floor, tier), "ok" if m >= n else "stored"))
    for floor, tier in (
        ("none", ""),
        ("none", "hypervisor"),
        ("strongest", "vm"),
        ("kernel", "KERNEL"),
        ("Kernel", "vm"),
        ("kernel", "kernel "),
    ):
        cases.append((f"floor {floor!r}, tier {tier!r}", with_floor(floor, tier), "stored"))
    many = [f"i{n}" for n in range(33)]
    rules = {
        "32 approved": ("approved", many[:32], "ok"),
        "33 approved": ("approved", many, "stored"),
        "none approved": ("approved", [], "stored"),
        "none exact": ("exact", [], "stored"),
        "two exact": ("exact", ["i0", "i1"], "stored"),
        "a repeated identity": ("approved", ["i0", "i0"], "stored"),
        "an empty identity": ("approved", ["i0", ""], "stored"),
        "a long identity": ("approved", ["i0", "x" * 256], "ok"),
        "an identity too long": ("approved", ["i0", "x" * 257], "stored"),
        "a space": ("approved", ["i0", "a b"], "stored"),
        "a newline": ("approved", ["i0", "a\n"], "stored"),
        "a letter beyond ASCII": ("approved", ["i0", "é"], "stored"),
        "every allowed sign": ("approved", ["i0", "Az09._:/@+-"], "ok"),
        "a mode without identities": ("", ["i0"], "stored"),
        "another mode": ("Exact", ["i0"], "stored"),
        "a mode alone": ("any", [], "stored"),
    }
    for name, (mode, identities, cls) in rules.items():
        # A rule that is not valid has no ID: the one its list would give is stated, so that nothing else is wrong.
        bad = message("SoftwareRule", mode=mode, identities=identities)
        ids = {0: "", 1: f"exact:{(identities or [''])[0]}"}
        many_id = "approved:sha256:" + verify.sha256("\0".join(sorted(identities)).encode())
        stated = ids.get(len(identities), many_id)
        asked = request(software_rule=None)
        record_rule = {"software_rule_id": stated, "request_sha256": verify.request_digest(asked | {"software_rule": bad})}
        answer = response_to(asked, software_identity="i0")
        record = seal(record_of(asked, answer) | record_rule)
        forge = Forge().call(asked | {"software_rule": bad}, answer | {"record": record}, predicate_of(record))
        cases.append((f"rule: {name}", forge.sealed(), cls))
    changed: dict[str, object] = {"started_unix_ms": 1, "ended_unix_ms": -1, "sequence": 1, "version": 1}
    for field, *_ in verify.MESSAGES["RunRecord"].values():
        other = {field: changed.get(field, "x")}
        cases.append((f"the stored record's {field}", exchange(inner=other), "stored"))
        # An honest record of the same messages, but not the one that is signed.
        asked = request()
        resealed = seal(record_of(asked, response_to(asked)) | other)
        cases.append(
            (f"the stored record's {field}, sealed", exchange(inner=resealed), "stored" if field != "record_sha256" else "ok")
        )
    agree(cases)


def test_checks_on_an_unanswered_call(agree):
    rule = message("SoftwareRule", mode="exact", identities=["a:1"])
    asked = request(software_rule=rule)
    empty = {"session": "", "sequence": 0}
    cases = [
        ("honest", unanswered(), "ok"),
        ("of protocol 1", unanswered(request(protocol=1)), "ok"),
        ("an empty code", unanswered(unanswered=""), "statement"),
        ("code ok", unanswered(unanswered="ok"), "stored"),
        ("a code in another case", unanswered(unanswered="Internal"), "stored"),
        ("a code as a number", unanswered(unanswered="13"), "stored"),
        ("a result digest", unanswered(result_sha256=ZERO), "stored"),
        ("another request", unanswered(request_sha256=ZERO), "stored"),
        ("version 2", unanswered(version=2, unanswered=""), "stored"),
        ("a rule met", unanswered(asked, software_identity="a:1"), "ok"),
        ("a rule not met", unanswered(asked, software_identity="b"), "stored"),
        ("another rule ID", unanswered(asked, software_identity="a:1", software_rule_id=""), "stored"),
        ("any provider", unanswered(provider="", environment="e"), "ok"),
        ("a floor met", unanswered(request(minimum_isolation="kernel")), "ok"),
        ("a floor not met", unanswered(request(minimum_isolation="vm")), "stored"),
        ("an answer beside it", unanswered(answer=b"\x18\x01"), "stored"),
        ("outside a session", unanswered(**empty), "chain"),
    ]
    cases += [(f"code {code}", unanswered(unanswered=code), "ok") for code in sorted(verify.CODES)]
    assert len(verify.CODES) == 16
    agree(cases)


def test_chains(agree):
    single = {
        "a sequence on a single run": ({"sequence": 1}, "chain"),
        "the largest sequence": ({"sequence": 2**64 - 1}, "chain"),
        "a previous digest on a single run": ({"previous_sha256": ZERO}, "chain"),
        "a session that is no digest": ({"session": "x", "sequence": 1}, "chain"),
        "a session in upper case": ({"session": "A" * 64, "sequence": 1}, "chain"),
        "sequence 0": ({"session": ZERO}, "chain"),
        "sequence 2 first": ({"session": ZERO, "sequence": 2}, "chain"),
        "the largest sequence first": ({"session": ZERO, "sequence": 2**64 - 1}, "chain"),
        "a previous digest first": ({"session": ZERO, "sequence": 1, "previous_sha256": ZERO}, "chain"),
    }
    cases = [(name, exchange(**fields), cls) for name, (fields, cls) in single.items()]

    def session(*calls: tuple[int, int], close: int | None = None) -> bytes:
        """Calls as (sequence, index of the call it names as previous, -1 for none), and a close of so many."""
        forge, digests = Forge(), []
        for sequence, before in calls:
            previous = digests[before] if before >= 0 else ""
            digests.append(forge.honest(FINGERPRINT, sequence, previous)["record_sha256"])
        if close is not None:
            forge.close({"session": FINGERPRINT, "calls": close, "last_record_sha256": digests[-1]})
        return forge.sealed()

    cases += [
        ("three calls", session((1, -1), (2, 0), (3, 1), close=3), "ok"),
        ("not closed", session((1, -1), (2, 0)), "chain", 3),
        ("a call twice", session((1, -1), (2, 0), (2, 0), close=2), "chain", 3),
        ("a number left out", session((1, -1), (3, 0), close=2), "chain", 2),
        ("a previous one skipped", session((1, -1), (2, 0), (3, 0), close=3), "chain", 3),
        ("no previous one", session((1, -1), (2, -1), close=2), "chain", 2),
        ("begun again", session((1, -1), (1, -1), close=1), "chain", 2),
    ]
    agree(cases)
