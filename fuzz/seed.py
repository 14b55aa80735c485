#!/usr/bin/env python3
"""Seeds the corpora from the vectors: `fuzz/seed.py`, then `cargo fuzz run TARGET`."""

import base64
import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
DATA = HERE.parent / "testdata"


def seed(target: str, name: str, content: bytes) -> None:
    folder = HERE / "corpus" / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


for bundle in sorted(DATA.glob("vectors/*.jsonl")) + sorted(DATA.glob("bundles/*.jsonl")):
    content = bundle.read_bytes()
    seed("bundle", bundle.stem, content)
    for number, line in enumerate(content.split(b"\n")[:-1], 1):
        seed("bundle_line", f"{bundle.stem}-{number}", line)
        try:
            parsed = json.loads(line)
        except ValueError:
            continue
        for member in ("request", "response"):
            if member in parsed:
                message = base64.urlsafe_b64decode(parsed[member].replace("+", "-").replace("/", "_") + "==")
                seed("protobuf", f"{bundle.stem}-{number}-{member}", message)
        for member in ("envelope", "link"):
            if member in parsed:
                seed("envelope", f"{bundle.stem}-{number}-{member}", json.dumps(parsed[member], separators=(",", ":")).encode())
                payload = base64.b64decode(parsed[member]["payload"] + "==")
                seed("statement", f"{bundle.stem}-{number}-{member}", payload)
cases = json.loads((DATA / "vectors/statement-cases.json").read_text())
for number, case in enumerate(cases["cases"]):
    envelope = case["envelope"]
    text = envelope if isinstance(envelope, str) else json.dumps(envelope, separators=(",", ":"))
    seed("envelope", f"case-{number}", text.encode())
seed("statement", "own", cases["payload"].encode() if isinstance(cases["payload"], str) else json.dumps(cases["payload"]).encode())
golden = json.loads((DATA / "vectors/golden.json").read_text())
for number, vector in enumerate(golden["requests"]):
    seed("json", f"request-{number}", json.dumps(vector["request"]).encode())
for number, vector in enumerate(golden["results"]):
    seed("json", f"result-{number}", json.dumps(vector["response"]).encode())
seed("json", "negative-zero", b'{"protocol":3,"module":{"model":"m","endTime":-0,"step":-0.0,"rows":[{"values":[-0]}]}}')
for key in sorted(DATA.glob("keys/*")) + sorted(DATA.glob("vectors/*.pub")) + sorted(DATA.glob("vectors/*.key")):
    seed("pem_key", key.name, key.read_bytes())
marker = b"\n<<<PLIMSOLL_REPORT_V3>>> "
report = b'{"steps":[{"command":"x","stdout":"","exitCode":0,"durationMs":1}],"artifacts":[{"path":"a","content":"QQ=="}],"artifactsTruncated":false}'
seed("frames", "wrong-mac", marker + b"%d %s\n" % (len(report), b"0" * 64) + report)
seed("frames", "report", report)
seed("frames", "error", b'{"error":"illegal file path: ../x"}')
for bom in sorted(DATA.glob("sbom/*.cdx.json")):
    text = bom.read_bytes()
    seed("bom_check", bom.stem, text)
    value = json.loads(text)
    for member in sorted(value):
        less = {name: inner for name, inner in value.items() if name != member}
        seed("bom_check", f"{bom.stem}-without-{member.strip('$')}", (json.dumps(less, indent=2, sort_keys=True) + "\n").encode())
for registry in sorted(DATA.glob("clients/*.json")):
    seed("registry", registry.stem, registry.read_bytes())
for anchor in sorted(DATA.glob("anchors/*.anchor")):
    seed("anchor", anchor.stem, anchor.read_bytes())
for report in sorted(DATA.glob("reports/*.xml")) + sorted(DATA.glob("reports/*.tap")):
    seed("junit" if report.suffix == ".xml" else "tap", report.stem, report.read_bytes())
