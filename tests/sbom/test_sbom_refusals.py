"""Selections, evidence and BOMs that are refused, each with its code."""

from __future__ import annotations

import base64
import copy
import hashlib
import json

import pytest
from cli_tool import OWN_PUB
from sbom_examples import PUB, RECEIPT, SESSION, SINGLE, WHOLE_SESSION, attach, attached, bom, bom_file, bundle, component, entries, file_form, linked, resealed


def test_selections_that_give_no_bom(cli):
    whole = bundle(WHOLE_SESSION)
    found = cli.both("sbom", "--pub", PUB, "--out", "x.json", whole)
    assert found.cls == "many_runs" and "lines 1, 2, 3" in found.error["message"]
    for selector, cls in (
        (("--line", 4), "not_a_call"),
        (("--line", 5), "not_a_call"),
        (("--line", 9), "no_runs"),
        (("--session", "0" * 64), "no_runs"),
        (("--session", "x"), "no_runs"),
        (("--session", SESSION[:63]), "no_runs"),
        (("--scope", "line", "--line", 4), "not_a_call"),
        (("--scope", "line", "--line", 9), "no_runs"),
    ):
        assert cli.both("sbom", "--pub", PUB, *selector, "--out", "x.json", whole).cls == cls, selector
    assert not (cli.cwd / "x.json").exists()


def test_flags_that_do_not_go_together(cli):
    for args in (
        ("--pub", PUB, "--scope", "line", bundle(SINGLE)),
        ("--pub", PUB, "--scope", "line", "--session", SESSION, bundle(SINGLE)),
        ("--pub", PUB, "--line", 1, "--session", SESSION, bundle(SINGLE)),
        ("--pub", PUB, "--line", 1, "--all", "--out", "d", bundle(SINGLE)),
        ("--pub", PUB, "--all", bundle(SINGLE)),
        ("--pub", PUB, bundle(SINGLE), bundle(WHOLE_SESSION)),
        ("--pub", PUB, "--image-name", "node:20", bundle(SINGLE)),
        ("--pub", PUB, "--image-name", "Node", bundle(SINGLE)),
        ("--pub", PUB, "--bundle", bundle(SINGLE), bom_file(SINGLE)),
        ("--pub", PUB, "--attached", bom_file(SINGLE)),
        ("--check", "--pub", PUB, bom_file(SINGLE)),
        ("--check", "--pub", PUB, "--attached", "--bundle", bundle(SINGLE), bom_file(SINGLE)),
        ("--check", "--pub", PUB, "--attached", "--line", 1, bom_file(SINGLE)),
        ("--check", "--pub", PUB, "--attached", "--spec-version", "1.6", bom_file(SINGLE)),
        ("--check", "--attached", bom_file(SINGLE)),
        ("--pub", PUB, "--spec-version", "1.5", bundle(SINGLE)),
        ("--pub", PUB, "-"),
        ("--json", "--pub", PUB, bundle(SINGLE)),
    ):
        found = cli("sbom", *args)
        assert (found.code, found.cls) == (2, "usage"), args


def test_files_that_cannot_be_read(cli):
    assert cli.both("sbom", "--pub", PUB, "--out", "x", "none.jsonl").cls == "io"
    assert cli.both("sbom", "--pub", "none.pub", "--out", "x", bundle(SINGLE)).cls == "io"
    assert cli.both("sbom", "--pub", bundle(SINGLE), "--out", "x", bundle(SINGLE)).cls == "key"
    assert cli.both("sbom", "--check", "--pub", PUB, "--attached", cli.cwd).cls == "io"
    assert cli.both("sbom", "--pub", PUB, "--out", "none/x.json", bundle(SINGLE)).cls == "io"


def test_another_key(cli):
    assert cli.both("sbom", "--pub", OWN_PUB, "--out", "x.json", bundle(SINGLE)).cls == "signature"
    assert not (cli.cwd / "x.json").exists()
    assert cli.both("sbom", "--check", "--pub", OWN_PUB, "--bundle", bundle(SINGLE), bom_file(SINGLE)).cls == "key_mismatch"


