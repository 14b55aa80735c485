"""The evidence schemas against the vectors, real output and seeded changes: what a schema refuses, the program refuses too."""

from __future__ import annotations

import base64
import copy
import json
import random
from collections import Counter

import pytest
from cli_fake import closed_port
from cli_tool import BUNDLES, OWN_KEY, OWN_PUB, ROOT, VECTORS
from evidence_schemas import FOLDER, fault, fault_of_bundle, fault_of_line, validator
from opinion_both import BATCH, Binary
from opinion_forge import Forge, compact, envelope
from opinion_holder import forgeries
from opinion_mutants import bases, mutants

CASES = json.loads((VECTORS / "bundle-cases.json").read_bytes())["cases"]


def test_every_schema_is_one():
    for path in FOLDER.glob("*.schema.json"):
        schema = json.loads(path.read_bytes())
        assert schema["$id"] == path.name
        validator(path.name.removesuffix(".v1.schema.json"))


def verdicts(bundles: list[bytes], folder) -> list[str]:
    """The binary's class for each."""
    found = []
    for start in range(0, len(bundles), BATCH):
        found += [opinion.cls for opinion in Binary(bundles[start : start + BATCH], OWN_PUB, folder / str(start)).opinions()]
    return found


def test_the_vectors():
    """Whole bundles meet the schemas; what a schema refuses is refused."""
    for name in ("own-mixed", "sessions-linked"):
        assert fault_of_bundle((VECTORS / f"{name}.jsonl").read_bytes()) == ""
    assert "'link' is a required property" in fault_of_bundle((VECTORS / "sessions-v1.jsonl").read_bytes())
    refused = 0
    for case in CASES:
        found = fault_of_bundle(case["bundle"].encode())
        if case["expect"] == "ok":
            assert found == "", (case["name"], found)
        refused += found != ""
    assert refused >= 20, "the schemas see some of what is wrong"
    for name in ("checkpoint-only", "cut-to-first-checkpoint"):
        assert fault_of_bundle((BUNDLES / f"{name}.jsonl").read_bytes()) == ""


def test_what_the_program_writes(cli):
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    request = {"protocol": 3, "traceId": "t", "javascript": {"code": "console.log(1)"}}
    assert fault("run-request", request) == ""
    file = cli.cwd / "request.json"
    file.write_text(json.dumps(request))
    for args in (("--js", "1"), ("--js", "throw 1", "--floor", "process", "--trace-id", "x"), (file,)):
        assert cli("run", "--key", key, *args).code == 0
    lines = cli.bundle.read_bytes().splitlines()
    assert len(lines) == 6 and [fault_of_line(line) for line in lines] == [""] * 6
    assert cli("sign-statement", "--key", key, "--type", "https://example.com/v1", "--subject", f"a={'0' * 64}", "--out", "s.json").code == 0
    envelope = json.loads((cli.cwd / "s.json").read_bytes())
    assert fault("envelope", envelope) == ""
    assert fault("own-statement", json.loads(base64.b64decode(envelope["payload"]))) == ""


def agree(made: list[tuple[str, bytes]], folder) -> Counter:
    classes = verdicts([bundle for _, bundle in made], folder)
    told = Counter()
    for (name, bundle), cls in zip(made, classes, strict=True):
        found = fault_of_bundle(bundle)
        assert cls != "ok" or not found, f"{name} verifies, and the schema says {found}"
        told[(cls, bool(found))] += 1
    return told


def test_changes_without_the_key(tmp_path):
    told = agree(mutants(800, seed=30261129), tmp_path)
    assert told[("line", True)] + told[("signature", True)] >= 10, told


def test_changes_by_the_keys_holder(tmp_path):
    told = agree(forgeries(1200, seed=30261130), tmp_path)
    assert told[("ok", False)] >= 20 and told[("statement", True)] >= 50 and told[("chain", True)] >= 5, told


def test_each_rule_of_a_predicate_is_one_of_the_verifier(tmp_path):
    """Every member of every statement of a bundle, with values that its schema refuses."""
    odd = [None, [], {}, True, 1.5, -1, 0, 1, 2, 4, 2**64, "", "x", "0" * 64, "A" * 64, "0" * 63, "ok", "internal"]
    made = []
    for name, bundle in bases().items():
        lines = bundle.splitlines()
        for at, line in enumerate(lines):
            members = json.loads(line)
            if "envelope" not in members:
                continue
            whole = json.loads(base64.b64decode(members["envelope"]["payload"]))
            for member in [*whole["predicate"], "unanswered", "software_identity", "x"]:
                for value in odd:
                    changed = copy.deepcopy(whole)
                    changed["predicate"][member] = value
                    if whole["predicate"].get(member) == value and type(value) is type(whole["predicate"].get(member)):
                        continue
                    if not fault("statement", changed):
                        continue
                    forge = Forge()
                    for n, other in enumerate(lines):
                        content = {k: v for k, v in json.loads(other).items() if k != "link"}
                        if n == at:
                            content["envelope"] = envelope(compact(changed))
                        forge.line(content)
                    made.append((f"{name} line {at + 1}: {member} = {value!r}", forge.bytes()))
            if len(made) > 4000:
                break
    rng = random.Random(7)
    made = rng.sample(made, min(len(made), 1200))
    assert len(made) >= 800
    for (name, _), cls in zip(made, verdicts([bundle for _, bundle in made], tmp_path), strict=True):
        assert cls != "ok", name


