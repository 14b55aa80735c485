"""Two verifiers written apart: the binary, and examples/verify.py from the published page. One question to both."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", ROOT / "target/debug/plimsoll-attest"))
VECTORS = ROOT / "testdata/vectors"
BATCH = 400  # files of one call of the binary


def load_example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("example_verify", ROOT / "examples/verify.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


verify = load_example()


@dataclass(frozen=True)
class Opinion:
    """A verdict: class `ok` with what was found, or a class of refusal and the line it names (0: none)."""

    cls: str
    line: int
    found: tuple = ()

    def __str__(self) -> str:
        return f"{self.cls} line {self.line}" if self.line else self.cls


def key_of(name: str):
    return verify.PublicKey.from_pem((VECTORS / f"{name}.pub").read_bytes())


def python_opinion(bundle: bytes, key) -> Opinion:
    try:
        report = verify.Verification(key).run(io.BytesIO(bundle))
    except verify.Refusal as refusal:
        return Opinion(refusal.cls, refusal.line)
    sessions = tuple((name, session["calls"]) for name, session in report.sessions.items())
    return Opinion("ok", 0, (report.lines, report.records, report.single_runs, report.last_digest, sessions))


def rust_opinion(entry: dict) -> Opinion:
    if "error" in entry:
        return Opinion(entry["error"]["class"], entry["error"].get("line", 0))
    sessions = tuple((session["session"], session["calls"]) for session in entry["sessions"])
    return Opinion("ok", 0, (entry["lines"], entry["records"], entry["runs"], entry["last_line_sha256"], sessions))


class Binary:
    """One call of the binary over a batch of bundles; it runs while this process does its own part."""

    def __init__(self, bundles: list[bytes], pub: Path, folder: Path):
        folder.mkdir()
        self.files = [folder / str(n) for n in range(len(bundles))]
        for file, bundle in zip(self.files, bundles):
            file.write_bytes(bundle)
        command = [BINARY, "verify", "--json", "--allow-empty", "--pub", pub, *self.files]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def opinions(self) -> list[Opinion]:
        out, err = self.process.communicate(timeout=600)
        answer = json.loads(out)
        assert self.process.returncode == answer["exit"] and answer["exit"] in (0, 1), (self.process.returncode, err)
        by_file = {entry["file"]: entry for entry in answer["bundles"]}
        return [rust_opinion(by_file[str(file)]) for file in self.files]


def both_opinions(bundles: list[bytes], key_name: str, folder: Path) -> list[tuple[Opinion, Opinion]]:
    """(the binary's, the example's) for each bundle."""
    key, pub = key_of(key_name), VECTORS / f"{key_name}.pub"
    pairs: list[tuple[Opinion, Opinion]] = []
    for start in range(0, len(bundles), BATCH):
        batch = bundles[start : start + BATCH]
        binary = Binary(batch, pub, folder / str(start))
        ours = [python_opinion(bundle, key) for bundle in batch]
        pairs += zip(binary.opinions(), ours, strict=True)
    return pairs


def disagreements(names: list[str], pairs: list[tuple[Opinion, Opinion]]) -> list[str]:
    return [
        f"{name}: the binary says {rust}, the example {python}" for name, (rust, python) in zip(names, pairs) if rust != python
    ]
