"""Five thousand altered bundles: the two verifiers give one verdict, one class and one line for each."""

from __future__ import annotations

from collections import Counter

from opinion_both import both_opinions, disagreements
from opinion_holder import forgeries
from opinion_mutants import mutants

COUNT = 2500


def asked(made: list[tuple[str, bytes]], folder) -> Counter:
    """Both are asked about each; how often each class was the answer."""
    pairs = both_opinions([bundle for _, bundle in made], "own-mixed", folder)
    differ = disagreements([name for name, _ in made], pairs)
    assert not differ, f"{len(differ)} of {len(made)} differ:\n" + "\n".join(differ[:20])
    return Counter(python.cls for _, python in pairs)


def test_no_change_without_the_key_is_accepted(tmp_path):
    classes = asked(mutants(COUNT, seed=20261129), tmp_path)
    assert classes["ok"] == 0
    assert classes.total() == COUNT
    # Each kind of fault was met, so the agreement is about something.
    assert all(classes[cls] >= 20 for cls in ("line", "link", "signature", "statement", "incomplete")), classes


def test_what_the_keys_holder_changes_is_judged_alike(tmp_path):
    classes = asked(forgeries(COUNT, seed=20261130), tmp_path)
    assert classes.total() == COUNT
    assert all(classes[cls] >= 20 for cls in ("ok", "link", "signature", "statement", "stored", "chain", "incomplete")), classes
