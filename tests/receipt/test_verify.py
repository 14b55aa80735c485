"""`pr-receipt verify`, `render` and `challenge` on the published example, offline."""

from __future__ import annotations

import base64
import json
import os
import shutil

import pytest
from cli_tool import ROOT, TABLE
from receipt_repo import BASE, EXAMPLE, HEAD, example


@pytest.fixture
def clone(tmp_path):
    return example(tmp_path / "clone")


@pytest.fixture
def receipt(tmp_path):
    folder = tmp_path / "receipt"
    shutil.copytree(EXAMPLE / "adder", folder)
    for file in folder.iterdir():
        file.chmod(0o644)
    return folder


def verify(cli, clone, receipt, *args, **options):
    head = () if "--head" in args or options.pop("no_head", False) else ("--head", HEAD)
    return cli("pr-receipt", "verify", "--json", "--repo", clone, *head, *args, receipt, **options)


def test_the_example(cli, clone, receipt):
    done = cli("pr-receipt", "verify", "--repo", clone, "--head", HEAD, receipt)
    assert done.code == 0
    last = done.out.decode().splitlines()[-1]
    assert last == "RECEIPT OK  example-org/adder#7 at 242085db3979  PASSED 2/0/0/0  tier kernel (stated by the daemon; not hardware attestation)"
    assert done.err == b""
    script = verify(cli, clone, receipt)
    assert [step["n"] for step in script.json["steps"]] == list(range(1, 14)) and all(step["ok"] for step in script.json["steps"])
    assert script.json["bom_sha256"] == "d5a533b4281f6a3199195070d2abc8f7024d4eceee015b11276739763c4743ec"


def test_one_answer_in_every_environment(cli, clone, receipt):
    first = verify(cli, clone, receipt).out
    for env in ({"TZ": "Asia/Kolkata", "LC_ALL": "tr_TR.UTF-8"}, {"GIT_DIR": "/nowhere", "GIT_OBJECT_DIRECTORY": "/nowhere", "GIT_REPLACE_REF_BASE": "x"}):
        assert verify(cli, clone, receipt, env=env).out == first


def test_what_the_reviewer_knows_is_named(cli, clone, receipt):
    sources = verify(cli, clone, receipt).json["sources"]
    assert sources == ["key: from the receipt itself", "repository and number: from the receipt itself", "head: given with --head", f"base: {BASE}, the receipt's own word; give --base-ref to name yours"]
    known = verify(cli, clone, receipt, "--pub", receipt / "receipt.pub", "--base-ref", BASE).json["sources"]
    assert known == ["key: given with --pub", "repository and number: from the receipt itself", "head: given with --head", f"base: {BASE}, given with --base-ref"]
    # Only the receipt's word is no base to insist on.
    strict = verify(cli, clone, receipt, "--require-workflow-unchanged")
    assert (strict.code, strict.cls) == (1, "workflow_changed")
    assert verify(cli, clone, receipt, "--require-workflow-unchanged", "--base-ref", BASE).code == 0
    assert verify(cli, clone, receipt, "--workflow", ".github/workflows/plimsoll-receipt.yml").code == 0
    assert verify(cli, clone, receipt, "--workflow", ".github/workflows/other.yml").cls == "workflow_changed"


def test_the_head(cli, clone, receipt):
    assert verify(cli, clone, receipt, "--head", BASE).cls == "git_commit"
    for bad in (HEAD[:-1], HEAD.upper(), "HEAD", ""):
        assert verify(cli, clone, receipt, "--head", bad).code == 2
    # Without it the clone must have a name for it.
    assert verify(cli, clone, receipt, no_head=True).cls == "usage"
    for name, text in (("refs/pull/7/head", HEAD), ("refs/remotes/origin/pr/7", HEAD)):
        file = clone / ".git" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n")
        assert verify(cli, clone, receipt, no_head=True).code == 0
    (clone / ".git/refs/remotes/origin/pr/7").write_text(BASE + "\n")
    assert verify(cli, clone, receipt, no_head=True).cls == "git_commit"
    for name in ("refs/pull/7/head", "refs/remotes/origin/pr/7"):
        (clone / ".git" / name).unlink()
    (clone / ".git/packed-refs").write_text(f"# pack-refs with: peeled fully-peeled sorted\n{HEAD} refs/remotes/origin/pr/7\n")
    assert verify(cli, clone, receipt, no_head=True).code == 0