def test_bundles_that_are_cut(cli):
    lines = bundle(WHOLE_SESSION).read_bytes().splitlines(keepends=True)
    cut = cli.cwd / "cut.jsonl"
    cut.write_bytes(linked(entries(WHOLE_SESSION)[:3]))
    # Signed again without the close: an open session.
    assert cli.both("sbom", "--pub", PUB, "--session", SESSION, "--out", "x", cut).cls == "chain"
    assert cli("sbom", "--pub", PUB, "--line", 2, "--scope", "line", "--out", "line.json", cut).code == 0
    checked = cli("sbom", "--check", "--pub", PUB, "--bundle", cut, "line.json")
    assert checked.code == 0 and "the rest of the bundle is not established" in checked.prose
    cut.write_bytes(lines[0])
    assert cli.both("sbom", "--pub", PUB, "--line", 1, "--out", "x", cut).cls == "incomplete"
    assert cli("sbom", "--pub", PUB, "--line", 1, "--scope", "line", "--out", "one.json", cut).code == 0
    # A BOM of a whole bundle needs a whole bundle.
    assert cli("sbom", "--pub", PUB, "--line", 1, "--out", "whole.json", bundle(WHOLE_SESSION)).code == 0
    assert cli.both("sbom", "--check", "--pub", PUB, "--bundle", cut, "whole.json").cls == "incomplete"


def test_a_record_that_is_not_of_its_answer(cli):
    entry = json.loads(entries(SINGLE)[0])
    response = base64.b64decode(entry["response"])
    assert response.count(b"1,2,3\n") == 1
    entry["response"] = base64.b64encode(response.replace(b"1,2,3\n", b"1,2,4\n")).decode()
    forged = cli.cwd / "forged.jsonl"
    forged.write_bytes(linked([json.dumps(entry, separators=(",", ":")).encode()]))
    for scope in ((), ("--scope", "line", "--line", 1)):
        assert cli.both("sbom", "--pub", PUB, *scope, "--out", "x.json", forged).cls == "stored"
    assert not (cli.cwd / "x.json").exists()


def test_a_line_that_is_too_large(cli):
    limits = ("--max-attach", "3000", "--out", "x.json")
    found = cli.both("sbom", "--pub", PUB, *limits, bundle(SINGLE))
    assert found.cls == "too_large" and found.error["line"] == 1
    assert cli("sbom", "--pub", PUB, "--attach", "envelope", *limits, bundle(SINGLE)).code == 0
    several = cli("sbom", "--json", "--pub", PUB, "--all", "--max-attach", "3000", "--out", "d", bundle(WHOLE_SESSION))
    assert several.code == 1
    assert [entry["ok"] for entry in several.json["boms"]] == [False, False, True]


def check(cli, name: str, content: bytes) -> tuple[str, str, dict]:
    """Codes with the bundle and with the attached lines; the first error."""
    file = cli.cwd / "t.cdx.json"
    file.write_bytes(content)
    one = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(name), file)
    two = cli.both("sbom", "--check", "--pub", PUB, "--attached", file)
    return one.cls, two.cls, one.error


def test_a_changed_attachment(cli):
    value = bom(SINGLE)
    line = attached(value, "line:1")
    content = component(value, "line:1")["data"][0]["contents"]["attachment"]
    content["content"] = base64.b64encode(line.replace(b"CAMS", b"CAIS", 1)).decode()
    assert check(cli, SINGLE, file_form(value))[:2] == ("attachment_hash", "attachment_hash")
    attach(value, "line:1", line.replace(b"CAMS", b"CAIS", 1))
    assert check(cli, SINGLE, file_form(value))[:2] == ("bom_serial", "bom_serial")
    assert check(cli, SINGLE, resealed(value))[:2] == ("attachment_evidence_mismatch", "link")


def test_a_changed_tier(cli):
    value = bom(SINGLE)
    value["declarations"]["claims"][0]["predicate"] = "isolation-tier=vm"
    assert check(cli, SINGLE, file_form(value))[0] == "bom_serial"
    with_bundle, alone, error = check(cli, SINGLE, resealed(value))
    assert (with_bundle, alone) == ("bom_mismatch", "bom_mismatch")
    assert error["pointer"] == "/declarations/claims/0/predicate"
    assert (error["expected"], error["found"]) == ('"isolation-tier=kernel"', '"isolation-tier=vm"')
    found = cli("sbom", "--check", "--pub", PUB, "--bundle", bundle(SINGLE), "t.cdx.json")
    assert found.code == 5


def test_forms_schemas_and_profiles(cli):
    text = bom_file(SINGLE).read_bytes()
    assert check(cli, SINGLE, json.dumps(json.loads(text), indent=4).encode())[0] == "bom_not_canonical"
    assert check(cli, SINGLE, text[:-1])[0] == "bom_not_canonical"
    assert check(cli, SINGLE, text.replace(b"\n", b"\r\n"))[0] == "bom_not_canonical"
    assert check(cli, SINGLE, b"\xef\xbb\xbf" + text)[0] == "bom_parse"
    assert check(cli, SINGLE, text.replace(b'"version": 1', b'"version": 1, "version": 1', 1))[0] == "bom_parse"
    value = bom(SINGLE)
    value["extra"] = "x"
    assert check(cli, SINGLE, resealed(value))[0] == "bom_schema"
    value = bom(SINGLE)
    value["properties"][0]["value"] = "2"
    assert check(cli, SINGLE, resealed(value))[0] == "bom_profile"


