"""docs/evidence-format.md against the schema, the example and the vectors: a page that drifts is wrong for every reader."""

from __future__ import annotations

import base64
import json
import re

from opinion_both import ROOT, VECTORS, key_of, python_opinion, verify
from opinion_forge import encode, pae, record_of

PAGE = (ROOT / "docs/evidence-format.md").read_text()


def section(title: str) -> str:
    """The text under a heading, to the next heading of any level."""
    found = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#|\Z)", PAGE, re.MULTILINE | re.DOTALL)
    assert found, title
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of the first table in a text, without its head."""
    lines = text[text.index("|---") :].split("\n")[1:]
    table = []
    for line in lines:
        if not line.startswith("|"):
            break
        table.append([cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]])
    return table


def block(kind: str) -> str:
    [text] = re.findall(rf"^```{kind}\n(.*?)\n```$", PAGE, re.MULTILINE | re.DOTALL)
    return text


def names(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


def page_messages() -> dict[str, dict[int, tuple[str, str, bool, bool]]]:
    text = ""
    for name, fields in rows(section("3. Stored messages")):
        text += f"{name.strip('`')}: {fields.replace(chr(92) + '|', '|')}\n"
    found: dict = {}
    for line in text.splitlines():
        name, body = line.split(": ")
        found[name] = {
            int(number): (field, kind, bool(many), in_oneof)
            for part, in_oneof in zip(body.split("|"), (False, True))
            for number, field, kind, many in re.findall(r"(\d+) (\w+) (\w+)(\[\])?", part)
        }
    return found


def schema_messages() -> dict[str, dict[int, tuple[str, str, bool, bool]]]:
    text = re.sub(r"//.*", "", (ROOT / "proto/plimsoll/v1/sandbox.proto").read_text())
    enums = set(re.findall(r"^enum (\w+)", text, re.MULTILINE))
    found: dict = {}
    for name, body in re.findall(r"^message (\w+) \{(.*?)^\}", text, re.MULTILINE | re.DOTALL):
        head, _, oneof = body.partition("oneof ")
        found[name] = {
            int(number): (field, "enum" if kind in enums else kind, bool(many), in_oneof)
            for part, in_oneof in ((head, False), (oneof, True))
            for many, kind, field, number in re.findall(r"(repeated )?(\w+) (\w+) = (\d+);", part)
        }
    return found


def test_messages_are_those_of_the_schema_and_of_the_example():
    page, schema = page_messages(), schema_messages()
    assert page == verify.MESSAGES
    reached, todo = set(), {"RunRequest", "RunResponse"}
    while todo:
        reached |= todo
        todo = {kind for name in todo for _, kind, *_ in schema[name].values() if kind in schema} - reached
    assert page == {name: schema[name] for name in reached}


def test_digest_fields_are_those_of_the_example():
    request, result = section("2.2 Request"), section("2.3 Result")
    kinds = {names(kind)[0]: names(fields) for kind, fields in rows(request[request.index("| Kind") :])}
    assert kinds == {kind: re.findall(r"\w+", form) for kind, form in verify.REQUEST_FORMS.items() if kind}
    kinds = {names(kind)[0]: names(fields) for kind, fields in rows(result)}
    assert "those six" in result
    kinds["cell"] = kinds["javascript"] + kinds["cell"]
    assert kinds == {kind: re.findall(r"\w+", form) for kind, form in verify.RESULT_FORMS.items() if kind}
    head = [name for field, _ in rows(request) for name in names(field)]
    assert head == [
        "protocol",
        "minimum_isolation",
        "timeout_ms",
        "software_mode",
        "software_identities",
        "software_identity",
        "kind",
    ]


def test_record_fields_are_those_of_the_example():
    table = rows(section("2.4 Record"))
    for version in (1, 2, 3):
        places = {int(row[version]): names(row[0])[0] for row in table if row[version]}
        assert sorted(places) == list(range(1, len(places) + 1))
        assert [places[n] for n in sorted(places)] == verify.RECORD_FORMS[version].split()


def test_predicates_are_those_of_the_example_and_of_the_vectors():
    page = {}
    for _, kind, subject, _, members in rows(section("7.3 The three predicates")):
        page[verify.TYPES + kind.strip("`")] = (subject.strip("`"), names(members), members)
    for kind, (subject, types) in verify.PREDICATES.items():
        assert page[kind][0] == subject
        assert sorted(page[kind][1]) == sorted(types)
    seen = set()
    for line in (VECTORS / "own-mixed.jsonl").read_bytes().splitlines():
        for envelope in (value for name, value in json.loads(line).items() if name in ("envelope", "link")):
            whole = json.loads(base64.b64decode(envelope["payload"]))
            _, order, members = page[whole["predicateType"]]
            written = list(whole["predicate"])
            assert written == [name for name in order if name in written]
            optional = set(re.findall(r"`(\w+)`\*", members))
            assert set(order) - set(written) <= optional
            seen.add(whole["predicateType"])
    assert seen == set(page)


def test_words_and_numbers():
    assert set(names(section("4.4 Unanswered call").split("one of")[1].split("3. ")[0])) == verify.CODES
    assert names(section("4.2 Isolation floor"))[:5] == verify.TIERS
    keys = section("5. Keys and signatures")
    assert re.findall(r"0x[0-9a-f]{64}", keys) == [f"0x{y:064x}" for y in (verify.SMALL_ORDER_8, verify.P - verify.SMALL_ORDER_8)]
    assert verify.PUBLIC_DER.hex() in keys and str(verify.L - 2**252) in keys
    assert f"{verify.MAX_LINE:_}".replace("_", " ") in section("8.1 Lines")
    classes = {names(row[0])[0] for row in rows(section("9.2 What implementations agree on"))}
    last_cells = [line.rsplit("|", 2)[1] for line in section("9.1 One pass").splitlines() if line.startswith("| ")]
    refused = set(names(" ".join(last_cells)))
    assert refused <= classes and classes - refused == {"empty", "expected"}


def test_links_lead_somewhere():
    anchors = {
        re.sub(r"[^a-z0-9 -]", "", heading.lower()).replace(" ", "-") for heading in re.findall(r"^#+ (.*)$", PAGE, re.MULTILINE)
    }
    for target in re.findall(r"\]\(([^)]+)\)", PAGE):
        if target.startswith("#"):
            assert target[1:] in anchors, target
        else:
            assert (ROOT / "docs" / target).exists(), target
    for path in re.findall(r"`((?:testdata|tests|examples)/[\w./-]+)`", PAGE):
        assert (ROOT / path).exists(), path


def test_worked_digest():
    *parts, last = block("digest").splitlines()
    data = b"".join(bytes.fromhex("".join(re.match(r"([0-9a-f]{16}) ([0-9a-f]* )?", part).group().split())) for part in parts)
    assert len(data) == 223
    assert last == "= " + verify.sha256(data)
    for part in parts:
        length, content = re.match(r"([0-9a-f]{16}) ([0-9a-f]*)", part).groups()
        assert int(length, 16) == len(content) // 2


def test_worked_bundle():
    key = key_of("own-mixed")
    payload, line = block("payload"), block("bundle")
    members = json.loads(line)
    assert base64.b64decode(members["link"]["payload"]).decode() == payload and len(payload) == 237
    encoded = pae(payload.encode())
    assert len(encoded) == 280 and encoded.startswith(b'DSSEv1 28 application/vnd.in-toto+json 237 {"_type"')
    assert len(line) + 1 == 574 and verify.sha256(line.encode()) in PAGE and key.id in PAGE
    assert python_opinion(line.encode() + b"\n", key).cls == "ok"
    good = members["link"]["signatures"][0]["sig"]
    small = python_opinion(line.replace(good, block("small-order")).encode() + b"\n", key)
    assert (small.cls, small.line) == ("signature", 1)


def test_worked_call():
    lines = dict(line.split(maxsplit=1) for line in block("call").splitlines())
    cases = json.loads((VECTORS / "bundle-cases.json").read_text())["cases"]
    [bundle] = [case["bundle"] for case in cases if case["name"] == "no floor and an unknown tier"]
    first, second = (json.loads(line) for line in bundle.splitlines())
    predicate = lambda envelope: json.loads(base64.b64decode(envelope["payload"]))["predicate"]
    assert base64.b64decode(first["request"]).hex() == lines["request"]
    assert base64.b64decode(first["response"]).hex() == lines["response"]
    assert predicate(first["envelope"]) == json.loads(lines["record"])
    assert predicate(first["link"]) == json.loads(lines["link"])
    assert predicate(second["link"]) == json.loads(lines["checkpoint"])
    asked = verify.stored("RunRequest", bytes.fromhex(lines["request"]), "request")
    answer = verify.stored("RunResponse", bytes.fromhex(lines["response"]), "response")
    assert record_of(asked, answer, started_unix_ms=1793000000000) == answer["record"]
    assert encode("RunResponse", answer).hex() == lines["response"]
