"""The flags of every command as the contract states them, written down here a second time."""

from __future__ import annotations

from dataclasses import dataclass

TIERS = ("process", "container", "kernel", "vm")


@dataclass(frozen=True)
class Flag:
    """One flag: what its value is called, and what holds for it. Without a value it is a switch."""

    value: str | None = None
    kind: str = "switch"
    default: str | None = None
    words: tuple[str, ...] = ()
    short: str | None = None
    repeatable: bool = False
    required: bool = False


def path(value: str = "FILE", **more) -> Flag:
    return Flag(value, "path", **more)


def text(value: str, **more) -> Flag:
    return Flag(value, "text", **more)


def words(value: str, of: tuple[str, ...], **more) -> Flag:
    return Flag(value, "words", words=of, **more)


def number(value: str = "N", **more) -> Flag:
    return Flag(value, "number", **more)


DURATION = Flag("D", "duration")
TIME = Flag("T", "time")
SWITCH = Flag()

JSON = {"json": SWITCH}
SHARED = {
    "color": words("WHEN", ("auto", "always", "never"), default="auto"),
    "quiet": Flag(short="q"),
    "no-progress": SWITCH,
    "help": Flag(short="h"),
}
VERIFYING = {"pub": path(repeatable=True), "own": SWITCH}

RUN = {
    "js": text("CODE"),
    "file": path(),
    "project": path("DIR"),
    "session": path("CALLS.jsonl"),
    "step": text("CMD", repeatable=True),
    "artifact": text("PATH", repeatable=True),
    "exclude": text("GLOB", repeatable=True),
    "skip-binary": SWITCH,
    "daemon": text("URL"),
    "ca-file": path(),
    "provider": Flag("NAME", "text", default="wasm", words=("wasm", "docker")),
    "key": path(),
    "bundle": path(default="plimsoll-runs.jsonl"),
    "shared-bundle": SWITCH,
    "anchor": path(),
    "timeout": DURATION,
    "wait": DURATION,
    "floor": words("TIER", TIERS),
    "software": text("RULE"),
    "grant-profile": text("NAME"),
    "trace-id": text("ID"),
    "lifetime": DURATION,
    "idle": DURATION,
    "language": words("L", ("javascript", "python"), repeatable=True),
    "owner": text("NAME"),
    "print": words("HOW", ("escaped", "raw", "none"), default="escaped"),
    "save-artifacts": path("DIR"),
    "require-success": SWITCH,
}

POLICY = {
    "require-tier": words("TIER", TIERS),
    "require-provider": text("NAME", repeatable=True),
    "require-software": text("ID", repeatable=True),
    "require-environment": SWITCH,
    "max-age": DURATION,
    "not-before": TIME,
    "not-after": TIME,
    "require-outcome": words("OUTCOME", ("success",)),
}

REGISTRY = {"file": path("PATH", required=True), **JSON, **SHARED}
CALLER = {"id": text("ID", required=True), **REGISTRY}
NEW_CALLER = {"scope": text("S", repeatable=True), "paid-seconds-per-day": number(default="0"), **CALLER}
CLIENTS = {
    "create": {"token-stdout": SWITCH, **NEW_CALLER},
    "import": NEW_CALLER,
    "limit": {"paid-seconds-per-day": number(required=True), **CALLER},
    "list": REGISTRY,
    "rotate": {"token-stdout": SWITCH, "token-stdin": SWITCH, **CALLER},
    "revoke": CALLER,
    "check": REGISTRY,
}
ACCESS = {"daemon": text("URL"), "ca-file": path()}
RECEIPTS = {
    "init": {
        "path": path(default=".github/workflows/plimsoll-receipt.yml"),
        "preset": words("NAME", ("node", "pytest", "nextest", "custom"), default="node"),
        **JSON,
        **SHARED,
    },
    "run": {
        **ACCESS,
        "provider": Flag("NAME", "text", words=("wasm", "docker")),
        "repo": path("DIR", default="."),
        "event": path(),
        "repository": text("URL"),
        "pr": text("N"),
        "head": text("SHA"),
        "base": text("SHA"),
        "base-ref": text("NAME"),
        "head-repository": text("URL"),
        "tested": words("WHAT", ("head", "merge"), default="head"),
        "merge-commit": text("SHA"),
        "allow-event": text("NAME", repeatable=True),
        "step": text("CMD", repeatable=True),
        "report": text("SPEC", repeatable=True),
        "add": text("DIR=DEST", repeatable=True),
        "exclude": text("GLOB", repeatable=True),
        "config-from": words("WHERE", ("base", "tested"), default="base"),
        "floor": words("TIER", ("none", *TIERS), default="kernel"),
        "software": text("RULE"),
        "timeout": Flag("D", "duration", default="5m"),
        "key": path(),
        "ephemeral": SWITCH,
        "out": path("DIR", short="o", default="plimsoll-receipt"),
        "summary": path(),
        "fail-on": words("WHAT", ("tests", "never"), default="tests"),
        **JSON,
        **SHARED,
    },
    "verify": {
        "repo": path("DIR"),
        "head": text("SHA"),
        "pub": path(),
        "keyid": text("HEX"),
        "base-ref": text("REF"),
        "workflow": text("PATH"),
        "require-workflow-unchanged": SWITCH,
        "allow": words("WHAT", ("warned", "none"), default="warned"),
        "floor": words("TIER", ("none", *TIERS), default="kernel"),
        "no-git": SWITCH,
        "allow-unbound": SWITCH,
        "replay": SWITCH,
        **ACCESS,
        "provider": Flag("NAME", "text", words=("wasm", "docker")),
        **JSON,
        **SHARED,
    },
    "render": {**JSON, **SHARED},
    "challenge": {"out": path("DIR", short="o", required=True), "repo": path("DIR", default="."), "head": text("SHA"), **JSON, **SHARED},
}