def test_keys(cli, clone, receipt):
    key = "8b101f25ca1dd8273794606a8172594ce47f8e53ae5bd2450cbf6026b862ab13"
    assert verify(cli, clone, receipt, "--keyid", key).code == 0
    assert verify(cli, clone, receipt, "--keyid", "0" * 64).cls == "key_mismatch"
    cli("keygen", "--out", "other")
    assert verify(cli, clone, receipt, "--pub", "other.pub").cls == "key_mismatch"


def test_floors(cli, clone, receipt):
    for floor, code in (("none", 0), ("container", 0), ("kernel", 0), ("vm", 1)):
        done = verify(cli, clone, receipt, "--floor", floor)
        assert done.code == code and (code == 0 or done.cls == "floor_not_met")


def test_without_a_clone(cli, receipt):
    common = ["pr-receipt", "verify", "--json"]
    assert cli(*common, receipt).cls == "usage"
    done = cli(*common, "--no-git", receipt)
    assert (done.code, done.cls) == (1, "git_commit") and "not tied to a revision" in done.error["message"]
    assert cli(*common, "--no-git", "--allow-unbound", "--head", HEAD, receipt).code == 1
    unbound = cli(*common, "--no-git", "--allow-unbound", receipt)
    assert unbound.code == 0 and any("not tied" in source for source in unbound.json["sources"])
    assert cli(*common, "--no-git", "--repo", ".", receipt).cls == "usage"
    assert cli(*common, "--repo", "/nowhere", "--head", HEAD, receipt).cls == "io"


def test_a_commit_that_is_not_there(cli, clone, receipt):
    """Also when only one of its objects is damaged or exchanged."""
    objects = clone / ".git/objects"
    commit = objects / HEAD[:2] / HEAD[2:]
    kept = commit.read_bytes()
    commit.unlink()
    assert verify(cli, clone, receipt).cls == "git_commit"
    # Another commit's bytes under its name.
    other = objects / BASE[:2] / BASE[2:]
    commit.write_bytes(other.read_bytes())
    assert verify(cli, clone, receipt).cls == "git_commit"
    commit.write_bytes(kept)
    assert verify(cli, clone, receipt).code == 0
    blob = "bf906012673a39250ff35964a8c9a5d5d4bf8bbb"
    tree = "7e0831dd1fdc0bf463ac0210e444363fefdc6d01"
    file = objects / tree[:2] / tree[2:]
    kept = file.read_bytes()
    file.chmod(0o644)
    file.write_bytes((objects / blob[:2] / blob[2:]).read_bytes())
    assert verify(cli, clone, receipt).cls == "git_tree"
    file.write_bytes(kept)
    assert verify(cli, clone, receipt).code == 0


def test_every_file_is_needed(cli, clone, receipt):
    for name in ("receipt.cdx.json", "bundle.jsonl", "test-result.dsse.json", "receipt.dsse.json", "receipt.pub"):
        kept = (receipt / name).read_bytes()
        (receipt / name).unlink()
        assert verify(cli, clone, receipt).cls == "io", name
        (receipt / name).mkdir()
        assert verify(cli, clone, receipt).cls == "io", name
        (receipt / name).rmdir()
        os.mkfifo(receipt / name)
        assert verify(cli, clone, receipt).cls == "io", name
        (receipt / name).unlink()
        (receipt / name).write_bytes(kept)
    assert verify(cli, clone, receipt).code == 0


