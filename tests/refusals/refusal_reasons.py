"""The reasons of refusals as the source declares them, so that a new one without a case here fails."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CLASSES = {
    "LineReason": "line",
    "LinkReason": "link",
    "SignatureReason": "signature",
    "StatementReason": "statement",
    "StoredReason": "stored",
    "ChainReason": "chain",
    "IncompleteReason": "incomplete",
    "ExpectedReason": "expected",
    "NotACallReason": "not_a_call",
    "ReservedReason": "reserved",
    "SealReason": "bundle",
    "AnchorReason": "anchor",
}


def reasons() -> set[tuple[str, str]]:
    """(class, reason) of every declared reason."""
    source = (ROOT / "src/attest/fault/reason.rs").read_text()
    found = set()
    for block in re.findall(r"^reasons! \{\n(.*?)^\}\n", source, re.M | re.S):
        name = re.search(r"^    (\w+) \{$", block, re.M)[1]
        for word in re.findall(r'^        \w+ "(\w+)" ".*";$', block, re.M):
            found.add((CLASSES[name], word))
    assert len(found) > 90, "the source is written in another way now"
    return found


def words_of(file: str, enum: str) -> set[str]:
    """The stable words of another enum: the arms `Enum::Variant … => "word",`."""
    source = (ROOT / file).read_text()
    return set(re.findall(rf'{enum}::\w+[^\n=]*(?:\n\s*\| {enum}::\w+[^\n=]*)* => "(\w+)",', source))
