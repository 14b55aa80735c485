"""Where things lie."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHOTS = ROOT / "target/page-screenshots"
EVIDENCE = {
    "bundle": "bundle.jsonl",
    "test_result": "test-result.dsse.json",
    "receipt": "receipt.dsse.json",
    "public_key": "receipt.pub",
    "bom": "receipt.cdx.json",
}
