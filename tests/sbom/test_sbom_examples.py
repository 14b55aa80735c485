"""The worked examples through the command, byte for byte, and read by another library."""

from __future__ import annotations

import json
import os
import warnings

import pytest
from cli_tool import validate
from cyclonedx.model.bom import Bom
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from sbom_examples import EXPECTED, KEY_ID, NAMES, PUB, RECEIPT, SESSION, SINGLE, WHOLE_SESSION, bom, bom_file, bundle, file_form, serial_of

SELECT = {SINGLE: (), WHOLE_SESSION: ("--session", SESSION)}


@pytest.mark.parametrize("name", SELECT)
def test_an_example_is_written_byte_for_byte(cli, name):
    for number, env in enumerate(({}, {"TZ": "Asia/Tokyo", "LC_ALL": "de_DE.UTF-8", "LANG": "de_DE.UTF-8"})):
        out = cli.cwd / f"{number}.cdx.json"
        found = cli("sbom", "--pub", PUB, *SELECT[name], "--out", out, bundle(name), env=env)
        assert found.code == 0 and found.err == b""
        assert out.read_bytes() == bom_file(name).read_bytes()
        assert out.stat().st_mode & 0o777 == 0o600
    printed = cli("sbom", "--pub", PUB, *SELECT[name], bundle(name), raw=True)
    assert printed.code == 0 and printed.out == bom_file(name).read_bytes()
    assert f"key {KEY_ID[:12]}…  whole bundle verified" in printed.err.decode()


@pytest.mark.parametrize("name", NAMES)
def test_an_example_passes_its_check_both_ways(cli, name):
    found = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(name), bom_file(name))
    assert found.code == 0
    [entry] = found.json["boms"]
    expected = EXPECTED[f"{name}.cdx.json"]
    assert entry["serial_number"] == expected["serialNumber"] == serial_of(bom(name))
    assert entry["bom_sha256"] == expected["bom_sha256"]
    assert entry["records"] == expected["records"]
    text = cli("sbom", "--check", "--pub", PUB, "--attached", bom_file(name))
    assert text.code == 0
    assert "the rest of the file its lines came from is not established" in text.prose
    assert "stated by the daemon; not hardware attestation" in text.prose


@pytest.mark.parametrize("version", ["1.6", "1.7"])
@pytest.mark.parametrize("name", NAMES)
def test_another_library_finds_no_fault_and_lists_every_component(cli, name, version):
    if name == RECEIPT or version == "1.6":
        text = bom_file(name).read_text()
    else:
        text = cli("sbom", "--pub", PUB, *SELECT[name], "--spec-version", version, bundle(name), raw=True).out.decode()
    version = json.loads(text)["specVersion"]
    assert JsonStrictValidator(SchemaVersion.from_version(version)).validate_str(text) is None
    value = json.loads(text)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = Bom.from_json(value)
    assert f"urn:uuid:{read.serial_number}" == value["serialNumber"]
    listed = sorted(str(each.bom_ref) for each in read.components)
    assert listed == sorted(each["bom-ref"] for each in value["components"])
    assert str(read.metadata.component.bom_ref) == value["metadata"]["component"]["bom-ref"]


def test_a_newer_version_differs_in_two_members(cli):
    newer = json.loads(cli("sbom", "--pub", PUB, "--spec-version", "1.7", bundle(SINGLE), raw=True).out)
    older = bom(SINGLE)
    assert {name for name in newer if newer[name] != older[name]} == {"$schema", "specVersion", "serialNumber"}
    assert newer["serialNumber"] == serial_of(newer)


def test_every_call_of_a_bundle(cli):
    found = cli.both("sbom", "--pub", PUB, "--all", "--force", "--out", cli.cwd / "boms", bundle(WHOLE_SESSION))
    assert found.code == 0
    assert [entry["lines"] for entry in found.json["boms"]] == [[1], [2], [3]]
    files = sorted((cli.cwd / "boms").iterdir())
    assert [each.name for each in files] == [f"line-{n}.cdx.json" for n in (1, 2, 3)]
    assert all(each.stat().st_mode & 0o777 == 0o600 for each in files)
    checked = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(WHOLE_SESSION), *files)
    assert checked.code == 0 and len(checked.json["boms"]) == 3
    for file in files:
        assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(file.read_text()) is None
        assert file.read_bytes() == file_form(json.loads(file.read_bytes()))


def test_an_image_name_is_the_authors_word(cli):
    out = cli.cwd / "named.cdx.json"
    name = "docker.io/library/node"
    assert cli("sbom", "--pub", PUB, "--image-name", name, "--out", out, bundle(SINGLE)).code == 0
    value = json.loads(out.read_bytes())
    software = next(each for each in value["components"] if each["bom-ref"].startswith("software:"))
    digest = software["version"]
    assert software["purl"] == f"pkg:oci/node@{digest}?arch=amd64&repository_url={name}"
    assert {"name": "plimsoll:imageName", "value": "stated-by-bom-author"} in software["properties"]
    checked = cli("sbom", "--check", "--pub", PUB, "--bundle", bundle(SINGLE), out)
    assert checked.code == 0
    assert f"bom:imageName {name}, which is its author's statement" in checked.prose


def test_an_envelope_alone(cli):
    out = cli.cwd / "envelope.cdx.json"
    assert cli("sbom", "--pub", PUB, "--attach", "envelope", "--out", out, bundle(SINGLE)).code == 0
    line = json.loads(bundle(SINGLE).read_bytes().splitlines()[0])
    found = next(each for each in json.loads(out.read_bytes())["components"] if each["bom-ref"] == "line:1")
    assert found["name"] == "record envelope 1"
    assert str(len(json.dumps(line["envelope"], separators=(",", ":")))) == found["properties"][2]["value"]
    assert cli("sbom", "--check", "--pub", PUB, "--bundle", bundle(SINGLE), out).code == 0
    assert cli.both("sbom", "--check", "--pub", PUB, "--attached", out).cls == "attachment_missing"


