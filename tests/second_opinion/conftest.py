"""Asks both verifiers about named cases and compares each answer with what the page promises."""

from __future__ import annotations

import pytest

from opinion_both import Opinion, both_opinions


@pytest.fixture
def agree(tmp_path):
    """agree(cases): cases are (name, bundle, class) and optionally the line, 1 if it is left out."""

    def check(cases: list[tuple], key_name: str = "own-mixed") -> None:
        names = [case[0] for case in cases]
        assert len(names) == len(set(names)), "a case's name stands twice"
        pairs = both_opinions([case[1] for case in cases], key_name, tmp_path)
        wrong = []
        for (name, _, cls, *line), (rust, python) in zip(cases, pairs, strict=True):
            promised = Opinion(cls, 0 if cls == "ok" else line[0] if line else 1)
            if (rust.cls, rust.line, python.cls, python.line) != (promised.cls, promised.line) * 2 or rust != python:
                wrong.append(f"{name}: promised {promised}, the binary says {rust}, the example {python}")
        assert not wrong, "\n" + "\n".join(wrong)

    return check
