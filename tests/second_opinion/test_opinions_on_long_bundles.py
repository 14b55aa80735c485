"""Long bundles, where the binary may work on many lines at once: still the verdict of one pass, line by line."""

from __future__ import annotations

import hashlib

from opinion_both import verify
from opinion_ed25519 import L, SPELLINGS, crafted, encoded, torsion
from opinion_forge import FINGERPRINT, KEY, KEY_ID, PAYLOAD_TYPE, Forge, b64, compact, pae, statement

CALLS = 160  # about 400 KiB; 60 are more than the binary takes in one piece


def session_of(calls: int) -> list[bytes]:
    """The lines of a session of so many calls, its close and a checkpoint."""
    forge, previous = Forge(), ""
    for sequence in range(1, calls + 1):
        previous = forge.honest(FINGERPRINT, sequence, previous)["record_sha256"]
    forge.close({"session": FINGERPRINT, "calls": calls, "last_record_sha256": previous})
    return forge.line({}).lines


def joined(lines: list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def edges(message: bytes) -> dict[str, bytes]:
    """Signatures of the key's holder over a message, none of which counts."""
    s = int.from_bytes(crafted(message, 77)[32:], "little")
    r = crafted(message, 77)[:32]
    found = {f"R of small order {n}": crafted(message, 0, encoded(point)) for n, point in enumerate(torsion())}
    found |= {f"R of mixed order {n}": crafted(message, 77, extra=point) for n, point in enumerate(torsion()) if n}
    found |= {f"R is {name}": crafted(message, 0, spelling) for name, spelling in SPELLINGS.items()}
    found |= {f"S + {n}L": r + (s + n * L).to_bytes(32, "little") for n in (1, 2, 7)}
    found |= {"S + 1": r + ((s + 1) % L).to_bytes(32, "little"), "S = 0": r + bytes(32), "S = L": r + L.to_bytes(32, "little")}
    found |= {"all zero": bytes(64), "all ones": b"\xff" * 64, "another message's": KEY.sign(message + b" ")}
    return found


def test_edges_of_ed25519_far_down(agree):
    lines = session_of(60)
    number = len(lines)
    digest = hashlib.sha256(lines[-2]).hexdigest()
    predicate = {"index": number, "previous_sha256": digest, "checkpoint": True, "lines": number - 1}
    payload = compact(statement(verify.LINK, predicate))
    head = joined(lines[:-1])

    def sealed(raw: bytes) -> bytes:
        link = {"payloadType": PAYLOAD_TYPE, "payload": b64(payload), "signatures": [{"keyid": KEY_ID, "sig": b64(raw)}]}
        return head + compact({"link": link}) + b"\n"

    cases = [(name, sealed(raw), "signature", number) for name, raw in edges(pae(payload)).items()]
    cases += [(f"nonce {r}", sealed(crafted(pae(payload), r)), "ok") for r in (1, 2, L - 1, 12345)]
    assert len(cases) > 30
    agree(cases)


def test_the_first_of_several_faults_is_named(agree):
    lines = session_of(CALLS - 1)

    def spoilt(*changes: tuple[int, bytes, bytes]) -> bytes:
        """(line, from, to) each; nothing is signed again."""
        changed = list(lines)
        for line, old, new in changes:
            assert old in changed[line - 1]
            changed[line - 1] = changed[line - 1].replace(old, new, 1)
        return joined(changed)

    def swapped(a: int, b: int) -> bytes:
        changed = list(lines)
        changed[a - 1], changed[b - 1] = changed[b - 1], changed[a - 1]
        return joined(changed)

    no_form = (b'{"request"', b'{ "request"')
    no_link = (b'"link":{"payloadType":"application', b'"link":{"payloadType":"spplication')
    content = (b'"request":"CAMa', b'"request":"CAMb')
    last = len(lines)
    agree(
        [
            ("whole", joined(lines), "ok"),
            ("form at 150, link at 20", spoilt((150, *no_form), (20, *no_link)), "signature", 20),
            ("link at 150, form at 20", spoilt((150, *no_link), (20, *no_form)), "line", 20),
            ("content at 3, form at 4", spoilt((3, *content), (4, *no_form)), "link", 3),
            ("form at every tenth", spoilt(*[(n, *no_form) for n in range(10, 150, 10)]), "line", 10),
            ("swapped near the end", swapped(140, 141), "link", 140),
            ("swapped far apart", swapped(30, 131), "link", 30),
            ("form in the second line", spoilt((2, *no_form)), "line", 2),
            ("a newline less", joined(lines)[:-1], "line", last),
            ("a newline less, and form at 100", spoilt((100, *no_form))[:-1], "line", 100),
            ("the checkpoint missing", joined(lines[:-1]), "incomplete", last - 1),
            ("the close missing", joined(lines[:-2] + lines[-1:]), "link", last - 1),
            ("a line missing", joined(lines[:99] + lines[100:]), "link", 100),
            ("begun again", joined(lines + lines), "link", last + 1),
        ]
    )


def test_faults_under_good_links_far_down(agree):
    """Lines that are right alone, linked in a wrong order: only the pass over all of them shows it."""

    def session(order: list[int], calls: int) -> bytes:
        source, previous = Forge(), [""]
        for sequence in range(1, CALLS):
            previous.append(source.honest(FINGERPRINT, sequence, previous[-1])["record_sha256"])
        forge = Forge()
        for sequence in order:
            line = source.lines[sequence - 1]
            forge.line(members_of(line))
        forge.close({"session": FINGERPRINT, "calls": calls, "last_record_sha256": previous[order[-1]]})
        return forge.sealed()

    every = list(range(1, CALLS))
    agree(
        [
            ("in order", session(every, CALLS - 1), "ok"),
            ("one missing", session(every[:99] + every[100:], CALLS - 2), "chain", 100),
            ("two swapped", session([*every[:119], 121, 120, *every[121:]], CALLS - 1), "chain", 120),
            ("one twice", session(every[:140] + every[139:], CALLS), "chain", 141),
            ("a count too low", session(every, CALLS - 2), "chain", CALLS),
        ]
    )


def members_of(line: bytes) -> dict:
    members = verify.JsonReader(line.decode()).document()
    del members["link"]
    return members