def test_outputs_are_whole_or_not_there(cli):
    out = cli.cwd / "x.json"
    out.write_text("mine")
    assert cli.both("sbom", "--pub", PUB, "--out", out, bundle(SINGLE)).cls == "exists"
    assert out.read_text() == "mine"
    assert cli("sbom", "--pub", PUB, "--force", "--out", out, bundle(SINGLE)).code == 0
    link = cli.cwd / "link.json"
    link.symlink_to(cli.cwd / "elsewhere.json")
    assert cli.both("sbom", "--pub", PUB, "--force", "--out", link, bundle(SINGLE)).cls == "exists"
    assert not (cli.cwd / "elsewhere.json").exists()
    # Evidence and key are never written over, by whatever name.
    mine, pub = cli.cwd / "runs.jsonl", cli.cwd / "my.pub"
    mine.write_bytes(bundle(SINGLE).read_bytes())
    pub.write_bytes(PUB.read_bytes())
    for target in (mine, pub, os.path.join(cli.cwd, "..", cli.cwd.name, "runs.jsonl")):
        assert cli.both("sbom", "--pub", pub, "--force", "--out", target, mine).cls == "usage", target
    assert mine.read_bytes() == bundle(SINGLE).read_bytes() and pub.read_bytes() == PUB.read_bytes()
    assert [each.name for each in cli.cwd.iterdir() if each.name.startswith(".")] == []


def test_a_closed_standard_output_is_a_failure_of_the_product(cli):
    with cli.broken_pipe() as closed:
        found = cli("sbom", "--pub", PUB, bundle(SINGLE), raw=True, stdout=closed)
    assert found.code == 1 and b"error[io]" in found.err
    with cli.broken_pipe() as closed:
        assert cli("sbom", "--check", "--pub", PUB, "--attached", bom_file(SINGLE), raw=True, stdout=closed).code == 0


def test_the_object_is_of_its_schema(cli):
    found = cli("sbom", "--json", "--pub", PUB, "--out", "x.json", bundle(SINGLE))
    validate(found.json, "sbom.v1.schema.json")
    assert found.json["boms"][0]["kind"] == "run" and found.json["boms"][0]["scope"] == "bundle"


def test_a_thousand_checks_compile_the_schema_once(cli):
    files = []
    for number in range(1000):
        file = cli.cwd / f"{number}.json"
        file.hardlink_to(cli.cwd / "0.json") if number else file.write_bytes(bom_file(SINGLE).read_bytes())
        files.append(file)
    found = cli("sbom", "--check", "--json", "--pub", PUB, "--bundle", bundle(SINGLE), *files, timeout=300)
    assert found.code == 0 and len(found.json["boms"]) == 1000


def test_many_outputs_never_replace_evidence_or_keys(cli):
    """Every place is looked at before the first is written, by the file and not by its name."""
    key, pub = cli.default_key, cli.default_pub
    key.parent.mkdir(parents=True)
    key.write_text("private")
    pub.write_bytes(PUB.read_bytes())
    whole = bundle(WHOLE_SESSION).read_bytes()
    mine = cli.cwd / "line-2.cdx.json"
    mine.write_bytes(whole)
    for out in (".", cli.cwd):
        assert cli.both("sbom", "--pub", PUB, "--all", "--force", "--out", out, mine).cls == "usage", out
    other = cli.cwd / "runs.jsonl"
    os.link(mine, other)
    assert cli.both("sbom", "--pub", PUB, "--all", "--force", "--out", ".", other).cls == "usage"
    other.unlink()
    other.symlink_to(mine)
    mine.write_bytes(PUB.read_bytes())
    assert cli.both("sbom", "--pub", other, "--all", "--force", "--out", ".", bundle(WHOLE_SESSION)).cls == "usage"
    assert mine.read_bytes() == PUB.read_bytes()
    for given in (("--own",), ("--pub", PUB)):
        for half in (key, pub):
            assert cli.both("sbom", *given, "--line", 1, "--force", "--out", half, bundle(WHOLE_SESSION)).cls == "usage", half
    assert key.read_text() == "private" and pub.read_bytes() == PUB.read_bytes()
    assert sorted(each.name for each in cli.cwd.iterdir()) == ["line-2.cdx.json", "runs.jsonl"]


def test_one_output_that_is_there_keeps_all_from_being_written(cli):
    part = cli.cwd / "part"
    part.mkdir()
    (part / "line-2.cdx.json").write_text("mine")
    assert cli.both("sbom", "--pub", PUB, "--all", "--out", part, bundle(WHOLE_SESSION)).cls == "exists"
    assert [each.name for each in part.iterdir()] == ["line-2.cdx.json"]
    assert cli("sbom", "--pub", PUB, "--all", "--force", "--out", part, bundle(WHOLE_SESSION)).code == 0
    assert len(list(part.iterdir())) == 3


def test_a_check_names_what_it_did_not_decide(cli):
    found = cli.both("sbom", "--check", "--pub", PUB, "--attached", bom_file(SINGLE))
    assert found.json["boms"][0]["not_established"] == ["evidence:scope"]
    assert "every member but evidence:scope was rebuilt" in cli("sbom", "--check", "--pub", PUB, "--attached", bom_file(SINGLE)).prose
    found = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(SINGLE), bom_file(SINGLE))
    assert "not_established" not in found.json["boms"][0]
    found = cli.both("sbom", "--check", "--pub", PUB, "--bundle", bundle(RECEIPT), bom_file(RECEIPT))
    assert "receipt:workflow" in found.json["boms"][0]["not_established"]