COMMANDS: dict[str, dict[str, Flag]] = {
    "keygen": {"out": path("PREFIX", short="o", required=True), **JSON, **SHARED},
    "run": {**RUN, **JSON, **SHARED},
    "verify": {
        **VERIFYING,
        "allow-empty": SWITCH,
        "expect": path(),
        "expect-count": number(default="-1"),
        "expect-request": path(repeatable=True),
        **POLICY,
        "anchor": path(),
        "anchor-pub": path(repeatable=True),
        "write-anchor": path(),
        "key": path(),
        "follow": SWITCH,
        "for": DURATION,
        "state": path(),
        "explain": SWITCH,
        "stats": SWITCH,
        **JSON,
        **SHARED,
    },
    "verify-entry": {**VERIFYING, "line": number(required=True), **POLICY, "expect-request": path(), **JSON, **SHARED},
    "replay": {
        "pub": path(),
        "own": SWITCH,
        "daemon": text("URL"),
        "ca-file": path(),
        "provider": Flag("NAME", "text", default="wasm", words=("wasm", "docker")),
        "wait": Flag("D", "duration", default="6m"),
        "timeout": DURATION,
        "line": number(repeatable=True),
        **JSON,
        **SHARED,
    },
    "digest": {"binary": SWITCH, "fields": SWITCH, "line": number(), **JSON, **SHARED},
    "inspect": {**VERIFYING, "line": number(), "full": SWITCH, **JSON, **SHARED},
    "sbom": {
        "pub": path(),
        "own": SWITCH,
        "line": number(),
        "session": text("FINGERPRINT"),
        "all": SWITCH,
        "scope": words("WHAT", ("bundle", "line"), default="bundle"),
        "attach": words("WHAT", ("line", "envelope"), default="line"),
        "image-name": text("NAME"),
        "spec-version": words("VERSION", ("1.6", "1.7"), default="1.6"),
        "out": path("PATH", default="-"),
        "force": SWITCH,
        "max-attach": text("BYTES", default="16MiB"),
        "check": SWITCH,
        "bundle": path("BUNDLE"),
        "attached": SWITCH,
        **JSON,
        **SHARED,
    },
    "sign-statement": {
        "type": text("URI"),
        "subject": text("NAME=ALG:HEX", repeatable=True),
        "predicate": path(),
        "about": path("BUNDLE"),
        "pub": path(),
        "own": SWITCH,
        "line": number(repeatable=True),
        "all-runs": SWITCH,
        "canonical": SWITCH,
        "key": path(),
        "out": path(short="o", default="-"),
        **JSON,
        **SHARED,
    },
    "open-statement": {
        "pub": path(required=True),
        "type": text("URI"),
        "any-type": SWITCH,
        "subject": text("ALG:HEX", repeatable=True),
        "predicate-only": SWITCH,
        **JSON,
        **SHARED,
    },
    **{f"clients {word}": flags for word, flags in CLIENTS.items()},
    **{f"pr-receipt {word}": flags for word, flags in RECEIPTS.items()},
    "completions": SHARED,
    "man": {"out": path("DIR", short="o"), **SHARED},
    "version": {**JSON, **SHARED},
}
"""Every command but `daemon`, which has no flag but `--help`. Those of a group have its word before them."""

GROUPS = tuple(dict.fromkeys(command.split()[0] for command in COMMANDS if " " in command))
"""Words that stand before the commands of a group."""
