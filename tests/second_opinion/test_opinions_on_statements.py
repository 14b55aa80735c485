"""Lines and signed payloads: one spelling for a line, many for a payload, and what neither may be."""

from __future__ import annotations

import json

from opinion_both import verify
from opinion_forge import FINGERPRINT, KEY_ID, Forge, as_envelope, b64, compact, envelope, statement

CLOSE = {"session": FINGERPRINT, "calls": 0, "last_record_sha256": ""}
CLOSE_TEXT = compact(statement(verify.CLOSE, CLOSE)).decode()


def closed(payload: str | bytes) -> bytes:
    """A whole bundle whose one entry is a session's close with this payload."""
    return Forge().close(payload if isinstance(payload, bytes) else payload.encode()).sealed()


def nested(depth: int) -> str:
    return '{"x":' + "[" * depth + "]" * depth + ","


def test_payloads_may_be_spelled_in_many_ways(agree):
    t = CLOSE_TEXT
    parsed = json.loads(t)
    shuffled = {name: parsed[name] for name in ("predicate", "predicateType", "subject", "_type")}
    shuffled["predicate"] = dict(reversed(parsed["predicate"].items()))
    agree(
        [
            ("as written", closed(t), "ok"),
            ("indented", closed(json.dumps(parsed, indent=2)), "ok"),
            ("white space around", closed(f" \t\r\n{t}\n\n"), "ok"),
            ("another order", closed(json.dumps(shuffled)), "ok"),
            ("everything escaped", closed(t.replace("session", "\\u0073essi\\u006Fn")), "ok"),
            ("slashes escaped", closed(t.replace("/", "\\/")), "ok"),
            ("calls absent", closed(t.replace('"calls":0,', "")), "ok"),
            ("last record absent", closed(t.replace(',"last_record_sha256":""', "")), "ok"),
        ]
    )


