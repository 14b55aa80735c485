"""Runs the binary with a clean environment, and checks of every output what all of them must keep."""

from __future__ import annotations

import base64
import contextlib
import functools
import json
import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import jsonschema
from referencing import Registry, Resource

# A shell starts what it puts into the background with SIGINT ignored, and every process below inherits that.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

ROOT = Path(__file__).resolve().parents[2]
BINARY = Path(os.environ.get("PLIMSOLL_ATTEST", ROOT / "target/debug/plimsoll-attest")).resolve()
VECTORS = ROOT / "testdata/vectors"
BUNDLES = ROOT / "testdata/bundles"
KEYS = ROOT / "testdata/keys"

OWN = VECTORS / "own-mixed.jsonl"
OWN_PUB = VECTORS / "own-mixed.pub"
OWN_KEY = VECTORS / "own-mixed.key"
OWN_ID = "06e3fd8fda29bb60ab59557de61edb0aecdb231134be30e75b455f8e1b792fa9"

TABLE = {"ok": 0, "refused": 1, "usage": 2, "unrecorded": 3, "unavailable": 4, "negative": 5}
CLASS_EXIT = {
    **dict.fromkeys(("usage", "config", "key", "io", "exists"), {2}),
    "io": {1, 2},  # 1 for a product that could not be finished
    **dict.fromkeys(("line", "link", "signature", "statement", "stored", "chain", "incomplete", "empty", "expected"), {1}),
    **dict.fromkeys(("not_a_call", "no_line", "reserved", "request", "bundle"), {1}),
    "not_dispatched": {1, 4},  # 1 when earlier calls of the same session ran
    **dict.fromkeys(("unreachable", "environment"), {4}),
    **dict.fromkeys(("may_have_run", "unchecked", "not_kept"), {3}),
    "anchor": {1},
    **dict.fromkeys(("many_runs", "no_runs", "session_open", "too_large", "time_range", "key_mismatch"), {1}),
    **{f"bom_{step}": {1} for step in ("parse", "not_canonical", "schema", "profile", "serial")},
    **{f"attachment_{what}": {1} for what in ("missing", "hash", "evidence_mismatch")},
    "bom_mismatch": {5},
    "registry": {1},
    **dict.fromkeys(("different", "not_success"), {5}),
    **dict.fromkeys(("binding_mismatch", "git_commit", "git_tree", "file_mismatch", "file_unexplained", "file_missing", "report_missing", "report_parse"), {1}),
    **dict.fromkeys(("result_mismatch", "config_mismatch", "floor_not_met", "workflow_changed", "key_mismatch", "many_runs", "no_runs"), {1}),
    **dict.fromkeys(("tests_failed", "no_tests"), {5}),
    **{f"policy_{rule}": {5} for rule in ("tier", "provider", "software", "environment", "time", "outcome")},
}
ALLOWED_EMPTY = ("stdout_base64", "stderr_base64", "code_base64", "content_base64")
COMMANDS = ("keygen", "run", "verify", "verify-entry", "replay", "digest", "inspect", "sbom", "sign-statement", "open-statement", "completions", "man", "version")
GROUPS = {"clients": ("create", "import", "limit", "list", "rotate", "revoke", "check"), "pr-receipt": ("init", "run", "verify", "render", "challenge")}
FORMATS = (*COMMANDS, "usage", *GROUPS, *(f"{group}-{word}" for group, words in GROUPS.items() for word in words))

SECRETS: set[bytes] = set()
"""What no output may hold: key material and tokens, in every form a leak could take."""


def guard_key(pem: bytes) -> None:
    """Adds a private key, in all its forms, to what no output may hold."""
    body = b"".join(line for line in pem.splitlines() if not line.startswith(b"-----"))
    der = base64.b64decode(body)
    seed = der[-32:]
    SECRETS.update((body, der, seed, seed.hex().encode(), base64.b64encode(seed), base64.urlsafe_b64encode(seed)))


guard_key(OWN_KEY.read_bytes())


@functools.cache
def schemas() -> tuple[Registry, dict[str, dict]]:
    found = {path.name: json.loads(path.read_bytes()) for path in (ROOT / "schemas").glob("*.schema.json")}
    for schema in found.values():
        jsonschema.Draft202012Validator.check_schema(schema)
    registry = Registry().with_resources((name, Resource.from_contents(schema)) for name, schema in found.items())
    return registry, found


def validate(value: dict, name: str) -> None:
    """Validates an output against the schema of its format."""
    registry, found = schemas()
    jsonschema.Draft202012Validator(found[name], registry=registry).validate(value)