REQUEST = {
    "protocol": 3,
    "minimumIsolation": "container",
    "traceId": "t-1",
    "timeoutMs": 1000,
    "softwareRule": {"mode": "approved", "identities": ["a:1", "b:2"]},
    "project": {"files": [{"path": "a.txt", "content": "x"}], "steps": ["true"], "artifacts": ["out"], "grantProfile": "g"},
}
ODD = [None, [], {}, "", "x", -1, 3, "3", 2.5, True, "none", "kernel", ["x"], [""], [None], {"x": 1}, {"code": "1"}, {"code": ""}, {"steps": ["a"]}, [{"path": "a"}], [{"values": [1]}], "é" * 70]


def requests(count: int, seed: int) -> list[dict]:
    rng = random.Random(seed)
    made = []
    while len(made) < count:
        value = copy.deepcopy(REQUEST)
        for _ in range(rng.randint(1, 2)):
            holder = rng.choice([value, value, *[v for v in value.values() if isinstance(v, dict)]])
            name = rng.choice([*holder, "javascript", "project", "module", "cell", "minimum_isolation", "X"])
            match rng.randrange(4):
                case 0:
                    holder.pop(name, None)
                case _:
                    holder[name] = rng.choice(ODD)
        made.append(value)
    return made


def test_request_files(cli):
    """`run` sends what it takes, here to nobody: exit 4. What the schema refuses it does not take."""
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    address, told = closed_port(), Counter()
    examples = [
        REQUEST,
        json.loads((ROOT / "examples/request.json").read_bytes()),
        {"javascript": {"code": "1", "grant_profile": None}, "timeout_ms": "5", "project": None},
        {"module": {"model": "m", "rows": [{"values": [1, "NaN", "-Infinity"]}], "endTime": "1", "step": 0.5}},
    ]
    golden = json.loads((VECTORS / "golden.json").read_bytes())["requests"]
    examples += [case["request"] for case in golden if "cell" not in case["request"]]
    for value in examples + requests(160, seed=5):
        file = cli.cwd / "request.json"
        file.write_text(json.dumps(value))
        found = cli("run", "--json", "--daemon", address, "--key", key, file)
        assert found.cls in ("request", "unreachable"), value
        refused = fault("run-request", value)
        assert not refused or found.cls == "request", f"run takes {value}, and the schema says {refused}"
        told[(found.cls, bool(refused))] += 1
    assert told[("request", True)] >= 60 and told[("unreachable", False)] >= 10, told
    assert told[("request", False)] <= told[("request", True)], "the schema sees most of what is wrong"


def test_own_statements(cli):
    key = cli.cwd / "own.key"
    key.write_bytes(OWN_KEY.read_bytes())
    key.chmod(0o600)
    good = {"_type": "https://in-toto.io/Statement/v1", "subject": [{"name": "a", "digest": {"sha256": "0" * 64}}], "predicateType": "https://example.com/v1", "predicate": {"x": 1}}
    rng, told = random.Random(9), Counter()
    odd = [None, [], {}, "", "x", 1, [{}], [{"name": "a"}], [{"digest": {}}], [{"digest": {"sha256": 1}}], "https://e x.com", "a:b", ":b", "é:b", [{"name": 1, "digest": {"sha256": "0" * 64}}]]
    for _ in range(120):
        value = copy.deepcopy(good)
        name = rng.choice([*good, "x"])
        if rng.random() < 0.2:
            value.pop(name, None)
        else:
            value[name] = rng.choice(odd)
        (cli.cwd / "s.json").write_text(json.dumps(value))
        found = cli("sign-statement", "--json", "--key", key, "--out", f"e{len(told)}-{rng.random()}", "s.json")
        refused = fault("own-statement", value)
        assert not refused or found.code == 1, f"{value} was signed, and the schema says {refused}"
        told[(found.code, bool(refused))] += 1
    assert fault("own-statement", good) == "" and told[(1, True)] >= 30, told


@pytest.mark.parametrize("name", ["bundle-line", "envelope", "statement", "own-statement", "run-request", "run-record", "session-close", "bundle-link"])
def test_no_schema_takes_everything(name):
    for value in (None, 1, "x", [], {}, {"x": 1}):
        assert fault(name, value) != "", value