def test_an_attackers_key_and_signatures(cli):
    """Everything signed again by somebody else: the key asked for decides."""
    value = copy.deepcopy(bom(SINGLE))
    key = component(value, next(c["bom-ref"] for c in value["components"] if c["bom-ref"].startswith("key:")))
    key["cryptoProperties"]["relatedCryptoMaterialProperties"]["value"] = OWN_PUB.read_text()
    assert check(cli, SINGLE, resealed(value))[0] == "key_mismatch"


HOSTILE = [
    "../../etc/passwd",
    "a\u202ecod.js",
    "`x`",
    "<img src=x onerror=1>",
    "|",
    "::add-mask::x",
    "##[error]x",
    "\x1b[31mred",
    "x" * 5000,
    "é\u2028\u2029\u0000",
]


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_a_strangers_text_is_carried_and_never_acts(cli, name):
    """A name that would act on a terminal or a log stands in the BOM as it is, and is escaped where it is shown."""
    value = bom(SINGLE)
    component(value, "input:1:1")["name"] = name
    with_bundle, alone, error = check(cli, SINGLE, resealed(value))
    assert (with_bundle, alone) == ("bom_mismatch", "bom_mismatch")
    assert error["pointer"] == "/components/4/name"
    # What is printed was checked for control characters and log commands when it was run.
    file = cli.cwd / "t.cdx.json"
    cli("sbom", "--check", "--pub", PUB, "--attached", file, env={"GITHUB_ACTIONS": "true"})


def test_several_boms_are_all_worked_on(cli):
    bad = cli.cwd / "bad.json"
    value = bom(SINGLE)
    value["metadata"]["timestamp"] = "2026-10-18T09:00:00.342Z"
    bad.write_bytes(resealed(value))
    worse = cli.cwd / "worse.json"
    worse.write_bytes(b"{}")
    good = bom_file(SINGLE)
    for files, code in (((good, bad), 5), ((bad, worse, good), 1), ((good, good), 0)):
        found = cli("sbom", "--check", "--json", "--pub", PUB, "--bundle", bundle(SINGLE), *files)
        assert found.code == code
        assert [entry["ok"] for entry in found.json["boms"]] == [file == good for file in files]


def test_a_bundle_of_a_receipt_is_not_enough_without_its_statements(cli):
    """A run's BOM of the receipt's bundle is another BOM than the receipt's."""
    out = cli.cwd / "run.json"
    assert cli("sbom", "--pub", PUB, "--out", out, bundle(RECEIPT)).code == 0
    assert json.loads(out.read_bytes())["serialNumber"] != bom(RECEIPT)["serialNumber"]
    assert hashlib.sha256(out.read_bytes()).hexdigest() != hashlib.sha256(bom_file(RECEIPT).read_bytes()).hexdigest()
    value = bom(RECEIPT)
    del component(value, "statement:pr-receipt")["data"]
    assert check(cli, RECEIPT, resealed(value))[:2] == ("attachment_missing", "attachment_missing")


def test_a_strangers_statement_is_the_boms_fault(cli):
    value = bom(RECEIPT)
    envelope = json.loads(attached(value, "statement:pr-receipt"))
    envelope["signatures"][0]["keyid"] = "0" * 64
    attach(value, "statement:pr-receipt", json.dumps(envelope, separators=(",", ":")).encode())
    file = cli.cwd / "t.cdx.json"
    file.write_bytes(resealed(value))
    found = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(RECEIPT), file)
    assert found.error["file"] == str(file), found.error


def test_a_signal_leaves_whole_outputs_alone(cli):
    """Ended in the midst of many outputs: each is whole, and no unfinished one is left."""
    runs = cli.cwd / "runs.jsonl"
    runs.write_bytes(linked(entries(SINGLE)[:1] * 300))
    out = cli.cwd / "boms"
    process = cli.popen("sbom", "--pub", PUB, "--all", "--out", out, runs)
    with process:
        while process.poll() is None and not list(out.glob("*.cdx.json")):
            pass
        process.terminate()
        process.communicate(timeout=60)
    assert process.returncode == -15
    names = [each.name for each in out.iterdir()]
    assert names and all(name.endswith(".cdx.json") for name in names), names