@dataclass
class Result:
    """What one run of the binary gave. Making one checks it."""

    args: tuple
    code: int
    out: bytes
    err: bytes
    raw: bool = False
    github: bool = False
    json: dict | None = None
    errors: list[dict] = field(default_factory=list)

    def __post_init__(self) -> None:
        shown = f"{self.args}\nexit {self.code}\nstdout {self.out[:2000]!r}\nstderr {self.err[:4000]!r}"
        assert self.code in TABLE.values() or self.code < 0, f"an exit code of no table: {shown}"
        for name, stream in (("stdout", self.out), ("stderr", self.err)):
            assert b"panicked" not in stream and (name == "stdout" or b"internal fault" not in stream), shown
            for secret in SECRETS:
                assert secret not in stream, f"a secret on {name}: {shown}"
            if self.raw:
                continue
            # A tab stands only where a guest's own output is shown, line by line.
            for line in stream.split(b"\n"):
                allowed = b"\t" if line.startswith(b"| ") else b""
                assert not set(line) & (set(range(0x20)) - set(allowed)), f"a control byte on {name}: {shown}"
                hidden = re.findall("[\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]", line.decode())
                assert not hidden or (self.is_json and name == "stdout"), f"a hidden character on {name}: {shown}"
                if self.github:
                    assert not line.startswith(b"::"), f"a workflow command on {name}: {shown}"
                    assert self.is_json or not re.search(rb"(?<!\\)##\[", line), f"a workflow command on {name}: {shown}"
        if self.is_json and self.code >= 0:
            self._check_json(shown)
        elif self.code > 0:
            self._check_human(shown)

    @property
    def is_json(self) -> bool:
        """Whether `--json` stands among the flags."""
        before = self.args[: self.args.index("--")] if "--" in self.args else self.args
        return any(str(arg) in ("--json", "-json", "--json=true", "--json=1") for arg in before)

    def _check_json(self, shown: str) -> None:
        if not self.out and self.raw:
            return  # standard output was not ours to read
        assert self.out.endswith(b"\n") and self.out.count(b"\n") == 1, f"not one line: {shown}"
        value = json.loads(self.out, object_pairs_hook=_no_repeats)
        names = list(value)
        assert names[:3] == ["format", "ok", "exit"], f"the first members: {shown}"
        assert value["exit"] == self.code and value["ok"] is (self.code == 0), shown
        found = re.fullmatch(r"plimsoll-attest/([a-z-]+)/v1", value["format"])
        assert found and found[1] in FORMATS, shown
        validate(value, f"{found[1]}.v1.schema.json")
        _no_absent_facts(value, shown)
        self.errors = value.get("errors", [value["error"]] if "error" in value else [])
        if self.errors:
            assert names[3] in ("error", "errors"), shown
        assert bool(self.errors) is (self.code != 0), shown
        for error in self.errors:
            _check_error(error, shown)
        if self.code != 0 and "errors" not in value:
            assert self.code in CLASS_EXIT[value["error"]["class"]], shown
        self.json = value

    def _check_human(self, shown: str) -> None:
        text = self.err.decode()
        found = list(re.finditer(r"^plimsoll-attest: error\[([a-z_]+)\]: (.+)$", text, re.M))
        assert found, f"no error block: {shown}"
        assert len(re.findall(r"^  do        \S", text, re.M)) >= len(found), f"an error without its cure: {shown}"
        for line in text.splitlines():
            # The first line is the whole fact however long; the others are laid out.
            wide = line.startswith(("plimsoll-attest: error[", "  place ", "usage: "))
            assert wide or len(line) <= 100 or " " not in line[12:].strip(), f"a line over 100 columns: {shown}"
        self.errors = [{"class": match[1], "message": match[2]} for match in found]

    @property
    def error(self) -> dict:
        """The only error."""
        assert len(self.errors) == 1, f"{self.args}: {self.errors}"
        return self.errors[0]

    @property
    def cls(self) -> str:
        return self.error["class"]

    @property
    def text(self) -> str:
        """Both streams, for what a reader sees."""
        return (self.out + self.err).decode(errors="replace")

    @property
    def prose(self) -> str:
        """Both streams as one line: where they wrap does not matter."""
        return " ".join(self.text.split())


def _no_repeats(pairs: list) -> dict:
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a member twice: {names}"
    return dict(pairs)


def _no_absent_facts(value, shown: str, name: str = "") -> None:
    """Absent facts are absent members, not `null` or an empty text; what was signed stands as it was."""
    assert value is not None, f"{name} is null: {shown}"
    if isinstance(value, dict):
        for member, inner in value.items():
            assert re.fullmatch(r"[a-z][a-z0-9_]*", member) or name in ("tiers", "digest"), f"{member}: {shown}"
            if member in ("record", "predicate", "subjects"):
                continue
            if member.endswith("_base64"):
                base64.b64decode(inner, validate=True)
            assert inner != "" or member in ALLOWED_EMPTY or (name, member) in (("fields", "hex"), ("artifacts", "path")), f"{member} is empty: {shown}"
            _no_absent_facts(inner, shown, member)
    elif isinstance(value, list):
        for inner in value:
            _no_absent_facts(inner, shown, name)