def test_payloads_that_are_no_statements(agree):
    t = CLOSE_TEXT
    spec = {
        "data after it": t + "x",
        "a second object": t + t,
        "a comma after it": t + ",",
        "cut": t[:-1],
        "empty": "",
        "a string": json.dumps(t),
        "a list": f"[{t}]",
        "null": "null",
        "a byte-order mark": "\ufeff" + t,
        "no-break space before": "\u00a0" + t,
        "a form feed before": "\f" + t,
        "a comment": t.replace("{", "{/**/", 1),
        "single quotes": t.replace('"', "'"),
        "a trailing comma": t[:-1] + ",}",
        "a leading comma": "{," + t[1:],
        "an unknown member": '{"x":1,' + t[1:],
        "an unknown member, null": '{"x":null,' + t[1:],
        "an unknown member of a subject": t.replace('"name"', '"x":1,"name"'),
        "an unknown member of the predicate": t.replace('"calls"', '"x":1,"calls"'),
        "a member in another case": t.replace('"_type"', '"_Type"'),
        "a predicate's member in another case": t.replace('"calls"', '"Calls"'),
        "a repeated member": t[:-1] + ',"predicateType":' + json.dumps(verify.CLOSE) + "}",
        "a repeated member, escaped": t.replace('"calls":0', '"calls":0,"\\u0063alls":0'),
        "a repeated member of a digest": t.replace('"sha256":', f'"sha256":"{FINGERPRINT}","sha256":'),
        "a repeated member inside an unknown one": '{"x":{"a":1,"a":1},' + t[1:],
        "deep nesting": nested(70) + t[1:],
        "very deep nesting": nested(100_000) + t[1:],
        "no type": t.replace('"_type":"https://in-toto.io/Statement/v1",', ""),
        "another statement type": t.replace("Statement/v1", "Statement/v0.1"),
        "no predicate type": t.replace(f',"predicateType":"{verify.CLOSE}"', ""),
        "no subject": t.replace('"subject":[', '"subject":[],"x":['),
        "subjects absent": '{"_type"' + t[t.index(':"https') : t.index(',"subject')] + t[t.index(',"predicateType') :],
        "subjects null": t[: t.index("[{")] + "null" + t[t.index(',"predicateType') :],
        "two subjects": t.replace('"subject":[', '"subject":[{"name":"session","digest":{"sha256":"x"}},'),
        "another subject name": t.replace('"name":"session"', '"name":"Session"'),
        "no subject name": t.replace('"name":"session",', ""),
        "no digest": t.replace(f',"digest":{{"sha256":"{FINGERPRINT}"}}', ""),
        "another digest": t.replace('"sha256"', '"sha512"'),
        "a second digest": t.replace('"sha256":', '"sha1":"x","sha256":'),
        "a digest that is a number": t.replace(f'{{"sha256":"{FINGERPRINT}"}}', '{"sha256":1}'),
        "a digest that differs": t.replace(FINGERPRINT, "0" * 64, 1),
        "an upper-case digest": t.replace(FINGERPRINT, FINGERPRINT.upper(), 1),
        "an upper-case session": t.replace(FINGERPRINT, FINGERPRINT.upper()),
        "a short session": t.replace(FINGERPRINT, FINGERPRINT[:-1]),
        "an empty session": t.replace(FINGERPRINT, ""),
        "no predicate": t[: t.index(',"predicate":{')] + "}",
        "predicate null": t[: t.index('{"session"')] + "null}",
        "predicate a list": t[: t.index('{"session"')] + "[]}",
        "predicate a string": t[: t.index('{"session"')] + '""}',
        "a session null": t.replace(f'"session":"{FINGERPRINT}"', '"session":null'),
        "a link's type": t.replace("session-close", "bundle-link"),
        "an unknown type": t.replace("session-close/v1", "session-close/v2"),
        "a type in another case": t.replace("session-close", "Session-Close"),
        "a raw control character": t.replace('"session"', '"ses\tsion"'),
        "an unknown escape": t.replace("session-close", "\\session-close"),
        "half a surrogate pair": t.replace('"last_record_sha256":""', '"last_record_sha256":"\\ud800"'),
        "the wrong half": t.replace('"last_record_sha256":""', '"last_record_sha256":"\\udc00\\ud800"'),
        "a cut escape": t.replace('"last_record_sha256":""', '"last_record_sha256":"\\u12"'),
        "a word in another case": t.replace('"calls":0', '"calls":True'),
        "NaN": t.replace('"calls":0', '"calls":NaN'),
    }
    numbers = [
        "-0",
        "0.0",
        "0e0",
        "0E1",
        "00",
        "+0",
        "-1",
        '"0"',
        "null",
        "false",
        "18446744073709551616",
        "1" * 400,
        "0x0",
        "[]",
        "{}",
        "-",
        ".0",
        "0.",
    ]
    spec |= {f"calls {number[:30]}": t.replace('"calls":0', f'"calls":{number}') for number in numbers}
    assert all(text != t for text in spec.values())
    cases = [(name, closed(text), "statement") for name, text in spec.items()]
    bad_bytes = [b"\xff", b"\xc0\x80", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82"]
    for raw in bad_bytes:
        payload = t.encode().replace(b'"last_record_sha256":""', b'"last_record_sha256":"' + raw + b'"')
        cases.append((f"not UTF-8: {raw.hex()}", closed(payload), "statement"))
    agree(cases)


def test_closes(agree):
    def with_calls(**close: object) -> bytes:
        forge = Forge()
        record = forge.honest(FINGERPRINT, 1)
        return forge.close(CLOSE | {"calls": 1, "last_record_sha256": record["record_sha256"]} | close).sealed()

    largest = 18446744073709551615
    messages = {"request": b64(b"\x08\x03")}
    twice = Forge().close(CLOSE).close(CLOSE).sealed()
    opened = Forge()
    opened.honest(FINGERPRINT, 1)
    after = Forge().close(CLOSE)
    after.honest(FINGERPRINT, 1)
    agree(
        [
            ("a session of one call", with_calls(), "ok"),
            ("no call, largest count", closed(CLOSE_TEXT.replace('"calls":0', f'"calls":{largest}')), "chain"),
            ("no call, a last record", closed(CLOSE_TEXT.replace('256":""', f'256":"{"0" * 64}"')), "chain"),
            ("a count too low", with_calls(calls=0), "chain", 2),
            ("a count too high", with_calls(calls=2), "chain", 2),
            ("another last record", with_calls(last_record_sha256="0" * 64), "chain", 2),
            ("no last record", with_calls(last_record_sha256=""), "chain", 2),
            ("another session's close", with_calls(session="0" * 64), "chain", 2),
            ("closed twice", twice, "chain", 2),
            ("never closed", opened.sealed(), "chain", 2),
            ("a call after the close", after.sealed(), "chain", 2),
            ("a request beside it", Forge().close(CLOSE, messages).sealed(), "stored"),
            ("a response beside it", Forge().close(CLOSE, {"response": b64(b"\x18\x01")}).sealed(), "stored"),
        ]
    )


def test_links(agree):
    def two(changes: dict | None = None, on_entry: bool = True) -> bytes:
        forge = Forge()
        forge.honest()
        members = {"envelope": as_envelope(CLOSE, verify.CLOSE)} if on_entry else {}
        forge.line(members, changes)
        return forge.sealed() if on_entry else forge.bytes()

    zero = "0" * 64
    alone = Forge()
    alone.line({}, {"previous_sha256": zero})
    nothing = Forge().line({}, {"checkpoint": None, "entry_sha256": ""}).sealed()
    bare = Forge().line({"request": b64(b"\x08\x03")}).sealed()
    marked = Forge().line({"envelope": as_envelope(CLOSE, verify.CLOSE)}, {"checkpoint": True, "entry_sha256": None}).sealed()
    empty = Forge().line(
        {"envelope": {"payloadType": "", "payload": "", "signatures": None}}, {"checkpoint": True, "entry_sha256": None}
    )
    record = Forge()
    record.line({}, link_payload=compact(statement(verify.CLOSE, CLOSE)))
    cases = [
        ("an entry as written", two(), "ok"),
        ("a checkpoint as written", two(on_entry=False), "ok"),
        ("checkpoint false, said", two({"checkpoint": False}), "ok"),
        ("lines 0, said", two({"lines": 0}), "ok"),
        ("index absent", two({"index": None}), "link", 2),
        ("index one lower", two({"index": 1}), "link", 2),
        ("index one higher", two({"index": 3}), "link", 2),
        ("index largest", two({"index": 2**64 - 1}), "link", 2),
        ("index too large", two({"index": 2**64}), "statement", 2),
        ("index negative", two({"index": -2}), "statement", 2),
        ("previous absent", two({"previous_sha256": None}), "link", 2),
        ("previous another", two({"previous_sha256": zero}), "link", 2),
        ("previous on line 1", alone.bytes(), "link", 1),
        ("entry another", two({"entry_sha256": zero}), "link", 2),
        ("entry absent", two({"entry_sha256": None}), "link", 2),
        ("lines on an entry", two({"lines": 1}), "link", 2),
        ("lines absent on a checkpoint", two({"lines": None}, on_entry=False), "link", 2),
        ("lines another", two({"lines": 2}, on_entry=False), "link", 2),
        ("an entry digest on a checkpoint", two({"entry_sha256": zero}, on_entry=False), "link", 2),
        ("an empty entry digest on a checkpoint, said", two({"entry_sha256": ""}, on_entry=False), "ok"),
        ("checkpoint 1", two({"checkpoint": 1}, on_entry=False), "statement", 2),
        ("checkpoint null", two({"checkpoint": None}, on_entry=False), "link", 2),
        ("an entry marked as checkpoint", marked, "link", 1),
        ("an unsigned envelope on a checkpoint", empty.bytes(), "link", 1),
        ("neither entry nor checkpoint", nothing, "link", 1),
        ("a message without an envelope", bare, "signature", 1),
        ("a link that is a close", record.bytes(), "statement", 1),
    ]
    agree(cases)


def test_lines_have_one_spelling(agree):
    forge = Forge()
    forge.honest()
    [line] = forge.lines
    seal = forge.line({}).lines[1]
    text = line.decode()

    def with_line(changed: str | bytes) -> bytes:
        return (changed if isinstance(changed, bytes) else changed.encode()) + b"\n" + seal + b"\n"

    first = text[: text.index(',"envelope"')]
    rest = text[len(first) :]
    spec: dict[str, str | bytes] = {
        "a space first": " " + text,
        "a space last": text + " ",
        "a space between": text.replace(",", ", ", 1),
        "a tab": text.replace(":", ":\t", 1),
        "a carriage return": text + "\r",
        "a byte-order mark": "\ufeff" + text,
        "blank": "",
        "only a carriage return": "\r",
        "a number": "1",
        "a list": f"[{text}]",
        "a string": json.dumps(text),
        "null": "null",
        "two objects": text + text,
        "a comma last": text + ",",
        "cut": text[:-1],
        "an unknown member": text[:-1] + ',"x":1}',
        "an unknown member first": '{"x":"",' + text[1:],
        "a re-cased member": text.replace('"request"', '"Request"'),
        "an escaped name": text.replace('"request"', '"\\u0072equest"'),
        "an escaped slash": text.replace("application/", "application\\/"),
        "an escape for a letter": text.replace("application/", "\\u0061pplication/"),
        "a repeated member": first + "," + first[1:] + rest,
        "a repeated member, escaped": first + "," + first[1:].replace("request", "\\u0072equest") + rest,
        "link before envelope": first + rest[rest.index(',"link"') : -1] + rest[: rest.index(',"link"')] + "}",
        "request null": '{"request":null' + text[text.index(',"response"') :],
        "request empty": '{"request":""' + text[text.index(',"response"') :],
        "request a number": '{"request":1' + text[text.index(',"response"') :],
        "request a list": '{"request":[]' + text[text.index(',"response"') :],
        "response null": text.replace(',"envelope"', ',"response":null,"envelope"').replace(
            text[text.index(',"response"') : len(first)], "", 1
        ),
        "envelope null": first + ',"envelope":null' + rest[rest.index(',"link"') :],
        "envelope a string": first + ',"envelope":""' + rest[rest.index(',"link"') :],
        "link null": text[: text.index(',"link"')] + ',"link":null}',
        "link empty": text[: text.index(',"link"')] + ',"link":{}}',
        "no payload type": text.replace('"payloadType":"application/vnd.in-toto+json",', "", 1),
        "an envelope's order": text.replace('"payloadType":"application/vnd.in-toto+json",', "", 1).replace(
            ',"signatures"', ',"payloadType":"application/vnd.in-toto+json","signatures"', 1
        ),
        "signatures an object": text.replace('"signatures":[', '"signatures":{"x":[', 1).replace("]}", "]}}", 1),
        "a signature null": text.replace('"signatures":[', '"signatures":[null,', 1),
        "a signature without key ID": text.replace(f'"keyid":"{KEY_ID}",', "", 1),
        "a signature's order": text.replace('"keyid"', '"sig":"","keyid"', 1),
        "an extra member of a signature": text.replace('"keyid"', '"cert":"","keyid"', 1),
        "an unknown word": text.replace('"signatures":[', '"signatures":[nul,', 1),
        "a raw control character": text.replace("application/", "appli\x01cation/", 1),
        "a control character, escaped in another way": text.replace("application/", "appli\\u0009cation/", 1),
        "a raw <": text.replace("application/", "appli<cation/", 1),
        "a raw line separator": text.replace("application/", "appli\u2028cation/", 1),
        "upper-case hex in an escape": text.replace("application/", "appli\\u003Ccation/", 1),
        "an escape for é": text.replace("application/", "appli\\u00e9cation/", 1),
        "a surrogate pair": text.replace("application/", "appli\\ud83d\\ude00cation/", 1),
        "half a pair": text.replace("application/", "appli\\ud83dcation/", 1),
        "base64 without padding": text.replace(first, first.rstrip('="') + '"')
        if first.endswith('="')
        else text[:12] + text[13:],
        "base64 with a space": text.replace('"request":"', '"request":" ', 1),
        "base64 with a line break": text.replace('"request":"', '"request":"\\n', 1),
        "not UTF-8": line.replace(b"application/", b"appli\xffcation/", 1),
        "over-long UTF-8": line.replace(b"application/", b"appli\xc0\xafcation/", 1),
        "a surrogate in UTF-8": line.replace(b"application/", b"appli\xed\xa0\x80cation/", 1),
        "a zero byte": line.replace(b"application/", b"appli\0cation/", 1),
        "deep": '{"envelope":' * 1000,
        "deeper": '{"envelope":' + "[" * 200_000,
    }
    assert all((changed if isinstance(changed, bytes) else changed.encode()) != line for changed in spec.values())
    cases = [(name, with_line(changed), "line") for name, changed in spec.items()]
    # Exact spellings of what is then refused for what it says.
    cases += [
        ("as written", with_line(line), "ok"),
        ("an empty object", with_line("{}"), "link"),
        ("no link", with_line(text[: text.index(',"link"')] + "}"), "link"),
        ("a request alone", with_line(text[: text.index(',"response"')] + "}"), "link"),
        ("an escaped <, exact", with_line(text.replace("application/", "appli\\u003ccation/", 1)), "link"),
        ("a tab, exact", with_line(text.replace("application/", "appli\\tcation/", 1)), "link"),
        ("é, exact", with_line(text.replace("application/", "applicé/", 1)), "link"),
        ("U+007F and U+2027, exact", with_line(text.replace("application/", "appl\x7f\u2027/", 1)), "link"),
        ("a payload that is no base64", with_line(text.replace('"payload":"', '"payload":"*', 1)), "link"),
    ]
    agree(cases)


def test_every_escape_of_the_table_in_a_signed_type(agree):
    """A payload type with every kind of character: exact in its line, signed, and refused for being another type."""
    kind = "".join(map(chr, range(0x30))) + '\x7f<>&"\\/é\u2028\u2029\u2027😀'
    written = '{"payloadType":' + verify.quoted(kind) + envelope_rest(kind) + "}"
    line = '{"link":' + written + "}\n"
    raw = line.replace("\\u2028", "\u2028")
    agree([("exact", line.encode(), "statement"), ("not exact", raw.encode(), "line")])


def envelope_rest(kind: str) -> str:
    payload = compact(statement(verify.LINK, {"index": 1, "previous_sha256": "", "checkpoint": True}))
    rest = envelope(payload, kind)
    del rest["payloadType"]
    return "," + compact(rest).decode()[1:-1]


def test_ends_of_files(agree):
    whole = Forge()
    whole.honest()
    bundle = whole.sealed()
    size = len(bundle)
    agree(
        [
            ("nothing", b"", "incomplete", 0),
            ("a newline", b"\n", "line"),
            ("whole", bundle, "ok"),
            ("last newline missing", bundle[:-1], "line", 2),
            ("two newlines", bundle + b"\n", "line", 3),
            ("a zero byte more", bundle + b"\0", "line", 3),
            ("only the entry", bundle[: bundle.index(b"\n") + 1], "incomplete", 1),
            ("cut in the entry", bundle[:99], "line", 1),
            ("cut in the checkpoint", bundle[: size - 99], "line", 2),
            ("twice", bundle * 2, "link", 3),
            ("backwards", b"".join(reversed(bundle.splitlines(keepends=True))), "link", 1),
        ]
    )