def test_one_byte_anywhere_is_refused(cli, clone, receipt):
    """Each file, at places spread over its length."""
    for name in ("receipt.cdx.json", "bundle.jsonl", "test-result.dsse.json", "receipt.dsse.json", "receipt.pub"):
        kept = (receipt / name).read_bytes()
        for part in range(8):
            at = (len(kept) - 1) * part // 7
            changed = bytearray(kept)
            changed[at] ^= 1
            (receipt / name).write_bytes(changed)
            done = verify(cli, clone, receipt)
            assert done.code in (TABLE["refused"], TABLE["negative"]) and done.code != 0, (name, at)
        (receipt / name).write_bytes(kept)


def test_spellings_of_an_envelope(cli, clone, receipt):
    """Padding, alphabet, white space and a second signature: one spelling is taken."""
    file = receipt / "receipt.dsse.json"
    good = json.loads(file.read_text())
    payload = base64.b64decode(good["payload"])
    sig = good["signatures"][0]
    for changed in (
        {**good, "payload": base64.urlsafe_b64encode(payload).decode()},
        {**good, "payload": good["payload"].rstrip("=")},
        {**good, "payload": good["payload"] + "\n"},
        {**good, "signatures": [sig, sig]},
        {**good, "signatures": []},
        {**good, "payloadType": "application/json"},
        {**good, "x": 1},
    ):
        file.write_text(json.dumps(changed, separators=(",", ":")) + "\n")
        done = verify(cli, clone, receipt)
        if changed != good:
            assert done.code == 1, changed.keys()


def test_render_writes_the_same_again_and_touches_no_evidence(cli, receipt):
    before = {file.name: file.read_bytes() for file in receipt.iterdir()}
    first = cli("pr-receipt", "render", "--json", receipt)
    assert first.code == 0 and first.json["result"] == "PASSED"
    made = {name: (receipt / name).read_bytes() for name in ("summary.md", "report.html")}
    assert cli("pr-receipt", "render", receipt).code == 0
    assert {name: (receipt / name).read_bytes() for name in made} == made
    assert {name: (receipt / name).read_bytes() for name in before} == before
    (receipt / "summary.md").unlink()
    (receipt / "summary.md").symlink_to(receipt / "receipt.pub")
    assert cli("pr-receipt", "render", receipt).cls == "exists"
    assert (receipt / "receipt.pub").read_bytes() == before["receipt.pub"]


def test_render_says_what_is_wrong_as_verify_does(cli, receipt):
    bundle = receipt / "bundle.jsonl"
    data = bytearray(bundle.read_bytes())
    data[200] ^= 1
    bundle.write_bytes(data)
    done = cli.both("pr-receipt", "render", receipt)
    assert done.code == 1 and done.error["file"].endswith("bundle.jsonl") and done.error["line"] == 1, done.text
    assert done.error["message"] == cli.both("verify", "--pub", receipt / "receipt.pub", bundle).error["message"]


def test_the_challenge(cli, clone, receipt):
    done = cli("pr-receipt", "challenge", "--json", "--repo", clone, "--head", HEAD, "--out", "wrong", receipt, timeout=300)
    assert done.code == 0, done.text
    listed = json.loads((cli.cwd / "wrong/challenge.json").read_text())
    assert len(listed) >= 40 and all(one["ok"] and one["refused"] == one["code"] for one in listed)
    assert len({one["code"] for one in listed}) >= 20
    # A reviewer's own check of some of them agrees.
    for one in listed[::7]:
        if one["directory"] != "signed-by-another-key":
            again = verify(cli, clone, cli.cwd / "wrong" / one["directory"])
            assert again.cls == one["code"], one
    assert cli("pr-receipt", "challenge", "--repo", clone, "--head", HEAD, "--out", "wrong", receipt).cls == "exists"
    # What does not hold is not challenged.
    assert cli("pr-receipt", "challenge", "--repo", clone, "--head", HEAD, "--out", "w2", cli.cwd / "wrong/file-replaced").cls == "file_mismatch"