def _check_error(error: dict, shown: str) -> None:
    order = ["class", "reason", "message", "file", "line", "member", "offset", "pointer", "expected", "found", "do", "ran"]
    assert list(error) == [name for name in order if name in error], f"an error's members: {shown}"
    assert error["class"] in CLASS_EXIT, f"an unknown class: {shown}"
    for name in ("expected", "found"):
        assert len(error.get(name, "")) <= 150, f"{name} is not cut: {shown}"


class Cli:
    """The binary, with a home of its own and nothing of ours in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.cwd = folder / "work"
        self.home.mkdir()
        self.cwd.mkdir()

    @property
    def default_key(self) -> Path:
        return self.home / ".config/plimsoll/attest.key"

    @property
    def default_pub(self) -> Path:
        return self.default_key.with_suffix(".pub")

    @property
    def bundle(self) -> Path:
        return self.cwd / "plimsoll-runs.jsonl"

    def env(self, **extra: str | bytes | None) -> dict:
        env: dict = {"PATH": "/usr/bin:/bin", "HOME": str(self.home)}
        for name, value in extra.items():
            if value is None:
                env.pop(name, None)
            else:
                env[name] = value
        return env

    def popen(self, *args, env: dict | None = None, **options) -> subprocess.Popen:
        """Starts it; the caller awaits it."""
        options = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.cwd, **options}
        return subprocess.Popen([BINARY, *map(_argument, args)], env=self.env(**(env or {})), **options)

    def __call__(self, *args, stdin: bytes | None = None, env: dict | None = None, raw: bool = False, timeout: float = 60, **options) -> Result:
        """Runs it to its end. `raw` is for the commands whose product is bytes as they are."""
        if stdin is not None:
            options["stdin"] = subprocess.PIPE
        process = self.popen(*args, env=env, **options)
        try:
            out, err = process.communicate(stdin, timeout=timeout)
        except BaseException:
            process.kill()
            process.communicate()
            raise
        return self.result(args, process.returncode, out, err, raw=raw, env=env)

    def result(self, args, code: int, out: bytes | None, err: bytes | None, *, raw: bool = False, env: dict | None = None) -> Result:
        if self.default_key.is_file() and self.default_key.stat().st_size == 119:
            guard_key(self.default_key.read_bytes())
        if out is None:
            raw, out = True, b""
        return Result(tuple(args), code, out, err or b"", raw, (env or {}).get("GITHUB_ACTIONS") == "true")

    def both(self, *args, stdin: bytes | None = None, **options) -> Result:
        """Runs it for a person and for a script; they must agree. Gives the script's result."""
        human = self(*args, stdin=stdin, **options)
        words = 2 if args[0] in GROUPS else 1
        script = self(*args[:words], "--json", *args[words:], stdin=stdin, **options)
        assert human.code == script.code, f"{args}: {human.code} and {script.code} with --json"
        assert [e["class"] for e in human.errors] == [e["class"] for e in script.errors], args
        for error in script.errors:
            assert " ".join(error["do"].split()) in human.prose.replace("\\\\", "\\"), f"{args}: the cure differs: {human.text}"
        return script

    @contextlib.contextmanager
    def broken_pipe(self):
        """A pipe whose reader has gone."""
        reader, writer = os.pipe()
        os.close(reader)
        try:
            yield writer
        finally:
            os.close(writer)

    def measured(self, *args, env: dict | None = None, **options) -> tuple[Result, int]:
        """Runs it below a small process, and gives its peak memory in bytes too."""
        script = (
            "import resource, subprocess, sys\n"
            "code = subprocess.call(sys.argv[2:])\n"
            "open(sys.argv[1], 'w').write(str(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss))\n"
            "sys.exit(code)"
        )
        peak = self.folder / "peak"
        # Not bound by the peak of this process, which a child inherits until it execs.
        command = [sys.executable, "-I", "-S", "-c", script, str(peak), str(BINARY), *map(_argument, args)]
        run = subprocess.run(command, env=self.env(**(env or {})), cwd=self.cwd, capture_output=True, timeout=60, **{"stdin": subprocess.DEVNULL, **options})
        return self.result(args, run.returncode, run.stdout, run.stderr, env=env), int(peak.read_text()) * 1024


def _argument(arg) -> str | bytes:
    return arg if isinstance(arg, (str, bytes)) else os.fspath(arg) if isinstance(arg, os.PathLike) else str(arg)


def shrunk(text: str) -> str:
    """A text as one line."""
    return " ".join(text.split())
