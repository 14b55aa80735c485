"""One changed byte of any part of the evidence, and the page refuses itself."""

from __future__ import annotations

import json
import re

import pytest

ISLAND = re.compile(r'(<script type="application/json" id="evidence">)(.*?)(</script>)', re.DOTALL)


def with_evidence(page: str, change) -> str:
    """The page with its evidence changed, written again in the one encoding."""
    match = ISLAND.search(page)
    evidence = json.loads(match[2])
    change(evidence)
    text = json.dumps(evidence, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return page[: match.start(2)] + text + page[match.end(2) :]


def places(text: str, count: int) -> list[int]:
    """Places spread over a text, each at a letter or digit that can be changed to another."""
    step = max(1, len(text) // count)
    found = []
    for start in range(step // 2, len(text), step):
        at = next((i for i in range(start, len(text)) if text[i].isalnum()), None)
        if at is not None:
            found.append(at)
    return found


def flipped(text: str, at: int) -> str:
    return text[:at] + ("B" if text[at] == "A" else "A" if text[at].isalpha() else "1" if text[at] == "0" else "0") + text[at + 1 :]


@pytest.mark.parametrize("part", ["bundle", "test_result", "receipt", "public_key", "bom"])
def test_a_changed_byte_is_refused(example, opened, part):
    evidence = json.loads(ISLAND.search(example)[2])
    for at in places(evidence[part], 24):
        page = opened(with_evidence(example, lambda e, at=at: e.update({part: flipped(e[part], at)})))
        assert page.verdict == "refused", f"{part} at {at}: …{evidence[part][max(0, at - 20) : at + 20]}…"
        assert page.text("h2") == "Refused"
        assert "PASSED" not in page.text()


def lines(change):
    """A change of the bundle's lines."""

    def apply(evidence):
        evidence["bundle"] = "".join(change(evidence["bundle"].splitlines(keepends=True)))

    return apply


STRUCTURE = {
    "no checkpoint": (lines(lambda all_lines: all_lines[:1]), "incomplete"),
    "a line twice": (lines(lambda all_lines: all_lines[:1] + all_lines), "many_runs"),
    "lines swapped": (lines(lambda all_lines: all_lines[::-1]), "link"),
    "no newline at the end": (lambda e: e.update(bundle=e["bundle"][:-1]), "line"),
    "an empty bundle": (lambda e: e.update(bundle=""), "line"),
    "a space in a line": (lines(lambda all_lines: [all_lines[0].replace(",", ", ", 1), all_lines[1]]), "line"),
    "a member twice": (lines(lambda all_lines: ['{"link":{},' + all_lines[0][1:], all_lines[1]]), "line"),
    "statements swapped": (lambda e: e.update(receipt=e["test_result"], test_result=e["receipt"]), "statement"),
    "a second signature": (
        lambda e: e.update(receipt=re.sub(r'"signatures":\[(\{.*?\})\]', r'"signatures":[\1,\1]', e["receipt"])),
        "statement",
    ),
    "no signature": (lambda e: e.update(receipt=re.sub(r'"signatures":\[.*?\]', '"signatures":[]', e["receipt"])), "statement"),
    "an empty key": (lambda e: e.update(public_key=""), "key"),
    "a key of small order": (
        lambda e: e.update(public_key="-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VwAyEAAQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=\n-----END PUBLIC KEY-----\n"),
        "key",
    ),
    "another form": (lambda e: e.update(format="plimsoll-attest/pr-receipt-page/v2"), "page"),
    "no BOM": (lambda e: e.update(bom="{}"), "bom_schema"),
    "a BOM that says something else": (lambda e: e.update(bom=e["bom"].replace("isolation-tier=kernel", "isolation-tier=vm")), "bom_serial"),
}


@pytest.mark.parametrize("name", STRUCTURE)
def test_changed_structure_is_refused_with_its_code(example, opened, name):
    change, code = STRUCTURE[name]
    page = opened(with_evidence(example, change))
    assert page.verdict == "refused"
    assert f"{code}: " in page.text()


def test_evidence_in_another_encoding_is_refused(example, opened):
    match = ISLAND.search(example)
    for text in (match[2].replace(",", ", ", 1), match[2] + " ", match[2].replace("plimsoll", "\\u0070limsoll", 1)):
        page = opened(example[: match.start(2)] + text + example[match.end(2) :])
        assert page.verdict == "refused"