def test_the_statements_are_in_toto_s(receipt):
    """Read with an independent implementation of DSSE."""
    from securesystemslib.dsse import Envelope
    from securesystemslib.signer import SSlibKey

    pem = (receipt / "receipt.pub").read_text()
    for name, kind in (("test-result.dsse.json", "https://in-toto.io/attestation/test-result/v0.1"), ("receipt.dsse.json", "urn:plimsoll-attest:pr-receipt:v1")):
        envelope = json.loads((receipt / name).read_text())
        keyid = envelope["signatures"][0]["keyid"]
        key = SSlibKey(keyid, "ed25519", "ed25519", {"public": _raw(pem).hex()})
        opened = Envelope.from_dict(envelope)
        assert opened.verify([key], 1)
        statement = json.loads(opened.payload)
        assert statement["_type"] == "https://in-toto.io/Statement/v1" and statement["predicateType"] == kind
        assert all(set(subject) == {"name", "digest"} for subject in statement["subject"])


def _raw(pem: str) -> bytes:
    return base64.b64decode("".join(line for line in pem.splitlines() if not line.startswith("-")))[-32:]


def test_init_writes_a_workflow_that_passes_its_own_rules(cli):
    import re

    done = cli("pr-receipt", "init", "--json")
    assert done.code == 0
    workflow = (cli.cwd / ".github/workflows/plimsoll-receipt.yml").read_text()
    code = "\n".join(line.split("#")[0] for line in workflow.splitlines())
    for word in ("secrets.", "pull_request_target", "write"):
        assert word not in code, word
    uses = re.findall(r"uses:\s*(\S+)", code)
    assert uses and all(re.fullmatch(r"[\w./-]+@[0-9a-f]{40}", use) for use in uses), uses
    for again in (cli("pr-receipt", "init"), cli("pr-receipt", "init", "--path", ".github/workflows/other.yaml")):
        assert (again.code, again.cls) == (2, "exists")
    assert os.listdir(cli.cwd / ".github/workflows") == ["plimsoll-receipt.yml"]


def test_init_writes_to_a_place_of_workflows_in_the_repository_only(cli):
    outside = cli.folder / "outside"
    outside.mkdir()
    inside = cli.cwd
    bad = ["other.yml", ".github/other.yml", ".github/workflows/a.txt", ".github/workflows/.yml", ".github/workflows/yml", ".github/workflows/a/b.yml", ".GitHub/workflows/a.yml"]
    bad += [".github/workflows/../workflows/a.yml", f"../{inside.name}/.github/workflows/a.yml", outside / ".github/workflows/a.yml", inside / "a.yml", inside / "../.github/workflows/a.yml", "/"]
    for place in bad:
        refused = cli("pr-receipt", "init", "--json", "--path", place)
        assert (refused.code, refused.cls) == (2, "usage"), (place, refused.text)
        assert ".github/workflows/NAME.yml" in refused.text
    assert not list(inside.iterdir()) and not list(outside.iterdir())
    # A link below the repository may lead out of it, however the path is written.
    (inside / ".github").symlink_to(outside)
    for place in (".github/workflows/a.yml", inside / ".github/workflows/a.yml"):
        refused = cli("pr-receipt", "init", "--path", place)
        assert (refused.code, refused.cls) == (2, "io") and "is a link" in refused.text, place
    assert not list(outside.iterdir())
    (inside / ".github").unlink()
    # One above it is where the repository lies.
    (cli.folder / "way").symlink_to(inside)
    done = cli("pr-receipt", "init", "--json", "--path", cli.folder / "way/.github/workflows/a.yaml")
    assert (done.code, done.json["workflow"]) == (0, ".github/workflows/a.yaml"), done.text
    assert os.listdir(inside / ".github/workflows") == ["a.yaml"]


def test_the_schemas_are_of_this_program():
    names = {path.name for path in (ROOT / "schemas").glob("pr-receipt-*.schema.json")}
    assert names == {f"pr-receipt-{name}.v1.schema.json" for name in ("init", "run", "verify", "render", "challenge")}
