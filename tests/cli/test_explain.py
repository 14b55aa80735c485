"""`verify --explain`: which key, which bytes, and what no flag answered."""

from __future__ import annotations

from cli_tool import BUNDLES, KEYS, OWN, OWN_ID, OWN_PUB, ROOT, VECTORS

FACTS = ["file_order", "call", "session_complete", "expected_requests", "not_cut_back", "all_calls_present", "daemon_truthful", "key_holder"]
ANCHOR = ROOT / "testdata/anchors/own-mixed.anchor"


def explained(cli, *args):
    found = cli.both("verify", "--explain", *args)
    explain = found.json["explain"]
    established = [fact["fact"] for fact in explain["established"]]
    missing = [gap["fact"] for gap in explain["not_established"]]
    assert set(established) | set(missing) <= set(FACTS)
    assert not set(established) & set(missing), "one fact on both sides"
    return found, explain, set(established), set(missing)


def key_of(explain) -> str:
    [order] = [fact for fact in explain["established"] if fact["fact"] == "file_order"]
    return order["key_id"]


def test_the_key_that_verified_is_named_wherever_it_stands(cli):
    for keys in ((OWN_PUB, KEYS / "second.pub"), (KEYS / "second.pub", OWN_PUB), (KEYS / "second.pub", VECTORS / "sessions-v1.pub", OWN_PUB)):
        flags = [part for key in keys for part in ("--pub", key)]
        for bundle in (OWN, BUNDLES / "missing-line.jsonl", BUNDLES / "no-checkpoint.jsonl"):
            found, explain, *_ = explained(cli, *flags, bundle)
            assert key_of(explain) == OWN_ID, "also when a later line is refused"
            human = cli("verify", "--explain", *flags, bundle).text
            assert f"by  key {OWN_ID[:12]}" in human


def test_no_key_is_named_when_none_verified(cli):
    found, explain, established, _ = explained(cli, "--pub", KEYS / "second.pub", OWN)
    assert found.code == 1 and established == set()


def test_flags_move_facts_up_with_their_ground(cli):
    base = ("--pub", OWN_PUB)
    _, _, established, missing = explained(cli, *base, OWN)
    assert established == {"file_order", "call", "session_complete"}
    assert missing == {"not_cut_back", "all_calls_present", "daemon_truthful", "key_holder"}
    _, explain, established, missing = explained(cli, *base, "--anchor", ANCHOR, OWN)
    assert "not_cut_back" in established and "all_calls_present" in missing
    assert any(fact["by"].startswith("anchor ") for fact in explain["established"])
    _, explain, established, missing = explained(cli, *base, "--expect-count", "7", OWN)
    assert "not_cut_back" in established and {"all_calls_present"} <= missing and "expected_requests" not in established, "a count is no list"
    _, explain, established, missing = explained(cli, *base, "--expect", VECTORS / "own-mixed.expect", OWN)
    assert {"expected_requests", "all_calls_present", "not_cut_back"} <= established
    assert missing == {"daemon_truthful", "key_holder"}


def test_a_flag_that_is_not_met_establishes_nothing(cli):
    for args in (("--expect-count", "6"), ("--anchor", ROOT / "testdata/anchors/stranger.anchor"), ("--expect", VECTORS / "own-mixed.expect", "--expect-count", "6")):
        found, _, established, missing = explained(cli, "--pub", OWN_PUB, *args, OWN)
        assert found.code == 1 and {"not_cut_back", "all_calls_present"} <= missing and "expected_requests" not in established
    # Evidence that is refused answers no flag.
    found, _, established, missing = explained(cli, "--pub", OWN_PUB, "--anchor", ANCHOR, "--expect-count", "6", BUNDLES / "missing-line.jsonl")
    assert {"not_cut_back", "all_calls_present"} <= missing
