"""`--state`: a later run checks only what is new, trusts nothing that this user did not write, and destroys no other file."""

from __future__ import annotations

import os
import stat

import pytest
from cli_tool import BUNDLES, KEYS, OWN, OWN_KEY, OWN_PUB


@pytest.fixture
def bundle(cli):
    """A bundle of this user's own that can grow."""
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)

    def grow(runs: int = 1):
        for _ in range(runs):
            assert cli("run", "--js", "1", "--key", key).code == 0
        return cli.bundle

    grow()
    grow.key = key
    return grow


def verify(cli, *args, **options):
    return cli("verify", "--json", "--pub", OWN_PUB, "--state", "s", *args, cli.bundle, **options)


def state_key(cli):
    return cli.home / ".local/state/plimsoll/state.key"


def test_a_grown_bundle_costs_only_its_new_lines(cli, bundle):
    first = verify(cli)
    assert first.code == 0 and b"there is no state yet" in first.err
    assert first.json["bundles"][0]["verified_earlier"] == 0
    assert stat.S_IMODE((cli.cwd / "s").stat().st_mode) == 0o600
    assert stat.S_IMODE(state_key(cli).stat().st_mode) == 0o600 and state_key(cli).stat().st_size == 32
    assert stat.S_IMODE(state_key(cli).parent.stat().st_mode) == 0o700
    bundle(2)
    second = verify(cli)
    plain = cli("verify", "--json", "--pub", OWN_PUB, cli.bundle).json["bundles"][0]
    found = second.json["bundles"][0]
    assert found.pop("verified_earlier") == 2 and found == plain
    human = cli("verify", "--pub", OWN_PUB, "--state", "s", cli.bundle)
    assert "lines 1 to 6 verified earlier, unchanged\n" in human.text and human.err == b""


def test_signatures_are_not_checked_again_and_bytes_are(cli, bundle):
    """What a state stands for is hashed: a change there is seen, whatever it is."""
    verify(cli)
    bundle()
    whole = cli.bundle.read_bytes()
    for at in (10, 200, whole.index(b"\n") - 2):
        cli.bundle.write_bytes(whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        found = verify(cli)
        assert found.code == 1 and b"are not those verified before" in found.err
    cli.bundle.write_bytes(whole[: len(whole) // 4])
    assert verify(cli).code == 1
    cli.bundle.write_bytes(whole)
    assert verify(cli).json["bundles"][0]["verified_earlier"] == 2, "a refused run leaves the state as it was"


@pytest.mark.parametrize("change", ["altered", "foreign", "version", "cut", "empty"])
def test_a_state_that_is_none_costs_a_full_verification(cli, bundle, change):
    verify(cli)
    good = (cli.cwd / "s").read_bytes()
    bad = {
        "altered": good.replace(b'"lines":2', b'"lines":4'),
        "foreign": good,
        "version": good.replace(b"verify-state/v1", b"verify-state/v0"),
        "cut": good[: len(good) // 2],
        "empty": b"",
    }[change]
    assert bad != good or change == "foreign"
    (cli.cwd / "s").write_bytes(bad)
    if change == "foreign":
        state_key(cli).write_bytes(bytes(32))
    found = verify(cli)
    assert found.code == 0 and found.json["bundles"][0]["verified_earlier"] == 0
    assert b"everything is verified" in found.err
    assert verify(cli).json["bundles"][0]["verified_earlier"] == 2, "a good one was written in its place"


def test_no_other_file_is_ever_replaced(cli, bundle):
    files = [cli.bundle, bundle.key, OWN_PUB]
    (cli.cwd / "notes").write_text("{\n")
    (cli.cwd / "json").write_text('{"format":"plimsoll-attest/verify/v1"}\n')
    (cli.cwd / "link").symlink_to("s")
    (cli.cwd / "folder").mkdir()
    for file in [*files, cli.cwd / "notes", cli.cwd / "json", cli.cwd / "link", cli.cwd / "folder"]:
        before = file.read_bytes() if file.is_file() else None
        found = cli.both("verify", "--pub", OWN_PUB, "--state", file, cli.bundle)
        assert (found.code, found.cls, found.error["reason"]) == (2, "exists", "not_a_state"), file
        assert before is None or file.read_bytes() == before
    assert not (cli.cwd / "s").exists()


def test_policy_and_expectations_need_every_record(cli, bundle):
    verify(cli)
    for args in (("--require-tier", "process"), ("--expect-count", "1"), ("--explain",)):
        found = verify(cli, *args)
        assert found.code == 0 and found.json["bundles"][0]["verified_earlier"] == 0
        assert b"every record is needed" in found.err
    assert verify(cli, "--require-tier", "vm").code == 5


def test_an_anchor_goes_with_a_state(cli, bundle):
    anchor = ("--write-anchor", "a", "--key", bundle.key)
    assert verify(cli, *anchor).code == 0
    bundle()
    found = verify(cli, "--anchor", "a", *anchor)
    assert found.json["bundles"][0]["verified_earlier"] == 2 and found.json["bundles"][0]["anchor"] == "written"
    # Two anchors that name two lines: both lines must be seen.
    bundle()
    (cli.cwd / "b").write_bytes((cli.cwd / "a").read_bytes())
    assert cli("verify", "--pub", OWN_PUB, "--write-anchor", "b", "--key", bundle.key, cli.bundle).code == 0
    assert verify(cli, "--anchor", "a", "--write-anchor", "b", "--key", bundle.key).code == 0


def test_a_state_under_another_key_is_not_used(cli, bundle):
    verify(cli)
    found = cli("verify", "--json", "--pub", KEYS / "second.pub", "--state", "s", cli.bundle)
    assert found.cls == "signature" and b"under another public key" in found.err


def test_no_place_for_the_key_is_told_and_nothing_is_lost(cli, bundle):
    for env in ({"HOME": None}, {"HOME": "relative"}, {"XDG_STATE_HOME": str(cli.bundle)}):
        found = verify(cli, env=env)
        assert found.code == 0 and b"no state is used or kept" in found.err and not (cli.cwd / "s").exists(), env
    os.makedirs(state_key(cli).parent, exist_ok=True)
    state_key(cli).write_bytes(bytes(32))
    state_key(cli).chmod(0o644)
    found = verify(cli)
    assert found.code == 0 and b"group or others have permissions" in found.err and not (cli.cwd / "s").exists()
    state_key(cli).chmod(0o600)
    state_key(cli).write_bytes(b"short")
    assert b"no state is used or kept" in verify(cli).err


def test_a_place_that_takes_no_file_is_told_after_the_verdict(cli, bundle):
    found = cli.both("verify", "--pub", OWN_PUB, "--state", "absent/s", cli.bundle)
    assert (found.code, found.cls) == (1, "io") and "the bundle verifies" in found.error["message"]


def test_nothing_is_written_without_success(cli, bundle):
    for broken in ("empty", "checkpoint-only", "missing-line"):
        found = cli.both("verify", "--pub", OWN_PUB, "--state", "s", BUNDLES / f"{broken}.jsonl")
        assert found.code == 1 and not (cli.cwd / "s").exists()
    fifo = cli.cwd / "fifo"
    os.mkfifo(fifo)
    process = cli.popen("verify", "--pub", OWN_PUB, "--state", "s", fifo)
    try:
        with open(fifo, "wb") as end:
            end.write(OWN.read_bytes())
    except BrokenPipeError:
        pass
    out, err = process.communicate(timeout=60)
    assert process.returncode == 2 and b"not a regular file" in err
